"""Which cells of a notebook hang together: what an answer needs, and what is left of a chapter without trainings."""

import ast
import copy
import functools
import re
import symtable
from collections.abc import Iterable, Iterator

from nbformat import NotebookNode

# Both within one line: an indentation that went on over empty lines would be looked for from each of them anew.
MAGIC = re.compile(r"^([ \t]*)[%!?].*$", re.MULTILINE)
STAR = re.compile(r"^[ \t]*(from .* import \*|%run\b)", re.MULTILINE)
SHOWING = {"print", "display", "claim", "check", "figures"}  # whose calls change nothing


def tags(cell: NotebookNode) -> list[str]:
    """The tags of a cell."""
    return cell.metadata.get("tags", [])


def needed_cells(cells: list[NotebookNode], graded: Iterable[int]) -> set[int]:
    """The numbers of the cells to run: the graded ones, and those that define what these use.

    A name is taken from the nearest cell above that defines it, as it would be when all cells ran. Imports are
    such definitions. A cell that is not Python, or that imports all names of a module, counts as defining nothing
    known: the one is left out, the other is always run.

    Args:
        cells: of the whole notebook.
        graded: numbers of the cells that give marks.
    """
    found = {*graded}
    wanted: set[str] = set()  # names that such cells take from above
    for number in reversed(range(len(cells))):
        if cells[number].cell_type == "code":
            source = cells[number].source
            if number in found or defined(source) & {*wanted, "*"}:
                wanted = wanted - defined(source) | used(source)
                found.add(number)
    return found


def without_training(notebook: NotebookNode) -> NotebookNode:
    """A copy without the cells that train models, and without those that need what these define.

    What is left takes seconds instead of minutes, and is all that an exercise or a slider needs.
    """
    short = copy.deepcopy(notebook)
    short.cells = [short.cells[number] for number in untrained_cells(notebook.cells)]
    return short


def untrained_cells(cells: list[NotebookNode]) -> list[int]:
    """The numbers of the cells that neither train models nor need what such a cell defines."""
    dropped = {"train"}
    kept = []
    for number, cell in enumerate(cells):
        if cell.cell_type == "code":
            if used(cell.source) & dropped:
                dropped |= defined(cell.source)
                continue
            dropped -= defined(cell.source) - {"train"}
        kept.append(number)
    return kept


@functools.lru_cache(4096)
def defined(source: str) -> frozenset[str]:
    """The names that a cell gives a value; "*" for those of `from module import *` or `%run`.

    `f = use("f", f)` gives none: it only chooses between the answer and the worked solution.
    """
    tree, table = _parsed(source)
    if table is None:
        return frozenset()
    names = {each.get_name() for each in table.get_symbols() if each.is_assigned() or each.is_imported()}
    chosen = re.findall(r"^(\w+) = use\(\"\1\", \1\b", source, re.MULTILINE)
    return frozenset({*names, *_changed(tree), *"*" * bool(STAR.search(source))}.difference(chosen))


@functools.lru_cache(4096)
def used(source: str) -> frozenset[str]:
    """The names that a cell or its functions take from the notebook."""
    tree, table = _parsed(source)
    return frozenset([*_global_names(table), *_changed(tree)] if table else ())


def _changed(tree: ast.AST) -> Iterator[str]:
    """The names of what a cell changes, which so was there before: by `name += …`, `name[…] = …`, `name.part = …`.

    A statement that is a call may change what it is called on and each name that it is called with: `name.append(…)`,
    `setattr(name, …)`. Whether it does cannot be seen from outside, so it counts.
    """
    for node in ast.walk(tree):
        parts = []
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = node.value.func
            if ast.unparse(called).partition(".")[0] not in SHOWING:
                parts = [called.value if isinstance(called, ast.Attribute) else None, *node.value.args]
        elif isinstance(node, ast.AugAssign):
            parts = [node.target]
        elif isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            parts = [node]
        for part in parts:
            while isinstance(part, ast.Subscript | ast.Attribute | ast.Starred):
                part = part.value
            if isinstance(part, ast.Name):
                yield part.id


def _global_names(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (symbol.is_global() or table.get_type() == "module"):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _global_names(inner)


def _parsed(source: str) -> tuple[ast.AST, symtable.SymbolTable] | tuple[None, None]:
    """The cell's tree and its names, or nothing where Python refuses it, early or late."""
    try:
        tree = _Generators().visit(ast.parse(MAGIC.sub(r"\1pass", source)))
        return tree, symtable.symtable(ast.unparse(tree), "cell", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None, None


class _Generators(ast.NodeTransformer):
    """Makes a generator of every comprehension: from Python 3.12 on its names count as those around it."""

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp) -> ast.AST:
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    visit_SetComp = visit_ListComp

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        self.generic_visit(node)
        return ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)
