"""Claims: what they show, what they refuse, and that a stored line reads back as the claim it was."""

import dataclasses
import html
import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from posenc.lesson import claims
from posenc.lesson.claims import MARK, MEASURED, bundle, claim, make, number, parse

SEED, PACE, STEPS = 0, 1.0, 1.0  # looked up by `claim` in its caller's names where there is no kernel


@pytest.fixture(autouse=True)
def shown(monkeypatch):
    """What is displayed."""
    objects = []
    monkeypatch.setattr(claims, "display", lambda data, raw: objects.append(data))
    monkeypatch.setattr(claims, "_claimed", [])
    monkeypatch.setenv("POSENC_REPLICATE", "0")
    return objects


@pytest.fixture
def cell(monkeypatch):
    """Run a cell as a kernel does, with the names of a notebook; returns the error that it raised, or None."""
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    shell.user_ns |= {"claim": claim} | claims.DEFAULTS
    monkeypatch.setattr(claims, "get_ipython", lambda: shell)
    return lambda source: shell.run_cell(source).error_in_exec


def line(*args, **options):
    """A claim's line without its invisible characters."""
    return re.sub("[\u2060\u2063]", "", str(make(*args, **options)))


# ------------------------------------------------------------------- lines


@pytest.mark.parametrize(
    ("value", "options", "said"),
    [
        (2.220446e-16, {"below": 1e-12}, "✓ it is: 2.2e-16 < 1e-12"),
        (0.3, {"below": 0.2}, "✗ it is: 0.3 < 0.2"),
        (1.4142, {"between": (1, 2)}, "✓ it is: 1.41 in 1 … 2"),
        (4, {"equals": 4}, "✓ it is: 4 = 4"),
        (3, {"equals": 4}, "✗ it is: 3 = 4"),
        (0.97, {"above": 0.95, "case": "rotary"}, "✓ it is (rotary): 0.97 > 0.95"),
        ([1, 0.9994, 0.5], {"above": 0.95, "in_at_least": 2}, "✓ it is: 1 0.999 0.5, 2 of 3 > 0.95 (at least 2)"),
        ([1.0, 0.5], {"above": 0.95, "in_at_least": 2}, "✗ it is: 1 0.5, 1 of 2 > 0.95 (at least 2)"),
        ([1.0, 0.96], {"above": 0.95}, "✓ it is: 1 0.96, 2 of 2 > 0.95 (all)"),
        ([0.97], {"above": 0.95}, "✓ it is: 0.97, 1 of 1 > 0.95 (all)"),
        (math.inf, {"above": 3}, "✓ it is: inf > 3"),
        (-math.inf, {"below": 3}, "✓ it is: -inf < 3"),
    ],
)
def test_a_line_has_the_sentence_then_what_was_measured_then_the_bound(value, options, said):
    assert line("it is", value, **options) == said


@pytest.mark.parametrize("value, held", [(0.99, False), (1, True), (2, True), (2.01, False)])
def test_the_ends_of_between_are_included_and_nothing_beyond(value, held):
    assert make("it is", value, between=(1, 2)).held == held


HALF = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)


def test_numbers_may_come_in_any_kind():
    for one in (0.5, HALF, HALF.float(), np.float64(0.5), np.array(0.5)):
        assert line("it is", one, below=1) == "✓ it is: 0.5 < 1"
    for several in ([0.5, 2], (0.5, 2), torch.tensor([0.5, 2]), np.array([0.5, 2]), [HALF, np.float64(2)]):
        assert line("it is", several, below=1) == "✗ it is: 0.5 2, 1 of 2 < 1 (all)"


DIGITS = {
    "0.999": (0.9994,),
    "0.99996": (0.99996,),
    "1": (0.99999999,),
    "2.2e-16": (2.220446e-16,),
    "0": (0.0,),
    "42.4": (42.371,),
    "99.97": (99.97,),
    "1235": (1234.5678,),
    "1.2e8": (1.2345e8,),
    "0.00123": (0.00123456,),
    "1.2e-4": (0.000123456,),
    "-0.291": (-0.2913,),
    "12345678": (12345678,),
    "0.9501": (0.9501, 0.95),
    "0.94999999": (0.94999999, 0.95),
    "1.001e-12": (1e-12 * 1.001, 1e-12),
    "1.9999": (1.9999, 1, 2),
    "0.12345": (0.12345, 0.12345),
}


@pytest.mark.parametrize("digits", DIGITS)
def test_a_number_has_as_few_digits_as_tell_it_and_its_bounds(digits):
    assert number(*DIGITS[digits]) == digits


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(FINITE | st.integers(), FINITE)
def test_the_digits_never_contradict_the_bound(value, bound):
    read = float(number(value, bound)) if isinstance(value, float) else int(number(value, bound))
    assert (read < bound, read > bound) == (value < bound, value > bound)


