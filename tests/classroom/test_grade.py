"""Grading: the list of submissions that has been proven to get its marks, and the parts that grading is made of."""

import copy
import csv
import json
import multiprocessing
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import assignment
import nbformat
import pytest
from assignment import table

import classroom
from classroom import grade, submissions
from classroom.marks import failure, no_mark
from classroom.release import ClassroomError
from classroom.submissions import Submission
from classroom.workplace import Limits
from courseware import install, notebooks
from courseware.dependencies import needed_cells
from courseware.solutions import solved

closed_in = grade._closed
ROOT = Path(__file__).resolve().parents[2]
CHAPTER = ROOT / "notebooks" / "01_permutation_invariance.ipynb"
CELL_SECONDS = 2  # of a processor, for cells that take none, or for ever
LAST_STOP = ["--cell-seconds", "1200", "--seconds", "12000"]


def cell(notebook, name):
    return next(cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == name)


# ------------------------------------------- the proven list, of a small assignment

RIGHT, WRONG = assignment.RIGHT, "def a():\n    return 2"
JUNK = "def a():\n    get_ipython().kernel.iopub_socket.send_multipart([b'<IDS|MSG>', *6 * [b'junk']])\n    return 1"
MUCH = """def {}():
    from IPython.display import display
    display({{'text/plain': 'x' * 20_000_000}}, raw=True)
    return 1"""
LATE = f"it ran longer than {CELL_SECONDS} s"


class Case(NamedTuple):
    """Who answers a and b like this gets these points for them, and is told these reasons."""

    a: str
    b: str
    marks: tuple[int, int]
    reasons: tuple[str, ...] = ()
    beside: dict[str, str] = {}  # noqa: RUF012  not changed

    @property
    def mark(self):
        return sum(self.marks)


CASES = {
    "right": Case(
        "import posenc, sys\ndef a():\n    sys.displayhook(0.5)\n    return filled[0]()",
        RIGHT["b"],
        (2, 1),
        beside={
            "helper.py": "def right():\n    return 1",
            "ipykernel_launcher.py": "1 / 0",  # no launcher of the kernel
            "posenc/__init__.py": "1 / 0",  # no copy of the course
        },
    ),
    "deleted check": Case(RIGHT["a"], RIGHT["b"], (2, 1)),
    "edited check": Case(WRONG, RIGHT["b"], (0, 1), ("a: AssertionError",)),
    "loops": Case(
        "def a():\n    while True:\n        pass",
        "while True:\n    pass\n" + RIGHT["b"],
        (0, 0),
        (f"a: {LATE};", f"b: {LATE}"),
    ),
    "ended": Case(
        "def a():\n    return 7**10**9",
        "import os\ndef b():\n    os._exit(0)",
        (0, 0),
        (f"a: {LATE} and could not be interrupted", "b: its code ended or crashed the kernel"),
    ),
    "too much": Case(
        "def a():\n    import os, time\n    for _ in range(150):\n        os.fork() or time.sleep(600)\n"
        "    time.sleep(600)",
        "def b():\n    return bytearray(10**9)",
        (0, 0),
        ("a: it started more than 100 processes", "b: MemoryError"),
    ),
    "together": Case(
        "def a():\n    import os, time\n    for _ in range(3):\n"
        "        held = os.fork() or [b'x' * 200_000_000, time.sleep(600)]\n    time.sleep(600)",
        RIGHT["b"],
        (0, 1),
        ("a: it took more than 0.5 GB of memory",),
    ),
    "junk": Case(JUNK, RIGHT["b"], (0, 1), ("a: its code ",)),  # broke the connection, or ended the kernel
    "broken connection": Case(MUCH.format("a"), RIGHT["b"], (0, 1), ("a: its code broke the connection",)),
    "broken connection twice": Case(
        MUCH.format("a"), MUCH.format("b"), (0, 0), ("its code broke the kernel in which it ran, twice",)
    ),
    "raises": Case(
        "from worked_solutions import a",
        "from helper import b",
        (0, 0),
        ("a: ModuleNotFoundError: No module named 'worked_solutions'", "b: ZeroDivisionError"),
        beside={"helper.py": "1 / 0", "worked_solutions.py": RIGHT["a"]},
    ),
    "spy": Case(
        "def a():\n    import os\n"
        "    seen = sum(len(names) for top in ('CLASSROOM', 'FROM') for _, _, names in os.walk(top))\n"
        "    raise ValueError(f'{seen} files of the class, {len(os.listdir())} here')",
        "def b():\n    return (1",
        (0, 0),
        ("0 files of the class, 0 here", "b: SyntaxError"),
    ),
    "not a notebook": Case("", "", (0, 0), ("it is not a notebook that can be read",)),
}


