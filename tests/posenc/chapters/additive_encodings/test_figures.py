"""Chapter 2's figures: what they draw is what the subject modules compute."""

import math

import pytest
import torch
from pictures import at

from posenc.additive import binary, shift_matrix, sinusoidal
from posenc.chapters.additive_encodings import figures


def amplitude_map():
    live = figures.amplitude_map()
    shares = {(rate, a): torch.tensor([rate / 4, a / 40]) for rate in figures.RATES for a in figures.AMPLITUDES}
    figures.show_shares(live, shares)
    return live


def heights(live, name):
    return [segment[1][1] for segment in live.artists[name].get_segments()]


def points(live, name):
    """Where a line goes: (x, y) of each of its points."""
    return torch.stack([torch.as_tensor(axis, dtype=torch.float64) for axis in live.artists[name].get_data()], 1)


@pytest.mark.parametrize("position", [0, 40])
def test_the_bars_of_the_sum_are_those_of_word_and_place(position):
    live = at(figures.word_at_a_place(), position=position)
    code = sinusoidal(torch.tensor(position), 8).tolist()
    assert heights(live, "added") == pytest.approx(code)
    word = [s - c for s, c in zip(heights(live, "sum"), code)]
    assert word == pytest.approx([0.9, -1.4, 0.3, 1.8, -0.6, -1.1, 1.2, 0.5], abs=1e-6)
    assert [live.artists[f"number {j}"].get_text() for j in (0, 7)] == [f"{code[0]:.2f}", f"{code[7]:.2f}"]


def test_the_mean_takes_off_what_is_the_same_everywhere():
    live = at(figures.count_and_norm(), position=7)
    assert heights(live, "sum") == [8, 5, 11] and live.artists["mean in words"].get_text() == "mean 8"
    assert heights(live, "minus its mean") == [0, -3, 3]
    live.set(where="the first alone")
    assert heights(live, "sum") == [8, -2, 4]
    assert heights(live, "minus its mean") == pytest.approx([14 / 3, -16 / 3, 2 / 3], abs=1e-6)


def steps_of(live):
    return [segment[1][0] for segment in live.artists["steps"].get_segments()]


def test_with_corners_the_waves_are_the_binary_digits():
    live = at(figures.corners())
    digits = binary(torch.arange(16), 4)
    for j, name in enumerate(("1s", "2s", "4s", "8s")):
        drawn = points(live, f"{name}, dots")
        torch.testing.assert_close(drawn, torch.stack([digits[:, j], torch.arange(16)], 1).double())
    assert steps_of(live) == pytest.approx((digits[1:] - digits[:-1]).norm(dim=-1).tolist(), abs=1e-6)


def test_without_corners_the_waves_are_sines_and_with_cosines_the_steps_are_level():
    live = at(figures.corners(), filed=100)
    along, places = points(live, "4s").T
    torch.testing.assert_close(along, 0.5 - (2 * math.pi * (places + 0.5) / 8).sin() / 2, rtol=0, atol=1e-5)
    assert max(steps_of(live)) - min(steps_of(live)) > 0.2
    assert live.artists["readout"].get_text() == "from 1.04 to 1.30"
    live.set(cosines=True)
    level = math.sqrt(sum(math.sin(math.pi / period) ** 2 for period in (2, 4, 8, 16)))
    assert steps_of(live) == pytest.approx([level] * 15, abs=1e-5)


def test_the_framed_position_is_drawn_below_and_its_step_above():
    live = at(figures.position_codes(), position=31)
    waves = sinusoidal(torch.tensor([31, 32]), 8, base=100.0)
    digits = binary(torch.tensor([31, 32]), 6)
    for name, (here, following) in (("binary, 6 digits", digits), ("sinusoidal, 4 pairs", waves)):
        assert live.artists[f"{name}, column"].get_x() == 31
        assert live.artists[f"{name}, vector"].get_ydata().tolist() == here.tolist()
        assert live.artists[f"{name}, step"].get_text() == f"to the next: {(here - following).norm():.2f}"


def test_the_hand_draws_its_waves():
    live = at(figures.clock_and_waves(), pair=3, power=2.0, position=25)
    sine, cosine = sinusoidal(torch.tensor(25), 32, base=100.0)[6:8].tolist()
    for name, tip in (("hand", (cosine, sine)), ("sine", (25, sine)), ("cosine", (cosine, 25))):
        assert points(live, name)[-1].tolist() == pytest.approx(tip, abs=1e-5)
    wavelength = 2 * math.pi * 100 ** (6 / 32)
    assert live.artists["chosen"].get_ydata()[0] == pytest.approx(wavelength)
    assert live.artists["once round"].get_text() == f"pair 3: once round in {wavelength:.1f} positions"


