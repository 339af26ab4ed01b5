"""Chapter 1's figures: what they draw is what the subject modules compute."""

import pytest
import torch
from matplotlib.text import Text

from posenc import text
from posenc.chapters.permutation_invariance import figures
from posenc.lesson import controls

FIGURES = [figures.token_vectors, figures.permutation, figures.layers_and_mask]
TOKENS = ["the", "dog", "bit", "the", "man", "."]


@pytest.mark.parametrize("make", FIGURES)
@pytest.mark.parametrize(
    "sentence", ["It costs $5, or $6.", "狗 咬 人 。", "internationalization of notwithstanding words"]
)
def test_any_sentence_can_be_drawn_and_left_again(make, sentence):
    live = make()
    before = live.png()
    typed = live.controls["sentence"].value
    live.set(sentence=sentence)
    assert live.png() != before
    live.set(sentence=typed)
    assert live.png() == before


@pytest.mark.parametrize(
    "make, sentence, message",
    [
        (figures.token_vectors, "", "no words here"),
        (figures.token_vectors, "ha ha!", "type at least 3"),
        (figures.permutation, "ha ha ha", "type at least 3"),
        (figures.layers_and_mask, "ha ha!", "type at least 3"),
        (figures.token_vectors, "a b c d e f g h i j k l m", "there is room for 12"),
    ],
)
def test_a_sentence_that_cannot_be_drawn_says_why(make, sentence, message):
    live = make()
    before = live.png()
    with pytest.raises(ValueError, match=message):
        live.set(sentence=sentence)
    assert message in live.error and live.png() == before
    live.set(sentence="The dog bit the man.")
    assert live.error == ""


def test_words_for_which_there_is_no_room_are_refused():
    assert text.read("ha ha ha!", at_least=2) == ["ha", "ha", "ha", "!"]
    for sentence, at_least in (("", 1), ("ha ha ha", 2), ("a " * 13, 1)):
        with pytest.raises(ValueError):
            text.read(sentence, at_least=at_least)


def test_one_box_moves_all_figures():
    box = controls.sentence_box()
    lives = [make(box) for make in FIGURES]
    before = [live.png() for live in lives]
    box.value = "the cat sat on the mat"
    assert all(live.png() != picture for live, picture in zip(lives, before))


def test_the_matrix_is_permuted_on_both_sides():
    live = figures.permutation()
    live.set(shuffle=0)
    typed = torch.tensor(live.artists["matrix"].get_array()[:6, :6])
    live.set(shuffle=5, keep_last=False)
    p = figures.shuffled(6, 5, keep_last=False)
    now = torch.tensor(live.artists["matrix"].get_array()[:6, :6])
    torch.testing.assert_close(now, typed[p][:, p], rtol=0, atol=1e-6)
    assert (now - typed).abs().max() > 0.1
    assert [live.artists[f"query {n}"].get_text() for n in range(6)] == [TOKENS[place] for place in p]


@pytest.mark.parametrize("length", [2, 3, 6, 12])
def test_every_shuffle_is_a_permutation_and_only_number_0_leaves_the_order(length):
    for number in range(21):
        for keep_last in (True, False):
            order = figures.shuffled(length, number, keep_last)
            assert order.sort().values.tolist() == list(range(length))
            if keep_last:
                assert order[-1] == length - 1
            stays = order.tolist() == list(range(length))
            assert stays == (number == 0 or length - keep_last < 2)


def test_two_different_words_change_places_and_the_last_one_stays():
    assert figures.exchanged(TOKENS) == [0, 4, 2, 3, 1, 5]
    for tokens in (["a", "b", "c"], ["a", "x", "b", "x", "c"], ["a", "a", "b", "a", "a", "c"]):
        order = figures.exchanged(tokens)
        moved = [n for n, place in enumerate(order) if n != place]
        assert len(moved) == 2 and order[-1] == len(tokens) - 1
        assert tokens[moved[0]] != tokens[moved[1]]


def test_bars_show_which_tokens_move():
    live = figures.layers_and_mask()
    live.png()
    assert [live.artists[f"bar {n}"].get_height() > 1e-3 for n in range(6)] == [
        False,
        True,
        True,
        True,
        True,
        False,
    ]
    assert [live.artists[f"number {n}"].get_text() for n in range(7)] == [
        *(f"{live.artists[f'bar {n}'].get_height():.2f}" for n in range(6)),
        "",
    ]
    live.set(mask="none")
    assert max(live.artists[f"bar {n}"].get_height() for n in range(6)) < 1e-12
    live.set(mask="causal", layers=2)
    assert live.artists["bar 5"].get_height() > 1e-3


def test_the_drawing_names_its_parts():
    drawing = figures.attention_drawing()
    assert drawing.png() and not drawing.controls
    words = {text.get_text() for text in drawing.figure.findobj(Text)}
    assert {"query 2", "key 0", "value 1", "output 2", "weighted sum"} <= words
