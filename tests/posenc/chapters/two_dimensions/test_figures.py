"""Chapter 6's figures show what the module computes."""

import math

import pytest
import torch

from posenc.axes import axial, grid, text_and_images
from posenc.chapters.two_dimensions import figures
from posenc.lesson.palette import ADDED, TURNED
from posenc.rotary import angles


def nearest(live, name):
    """The white dots of a map, as (row, column)."""
    columns, rows = live.artists[f"{name}, nearest"].get_data()
    return {(int(row), int(column)) for row, column in zip(rows, columns)}


@pytest.mark.parametrize("width", [4, 8, 11])
def test_the_count_is_near_across_the_end_of_a_row_and_axial_is_not(width):
    live = figures.neighbourhoods()
    live.set(width=width, row=3, column=width - 1)
    assert nearest(live, "counted row by row") == {(3, width - 2), (4, 0)}
    around = {(3, width - 2), (2, width - 1), (4, width - 1)}
    assert nearest(live, "axial") == around
    assert nearest(live, "mixed") <= around | {(2, width - 2), (4, width - 2)}


def test_the_maps_hold_the_mean_cosine_and_nothing_right_of_the_row():
    live = figures.neighbourhoods()
    live.set(width=6, row=4, column=2)
    theta = {
        "counted row by row": angles(torch.arange(48), 16, base=100.0),
        "axial": axial(grid(8, 6), 16, base=10.0),
    }
    for name, angle in theta.items():
        shown = live.artists[name].get_array().filled(math.nan)
        assert shown[4, 2] == pytest.approx(1)
        expected = (angle[5 * 6 + 1] - angle[4 * 6 + 2]).cos().mean().item()
        assert shown[5, 1] == pytest.approx(expected)
        assert all(math.isnan(x) for x in shown[:, 6:].flatten())
    best = max((theta["axial"][26] - theta["axial"][n]).cos().mean().item() for n in range(48) if n != 26)
    assert live.artists["axial, title"].get_text() == f"axial: {best:.2f} at ○"


def test_the_column_stays_in_the_row_when_the_width_shrinks():
    live = figures.neighbourhoods()
    live.set(width=12, column=11)
    live.set(width=5)
    columns, _ = live.artists["axial, chosen"].get_data()
    assert list(columns) == [4]


def test_the_fan_has_axials_speeds_in_eight_directions():
    steps = figures.fan()
    speeds = angles(torch.tensor(1), 8, base=10.0)
    torch.testing.assert_close(steps.norm(dim=-1), speeds.repeat(2))
    directions = torch.atan2(steps[:, 1], steps[:, 0])
    torch.testing.assert_close(directions.diff(), torch.full((7,), math.pi / 8, dtype=torch.float64))


@pytest.mark.parametrize(
    "degrees, along", [(0, (0, 1)), (90, (1, 0)), (45, (1, -1)), (135, (1, 1)), (180, (0, 1))]
)
def test_the_stripes_run_across_the_direction(degrees, along):
    live = figures.stripes()
    live.set(degrees=degrees, wavelength=5)
    seen = live.artists["picture"].get_array()
    rows, columns = along
    for n in range(-8, 9):
        assert seen[8 + n * rows, 8 + n * columns] == pytest.approx(1)
    assert seen.min() < -0.7


def test_the_point_is_the_pairs_two_steps():
    live = figures.stripes()
    live.set(degrees=30, wavelength=4)
    (_, column), (_, row) = live.artists["step"].get_data()
    assert (row, column) == pytest.approx(
        (math.pi / 2 * math.cos(math.radians(30)), math.pi / 2 * math.sin(math.radians(30)))
    )
    assert live.artists["readout"].get_text() == f"{row:.2f} a row, {column:.2f} a column"
    (_, right), (_, down) = live.artists["along"].get_data()
    assert math.hypot(right, down) == pytest.approx(4)
    live.set(degrees=180)
    assert live.artists["readout"].get_text() == "−1.57 a row, 0.00 a column"


@pytest.mark.parametrize("before, rows, columns", [(0, 1, 1), (4, 3, 5), (8, 6, 2)])
def test_the_three_coordinates_are_those_of_the_module(before, rows, columns):
    live = figures.image_in_text()
    live.set(before=before, rows=rows, columns=columns)
    places = text_and_images(before, (rows, columns), 6)
    for axis, name in enumerate(("time", "row", "column")):
        place, coordinate = live.artists[name].get_data()
        assert list(place) == list(range(len(places)))
        assert list(coordinate) == places[:, axis].tolist()
    on, place = before + max(rows, columns), before + rows * columns
    delta = str(on - place).replace("-", "−")
    assert live.artists["title"].get_text() == f"the text goes on at {on}, in place {place}: delta {delta}"
    written = {
        (row, column): live.artists[f"patch {row} {column}"].get_text()
        for row in range(6)
        for column in range(6)
    }
    assert written[rows - 1, columns - 1] == f"{before + rows - 1}\n{before + columns - 1}"
    assert sum(text != " " for text in written.values()) == rows * columns
    assert len(live.artists["patches"].get_offsets()) == rows * columns
    panel = live.figure.axes[0]
    assert len(places) <= panel.get_xlim()[1] and places.max() <= panel.get_ylim()[1]


def test_shares_show_every_seed_of_every_series():
    right = {
        "a": [torch.tensor([0.1, 0.2]), torch.tensor([0.9])],
        "b": [torch.tensor([0.3, 0.4]), torch.tensor([1.0])],
    }
    live = figures.shares(right, series={"one": TURNED, "other": TURNED}, chance=0.25)
    panel = live.figure.axes[0]
    chance, one, other = panel.get_lines()[:3]
    assert chance.get_ydata() == [0.25, 0.25]
    assert list(one.get_ydata()) == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert list(other.get_ydata()) == pytest.approx([0.9, 1.0])
    assert all(a < b for a, b in zip(one.get_xdata()[::2], other.get_xdata()))
    assert one.get_markerfacecolor() == TURNED != other.get_markerfacecolor()
    assert live.png() and "a, b; one, other" in live.alt and "0.25" in live.alt
    table = figures.shares({"a": [torch.ones(1)] * 2}, series={"x": ADDED, "y": TURNED}, chance=0.5)
    assert [line.get_markerfacecolor() for line in table.figure.axes[0].get_lines()[1:3]] == [ADDED, TURNED]


def test_numbers_have_a_true_minus_and_no_negative_zero():
    assert [figures._signed(x) for x in (-0.5, -0.001, 2.0)] == ["−0.50", "0.00", "2.00"]
