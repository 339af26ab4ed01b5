"""README, TEACHING and CONTRIBUTING: make starts what they say, and what they say of the chapters is so."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from thorough import thorough

from courseware import notebooks
from courseware.replicate import read_table

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = "\n".join(
    (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "TEACHING.md", "CONTRIBUTING.md")
)

# What make starts, with the Python of which environment.
MAKE = {
    "make": "",
    "make lab": "install.py lab",
    "make assignment CHAPTER=04": ".venv-classroom -m classroom.release 04",
    "make assignment CHAPTER=04 WORKED=1": ".venv-classroom -m classroom.release 04 --worked",
    "make assignment CHAPTER=04 HINTS=1": ".venv-classroom -m classroom.release 04 --hints 1",
    "make grade CHAPTER=04 FROM=folder-of-what-came-back": ".venv-classroom -m classroom.grade 04 folder-of-what-came-back",
    "SANDBOX=none make grade CHAPTER=04 FROM=folder-of-what-came-back": ".venv-classroom -m classroom.grade 04 folder-of-what-came-back",
    "make grade CHAPTER=04 FROM=what-came-back.zip": ".venv-classroom -m classroom.grade 04 what-came-back.zip",
    "make gradescope CHAPTER=04": ".venv-classroom -m classroom.gradescope 04",
    "make check": ".venv -m pytest -n 2 -m not slow tests",
    "make test": ".venv tests/run.py",
    "make test ALL=1": ".venv tests/run.py",
    "make notebooks CHAPTER=01": ".venv -m courseware.notebooks 01 start",
    "make bench": ".venv tests/bench.py",
    "FRESH=1 make notebooks": ".venv -m courseware.notebooks",
    "make pictures": ".venv -m courseware.notebooks",
    "make pictures CHAPTER=01": ".venv -m courseware.notebooks 01",
    "make tally": ".venv tests/tally.py",
    "make replicate": ".venv -m courseware.replicate",
    "make replicate SETS=16": ".venv -m courseware.replicate --sets 16",
    "DASK_SCHEDULER_ADDRESS=tcp://host:8786 make replicate": ".venv -m courseware.replicate",
    "make site": ".venv -m courseware.site.pages",
    "make load": ".venv-classroom tests/bench.py grading",
}


def commands(text):
    """The calls of make: lines of the fenced blocks, and what stands in code within a line."""
    fenced = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    lines = [line.partition("#")[0].strip() for line in [*"".join(fenced).splitlines(), *inline]]
    return dict.fromkeys(line for line in lines if re.match(r"([A-Z_]+=\S+ )?make\b", line))


def test_every_command_is_known():
    found = set(commands(DOCUMENTS))
    named = {command for command in found if any(each.startswith(f"{command} ") for each in MAKE)}
    assert found - named <= MAKE.keys()
    assert MAKE.keys() <= found, "and what the README says no longer is not here"


def test_the_start_begins_with_a_clone_and_its_words_are_those_that_people_search_for():
    first = re.search(r"^```sh\n(.*)$", README, re.MULTILINE)[1]
    assert first.startswith("git clone ")
    paragraph = README.split("\n\n")[2]
    wanted = "positional encoding, RoPE, ALiBi, YaRN, transformer, PyTorch, interactive Jupyter notebooks"
    assert [words for words in wanted.split(", ") if words not in paragraph] == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the Pythons of the environments and the installer only say how they were called."""
    folder = tmp_path_factory.mktemp("course")
    shutil.copy(ROOT / "Makefile", folder)
    for name in (".venv", ".venv-classroom"):
        program = folder / name / "bin" / "python"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\necho "{name} $*"\n')
        program.chmod(0o755)
    installer = folder / "src" / "courseware" / "install.py"
    installer.parent.mkdir(parents=True)
    installer.write_text("import sys\nprint('install.py', *sys.argv[1:])\n")
    return folder


@pytest.mark.parametrize("command", MAKE)
def test_make_starts_it(command, folder):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    environment["PYTHON"] = sys.executable
    said = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    assert MAKE[command] in said.stdout.splitlines() or not MAKE[command]
    for module in re.findall(r"-m (courseware[.\w]+)", said.stdout):
        assert (ROOT / "src" / f"{module.replace('.', '/')}.py").exists()


def test_the_table_of_chapters_says_what_the_chapters_say():
    """The minutes of a lesson are those of its exercises too."""
    rows = re.findall(r"^\| \[(.*?)\]\((notebooks/\d.*?)\) \| .*\? \| (\d+) min \|$", README, re.MULTILINE)
    header = r"# (.*)\n(?:.*\n)*?.*\*\*Lesson\*\* (\d+) min of reading, (\d+) of exercises"
    said = []
    for path in notebooks.chapters():
        title, reading, exercises = re.match(header, notebooks.read(path).cells[0].source).groups()
        minutes = str(int(reading) + int(exercises))
        said.append((title.replace(" · ", " "), f"notebooks/{path.name}", minutes))
    assert rows == said


@pytest.mark.slow
@thorough
def test_load_is_measured(classroom_python):
    """With one submission, which says nothing of two at once; so the verdict of the command may be either."""
    command = [classroom_python, "tests/bench.py", "grading", "--chapter", "01", "--count", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    measured = r"^(\d) at once: +\d+\.\d a minute, \d\.\d\d GB for the largest$"
    assert re.findall(measured, done.stdout, re.MULTILINE) == ["1", "2"], done.stderr
    assert done.returncode == 0 or "BEYOND THE LIMIT" in done.stdout


def test_what_it_says_of_other_seeds_is_in_the_table():
    rows = [row for row in read_table() if (row.pace, row.steps) == ("1", "1") and row.varies]
    held = sum(row.held == row.sets for row in rows)
    said = f"Of {len(rows)} measurements that differ from set to set, {held} held in all of 16 other sets of seeds"
    assert f"{said}, and the rest in at least {min(row.held for row in rows)}." in README
    assert {row.sets for row in rows} == {16}
