"""For every chapter: mistakes are named, right answers pass, every message has its mistake, and hints hold.

What is planted stands in the module of the chapter: PLANTED has (exercise, answer, words of the message), RIGHT has
(exercise, answer) and words where the verdict says more than ✓.
"""

import importlib

import pytest
from planted import CHAPTERS, failing_hints, planted, unmet, verdict

from posenc import exercises

MODULES = {chapter: planted(chapter) for chapter in CHAPTERS}
PLANTED = {chapter: module.PLANTED for chapter, module in MODULES.items()}
RIGHT = [case for module in MODULES.values() for case in module.RIGHT]
ALL_PLANTED = [case for chapter in CHAPTERS for case in PLANTED[chapter]]
NAMES = sorted(exercises._exercises)


@pytest.mark.parametrize("name, answer, words", ALL_PLANTED, ids=[f"{p[0]}: {p[2]}" for p in ALL_PLANTED])
def test_the_mistake_is_named(name, answer, words, capsys):
    line = verdict(capsys, name, answer)
    assert line.startswith("✗") and words in line


@pytest.mark.parametrize("case", RIGHT, ids=[case[0] for case in RIGHT])
def test_right_answers_pass(case, capsys):
    name, answer, *words = case
    line = verdict(capsys, name, answer)
    assert line.startswith("✓") and all(word in line for word in words)


def test_every_exercise_has_right_and_wrong_answers():
    assert {case[0] for case in RIGHT} >= set(NAMES)
    assert {case[0] for case in ALL_PLANTED} >= set(NAMES)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_message_has_its_mistake(chapter, capsys):
    module = importlib.import_module(f"posenc.chapters.{chapter}.exercises")
    lines = [verdict(capsys, name, answer) for name, answer, _ in PLANTED[chapter]]
    assert unmet(module, lines) == []
    listed = [message for _, message in getattr(module, "_MISTAKES", ())]
    assert [message for message in listed if not any(message in line for line in lines)] == []


@pytest.mark.parametrize("name", NAMES)
def test_hints_show_what_they_promise(name):
    assert failing_hints(name) == 0
