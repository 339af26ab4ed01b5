"""What chapter 9's figures show, compared with what the probe says. They need transformers, and take seconds."""

import functools
import math
from pathlib import Path

import pytest
import torch
from pictures import load

from posenc.chapters.models_you_use import figures
from posenc.chapters.models_you_use.checkpoints import small
from posenc.lesson.palette import ADDED
from posenc.probe import questions, scores

made_up = load(Path(__file__).with_name("made_up.py"))

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def transformers():
    pytest.importorskip("transformers")


asked = functools.partial(made_up.asked, math.nan)


def test_upright_stripes_become_diagonal_ones():
    raw, level, gpt2 = (axes.collections[0].get_array() for axes in figures.diagonals().figure.axes[:3])
    assert (
        abs(raw[5, 2] - raw[20, 2]) < 1e-6 < 0.1 < abs(raw[5, 2] - raw[20, 17])
    )  # the same key; the same distance
    assert abs(level[5, 2] - level[20, 17]) < 1e-6 < 0.1 < abs(level[5, 2] - level[20, 2])
    assert abs(gpt2[5, 2] - gpt2[20, 17]) > 1e-3
    assert math.isnan(raw.filled(math.nan)[2, 5])


def test_a_bar_is_divided_as_the_shares_are():
    found = {
        "GPT-2": asked(content_content=0.5, together=0.25, position_position=0.25),
        "mine": asked(together=1.0),
    }
    drawn = figures.who_asks(found)
    bars = drawn.figure.axes[0].patches
    widths = [bar.get_width() for bar in bars]
    assert widths == [0.5, 0, 0, 0.25, 0.25, 0, 0, 0, 0, 1]
    assert [bar.get_x() for bar in bars[3:5]] == [0.5, 0.75]
    assert drawn.figure.axes[0].lines[0].get_color() == ADDED
    assert "GPT-2: content → content 0.50" in drawn.alt and "mine: together 1.00" in drawn.alt
    assert "none" in [
        text.get_text() for text in drawn.figure.axes[0].texts
    ]  # no drift where no place counts


def test_two_answers_stand_where_they_were_measured():
    whole = {"split": (0.9, 0.05, 0.04, 0.01), "table": (0.8, 0.1, 0.05, 0.05)}
    apart = {"split": (0.4, 0.1, 0.1, 0.1, 0.2, 0.1), "table": (0.4, 0.1, 0.1, 0.1, 0.2, 0.1)}
    left, right = figures.two_answers(whole, apart).figure.axes
    series = {line.get_label(): list(line.get_ydata()) for line in left.lines}
    assert series["split of GPT-2's vectors"] == list(whole["split"])
    assert series["table of scores"] == list(whole["table"])
    assert list(right.lines[-1].get_ydata()) == list(apart["table"])


def test_the_scale_of_the_table_moves_shares_from_contents_to_places():
    live = figures.table_scale(small("GPT-2"))
    heights = {}
    for power in (-2.0, 0.0, 1.0):
        live.set(power=power)
        heights[power] = [live.artists[f"bar {index}"].get_height() for index in range(5)]
        assert sum(heights[power]) == pytest.approx(1)
    assert heights[-2.0][0] > 0.99 and heights[1.0][3] > 0.9
    measured = questions(small("GPT-2"))
    assert heights[0.0][3] == pytest.approx(measured.position_position, abs=1e-6)
    split = live.artists["split"].get_ydata()
    assert sum(split) == pytest.approx(1)


def test_the_four_panels_sum_to_what_the_softmax_sees():
    live = figures.table_scale(small("GPT-2"))
    live.set(power=0.0)
    shares = list(figures.SHARES)[:4]
    panels = sum(torch.tensor(live.artists[share].get_array().filled(0)).reshape(19, 19) for share in shares)
    text = torch.tensor([[figures.CHARACTERS.index(character) for character in figures.SENTENCE]])
    seen = scores(small("GPT-2"), text)[0, 0]
    visible = seen.isfinite()
    centred = seen - seen.where(visible, 0.0).sum(-1, keepdim=True) / visible.sum(-1, keepdim=True)
    assert (panels - centred)[visible].abs().max() < 1e-6 < 1e-2 < centred[visible].std()


def test_a_figure_of_a_scale_leaves_the_model_as_it_was():
    model = small("GPT-2", predicts=True)
    before = model.transformer.wpe.weight.clone()
    figures.table_scale(model).set(power=1.0)
    assert model.transformer.wpe.weight.equal(before)


def test_the_clocks_of_gemmas_last_layer_are_slower_and_an_axis_moves_its_own_pairs():
    live = figures.clocks()
    hands = {}
    for layer in (0, 4, 5):
        live.set(layer=layer, position=3)
        hands[layer] = [segment[1] for segment in live.artists["Gemma 3"].get_segments()]
    assert max(abs(a - b).max() for a, b in zip(hands[0], hands[4])) < 1e-5
    assert abs(hands[0][1] - hands[5][1]).max() > 0.1
    assert hands[0][0][0] == pytest.approx(math.cos(3), abs=1e-5)  # pair 0: a radian a position
    assert "base 1,000,000" in live.artists["Gemma 3, readout"].get_text()
    still = {}
    for axis in figures.AXES:
        live.set(axis=axis)
        still[axis] = [live.artists[f"Qwen2-VL, {pair}"].get_text() == "still" for pair in range(8)]
    assert [[pair for pair in range(8) if not still[axis][pair]] for axis in figures.AXES] == [
        [0, 1],
        [2, 3, 4],
        [5, 6, 7],
    ]


def test_padding_moves_the_model_that_counts_tokens():
    live = made_up.left_padding()
    lines = {}
    for padding in (0, 13):
        live.set(padding=padding)
        lines[padding] = {name: live.artists[name].get_ydata() for name in ("GPT-2", "OPT", "Llama")}
    moved = {name: max(abs(a - b) for a, b in zip(lines[0][name], lines[13][name])) for name in lines[0]}
    assert moved["GPT-2"] > 0.05 and moved["OPT"] < 1e-4 and moved["Llama"] < 1e-4
    assert "largest change below 0.01\n" in live.artists["OPT, readout"].get_text()
    live.set(padding=0)
    assert all(
        "largest change below 0.01\n" in live.artists[f"{name}, readout"].get_text() for name in lines[0]
    )
