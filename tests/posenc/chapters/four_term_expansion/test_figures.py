"""Chapter 3's figures: what is drawn is what the subject modules compute."""

import pytest
import torch
from artists import points, said, shown
from pictures import at

from posenc.additive import sinusoidal
from posenc.chapters.four_term_expansion import figures
from posenc.chapters.four_term_expansion.distances import fit_by_distance
from posenc.chapters.four_term_expansion.figures.terms import WIDTH
from posenc.terms import FourTerms, four_terms
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


def level(scores):
    """Scores as a softmax sees them."""
    return scores - scores.mean(-1, keepdim=True)


def terms_of(sentence, scale=1.0):
    x = scale * word_vectors(sentence.split(), WIDTH)
    return four_terms(x, sinusoidal(torch.arange(len(x)), WIDTH, dtype=x.dtype), *figures.weights())._asdict()


def test_the_panels_are_the_terms_and_their_sum_but_for_one_that_is_left_out():
    live = at(figures.four_panels(), power=0.4, sentence="to be or not to be", content_position=False)
    terms = terms_of("to be or not to be", 10**0.4)
    assert shown(live, "content_position", 6).isnan().all() and said(live, "content_position, readout") == "left out"
    del terms["content_position"]
    for name, term in terms.items():
        torch.testing.assert_close(shown(live, name, 6), level(term))
    torch.testing.assert_close(shown(live, "sum", 6), level(sum(terms.values())))
    torch.testing.assert_close(shown(live, "weights", 6), sum(terms.values()).softmax(-1))
    live.set(**dict.fromkeys(FourTerms._fields, False))
    assert (shown(live, "sum", 6) == 0).all()


def test_one_word_is_refused():
    for make in (figures.four_panels, figures.unlabelled):
        with pytest.raises(ValueError, match="at least 2"):
            make().set(sentence="one")


def test_the_subspaces_of_the_chosen_step_stand_beside_random_ones():
    live = at(subspaces(), step=500)
    for place, title in enumerate(("at the embedding", "behind layer 0", "behind layer 1")):
        for name, values in (("within", WITHIN), ("smallest", SMALLEST)):
            expected = torch.cat([values[way][500][:, place] for way in WAYS])
            torch.testing.assert_close(points(live, f"{name}, {title}")[:, 1], expected.double())
        assert points(live, f"contents, {title}")[:, 1].tolist() == [25] * 2 + [26] * 2
        assert points(live, f"positions, {title}")[:, 1].tolist() == [10] * 4
        assert points(live, f"within, {title}, random")[:, 1].tolist() == [10 / 64] * 2


def test_what_distances_explain_is_all_of_stripes_little_of_noise_and_a_part_of_a_mixture():
    m, n = torch.arange(32)[:, None].double(), torch.arange(32).double()
    noise = torch.randn(4, 32, 32, generator=torch.Generator().manual_seed(1))
    stripes = ((m - n) / 4).sin().expand(4, 32, 32)
    levels, explained = zip(*map(fit_by_distance, (noise, noise + stripes, stripes + m.square())))
    assert explained[0] < 0.15 and 0.2 < explained[1] < 0.6 and explained[2] == pytest.approx(1)
    for head in levels[2]:  # whatever the rows have more
        assert head.triu(1).abs().max() == 0
        assert max(head.diagonal(-distance).std(correction=0) for distance in range(32)) < 1e-9


def test_panels_without_names_are_the_four_terms_and_the_switch_names_them():
    live = at(figures.unlabelled())
    assert [said(live, f"{letter}, name") for letter in "ABCD"] == [*"ABCD"]
    live.set(sentence="so it goes so it", named=True)
    named = {said(live, f"{letter}, name")[3:]: letter for letter in "ABCD"}
    for term, name in zip(terms_of("so it goes so it").values(), figures.NAMES):
        torch.testing.assert_close(shown(live, named[name], 5), level(term))


def test_the_chosen_seed_and_encoding_have_their_maps_and_dots():
    terms = torch.randn(2, 2, 8, 8)
    live = at(figures.position_maps({"a": terms, "b": terms}, {"a": terms, "b": -terms}), seed=1)
    fitted = fit_by_distance(-terms[1])[0][0]
    assert said(live, "b, after, readout") == f"largest {fitted.abs().max():.2f}"
    live = at(missed(), encoding="b")
    for row, name in enumerate(figures.NAMES):
        assert points(live, f"{name}, lost")[:, 0].tolist() == pytest.approx([row / 20, 3 * row / 20])
        assert said(live, f"{name}, mean") == f"{row / 10:.2f}"
