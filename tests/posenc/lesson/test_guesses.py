"""Predictions: what they show before and after an answer, what they refuse, and what they store."""

import html
import json
import re

import pytest

from posenc.lesson import guesses
from posenc.lesson.guesses import RUN, predict

OPTIONS = ["the last token's", "the mean", "all of them"]
SINCE = {"the last token's": "a < b & c", "all of them": "the mean stays"}


@pytest.fixture(autouse=True)
def shown(monkeypatch):
    """What is displayed."""
    objects = []
    monkeypatch.setattr(guesses, "display", objects.append)
    monkeypatch.setattr(guesses, "_guesses", {})
    return objects


def answered(*measured, options=OPTIONS, several=False, **since):
    """A question, and the line that answers it."""
    guess = predict("Which?", options, several)
    guess.compare(*measured, **since)
    return guess, guess._lines[-1]


def words(page):
    return html.unescape(re.sub(r"<[^>]*>|\s", "", page))


def test_nothing_is_chosen_and_the_stored_text_has_question_options_and_answer(shown):
    guess = predict("Which stay?", OPTIONS)
    guess.compare("the mean", since=SINCE)
    assert guess.chosen == ()
    question, answer = shown
    assert repr(question) == (
        "Which stay?\n  ○ the last token's\n  ○ the mean\n  ○ all of them\nRun this cell to answer."
    )
    assert repr(answer) == "Which stay?\nMeasured: the mean."
    for thing in shown:
        bundle = thing._repr_mimebundle_()
        assert set(bundle) == {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"}
        assert bundle["text/plain"] == repr(thing)
        assert words(bundle["text/html"]) == re.sub(r"\s", "", repr(thing))


def test_with_a_kernel_nobody_is_told_to_run_the_cell():
    assert RUN not in predict("Which stay?", OPTIONS).view.children[0].value


def test_the_comparison_follows_the_choice():
    guess, line = answered("the mean")
    guess.buttons[0].value = True
    assert repr(line) == "Which?\nYou said: the last token's. Measured: the mean."
    assert "You said: the last token's. " in html.unescape(line.view.value)
    guess.buttons[1].value = True
    assert guess.chosen == ("the mean",)
    assert [button.description for button in guess.buttons] == ["○ the last token's", "● the mean", "○ all of them"]
    assert repr(line) == "Which?\nYou said: the mean. Measured: the mean."
    guess.buttons[1].value = False
    assert repr(line) == "Which?\nMeasured: the mean."


def test_wrong_options_that_were_chosen_get_their_reasons_and_no_other_does():
    guess, line = answered("the mean", since=SINCE)
    guess.buttons[0].value = True
    assert repr(line).splitlines()[2:] == ["the last token's: a < b & c"]
    assert words(line.view.value) == re.sub(r"\s", "", repr(line))
    guess.buttons[1].value = True
    assert len(repr(line).splitlines()) == 2
    guess, line = answered("the mean", since=SINCE, several=True)
    for button in guess.buttons:
        button.value = True
    assert repr(line).splitlines()[2:] == ["the last token's: a < b & c", "all of them: the mean stays"]


def test_the_reasons_are_stored_for_a_web_page_and_show_nowhere():
    _, line = answered("the mean", since=SINCE)
    page = line._repr_mimebundle_()["text/html"]
    assert json.loads(html.unescape(re.search('data-since="(.*?)"', page)[1])) == SINCE
    assert "themeanstays" not in words(page)


def test_several_may_be_chosen_and_stand_in_the_order_of_the_options():
    guess, line = answered("the mean", "the last token's", several=True)
    guess.buttons[2].value = guess.buttons[0].value = True
    said = "You said: the last token's, all of them. Measured: the last token's, the mean."
    assert repr(line) == f"Which?\n{said}"
    assert guess.buttons[0].description.startswith("☑")


def test_asked_again_the_question_keeps_its_choice_and_its_comparison():
    guess, line = answered("the mean")
    guess.buttons[0].value = True
    again = predict("Which?", list(OPTIONS))
    assert again.chosen == ("the last token's",)
    again.buttons[2].value = True
    assert repr(line) == "Which?\nYou said: all of them. Measured: the mean."
    assert predict("Another?", OPTIONS).chosen == ()


def test_options_with_commas_are_told_apart():
    _, line = answered("three.", "one, two", options=["one, two", "three."], several=True)
    assert repr(line) == "Which?\nMeasured: one, two; three."


@pytest.mark.parametrize(
    ("measured", "since", "kind", "message"),
    [
        (["the maen"], {}, ValueError, "'the maen' is none of the options"),
        ([], {}, ValueError, "nothing was measured"),
        (["the mean"], {"the maen": "so"}, ValueError, "'the maen' is none of the options"),
        (["the mean"], {"the mean": "so"}, ValueError, "'the mean' was measured"),
        (["the mean"], {"all of them": "so\nso"}, ValueError, "one line"),
        (["the mean"], {"all of them": 3}, TypeError, "reason"),
    ],
)
def test_what_is_measured_is_one_of_the_options_and_a_reason_is_a_line(measured, since, kind, message):
    with pytest.raises(kind, match=message):
        predict("Which stay?", OPTIONS).compare(*measured, since=since)


@pytest.mark.parametrize(
    ("question", "options", "kind", "message"),
    [
        ("", OPTIONS, ValueError, "is empty"),
        ("a\nb", OPTIONS, ValueError, "the question must be one line"),
        ("a", ["b"], ValueError, "two different options"),
        ("a", ["b", "b"], ValueError, "two different options"),
        ("a", ["b", ""], ValueError, "is empty"),
        ("a", "bc", TypeError, "options is a text"),
        ("a", [1, 2], TypeError, "the option is an int"),
    ],
)
def test_what_is_no_question_is_refused(question, options, kind, message):
    with pytest.raises(kind, match=message):
        predict(question, options)
