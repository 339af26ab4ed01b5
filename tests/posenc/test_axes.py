"""Rotary encoding for several coordinates: angles by hand, 1-D as the special case, and inputs it refuses."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc.axes import axial, decoding_delta, directed, grid, mixed, raster, section_axes, sections, text_and_images
from posenc.rotary import angles

few = settings(max_examples=25)
starts = st.integers(-(2**20), 2**20)
# A float64 angle near 2^20 is known to 2^-32; a step of one coordinate turns the slowest pair below by 0.1 or more.
EXACT = 1e-8


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def somewhere(start, axes):
    return start + torch.randint(-9, 9, (6, axes), generator=torch.Generator().manual_seed(axes))


def by_hand(places, steps):
    """In Python's own numbers: steps holds, for each pair, radians a coordinate."""
    angles = [[sum(p * s for p, s in zip(place, step)) for step in steps] for place in places.tolist()]
    return torch.tensor(angles, dtype=torch.float64)


# --- grids -----------------------------------------------------------------------------------


def test_a_grid_is_counted_row_by_row():
    assert grid(2, 3).tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert grid(1, 2, start=(-3, 10**12)).tolist() == [[-3, 10**12], [-3, 10**12 + 1]]
    assert raster(grid(2, 3), 3).tolist() == [0, 1, 2, 3, 4, 5]
    assert raster(grid(2, 3), 5).tolist() == [0, 1, 2, 5, 6, 7]


# --- angles by hand --------------------------------------------------------------------------


@few
@given(axes=st.integers(1, 4), pairs=st.integers(1, 3), start=starts, base=st.sampled_from([10.0, 10_000.0]))
def test_axial_turns_the_first_pairs_by_the_first_coordinate(axes, pairs, start, base):
    places = somewhere(start, axes)
    speeds = [base ** (-i / pairs) for i in range(pairs)]
    steps = [[speed * (axis == a) for a in range(axes)] for axis in range(axes) for speed in speeds]
    got = axial(places, 2 * pairs * axes, base=base)
    torch.testing.assert_close(got, by_hand(places, steps), rtol=0, atol=EXACT)


@few
@given(axes=st.integers(1, 4), pairs=st.integers(1, 5), start=starts)
def test_mixed_turns_by_the_sum_over_the_axes(axes, pairs, start):
    places, steps = somewhere(start, axes), draw(pairs, axes, seed=1)
    torch.testing.assert_close(mixed(places, steps), by_hand(places, steps.tolist()), rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    "sizes, interleaved, follows",
    [
        ((2, 3, 3), False, "TTHHHWWW"),
        ((3, 3, 2), True, "THWTHWTH"),
        ((4, 2, 2), True, "THWTHWTT"),
        ((8, 0, 0), True, "TTTTTTTT"),
        ((0, 4, 4), False, "HHHHWWWW"),
        ((4, 4), True, "THTHTHTH"),
        ((8,), False, "TTTTTTTT"),
    ],
)
def test_sections_deal_out_one_list_of_speeds(sizes, interleaved, follows):
    assert "".join("THW"[axis] for axis in section_axes(sizes, interleaved=interleaved)) == follows
    axes = len(sizes)
    places = torch.randint(-99, 99, (5, axes), generator=torch.Generator().manual_seed(0))
    steps = [[100.0 ** (-i / 8) * (a == "THW".index(axis)) for a in range(axes)] for i, axis in enumerate(follows)]
    got = sections(places, 16, sizes, interleaved=interleaved, base=100.0)
    torch.testing.assert_close(got, by_hand(places, steps), rtol=0, atol=1e-12)
    one_place = places[:, :1].expand(-1, axes)  # as in text: 1-D is the special case
    assert torch.equal(sections(one_place, 16, sizes, interleaved=interleaved), angles(places[:, 0], 16))


# --- what they are for -----------------------------------------------------------------------

ENCODINGS = {
    "axial": lambda places: axial(places, 12, base=10.0),
    "mixed": lambda places: mixed(places, draw(6, 2, seed=2)),
    "blocks": lambda places: sections(places, 12, [2, 4], base=10.0),
    "interleaved": lambda places: sections(places, 12, [3, 3], interleaved=True, base=10.0),
}


def test_mixed_can_learn_its_steps_and_axial_is_a_case_of_it():
    places, speeds = grid(3, 4), angles(torch.tensor(1), 6, base=10.0)
    quarter = torch.tensor(math.pi / 2, dtype=torch.float64)
    steps = torch.cat([directed(quarter * turns, speeds) for turns in (0, 1)])
    torch.testing.assert_close(mixed(places, steps), axial(places, 12, base=10.0), rtol=0, atol=1e-14)
    learned = steps.float().requires_grad_()
    mixed(places, learned).sum().backward()
    torch.testing.assert_close(learned.grad, places.sum(0).expand(6, 2).float())


