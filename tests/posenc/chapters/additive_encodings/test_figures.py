"""Chapter 2's figures: what they draw is what the subject modules compute."""

import math

import pytest
import torch
from artists import points, said, shown, tips
from pictures import at

from posenc.chapters.additive_encodings import figures


def amplitude_map():
    live = figures.amplitude_map()
    shares = {(rate, a): torch.tensor([rate / 4, a / 40]) for rate in figures.RATES for a in figures.AMPLITUDES}
    figures.show_shares(live, shares)
    return live


def test_the_mean_takes_off_a_part_of_what_the_first_number_alone_gets():
    live = at(figures.count_and_norm(), position=7, where="the first alone")
    assert tips(live, "sum")[:, 1].tolist() == [8, -2, 4]
    assert tips(live, "minus its mean")[:, 1].tolist() == pytest.approx([14 / 3, -16 / 3, 2 / 3], abs=1e-6)


def test_without_corners_the_waves_are_sines_and_with_cosines_the_steps_are_level():
    live = at(figures.corners(), filed=100)
    along, places = points(live, "4s").T
    torch.testing.assert_close(along, 0.5 - (2 * math.pi * (places + 0.5) / 8).sin() / 2, rtol=0, atol=1e-5)
    assert said(live, "readout") == "from 1.04 to 1.30"
    live.set(cosines=True)
    level = math.sqrt(sum(math.sin(math.pi / period) ** 2 for period in (2, 4, 8, 16)))
    assert tips(live, "steps")[:, 0].tolist() == pytest.approx([level] * 15, abs=1e-5)


def test_the_steps_that_rise_are_black_and_counted():
    live = figures.similarity_by_offset()
    for offset, rises in ((11, 0), (12, 1), (511, 239)):
        live.set(offset=offset)
        segments = live.artists["rising"].get_segments()
        assert len(segments) == rises and all(end[1] > start[1] for start, end in segments)
        assert said(live, "readout").endswith(f"so far: {rises}")
    assert points(live, "diagonal").tolist() == [[0, 64], [0, 64]]  # beyond the map


@pytest.mark.slow
def test_the_readout_of_the_amplitude_counts_tokens():
    live = at(figures.amplitude(), amplitude=8)
    tokens, encodings = figures.tokens_and_positions()
    sums = tokens[:, None] + 8 * encodings
    nearest = torch.cdist(sums.flatten(0, 1), tokens).argmin(-1).unflatten(0, (40, 24))
    share = (nearest == torch.arange(40)[:, None]).double().mean().item()
    assert points(live, "now")[:, 1].tolist() == [pytest.approx(share), 1]
    for name, dot in zip(("before", "after"), points(live, "now")):
        torch.testing.assert_close(points(live, name)[-1], dot)
    assert said(live, "readout") == f"found {share:.0%}, and 100% after the matrix"
    torch.testing.assert_close(points(live, "restored")[:, 1], tokens[0, :12])


@pytest.mark.slow
def test_a_matrix_that_does_not_separate_shows_it():
    live = at(figures.amplitude(torch.eye(64, dtype=torch.float64)), amplitude=64)
    nearest, after = points(live, "now")[:, 1]
    assert nearest == after < 0.2


def test_the_amplitude_map_fills_cell_by_cell():
    live = figures.amplitude_map()
    empty = live.png()
    figures.show_shares(live, {(1, 3): torch.tensor([0.5, 1.0])})
    assert shown(live, "map", 3, 5).nan_to_num().flatten().tolist() == [0] * 7 + [0.75] + [0] * 7
    assert live.png() != empty
