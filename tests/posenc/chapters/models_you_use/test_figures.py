"""What chapter 9's figures show, compared with what the probe says. They need transformers, and take seconds."""

import math

import pytest
import torch
from pictures import at

from posenc.chapters.models_you_use import figures
from posenc.chapters.models_you_use.checkpoints import small
from posenc.probe import Questions, questions, scores

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
    live = at(figures.moved_on(), far=7)
    said = {name: live.artists[f"{name}, readout"].get_text() for name in figures.SIX}
    assert {name for name in said if said[name] == "unchanged"} == {"Llama", "Falcon", "T5"}
    live.set(far=0)
    assert all(live.artists[f"{name}, readout"].get_text() == "unchanged" for name in figures.SIX)
    own = at(figures.moved_on(lambda scores: scores - scores.diagonal()[:, None]), far=7)
    said = {name: own.artists[f"{name}, readout"].get_text() for name in figures.SIX}
    assert {name for name in said if said[name] != "unchanged"} == {"GPT-2", "BERT"}


def test_a_sentence_starts_unmoved_where_a_prediction_is_made_and_moved_where_its_answer_is_shown():
    own = figures.moved_on(lambda scores: scores - scores.diagonal()[:, None])
    assert [live.controls["far"].value for live in (figures.moved_on(), own)] == [0, 12]


def test_what_is_drawn_of_a_sentence_is_what_the_softmax_sees_of_it():
    live = at(figures.moved_on(), far=3)
    sentence = [figures.CHARACTERS.index(character) for character in figures.SENTENCE]
    text = torch.tensor([figures.CHARACTERS.index(".")] * 3 + sentence)
    for name in ("GPT-2", "T5"):
        seen = scores(small(name), text)[0, 3:, 3:]
        drawn = torch.tensor(live.artists[name].get_array().filled(-math.inf)).reshape(seen.shape)
        assert (drawn - seen)[seen.isfinite()].abs().max() < 1e-6
        assert drawn.isinf().equal(seen.isinf())


def test_four_numbers_are_the_sum_of_their_parts():
    live = figures.two_by_two()
    names = ("score", "mean", "which token", "which position", "together")
    for last, share in ((0, "share 0.00"), (4, "share 0.80")):
        live.set(last=last)
        score, *parts = (torch.tensor(live.artists[name].get_array()).flatten() for name in names)
        assert score.tolist() == [5, 3, 2, last]
        torch.testing.assert_close(sum(parts), score)
        assert live.artists["together share"].get_text() == share
    assert live.artists["together 01"].get_text() == "−1"


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
    measured = questions(small("GPT-2"))
    assert heights[0.0][3] == pytest.approx(measured.position_position, abs=1e-6)
    split = live.artists["split"].get_ydata()
    assert sum(split) == pytest.approx(1)


def test_the_four_panels_sum_to_what_the_softmax_sees():
    live = at(table_scale(), power=0.0)
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
        return [pair for pair in range(8) if live.artists[f"{row}, {pair}"].get_text() != "still"]

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
    live = left_padding()
    for silent in (False, True):
        live.set(padding=13, silent=silent)
        moved = {name: max(map(abs, live.artists[f"{name}, 0"].get_ydata())) for name in ("GPT-2", "OPT", "Llama")}
        assert moved["GPT-2"] > 0.05 and moved["OPT"] < 1e-4 and moved["Llama"] < 1e-4
        assert "largest change below 0.01\n" in live.artists["OPT, readout"].get_text()
        assert "below" not in live.artists["GPT-2, readout"].get_text()
    live.set(padding=0)
    for name in moved:
        assert max(map(abs, live.artists[f"{name}, 0"].get_ydata())) == 0
        assert "largest change below 0.01\n" in live.artists[f"{name}, readout"].get_text()
