"""Chapter 3's figures: what is drawn is what the subject modules compute."""

import math

import pytest
import torch

from posenc.additive import sinusoidal
from posenc.chapters.four_term_expansion import figures
from posenc.geometry import spans_at
from posenc.terms import FourTerms, four_terms, matrix_for
from posenc.text import ROOM, word_vectors


def panel(live, name, length):
    return torch.tensor(live.artists[name].get_array())[:length, :length]


def test_the_panels_are_the_terms_and_their_sum():
    live = figures.four_panels()
    w_query, w_key = figures.weights()
    assert w_query.shape == w_key.shape == (figures.HEAD, figures.WIDTH)
    for power in (-1.7, 0.0, 0.4):
        live.set(power=power, sentence="to be or not to be")
        content = 10**power * word_vectors(["to", "be", "or", "not", "to", "be"], figures.WIDTH)
        position = sinusoidal(torch.arange(6), figures.WIDTH, dtype=content.dtype)
        for name, term in four_terms(content, position, w_query, w_key)._asdict().items():
            torch.testing.assert_close(panel(live, name, 6), term - term.mean(-1, keepdim=True))
        score = (content + position) @ w_query.T @ w_key @ (content + position).T / math.sqrt(figures.HEAD)
        torch.testing.assert_close(panel(live, "sum", 6), score - score.mean(-1, keepdim=True))
        torch.testing.assert_close(panel(live, "weights", 6), score.softmax(-1))


def test_a_term_that_is_left_out_is_blank_and_not_in_the_sum():
    live = figures.four_panels()
    live.png()
    whole = panel(live, "sum", 6)
    for name in FourTerms._fields:
        before = panel(live, name, 6)
        live.set(**{name: False})
        part = panel(live, "sum", 6)
        torch.testing.assert_close(part, whole - before)
        assert panel(live, name, 6).isnan().all()
        assert live.artists[f"{name}, readout"].get_text() == "left out"
        live.set(**{name: True})
    live.set(**dict.fromkeys(FourTerms._fields, False))
    assert (panel(live, "sum", 6) == 0).all()
    torch.testing.assert_close(panel(live, "weights", 6), torch.full((6, 6), 1 / 6, dtype=torch.float64))


def test_all_score_panels_have_one_colour_scale():
    live = figures.four_panels()
    limits = {live.artists[name].get_clim() for name in (*FourTerms._fields, "sum")}
    assert len(limits) == 1
    (low, high), *_ = limits
    assert low == -high


def test_shares_stand_above_the_panels():
    live = figures.four_panels()
    live.png()
    shown = [live.artists[f"{name}, readout"].get_text() for name in FourTerms._fields]
    assert sum(float(text.removeprefix("share ").rstrip("%")) for text in shown) == pytest.approx(
        100, abs=0.25
    )
    live.set(power=-1.7)
    assert float(live.artists["position_position, readout"].get_text()[6:-1]) > 90
    assert "std 0.02" in live.artists["sum, readout"].get_text()


def test_a_sentence_that_does_not_fit_is_refused_in_words():
    live = figures.four_panels()
    for sentence, message in (("", "no words here"), ("one", "at least 2"), ("a b " * 8, f"room for {ROOM}")):
        with pytest.raises(ValueError, match=message):
            live.set(sentence=sentence)
        assert message in live.error
    live.set(sentence="one two three")
    assert live.error == ""


def test_the_histogram_counts_all_pairs_and_its_spread_is_that_of_cosines():
    live = figures.random_cosines()
    for width in (8, 384, 1024):
        live.set(width=width)
        values, edges, _ = live.artists["bars"].get_data()
        assert values.sum() == pytest.approx(1)
        middle = (edges[1:] + edges[:-1]) / 2
        spread = live.artists["spread"].get_ydata()[0]
        assert math.sqrt((values * middle**2).sum()) == pytest.approx(spread, rel=0.05)
        assert spread * math.sqrt(width) == pytest.approx(1, abs=0.06)
        curve = live.artists["expected"].get_ydata()
        assert curve.max() == pytest.approx(values.max(), rel=0.3)


def numbers(live, name):
    return torch.tensor(live.artists[name].get_data(), dtype=torch.float64)


def test_what_an_angle_costs_is_1_over_sine_and_its_square():
    live = figures.angle_cost()
    live.set(noise=1.0)
    curve = dict(zip(*live.artists["error"].get_data()))
    seen = {}
    for angle in (90, 30, 10, 1):
        live.set(angle=angle)
        size, error = numbers(live, "now")[1].tolist()
        assert numbers(live, "now")[0].tolist() == [angle, angle]
        assert error == pytest.approx(curve[angle])
        seen[angle] = size, error
    for angle in (30, 10, 1):
        sine = math.sin(math.radians(angle))
        assert seen[angle][0] == pytest.approx(1 / sine**2, rel=0.15)
        assert 0.4 / sine < seen[angle][1] / seen[90][1] < 1.5 / sine
    live.set(noise=0.0)
    assert numbers(live, "error")[1].max() == 0


