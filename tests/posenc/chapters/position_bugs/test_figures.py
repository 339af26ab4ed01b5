"""Chapter 8's figures: what they draw is what was measured."""

import pytest
import torch
from matplotlib.colors import to_hex

from posenc.chapters.position_bugs import figures
from posenc.lesson.palette import GREY
from posenc.probe import Convention
from posenc.tasks import CHARACTERS

RUNS = ["shift", "far", "steps"]


def some_losses():
    base = 3 * torch.exp(-torch.arange(16) / 4) + 1.5
    return {"none": base, "clockwise": base + 0.5, "cache from 0": base.clone()}


def test_the_cost_is_drawn_at_the_place():
    losses = some_losses()
    live = figures.cost(losses)
    live.set(place=3)
    assert live.artists["readout"].get_text() == f"after 3 characters: {losses['none'][3]:.2f} nats"
    live.set(mistake="clockwise")
    assert live.artists["wrong"].get_ydata() == pytest.approx(losses["clockwise"].numpy())
    before, after = losses["none"][3], losses["clockwise"][3]
    expected = f"after 3 characters: {before:.2f} nats, and {after:.2f} with the mistake"
    assert live.artists["readout"].get_text() == expected


def test_loud_runs_are_named():
    live = figures.runs(
        {
            "none": dict.fromkeys(RUNS, 1e-5),
            "clockwise": dict.fromkeys(RUNS, 1e-5),
            "cache from 0": {"shift": 1e-5, "far": 0.0, "steps": 0.05},
        }
    )
    live.set(mistake="clockwise")
    assert live.artists["said"].get_text() == "clockwise: all agree"
    live.set(mistake="cache from 0")
    assert live.artists["said"].get_text() == "cache from 0: these disagree: steps"
    ends = [segment[1] for segment in live.artists["bars"].get_segments()]
    assert [end[0] for end in ends] == pytest.approx([1e-5, figures.FLOOR, 0.05])
    assert [tuple(end)[1] for end in ends] == [0, 1, 2]
    colours = [to_hex(colour).upper() for colour in live.artists["bars"].get_colors()]
    assert colours == [GREY, GREY, figures.LOUD]


def test_the_matrices_turn_a_vector_as_the_rotation_does():
    live = figures.matrices()
    x = torch.randn(16, generator=torch.Generator().manual_seed(0))
    for port, changes in (("clockwise", {"direction": -1}), ("offset 2", {"offset": 2})):
        live.set(port=port, position=5)
        for name, convention in (("right", Convention(16)), ("port", Convention(16, **changes))):
            matrix = torch.tensor(live.artists[name].get_array().data)
            expected = convention.rotate(x.view(1, 1, 1, 16), torch.tensor([5])).flatten()
            torch.testing.assert_close(matrix @ x, expected)


@pytest.mark.parametrize(
    "port, words",
    [
        ("interleaved", "interleaved, all 16 dimensions, base 10,000"),
        ("half of the head", "the first 8 of 16 dimensions"),
        ("base 100", "base 100,"),
        ("offset 2", "offset +2"),
        ("clockwise", "clockwise"),
        ("table of neighbours", "half-split turn with an interleaved table, all 16 dimensions, no rotation"),
    ],
)
@pytest.mark.slow
def test_the_port_is_named_by_the_probe(port, words):
    live = figures.matrices()
    live.set(port=port)
    assert words in live.artists["read"].get_text().replace("\n", " ")


def test_the_bases_are_marked_and_pairs_are_off_by_their_angles():
    powers = torch.arange(1, 7.01, 0.25, dtype=torch.float64)
    losses = {8: 2 + 0.01 * (powers - 4) ** 2, 128: 1.6 + 0.1 * (powers - 4) ** 2}
    live = figures.bases(powers, losses)
    live.set(power=4.0)
    assert live.artists["128, here"].get_ydata()[0] == pytest.approx(1.6)
    assert live.artists["8, pairs"].get_ydata() == pytest.approx([1e-4] * 8)
    assert live.artists["off"].get_text() == "0 of 8 pairs are off by more than 0.1 after 8"
    live.set(power=5.0)
    assert live.artists["readout"].get_text() == "base 100,000: 2.01 with 8, 1.70 with 128"
    off = [128 * abs(1e5 ** (-2 * i / 16) - 1e4 ** (-2 * i / 16)) for i in range(1, 8)]
    assert live.artists["128, pairs"].get_ydata()[1:] == pytest.approx(off)


def test_the_gap_is_that_of_the_log_probabilities_for_one_text_and_in_the_mean():
    draw = torch.Generator().manual_seed(0)
    chances = {
        name: (2 * torch.randn(5, 3, 96, generator=draw)).log_softmax(-1)
        for name in ("none", "cache from 0", "cache + 1")
    }
    live = figures.gap([4, 8, 12, 16, 20], chances, {" ": "space"}, text=2)
    live.set(prompt=8, mistake="cache + 1")
    gaps = (chances["cache + 1"] - chances["none"]).abs().amax(-1)  # (5, 3)
    assert live.artists["here"].get_ydata()[0] == pytest.approx(gaps[1, 2].item())
    assert live.artists["one"].get_ydata() == pytest.approx(gaps[:, 2].numpy())
    assert live.artists["mean"].get_ydata() == pytest.approx(gaps.mean(1).numpy())
    assert live.artists["readout"].get_text() == f"after 8 characters: gap {gaps[1, 2]:.2f}"
    likely = chances["none"][1, 2].argsort(descending=True)[:6].tolist()
    assert [live.artists[f"label {row}"].get_text() for row in range(6)] == [CHARACTERS[i] for i in likely]
    for artist, name in (("right", "none"), ("wrong", "cache + 1")):
        ends = [segment[1][0] for segment in live.artists[artist].get_segments()]
        assert ends == pytest.approx(chances[name][1, 2, likely].exp().tolist())


def test_a_padded_row_is_counted_either_way():
    live = figures.padding()
    said = live.artists["said"].get_text

    def numbers():
        return [int(live.artists[f"number {i}"].get_text()) for i in range(12)]

    live.set(length=3)
    assert numbers() == [*range(6), *range(6)]
    assert said().endswith("its last token at 5, its first at 3, so they are 2 apart")
    live.set(counted="each row's own")
    assert numbers() == [*range(6), 0, 0, 0, 0, 1, 2]
    assert said().endswith("its last token at 2, its first at 0, so they are 2 apart")
    shown = [live.artists[f"square {i}"].get_text().strip() for i in range(6, 12)]
    assert shown == "pad pad pad dog ran .".split()


def test_a_single_model_has_no_legend_and_what_costs_less_its_room():
    (panel,) = figures.packing({("rotary", "mask"): torch.tensor(-0.02)}).figure.axes
    assert panel.get_xlim()[0] == pytest.approx(-0.02) and not panel.get_legend()
