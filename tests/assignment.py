"""A small assignment whose cells import nothing, so that grading it takes a kernel and hardly more."""

import csv
from pathlib import Path

import nbformat
from nbformat import NotebookNode

NAME = "01_permutation_invariance"  # grading asks for a chapter, and looks at its file in the class's folder alone
RIGHT = {"a": "def a():\n    return 1", "b": "def b():\n    return 2"}
POINTS = {"a": 2, "b": 1}
CHECKS = {"a": "assert a() == 1", "b": "assert b() == 2"}


def notebook(**answers: str) -> NotebookNode:
    """The notebook that comes back with these answers, exercise → source."""
    cells = []
    for name, source in answers.items():
        cells.append(nbformat.v4.new_code_cell(source, metadata=_role(name, solution=True)))
        check = _role(f"check_{name}", grade=True, points=POINTS[name])
        cells.append(nbformat.v4.new_code_cell(CHECKS[name], metadata=check))
    return nbformat.v4.new_notebook(cells=cells)


def hand_out(classroom: Path, *exercises: str) -> None:
    """Write the teacher's notebook into the class's folder."""
    source = classroom / "source" / NAME / f"{NAME}.ipynb"
    source.parent.mkdir(parents=True)
    solved = {}
    for name in exercises:
        head, body = RIGHT[name].split("\n")
        solved[name] = f"{head}\n    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION"
    nbformat.write(notebook(**solved), source)


def table(classroom: Path) -> dict[str, dict[str, str]]:
    """student → line of the table that a teacher reads."""
    with (classroom / "graded" / NAME / "marks.csv").open(encoding="utf-8") as file:
        return {line["student"]: line for line in csv.DictReader(file)}


def _role(grade_id: str, **role: object) -> dict:
    plain = {"schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}
    return {"nbgrader": plain | {"grade_id": grade_id} | role}
