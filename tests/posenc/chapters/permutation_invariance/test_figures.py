"""Chapter 1's figures: what they draw is what the subject modules compute."""

import pytest
import torch
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
    return [live.artists[f"{name} {n}"].get_text() for n in range(count)]


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
        (figures.sentence_shuffled, "", "no words here"),
        (figures.sentence_shuffled, "ha ha!", "type at least 3"),
        (figures.permutation, "ha ha ha", "type at least 3"),
        (figures.layers_and_mask, "ha ha!", "type at least 3"),
        (figures.sentence_shuffled, "a b c d e f g h i j k l m", "there is room for 12"),
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


def heights(live, name):
    return torch.tensor([live.artists[f"{name} {n}"].get_height() for n in range(figures.WIDTH)])


def test_the_first_shuffle_makes_the_man_bite_the_dog_and_threads_join_each_word_to_itself():
    live = at(figures.sentence_shuffled(), shuffle=1)
    assert words(live, "now", 7) == ["the", "man", "bit", "the", "dog", ".", ""]
    assert words(live, "typed", 7) == [*TOKENS, ""]
    live.set(shuffle=5)
    for (above, _), (below, _) in live.artists["threads"].get_segments():
        assert words(live, "typed")[int(above * 6)] == words(live, "now")[int(below * 6)]


def test_no_shuffle_moves_the_last_output_unless_words_are_told_where_they_stand():
    live = at(figures.sentence_shuffled())
    start = heights(live, "bar")
    for shuffle in range(1, 21):
        live.set(shuffle=shuffle, told=False)
        torch.testing.assert_close(heights(live, "bar"), start, rtol=0, atol=1e-12)
        assert live.artists["moved"].get_text() == "moved by 0.00"
        live.set(told=True)
        moved = (heights(live, "bar") - heights(live, "frame")).norm()
        assert (moved > 0.05) == (words(live, "now") != TOKENS)
        assert live.artists["moved"].get_text() == f"moved by {moved:.2f}"


def test_rows_travel_with_their_words_and_columns_too():
    live = at(figures.permutation(), shuffle=0)
    names = ("words", "weights", "outputs")
    typed = {name: torch.tensor(live.artists[name].get_array()[:6]) for name in names}
    live.set(shuffle=5)
    p = shuffled(6, 5, keep_last=False)
    for name, before in typed.items():
        now = torch.tensor(live.artists[name].get_array()[:6])
        if name == "weights":
            now, before = now[:, :6], before[:, :6][:, p]
        torch.testing.assert_close(now, before[p], rtol=0, atol=1e-6)
        assert (now - before).abs().max() > 0.1
    for axis in ("row", "column"):
        assert words(live, axis) == [TOKENS[place] for place in p]


def test_two_of_four_stay_when_all_words_are_shuffled():
    live = figures.permutation()
    for shuffle, moved in ((0, [False] * 4), (1, [False, True, False, True])):
        live.set(shuffle=shuffle)
        widths = [live.artists[f"bar {n}"].get_width() for n in range(4)]
        assert [width > 0.01 for width in widths] == [width > 1e-12 for width in widths] == moved
        assert words(live, "number", 4) == [f"{width:.2f}" for width in widths]


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
    assert [shown != "0.00" for shown in words(live, "number 1,")] == [False, True, True, True, True, False]
    assert words(live, "number 2,", 7) == [""] * 7
    live.set(layers=2)
    assert float(words(live, "number 2,")[5]) > 0 and words(live, "number 2,", 7)[6] == ""
    sizes = live.artists["discs"].get_sizes()
    assert len(sizes) == 12 and [size > 0 for size in sizes[:6]] == [False, True, True, True, True, False]
    live.set(mask="none", layers=4)
    assert {shown for layer in (1, 2, 3, 4) for shown in words(live, f"number {layer},")} == {"0.00"}
    assert not live.artists["discs"].get_sizes().any()
