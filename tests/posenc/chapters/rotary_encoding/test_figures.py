"""Chapter 4's figures: what they draw is what the subject modules compute."""

import math

import pytest
import torch
from pictures import at

from posenc.additive import sinusoidal
from posenc.chapters.rotary_encoding import figures
from posenc.chapters.rotary_encoding.figures.turning import _between
from posenc.lesson.drawing import signed
from posenc.rotary import angles, rotate, to_half_split


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
    return [float(axis[-1]) for axis in live.artists[name].get_data()]


@pytest.mark.parametrize("degrees", [-180, -90, 0, 30, 135, 180])
def test_the_shadow_is_the_dot_product_and_the_length_stays(degrees):
    live = at(figures.angle(), degrees=degrees)
    x, y = tip(live, "copy")
    assert (x, y) == pytest.approx((math.cos(math.radians(degrees)), math.sin(math.radians(degrees))))
    assert live.artists["shadow"].get_xdata()[1] == x == live.artists["now"].get_ydata()[0]
    assert live.artists["readout"].get_text() == f"dot product {signed(x)}, length of the copy 1.00"


@pytest.mark.parametrize("lock", [True, False])
def test_the_scores_are_those_of_the_arrows(lock):
    live = at(figures.two_positions(), lock=lock)
    live.set(m=12)
    m, n = live.controls["m"].value, live.controls["n"].value
    assert (m, n) == ((12, 9) if lock else (12, 4))
    for way in ("turned", "added"):
        query, key = (torch.tensor(tip(live, f"{way}, {role}")) for role in ("query", "key"))
        score = (query @ key).item()
        assert tip(live, f"{way}, now")[1] == pytest.approx(score)
        assert live.artists[f"{way}, score"].get_text() == f"score {signed(score)}"
        places, scores = live.artists[f"{way}, scores"].get_data()
        assert list(places) == list(range(3 if lock else 0, m + 1))  # as far as the query has come
        assert scores[-1] == pytest.approx(score)
        assert (scores.max() - scores.min() < 1e-12) == (way == "turned" and lock)


def test_the_arrows_are_turned_and_added_to_by_the_modules():
    live = at(figures.two_positions())
    query = torch.tensor([0.766, 0.643], dtype=torch.float64)
    ends = {
        "turned": rotate(query, angles(torch.tensor(7), 4, base=16.0)[1:]),
        "added": query + sinusoidal(torch.tensor(7), 4, base=16.0, dtype=torch.float64)[2:],
    }
    for way, end in ends.items():
        assert tip(live, f"{way}, query") == pytest.approx(end.tolist())
        scores = live.artists[f"{way}, scores"].get_ydata()
        assert scores.max() - scores.min() > 0.2  # so that the first state does not tell which of them stays


@pytest.mark.parametrize("q, k", [((1.0, 0.0), (0.0, 1.0)), ((-1.0, 0.1), (-1.0, -0.1)), ((0.0, 2.0), (1.0, 1.0))])
def test_the_arc_goes_from_query_to_key_the_short_way(q, k):
    q, k = (torch.tensor(v, dtype=torch.float64) for v in (q, k))
    arc = _between(q, k)
    for end, vector in ((arc[:, 0], q), (arc[:, -1], k)):
        torch.testing.assert_close(end, 0.4 * vector / vector.norm())
    assert (arc[:, 1:] - arc[:, :-1]).norm(dim=0).sum() < 0.4 * math.pi


def test_hands_and_wavelengths_are_those_of_the_pairs():
    live = at(figures.clocks(), position=1000, pair=33, power=3.0)
    segments = torch.stack([torch.tensor(hand) for hand in live.artists["hands"].get_segments()])
    hands = segments[:, 1] - segments[:, 0]
    theta = angles(torch.tensor(1000), 128, base=1000.0)
    torch.testing.assert_close(hands, torch.stack([theta.cos(), theta.sin()], dim=1).to(hands))
    wavelengths = 2 * math.pi * 1000 ** (2 * torch.arange(64) / 128)
    drawn = {int(pair): length for name in ("full", "never") for pair, length in zip(*live.artists[name].get_data())}
    assert [drawn[pair] for pair in range(64)] == pytest.approx(wavelengths.tolist())
    never = (wavelengths > 4096).sum()
    assert len(live.artists["never"].get_xdata()) == never
    assert live.artists["readout"].get_text().startswith(f"{never} of 64 never complete")
    assert f"pair 33 has turned {1000 / wavelengths[33]:,.2f} times" in live.artists["where"].get_text()


