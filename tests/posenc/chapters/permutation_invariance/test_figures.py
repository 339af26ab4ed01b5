"""Chapter 1's figures: what they draw is what the subject modules compute."""

import pytest
import torch
from artists import said, shown
from pictures import at

from posenc import text
from posenc.chapters.permutation_invariance import figures
from posenc.chapters.permutation_invariance.orders import exchanged, shuffled
from posenc.lesson import controls

FIGURES = [figures.sentence_shuffled, figures.permutation, figures.layers_and_mask]
TOKENS = ["the", "dog", "bit", "the", "man", "."]


def norms_by_position():
    seen = torch.arange(1.0, 65.0)
    return figures.norms_by_position(2 * seen**-0.5, torch.full((64,), 0.5))


def right_by_places():
    shares = torch.arange(9.0)[:, None] / 8 * torch.ones(9)
    return figures.right_by_places(shares.fill_diagonal_(torch.nan))


def words(live, name, count=6):
    return [said(live, f"{name} {n}") for n in range(count)]


@pytest.mark.parametrize("make", FIGURES)
@pytest.mark.parametrize(
    "sentence", ["It costs $5, or $6.", "狗 咬 人 。", "internationalization of notwithstanding words"]
)
def test_any_sentence_can_be_drawn_and_left_again(make, sentence):
    live = make()
    before, typed = live.png(), live.controls["sentence"].value
    live.set(sentence=sentence)
    assert live.png() != before
    live.set(sentence=typed)
    assert live.png() == before


@pytest.mark.parametrize("make", FIGURES)
def test_a_sentence_of_fewer_than_three_words_is_refused(make):
    live = make()
    before = live.png()
    with pytest.raises(ValueError, match="type at least 3"):
        live.set(sentence="ha ha!")
    assert live.png() == before


@pytest.mark.parametrize(
    "sentence, message",
    [("", "no words here"), ("ha ha!", "type at least 3"), ("a b c d e f g h i j k l m", "there is room for 12")],
)
def test_what_is_no_sentence_says_why(sentence, message):
    assert text.read("ha ha ha!", at_least=2) == ["ha", "ha", "ha", "!"]
    with pytest.raises(ValueError, match=message):
        text.read(sentence, at_least=3)


def test_one_box_moves_all_figures():
    box = controls.sentence_box()
    lives = [make(box) for make in FIGURES]
    before = [live.png() for live in lives]
    box.value = "the cat sat on the mat"
    assert all(live.png() != picture for live, picture in zip(lives, before))


def heights(live, name):
    return torch.tensor([live.artists[f"{name} {n}"].get_height() for n in range(figures.WIDTH)])


def test_the_first_shuffle_makes_the_man_bite_the_dog_and_threads_join_each_word_to_itself():
    live = at(figures.sentence_shuffled(), shuffle=1)
    assert words(live, "now", 7) == ["the", "man", "bit", "the", "dog", ".", ""]
    live.set(shuffle=5)
    for (above, _), (below, _) in live.artists["threads"].get_segments():
        assert words(live, "typed")[int(above * 6)] == words(live, "now")[int(below * 6)]


def test_no_shuffle_moves_the_last_output_unless_words_are_told_where_they_stand():
    live = at(figures.sentence_shuffled())
    start = heights(live, "bar")
    for shuffle in (1, 2, 20):
        live.set(shuffle=shuffle, told=False)
        torch.testing.assert_close(heights(live, "bar"), start, rtol=0, atol=1e-12)
        assert said(live, "moved") == "moved by 0.00"
        live.set(told=True)
        moved = (heights(live, "bar") - heights(live, "frame")).norm()
        assert moved > 0.05 and said(live, "moved") == f"moved by {moved:.2f}"


def test_rows_travel_with_their_words_and_columns_too():
    live, p = at(figures.permutation(), shuffle=0), shuffled(6, 5, keep_last=False)
    typed = {name: shown(live, name, 6) for name in ("words", "weights", "outputs")}
    live.set(shuffle=5)
    for name, before in typed.items():
        moved = before[p][:, p] if name == "weights" else before[p]
        torch.testing.assert_close(shown(live, name, 6), moved, rtol=0, atol=1e-6)
    assert words(live, "row") == words(live, "column") == [TOKENS[place] for place in p]


def test_two_of_four_stay_when_all_words_are_shuffled():
    live = figures.permutation()
    for shuffle, moved in ((0, [False] * 4), (1, [False, True, False, True])):
        live.set(shuffle=shuffle)
        widths = [live.artists[f"bar {n}"].get_width() for n in range(4)]
        assert [width > 0.01 for width in widths] == [width > 1e-12 for width in widths] == moved
        assert words(live, "number", 4) == [f"{width:.2f}" for width in widths]
    orders = [shuffled(6, shuffle, keep_last=False).tolist() for shuffle in range(21)]
    live.set(shuffle=next(n for n, order in enumerate(orders) if order[0] == 0 and order[-1] != 5))
    assert live.artists["bar 1"].get_width() > 0.01  # of the last row, not of the first


@pytest.mark.parametrize("length", [2, 3, 6, 12])
def test_every_shuffle_is_a_permutation_and_only_number_0_leaves_the_order(length):
    for number in range(21):
        for keep_last in (True, False):
            order = shuffled(length, number, keep_last=keep_last)
            assert order.sort().values.tolist() == list(range(length))
            if keep_last:
                assert order[-1] == length - 1
            stays = order.tolist() == list(range(length))
            assert stays == (number == 0 or length - keep_last < 2)


def test_two_different_words_change_places_and_the_last_one_stays():
    assert exchanged(TOKENS) == [0, 4, 2, 3, 1, 5]
    for tokens in (["a", "b", "c"], ["a", "x", "b", "x", "c"], ["a", "a", "b", "a", "a", "c"]):
        order = exchanged(tokens)
        moved = [n for n, place in enumerate(order) if n != place]
        assert len(moved) == 2 and order[-1] == len(tokens) - 1
        assert tokens[moved[0]] != tokens[moved[1]]


def test_an_exchange_travels_from_layer_to_layer_to_the_last_token_under_a_mask():
    live = at(figures.layers_and_mask())
    assert words(live, "word") == "the man bit the dog .".split()
    assert [moved != "0.00" for moved in words(live, "number 1,")] == [False, True, True, True, True, False]
    live.set(layers=2)
    assert float(words(live, "number 2,")[5]) > 0 and words(live, "number 2,", 7)[6] == ""
    sizes = live.artists["discs"].get_sizes()
    assert len(sizes) == 12 and [size > 0 for size in sizes[:6]] == [False, True, True, True, True, False]
    live.set(mask="none", layers=4)
    assert {moved for layer in (1, 2, 3, 4) for moved in words(live, f"number {layer},")} == {"0.00"}
    assert not live.artists["discs"].get_sizes().any()
