"""Every solution passes its own check: copies in which each solution stands in its stub, run strictly."""

from pathlib import Path

import nbformat
import pytest
from nbformat import v4

from courseware.dependencies import without_training
from courseware.notebooks import BuildError, execute, read, solve

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setenv("POSENC_STRICT", "1")


def verdicts(notebook, folder):
    """What each check cell prints when every solution stands in its stub."""
    executed = execute(solve(notebook), folder=folder)
    checks = [cell for cell in executed.cells if "check" in cell.metadata.get("tags", [])]
    return ["".join(output.get("text", "") for output in cell.outputs) for cell in checks]


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("[0-9]*.ipynb")), ids=lambda path: path.stem)
def test_every_solution_passes_its_check(path):
    chapter = read(path)
    said = verdicts(without_training(chapter), path.parent)
    assert len(said) == sum("exercise" in cell.metadata.get("tags", []) for cell in chapter.cells) > 0
    assert [verdict for verdict in said if not verdict.startswith("✓")] == []


# The same on a notebook of one exercise with its own small check, so that the test above is seen to fail.

CHECK = """
import os
def check(name, function):
    try:
        right = function(3) == 6
    except NotImplementedError:
        right = False
    print("✓" if right else "✗", name)
    assert right or not os.environ.get("POSENC_STRICT")
def use(name, function, solution):
    return solution
"""
STUB = 'def twice(x):\n    raise NotImplementedError("your turn")'


def one_exercise(solution):
    stub, check, worked = map(v4.new_code_cell, (STUB, 'check("twice", twice)', solution))
    stub.metadata = nbformat.from_dict({"tags": ["exercise"], "ex": {"id": "twice", "points": 1}})
    check.metadata.tags, worked.metadata.tags = ["check"], ["solution"]
    return v4.new_notebook(cells=[v4.new_code_cell(CHECK), stub, check, worked])


def test_a_right_solution(tmp_path):
    right = 'def twice_solution(x):\n    return 2 * x\n\n\ntwice = use("twice", twice, twice_solution)'
    assert verdicts(one_exercise(right), tmp_path) == ["✓ twice\n"]


def test_a_wrong_solution_is_seen(tmp_path):
    wrong = 'def twice_solution(x):\n    return x + 2\n\n\ntwice = use("twice", twice, twice_solution)'
    with pytest.raises(BuildError, match="check.*AssertionError"):
        verdicts(one_exercise(wrong), tmp_path)


def test_an_unsolved_exercise_is_seen(tmp_path):
    unsolved = STUB.replace("twice", "twice_solution") + '\ntwice = use("twice", twice, twice_solution)'
    with pytest.raises(BuildError, match="check.*AssertionError"):
        verdicts(one_exercise(unsolved), tmp_path)
