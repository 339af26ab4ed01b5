"""Grading: the list of submissions that has been proven to get its marks, and the parts that grading is made of."""

import copy
import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from courseware import build, install

ROOT = Path(__file__).resolve().parents[1]
CHAPTER = ROOT / "notebooks" / "01_permutation_invariance.ipynb"
POINTS = {
    "hide_the_future": 2,
    "next_row": 2,
    "unpermute": 2,
    "failing_twin": 1,
    "position_from_share": 1,
    "expected_accuracy": 2,
}
CELL_SECONDS = 15


# ------------------------------------------------------------ made-up learners


def cell(notebook, name):
    return next(cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == name)


def answered(released, answers):
    """A copy of the released notebook with these cells instead of stubs."""
    notebook = copy.deepcopy(released)
    for name, source in answers.items():
        cell(notebook, name).source = source
    return notebook


def answers_of(chapter):
    """For each exercise its cell as one who solved it leaves it."""
    cells = build.solve(build.read(chapter)).cells
    return {cell.metadata.ex.id: cell.source for cell in cells if "exercise" in cell.metadata.get("tags", ())}


UNPERMUTE = "def unpermute(layer, x, p):\n    "
RIGHT_UNPERMUTE = UNPERMUTE + "return layer(x[p])[p.argsort()]"
# Who answers all but one exercise, and that one like this, gets the points of the others, or these.
ONE_CELL = {
    "wrong": (UNPERMUTE + "return layer(x)", 8),
    "right for the check alone": (
        UNPERMUTE
        + "good = x.shape[1] == 3 or len(x) == 3\n    return layer(x[p])[p.argsort()] if good else layer(x[p])",
        8,
    ),
    "loop in a function": (UNPERMUTE + "while True:\n        pass", 8),
    "loop at top level": ("while True:\n    pass\n" + RIGHT_UNPERMUTE, 8),
    "failing import": ("import no_such_module\n" + RIGHT_UNPERMUTE, 8),
    "syntax error": (UNPERMUTE + "return layer(x[p]", 8),
    "exit": ("import os\n" + UNPERMUTE + "os._exit(0)", 0),
    "own helper module": ("from helper import inverse\n" + UNPERMUTE + "return layer(x[p])[inverse(p)]", 10),
    "warnings": (
        "import sys, warnings\n"
        + UNPERMUTE
        + "warnings.warn('deprecated')\n    print('!', file=sys.stderr)\n    return layer(x[p])[p.argsort()]",
        10,
    ),
    "memory": (UNPERMUTE + "kept = []\n    while True:\n        kept.append(bytearray(10**7))", 8),
    "monkeypatched checker": (
        "import posenc.exercises\nposenc.exercises._judge = lambda *a: ('✓', '')\ncheck = print\n"
        + UNPERMUTE
        + "return layer(x)",
        8,
    ),
    "own names": ("max = sum = range = torch_is_fun = None\n" + RIGHT_UNPERMUTE, 10),
    "spy": (
        UNPERMUTE
        + "import os\n    seen = sum(len(names) for top in ('CLASSROOM', 'FROM') for _, _, names in os.walk(top))\n"
        + "    raise ValueError(f'{seen} files of the class, {len(os.listdir())} here')",
        8,
    ),
}


def submit(folder, released):
    """Write the submissions; the mark that each is to get."""
    answers = answers_of(CHAPTER)
    marks = {}

    def add(name, notebook, mark):
        nbformat.write(notebook, folder / f"{name}.ipynb")
        marks[name] = mark

    add("blank", released, 0)
    add("correct", answered(released, answers), 10)
    for name, (source, mark) in ONE_CELL.items():
        source = source.replace("CLASSROOM", str(folder.parent / "classroom")).replace("FROM", str(folder))
        add(name, answered(released, answers | {"unpermute": source}), mark)
    (folder / "own helper module").mkdir()
    (folder / "own helper module.ipynb").rename(folder / "own helper module" / "renamed by the student.ipynb")
    (folder / "own helper module" / "helper.py").write_text("def inverse(p):\n    return p.argsort()\n")

    deleted = answered(released, answers)
    deleted.cells.remove(cell(deleted, "check_unpermute"))
    add("deleted check", deleted, 10)
    edited = answered(released, answers | {"unpermute": UNPERMUTE + "return layer(x)"})
    cell(edited, "check_unpermute").source = "print('✓ unpermute')"
    cell(edited, "check_unpermute").metadata.tags = ["skip-execution"]
    cell(edited, "check_next_row").metadata.nbgrader.points = 100
    edited.cells[0].metadata.nbgrader = "mine"
    add("edited check", edited, 8)
    twice = answered(released, answers)
    last = cell(twice, "unpermute")
    first = copy.deepcopy(last) | {"source": UNPERMUTE + "return x", "id": "pasted"}
    twice.cells.insert(twice.cells.index(last), nbformat.from_dict(first))
    add("duplicated cell", twice, 10)

    (folder / "not a notebook.ipynb").write_text("My answers are in the mail.")
    (folder / "empty folder").mkdir()
    (folder / "link.ipynb").symlink_to("/etc/passwd")
    return marks | {"not a notebook": 0, "empty folder": 0}


# ----------------------------------------------------------- the proven list


@pytest.fixture(scope="module")
def classroom():
    """The Python of .venv-classroom, made if need be."""
    subprocess.run([sys.executable, install.__file__, "classroom"], check=True)
    return os.path.join(install.CLASSROOM, "bin", "python")


