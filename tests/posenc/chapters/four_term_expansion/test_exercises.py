"""Chapter 3's checks: every mistake is planted and must be called by its name."""

import math

import numpy as np
import pytest
import torch
from planted import verdict

from posenc.chapters.four_term_expansion import exercises

# ------------------------------------------------------------------ four parts


def right_parts(x, e, w_query, w_key, b_query, b_key, *, e_bias=False, x_bias=True, order=(0, 1, 2, 3), scale=0.5):
    queries = [x @ w_query.T + b_query * x_bias, e @ w_query.T + b_query * e_bias]
    keys = [x @ w_key.T + b_key * x_bias, e @ w_key.T + b_key * e_bias]
    found = [q @ k.T / len(w_query) ** scale for q in queries for k in keys]
    return torch.stack([found[i] for i in order])


def parts_with(**options):
    return lambda *inputs: right_parts(*inputs, **options)


def joined_the_other_way(x, e, w_query, w_key, b_query, b_key):
    """W_q W_kᵀ as the matrix between; it fits where d_head = d."""
    return torch.stack([a @ w_query @ w_key.T @ b.T for a in (x, e) for b in (x, e)]) / math.sqrt(len(w_query))


def scaled_by_the_model(x, e, w_query, *rest):
    return right_parts(x, e, w_query, *rest) * math.sqrt(len(w_query) / x.shape[1])


def without(*names):
    def parts(x, e, w_query, w_key, b_query, b_key):
        return right_parts(x, e, w_query, w_key, b_query * ("q" not in names), b_key * ("k" not in names))

    return parts


def first_term_only(*inputs):
    found = right_parts(*inputs)
    return torch.stack([found[0], found[1], found[2], found[2]])


# ---------------------------------------------------------------- one question


def right_one_question(x, e, wanted):
    return torch.einsum("ni,nt,tj->ij", x, wanted, e)


def the_other_question(x, e, wanted):
    return right_one_question(x, e, wanted).T


def both_mixed(x, e, wanted):
    return right_one_question(x, e, wanted) + the_other_question(x, e, wanted)


def without_wanted(x, e, wanted):
    return x.T @ torch.eye(len(x), len(e), dtype=x.dtype) @ e


def words_too(x, e, wanted):
    return right_one_question(x, e, wanted) + x.T @ x


# ---------------------------------------------------------------------- shares


def right_seen(terms, *, over=-1, power=2.0, root=1.0, centre=True):
    if centre:
        terms = terms - terms.mean(over, keepdim=True)
    energy = terms.abs().pow(power).sum((-1, -2)) ** root
    return energy / energy.sum()


def seen_with(**options):
    return lambda terms: right_seen(terms, **options)


def energies(terms):
    return (terms - terms.mean(-1, keepdim=True)).square().sum((-1, -2))


def over_the_sum(terms):
    total = (terms - terms.mean(-1, keepdim=True)).sum(0)
    return energies(terms) / total.square().sum()


# --------------------------------------------------------------------- realise


def right_realise(vectors, wanted):
    solved = torch.linalg.lstsq(vectors, wanted, driver="gelsd").solution
    return torch.linalg.lstsq(vectors, solved.T, driver="gelsd").solution.T


def as_if_orthonormal(vectors, wanted):
    return vectors.T @ wanted @ vectors


def as_if_orthogonal(vectors, wanted):
    unit = vectors / vectors.norm(dim=-1, keepdim=True)
    return unit.T @ wanted @ unit


def forgot_the_transpose(vectors, wanted):
    back = torch.linalg.pinv(vectors)
    return back @ wanted @ (back if len(back) == len(vectors) else back.T)


def one_side(vectors, wanted):
    back = torch.linalg.pinv(vectors)
    return back @ wanted if len(back) == len(vectors) else back @ wanted @ back.T


# ------------------------------------------------------------------------ which

NAMES_OF_PANELS = exercises.NAMES


def equal(one, other):
    return (one - other).abs().max() < 1e-6


def right_which(panel, tokens, *, equal=equal, names=NAMES_OF_PANELS):
    first = next(i for i, token in enumerate(tokens) if tokens.count(token) > 1)
    again = tokens.index(tokens[first], first + 1)
    rows, columns = equal(panel[first], panel[again]), equal(panel[:, first], panel[:, again])
    return names[2 * (not rows) + (not columns)]


def which_with(**options):
    return lambda panel, tokens: right_which(panel, tokens, **options)