def submit(folder):
    """Write the submissions."""
    made = {}
    for name, case in CASES.items():
        source = case.a.replace("CLASSROOM", str(folder.parent / "classroom")).replace("FROM", str(folder))
        made[name] = assignment.notebook(a=source, b=case.b)
    for source in ("_ = [filled.append(f) for f in (right,)]", "from helper import right\nfilled = []"):
        made["right"].cells.insert(0, nbformat.v4.new_code_cell(source))
    deleted, edited = made["deleted check"], made["edited check"]
    deleted.cells.remove(cell(deleted, "check_a"))
    deleted.cells.insert(0, nbformat.from_dict(copy.deepcopy(cell(deleted, "a")) | {"source": WRONG, "id": "pasted"}))
    cell(edited, "check_a").source = "print('✓ a')"
    cell(edited, "check_a").metadata.tags = ["skip-execution"]
    cell(edited, "check_b").metadata.nbgrader.points = 100
    for name, notebook in made.items():
        for beside, text in CASES[name].beside.items():
            (folder / name / beside).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / beside).write_text(text)
        its = folder / name / "renamed by the student.ipynb" if CASES[name].beside else folder / f"{name}.ipynb"
        nbformat.write(notebook, its)
    (folder / "not a notebook.ipynb").write_text("My answers are in the mail.")
    (folder / "link.ipynb").symlink_to("/etc/passwd")


@pytest.fixture(scope="module")
def graded(classroom_python, tmp_path_factory):
    """The small assignment handed in and graded, with an interruption: (folder, the printed lines, a result of before
    the interruption)."""
    base = tmp_path_factory.mktemp("class")
    assignment.hand_out(base / "classroom", "a", "b")
    (base / "handed in").mkdir()
    submit(base / "handed in")
    command = [classroom_python, "-m", "classroom.grade", "1", str(base / "handed in")]
    command += ["--classroom", str(base / "classroom"), "--workers", "2", "--seconds", "1200"]
    command += ["--cell-seconds", str(CELL_SECONDS), "--gigabytes", "0.5"]
    (base / "tmp").mkdir()
    own = os.environ | {"TMPDIR": str(base / "tmp")}  # where its kernels' folders are
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": own}
    listen = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # what runs in the background may ignore it
    first = subprocess.Popen(command, preexec_fn=listen, **output)
    results = base / "classroom" / "graded" / CHAPTER.stem / "results"
    enough = 2
    while first.poll() is None:  # once more where it goes on: a signal that comes while Python forks is lost
        if len(list(results.glob("*.json"))) >= enough:
            first.send_signal(signal.SIGINT)
            enough += 2
        time.sleep(0.1)
    printed, _ = first.communicate()
    assert "The same command again goes on from here" in printed
    again, *_ = finished = sorted(results.glob("*.json"))  # one that was graded is graded again
    known = again.stem, json.loads(again.read_text())
    again.unlink()
    before = {path.stem: path.stat().st_mtime_ns for path in finished if path != again}
    second = subprocess.run(command, **output, check=False)
    assert second.returncode == 0, second.stdout
    assert 0 < len(before) < len(CASES) - 1
    assert f"{len(before)} of {len(CASES)} were graded before" in second.stdout
    assert {name: (results / f"{name}.json").stat().st_mtime_ns for name in before} == before
    return base, second.stdout, known


