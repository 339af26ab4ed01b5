"""Which code is the same: names for the code that outputs and claims come from.

Both names are blind to comments, docstrings and what lies in SAYING. What that says, a message of a check, a hint, a
word or a colour, is compared as such wherever it is shown, and makes no number.
"""

import ast
import hashlib
import io
import itertools
import tokenize
from collections.abc import Iterable, Iterator
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
    modules = {path.relative_to(PACKAGE).as_posix(): text for path, text in _modules(sources, without=SAYING)}
    named = "".join(f"{name}\n{_essence(text)}\n" for name, text in [*enumerate(sources), *modules.items()])
    return hashlib.sha256(named.encode()).hexdigest()[:16]


def code_of(chapter: NotebookNode) -> dict[str, str]:
    """For each cell with claims a name for the code it comes from: its own, that of the cells it needs, and the modules.

    A reworded sentence or comment, another figure or exercise leave the name as it is.
    """
    sources = [cell.source for cell in chapter.cells if cell.cell_type == "code"]
    modules = "".join(_plain(text) for _, text in _modules(sources, without=SAYING | SHOWING))
    names = {}
    for number, cell in enumerate(chapter.cells):
        if cell.cell_type == "code" and "claim(" in cell.source:
            needed = [chapter.cells[each] for each in sorted(needed_cells(chapter.cells, [number]))]
            code = "".join(_plain(each.source) for each in needed if "parameters" not in tags(each))
            names[cell.id] = hashlib.sha256(f"{modules}{code}".encode()).hexdigest()[:12]
    return names


def _modules(sources: Iterable[str], *, without: set[str]) -> Iterator[tuple[Path, str]]:
    """The files that these sources import and their text, but for modules, and folders of such, of these names."""
    for path in imported_files(sources):
        if not {*path.relative_to(PACKAGE).with_suffix("").parts} & without:
            yield path, path.read_text(encoding="utf-8")


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


def _essence(source: str) -> str:
    """The source without docstrings, comments and empty lines: the same text under every version of Python."""
    lines = source.splitlines()
    before = tokenize.INDENT  # what stands before a token; a file begins like a block
    for token, after in itertools.pairwise(tokenize.generate_tokens(io.StringIO(MAGIC.sub("", source)).readline)):
        alone = before == tokenize.INDENT and after.type in (tokenize.NEWLINE, tokenize.COMMENT)
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and alone):
            first, last = token.start[0] - 1, token.end[0]
            lines[first] = lines[first][: token.start[1]]
            lines[first + 1 : last] = [""] * (last - first - 1)
        elif token.type != tokenize.NL:
            before = token.type
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