PLANTED = [
    ("parts", parts_with(scale=0.0), "the scale is missing"),
    ("parts", parts_with(scale=1.0), "it divides by d_head"),
    ("parts", scaled_by_the_model, "it divides by √d_model"),
    ("parts", parts_with(order=(0, 2, 1, 3)), "the cross terms are exchanged"),
    ("parts", lambda *inputs: right_parts(*inputs).mT, "transposed: rows are queries"),
    ("parts", without("q", "k"), "the biases are forgotten"),
    ("parts", without("k"), "b_key is forgotten"),
    ("parts", without("q"), "b_query is forgotten"),
    ("parts", parts_with(x_bias=False, e_bias=True), "the biases went with the position"),
    ("parts", parts_with(e_bias=True), "the biases are counted twice"),
    (
        "parts",
        lambda x, e, w_query, w_key, *b: right_parts(x, e, w_query.T, w_key.T, *b),
        "W_q W_kᵀ stands between the vectors: nn.Linear stores",
    ),
    ("parts", joined_the_other_way, "W_q W_kᵀ stands between the vectors, and the biases are forgotten"),
    (
        "parts",
        lambda x, e, w_query, w_key, b_query, b_key: right_parts(x, e, w_key, w_query, b_key, b_query),
        "query and key have changed places",
    ),
    ("parts", parts_with(order=(3, 1, 2, 0)), "the parts are not in the order"),
    ("parts", first_term_only, "the term position with position is not right: with d_head = 6, at [0, 0] it is"),
    ("one_question", the_other_question, "it asks position → content: the query stands on the left"),
    ("one_question", both_mixed, "it asks two questions"),
    ("one_question", lambda x, e, wanted: torch.zeros(x.shape[1], x.shape[1], dtype=x.dtype), "every score is 0"),
    ("one_question", without_wanted, "wanted is not in it"),
    ("one_question", words_too, "it asks content → content too, up to 1"),
    ("one_question", lambda *inputs: 2 * right_one_question(*inputs), "every number is 2 times"),
    ("seen", seen_with(centre=False), "the row means are still in"),
    ("seen", seen_with(over=-2), "the mean of each column"),
    ("seen", seen_with(over=(-1, -2)), "one mean a matrix"),
    ("seen", seen_with(root=0.5), "shares of the root"),
    ("seen", seen_with(power=1.0), "sums of sizes"),
    ("seen", over_the_sum, "it divides by the energy of the sum"),
    ("seen", energies, "those are the energies"),
    (
        "seen",
        lambda terms: torch.full((4,), 0.25, dtype=terms.dtype),
        "sums of squares: at [0] it is 0.25 and should be",
    ),
    ("realise", lambda s, wanted: right_realise(s, wanted.T), "it realises the transpose"),
    ("realise", as_if_orthonormal, "only if the vectors are at right angles and of length 1"),
    ("realise", as_if_orthogonal, "length 1 is not enough"),
    ("realise", forgot_the_transpose, "the transpose is missing on the right"),
    ("realise", one_side, "it undoes the left side alone"),
    ("realise", lambda s, wanted: torch.eye(8, dtype=s.dtype), "with 8 vectors in 8 dimensions, at [0, 0] it is"),
    ("which", lambda panel, tokens: 3, "it returned an int: return a name"),
    ("which", lambda panel, tokens: panel.numpy(), "it returned a NumPy array: return a name"),
    ("which", lambda panel, tokens: "words", "'words' is no name of a panel"),
    ("which", lambda panel, tokens: NAMES_OF_PANELS[1], "it calls every panel 'content → position'"),
    ("which", which_with(equal=torch.equal), "compare with torch.allclose"),
    ("which", which_with(names=[NAMES_OF_PANELS[n] for n in (0, 2, 1, 3)]), "the mixed two are exchanged"),
    ("which", which_with(names=NAMES_OF_PANELS[::-1]), "words and places are exchanged"),
    (
        "which",
        which_with(names=[NAMES_OF_PANELS[n] for n in (0, 1, 2, 2)]),
        "of “to be or not to be” it calls position → position 'position → content'",
    ),
]

RIGHT = [
    ("parts", right_parts),
    ("one_question", right_one_question),
    ("seen", right_seen),
    ("realise", right_realise),
    ("which", right_which),
]

RUBBISH = [
    (lambda *inputs: None, "it returned None"),
    (lambda *inputs: 3, "it returned an int"),
    (lambda *inputs: np.zeros(3), "it returned a NumPy array"),
    (lambda *inputs: torch.zeros(1, 1), "the result has shape (1, 1)"),
    (lambda *inputs: 1 / 0, "it raised ZeroDivisionError"),
    (lambda *inputs: inputs[0].zero_(), "it changed its input"),
]
NAMES = sorted({planted[0] for planted in PLANTED} - {"which"})  # which gives no tensor


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("answer, words", RUBBISH, ids=[words for _, words in RUBBISH])
def test_rubbish_gets_one_clear_line(name, answer, words, capsys):
    line = verdict(capsys, name, answer)
    assert line.startswith("✗") and words in line and "\n" not in line


def test_a_right_answer_of_another_precision_or_with_nan_is_refused(capsys):
    rounded = verdict(capsys, "one_question", lambda *inputs: right_one_question(*inputs).float())
    assert "torch.float32, expected torch.float64" in rounded
    assert "NaN" in verdict(capsys, "one_question", lambda *inputs: right_one_question(*inputs) * torch.nan)


@pytest.mark.parametrize("answer, words", [each for each in RUBBISH if "shape" not in each[1]])
def test_rubbish_for_a_name_gets_one_clear_line(answer, words, capsys):
    line = verdict(capsys, "which", answer)
    assert line.startswith("✗") and words in line and "\n" not in line
