"""What is found in a folder of submissions."""

import os

from classroom import marks, submissions, workplace
from courseware import dependencies
from posenc.lesson import exercises


def test_submissions_are_found(tmp_path):
    files = "ann.ipynb bob/mine.ipynb bob/.ipynb_checkpoints/mine-checkpoint.ipynb cid/a.ipynb cid/deep/01_x.ipynb "
    files += "cid/deep/h.py cid/deep/old/01_x.ipynb dan/a.py fay/01_x.ipynb fay.ipynb .x/y.ipynb"
    for name in files.split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "eve.ipynb").symlink_to(tmp_path / "ann.ipynb")
    (tmp_path / "bob" / "hers.ipynb").symlink_to(tmp_path / "ann.ipynb")
    (tmp_path / "cid" / "deep" / "secret").symlink_to("/etc/passwd")
    (tmp_path / "notes.txt").touch()
    for old in ("cid/deep/old/01_x.ipynb", "fay/01_x.ipynb"):
        os.utime(tmp_path / old, (0, 0))
    found, lines = submissions.find_submissions(tmp_path, "01_x")
    notebooks = {each.student: each.notebook and str(each.notebook.relative_to(tmp_path)) for each in found}
    mine = {"ann": "ann.ipynb", "bob": "bob/mine.ipynb", "cid": "cid/deep/01_x.ipynb", "fay": "fay.ipynb"}
    assert notebooks == mine | {"dan": None}
    assert lines == [
        "eve.ipynb is neither a notebook nor a folder: not graded",
        "notes.txt is neither a notebook nor a folder: not graded",
        "cid: cid/deep/01_x.ipynb is the newest notebook and is graded; not graded: cid/deep/old/01_x.ipynb",
        "fay: fay.ipynb is the newest notebook and is graded; not graded: fay/01_x.ipynb",
    ]
    assert [name for name, _ in found[2].files()] == ["h.py", "old/01_x.ipynb"]


def test_worked_functions_and_a_copy_of_the_course_do_not_go_with_the_notebook(tmp_path):
    assert submissions.HANDED_OUT == exercises.HANDED_OUT
    names = "worked_solutions.py worked_solutions/all.py posenc/__init__.py deep/posenc.py a.ipynb b.py".split()
    files = tuple(tmp_path / name for name in names)
    found = submissions.Submission("ann", tmp_path / "a.ipynb", files).files()
    assert [name for name, _ in found] == ["b.py"]


def test_empty_lines_are_read_once():
    """From each of 60,000 an indentation that may go on over lines would be looked for anew, for five minutes."""
    for pattern, line in ((dependencies.MAGIC, "%time"), (dependencies.STAR, "from a import *")):
        assert pattern.search(f"\n\n  {line}").start() == 2


def test_a_name_in_another_encoding_is_written_as_it_can_be(tmp_path):
    folder = tmp_path / "in"
    (folder / "zo\udceb").mkdir(parents=True)
    (folder / "zo\udceb" / "M\udcfcller.py").touch()
    (folder / "zo\udceb" / "a.ipynb").write_text("{}")
    (folder / "\udcff.txt").touch()
    (found,), (line,) = submissions.find_submissions(folder, "01_x")
    assert found.student == "zo\\xeb" and line.startswith("\\xff.txt is neither")
    result = marks.failure({"check_a": 2.0}, "it crashed")
    marks.write_marks(tmp_path / "marks.csv", {found.student: result})
    assert len(found.fingerprint()) == 64 and "zo\\xeb" in marks.page(found.student, "01_x", result)


def test_folders_that_are_too_deep_or_too_many_cost_that_submission_only(tmp_path, monkeypatch):
    deep = tmp_path / "deep"
    (deep / "/".join("d" * submissions.DEEPEST)).mkdir(parents=True)
    (tmp_path / "ann.ipynb").touch()
    found, _ = submissions.find_submissions(tmp_path, "01_x")
    assert [each.fault for each in found] == ["", ""]
    (deep / "/".join("d" * 900)).mkdir(parents=True)
    here = os.open(deep / "/".join("d" * 900), os.O_RDONLY)
    for _ in range(2100):  # deeper than a path can tell
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    found, _ = submissions.find_submissions(tmp_path, "01_x")
    assert [each.fault for each in found] == ["", f"its folders are nested more than {submissions.DEEPEST} deep"]
    workplace.remove(deep)
    assert not deep.exists()
    monkeypatch.setattr(submissions, "MOST", 1)
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / "a.py").touch()
    found, _ = submissions.find_submissions(tmp_path, "01_x")
    assert found[1].fault == "it has more than 1 files and folders"


def test_a_fingerprint_changes_with_every_file(tmp_path):
    notebook, helper = tmp_path / "a" / "a.ipynb", tmp_path / "a" / "helper.py"
    notebook.parent.mkdir()
    seen = set()
    for text, other in (("1", "1"), ("2", "1"), ("2", "2"), ("2", "22")):
        notebook.write_text(text), helper.write_text(other)
        seen.add(submissions.Submission("a", notebook, (notebook, helper)).fingerprint())
    assert len(seen) == 4
