"""What chapter 9's figures show, compared with what the probe says. They need transformers, and take seconds."""

import math

import pytest
from artists import points, said
from pictures import at

from posenc.chapters.models_you_use import figures
from posenc.chapters.models_you_use.checkpoints import small
from posenc.probe import Questions, questions

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def transformers():
    pytest.importorskip("transformers")


def asked(drift, **shares):
    given = dict.fromkeys(figures.SHARES, 0.0) | {"others": 0.0} | shares
    return Questions(**given, any_token=0, any_place=0, drift=drift, relative=False, model="M", layer=0)


def who_asks():
    return figures.who_asks(
        {
            "GPT-2": asked(0.7, content_content=0.4, content_position=0.2, position_content=0.1, position_position=0.3),
            "Llama": asked(1e-14, content_content=0.8, together=0.2),
            "BLOOM": asked(0.0, content_content=0.05, position_position=0.95),
            "none": asked(math.nan, content_content=1.0),
        }
    )


def two_answers():
    whole = {"split": (0.93, 0.06, 0.01, 0.001), "table": (0.95, 0.02, 0.01, 0.02)}
    return figures.two_answers(whole, dict.fromkeys(whole, (0.4, 0.03, 0.01, 0.001, 0.52, 0.03)))


def table_scale():
    return figures.table_scale(small("GPT-2"))


def left_padding():
    return figures.left_padding({name: small(name, predicts=True) for name in ("GPT-2", "OPT", "Llama")})


def test_a_sentence_that_moves_on_changes_what_positions_of_their_own_decide():
    """It starts unmoved where a prediction is made, and moved where its answer is shown."""

    def changed(live):
        return {name for name in figures.SIX if said(live, f"{name}, readout") != "unchanged"}

    live = figures.moved_on()
    assert live.controls["far"].value == 0 and changed(at(live, far=0)) == set()
    assert changed(at(live, far=7)) == {"GPT-2", "BERT", "BLOOM"}
    own = figures.moved_on(lambda scores: scores - scores.diagonal()[:, None])
    assert own.controls["far"].value == 12 and changed(at(own, far=7)) == {"GPT-2", "BERT"}


def test_the_largest_shares_are_said_in_words():
    alt = who_asks().alt
    assert "GPT-2: content → content 0.40" in alt and "BLOOM: position → position 0.95" in alt


def test_the_scale_of_the_table_moves_shares_from_contents_to_places():
    live = table_scale()
    heights = {}
    for power in (-2.0, 0.0, 1.0):
        live.set(power=power)
        heights[power] = [live.artists[f"bar {index}"].get_height() for index in range(5)]
        assert sum(heights[power]) == pytest.approx(1)
    assert heights[-2.0][0] > 0.99 and heights[1.0][3] > 0.9
    assert heights[0.0][3] == pytest.approx(questions(small("GPT-2")).position_position, abs=1e-6)
    assert points(live, "split")[:, 1].sum().item() == pytest.approx(1)


def test_a_figure_of_a_scale_leaves_the_model_as_it_was():
    model = small("GPT-2", predicts=True)
    before = model.transformer.wpe.weight.clone()
    figures.table_scale(model).set(power=1.0)
    assert model.transformer.wpe.weight.equal(before)


def test_the_clocks_of_a_far_reading_layer_are_slower_or_stand_and_an_axis_moves_its_own_pairs():
    live = figures.clocks()
    hands = {}
    for layer in (0, 4, 5):
        live.set(layer=layer, position=3)
        hands[layer] = [segment[1] for segment in live.artists["Gemma"].get_segments()]
    assert max(abs(a - b).max() for a, b in zip(hands[0], hands[4])) < 1e-5
    assert abs(hands[0][1] - hands[5][1]).max() > 0.1
    assert hands[0][0][0] == pytest.approx(math.cos(3), abs=1e-5)  # pair 0: a radian a position

    def turning(row):
        return [pair for pair in range(8) if said(live, f"{row}, {pair}") != "still"]

    assert turning("Gemma") == list(range(8))
    live.set(model="Gemma 4")
    assert turning("Gemma") == [0, 1]
    live.set(layer=4)
    assert turning("Gemma") == list(range(8))
    seen = []
    for axis in figures.AXES:
        live.set(axis=axis)
        seen.append(turning("Qwen2-VL"))
    assert seen == [[0, 1], [2, 3, 4], [5, 6, 7]]


def test_padding_moves_the_model_that_counts_columns_also_without_its_scores():
    live, names = left_padding(), ("GPT-2", "OPT", "Llama")
    for padding, silent, moved in ((13, False, {"GPT-2"}), (13, True, {"GPT-2"}), (0, True, set())):
        live.set(padding=padding, silent=silent)
        assert {name for name in names if points(live, f"{name}, 0")[:, 1].abs().max() > 1e-4} == moved
        below = {name for name in names if "largest change below 0.01\n" in said(live, f"{name}, readout")}
        assert below == {*names} - moved
