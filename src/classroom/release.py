"""An assignment from a chapter: `python -m classroom.release 04`, or `make assignment CHAPTER=04`.

It makes a course folder of nbgrader, `classroom`:

    source/04_name/     the teacher's notebook, with solutions, points and hidden tests
    release/04_name/    the students' notebook, and beside it the same as a zip
    nbgrader_config.py  for those who go on with nbgrader's own tools

The students' notebook is the chapter without its worked solutions, and without links to what is not in the folder. A source
that is there already is kept, so that a teacher may change points and tests; delete it to start again from the
chapter. What else is handed out, or held back, is decided anew each time: --worked puts the worked functions beside
the notebook, --hints 1 limits the hints.
"""

import argparse
import ast
import copy
import os
import re
import shutil
import sys
import warnings
from pathlib import Path

from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_code_cell

from courseware import notebooks, solutions
from courseware.dependencies import tags
from courseware.notebooks import FOLDED

ROOT = Path(__file__).resolve().parents[2]
HIDDEN = Path(__file__).with_name("hidden")
CLASSROOM = ROOT / "classroom"
LINK = re.compile(r"\[([^\[\]]+)\]\((?!\w+:)[\w./%-]*[./][\w./%-]*(?:#[^)\s]*)?\)")  # to a file, relative
MORE = "  # grading adds hidden tests, so ✓ is not yet the points"
HANDED_OUT = "worked_solutions"  # as posenc.lesson.exercises calls it, without which grading starts faster: no torch
PART = "part_of_"  # before the name of an exercise: a part of it that gives a point by itself
STUB = 'raise NotImplementedError("your turn")'

SETTINGS = {  # what differs from nbgrader's defaults
    "ClearSolutions": {"code_stub": {"python": STUB}},
    # Learners may change any cell; a changed check is restored before it gives marks.
    "LockCells": {f"lock_{kind}_cells": False for kind in ("grade", "solution", "readonly")},
    "ClearOutput": {"enabled": False},
    "OverwriteCells": {"add_missing_cells": True},
}
CONFIG = '''"""The settings under which this course's assignments are made and graded."""

from classroom.release import SETTINGS

c = get_config()  # noqa: F821
for section, values in SETTINGS.items():
    c[section].update(values)
'''


class ClassroomError(Exception):
    """What is wrong and what to do, in a sentence for the teacher."""


def chapter(number: str) -> Path:
    """The notebook with this number.

    Raises:
        ClassroomError: there is none.
    """
    for path in notebooks.chapters([number.zfill(2)]):
        return path
    names = ", ".join(path.stem for path in notebooks.chapters())
    raise ClassroomError(f"CHAPTER is the number of a chapter, as in CHAPTER=01. There are: {names}.")


def _subject(path: Path) -> str:
    """A chapter's name without its number, which its modules have."""
    return path.stem.partition("_")[2]


# ------------------------------------------------------------------ source


def teachers_source(notebook: NotebookNode, tests: dict[str, str]) -> NotebookNode:
    """The notebook that nbgrader makes the students' from.

    Each stub gets its worked function, to be cut out again, and each check its points and the hidden tests, and goes
    on with the student's answer. The worked solutions at the end are left out. No section starts folded.

    Args:
        notebook: a chapter; stays as it is.
        tests: for each exercise a function of its name that raises where an answer is wrong, as source.
    """
    source = copy.deepcopy(notebook)
    cells = [cell for cell in source.cells if solutions.WORKED not in tags(cell)]
    source.cells = []
    for cell in cells:
        source.cells.append(cell)
        cell.metadata.pop(FOLDED, None)  # an exercise of the laboratory is seen like one of the lesson
        if solutions.HINTS in tags(cell):
            cell.source = re.sub(r"\s*\[Worked solution\].*$", "", cell.source)
        elif cell.cell_type == "markdown":
            cell.source = LINK.sub(r"\1", cell.source)
        elif "exercise" in tags(cell):
            name, points = cell.metadata.ex.id, cell.metadata.ex.points
            cell.source = _with_solution(cell.source, solutions.source(notebook, name))
            cell.metadata.nbgrader = _role(name, solution=True)
        elif "check" in tags(cell):
            own = f'{name} = use("{name}", {name}, handed_out=True)'
            cell.source = f'check("{name}", {name}){MORE}{_hidden_region(name, name, tests[name])}\n{own}'
            if (part := f"{PART}{name}") in tests:
                what = ast.get_docstring(ast.parse(tests[part]).body[0])
                told = f"# one of the {points} points is for a part: {what}{_hidden_region(part, name, tests[part])}"
                source.cells.append(new_code_cell(told, id=part))
                source.cells[-1].metadata.nbgrader = _role(part, grade=True, locked=True, points=1)
                points -= 1
            cell.metadata.nbgrader = _role(f"check_{name}", grade=True, locked=True, points=points)
    return source