@pytest.mark.slow
def test_everyone_gets_the_expected_mark_and_is_told_why_one_is_missing(graded):
    found = table(graded[0] / "classroom")
    got = {student: (float(line["a"]), float(line["b"])) for student, line in found.items()}
    assert got == {name: case.marks for name, case in CASES.items()}, found
    assert {(float(line["mark"]) - sum(got[name]), line["points"]) for name, line in found.items()} == {(0, "3.0")}
    for student, case in CASES.items():
        told = found[student]["reason"]
        assert bool(told) == bool(case.reasons) and all(each in told for each in case.reasons), (student, told)
    book = sqlite3.connect(graded[0] / "classroom" / "graded" / CHAPTER.stem / "gradebook.db")
    held = book.execute("SELECT COUNT(DISTINCT notebook_id), SUM(auto_score) FROM grade").fetchone()
    assert held == (len(CASES), sum(case.mark for case in CASES.values()))


@pytest.mark.slow
def test_everyone_gets_a_page(graded):
    base, printed, _ = graded
    pages = base / "classroom" / "graded" / CHAPTER.stem / "feedback"
    assert {page.stem for page in pages.glob("*.html")} == CASES.keys()
    assert "its code ended or crashed the kernel" in (pages / "ended.html").read_text()
    wrong = (pages / "edited check.html").read_text()
    assert "return 2" in wrong
    assert "return 1" not in wrong, "the page tells the answer"
    assert "showtraceback" not in (pages / "loops.html").read_text()
    assert "link.ipynb is neither a notebook nor a folder" in printed
    helper = (pages / "raises.html").read_text()
    assert "File helper.py" in helper and str(base) not in helper and str(ROOT) not in helper


@pytest.mark.slow
def test_grading_again_gives_the_same_marks(graded):
    base, _, (student, before) = graded
    results = base / "classroom" / "graded" / CHAPTER.stem / "results"
    again = json.loads((results / f"{student}.json").read_text())
    for told in ("marks", "notes", "reason"):
        assert again[told] == before[told]


@pytest.mark.slow
def test_nothing_is_left_behind(graded):
    folder = graded[0] / "tmp"
    left = subprocess.run(["pgrep", "-f", folder], capture_output=True, text=True, check=False)
    assert left.stdout == ""
    assert not [path.name for path in folder.iterdir() if "grading-" in path.name]


