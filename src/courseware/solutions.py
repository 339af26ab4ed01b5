"""What stands in a chapter beside its exercises: the hints below each check, and the worked solutions at its end.

Both are made by `make notebooks`, from the chapter's modules `exercises` and `worked`.
"""

import copy
import importlib
import inspect
import re

from nbformat import NotebookNode, v4

from courseware.index import TAG as INDEX
from courseware.index import anchor
from posenc.lesson.exercises import find

HINTS, WORKED = "hints", "worked"  # the tags of the two kinds of cells
TITLE = "## Worked solutions"
FOLDED = "jp-MarkdownHeadingCollapsed"  # how JupyterLab stores that a heading's section is folded


def with_solutions(notebook: NotebookNode) -> NotebookNode:
    """The notebook with its hints and its worked solutions as they are now; the index of claims stays the last cell.

    Raises:
        KeyError: it has an exercise that the chapter's module does not know.
    """
    cells, solutions, name, heading = [], [], "", ""
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", ())
        if {HINTS, WORKED} & {*tags}:
            continue
        cells.append(cell)
        if cell.cell_type == "markdown":
            heading = ([heading] + re.findall(r"^### Exercise (.*)$", cell.source, re.MULTILINE))[-1]
        elif "exercise" in tags:
            name = cell.metadata.ex.id
        elif "check" in tags:
            title = f"Solution {' · '.join(heading.split(' · ')[:2])}"
            cells.append(_cell(name, HINTS, hints(notebook, name, title)))
            solutions.append(_cell(name, WORKED, f"### {title}\n\n{_folded('Show', _code(notebook, name))}"))
    if solutions:
        end = len(cells) - any(INDEX in cell.metadata.get("tags", ()) for cell in cells[-1:])
        first = v4.new_markdown_cell(TITLE, id="worked-solutions", metadata={"tags": [WORKED], FOLDED: True})
        cells[end:end] = [first, *solutions]
    notebook.cells = cells
    return notebook


def hints(notebook: NotebookNode, name: str, title: str) -> str:
    """The hints of an exercise, each folded, and the link to its solution, which has this title."""
    _register(notebook)
    folded = [_folded(f"Hint {n}", _markdown(hint)) for n, hint in enumerate(find(name).hints, start=1)]
    return "\n\n".join([*folded, f"[Worked solution](#{anchor(title)})"])


def solved(notebook: NotebookNode) -> NotebookNode:
    """A copy in which the worked function of every exercise stands in its stub, as if a learner had written it."""
    made = copy.deepcopy(notebook)
    for cell in made.cells:
        if "exercise" in cell.metadata.get("tags", ()):
            cell.source = source(notebook, cell.metadata.ex.id)
    return made


def source(notebook: NotebookNode, name: str) -> str:
    """The worked function of an exercise, as it is written."""
    _register(notebook)
    return inspect.getsource(find(name).worked).rstrip()


def _register(notebook: NotebookNode) -> None:
    """Import the exercises of the chapter, as its notebook does."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            for chapter in re.findall(
                r"^from (posenc\.chapters\.\w+) import .*\bexercises\b", cell.source, re.MULTILINE
            ):
                importlib.import_module(f"{chapter}.exercises")


def _cell(name: str, tag: str, text: str) -> NotebookNode:
    return v4.new_markdown_cell(text, id=f"{name.replace('_', '-')}-{tag}", metadata={"tags": [tag]})


def _code(notebook: NotebookNode, name: str) -> str:
    return f"```python\n{source(notebook, name)}\n```"


def _folded(summary: str, text: str) -> str:
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def _markdown(hint: str) -> str:
    """A hint's words as a paragraph, and its examples, which are doctests, as code below it."""
    words, arrow, example = hint.partition("\n>>> ")
    paragraph = " ".join(words.split("\n"))
    return f"{paragraph}\n\n```pycon\n>>> {example}\n```" if arrow else paragraph
