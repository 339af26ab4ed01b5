"""Chapter 3's figures: what is drawn is what the subject modules compute."""

import math

import pytest
import torch
from pictures import at

from posenc.additive import sinusoidal
from posenc.chapters.four_term_expansion import figures
from posenc.chapters.four_term_expansion.distances import fit_by_distance
from posenc.chapters.four_term_expansion.figures.terms import HEAD, WIDTH
from posenc.geometry import spans_at
from posenc.terms import FourTerms, four_terms, matrix_for
from posenc.text import word_vectors


def missed():
    shares = torch.tensor([[0.6, 0.1, 0.2, 0.1], [0.5, 0.2, 0.1, 0.2]])
    removed = {term: torch.tensor([0.1, 0.3]) * n for n, term in enumerate([*figures.NAMES, "both mixed"])}
    less = {term: values / 2 for term, values in removed.items()}
    return figures.missed({"a": shares, "b": 1 - shares}, {"a": shares / 2, "b": shares}, {"a": removed, "b": less})


def wanted_by_places():
    own = torch.linspace(-2, 2, 10).sin() + torch.linspace(-0.5, 1, 400).view(2, 2, 10, 10).square()
    return figures.wanted_by_places(own, "to be, or\n")


def position_maps():
    before = torch.linspace(-2, 2, 400).view(2, 2, 10, 10)
    return figures.position_maps({"a": before, "b": before.mT}, {"a": before / 2, "b": -before})


STEPS, WAYS = (0, 500, 1500), ("a", "another way")
DOTS = torch.linspace(0, 1, 36).view(2, 3, 2, 3)  # ways, steps, seeds, places
WITHIN, SMALLEST = ({way: dict(zip(STEPS, most * dots)) for way, dots in zip(WAYS, DOTS)} for most in (0.7, 90))