def test_play_moves_the_position_of_the_clocks():
    live = figures.clocks()
    play, position = live.view.children[0], live.controls["position"]
    assert (play.min, play.max, play.value) == (position.min, position.max, position.value)
    assert live.view.children[1] is position


def at_distances(query, key, count, head_dim, base=10_000.0):
    return rotate(query.expand(count, -1), angles(torch.arange(count), head_dim, base=base)) @ key


def test_the_weights_of_a_head_that_looks_back_are_those_of_its_query_and_key():
    live = at(figures.looking_back(), back=5, m=9, size=0.1)
    query, key = 0.1 * figures.aimed(5, 64)
    scores = at_distances(query, key, 10, 64).flip(0) / 8  # of the keys 0 … 9, as the query at 9 sees them
    row = live.artists["weights"].get_array()[9]
    assert row[:10].tolist() == pytest.approx(scores.softmax(0).tolist()) and not row[10:].any()
    assert live.artists["bars"].get_ydata().tolist() == pytest.approx(row[:10].tolist())
    assert live.artists["row"].get_y() == 8.5 and list(live.artists["asks"].get_xdata()) == [9, 9]
    assert live.artists["said"].get_text() == f"the query at 9 looks most at 4, weight {row[4]:.2f}"
    other = figures.looking_back(lambda back, d: torch.eye(d, dtype=torch.float64)[[0, 1]])
    assert other.png() != live.png()


@pytest.mark.parametrize("verb, name", [(2, 7), (9, 1), (4, 4)])
def test_a_bias_lifts_both_keys_and_a_turn_each_at_its_own_distance(verb, name):
    live = at(figures.this_key_there(), verb=verb, name=name)
    lines = {name: line.get_ydata() for name, line in live.artists.items() if name.endswith(("verb", "name"))}
    leads = {way: lines[f"{way}, a verb"] - lines[f"{way}, a name"] for way in ("added", "turned")}
    assert leads["added"] == pytest.approx([0.3] * 13)
    for who, place in (("a verb", verb), ("a name", name)):
        assert lines[f"turned, {who}"].argmax() == place and lines[f"turned, {who}"].max() == pytest.approx(2)
    said = live.artists["turned, said"].get_text()
    if verb == name:
        assert said == f"{verb} back: even"
    else:
        first, second = leads["turned"][[verb, name]]
        assert said == f"{verb} back: verb ahead by {first:.1f}, {name} back: name ahead by {-second:.1f}"


@pytest.mark.parametrize("p, pair", [(0, 0), (13, 1), (40, 3)])
def test_the_tip_of_the_turned_constant_is_in_the_rings_of_the_sinusoid(p, pair):
    live = at(figures.constant_turned(), p=p, pair=pair)
    pe = sinusoidal(torch.tensor(p), 8, base=100.0, dtype=torch.float64)[2 * pair : 2 * pair + 2]
    for name, value in zip(("sine", "cosine"), pe.tolist()):
        for mark in ("ring", "dot"):
            assert tip(live, f"{name}, {mark}") == [p, pytest.approx(value, abs=1e-12)]
    (x0, x1), (y0, y1) = live.artists["position"].get_data()
    assert (x1 - x0, y1 - y0) == (pytest.approx(pe[1].item()), pytest.approx(pe[0].item()))
    assert tip(live, "sum") == [x1, y1]
    speed = angles(torch.tensor(1), 8, base=100.0)[pair]
    query = rotate(torch.tensor([0.9, 0.5], dtype=torch.float64), p * speed[None])
    assert tip(live, "query") == pytest.approx(query.tolist())