@pytest.mark.slow
def test_moodles_zip_is_graded_and_its_worksheet_filled(classroom_python, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        text = nbformat.writes(assignment.notebook(a=WRONG, b=RIGHT["b"]))
        archive.writestr(f"wrong_5_assignsubmission_file_/{CHAPTER.name}", text)
        archive.writestr("bomb_9_assignsubmission_file_/a.ipynb", bytes(submissions.BIGGEST + 1))
    sheet = "Identifier,Full name,Status,Grade,Last modified (grade)\n"
    (tmp_path / "x.csv").write_text(sheet + "Participant 5,wrong,1 day late,,-\n")
    command = [classroom_python, "-m", "classroom.grade", "1", tmp_path / "x.zip"]
    command += ["--classroom", tmp_path / "classroom", *LAST_STOP]
    assignment.hand_out(tmp_path / "classroom", "a", "b")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    after, graded_in = table(tmp_path / "classroom"), tmp_path / "classroom" / "graded" / CHAPTER.stem
    assert {name: (float(line["mark"]), line["status"]) for name, line in after.items()} == {
        "wrong (5)": (1, "1 day late"),
        "bomb (9)": (0, ""),
    }
    assert "it has 20 MB; 20 are the most" in after["bomb (9)"]["reason"]
    assert "late: wrong (5)" in done.stdout and "not in the worksheet: bomb (9)" in done.stdout
    with (graded_in / "moodle.csv").open() as file:
        assert [line["Grade"] for line in csv.DictReader(file)] == ["1"]
    with zipfile.ZipFile(graded_in / "moodle.zip") as archive:
        assert f"wrong_5_assignsubmission_file_/{CHAPTER.stem}.html" in archive.namelist()


# ------------------------------------------------------------ and of a chapter

TRICKS = {  # exercise → an answer in place of the worked one, and what is told of it
    # Right, beside warnings and lines on stderr; max, sum and range are names that the hidden tests use.
    "unpermute": (
        "import sys, warnings\nmax = sum = range = None\ndef unpermute(layer, x, p):\n"
        "    warnings.warn('deprecated')\n    print('!', file=sys.stderr)\n    return layer(x[p])[p.argsort()]",
        "",
    ),
    "hide_the_future": (
        "from posenc.chapters.permutation_invariance.worked import hide_the_future",
        "No module named 'posenc.chapters.permutation_invariance.worked'",
    ),
    "expected_accuracy": (
        "import posenc.lesson.exercises\nposenc.lesson.exercises._judge = lambda *a: ('✓', '')\ncheck = print\n"
        "def expected_accuracy(length):\n    return 0.25",
        "expected_accuracy: ",
    ),
}


@pytest.mark.slow
def test_a_chapter_is_handed_out_handed_in_and_graded(classroom_python, tmp_path):
    """Right answers get all points, none get none, and whoever answers by a trick loses what the trick was for."""
    given = ["--classroom", str(tmp_path / "classroom")]
    subprocess.run([classroom_python, "-m", "classroom.release", "01", *given], check=True)
    released = nbformat.read(tmp_path / "classroom" / "release" / CHAPTER.stem / CHAPTER.name, 4)
    (tmp_path / "in").mkdir()
    nbformat.write(released, tmp_path / "in" / "blank.ipynb")
    asked = [number for number, cell in enumerate(released.cells) if "nbgrader" in cell.metadata]
    released.cells = [released.cells[n] for n in sorted(needed_cells(released.cells, asked))]  # no figures
    answers = {c.metadata.ex.id: c.source for c in solved(notebooks.read(CHAPTER)).cells if "ex" in c.metadata}
    for exercise, answer in {**answers, **{name: answer for name, (answer, _) in TRICKS.items()}}.items():
        cell(released, exercise).source = answer
    nbformat.write(released, tmp_path / "in" / "tricks.ipynb")
    command = [classroom_python, "-m", "classroom.grade", "1", str(tmp_path / "in"), *given, *LAST_STOP]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = table(tmp_path / "classroom")
    assert float(found["blank"]["mark"]) == 0 and "next_row: not attempted yet" in found["blank"]["reason"]
    results = tmp_path / "classroom" / "graded" / CHAPTER.stem / "results"
    marks = json.loads((results / "tricks.json").read_text())["marks"]
    lost = {name for name, (got, most) in marks.items() if got != most}
    assert lost == {f"check_{name}" for name, (_, reason) in TRICKS.items() if reason}
    assert all(reason in found["tricks"]["reason"] for _, reason in TRICKS.values())
    page = (tmp_path / "classroom" / "graded" / CHAPTER.stem / "feedback" / "blank.html").read_text()
    assert "p.argsort()]" not in page, "the page tells the answer"
    assert "Traceback" not in page, "a check's reason is said once"


# ------------------------------------------------------------------- the parts


def roles(*names):
    cells = [nbformat.v4.new_code_cell(name) for name in names]
    for each, name in zip(cells, names):
        each.metadata = nbformat.from_dict({"nbgrader": {"grade_id": name, "points": 1}, "tags": ["skip-execution"]})
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("é"), *cells])


def test_metadata_is_what_was_released_and_a_missing_check_is_put_back():
    submitted, released = roles("one", "one", "mine", "two"), roles("one", "two", "check")
    submitted.cells[2].metadata.nbgrader.points = 100
    submitted.cells[4].metadata.nbgrader = "rubbish"
    submitted.cells[1].outputs = [nbformat.v4.new_output("stream", text="much")]
    submitted.metadata.kernelspec = {"name": "another"}
    released.cells[3].metadata.nbgrader.grade = True
    grade.tidy(submitted, released)
    assert submitted.metadata == {} and submitted.cells[1].outputs == []
    *before, last = submitted.cells
    assert [each.metadata for each in before] == [{}, {}, {"nbgrader": {"grade_id": "one", "points": 1}}, {}, {}]
    assert last == released.cells[3]