def test_inputs_stay_and_leading_axes_are_free():
    places = torch.randint(0, 9, (2, 3, 5, 2), dtype=torch.int32, generator=torch.Generator().manual_seed(0))
    before = places.clone()
    for angle in ENCODINGS.values():
        theta = angle(places)
        assert theta.shape == (2, 3, 5, 6) and theta.dtype == torch.float64
        assert torch.equal(theta[1, 2], angle(places[1, 2].long())) and torch.equal(places, before)
        assert angle(places[:0]).shape == (0, 3, 5, 6) and angle(places[0, 0, 0]).shape == (6,)


# --- text with images ------------------------------------------------------------------------


def test_text_image_text_by_hand():
    places = text_and_images(2, (2, 3), 2)
    assert places.tolist() == [
        [0, 0, 0],
        [1, 1, 1],
        *[[2, 2 + row, 2 + column] for row in range(2) for column in range(3)],
        [5, 5, 5],  # the largest before is 4, in the last column
        [6, 6, 6],
    ]
    assert decoding_delta(places) == -3
    assert torch.equal(text_and_images(4), torch.arange(4)[:, None].expand(4, 3))
    assert decoding_delta(text_and_images(4)) == 0 and text_and_images().shape == (0, 3)


@few
@given(
    parts=st.lists(st.one_of(st.integers(0, 4), st.tuples(st.integers(1, 4), st.integers(1, 4))), max_size=5),
    start=starts,
)
def test_no_token_shares_its_place_and_text_goes_on_after_everything(parts, start):
    places = text_and_images(*parts, start=start)
    assert len(places) == sum(part if isinstance(part, int) else math.prod(part) for part in parts)
    assert len(places.unique(dim=0)) == len(places)
    after = text_and_images(*parts, 1, start=start)[-1]
    assert after.tolist() == [places.max() + 1 if len(places) else start] * 3
    if len(places):
        assert after[0] == len(places) + decoding_delta(places)
    assert torch.equal(text_and_images(*parts, start=start + 5), places + 5)


# --- what is refused -------------------------------------------------------------------------

PLACES = grid(2, 2)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: grid(0, 3), ValueError, "a grid of 0 × 3 has no patches"),
        (lambda: raster(PLACES, 1), ValueError, "columns must lie between 0 and 0"),
        (lambda: raster(PLACES - 1, 5), ValueError, "columns must lie between 0 and 4"),
        (lambda: raster(text_and_images(4), 5), ValueError, r"shape \(4, 3\): the last axis must hold 2 coordinates"),
        (lambda: axial(PLACES, 6), ValueError, "2 axes need equally many pairs each: choose a multiple of 4"),
        (lambda: axial(PLACES, 0), ValueError, "head_dim is 0"),
        (lambda: axial(torch.tensor(3), 8), ValueError, "must hold at least one"),
        (lambda: mixed(PLACES, torch.eye(3)), ValueError, r"steps has shape \(3, 3\), and the coordinates have 2 axes"),
        (lambda: mixed(PLACES, torch.ones(2)), ValueError, r"steps has shape \(2,\)"),
        (lambda: sections(PLACES, 8, [2, 1, 1]), ValueError, "3 sections for 2 axes"),
        (lambda: sections(PLACES, 8, [2, 1]), ValueError, "add up to 3 pairs, and a head of 8 has 4"),
        (lambda: sections(PLACES, 7, [2, 2]), ValueError, "a head of 7 has 3.5"),
        (lambda: sections(PLACES, 8, [5, -1]), ValueError, "none of them negative"),
        (lambda: section_axes([]), ValueError, "pass how many pairs each axis has"),
        (lambda: section_axes([1, 3], interleaved=True), ValueError, "3 pairs of axis 1, one in 2, do not fit into 4"),
        # the eighth pair would be the third of axis 1, and nothing is left of axis 2
        (lambda: section_axes([2, 3, 3], interleaved=True), ValueError, "do not fit into 8 pairs"),
        (lambda: text_and_images(2, -1), ValueError, "a text of -1 tokens"),
        (lambda: text_and_images(2, (0, 3)), ValueError, "a grid of 0 × 3 has no patches"),
        (lambda: decoding_delta(text_and_images()), ValueError, "there are no tokens"),
        (lambda: raster(PLACES.float(), 4), TypeError, "pass integers"),
        (lambda: axial(PLACES.float(), 8), TypeError, "pass integers"),
        (lambda: mixed(PLACES.float(), torch.ones(4, 2)), TypeError, "pass integers"),
        (lambda: sections(PLACES.float(), 8, [2, 2]), TypeError, "pass integers"),
        (lambda: decoding_delta(PLACES.float()), TypeError, "pass integers"),
        (lambda: mixed(PLACES, torch.ones(4, 2).long()), TypeError, "pass radians"),
    ],
)
def test_errors_say_what_came_and_what_to_do(call, error, words):
    with pytest.raises(error, match=words):
        call()
