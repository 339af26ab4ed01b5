"""Chapter 2's figures: what they draw is what the subject modules compute."""

import math

import pytest
import torch
from matplotlib.text import Text

from posenc.additive import binary, sinusoidal
from posenc.chapters.additive_encodings import figures
from posenc.geometry import off_diagonal


def test_the_framed_row_is_drawn_below_and_its_step_above():
    live = figures.position_codes()
    live.set(position=31)
    for name, encode in (("binary", binary), ("sinusoidal", sinusoidal)):
        here, following = encode(torch.tensor([31, 32]), 16)
        assert live.artists[f"{name}, row"].get_y() == 31
        assert live.artists[f"{name}, vector"].get_ydata().tolist() == here.tolist()
        assert live.artists[f"{name}, step"].get_text() == f"to the next: {(here - following).norm():.2f}"


def test_hand_waves_and_dots_agree():
    live = figures.clock_and_waves()
    live.set(pair=3, power=2.0, position=25)
    sine, cosine = sinusoidal(torch.tensor(25), 32, base=100.0)[6:8].tolist()
    assert live.artists["hand"].get_xdata()[1] == cosine and live.artists["hand"].get_ydata()[1] == sine
    assert live.artists["now"].get_ydata() == [sine, cosine]
    for name, value in (("sine", sine), ("cosine", cosine)):  # the curves pass through the dots
        x, y = live.artists[name].get_data()
        assert y[x == 25] == pytest.approx(value, abs=1e-6)
    wavelength = 2 * math.pi * 100 ** (6 / 32)
    assert live.artists["chosen"].get_ydata()[0] == pytest.approx(wavelength)
    assert live.artists["once round"].get_text() == f"once round: {wavelength:.1f} positions"


def test_the_longest_wavelength_stays_below_the_dotted_line():
    live = figures.clock_and_waves()
    for power in (1.0, 3.5, 5.0):
        live.set(power=power)
        longest, ceiling = live.artists["wavelengths"].get_ydata()[-1], live.artists["ceiling"].get_ydata()[0]
        assert longest == pytest.approx(2 * math.pi * 10 ** (power * 30 / 32))
        assert ceiling == pytest.approx(2 * math.pi * 10**power)
        assert f"longest: {longest:,.0f};" in live.artists["longest"].get_text()


@pytest.mark.parametrize("offset", [0, 5, 47])
def test_the_marked_diagonal_has_the_values_of_the_dots(offset):
    live = figures.similarity_by_offset()
    for sines_only in (False, True):
        live.set(offset=offset, sines_only=sines_only)
        values = torch.tensor(live.artists["matrix"].get_array()).diagonal(-offset)
        assert list(live.artists["ends"].get_ydata()) == [values.min(), values.max()]
        x, y = live.artists["diagonal"].get_data()
        assert y[0] - x[0] == y[1] - x[1] == offset  # m − n
        assert min(*x, *y) >= 0 and max(*x, *y) <= 48


def test_the_readout_of_the_amplitude_counts_tokens():
    live = figures.amplitude()
    tokens, encodings = figures.tokens_and_positions()
    for power, position in ((0.0, 5), (3.0, 20)):
        live.set(power=power, position=position)
        sums = tokens[:, None] + 2**power * encodings
        names = torch.cdist(sums.flatten(0, 1), tokens).argmin(-1).unflatten(0, (40, 24))
        share = (names == torch.arange(40)[:, None]).double().mean().item()
        assert list(live.artists["now"].get_ydata()) == [pytest.approx(share), 1]
        for name, found in zip(
            ("before", "after"), live.artists["now"].get_ydata()
        ):  # the curves end at the dots
            x, y = live.artists[name].get_data()
            assert (x[-1], y[-1]) == pytest.approx((live.artists["now"].get_xdata()[0], found))
        words = live.artists["readout"].get_text()
        assert words == f"amplitude {2**power:g}: found {share:.0%}, 100% after the matrix"
        assert live.artists["sum"].get_ydata().tolist() == sums[0, position].tolist()
        assert live.artists["restored"].get_ydata() == pytest.approx(tokens[0].numpy(), abs=1e-9)


def test_a_matrix_that_does_not_separate_shows_it():
    live = figures.amplitude(torch.eye(64, dtype=torch.float64))
    live.set(power=6.0)
    nearest, after = live.artists["now"].get_ydata()
    assert nearest == after < 0.2


def test_both_maps_are_cosines_of_the_same_width():
    live = figures.sinusoid_and_table()
    for width in (8, 768):
        live.set(width=width)
        drawn = torch.tensor(live.artists["sinusoidal"].get_array())
        codes = sinusoidal(torch.arange(32), width)
        torch.testing.assert_close(drawn, codes @ codes.T / (width / 2), rtol=0, atol=1e-5)
        table = torch.tensor(live.artists["learned, untrained"].get_array())
        torch.testing.assert_close(table.diagonal(), torch.ones(32))
        assert live.artists["spread"].get_ydata()[0] == pytest.approx(off_diagonal(table).std())


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


def test_the_drawing_names_the_three_places():
    drawing = figures.where_encodings_act()
    assert drawing.png() and not drawing.controls
    words = " ".join(text.get_text() for text in drawing.figure.findobj(Text))
    for part in (
        "token x",
        "query",
        "key",
        "value",
        "add to the embedding",
        "turn query and key",
        "add to the score",
    ):
        assert part in words
