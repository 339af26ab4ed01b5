"""What stands in a chapter beside its exercises: the hints below each check, and the worked solutions at its end.

Both are made by `make notebooks`, from the chapter's modules `exercises` and `worked`.
"""

import copy
import importlib
import inspect
import re
from collections.abc import Callable

from nbformat import NotebookNode, v4

from courseware.dependencies import tags
from courseware.index import TAG as INDEX

HINTS, WORKED = "hints", "worked"  # the tags of the two kinds of cells
TITLE = "## Worked solutions"


def with_solutions(notebook: NotebookNode) -> NotebookNode:
    """The notebook with its hints and its worked solutions as they are now; the index of claims stays the last cell.

    Raises:
        KeyError: it has an exercise that the chapter's module does not know, or that has no worked solution.
    """
    cells, solutions, name, heading = [], [], "", ""
    find = _registered(notebook)
    for cell in notebook.cells:
        if {HINTS, WORKED}.intersection(tags(cell)):
            continue
        cells.append(cell)
        if cell.cell_type == "markdown":
            heading = ([heading] + re.findall(r"^### Exercise (.*)$", cell.source, re.MULTILINE))[-1]
        elif "exercise" in tags(cell):
            name = cell.metadata.ex.id
        elif "check" in tags(cell):
            folded = [_folded(f"Hint {n}", _markdown(hint)) for n, hint in enumerate(find(name).hints, 1)]
            solution = _cell(name, WORKED, _solution(heading, source(notebook, name), back_to=cell.id))
            folded.append(f"[Worked solution](#cell-id={solution.id})")
            cells.append(_cell(name, HINTS, "\n\n".join(folded)))
            solutions.append(solution)
    if solutions:
        end = len(cells) - (INDEX in tags(cells[-1]))
        first = v4.new_markdown_cell(TITLE, id="worked-solutions", metadata={"tags": [WORKED]})
        cells[end:end] = [first, *solutions]
    notebook.cells = cells
    return notebook


def solved(notebook: NotebookNode) -> NotebookNode:
    """A copy in which the worked function of every exercise stands in its stub, as if a learner had written it."""
    made = copy.deepcopy(notebook)
    for cell in made.cells:
        if "exercise" in tags(cell):
            cell.source = source(notebook, cell.metadata.ex.id)
    return made


def source(notebook: NotebookNode, name: str) -> str:
    """The worked function of an exercise, as it is written.

    Raises:
        KeyError: nobody has registered the exercise, or its chapter's `worked.py` has no function of its name.
    """
    worked = _registered(notebook)(name).worked
    if worked is None:
        raise KeyError(f"{name} has no worked solution: write it beside the chapter's exercises, in worked.py")
    return inspect.getsource(worked).rstrip()


def _registered(notebook: NotebookNode) -> Callable:
    """Import the exercises of the chapter, as its notebook does; returns what finds one by its name."""
    from posenc.lesson.exercises import find  # with torch, which reading a notebook does not need

    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    for chapter in re.findall(r"^from (posenc\.chapters\.\w+) import .*\bexercises\b", code, re.MULTILINE):
        importlib.import_module(f"{chapter}.exercises")
    return find


def _cell(name: str, tag: str, text: str) -> NotebookNode:
    return v4.new_markdown_cell(text, id=f"{name.replace('_', '-')}-{tag}", metadata={"tags": [tag]})


def _solution(exercise: str, code: str, *, back_to: str) -> str:
    title = f"### Solution {' · '.join(exercise.split(' · ')[:2])}"
    shown = _folded("Show", f"```python\n{code}\n```")
    return f"{title}\n\n{shown}\n\n[Back to the exercise](#cell-id={back_to})"


def _folded(summary: str, text: str) -> str:
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def _markdown(hint: str) -> str:
    """A hint's words as a paragraph, and its examples, which are doctests, as code below it."""
    words, arrow, example = hint.partition("\n>>> ")
    paragraph = " ".join(words.split("\n"))
    return f"{paragraph}\n\n```pycon\n>>> {example}\n```" if arrow else paragraph
