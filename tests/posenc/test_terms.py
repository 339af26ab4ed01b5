"""The four terms: their sum, each of them apart, what the softmax sees of them, and inputs they refuse."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc.attention import scores
from posenc.models import SelfAttention
from posenc.terms import FourTerms, centre, four_terms, layer_norm_parts, matrix_for, shares


def random(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def inputs(tokens=5, width=6, head=3, dtype=torch.float64):
    """Content, position and weights as positional arguments, biases as options."""
    x, e = random(2, tokens, width, dtype=dtype)
    w = random(2, head, width, seed=1, dtype=dtype)
    b = random(2, head, seed=2, dtype=dtype)
    return (x, e, *w), {"query_bias": b[0], "key_bias": b[1]}


def score(x, e, w_query, w_key, *, query_bias=0, key_bias=0):
    query, key = (x + e) @ w_query.mT + query_bias, (x + e) @ w_key.mT + key_bias
    return query @ key.mT / math.sqrt(w_query.shape[-2])


SIZE = st.integers(1, 7)


@settings(max_examples=50)
@given(SIZE, SIZE, SIZE, st.booleans(), st.booleans(), st.sampled_from([torch.float32, torch.float64]))
def test_the_four_sum_to_the_score(tokens, width, head, query_bias, key_bias, dtype):
    given_, biases = inputs(tokens, width, head, dtype)
    biases = {n: b for n, b in biases.items() if {"query_bias": query_bias, "key_bias": key_bias}[n]}
    expected = score(*(v.double() for v in given_), **{n: b.double() for n, b in biases.items()})
    total = sum(four_terms(*given_, **biases))
    assert total.dtype == dtype
    # sums of at most 7 · 7 · 7 products of a few units: float32 is off by 1e-5 of the largest
    atol = (1e-4 if dtype == torch.float32 else 1e-12) * (1 + expected.abs().max().item())
    torch.testing.assert_close(total.double(), expected, rtol=0, atol=atol)


def by_loops(x, e, w_query, w_key, *, query_bias, key_bias):
    """Each number of each term on its own, (4, T, T)."""
    length, head = len(x), len(w_query)
    found = torch.zeros(4, length, length, dtype=x.dtype)
    for m in range(length):
        for n in range(length):
            query = {"c": w_query @ x[m] + query_bias, "p": w_query @ e[m]}
            key = {"c": w_key @ x[n] + key_bias, "p": w_key @ e[n]}
            for index, (a, b) in enumerate(("cc", "cp", "pc", "pp")):
                found[index, m, n] = sum(query[a][i] * key[b][i] for i in range(head)) / head**0.5
    return found


def test_each_term_is_what_its_name_says():
    given_, biases = inputs()
    torch.testing.assert_close(torch.stack(four_terms(*given_, **biases)), by_loops(*given_, **biases))
    assert FourTerms._fields == ("content_content", "content_position", "position_content", "position_position")


# --------------------------------------------------------------- shapes, biases


def test_heads_are_an_axis_that_broadcasts_and_positions_may_be_those_of_all_texts():
    width, heads = 8, 4
    torch.manual_seed(0)
    attention = SelfAttention(width, heads, False, None, None).double()
    x, e = random(3, 5, width), random(5, width, seed=1)
    query, key = (f(x + e).unflatten(-1, (heads, -1)).transpose(1, 2) for f in (attention.query, attention.key))
    w_query, w_key, b_query, b_key = (
        p.unflatten(0, (heads, -1))
        for p in (attention.query.weight, attention.key.weight, attention.query.bias, attention.key.bias)
    )
    found = four_terms(x[:, None], e, w_query, w_key, query_bias=b_query, key_bias=b_key)
    assert {term.shape for term in found} == {(3, heads, 5, 5)}
    torch.testing.assert_close(sum(found), scores(query, key))


def test_the_inputs_stay_and_gradients_pass():
    given_, biases = inputs()
    before = [value.clone() for value in given_]
    leaves = [value.requires_grad_() for value in given_]
    sum(four_terms(*leaves, **biases)).sum().backward()
    assert all(value.grad.abs().max() > 0 for value in leaves)
    assert all(torch.equal(value, old) for value, old in zip(given_, before))


# -------------------------------------------------------- what the softmax sees


def test_a_centred_term_gives_the_same_weights_and_a_column_does_not():
    term = random(4, 5, 5)
    visible = torch.ones(5, 5, dtype=torch.bool)
    torch.testing.assert_close(centre(term, visible).softmax(-1), term.softmax(-1))
    row = random(4, 5, 1, seed=1)
    torch.testing.assert_close(centre(term + row, visible), centre(term, visible))
    assert not torch.allclose(centre(term + row.mT, visible), centre(term, visible))


def test_hidden_keys_count_for_nothing():
    term, visible = random(2, 6, 6), torch.ones(6, 6, dtype=torch.bool).tril()
    centred = centre(term, visible)
    assert (centred[:, ~visible] == 0).all()
    torch.testing.assert_close(centred.sum(-1), torch.zeros(2, 6, dtype=term.dtype), rtol=0, atol=1e-12)
    other = torch.where(visible, term, 100.0)
    torch.testing.assert_close(centre(other, visible), centred)
    hide = torch.zeros(6, 6).masked_fill(~visible, -math.inf)
    torch.testing.assert_close((centred + hide).softmax(-1), (term + hide).softmax(-1))


def test_shares_by_hand():
    one = torch.tensor([[1.0, -1.0], [0.0, 0.0]])
    everything = torch.ones(2, 2, dtype=torch.bool)
    found = shares(FourTerms(one, 2 * one, 0 * one, one + 7), everything)
    torch.testing.assert_close(found, torch.tensor([1.0, 4.0, 0.0, 1.0]) / 6)
    causal = everything.tril()  # the first row sees one key: nothing to choose
    late = FourTerms(one, one.flip(0), one.flip(0), 0 * one)
    torch.testing.assert_close(shares(late, causal), torch.tensor([0.0, 0.5, 0.5, 0.0]))


# -------------------------------------------------------------- inputs refused


@pytest.mark.parametrize(
    "change, message",
    [
        ({"position": random(5, 4)}, "widths differ: content 6, position 4"),
        ({"w_query": random(6, 3)}, "w_query 3"),
        ({"w_key": random(3, 5)}, "w_key 5"),
        ({"w_key": random(2, 6)}, "w_query has head size 3 and w_key 2"),
        ({"query_bias": random(6)}, "query_bias has 6 numbers, but the head size is 3"),
        ({"key_bias": random(1)}, "key_bias has 1 numbers"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(change, message):
    x, e, w_query, w_key = inputs()[0]
    arguments = {"content": x, "position": e, "w_query": w_query, "w_key": w_key} | change
    with pytest.raises(ValueError, match=message):
        four_terms(**arguments)


def test_a_matrix_meets_any_table_of_independent_vectors_and_the_nearest_of_dependent_ones():
    generator = torch.Generator().manual_seed(0)
    vectors, wanted = (torch.randn(7, n, generator=generator, dtype=torch.float64) for n in (9, 7))
    found = matrix_for(vectors, wanted)
    torch.testing.assert_close(vectors @ found @ vectors.T, wanted)
    # the smallest: it answers nothing outside the vectors
    outside = torch.linalg.svd(vectors).Vh[7:]
    assert (found @ outside.T).abs().max() < 1e-12 and (outside @ found).abs().max() < 1e-12
    crowd = torch.randn(12, 9, generator=generator, dtype=torch.float64)
    table = torch.randn(12, 12, generator=generator, dtype=torch.float64)
    nearest = crowd @ matrix_for(crowd, table) @ crowd.T
    rest = table - nearest
    assert rest.norm() > 1 and (crowd.T @ rest @ crowd).abs().max() < 1e-9


def test_the_parts_of_a_layer_norm_add_up():
    torch.manual_seed(0)
    norm = torch.nn.LayerNorm(16, dtype=torch.float64)
    torch.nn.init.normal_(norm.weight)
    torch.nn.init.normal_(norm.bias)
    parts = list(torch.randn(3, 5, 16, dtype=torch.float64))
    torch.testing.assert_close(sum(layer_norm_parts(parts, norm)) + norm.bias, norm(sum(parts)), rtol=0, atol=1e-12)