def test_the_dashed_lines_lead_from_the_tip_to_the_waves():
    live = at(figures.clock_and_waves(), position=60, pair=4)
    live.png()

    def on_page(name):
        pixels = live.artists[name].axes.transData.transform(points(live, name)[-1])
        return live.figure.transFigure.inverted().transform(pixels)

    for name, level in (("sine", 1), ("cosine", 0)):  # the one is level, the other plumb
        start, end = points(live, f"to the {name}").tolist()
        assert start == pytest.approx(on_page("hand"), abs=1e-6)
        assert end == pytest.approx(on_page(name), abs=1e-6)
        assert start[level] == pytest.approx(end[level])


def test_every_hand_ends_where_the_matrix_sends_it():
    live = at(figures.all_hands(), position=20, offset=-9)
    matrix = torch.as_tensor(live.artists["matrix"].get_array()).reshape(8, 8)
    torch.testing.assert_close(matrix, shift_matrix(-9, 8, base=100.0))
    before, after = sinusoidal(torch.tensor([20, 11]), 8, base=100.0)
    for pair in range(4):
        for name, code in (("before", before), ("after", after)):
            assert points(live, f"{name} {pair}")[1].flip(0).tolist() == pytest.approx(
                code[2 * pair : 2 * pair + 2].tolist(), abs=1e-5
            )
    assert live.artists["S[2, 3]"].get_text().replace("−", "-") == f"{matrix[2, 3]:.2f}"
    live.set(position=33)  # what moves is the hands, not S
    assert torch.equal(torch.as_tensor(live.artists["matrix"].get_array()).reshape(8, 8), matrix)


@pytest.mark.parametrize("offset", [1, 12, 47])
def test_the_marked_diagonal_has_the_value_of_the_dot(offset):
    live = at(figures.similarity_by_offset(), offset=offset)
    matrix = torch.as_tensor(live.artists["matrix"].get_array()).reshape(64, 64)
    assert torch.equal(matrix[0].isnan(), torch.arange(64) > offset)  # the map goes as far as the curve
    values = matrix.diagonal(-offset)
    torch.testing.assert_close(values, values[:1].expand_as(values))
    assert live.artists["now"].get_ydata()[0] == pytest.approx(values[0].item())
    x, y = live.artists["diagonal"].get_data()
    assert y[0] - x[0] == y[1] - x[1] == offset  # m − n
    assert min(*x, *y) >= 0 and max(*x, *y) <= 64


def test_the_steps_that_rise_are_black_and_counted():
    live = figures.similarity_by_offset()
    for offset, rises in ((11, 0), (12, 1), (511, 239)):
        live.set(offset=offset)
        segments = live.artists["rising"].get_segments()
        assert len(segments) == rises and all(end[1] > start[1] for start, end in segments)
        assert live.artists["readout"].get_text().endswith(f"so far: {rises}")


@pytest.mark.slow
def test_the_readout_of_the_amplitude_counts_tokens():
    live = figures.amplitude()
    tokens, encodings = figures.tokens_and_positions()
    for amplitude in (0.5, 8):
        live.set(amplitude=amplitude)
        sums = tokens[:, None] + amplitude * encodings
        names = torch.cdist(sums.flatten(0, 1), tokens).argmin(-1).unflatten(0, (40, 24))
        share = (names == torch.arange(40)[:, None]).double().mean().item()
        assert list(live.artists["now"].get_ydata()) == [pytest.approx(share), 1]
        for name, found in zip(("before", "after"), live.artists["now"].get_ydata()):
            x, y = live.artists[name].get_data()
            assert (x[-1], y[-1]) == pytest.approx((live.artists["now"].get_xdata()[0], found))  # the dot
        words = live.artists["readout"].get_text()
        assert words == f"found {share:.0%}, and 100% after the matrix"
        assert live.artists["sum"].get_ydata().tolist() == sums[0, 5, :12].tolist()
        restored = live.artists["restored"].get_ydata().tolist()
        assert restored == pytest.approx(tokens[0, :12].tolist(), abs=1e-9)


@pytest.mark.slow
def test_a_matrix_that_does_not_separate_shows_it():
    live = at(figures.amplitude(torch.eye(64, dtype=torch.float64)), amplitude=64)
    nearest, after = live.artists["now"].get_ydata()
    assert nearest == after < 0.2


def test_the_amplitude_map_fills_cell_by_cell():
    live = figures.amplitude_map()
    empty = live.png()
    figures.show_shares(live, {(1, 3): torch.tensor([0.5, 1.0])})
    figures.show_shares(live, {(1, 3): torch.tensor([0.5, 1.0]), (3, 30): torch.tensor([0.2, 0.3])})
    shares = torch.tensor(live.artists["map"].get_array().filled(torch.nan)).reshape(3, 5)
    assert shares[1, 2] == 0.75 and shares[2, 4] == pytest.approx(0.25) and shares.isnan().sum() == 13
    assert live.artists["1, 3"].get_text() == "0.75\n0.50 to 1.00"
    assert live.artists["3, 30"].get_text() == "0.25\n0.20 to 0.30"
    assert live.png() != empty
