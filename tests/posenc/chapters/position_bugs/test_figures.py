"""Chapter 8's figures: what they draw is what was measured."""

import math

import pytest
import torch
from matplotlib.colors import to_hex
from pictures import at

from posenc.chapters.position_bugs import figures
from posenc.lesson.palette import GREY
from posenc.probe import Convention
from posenc.tasks import CHARACTERS

RUNS = ["shift", "far", "steps", "chunks", "padding", "packing", "rows", "eviction"]


def texts():
    written = {"the model": "The name of the rose ", "with base 100": "The rose of the name "}
    return figures.texts({name: 7 * text for name, text in written.items()}, prompt=21)


def cost():
    base = 1.5 + torch.exp(-torch.arange(64) / 6)
    mistakes = {"clockwise": 0.8, "base 100": 0.1, "cache from 0": 0.0}
    return figures.cost({"none": base} | {name: base + size * torch.arange(64) / 32 for name, size in mistakes.items()})


def runs():
    quiet = {run: 1e-6 * (1 + row) for row, run in enumerate(RUNS)}
    loud = quiet | {"far": 0.0, "steps": 6.0, "chunks": 5.0}
    return figures.runs({"none": quiet, "clockwise": quiet, "cache from 0": loud})


POWERS = torch.arange(1, 7.01, 0.25, dtype=torch.float64)


def bases():
    return figures.bases(POWERS, {8: 2 + 0.01 * (POWERS - 4) ** 2, 128: 1.6 + 0.1 * (POWERS - 4) ** 2})


def chances():
    draw = torch.Generator().manual_seed(0)
    mistakes = ("none", "cache from 0", "cache + 1")
    return {name: (2 * torch.randn(5, 3, 96, generator=draw)).log_softmax(-1) for name in mistakes}


def gap(**options):
    return figures.gap([4, 8, 12, 16, 20], chances(), {" ": "space", "\n": "line"}, **options)


def packing():
    ways = ("mask, start again", "mask, go on", "no mask, start again", "no mask, go on")
    sizes = {"rotary": (0.0, 0.0, 0.8, 0.02), "table": (0.0, 0.01, 0.5, 0.03)}
    return figures.packing({(model, way): torch.tensor(x) for model, row in sizes.items() for way, x in zip(ways, row)})


def test_the_cost_is_drawn_at_the_place():
    live = at(cost(), place=3)
    before, more = 1.5 + math.exp(-0.5), 0.8 * 3 / 32
    assert live.artists["readout"].get_text() == f"after 3 characters: {before:.2f} nats"
    live.set(mistake="clockwise")
    assert live.artists["wrong"].get_ydata()[3] == pytest.approx(before + more)
    said = f"after 3 characters: {before:.2f} nats, and {before + more:.2f} with the mistake"
    assert live.artists["readout"].get_text() == said


def test_loud_runs_are_named():
    live = at(runs(), mistake="clockwise")
    assert live.artists["said"].get_text() == "clockwise: all agree"
    live.set(mistake="cache from 0")
    assert live.artists["said"].get_text() == "cache from 0: these disagree: steps, chunks"
    ends = [tuple(segment[1]) for segment in live.artists["bars"].get_segments()]
    assert ends[:3] == [pytest.approx((1e-6, 0)), pytest.approx((figures.FLOOR, 1)), pytest.approx((6.0, 2))]
    colours = [to_hex(colour).upper() for colour in live.artists["bars"].get_colors()]
    assert colours == [GREY] * 2 + [figures.LOUD] * 2 + [GREY] * 4


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
    live = at(figures.matrices(), port=port)
    assert words in live.artists["read"].get_text().replace("\n", " ")


def test_the_bases_are_marked_and_pairs_are_off_by_their_angles():
    live = at(bases(), power=4.0)
    assert live.artists["128, here"].get_ydata()[0] == pytest.approx(1.6)
    assert live.artists["8, pairs"].get_ydata() == pytest.approx([1e-4] * 8)
    assert live.artists["off"].get_text() == "0 of 8 pairs are off by more than 0.1 after 8"
    live.set(power=5.0)
    assert live.artists["readout"].get_text() == "base 100,000: 2.01 with 8, 1.70 with 128"
    off = [128 * abs(1e5 ** (-2 * i / 16) - 1e4 ** (-2 * i / 16)) for i in range(1, 8)]
    assert live.artists["128, pairs"].get_ydata()[1:] == pytest.approx(off)


def test_the_gap_is_that_of_the_log_probabilities_for_one_text_and_in_the_mean():
    found, live = chances(), gap(text=2)
    live.set(prompt=8, mistake="cache + 1")
    gaps = (found["cache + 1"] - found["none"]).abs().amax(-1)  # (5, 3)
    assert live.artists["here"].get_ydata()[0] == pytest.approx(gaps[1, 2].item())
    assert live.artists["one"].get_ydata() == pytest.approx(gaps[:, 2].numpy())
    assert live.artists["mean"].get_ydata() == pytest.approx(gaps.mean(1).numpy())
    assert live.artists["readout"].get_text() == f"after 8 characters: gap {gaps[1, 2]:.2f}"
    likely = found["none"][1, 2].argsort(descending=True)[:6].tolist()
    assert [live.artists[f"label {row}"].get_text() for row in range(6)] == [CHARACTERS[i] for i in likely]
    for artist, name in (("right", "none"), ("wrong", "cache + 1")):
        ends = [segment[1][0] for segment in live.artists[artist].get_segments()]
        assert ends == pytest.approx(found[name][1, 2, likely].exp().tolist())


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
