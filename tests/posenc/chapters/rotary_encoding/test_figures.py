"""Chapter 4's figures: what they draw is what the subject modules compute."""

import math

import pytest
import torch
from artists import points, said
from pictures import at

from posenc.chapters.rotary_encoding import figures
from posenc.chapters.rotary_encoding.figures.turning import _between
from posenc.lesson.drawing import signed
from posenc.rotary import angles, rotate


def rounding_errors():
    positions = torch.arange(0, 1000, 50)
    errors = {"table rounded": 0.001 + 0.0001 * (positions % 7), "positions rounded": 0.2 * (positions > 256)}
    return figures.rounding_errors(positions, errors)


def by_learning_rate():
    seeds = torch.tensor([2.1, 2.2, 2.25])
    return figures.by_learning_rate(
        {0.01: {0.0: seeds + 0.3, 1.0: seeds + 0.2, "turned": seeds}} | {0.03: {3.0: seeds}}
    )


def tip(live, name):
    """The last point of a line."""
    return points(live, name)[-1]


@pytest.mark.parametrize("lock", [True, False])
def test_the_scores_are_those_of_the_arrows(lock):
    live = at(figures.two_positions(), lock=lock)
    live.set(m=12)
    assert live.controls["n"].value == (9 if lock else 4)
    for way in ("turned", "added"):
        score = (tip(live, f"{way}, query") @ tip(live, f"{way}, key")).item()
        assert said(live, f"{way}, score") == f"score {signed(score)}"
        places, scores = points(live, f"{way}, scores").T
        assert places.tolist() == [*range(3 if lock else 0, 13)]  # as far as the query has come
        assert scores[-1].item() == tip(live, f"{way}, now")[1].item() == pytest.approx(score)
        assert (scores.max() - scores.min() < 1e-12) == (way == "turned" and lock)


@pytest.mark.parametrize("q, k", [((1.0, 0.0), (0.0, 1.0)), ((-1.0, 0.1), (-1.0, -0.1)), ((0.0, 2.0), (1.0, 1.0))])
def test_the_arc_goes_from_query_to_key_the_short_way(q, k):
    q, k = (torch.tensor(v, dtype=torch.float64) for v in (q, k))
    arc = _between(q, k)
    for end, vector in ((arc[:, 0], q), (arc[:, -1], k)):
        torch.testing.assert_close(end, 0.4 * vector / vector.norm())
    assert (arc[:, 1:] - arc[:, :-1]).norm(dim=0).sum() < 0.4 * math.pi


def test_play_moves_the_position_of_the_clocks():
    live = figures.clocks()
    play, position = live.view.children[0], live.controls["position"]
    assert (play.min, play.max, play.value) == (position.min, position.max, position.value)
    assert live.view.children[1] is position


def test_what_looks_back_is_the_function_that_was_given():
    asked = []
    live = at(figures.looking_back(lambda *given: asked.append(given) or figures.aimed(5, 64)), back=7, m=9, size=0.1)
    query, key = 0.1 * figures.aimed(5, 64)
    scores = rotate(query.expand(10, -1), angles(torch.arange(10), 64)).flip(0) @ key / 8
    torch.testing.assert_close(points(live, "bars")[:, 1], scores.softmax(0))
    assert asked[-1] == (7, 64) and said(live, "said").startswith("the query at 9 looks most at 4, weight")


def test_two_keys_that_are_sought_at_one_distance_are_lifted_once_and_even_where_they_are_turned():
    live = at(figures.this_key_there(), verb=4, name=4)
    assert points(live, "added, a verb")[:, 1].tolist() == pytest.approx([1.0] * 4 + [2.0] + [1.0] * 8)
    assert said(live, "added, said") == "4 back: verb ahead by 0.3" and said(live, "turned, said") == "4 back: even"


def test_the_tip_of_the_turned_constant_is_in_the_rings_of_the_sinusoid():
    live = at(figures.constant_turned(), p=13, pair=2)
    for name in ("sine", "cosine"):
        torch.testing.assert_close(tip(live, f"{name}, ring"), tip(live, f"{name}, dot"))
    start, end = points(live, "position")
    torch.testing.assert_close(end - start, torch.stack([tip(live, f"{n}, dot")[1] for n in ("cosine", "sine")]))
    assert tip(live, "sum").equal(end)
    query = torch.tensor([0.9, 0.5], dtype=torch.float64)
    torch.testing.assert_close(tip(live, "query"), rotate(query, angles(torch.tensor(13), 8, base=100.0)[[2]]))


@pytest.mark.parametrize(
    "values, low, high, ahead, words",
    [
        ({"last": 0}, 0, 0, 0, "pair 0 alone: "),
        ({"first": 20, "last": 3, "ahead": 40}, 3, 20, 40, "pairs 3 to 20, the key turned by 40 in advance: "),
    ],
)
def test_the_thick_line_is_the_score_of_equal_vectors_in_these_pairs(values, low, high, ahead, words):
    live = at(figures.out_of_step(), **values)
    query = torch.zeros(64, dtype=torch.float64)
    query[2 * low : 2 * high + 2] = (2 * (high - low + 1)) ** -0.5
    key = rotate(query, angles(torch.tensor(ahead), 64))
    scores = rotate(query.expand(129, -1), angles(torch.arange(129), 64)) @ key
    torch.testing.assert_close(points(live, "mean")[::4, 1], scores)
    drawn = [segment[40, 1] for segment in live.artists["cosines"].get_segments()]  # at distance 10
    cosines = ((10 - ahead) * angles(torch.tensor(1), 64)[low : high + 1]).cos().tolist()
    assert len(drawn) == min(5, len(cosines)) and [drawn[0], drawn[-1]] == pytest.approx([cosines[0], cosines[-1]])
    assert tip(live, "peak").tolist() == [ahead, 1] and said(live, "readout").startswith(words)


@pytest.mark.parametrize(
    "turned, marks, still",
    [("nothing", [], True), ("x", ["x"], False), ("q, k and v", ["qk", "qk", "v"], False)]
    + [("q and k", ["qk", "qk"], True)],
)
def test_the_signs_stand_where_it_turns_and_only_q_and_k_leave_the_output(turned, marks, still):
    live = at(figures.where_it_turns(), turned=turned)
    seen = [name.split()[2] for name, mark in live.artists.items() if name != "said" and mark.get_visible()]
    assert sorted(seen) == sorted(marks)
    words = said(live, "said")
    assert words.startswith(f"turned: {turned}. ") and words.endswith("by 0.00") == still
    asked = []
    live = at(figures.where_it_turns(lambda **way: asked.append(way) or 1.25), turned=turned)
    assert asked[-1] == {f"turn_{name}": True for name in marks}
    assert said(live, "said").endswith("the output by 1.25")


def test_positions_are_held_as_the_dtype_holds_them():
    live = at(figures.low_precision(), dtype="float16", position=2049)
    assert said(live, "count") == "2049 is held as 2048"
    assert said(live, "distinct") == "3073" and tip(live, "bar")[1] == 3073
    assert dict(points(live, "held").tolist())[0] == -1
    for name, place in (("true hand", 2049), ("held hand", 2048)):
        assert tip(live, name)[0].item() == pytest.approx(math.cos(place))
