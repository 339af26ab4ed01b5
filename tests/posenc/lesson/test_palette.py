"""The palette's colours are told apart by colour-blind readers, or something else tells the marks apart."""

import pytest
from colours import APART, confused, distance

from posenc.chapters.longer_than_trained.figures.measured import STYLES
from posenc.lesson import palette


def test_distances_are_the_known_ones():
    assert distance("#000000", "#FFFFFF") == pytest.approx(100, abs=0.1)
    assert distance("#777777", "#44AA99") == pytest.approx(12, abs=0.5)  # none and ALiBi
    assert [*confused({"none": ("#777777", "-"), "ALiBi": ("#44AA99", "-")})]
    assert not [*confused({"none": ("#777777", ":"), "ALiBi": ("#44AA99", "-")})]


def test_encodings_differ_in_colour_or_line():
    assert not [*confused(STYLES)]


def test_query_and_key_and_the_families_differ_in_colour():
    """Of the families none has a line of its own besides."""
    pairs = [("QUERY", "KEY"), ("ADDED", "TURNED"), ("ADDED", "BIAS"), ("TURNED", "BIAS"), ("NONE", "TURNED")]
    for one, other in pairs:
        assert distance(getattr(palette, one), getattr(palette, other)) >= APART, (one, other)