def _role(name: str, **role: object) -> NotebookNode:
    plain = {"schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}
    return from_dict(plain | {"grade_id": name} | role)


def _with_solution(stub: str, solution: str) -> str:
    """The stub with the body of the solution, a function, in place of the line that raises."""
    (function,) = ast.parse(solution).body
    body = "\n".join(solution.split("\n")[function.body[0].lineno - 1 :])
    return stub.replace(f"    {STUB}", f"    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION")


def _hidden_region(name: str, answer: str, test: str) -> str:
    """What stands in a check's cell for the grader alone. A learner may have given max or sum another value."""
    test = re.sub(rf"^def {name}\(", f"def test_{name}(", test, flags=re.MULTILINE)
    code = f"from builtins import *\n\n\n{test}\n\n\ntest_{name}({answer})"
    return f"\n### BEGIN HIDDEN TESTS\n{code}\n### END HIDDEN TESTS"


def hidden_tests(path: Path) -> dict[str, str]:
    """The hidden tests of a chapter, from the module named like it: exercise → source of its test.

    Where an exercise has a part that gives a point by itself, its test stands under part_of_NAME, and in that of the
    whole, too, which calls it.

    Raises:
        ClassroomError: there is no such module.
    """
    module = HIDDEN / f"{_subject(path)}.py"
    if not module.exists():
        raise ClassroomError(f"{path.stem} has no hidden tests: {module.name} is missing.")
    text = module.read_text(encoding="utf-8")
    functions = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    tests = {node.name: ast.get_source_segment(text, node) for node in functions}
    parts = {name.removeprefix(PART): test for name, test in tests.items() if name.startswith(PART)}
    return {name: f"{parts[name]}\n\n\n{test}" if name in parts else test for name, test in tests.items()}


# ----------------------------------------------------------------- release


def configuration(folder: Path):
    """nbgrader's settings for a course folder."""
    from sqlalchemy.exc import SAWarning
    from traitlets.config import Config

    warnings.filterwarnings("ignore", category=SAWarning)  # nbgrader 0.9 was written for an older SQLAlchemy
    return Config(SETTINGS | {"CourseDirectory": {"root": str(folder), "course_id": ""}})


def generate(folder: Path, name: str) -> None:
    """Let nbgrader make the release from the source, and note the points in the folder's gradebook."""
    from nbgrader.apps import NbGraderAPI

    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # nbgrader calls alembic by its name
    done = NbGraderAPI(config=configuration(folder)).generate_assignment(name)
    if not done["success"]:
        raise ClassroomError(f"nbgrader could not make {name}:\n{done['log']}{done.get('error') or ''}")


def limit_hints(notebook: NotebookNode, most: int) -> None:
    """Leave each exercise so many hints at most."""
    for cell in notebook.cells:
        if solutions.HINTS in tags(cell):
            hints = re.findall(r"<details>.*?</details>", cell.source, re.DOTALL)
            cell.source = "\n\n".join(hints[:most])
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type != "markdown" or cell.source]


def assignment(path: Path, classroom: Path = CLASSROOM, *, worked: bool = False, hints: int | None = None) -> Path:
    """Make the assignment of a chapter in the course folder; the folder of the students' notebook.

    Where `worked`, the worked functions are put beside it; `hints` is how many an exercise gives at most.
    """
    name = path.stem
    source = classroom / "source" / name / path.name
    if not source.exists():
        source.parent.mkdir(parents=True, exist_ok=True)
        notebook = teachers_source(notebooks.read(path), hidden_tests(path))
        source.write_text(notebooks.text(notebook), encoding="utf-8")
    (classroom / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    generate(classroom, name)
    release = classroom / "release" / name
    if worked:
        shutil.copyfile(ROOT / "src/posenc/chapters" / _subject(path) / "worked.py", release / f"{HANDED_OUT}.py")
    if hints is not None:
        students = notebooks.read(release / path.name)
        limit_hints(students, hints)
        notebooks.write(release / path.name, notebooks.text(students))
    shutil.make_archive(str(release), "zip", release)
    return release


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="make assignment", description=__doc__.partition("\n")[0])
    parser.add_argument("chapter")
    parser.add_argument("--classroom", type=Path, default=CLASSROOM)
    parser.add_argument("--worked", action="store_true")
    parser.add_argument("--hints", type=int, choices=range(10))
    given = parser.parse_args(arguments)
    try:
        path = chapter(given.chapter)
        kept = (given.classroom / "source" / path.stem / path.name).exists()
        release = assignment(path, given.classroom.resolve(), worked=given.worked, hints=given.hints)
    except (ClassroomError, notebooks.BuildError) as error:
        sys.exit(str(error))
    source = release.parents[1] / "source" / path.stem
    handed_out = f", with the worked functions in {HANDED_OUT}.py" if given.worked else ""
    print(f"for students     {release}, and {release.name}.zip beside it{handed_out}")
    print(f"for the teacher  {source}{', kept as it was: delete it to start anew' if kept else ''}")


if __name__ == "__main__":
    main(sys.argv[1:])
