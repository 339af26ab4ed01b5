"""The house: every public function has a caller, every error that a docstring states is raised by a test, and the
library needs torch alone."""

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from courseware import notebooks
from courseware.dependencies import MAGIC

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "src").rglob("*.py"))


def code(path):
    if path.suffix == ".ipynb":
        return MAGIC.sub("", "\n".join(cell.source for cell in notebooks.read(path).cells if cell.cell_type == "code"))
    return path.read_text(encoding="utf-8")


@functools.cache
def names_used(path):
    """What a file or a notebook reads or imports; in a notebook a hint is a comment."""
    nodes = list(ast.walk(ast.parse(code(path))))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            called = r"\b(?:courseware|classroom|posenc\.lesson|bench)\.(?:\w+\.)?(\w+)"
            names |= {*re.findall(called, node.value)}  # what another process is to call
    return names


def public(module):
    """Functions, classes, constants, and the methods of classes that inherit from nothing."""
    for node in ast.parse(code(module)).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef) and not node.bases:
            yield from (inner.name for inner in node.body if isinstance(inner, ast.FunctionDef))
        if isinstance(node, ast.Assign):
            names = (part for part in ast.walk(node) if isinstance(part, ast.Name))
            yield from (name.id for name in names if isinstance(name.ctx, ast.Store))


@pytest.mark.slow
def test_everything_public_has_a_caller_besides_its_own_tests():
    callers = [*MODULES, *ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("tests/**/*.py")]
    for module in MODULES:
        others = (path for path in callers if path.name != f"test_{module.stem}.py")
        lonely = {name for name in public(module) if not name.startswith("_")}.difference(*map(names_used, others))
        assert not lonely, f"{module.relative_to(ROOT)} has {lonely} that nobody uses"


def stated_errors(module):
    """(names that call it: a function's, or a method's and its class's; error) for what stands under Raises."""
    for node in ast.parse(code(module)).body:
        for inner in [node, *(node.body if isinstance(node, ast.ClassDef) else ())]:
            if isinstance(inner, ast.FunctionDef | ast.ClassDef):
                raises = re.search(r"^Raises:\n((?: {4}.*\n?)+)", ast.get_docstring(inner) or "", re.MULTILINE)
                for errors in re.findall(r"^ {4}(\w[\w, ]*):", raises[1] if raises else "", re.MULTILINE):
                    yield from (({node.name, inner.name}, error) for error in errors.split(", "))


def words_by_test():
    """For each test that calls pytest.raises: the words of its file's imports, its own, and those of its constants."""
    for path in ROOT.glob("tests/**/*.py"):
        body = ast.parse(code(path)).body
        imports = set().union(*(words(node) for node in body if isinstance(node, ast.Import | ast.ImportFrom)))
        constants = [(words(node.targets[0]), words(node)) for node in body if isinstance(node, ast.Assign)]
        for test in (words(node) for node in body if isinstance(node, ast.FunctionDef)):
            if "raises" in test:
                yield imports, test.union(*(value for name, value in constants if name & test))


def words(node):
    return {*re.findall(r"\w+", ast.unparse(node))}


@pytest.mark.slow
def test_every_stated_error_is_raised_by_a_test():
    tests = list(words_by_test())
    for module in MODULES:
        name = {*module.relative_to(ROOT / "src").with_suffix("").parts} - {"__init__"}
        if module.parent.name == "probe":  # a package that hands out what its modules hold
            name -= {module.stem}
        for callers, error in stated_errors(module):
            seen = any(name <= imports and error in test and callers & test for imports, test in tests)
            assert seen, f"no test of {module.stem} sees {callers} raise {error}"


BARE = """
import importlib, pkgutil, sys

class Missing:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in %r:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import posenc, posenc.probe
for folder in (posenc, posenc.probe):
    for module in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}."):
        if module.name not in ("posenc.lesson", "posenc.chapters"):
            importlib.import_module(module.name)
try:
    import posenc.lesson.live
except ModuleNotFoundError as error:
    print(error.name)
"""
OF_THE_COURSE = ["IPython", "ipykernel", "ipywidgets", "jupyter_server", "jupyterlab", "matplotlib", "traitlets", "PIL"]


@pytest.mark.slow
def test_the_library_needs_neither_jupyter_nor_matplotlib():
    command = [sys.executable, "-c", BARE % OF_THE_COURSE]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() in OF_THE_COURSE, "what draws was imported without what it needs"