@given(st.lists(FINITE | st.integers(), min_size=1, max_size=9), FINITE, st.sampled_from(["below", "above", "equals"]))
def test_a_line_reads_back_as_its_claim(values, bound, relation):
    at_least = len(values) // 2 or None
    made = make("it (is): 3 < 4", values, **{relation: bound}, in_at_least=at_least, case="a (b): 2")
    read = parse(str(made))
    assert dataclasses.replace(read, values=made.values) == made and read.held == made.held
    assert read.values == pytest.approx(made.values, rel=0.06)


def test_a_single_value_and_two_ends_read_back_and_digits_as_they_stand():
    assert parse(str(make("it is", 1.23456, between=(1, 2.5)))) == make("it is", 1.23, between=(1, 2.5))
    made = str(make("it is", [19.4, 20.047], below=60))
    assert "19.4 20.05, 2 of 2" in made
    assert parse(made) == make("it is", [19.4, 20.05], below=60)


@pytest.mark.parametrize("text", ["", "✓ rotate", "✓ it is: 0.5 < 1", "○ rotate: not attempted yet", "Figure: a"])
def test_other_lines_are_no_claims(text):
    assert parse(text) is None


@pytest.mark.parametrize("value, before, after", [(0.5, "✓", "✗"), ([0.5, 2], "1 of 2", "2 of 2")])
def test_a_line_whose_sign_or_count_was_changed_is_refused(value, before, after):
    with pytest.raises(ValueError, match="does not say what its numbers do"):
        parse(str(make("it is", value, below=1)).replace(before, after))


# ------------------------------------------------------- lines and a table

SEEDS = [
    make("a < b & c", [1, 3], below=2, in_at_least=1, case="<x>"),
    make("alone", 0.5, below=1),
    make("a < b & c", [0.5, 0.25], below=2, in_at_least=1, case="y"),
]


def words(made):
    """What stands on the page, without space."""
    return html.unescape(re.sub(r"<[^>]*>|\s", "", bundle(made)["text/html"]))


@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_claims_are_lines_that_say_the_same_and_escape(count):
    shown = bundle(SEEDS[:count])
    assert words(SEEDS[:count]) == re.sub(r"\s|[\u2060\u2063]", "", shown["text/plain"])
    page = shown["text/html"]  # where sign and words tell apart what the colour does
    assert "<details" not in page
    assert page.count('<b class="measured">') == page.count('aria-label="holds"') == page.count("✓") == count


def test_three_claims_are_a_folded_table_with_the_cases_below_their_sentence():
    page = bundle(SEEDS)["text/html"]
    assert re.search("<details><summary[^>]*>3 measured here, all held</summary><table", page)
    rows = [html.unescape(re.sub("<[^>]*>", "|", row)).split("|") for row in re.findall("<tr>(.*?)</tr>", page)]
    assert [[part.strip() for part in row if part.strip()] for row in rows] == [
        ["a < b & c"],
        ["✓ <x>", "1", "3", "1 of 2", "< 2 (at least 1)"],
        ["✓ y", "0.5", "0.25", "2 of 2", "< 2 (at least 1)"],
        ["✓ alone", "0.5", "< 1"],
    ]
    assert words(SEEDS).isprintable()  # what is copied from the page brings no invisible characters


def test_a_table_is_open_where_one_claim_fails():
    page = bundle([*SEEDS, make("a", 3, below=2)])["text/html"]
    assert re.search("<details open><summary[^>]*>4 measured here, 3 held</summary>", page)
    assert page.count('aria-label="does not hold"') == page.count("✗") == 1


def test_the_text_has_all_claims_in_their_order_and_reads_back():
    lines = bundle(SEEDS)["text/plain"].split("\n")
    assert lines == [str(made) for made in SEEDS] and [*map(parse, lines)] == SEEDS


@pytest.mark.parametrize("more", [[], SEEDS])
@pytest.mark.parametrize("kind", ["text/plain", "text/html"])
def test_one_pattern_masks_what_was_measured_and_nothing_else(kind, more):
    def masked(*values, **options):
        shown = bundle([make("it is", *values, **options), *more])[kind]
        return re.sub(MEASURED, "measured", shown)

    several = {"above": 0.5, "in_at_least": 1}
    assert masked(0.1, below=1) == masked(0.2222, below=1)
    assert masked([1, 0], **several) == masked([0.7, 0.8, 0.9], **several)
    assert masked(0.1, below=1) != masked(0.1, below=2)
    assert masked([1, 0], **several) != masked([1, 1], above=0.5, in_at_least=2)
    assert masked(0.1, below=1) != masked(0.1, above=0)