def test_the_error_of_noisy_scores_is_that_of_noisy_vectors():
    live = figures.angle_cost()
    live.set(noise=10.0, angle=5)
    generator = torch.Generator().manual_seed(0)
    wanted = torch.block_diag(*torch.randn(2, 8, 8, generator=generator, dtype=torch.float64))
    noise = torch.randn(16, figures.WIDTH, generator=generator, dtype=torch.float64) / figures.WIDTH**0.5
    vectors = torch.cat(spans_at(5, 8, figures.WIDTH, torch.Generator().manual_seed(1)))
    noisy, matrix = vectors + 0.1 * noise, matrix_for(vectors, wanted)
    error = (noisy @ matrix @ noisy.T - wanted).norm() / wanted.norm()
    assert numbers(live, "now")[1, 1] == pytest.approx(error.item())
    assert "5°" in live.artists["readout"].get_text()


def test_the_content_is_read_along_the_positions_direction():
    live = figures.angle_cost()
    for angle, noise in ((90, 5.0), (30, 5.0), (30, 10.0), (5, 5.0)):
        live.set(angle=angle, noise=noise)
        dots, read = numbers(live, "dots"), numbers(live, "ticks")[0]
        turned = math.radians(angle)
        along = (dots[0] - read) * math.sin(turned) - dots[1] * math.cos(turned)
        assert along.abs().max() < 1e-9
        # noise in the reading: that of a dot over the sine of the angle
        assert read.std() / dots[1].std() * math.sin(turned) == pytest.approx(1, rel=0.35)
        assert read.mean() == pytest.approx(1, abs=0.15)


def made_up(seeds=3, steps=(0, 500)):
    generator = torch.Generator().manual_seed(0)
    ways = ("one", "another")
    within = {way: {step: torch.rand(seeds, 3, generator=generator) * 0.7 for step in steps} for way in ways}
    smallest = {way: {step: torch.rand(seeds, 3, generator=generator) * 90 for step in steps} for way in ways}
    sizes = {
        way: {step: torch.tensor([20, 5 + step // 100]).expand(seeds, 3, 2) for step in steps} for way in ways
    }
    return within, smallest, sizes


def test_the_subspaces_of_the_chosen_step_stand_beside_random_ones():
    within, smallest, sizes = made_up()
    live = figures.subspaces(within, smallest, sizes)
    for step, positions in ((500, 10), (0, 5)):
        live.set(step=step)
        for place, title in enumerate(("at the embedding", "behind layer 0", "behind layer 1")):
            for name, values in (("within", within), ("smallest", smallest)):
                expected = torch.cat([values[way][step][:, place] for way in values])
                torch.testing.assert_close(numbers(live, f"{name}, {title}")[1], expected.double())
            assert set(numbers(live, f"contents, {title}")[1].tolist()) == {20}
            assert set(numbers(live, f"positions, {title}")[1].tolist()) == {positions}
            assert numbers(live, f"within, {title}, random")[1].tolist() == [positions / 64] * 2
    across = numbers(live, "within, at the embedding")[0]
    assert len(across.unique()) == 6 and ((across - across.round()).abs() < 0.3).all()


def test_the_maps_show_the_chosen_seed_and_head_without_row_means():
    generator = torch.Generator().manual_seed(0)
    before, after = (
        {name: torch.randn(3, 2, 8, 8, generator=generator) for name in ("one", "two")} for _ in range(2)
    )
    live = figures.position_maps(before, after)
    live.set(seed=2, head=1)
    shown = torch.tensor(live.artists["two, after"].get_array())
    visible = torch.ones(8, 8, dtype=torch.bool).tril()
    assert shown[~visible].isnan().all()
    term = after["two"][2, 1]
    rows = [term[m, : m + 1] - term[m, : m + 1].mean() for m in range(8)]
    largest = max(row.abs().max() for row in rows)
    for m, row in enumerate(rows):
        torch.testing.assert_close(shown[m, : m + 1], row / largest)
    assert f"largest {largest:.2f}" == live.artists["two, after, readout"].get_text()
    assert live.sweep() > 0


def test_every_seed_has_its_dot():
    seeds = 5
    generator = torch.Generator().manual_seed(0)
    before, after = (
        {name: torch.rand(seeds, 4, generator=generator) for name in ("a", "b")} for _ in range(2)
    )
    what = [*figures.NAMES, "both mixed", "query's place"]
    lost = {name: {key: torch.rand(seeds, generator=generator) for key in what} for name in ("a", "b")}
    live = figures.every_seed(before, after, lost)
    assert live.png() and live.alt
    upper, lower = live.figure.axes[:2], live.figure.axes[2:]
    for axes, name in zip(upper, ("a", "b")):
        drawn = [list(line.get_ydata()) for line in axes.get_lines()]
        assert len(drawn) == 8 and all(len(values) == seeds for values in drawn)
        assert drawn[0] == before[name][:, 0].tolist() and drawn[7] == after[name][:, 3].tolist()
    for axes, name in zip(lower, ("a", "b")):
        drawn = [list(line.get_ydata()) for line in axes.get_lines() if len(line.get_ydata()) == seeds]
        assert drawn == [values.tolist() for values in lost[name].values()]
        assert [text.get_text() for text in axes.get_xticklabels()][:2] == ["c → c", "c → p"]
