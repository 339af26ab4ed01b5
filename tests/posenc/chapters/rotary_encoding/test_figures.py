"""Chapter 4's figures: what they draw is what the subject modules compute."""

import math

import pytest
import torch

from posenc.additive import sinusoidal
from posenc.chapters.rotary_encoding import figures
from posenc.rotary import angles, rotate


@pytest.mark.parametrize("degrees", [-180, -90, 0, 30, 135, 180])
def test_the_shadow_is_the_dot_product_and_the_length_stays(degrees):
    live = figures.angle()
    live.set(degrees=degrees)
    (_, x), (_, y) = live.artists["copy"].get_data()
    assert (x, y) == pytest.approx((math.cos(math.radians(degrees)), math.sin(math.radians(degrees))))
    assert live.artists["shadow"].get_xdata()[1] == x == live.artists["now"].get_ydata()[0]
    assert live.artists["readout"].get_text() == f"dot product {figures._signed(x)}, length of the copy 1.00"


def test_the_locked_positions_keep_their_difference_within_the_range():
    live = figures.two_positions()
    m, n = live.controls["m"], live.controls["n"]
    for move, expected in (
        ({"m": 10}, (10, 7)),
        ({"n": 0}, (3, 0)),
        ({"m": 24}, (24, 21)),
        ({"m": 0}, (3, 0)),
    ):
        live.set(**move)
        assert (m.value, n.value) == expected
    live.set(lock=False, m=2, n=9)
    live.set(lock=True)
    assert (m.value, n.value) == (2, 9)  # the query before the key
    for move, expected in (({"n": 24}, (17, 24)), ({"m": 24}, (17, 24)), ({"n": 0}, (0, 7))):
        live.set(**move)
        assert (m.value, n.value) == expected


def test_all_controls_set_at_once_are_taken_as_they_are():
    live = figures.two_positions()
    start, picture = {name: control.value for name, control in live.controls.items()}, live.png()
    live.set(lock=False, m=20)
    assert live.png() != picture
    live.set(**start)
    assert {name: control.value for name, control in live.controls.items()} == start
    assert live.png() == picture
    live.set(m=3, n=20)
    assert (live.controls["m"].value, live.controls["n"].value) == (3, 20)


@pytest.mark.parametrize("lock", [True, False])
def test_the_scores_are_those_of_the_arrows(lock):
    live = figures.two_positions()
    live.set(lock=lock)
    live.set(m=12)
    m, n = live.controls["m"].value, live.controls["n"].value
    assert (m, n) == ((12, 9) if lock else (12, 4))
    for way in ("turned", "added"):
        query, key = (
            torch.tensor([axis[1] for axis in live.artists[f"{way}, {role}"].get_data()])
            for role in ("query", "key")
        )
        score = (query @ key).item()
        assert live.artists[f"{way}, now"].get_data()[1][0] == pytest.approx(score)
        assert live.artists[f"{way}, score"].get_text() == f"score {figures._signed(score)}"
        places, scores = live.artists[f"{way}, scores"].get_data()
        assert scores[list(places).index(m)] == pytest.approx(score)
        assert (scores.max() - scores.min() < 1e-12) == (way == "turned" and lock)


def test_the_arrows_are_turned_and_added_to_by_the_modules():
    live = figures.two_positions()
    live.png()
    query = torch.tensor([0.766, 0.643], dtype=torch.float64)
    tips = {
        "turned": rotate(query, angles(torch.tensor(7), 4, base=16.0)[1:]),
        "added": query + sinusoidal(torch.tensor(7), 4, base=16.0, dtype=torch.float64)[2:],
    }
    for way, tip in tips.items():
        drawn = [axis[1].item() for axis in live.artists[f"{way}, query"].get_data()]
        assert drawn == pytest.approx(tip.tolist())


@pytest.mark.parametrize(
    "q, k", [((1.0, 0.0), (0.0, 1.0)), ((-1.0, 0.1), (-1.0, -0.1)), ((0.0, 2.0), (1.0, 1.0))]
)
def test_the_arc_goes_from_query_to_key_the_short_way(q, k):
    q, k = (torch.tensor(v, dtype=torch.float64) for v in (q, k))
    arc = figures._between(q, k)
    for end, vector in ((arc[:, 0], q), (arc[:, -1], k)):
        torch.testing.assert_close(end, 0.4 * vector / vector.norm())
    assert (arc[:, 1:] - arc[:, :-1]).norm(dim=0).sum() < 0.4 * math.pi


