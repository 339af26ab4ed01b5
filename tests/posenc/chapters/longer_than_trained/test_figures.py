"""Chapter 5's figures: what they draw is what the subject modules compute, and what configurations say."""

import dataclasses
import math

import pytest
import torch
from artists import points, said
from pictures import at

from posenc.chapters.longer_than_trained import figures
from posenc.chapters.longer_than_trained.configuration import rotations
from posenc.chapters.longer_than_trained.figures.angles import METHODS
from posenc.chapters.longer_than_trained.judging import ROWS
from posenc.chapters.longer_than_trained.published import CONFIGURATIONS
from posenc.rotary import angles
from posenc.stretching import interpolated, llama3, ntk, yarn

ONE = torch.tensor(1)


def shares_by_position():
    shares = torch.linspace(1, 0.1, 253) * torch.tensor([[1.0], [0.8]])
    return figures.shares_by_position({"rotary": shares, "none": 1 - shares})


def dots():
    seeds = torch.tensor([0.3, 0.5, 0.9])
    values = {"rotary": [seeds, seeds / 2], "none": [1 - seeds, seeds]}
    return figures.dots(values, series=["before", "after"])


SHARES = torch.tensor([[1.0, 0.8, 0.3], [0.9, 0.7, 0.2]])
RECALLED = {"rotary": SHARES, "none": SHARES / 3}
FOUND = {"recall": RECALLED, "the newest": {name: 1 - each for name, each in RECALLED.items()}}


def needles():
    return figures.needles(FOUND, guessing={"recall": 1 / 12, "the newest": 0.5})


WEIGHTS = torch.linspace(1, 0.4, 5)[:, None] ** torch.tensor([[1.0, 2.0]])


def dilution():
    return figures.dilution(WEIGHTS)


def worth():
    rows = {"as trained": 0.2, "PI": 0.6, "NTK": 0.9}
    return figures.worth({name: [torch.tensor([share, share / 2])] * 4 for name, share in rows.items()})


def card():
    rows = {"a": 0.2, "b": 0.9}
    return figures.card({name: dict.fromkeys(ROWS, share) for name, share in rows.items()})


def test_every_pair_ends_where_its_speed_takes_it():
    live = at(figures.stretching(), method="YaRN", scale=16)
    turns = 4096 * angles(ONE, 128) / (2 * math.pi)
    pairs, ends = torch.cat([points(live, name) for name in ("end", "new")]).T
    ends = ends[pairs.argsort()]
    torch.testing.assert_close(ends, turns * points(live, "speed")[:, 1] * 16)
    new = (turns < 1) & (ends > turns * (1 + 1e-9))
    assert points(live, "new")[:, 0].tolist() == new.nonzero()[:, 0].tolist()
    assert f"{new.sum()} pairs with new angles" in said(live, "left")


def test_the_methods_are_those_of_the_subject_module():
    options = {"scale": 8.0, "trained_length": 4096}
    for name, expected in (
        ("as trained", angles(ONE, 128)),
        ("PI", interpolated(ONE, 128, scale=8.0)),
        ("NTK", ntk(ONE, 128, scale=8.0)),
        ("dynamic", ntk(ONE, 128, scale=8.0)),
        ("YaRN", yarn(ONE, 128, **options)),
        ("llama3", llama3(ONE, 128, **options)),
    ):
        assert torch.allclose(METHODS[name](ONE, 128, **options), expected), name
    by_hand = METHODS["LongRoPE"](ONE, 128, **options) / angles(ONE, 128)
    assert set(by_hand.tolist()) == {1.0, 1 / 8} and (by_hand == 1).sum() == 46


@pytest.mark.parametrize("model, power, own", [("Llama 3.1", 18, True), ("Llama 2", 12, True), ("gpt-oss", 15, False)])
def test_every_pair_of_a_model_stands_where_its_configuration_says(model, power, own):
    live = at(figures.models(), model=model, power=power, own=own)
    chosen = rotations(CONFIGURATIONS[model])[0]
    speeds = chosen.speeds if own else chosen.trained_speeds
    drawn = torch.cat([points(live, name)[:, 1] for name in ("known", "new")]).sort(descending=True).values
    torch.testing.assert_close(drawn, (speeds * (2**power - 1) / (2 * math.pi)).double(), rtol=1e-5, atol=0)
    new = len(points(live, "new"))
    assert f"{new} pairs meet new angles" in said(live, "readout")
    assert (new > 0) == (2**power - 1 > dataclasses.replace(chosen, speeds=speeds).reach * (1 + 1e-9))


def test_a_hand_is_lost_where_no_training_text_took_it():
    live = at(figures.hands(), power=15.0)
    turns = (2**15 - 1) * angles(ONE, 128) / (2 * math.pi)
    trained = (4096 - 1) * angles(ONE, 128) / (2 * math.pi)
    lost = int(((trained < 1) & (turns % 1 > trained)).sum())
    assert 0 < lost and f"{lost} of 64 hands" in said(live, "readout")
    x, y = points(live, "hand 7")[1].tolist()
    assert math.atan2(y, x) % (2 * math.pi) == pytest.approx(turns[63].item() % 1 * 2 * math.pi, rel=1e-5)
    assert [live.artists[f"hand {n}"].get_linestyle() for n in (0, 7)] == ["-", "--"]


def test_lines_grow_with_their_sliders():
    live = at(dilution(), place=1)
    assert points(live, "seed 1")[:, 1].tolist() == pytest.approx(WEIGHTS[:2, 1].tolist())
    assert "255 competitors" in said(live, "readout")
    live = at(needles(), place=1)
    for task, curves in FOUND.items():
        for name, share in curves.items():
            means = share.mean(dim=0)[:2]
            assert points(live, f"{task}, {name}")[:, 1].tolist() == pytest.approx(means.tolist())
            assert said(live, f"{task}, {name}, end") == f"{name} {means[1]:.2f}"


def test_the_tuned_methods_come_forward_and_the_others_go_behind():
    live = at(worth(), steps="20 steps on long texts")
    shares = torch.tensor([0.2, 0.1, 0.6, 0.3, 0.9, 0.45])
    for name, values in (("shown", shares / 2), ("other", shares)):
        torch.testing.assert_close(points(live, f"{name} 3")[:, 0], values.double())


def test_the_longest_text_without_a_new_angle():
    live = figures.bases()
    for power, length, longest in ((1.0, 12, "any length"), (7.0, 5, "32 positions")):
        live.set(power=power, length=length)
        assert f"no new angle up to {longest};" in said(live, "readout")
        wavelengths = 2 * math.pi / angles(ONE, 128, base=10**power)
        assert len(points(live, "slow")) == (wavelengths > 2**length).sum()


def test_a_change_without_end_has_its_sign():
    row = {column: index / 10 for index, column in enumerate(ROWS)} | {"moved by 100": math.inf}
    exact = figures.card({"mine": row}).figure.axes[0]
    assert [text.get_text() for text in exact.texts[:2]] == ["0.00", "∞"]
