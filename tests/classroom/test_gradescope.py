"""The autograder for Gradescope: its zip unpacked and run as Gradescope does, in a folder of its own."""

import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import assignment
import nbformat
import pytest
from container import container

from classroom import grade, gradescope
from classroom.marks import no_mark
from classroom.release import ROOT, ClassroomError
from courseware import install

CHAPTER = ROOT / "notebooks" / "01_permutation_invariance.ipynb"


@pytest.fixture
def folder():
    """A folder that every user can reach, as submissions run under a user of their own where root grades."""
    path = Path(tempfile.mkdtemp(prefix="autograder-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def unpack(archive, folder):
    """As Gradescope does: the zip in source/, and a copy of run_autograder beside."""
    with zipfile.ZipFile(archive) as file:
        file.extractall(folder / "source")
        for entry in file.infolist():
            (folder / "source" / entry.filename).chmod(entry.external_attr >> 16 & 0o777)
    shutil.copy(folder / "source" / "run_autograder", folder)
    for name in ("submission", "results"):
        (folder / name).mkdir()


@pytest.fixture
def packed(tmp_path):
    """The zip of a classroom whose source is there already."""
    source = tmp_path / "classroom" / "source" / CHAPTER.stem / CHAPTER.name
    source.parent.mkdir(parents=True)
    source.write_text("the teacher's")
    return gradescope.pack(CHAPTER, tmp_path / "classroom")


def test_the_zip_holds_what_grades_and_nothing_that_was_made(packed, folder):
    with zipfile.ZipFile(packed) as archive:
        names = archive.namelist()
    assert {"setup.sh", "run_autograder", "pyproject.toml", "constraints.txt"} < {*names}
    assert {"src/posenc/attention.py", "src/courseware/install.py", f"assignment/{CHAPTER.name}"} < {*names}
    assert not [name for name in names if "__pycache__" in name or "egg-info" in name or name.startswith(("/", "."))]
    unpack(packed, folder)
    assert (folder / "source" / "assignment" / CHAPTER.name).read_text() == "the teacher's"
    assert os.access(folder / "source" / "setup.sh", os.X_OK) and os.access(folder / "run_autograder", os.X_OK)


SAYS = """#!/bin/sh
echo "$(basename "$0") $*" >> "$LOG"
case "$*" in
    -c*) exit $OLD ;;
    *find*) echo "$FOUND" ;;
esac
"""


@pytest.mark.parametrize(
    ("old", "python"), [("0", "python3"), ("1", "python3.12")], ids=["a Python that is new enough", "an old Python"]
)
def test_setup_installs_with_a_python_that_is_new_enough(packed, folder, old, python):
    unpack(packed, folder)
    programs = folder / "bin"
    programs.mkdir()
    for name in ("apt-get", "python3", "python3.12"):
        (programs / name).write_text(SAYS)
        (programs / name).chmod(0o755)
    own = {"PATH": f"{programs}:{os.environ['PATH']}", "LOG": str(folder / "log"), "OLD": old}
    own["FOUND"] = str(programs / "python3.12")
    subprocess.run([folder / "source" / "setup.sh"], check=True, env=own, cwd="/")
    *before, last = (folder / "log").read_text().splitlines()
    assert last == f"{python} src/courseware/install.py classroom"
    assert before[0] == "apt-get update" and ("python3 -m pip install uv" in before) == (old == "1")
    for secret in ("assignment", "src/classroom"):
        assert (folder / "source" / secret).stat().st_mode & 0o077 == 0
    assert (folder / "source" / "src" / "courseware" / "install.py").exists()


def test_trouble_of_the_machine_leaves_no_results(tmp_path, monkeypatch):
    (tmp_path / "source" / "assignment").mkdir(parents=True)
    (tmp_path / "source" / "assignment" / "01_x.ipynb").touch()
    (tmp_path / "submission").mkdir()
    (tmp_path / "results").mkdir()
    trouble = no_mark({"check_a": 2.0}, "its grader died")
    grader = SimpleNamespace(isolated=False, grade=lambda submissions, workers: [(submissions[0], trouble)])
    monkeypatch.setattr(grade, "new_template", lambda source, scratch: source)
    monkeypatch.setattr(grade, "Grader", lambda *arguments: grader)
    with pytest.raises(ClassroomError, match="no fault of the submission: its grader died"):
        gradescope.run(tmp_path)
    assert not list((tmp_path / "results").iterdir())


def environments(source):
    """What setup.sh makes, with the packages of the tests' own environments instead of new ones."""
    venvs = {".venv": [install.VENV], ".venv-classroom": [install.VENV, install.CLASSROOM]}
    for name, from_ in venvs.items():
        subprocess.run([install.PYTHON, "-m", "venv", "--without-pip", source / name], check=True)
        libraries = [next(Path(venv).glob("lib/python3*/site-packages")) for venv in from_]
        more = [
            line for library in libraries for path in library.glob("*.pth") for line in path.read_text().splitlines()
        ]
        paths = [source / "src", *libraries, *(line for line in more if line.startswith("/"))]
        (library,) = (source / name).glob("lib/python3*/site-packages")
        (library / "course.pth").write_text("\n".join(map(str, paths)))
    shutil.copy(Path(install.CLASSROOM) / "bin" / "alembic", source / ".venv-classroom" / "bin")


@pytest.mark.slow
def test_gradescope_gets_marks_and_reasons(classroom_python, folder, tmp_path):
    classroom = ["--classroom", tmp_path / "classroom"]
    assignment.hand_out(tmp_path / "classroom", "a", "b")
    subprocess.run([classroom_python, "-m", "classroom.gradescope", "1", *classroom], check=True)
    unpack(tmp_path / "classroom" / "gradescope" / f"{CHAPTER.stem}.zip", folder)
    environments(folder / "source")
    wrong = "from helper import wrong\ndef a():\n    return wrong()"
    handed_in = assignment.notebook(a=wrong, b=assignment.RIGHT["b"])
    (folder / "submission" / "sent in.ipynb").write_text(nbformat.writes(handed_in))
    (folder / "submission" / "helper.py").write_text("import posenc.attention\ndef wrong():\n    return 2\n")
    command = [*container(), "--bind", folder, "/autograder", "/autograder/run_autograder"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("SANDBOX=none: submissions run as ")
    results = json.loads((folder / "results" / "results.json").read_text())
    assert "without a sandbox inside (SANDBOX=none)" in results["output"] and results["execution_time"] > 0
    assert results["tests"] == [
        {"name": "a", "score": 0.0, "max_score": 2.0, "output": "AssertionError"},
        {"name": "b", "score": 1.0, "max_score": 1.0, "output": ""},
    ]
