"""The house: every public function has a caller, and every error that a docstring states is raised by a test."""

import ast
import functools
import re
from pathlib import Path

import pytest

from courseware import build

ROOT = Path(__file__).resolve().parents[1]
MODULES = {str(path.relative_to(ROOT / "src")): path for path in sorted((ROOT / "src").rglob("*.py"))}


def code(path):
    if path.suffix == ".ipynb":
        cells = [cell.source for cell in build.read(path).cells if cell.cell_type == "code"]
        return re.sub(r"^\s*[%!].*", "", "\n".join(cells), flags=re.MULTILINE)
    return path.read_text(encoding="utf-8")


@functools.cache
def names_used(path):
    """What a file or a notebook reads or imports; in a notebook a hint is a comment."""
    nodes = list(ast.walk(ast.parse(code(path))))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return names | {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}


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


@pytest.mark.parametrize("name", MODULES)
def test_everything_public_has_a_caller_besides_its_own_tests(name):
    callers = [*MODULES.values(), *ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("tests/**/*.py")]
    own = f"test_{MODULES[name].stem}.py"
    used = set().union(*(names_used(path) for path in callers if path.name != own))
    wanted = {found for found in public(MODULES[name]) if not found.startswith("_")}
    assert wanted - used == set()


def stated_errors(module):
    """(names that call it: a function's, or a method's and its class's; error) for what stands under Raises."""
    for node in ast.parse(code(module)).body:
        for inner in [node, *(node.body if isinstance(node, ast.ClassDef) else ())]:
            if isinstance(inner, ast.FunctionDef | ast.ClassDef):
                raises = re.search(
                    r"^Raises:\n((?: {4}.*\n?)+)", ast.get_docstring(inner) or "", re.MULTILINE
                )
                for errors in re.findall(r"^ {4}(\w[\w, ]*):", raises[1] if raises else "", re.MULTILINE):
                    yield from (({node.name, inner.name}, error) for error in errors.split(", "))


@functools.cache
def words_of_tests_of_errors():
    """For each test that calls pytest.raises: the words in it, and in the constants of its module that it names."""
    found = []
    for path in ROOT.glob("tests/**/*.py"):
        body = ast.parse(code(path)).body
        constants = [(words(node.targets[0]), words(node)) for node in body if isinstance(node, ast.Assign)]
        for test in (words(node) for node in body if isinstance(node, ast.FunctionDef)):
            if "raises" in test:
                found.append(test.union(*(value for name, value in constants if name & test)))
    return found


def words(node):
    return {*re.findall(r"\w+", ast.unparse(node))}


@pytest.mark.parametrize("name", MODULES)
def test_every_stated_error_is_raised_by_a_test(name):
    for callers, error in stated_errors(MODULES[name]):
        tests = [test for test in words_of_tests_of_errors() if error in test and callers & test]
        assert tests, f"no test sees {callers} raise {error}"