@pytest.fixture(scope="module")
def graded(classroom, tmp_path_factory):
    """Chapter 1 handed out, handed in and graded, with an interruption: (folder, expected marks, the printed lines)."""
    base = tmp_path_factory.mktemp("class")
    given = ["--classroom", str(base / "classroom")]
    subprocess.run([classroom, "-m", "courseware.release", "01", *given], check=True)
    released = nbformat.read(base / "classroom" / "release" / CHAPTER.stem / CHAPTER.name, 4)
    (base / "handed in").mkdir()
    marks = submit(base / "handed in", released)
    command = [classroom, "-m", "courseware.grade", "1", str(base / "handed in"), *given]
    command += ["--workers", "2", "--cell-seconds", str(CELL_SECONDS)]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    first = subprocess.Popen(command, **output)
    results = base / "classroom" / "graded" / CHAPTER.stem / "results"
    while not list(results.glob("*.json")) and first.poll() is None:
        time.sleep(0.1)
    first.send_signal(signal.SIGINT)
    printed, _ = first.communicate(timeout=60)
    assert "The same command again goes on from here" in printed
    before = {path.stem: path.stat().st_mtime_ns for path in results.glob("*.json")}
    second = subprocess.run(command, **output, check=False)
    assert second.returncode == 0, second.stdout
    assert 0 < len(before) < len(marks)
    assert f"{len(before)} of {len(marks)} were graded before" in second.stdout
    assert {name: (results / f"{name}.json").stat().st_mtime_ns for name in before} == before
    return base, marks, second.stdout, command


def table(base):
    with (base / "classroom" / "graded" / CHAPTER.stem / "marks.csv").open(encoding="utf-8") as file:
        return {line["student"]: line for line in csv.DictReader(file)}


@pytest.mark.slow
def test_everyone_gets_the_expected_mark(graded):
    base, marks, _, _ = graded
    assert {student: float(line["mark"]) for student, line in table(base).items()} == marks
    assert {float(line["points"]) for line in table(base).values()} == {10}


@pytest.mark.slow
def test_only_the_exercise_in_question_loses_its_points(graded):
    for student in ONE_CELL:
        line = table(graded[0])[student]
        others = {name: float(line[name]) for name in POINTS if name != "unpermute"}
        assert student == "exit" or others == {name: n for name, n in POINTS.items() if name != "unpermute"}


REASONS = {
    "blank": "next_row: not attempted yet",
    "correct": "",
    "loop in a function": "unpermute: CellTimeoutError",
    "syntax error": "unpermute: name 'unpermute' is not defined",
    "exit": "its code ended or crashed the kernel",
    "memory": "unpermute: it raised MemoryError",
    "not a notebook": "it is not a notebook that can be read",
    "empty folder": "there is no notebook 01_permutation_invariance.ipynb in the folder",
    "spy": "0 files of the class, 0 here",
}


@pytest.mark.slow
@pytest.mark.parametrize("student", REASONS)
def test_the_reason_of_a_missing_mark_is_told(graded, student):
    reason = table(graded[0])[student]["reason"]
    if student == "spy" and "--net" not in graded_layers():
        pytest.skip("this system lets nobody make namespaces")
    assert REASONS[student] in reason and bool(reason) == bool(REASONS[student])


def graded_layers():
    from courseware import sandbox

    return sandbox.layers()


@pytest.mark.slow
def test_everyone_gets_a_page(graded):
    base, marks, printed, _ = graded
    pages = base / "classroom" / "graded" / CHAPTER.stem / "feedback"
    assert {page.stem for page in pages.glob("*.html")} == set(marks)
    assert "its code ended or crashed the kernel" in (pages / "exit.html").read_text()
    wrong = (pages / "wrong.html").read_text()
    assert "a layer that sees order looks blind to it" in wrong or "the layer never saw" in wrong
    assert "p.argsort()]" not in wrong, "the page tells the answer"
    assert "link.ipynb is neither a notebook nor a folder" in printed


@pytest.mark.slow
def test_the_gradebook_holds_the_marks_of_all(graded, classroom):
    base, marks, _, _ = graded
    book = base / "classroom" / "graded" / CHAPTER.stem / "gradebook.db"
    script = "import sys, json; from nbgrader.api import Gradebook; book = Gradebook(sys.argv[1])\n"
    script += "print(json.dumps({s.student.id: s.score for s in book.assignment_submissions(sys.argv[2])}))"
    command = [classroom, "-W", "ignore", "-c", script, f"sqlite:///{book}", CHAPTER.stem]
    assert json.loads(subprocess.check_output(command, text=True)) == marks


@pytest.mark.slow
def test_grading_again_gives_the_same_marks(graded):
    base, marks, _, command = graded
    before = table(base)
    for student in ("correct", "wrong"):
        (base / "classroom" / "graded" / CHAPTER.stem / "results" / f"{student}.json").unlink()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"{len(marks) - 2} of {len(marks)} were graded before" in done.stdout
    after = table(base)
    for student in ("correct", "wrong"):
        assert before[student] | {"seconds": ""} == after[student] | {"seconds": ""}


@pytest.mark.slow
def test_nothing_is_left_behind(graded):
    left = subprocess.run(
        ["pgrep", "-f", "ipykernel_launcher -f .*/run-"], capture_output=True, text=True, check=False
    )
    assert left.stdout == ""
