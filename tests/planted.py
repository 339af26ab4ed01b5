"""What the tests of all chapters share: the verdict on an answer, and which messages no mistake has met."""

import ast
import doctest
import importlib.util
import inspect
import math
import re
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType

import torch

from posenc.lesson import exercises

FOLDERS = Path(__file__).parent / "posenc" / "chapters"
CHAPTERS = sorted(path.parent.name for path in FOLDERS.glob("*/test_exercises.py"))
for chapter in CHAPTERS:
    importlib.import_module(f"posenc.chapters.{chapter}.exercises")  # registers them


def planted(chapter: str) -> ModuleType:
    """The tests of a chapter's exercises, with PLANTED and RIGHT."""
    spec = importlib.util.spec_from_file_location(f"{chapter}_exercises", FOLDERS / chapter / "test_exercises.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def verdict(capsys, name, answer) -> str:
    exercises.check(name, answer)
    return capsys.readouterr().out.strip()


def as_answer(worked: Callable) -> Callable:
    """A worked function as if a learner had written it, since the worked one itself earns no tick."""
    names = {**worked.__globals__, "__name__": "a notebook"}
    return FunctionType(worked.__code__, names, worked.__name__, worked.__defaults__, worked.__closure__)


def messages(module: ModuleType) -> list[re.Pattern]:
    """A pattern for the text of every `wrong(…)` in a module."""
    patterns = []
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "wrong":
            text = node.args[0]
            parts = text.values if isinstance(text, ast.JoinedStr) else [text]
            patterns.append(
                re.compile("".join(re.escape(p.value) if isinstance(p, ast.Constant) else ".*" for p in parts))
            )
    return patterns


def unmet(module: ModuleType, seen: list[str]) -> list[str]:
    """The messages of a module that are in none of the lines seen."""
    return [p.pattern for p in messages(module) if not any(p.search(line) for line in seen)]


def failing_hints(name: str) -> int:
    """How many examples in the hints of an exercise do not print what they promise."""
    failed = 0
    for text in exercises._exercises[name].hints:
        example = doctest.DocTestParser().get_doctest(text, {"torch": torch, "math": math}, name, None, 0)
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
        failed += runner.run(example, out=lambda _: None).failed
    return failed