@pytest.fixture
def template(tmp_path):
    """A released notebook with one check of one point, and the gradebook that knows it."""
    released = roles("one", "check_one")
    released.cells[2].metadata.nbgrader.grade = True
    path = tmp_path / "template" / "release" / "01_x" / "01_x.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(released, path)
    (tmp_path / "template" / "gradebook.db").write_text("no marks")
    return path


def test_only_checks_give_points(template):
    assert grade.points(template) == {"check_one": 1.0}


@pytest.fixture
def ann(tmp_path):
    """A submission that is no notebook."""
    (tmp_path / "ann.ipynb").write_text("1")
    return Submission("ann", tmp_path / "ann.ipynb")


@pytest.fixture
def grader(tmp_path, template, monkeypatch):
    """One that needs no nbgrader, as nothing comes to be graded."""
    (tmp_path / "01_x.ipynb").write_text("1")
    monkeypatch.setitem(sys.modules, "classroom.autograde", SimpleNamespace())
    monkeypatch.setattr(classroom, "autograde", SimpleNamespace(), raising=False)
    monkeypatch.setattr(install, "PYTHON", sys.executable)
    return grade.Grader(tmp_path / "01_x.ipynb", template, tmp_path / "graded", Limits(seconds=600))


def test_a_submission_is_laid_out_for_the_grader_and_for_its_kernel(tmp_path, template):
    handed_in, home = tmp_path / "ann", tmp_path / "kernels" / "home"
    data = [handed_in / "data" / "deep" / name for name in ("a.csv", "b.csv")]
    for path in (*data, home / "fonts"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)
    claims = roles("one", "check_one")
    claims.cells[1].metadata.nbgrader.points = 100
    nbformat.write(claims, handed_in / "mine.ipynb")
    submission = Submission("ann", handed_in / "mine.ipynb", (*data, handed_in / "mine.ipynb"))
    course, own = grade.lay_out(submission, tmp_path / "base", home.parent, 3, template)
    assert (course, own) == (tmp_path / "base" / "3", tmp_path / "kernels" / "3")
    assert (course / "gradebook.db").read_text() == "no marks"
    seen = nbformat.read(course / "submitted" / "submission" / "01_x" / "01_x.ipynb", as_version=4)
    assert seen.cells[1].metadata == {"nbgrader": {"grade_id": "one", "points": 1}}
    assert seen.cells[0].source == "é"
    assert {str(path.relative_to(own)) for path in own.rglob("*")} == {
        *("home", "home/fonts", "tmp", "run", "work", "given"),
        *("work/data", "work/data/deep", "work/data/deep/a.csv", "work/data/deep/b.csv"),
    }
    assert (own / "work" / "data" / "deep" / "a.csv").read_text() == "a.csv"


INVALID = (
    '{"cells": [{"cell_type": "code", "id": "a", "metadata": {}}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
)


@pytest.mark.parametrize(
    ("text", "biggest", "reason"),
    [
        (None, 100, "^there is no notebook 01_x.ipynb in the folder$"),
        ("a text", 6, "^it is not a notebook that can be read: "),
        ("a text", 5, "^it has 0 MB; 0 are the most$"),
        (INVALID, 1000, "^it is not a notebook that can be read: "),
        ("[" * 900, 1000, "^it is not a notebook that can be read: "),
        ('{"cell_type"' * 80, 1000, "^it has more than 50 cells$"),
    ],
)
def test_what_cannot_be_laid_out(tmp_path, monkeypatch, template, text, biggest, reason):
    monkeypatch.setattr(submissions, "BIGGEST", biggest)
    monkeypatch.setattr(grade, "MOST", 50)
    notebook = text and tmp_path / "ann" / "ann.ipynb"
    (tmp_path / "ann").mkdir()
    if notebook:
        notebook.write_text(text)
    submission = Submission("ann", notebook)
    with pytest.raises(ClassroomError, match=reason):
        grade.lay_out(submission, tmp_path / "base", tmp_path / "kernels", 0, template)


