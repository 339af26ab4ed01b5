"""Which code is the same: names for the code that outputs and claims come from.

Both names are blind to comments, docstrings and what lies in SAYING. What that says, a message of a check, a hint, a
word or a colour, is compared as such wherever it is shown, and makes no number.
"""

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterable
from modulefinder import ModuleFinder
from pathlib import Path

from nbformat import NotebookNode

import posenc
from courseware.dependencies import MAGIC, needed_cells, tags

PACKAGE = Path(posenc.__file__).parent
SAYING = {"lesson", "exercises"}  # modules, and folders of such, in which no output is computed
SHOWING = {"__init__", "figures", "worked"}  # and those besides in which no number of a claim is


def fingerprint(notebook: NotebookNode) -> str:
    """A name for a chapter's code and for the code of the course that it imports."""
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    files = [path for path in imported_files(sources) if not {*_names(path)} & SAYING]
    modules = [(path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8")) for path in files]
    code = hashlib.sha256()
    for name, source in [*enumerate(sources), *modules]:
        code.update(f"{name}\n{_essence(source)}\n".encode())
    return code.hexdigest()[:16]


def code_of(chapter: NotebookNode) -> dict[str, str]:
    """For each cell with claims a name for the code it comes from: its own, that of the cells it needs, and the modules.

    A reworded sentence or comment, another figure or exercise leave the name as it is.
    """
    modules = hashlib.sha256()
    sources = [cell.source for cell in chapter.cells if cell.cell_type == "code"]
    for path in imported_files(sources):
        if not {*_names(path)} & (SAYING | SHOWING):
            modules.update(_plain(path.read_text(encoding="utf-8")).encode())
    names = {}
    for number, cell in enumerate(chapter.cells):
        if cell.cell_type == "code" and "claim(" in cell.source:
            code = modules.copy()
            for needed in sorted(needed_cells(chapter.cells, [number])):
                if "parameters" not in tags(chapter.cells[needed]):
                    code.update(_plain(chapter.cells[needed].source).encode())
            names[cell.id] = code.hexdigest()[:12]
    return names


def imported_files(sources: Iterable[str]) -> list[Path]:
    """The course's files that these sources import, and those that these import, sorted.

    Raises:
        FileNotFoundError: a folder of modules has no `__init__.py`, so neither tests nor installs would find them.
    """
    for folder in {path.parent for path in PACKAGE.rglob("*.py")}:
        if not (folder / "__init__.py").exists():
            raise FileNotFoundError(f"{folder} has no __init__.py: make an empty one")
    finder = ModuleFinder([str(PACKAGE.parent)])
    for source in sources:
        finder.scan_code(compile(tree(source), "cell", "exec"), finder.add_module("__main__"))
    files = {Path(module.__file__) for module in finder.modules.values() if module.__file__}
    # `use` takes from beside the exercises.
    files |= {path.with_name("worked.py") for path in files if path.name == "exercises.py"}
    return sorted(path for path in files if path.is_relative_to(PACKAGE) and path.exists())


def tree(source: str) -> ast.Module:
    """A cell's or a module's Python, without the magics of a cell."""
    return ast.parse(MAGIC.sub("", source))


def _names(path: Path) -> tuple[str, ...]:
    return path.relative_to(PACKAGE).with_suffix("").parts


def _essence(source: str) -> str:
    """The source without docstrings, comments and empty lines: the same text under every version of Python."""
    lines = source.splitlines()
    for node in ast.walk(tree(source)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and ast.get_docstring(node) is not None:
            first, last = node.body[0].lineno - 1, node.body[0].end_lineno
            lines[first:last] = [""] * (last - first)
    shown = "".join(f"{MAGIC.sub('', line)}\n" for line in lines)
    for token in tokenize.generate_tokens(io.StringIO(shown).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _plain(source: str) -> str:
    """The source as Python writes it, without docstrings, imports, guesses and the words of claims."""
    parsed = tree(source)
    for node in ast.walk(parsed):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "claim" and node.args:
            node.args[0] = ast.Constant("")
        if isinstance(body := getattr(node, "body", None), list):
            kept = [line for line in body if not _says_only(line)]
            node.body = kept if kept or isinstance(node, ast.Module) else [ast.Pass()]
    return ast.unparse(parsed)


def _says_only(line: ast.stmt) -> bool:
    """Whether no number comes from this: an import, a docstring, a guess that is asked for or compared."""
    value = getattr(line, "value", None)
    function = getattr(value, "func", None)
    guess = getattr(function, "id", "") == "predict" or getattr(function, "attr", "") == "compare"
    said = isinstance(line, ast.Expr) and isinstance(value, ast.Constant)
    return guess or said or isinstance(line, ast.Import | ast.ImportFrom)