@pytest.mark.parametrize(
    "values, low, high, ahead",
    [({}, 0, 31, 0), ({"last": 0}, 0, 0, 0), ({"first": 20, "last": 3, "ahead": 40}, 3, 20, 40)],
)
def test_the_thick_line_is_the_score_of_equal_vectors_in_these_pairs(values, low, high, ahead):
    live = at(figures.out_of_step(), **values)
    query = torch.zeros(64, dtype=torch.float64)
    query[2 * low : 2 * high + 2] = (2 * (high - low + 1)) ** -0.5
    scores = at_distances(query, rotate(query, angles(torch.tensor(ahead), 64)), 129, 64)
    assert live.artists["mean"].get_ydata()[::4] == pytest.approx(scores.numpy())
    drawn = [segment[40, 1] for segment in live.artists["cosines"].get_segments()]  # at distance 10
    cosines = ((10 - ahead) * angles(torch.tensor(1), 64)[low : high + 1]).cos().tolist()
    assert len(drawn) == min(5, high - low + 1) and drawn[0] == pytest.approx(cosines[0])
    assert drawn[-1] == pytest.approx(cosines[-1]) and all(min(abs(y - c) for c in cosines) < 1e-6 for y in drawn)
    assert live.artists["peak"].get_xdata() == [ahead]
    readout = live.artists["readout"].get_text()
    assert readout.startswith("pair 0 alone" if low == high else f"pairs {low} to {high}")


@pytest.mark.parametrize("pair", range(4))
def test_the_boxes_of_a_pair_are_those_that_are_turned_together(pair):
    live = at(figures.two_layouts(), pair=pair)
    theta = torch.zeros(4, dtype=torch.float64)
    theta[pair] = 1.0
    ones = torch.ones(8, dtype=torch.float64)
    for layout in ("interleaved", "half-split"):
        moved = (rotate(ones, theta, layout=layout.replace("-", "_")) != ones).nonzero().flatten().tolist()
        boxes = [live.artists[f"{layout}, box {part}"].get_x() for part in (0, 1)]
        assert boxes == pytest.approx([column + 0.08 for column in moved])
        ends = live.artists[f"{layout}, arc"].get_xdata()[[-1, 0]]
        assert ends.tolist() == pytest.approx([column + 0.5 for column in moved])
    order = to_half_split(torch.arange(8), 8).tolist()
    for part in (0, 1):
        above, below = live.artists[f"way {part}"].get_xdata()
        assert order[int(below)] == int(above)


@pytest.mark.parametrize(
    "turned, marks, still",
    [("nothing", [], True), ("x", ["x"], False), ("q, k and v", ["qk", "qk", "v"], False)]
    + [("q and k", ["qk", "qk"], True)],
)
def test_the_signs_stand_where_it_turns_and_only_q_and_k_leave_the_output(turned, marks, still):
    live = at(figures.where_it_turns(), turned=turned)
    seen = [name.split()[2] for name, mark in live.artists.items() if name != "said" and mark.get_visible()]
    assert sorted(seen) == sorted(marks)
    said = live.artists["said"].get_text()
    assert said.startswith(f"turned: {turned}. ") and said.endswith("by 0.00") == still
    asked = []
    live = at(figures.where_it_turns(lambda **way: asked.append(way) or 1.25), turned=turned)
    assert asked[-1] == {f"turn_{name}": True for name in marks}
    assert live.artists["said"].get_text().endswith("the output by 1.25")


@pytest.mark.parametrize(
    "dtype, position, held, distinct",
    [
        ("bfloat16", 255, 255, 769),
        ("bfloat16", 257, 256, 769),
        ("float16", 2049, 2048, 3073),
        ("float32", 4079, 4079, 4096),
    ],
)
def test_positions_are_held_as_the_dtype_holds_them(dtype, position, held, distinct):
    live = at(figures.low_precision(), dtype=dtype, position=position)
    assert live.artists["count"].get_text() == f"{position} is held as {held}"
    assert live.artists["distinct"].get_text() == str(distinct)
    assert live.artists["bar"].get_ydata()[1] == distinct
    x, y = live.artists["held"].get_data()
    assert y[list(x).index(0)] == held - position
    for name, place in (("true hand", position), ("held hand", held)):
        assert live.artists[name].get_xdata()[1] == pytest.approx(math.cos(place))