HOSTILE = {
    "memory": (
        "RLIMIT_DATA",
        '{"cells": [], "metadata": {"a": [' + "{}," * 100_000 + '{}]}, "nbformat": 4, "nbformat_minor": 5}',
        "it is not a notebook that can be read: MemoryError",
    ),
    "time": ("RLIMIT_CPU", "{}", "reading it takes more than 1 s of a processor"),
}


@pytest.mark.parametrize(("limited", "text", "reason"), HOSTILE.values(), ids=HOSTILE)
@pytest.mark.slow
def test_a_submission_that_takes_too_much_to_read_gets_its_0(grader, ann, monkeypatch, limited, text, reason):
    ann.notebook.write_text(text)
    if limited == "RLIMIT_CPU":
        monkeypatch.setattr(grade, "READING", 1)
        monkeypatch.setattr(grade.nbformat, "reads", lambda *_, **__: any(iter(int, 1)))
    else:
        held = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
        monkeypatch.setattr(grade, "MEMORY", held + 10_000_000)
    ((_, result),) = grader.grade([ann], workers=1)
    assert result.marks == {"check_one": [0.0, 1.0]} and reason in result.reason


def test_a_result_counts_until_submission_or_assignment_change(grader, ann):
    assert grader.done(ann) is None
    for changed in (grader.source, ann.notebook):
        kept = grader._keep(ann, failure(grader.points, "it crashed"), 0.0)
        assert grader.done(ann) == kept and kept.marks == {"check_one": [0.0, 1.0]}
        changed.write_text("2")
        assert grader.done(ann) is None
    for text in ("{", "{}", "[]", '{"of": 1, "older": 1}'):
        grader.result(ann).write_text(text)
        assert grader.done(ann) is None


def test_a_submissions_copy_of_the_course_is_compiled_and_has_no_worked_solutions(tmp_path):
    course = grade.ROOT / "src" / "posenc"
    assert list(course.rglob("worked.py")), "so there are some to leave out"
    grade.copy_course(tmp_path / "course")
    copied = {str(path.relative_to(tmp_path / "course" / "posenc")) for path in tmp_path.rglob("*.py")}
    assert copied == {str(path.relative_to(course)) for path in course.rglob("*.py") if path.stem != "worked"}
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith("worked.")]
    assert len(list(tmp_path.rglob("*.pyc"))) >= len(copied)
    assert all(path.stat().st_mode & 0o005 for path in tmp_path.rglob("*"))


@pytest.mark.parametrize(
    ("isolated", "user", "words"),
    [
        (True, 0, "Submissions run behind bubblewrap, as a user of their own each: no network"),
        (True, 1000, "Submissions run behind bubblewrap, as your user: no network"),
        (False, 1000, "SANDBOX=none: submissions run as your user, HAVE the network"),
    ],
)
def test_the_first_line_says_what_submissions_are_kept_from(monkeypatch, isolated, user, words):
    monkeypatch.setattr(grade.os, "geteuid", lambda: user)
    assert grade.kept_from(isolated).startswith(words)


def test_without_a_sandbox_root_refuses_where_its_users_cannot_reach_the_course(tmp_path, template, monkeypatch):
    closed = tmp_path / "closed"
    (closed / "venv" / "bin").mkdir(parents=True)
    closed.chmod(0o700)
    monkeypatch.setattr(grade, "_closed", lambda *paths: [p for p in closed_in(*paths) if p.is_relative_to(closed)])
    monkeypatch.setattr(grade.install, "VENV", str(closed / "venv"))
    monkeypatch.setattr(grade.os, "geteuid", lambda: 0)
    monkeypatch.setenv("SANDBOX", "none")
    arguments = tmp_path / "01_x.ipynb", template, tmp_path / "graded", None
    with pytest.raises(ClassroomError, match=rf"{closed} is closed to them. Open it \(chmod o\+x {closed}\)"):
        grade.Grader(*arguments)
    closed.chmod(0o701)
    grade.Grader(*arguments)


@pytest.mark.parametrize("jobs", ["0", "-1", "two"])
def test_no_jobs_are_refused(jobs, capsys):
    with pytest.raises(SystemExit):
        grade.main(["01", ".", "--workers", jobs])
    assert "1 or more" in capsys.readouterr().err