def subspaces():
    sizes = {
        way: {step: torch.tensor([25 + n, 5 + step // 100]).expand(2, 3, 2) for step in STEPS}
        for n, way in enumerate(WAYS)
    }
    return figures.subspaces(WITHIN, SMALLEST, sizes)


def panel(live, name, length):
    return torch.tensor(live.artists[name].get_array())[:length, :length]


def numbers(live, name):
    return torch.stack([torch.as_tensor(axis, dtype=torch.float64) for axis in live.artists[name].get_data()])


def level(scores):
    """Scores as a softmax sees them."""
    return scores - scores.mean(-1, keepdim=True)


def test_the_panels_are_the_terms_and_their_sum():
    live = figures.four_panels()
    w_query, w_key = figures.weights()
    assert w_query.shape == w_key.shape == (HEAD, WIDTH)
    for power in (-1.7, 0.0, 0.4):
        live.set(power=power, sentence="to be or not to be")
        content = 10**power * word_vectors(["to", "be", "or", "not", "to", "be"], WIDTH)
        position = sinusoidal(torch.arange(6), WIDTH, dtype=content.dtype)
        for name, term in four_terms(content, position, w_query, w_key)._asdict().items():
            torch.testing.assert_close(panel(live, name, 6), level(term))
        score = (content + position) @ w_query.T @ w_key @ (content + position).T / math.sqrt(HEAD)
        torch.testing.assert_close(panel(live, "sum", 6), level(score))
        torch.testing.assert_close(panel(live, "weights", 6), score.softmax(-1))


def test_a_term_that_is_left_out_is_blank_and_not_in_the_sum():
    live = at(figures.four_panels())
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


def test_shares_stand_above_the_panels():
    live = at(figures.four_panels())
    shown = [live.artists[f"{name}, readout"].get_text() for name in FourTerms._fields]
    assert sum(float(text.removeprefix("share ").rstrip("%")) for text in shown) == pytest.approx(100, abs=0.25)
    live.set(power=-1.7)
    assert float(live.artists["position_position, readout"].get_text()[6:-1]) > 90
    assert "std 0.02" in live.artists["sum, readout"].get_text()


def test_one_word_is_refused_and_three_are_not():
    live = figures.four_panels()
    with pytest.raises(ValueError, match="at least 2"):
        live.set(sentence="one")
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
        assert curve.max().item() == pytest.approx(values.max(), rel=0.3)


def test_what_an_angle_costs_is_1_over_sine_and_its_square():
    live = at(figures.angle_cost(), noise=1.0)
    curve = dict(zip(*numbers(live, "error").tolist()))
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
    live = at(figures.angle_cost(), noise=10.0, angle=5)
    generator = torch.Generator().manual_seed(0)
    wanted = torch.block_diag(*torch.randn(2, 8, 8, generator=generator, dtype=torch.float64))
    noise = torch.randn(16, WIDTH, generator=generator, dtype=torch.float64) / WIDTH**0.5
    vectors = torch.cat(spans_at(5, 8, WIDTH, torch.Generator().manual_seed(1)))
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


def test_the_subspaces_of_the_chosen_step_stand_beside_random_ones():
    live = subspaces()
    for step, positions in ((500, 10), (0, 5)):
        live.set(step=step)
        for place, title in enumerate(("at the embedding", "behind layer 0", "behind layer 1")):
            for name, values in (("within", WITHIN), ("smallest", SMALLEST)):
                expected = torch.cat([values[way][step][:, place] for way in WAYS])
                torch.testing.assert_close(numbers(live, f"{name}, {title}")[1], expected.double())
            assert numbers(live, f"contents, {title}")[1].tolist() == [25] * 2 + [26] * 2
            assert set(numbers(live, f"positions, {title}")[1].tolist()) == {positions}
            assert numbers(live, f"within, {title}, random")[1].tolist() == [positions / 64] * 2
    across = numbers(live, "within, at the embedding")[0]
    assert len(across.unique()) == 4 and ((across - across.round()).abs() < 0.3).all()


def test_the_maps_show_the_chosen_seed_and_head_without_the_numbers_of_rows():
    generator = torch.Generator().manual_seed(0)
    before, after = ({name: torch.randn(3, 2, 8, 8, generator=generator) for name in ("one", "two")} for _ in range(2))
    live = at(figures.position_maps(before, after), seed=2, head=1)
    shown = torch.tensor(live.artists["two, after"].get_array())
    visible = torch.ones(8, 8, dtype=torch.bool).tril()
    assert shown[~visible].isnan().all()
    fitted = fit_by_distance(after["two"][2])[0][1]
    torch.testing.assert_close(shown[visible], (fitted / fitted.abs().max())[visible])
    assert f"largest {fitted.abs().max():.2f}" == live.artists["two, after, readout"].get_text()


def test_what_distances_explain_is_all_of_stripes_little_of_noise_and_a_part_of_a_mixture():
    m, n = torch.arange(32)[:, None].double(), torch.arange(32).double()
    noise = torch.randn(4, 32, 32, generator=torch.Generator().manual_seed(1))
    stripes = ((m - n) / 4).sin().expand(4, 32, 32)
    levels, explained = zip(*map(fit_by_distance, (noise, noise + stripes, stripes + m.square())))
    assert explained[0] < 0.15 and 0.2 < explained[1] < 0.6 and explained[2] == pytest.approx(1)
    for head in levels[2]:  # whatever the rows have more
        assert head.triu(1).abs().max() == 0
        assert max(head.diagonal(-distance).std(correction=0) for distance in range(32)) < 1e-9


def test_the_rectangle_has_the_areas_of_its_corners():
    live = figures.rectangle()
    for x, e, x_asked, e_asked in ((3, 2, 4, 2), (1, 4, 0, 3), (0, 0, 4, 4)):
        live.set(x=x, e=e, x_asked=x_asked, e_asked=e_asked)
        areas = [x * x_asked, x * e_asked, e * x_asked, e * e_asked]
        drawn = [live.artists[name].get_width() * live.artists[name].get_height() for name in FourTerms._fields]
        assert drawn == areas
        corner = live.artists["position_position"]
        assert (corner.get_x(), corner.get_y()) == (x_asked, x)
        said = f"{' + '.join(map(str, areas))} = {(x + e) * (x_asked + e_asked)}"
        assert live.artists["total"].get_text().endswith(said)


def test_panels_without_names_are_the_four_terms_and_the_switch_names_them():
    live = at(figures.unlabelled())
    assert [live.artists[f"{letter}, name"].get_text() for letter in "ABCD"] == [*"ABCD"]
    live.set(sentence="so it goes so it", named=True)
    tokens = ["so", "it", "goes", "so", "it"]
    x = word_vectors(tokens, WIDTH)
    e = sinusoidal(torch.arange(5), WIDTH, dtype=x.dtype)
    terms = four_terms(x, e, *figures.weights())._asdict()
    named = {live.artists[f"{letter}, name"].get_text()[3:]: letter for letter in "ABCD"}
    assert named.keys() == {*figures.NAMES}
    for field, name in figures.NAMES._asdict().items():
        term = terms[field]
        torch.testing.assert_close(panel(live, named[name], 5), level(term))


def test_the_mean_place_levels_the_rows():
    generator = torch.Generator().manual_seed(0)
    own = torch.randn(2, 2, 6, 6, generator=generator)
    live = at(figures.wanted_by_places(own, "a bcd\n"), seed=1, head=1)
    expected = level(own[1, 1])
    visible = torch.ones(6, 6, dtype=torch.bool).tril()
    for name, rows in (("own", expected), ("mean", expected.mean(0).expand(6, 6))):
        shown = torch.tensor(
            live.artists[f"each query with {'its' if name == 'own' else 'the'} {name} place"].get_array()
        )
        torch.testing.assert_close(shown[visible], (rows / expected[visible].abs().max())[visible])
        assert shown[~visible].isnan().all()
    assert [label.get_text() for label in live.figure.axes[0].get_xticklabels()] == [*"a␣bcd↵"]


def test_the_chosen_encoding_has_its_dots_and_its_means():
    seeds = 5
    generator = torch.Generator().manual_seed(0)
    before, after = ({name: torch.rand(seeds, 4, generator=generator) for name in ("a", "b")} for _ in range(2))
    what = [*figures.NAMES, "both mixed", "query's own place"]
    lost = {name: {key: torch.rand(seeds, generator=generator) for key in what} for name in ("a", "b")}
    live = figures.missed(before, after, lost)
    for encoding in ("b", "a"):
        live.set(encoding=encoding)
        for row, name in enumerate(what):
            across, height = numbers(live, f"{name}, lost")
            torch.testing.assert_close(across, lost[encoding][name].double())
            assert ((height - row).abs() < 0.3).all()
            assert live.artists[f"{name}, mean"].get_text() == f"{across.mean():.2f}"
            if row < 4:
                for when, shares in (("before", before), ("after", after)):
                    assert numbers(live, f"{name}, {when}")[0].equal(shares[encoding][:, row].double())


def test_a_wider_space_has_random_subspaces_nearer_to_right_angles():
    live = figures.sheets()
    nearest = []
    for width in (64, 384, 768):
        live.set(width=width)
        angles = numbers(live, "line")[1]
        assert len(angles) == 9 and (angles.diff() > 0).all()
        nearest.append(angles[0].item())
        assert numbers(live, "first")[1].tolist() == nearest[-1:]
        assert f"in {width}: {nearest[-1]:.0f}°" in live.artists["readout"].get_text()
    assert 26 < nearest[0] < 36 and 65 < nearest[1] < 72 and 72 < nearest[2] < 78
