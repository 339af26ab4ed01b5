"""Chapter 8's figures: what they draw is what was measured."""

import math

import pytest
import torch
from artists import points, said, tips
from matplotlib.colors import to_hex
from pictures import at

from posenc.chapters.position_bugs import figures
from posenc.lesson.palette import GREY
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


def test_the_cost_of_a_mistake_stands_beside_that_of_none():
    live = at(cost(), place=3, mistake="clockwise")
    before, more = 1.5 + math.exp(-0.5), 0.8 * 3 / 32
    assert points(live, "wrong")[3, 1].item() == pytest.approx(before + more)
    assert said(live, "readout") == f"after 3 characters: {before:.2f} nats, and {before + more:.2f} with the mistake"


def test_loud_runs_are_named():
    live = at(runs(), mistake="clockwise")
    assert said(live, "said") == "clockwise: all agree"
    live.set(mistake="cache from 0")
    assert said(live, "said") == "cache from 0: these disagree: steps, chunks"
    assert tips(live, "bars")[:3, 0].tolist() == pytest.approx([1e-6, figures.FLOOR, 6.0])
    colours = [to_hex(colour).upper() for colour in live.artists["bars"].get_colors()]
    assert colours == [GREY] * 2 + [figures.LOUD] * 2 + [GREY] * 4


@pytest.mark.slow
def test_the_port_is_named_by_the_probe():
    live = figures.matrices()
    for port, words in (
        ("interleaved", "interleaved, all 16 dimensions, base 10,000"),
        ("half of the head", "the first 8 of 16 dimensions"),
        ("base 100", "base 100,"),
        ("offset 2", "offset +2"),
        ("clockwise", "clockwise"),
        ("table of neighbours", "half-split turn with an interleaved table, all 16 dimensions, no rotation"),
    ):
        live.set(port=port)
        assert words in said(live, "read").replace("\n", " ")


def test_with_the_base_of_the_training_no_pair_is_off():
    live = at(bases(), power=4.0)
    assert points(live, "8, pairs")[:, 1].tolist() == pytest.approx([1e-4] * 8)  # as far down as the axis goes
    assert said(live, "off") == "0 of 8 pairs are off by more than 0.1 after 8"


def test_the_gap_is_that_of_the_log_probabilities_for_one_text_and_in_the_mean():
    found, live = chances(), at(gap(text=2), prompt=8, mistake="cache + 1")
    gaps = (found["cache + 1"] - found["none"]).abs().amax(-1)  # (5, 3)
    assert points(live, "here")[0, 1] == gaps[1, 2]
    assert points(live, "one")[:, 1].equal(gaps[:, 2].double())
    torch.testing.assert_close(points(live, "mean")[:, 1], gaps.mean(1).double())
    assert said(live, "readout") == f"after 8 characters: gap {gaps[1, 2]:.2f}"
    likely = found["none"][1, 2].argsort(descending=True)[:6].tolist()
    assert [said(live, f"label {row}") for row in range(6)] == [CHARACTERS[i] for i in likely]
    for artist, name in (("right", "none"), ("wrong", "cache + 1")):
        torch.testing.assert_close(tips(live, artist)[:, 0], found[name][1, 2, likely].exp().double())


def test_a_padded_row_is_counted_either_way():
    live = at(figures.padding(), length=3)
    for counted, second, words in (
        ("the columns'", [*range(6)], "its last token at 5, its first at 3, so they are 2 apart"),
        ("each row's own", [0, 0, 0, 0, 1, 2], "its last token at 2, its first at 0, so they are 2 apart"),
    ):
        live.set(counted=counted)
        assert [int(said(live, f"number {i}")) for i in range(12)] == [*range(6), *second]
        assert said(live, "said").endswith(words)
    assert [said(live, f"square {i}").strip() for i in range(6, 12)] == "pad pad pad dog ran .".split()


def test_a_single_model_has_no_legend_and_what_costs_less_its_room():
    (panel,) = figures.packing({("rotary", "mask"): torch.tensor(-0.02)}).figure.axes
    assert panel.get_xlim()[0] == pytest.approx(-0.02) and not panel.get_legend()