def test_what_says_nothing_of_the_submission_is_not_kept(grader, ann):
    grader._keep(ann, no_mark(grader.points, "no kernel starts"), time.monotonic())
    assert grader.done(ann) is None and not grader.result(ann).exists()
    ann.notebook.unlink()
    assert grader._keep(ann, failure(grader.points, "x"), time.monotonic()).mark is None, "it cannot be read"


TROUBLE = {
    "nbgrader": RuntimeError("nbgrader failed"),
    "disk": OSError(28, "No space left on device"),
    "killed": SystemExit(9),
}


@pytest.mark.parametrize("error", TROUBLE.values(), ids=TROUBLE)
@pytest.mark.slow
def test_whatever_a_grader_dies_of_is_no_mark(grader, ann, monkeypatch, error):
    def fails(*arguments):
        raise error

    monkeypatch.setattr(grade, "lay_out", fails)
    bob = Submission("bob", None, trouble="Permission denied: secret")
    results = {each.student: result for each, result in grader.grade([ann, bob], workers=2)}
    assert results["ann"].marks == results["bob"].marks == {"check_one": [None, 1.0]}
    assert "Permission denied: secret" in results["bob"].reason
    assert (str(error) if error.args != (9,) else "its grader died") in results["ann"].reason
    assert not list((grader.graded / "results").iterdir())


@pytest.mark.slow
def test_a_grader_that_hangs_is_ended_and_the_folder_of_the_kernels_cannot_be_listed(
    grader, ann, tmp_path, monkeypatch
):
    mode = tmp_path / "mode"

    def hangs(submission, base, kernels, *_):
        mode.write_text(f"{kernels.stat().st_mode & 0o777:o}")
        time.sleep(600)

    monkeypatch.setattr(grade, "lay_out", hangs)
    start = iter([0.0])
    clock = SimpleNamespace(monotonic=lambda: next(start, 1e9 * mode.exists()))  # once it hangs, its time is over
    monkeypatch.setattr(grade, "time", clock)
    ((_, result),) = grader.grade([ann], workers=1)
    assert "its grader died" in result.reason
    assert mode.read_text() == "711"


@pytest.mark.parametrize(("root", "users"), [(0, [50_000, 50_001, 50_002]), (1000, [0, 0, 0])])
def test_as_root_each_submission_has_a_user_number_of_its_own(grader, tmp_path, monkeypatch, root, users):
    monkeypatch.setattr(os, "geteuid", lambda: root)
    assert [grader._place(tmp_path, tmp_path, number).user for number in range(3)] == users


CLOCK = """
import asyncio, time
from types import SimpleNamespace
from classroom.autograde import Run, runs_needed
from classroom.workplace import Limits

watch, run = SimpleNamespace(used=10.0), Run()
execute = runs_needed(run, Limits(cell_seconds=100), watch, None)()
execute.km = SimpleNamespace(interrupt_kernel=lambda: print("interrupted"))
for watch.used, since in ((109.0, 350), (111.0, 0), (10.0, 450)):  # of a processor, by the clock
    execute.start = 10.0, time.monotonic() - since
    execute.log.disabled = True
    given = asyncio.run(execute._async_handle_timeout(1))
    print(watch.used, given and given["content"]["ename"], run.stuck)
    run.stuck = False
"""


@pytest.mark.slow
def test_a_cell_is_ended_by_its_processor_time_and_by_the_clock_only_at_last(classroom_python):
    printed = subprocess.check_output([classroom_python, "-W", "ignore", "-c", CLOCK], text=True)
    assert printed.splitlines() == [
        "109.0 None False",
        *("interrupted", "111.0 CellTimeoutError True"),
        *("interrupted", "10.0 CellTimeoutError True"),
    ]


def test_a_grader_ends_although_a_process_below_it_has_just_ended(monkeypatch):
    psutil = pytest.importorskip("psutil")

    class Gone:
        def kill(self):
            raise psutil.NoSuchProcess(1)

    monkeypatch.setattr(psutil.Process, "children", lambda self, recursive: [Gone()])
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    process.start()
    grade._end(process)
    assert process.exitcode == -signal.SIGKILL
