"""For every chapter: mistakes are named, right answers pass, every message has its mistake, and hints hold.

What is planted stands in the module of the chapter: PLANTED has (exercise, answer, words of the message), RIGHT has
(exercise, answer), beside the worked solutions, and words where the verdict says more than ✓.
"""

import ast
import doctest
import importlib
import inspect
import math
import re

import pytest
import torch
from planted import CHAPTERS, as_answer, failing_hints, planted, unmet, verdict

from posenc.lesson import exercises

MODULES = {chapter: planted(chapter) for chapter in CHAPTERS}
RIGHT = [case for module in MODULES.values() for case in getattr(module, "RIGHT", ())]
NAMES = sorted(exercises._exercises)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_mistake_is_named_and_every_message_has_its_mistake(chapter, capsys):
    cases = MODULES[chapter].PLANTED
    lines = [verdict(capsys, name, answer) for name, answer, _ in cases]
    assert [line for line, (*_, words) in zip(lines, cases) if not line.startswith("✗") or words not in line] == []
    assert unmet(importlib.import_module(f"posenc.chapters.{chapter}.exercises"), lines) == []
    assert {name for name, *_ in cases} == {name for name in NAMES if exercises.find(name).chapter == chapter}


@pytest.mark.parametrize("case", RIGHT, ids=[case[0] for case in RIGHT])
def test_right_answers_of_another_kind_pass(case, capsys):
    name, answer, *words = case
    line = verdict(capsys, name, answer)
    assert line.startswith("✓") and all(word in line for word in words)


GARBAGE = {
    "nothing": lambda *inputs: None,
    "words": lambda *inputs: "words",
    "a number": lambda *inputs: 3,
    "not a number": lambda *inputs: math.nan,
    "a number too large": lambda *inputs: 10**400,
    "no number": lambda *inputs: (),
    "a NumPy array": lambda *inputs: torch.ones(3).numpy(),
    "a tensor": lambda *inputs: torch.full((2, 6), math.nan),
    "two tensors": lambda *inputs: (torch.full((2, 6), math.nan), torch.full((2, 6, 8), math.nan)),
    "a dict": lambda *inputs: {"words": torch.ones(2)},
    "another call": lambda: 3,
    "an error": lambda *inputs: 1 / 0,
    "its first input": lambda *inputs: inputs[0],
    "a changed input": lambda *inputs: [value.zero_() for value in inputs if isinstance(value, torch.Tensor)],
}


@pytest.mark.parametrize("name", NAMES)
def test_whatever_comes_gets_one_line(name, capsys):
    lines = {kind: verdict(capsys, name, GARBAGE[kind]) for kind in GARBAGE}
    assert {kind: line for kind, line in lines.items() if not line.startswith("✗") or "\n" in line} == {}


@pytest.mark.parametrize("name", NAMES)
def test_hints_show_what_they_promise(name):
    assert failing_hints(name) == 0


@pytest.mark.parametrize("name", NAMES)
def test_the_worked_function_passes_its_check_where_marks_are_given(name, monkeypatch, capsys):
    monkeypatch.setattr("posenc.lesson.exercises.STRICT", True)
    assert verdict(capsys, name, as_answer(exercises.find(name).worked)).startswith("✓")


@pytest.mark.parametrize("name", NAMES)
def test_the_worked_function_itself_earns_no_tick(name, monkeypatch, capsys):
    monkeypatch.setattr("posenc.lesson.exercises.STRICT", False)
    worked = exercises.find(name).worked
    assert verdict(capsys, name, worked) == f"○ {name}: this is the worked solution; run your own cell first"
    assert exercises.use(name, None) is worked


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_a_worked_function_for_each_exercise_and_no_other(chapter):
    module = importlib.import_module(f"posenc.chapters.{chapter}.worked")
    written = {name for name, f in inspect.getmembers(module, inspect.isfunction) if f.__module__ == module.__name__}
    assert written == {name for name in NAMES if exercises.find(name).chapter == chapter}


class Form(ast.NodeTransformer):
    """Writes _ for every name, number and literal tensor, so that only what is done with them is left."""

    def visit_Call(self, node):
        made = ast.unparse(node.func) in ("torch.tensor", "torch.ones", "torch.zeros", "torch.arange", "torch.full")
        calls = node.func if isinstance(node.func, ast.Name) else self.visit(node.func)
        parts = [self.visit(part) for part in node.args]
        options = [ast.keyword(option.arg, self.visit(option.value)) for option in node.keywords]
        return ast.Name("_") if made else ast.Call(calls, parts, options)

    def visit_List(self, node):
        made = [self.visit(part) for part in node.elts]
        return ast.Name("_") if all(ast.unparse(part) == "_" for part in made) else ast.List(made)

    def visit_UnaryOp(self, node):
        return self.visit(node.operand)

    def visit_Name(self, node):
        return node if node.id in ("torch", "math") else ast.Name("_")

    def visit_Constant(self, node):
        return ast.Name("_")


def parts(tree, least=2):
    """The expressions in a tree in which so many things are done."""
    done = ast.Call | ast.BinOp | ast.Compare | ast.Subscript
    for node in ast.walk(tree):
        steps = [n for n in ast.walk(node) if isinstance(n, done) or getattr(n, "attr", "") in ("T", "mT")]
        if isinstance(node, ast.expr) and not isinstance(node, ast.Tuple) and len(steps) >= least:
            yield node


def form(node):
    return ast.unparse(Form().visit(ast.parse(ast.unparse(node), mode="eval")))


@pytest.mark.parametrize("name", NAMES)
def test_no_hint_is_a_line_of_the_solution(name):
    """Neither as it stands there, nor a whole line or three steps of one with other names and numbers."""
    worked = ast.parse(inspect.getsource(exercises.find(name).worked))
    written = {re.sub(r"\s", "", ast.unparse(part)) for part in parts(worked)}
    lines = [node.value for node in ast.walk(worked) if isinstance(node, ast.Assign | ast.Return)]
    forms = {form(part) for part in [*(line for line in lines if [*parts(line)]), *parts(worked, 3)]} - {"_"}
    for hint in exercises._exercises[name].hints:
        assert not [code for code in written if code in re.sub(r"\s", "", hint)]
        for example in doctest.DocTestParser().get_examples(hint):
            assert not forms & {form(part) for part in parts(ast.parse(example.source))}


def test_a_hint_that_is_the_solution_is_seen():
    for code in (
        "(everywhere - cached).norm(dim=-1).argmin().item()",
        "(rows - torch.tensor([2.1, 1.8])).norm(dim=0).argmin().item()",
    ):
        assert form(ast.parse(code, mode="eval").body) == "(_ - _).norm(dim=_).argmin().item()"