# ----------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("value", "options", "kind", "message"),
    [
        (math.nan, {"below": 1}, ValueError, "value is nan"),
        (torch.tensor([]), {"below": 1}, ValueError, "value is empty"),
        (torch.zeros(2, 2), {"below": 1}, TypeError, "more than one dimension"),
        (torch.zeros(100), {"below": 1}, ValueError, "100 values are too many"),
        (True, {"equals": 1}, TypeError, "value is True: measure or count"),
        ([1.0, False], {"below": 2}, TypeError, "value is False"),
        (np.bool_(True), {"equals": 1}, TypeError, "value is True"),
        ("3", {"below": 4}, TypeError, "value is a str, not a number"),
        (None, {"below": 4}, TypeError, "value is a NoneType, not a number"),
        ({"a": 1}, {"below": 4}, TypeError, "value is a dict"),
        (1, {}, ValueError, "one bound of below, above, between, equals, not none"),
        (1, {"below": 2, "above": 0}, ValueError, "not below and above"),
        (1, {"below": math.nan}, ValueError, "below is nan"),
        (1, {"below": math.inf}, ValueError, "below is inf"),
        (1, {"below": True}, TypeError, "below is True"),
        (1, {"below": torch.tensor(2.0)}, TypeError, "below is a Tensor, not a number: bounds are written"),
        (1, {"between": (2, 1)}, ValueError, "2 is not less than 1"),
        (1, {"between": 2}, TypeError, "between takes two numbers"),
        (1, {"below": 2, "in_at_least": 1}, ValueError, "pass one number per seed"),
        ([1, 2], {"below": 2, "in_at_least": 3}, ValueError, "in_at_least is 3; it must be 1 to 2"),
        ([1, 2], {"below": 2, "in_at_least": 0}, ValueError, "in_at_least is 0"),
        ([1, 2], {"below": 2, "in_at_least": 1.5}, ValueError, "in_at_least is 1.5"),
        (1, {"below": 2, "case": "a\nb"}, ValueError, "the case must be one line"),
    ],
)
def test_what_is_no_measurement_is_refused(value, options, kind, message):
    with pytest.raises(kind, match=message):
        claim("it is", value, **options)


@pytest.mark.parametrize("sentence", ["", "a\nb", f"a{MARK}", 3])
def test_what_is_no_sentence_is_refused(sentence):
    with pytest.raises(TypeError if sentence == 3 else ValueError, match="sentence"):
        claim(sentence, 1, below=2)


# ------------------------------------------------------- where it must hold


FAILS = "claim('it is', 3, below=2, case='here')"
SO, FAILED = make("so", 1, below=2), make("it is", 3, below=2, case="here")


def test_a_cell_shows_its_claims_once_when_it_ends(shown, cell):
    assert cell("claim('it is', 1, below=2)\nclaim('so', 1, below=2)") is None
    assert shown == [bundle([make("it is", 1, below=2), SO])]
    cell("1 + 1")
    cell("claim('so', 1, below=2)")
    assert shown[1:] == [bundle([SO])]


def test_a_claim_that_does_not_hold_is_shown_with_those_before_it_and_raised(shown, cell):
    error = cell(f"claim('so', 1, below=2)\n{FAILS}\nclaim('not reached', 1, below=2)")
    assert isinstance(error, AssertionError) and str(error) == "✗ it is (here): 3 < 2"
    assert shown == [bundle([SO, FAILED])]


def test_what_was_claimed_before_another_error_is_shown(shown, cell):
    assert isinstance(cell("claim('so', 1, below=2)\n1 / 0"), ZeroDivisionError)
    assert shown == [bundle([SO])]


@pytest.mark.parametrize("change", ["SEED = 3", "PACE = 0.5", "STEPS = 2.0", "import os; os.environ['{}'] = '1'"])
def test_where_a_parameter_was_changed_or_under_replication_it_is_shown_and_no_more(shown, cell, change, monkeypatch):
    assert cell(f"{change.format('POSENC_REPLICATE')}\n{FAILS}") is None
    assert shown == [bundle([FAILED])]
    monkeypatch.setenv("POSENC_REPLICATE", "0")
    assert isinstance(cell(f"SEED, PACE, STEPS = {SEED}, {PACE}, {STEPS}\n{FAILS}"), AssertionError)


def test_without_a_kernel_each_line_is_printed_at_once(shown, capsys):
    assert claim("it is", 1, below=2) is None
    assert capsys.readouterr().out == f"✓ it is: {MARK}1{MARK} < 2\n"
    with pytest.raises(AssertionError, match="^✗ it is: 3 < 2$"):
        claim("it is", 3, below=2)
    assert capsys.readouterr().out == f"✗ it is: {MARK}3{MARK} < 2\n"
    exec("claim('it is', 3, below=2)", {"claim": claim, "SEED": 1})
    assert not shown