def test_hands_and_wavelengths_are_those_of_the_pairs():
    live = figures.clocks()
    live.set(position=1000, pair=33, power=3.0)
    segments = torch.stack([torch.tensor(hand) for hand in live.artists["hands"].get_segments()])
    hands = segments[:, 1] - segments[:, 0]
    theta = angles(torch.tensor(1000), 128, base=1000.0)
    torch.testing.assert_close(hands, torch.stack([theta.cos(), theta.sin()], dim=1).to(hands))
    wavelengths = 2 * math.pi * 1000 ** (2 * torch.arange(64) / 128)
    drawn = {
        int(pair): length
        for name in ("full", "never")
        for pair, length in zip(*live.artists[name].get_data())
    }
    assert [drawn[pair] for pair in range(64)] == pytest.approx(wavelengths.tolist())
    never = (wavelengths > 4096).sum()
    assert len(live.artists["never"].get_xdata()) == never
    assert live.artists["readout"].get_text().startswith(f"{never} of 64 never complete")
    assert f"pair 33 has turned {1000 / wavelengths[33]:,.2f} times" in live.artists["where"].get_text()


def test_the_curves_of_decay_are_cosines_of_turned_vectors():
    live = figures.decay()
    live.set(offset=200, peak=90, draw=7)
    ones = torch.ones(128, dtype=torch.float64)
    key = rotate(ones, angles(torch.tensor(90), 128))
    for offset in (1, 90, 200, 1024):
        expected = rotate(ones, angles(torch.tensor(offset), 128)) @ key / 128
        assert live.artists["aimed"].get_ydata()[offset - 1] == pytest.approx(expected.item())
    assert live.artists["aimed"].get_ydata()[89] == pytest.approx(1)
    marked = live.artists["now"].get_ydata()
    assert marked[1] == live.artists["aimed"].get_ydata()[199]
    assert marked[2] == live.artists["random"].get_ydata()[199]
    text = ", ".join(
        f"{name} {figures._signed(value)}" for name, value in zip(("aligned", "aimed", "random"), marked)
    )
    assert live.artists["readout"].get_text() == f"offset 200: {text}"


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
    live = figures.low_precision()
    live.set(dtype=dtype, position=position)
    assert live.artists["count"].get_text() == f"{position} is held as {held}"
    assert live.artists["distinct"].get_text() == str(distinct)
    assert live.artists["bar"].get_ydata()[1] == distinct
    x, y = live.artists["held"].get_data()
    assert y[list(x).index(0)] == held - position
    for name, place in (("true hand", position), ("held hand", held)):
        assert live.artists[name].get_xdata()[1] == pytest.approx(math.cos(place))


def test_the_sheets_of_paper_are_drawn_without_a_control():
    live = figures.paper()
    assert live.png() and not live.controls and "Controls" not in repr(live)


def test_rounding_errors_are_drawn_where_there_are_some():
    errors = {"table rounded": torch.tensor([0.001, 0.002]), "positions rounded": torch.tensor([0.0, 0.2])}
    panel = figures.rounding_errors(torch.tensor([100, 300]), errors).figure.axes[0]
    table, positions = (line.get_data() for line in panel.get_lines())
    assert list(table[0]) == [100, 300] and list(positions[0]) == [300]
    assert [text.get_text() for text in panel.get_legend().get_texts()] == list(errors)


def test_every_seed_has_its_dot_at_each_learning_rate():
    rows = {
        0.0: torch.tensor([2.3, 2.4]),
        1.0: torch.tensor([2.2, 2.25]),
        "turned": torch.tensor([2.1, 2.15]),
    }
    panels = figures.by_learning_rate({0.01: rows, 0.03: rows}).figure.axes
    assert [panel.get_title() for panel in panels] == ["learning rate 0.01", "learning rate 0.03"]
    for panel in panels:
        assert [label.get_text() for label in panel.get_xticklabels()] == ["0", "1", "turned"]
        assert [line.get_ydata() for line in panel.get_lines()] == [
            pytest.approx(row.tolist()) for row in rows.values()
        ]


def test_numbers_have_a_true_minus_and_no_negative_zero():
    assert [figures._signed(x) for x in (-0.504, -0.001, 1.0)] == ["−0.50", "0.00", "1.00"]
