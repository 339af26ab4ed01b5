"""Chapter 6's figures show what the module computes."""

import math

import numpy as np
import pytest
import torch
from artists import points, said
from pictures import at

from posenc.axes import section_axes, text_and_images
from posenc.chapters.two_dimensions import figures
from posenc.chapters.two_dimensions.picture import KINDS, SIDE, drawn, scene
from posenc.lesson.palette import ADDED, TURNED
from posenc.rotary import angles


def shares():
    """Two members of one family and one of another, at two sizes of the picture."""
    seeds = torch.tensor([0.0, 0.02, 0.1, 0.3])
    right = {"8 × 8": [1 - seeds, 0.9 - seeds, 0.5 + seeds], "8 × 12": [0.1 + seeds, 0.8 - seeds, seeds]}
    return figures.shares(right, series={"counted": TURNED, "axial": TURNED, "table": ADDED}, chance=1 / 12)


def where_they_look():
    """One head that looks six back and one that looks one up and two to the right, and models that name what they see."""

    def look(width: int, back: int) -> tuple[torch.Tensor, torch.Tensor]:
        there = (torch.arange(8 * width) - back).clamp(min=0)
        weights = torch.full((8 * width, 8 * width), 0.1 / (8 * width - 1)).scatter(1, there[:, None], 0.9)
        return weights, scene()[:, :width].flatten()[there]

    counted = {width: look(width, 6) for width in range(8, 13)}
    axial = {width: look(width, width - 2) for width in range(8, 13)}
    return figures.where_they_look({"counted": counted, "axial": axial})


def test_the_picture_has_all_kinds_and_shows_each_as_another_patch():
    assert scene().shape == (8, 12) and set(scene().flatten().tolist()) == set(range(len(KINDS)))
    tiles = drawn(torch.arange(len(KINDS))[:, None])
    assert tiles.shape == (len(KINDS) * SIDE, SIDE, 3) and 0 <= tiles.min() and tiles.max() <= 1
    patches = tiles.reshape(len(KINDS), -1)
    assert len(np.unique(patches, axis=0)) == len(KINDS)
    two = drawn(torch.tensor([[1, 2], [3, 4]]))
    assert np.array_equal(two[:SIDE, SIDE:], drawn(torch.tensor([[2]])))
    assert np.array_equal(two[SIDE:, :SIDE], drawn(torch.tensor([[3]])))


def lit(live, name):
    """The patches that are not covered, and how many columns are white."""
    cover = live.artists[name].get_array()
    open_ = {*zip(*(axis.tolist() for axis in np.nonzero(cover[..., 3] < 0.3)))}
    return open_, (cover[..., 0] == 1).all(0).sum()


def test_the_light_follows_the_weights_and_the_width():
    live = at(where_they_look(), row=5, column=4)
    assert lit(live, "counted") == ({(4, 6)}, 4)
    live.set(width=12)
    assert lit(live, "counted") == ({(4, 10)}, 0)
    assert lit(live, "axial") == ({(4, 6)}, 0)
    here, there = KINDS[scene()[4, 6]], KINDS[scene()[4, 10]]
    assert here != there
    assert said(live, "title") == f"(5, 4) is to name (4, 6): {here}"
    assert said(live, "counted, title") == f"counted: 0.90 on (4, 10), names {there}"


def weights(live, name):
    """The numbers that are written on a map, by (row, column)."""
    corners = [live.artists[f"{name}, corner {corner}"] for corner in range(4)]
    return {each.get_position()[::-1]: float(each.get_text()) for each in corners if each.get_text() != " "}


@pytest.mark.parametrize(
    "row, column, wanted, kept",
    [
        (-1, -3, {(-1, 2): 0.5, (-1, -3): 0.5}, {(-1, 2): 0.5, (-1, -3): 0.5}),
        (4, 2, {(-1, 2): 0.5, (4, 2): 0.5}, {(-1, 2): 0.5, (4, 2): 0.5}),
        (2, -2, {(-1, 2): 0.5, (2, -2): 0.5}, dict.fromkeys([(-1, 2), (-1, -2), (2, 2), (2, -2)], 0.25)),
    ],
)
def test_a_product_of_shares_gives_the_other_corners_as_much(row, column, wanted, kept):
    live = at(figures.two_wishes(), row=row, column=column)
    assert weights(live, "wanted") == wanted and weights(live, "axial") == kept
    product = live.artists["rows"].get_array() * live.artists["columns"].get_array()
    assert np.array_equal(product, live.artists["axial"].get_array())
    assert {(int(r) - 4, int(c) - 4) for r, c in zip(*np.nonzero(product))} == kept.keys()
    assert f": {sum(kept[at] for at in wanted):.2f} on what was wanted" in said(live, "axial, title")


def test_the_fan_has_axials_speeds_in_eight_directions():
    steps = figures.fan()
    speeds = angles(torch.tensor(1), 8, base=10.0)
    torch.testing.assert_close(steps.norm(dim=-1), speeds.repeat(2))
    directions = torch.atan2(steps[:, 1], steps[:, 0])
    torch.testing.assert_close(directions.diff(), torch.full((7,), math.pi / 8, dtype=torch.float64))


@pytest.mark.parametrize("before, rows, columns", [(0, 1, 1), (4, 3, 5)])
def test_the_three_coordinates_are_those_of_the_module(before, rows, columns):
    live = at(figures.token_strip(), before=before, rows=rows, columns=columns)
    places = text_and_images(before, (rows, columns), 4)
    for line, written in enumerate([*places.mT.tolist(), [*range(len(places))]], start=1):
        numbers = live.artists[("time", "row", "column", "place")[line - 1]]
        assert numbers.get_paths() == [figures._number(number) for number in written]
        assert numbers.get_offsets().tolist() == [[token, line] for token in range(len(places))]
    on = before + rows * columns
    assert said(live, "title") == f"the text goes on at {before + max(rows, columns)}, in place {on}"
    words = [live.artists[f"word {number}"] for number in range(8)]
    assert {word.get_position()[0] for word in words if word.get_text() != " "} == {*range(before), *range(on, on + 4)}
    painted = (live.artists["tiles"].get_array() != 1).any(axis=(0, 2)).reshape(-1, SIDE).any(axis=1)
    assert painted.nonzero()[0].tolist() == [*range(before, on)]


@pytest.mark.parametrize(
    "order, sizes, base, turned",
    [("blocks (Qwen2-VL)", [16, 24, 24], 1e6, "0.24°"), ("interleaved (Qwen3-VL)", [24, 20, 20], 5e6, "849°")],
)
def test_pairs_have_the_colour_of_their_axis_and_their_wavelengths(order, sizes, base, turned):
    live = at(figures.dealt_pairs(), order=order)
    axes = section_axes(sizes, interleaved=order.startswith("interleaved"))
    wavelengths = 2 * math.pi / angles(torch.tensor(1), 128, base=base)
    colours = [live.artists[f"pair {pair}"].get_facecolor() for pair in range(64)]
    for axis, name in enumerate(("time", "row", "column")):
        pairs = (axes == axis).nonzero()[:, 0]
        assert points(live, name).tolist() == [[pair, wavelengths[pair]] for pair in pairs.tolist()]
        assert len({colours[pair] for pair in pairs}) == 1
    assert len(set(colours)) == 3
    assert said(live, "title") == f"24 columns to the right turn the fastest of the columns' pairs by {turned}"
