"""Chapter 5's figures: what they draw is what the subject modules compute, and what configurations say."""

import dataclasses
import functools
import math

import pytest
import torch
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


# made once, and moved from test to test
stretched, pairs_of = functools.cache(figures.stretching), functools.cache(figures.models)


@pytest.mark.parametrize("method, scale", list(zip(METHODS, (3, 32, 8, 2, 16, 5, 1))))
def test_every_pair_ends_where_its_speed_takes_it(method, scale):
    live = at(stretched(), method=method, scale=scale)
    speeds = torch.as_tensor(live.artists["speed"].get_ydata())
    ends = {}
    for name in ("end", "new"):
        ends |= dict(zip(*(map(float, data) for data in live.artists[name].get_data())))
    turns = 4096 * angles(ONE, 128) / (2 * math.pi)
    assert sorted(ends) == list(range(64))
    for pair, end in ends.items():
        assert end == pytest.approx(turns[int(pair)].item() * speeds[int(pair)].item() * scale)
    new = {int(pair) for pair in live.artists["new"].get_xdata()}
    assert new == {i for i in range(64) if turns[i] < 1 and ends[i] > turns[i] * (1 + 1e-9)}
    assert f"{len(new)} pairs with new angles" in live.artists["left"].get_text()


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


@pytest.mark.parametrize("model, power", list(zip(CONFIGURATIONS, (18, 9, 17, 14, 16, 12, 15))))
@pytest.mark.parametrize("own", [True, False])
def test_every_pair_of_a_model_stands_where_its_configuration_says(model, power, own):
    live = at(pairs_of(), model=model, power=power, own=own)
    chosen = rotations(CONFIGURATIONS[model])[0]
    speeds = chosen.speeds if own else chosen.trained_speeds
    drawn = {name: list(map(float, live.artists[name].get_ydata())) for name in ("known", "new")}
    assert sorted(drawn["known"] + drawn["new"], reverse=True) == pytest.approx(
        (speeds * (2**power - 1) / (2 * math.pi)).tolist(), rel=1e-5
    )
    assert f"{len(drawn['new'])} pairs meet new angles" in live.artists["readout"].get_text()
    reach = dataclasses.replace(chosen, speeds=speeds).reach
    assert (len(drawn["new"]) > 0) == (2**power - 1 > reach * (1 + 1e-9))


def test_a_hand_is_lost_where_no_training_text_took_it():
    live = at(figures.hands(), power=12.0)
    assert "0 of 64 hands" in live.artists["readout"].get_text()
    live.set(power=15.0)
    turns = (2**15 - 1) * angles(ONE, 128) / (2 * math.pi)
    shown = (4096 - 1) * angles(ONE, 128) / (2 * math.pi)
    lost = int(((shown < 1) & (turns % 1 > shown)).sum())
    assert 0 < lost and f"{lost} of 64 hands" in live.artists["readout"].get_text()
    x, y = live.artists["hand 7"].get_data()
    assert math.atan2(y[1], x[1]) % (2 * math.pi) == pytest.approx(turns[63].item() % 1 * 2 * math.pi, rel=1e-5)
    assert live.artists["hand 7"].get_linestyle() == "--" and live.artists["hand 0"].get_linestyle() == "-"


def test_lines_grow_with_their_sliders():
    live = at(dilution(), place=1)
    assert live.artists["seed 1"].get_ydata() == pytest.approx(WEIGHTS[:2, 1].tolist())
    assert "255 competitors" in live.artists["readout"].get_text()


def test_the_worth_of_methods_is_drawn_as_measured():
    rows = {name: [torch.rand(3) for _ in range(4)] for name in ("a", "b")}
    later = {name: [share / 2 for share in row] for name, row in rows.items()}
    live = figures.worth(rows, later)
    for steps, table, other in (("untuned", rows, later), ("20 steps on long texts", later, rows)):
        live.set(steps=steps)
        for number in range(4):
            for artist, shown in (("shown", table), ("other", other)):
                x, y = live.artists[f"{artist} {number}"].get_data()
                assert list(x) == pytest.approx(torch.cat([row[number] for row in shown.values()]).tolist())
                assert list(y) == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    "power, length, longest",
    [(4.0, 12, "4,096 positions"), (1.0, 12, "any length"), (7.0, 5, "32 positions")],
)
def test_the_longest_text_without_a_new_angle(power, length, longest):
    live = at(figures.bases(), power=power, length=length)
    text = live.artists["readout"].get_text()
    assert f"no new angle up to {longest};" in text
    wavelengths = 2 * math.pi / angles(ONE, 128, base=10**power)
    slow = int((wavelengths > 2**length).sum())
    assert len(live.artists["slow"].get_xdata()) == slow and (slow == 0) == (longest == "any length")


def test_with_the_base_that_the_figure_names_the_slowest_pair_just_comes_round():
    live = at(figures.bases())
    base = float(live.artists["readout"].get_text().rpartition(" ")[2].replace(",", ""))
    slowest = [2 * math.pi / angles(ONE, 128, base=base + more)[-1] for more in (-1, 1)]
    assert slowest[0] < 4096 < slowest[1]


def test_the_needle_figure_reads_the_measured_shares():
    live = needles()
    for place in range(3):
        live.set(place=place)
        for task, curves in FOUND.items():
            for name, share in curves.items():
                means = share.mean(dim=0)[: place + 1]
                assert live.artists[f"{task}, {name}"].get_ydata() == pytest.approx(means.tolist())
                assert live.artists[f"{task}, {name}, end"].get_text() == f"{name} {means[-1]:.2f}"


def test_a_change_without_end_has_its_sign():
    row = {column: index / 10 for index, column in enumerate(ROWS)} | {"moved by 100": math.inf}
    exact = figures.card({"mine": row}).figure.axes[0]
    assert [text.get_text() for text in exact.texts[:2]] == ["0.00", "∞"]
