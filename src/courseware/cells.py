"""Which cells hang together: what each defines and uses, read from its text."""

import ast
import copy

from nbformat import NotebookNode


def names(source: str) -> tuple[set[str], set[str]]:
    """What a cell defines for the cells after it, and what it reads, its functions' insides included.

    Raises:
        SyntaxError: the cell is no Python.
    """
    defined, read = set(), set()
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            defined.add(statement.name)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            defined |= {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                (read if isinstance(node.ctx, ast.Load) else defined).add(node.id)
    return defined, read


def without_training(notebook: NotebookNode) -> NotebookNode:
    """A copy without the cells that train models, and without those that need what these define.

    What is left takes seconds instead of minutes, and is all that an exercise or a slider needs.
    """
    dropped: set[str] = {"train"}
    kept = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            defined, read = names(cell.source)
            if read & dropped:
                dropped |= defined
                continue
            dropped -= defined - {"train"}
        kept.append(copy.deepcopy(cell))
    short = copy.deepcopy(notebook)
    short.cells = kept
    return short
