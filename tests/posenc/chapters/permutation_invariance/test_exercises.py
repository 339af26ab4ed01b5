"""Chapter 1's checks: every mistake is planted and must be called by its name."""

import math

import pytest
import torch

from posenc.exercises import _exercises


def hide(n_queries, n_keys, offset=None):
    return torch.full((n_queries, n_keys), -math.inf).triu(
        n_keys - n_queries + 1 if offset is None else offset
    )


def hide_only_what_is_square(n_queries, n_keys):
    return hide(n_queries, n_keys, offset=1)


def hide_for_one_query(n_queries, n_keys):
    return hide(n_queries, n_keys, offset=n_keys if n_queries == 1 else 1)


def row(new, keys, values, w_query, w_key, w_value, *, itself=True, scale=None, softmax=-1):
    query = new @ w_query
    if itself:
        keys, values = torch.cat([keys, (new @ w_key)[None]]), torch.cat([values, (new @ w_value)[None]])
    logits = (keys @ query)[None] / (scale or math.sqrt(len(query)))
    return ((logits.softmax(softmax) if softmax is not None else logits) @ values)[0]


def row_with(**options):
    return lambda new, keys, values, w_query, w_key, w_value: row(
        new, keys, values, w_query, w_key, w_value, **options
    )


def unpermute_without_asking(layer, x, p):
    layer(x[p])
    return layer(x)


PLANTED = [
    (
        "hide_the_future",
        lambda m, n: -hide(m, n),
        "the future gets +inf, so it takes all the weight: look at the sign",
    ),
    (
        "hide_the_future",
        lambda m, n: torch.full((m, n), -math.inf).tril(-1),
        "rows are queries, columns are keys",
    ),
    ("hide_the_future", lambda m, n: torch.ones(m, n).triu(1), "hiding takes -math.inf"),
    ("hide_the_future", lambda m, n: torch.zeros(m, n), "a later key still gets weight"),
    ("hide_the_future", lambda m, n: hide(m, n, offset=n - m), "a token cannot see itself"),
    ("hide_the_future", lambda m, n: torch.ones(m, n).tril() + hide(m, n), "a bias other than 0"),
    ("hide_the_future", hide_only_what_is_square, "one query against four keys must see all four"),
    ("hide_the_future", hide_for_one_query, "move the edge by N - M"),
    ("hide_the_future", lambda m, n: hide(m, n).double(), "torch.float64, expected torch.float32"),
    ("next_row", row_with(itself=False), "the new token does not see itself"),
    ("next_row", row_with(scale=1.0), "the scores are not scaled"),
    ("next_row", row_with(scale=math.sqrt(6)), "the scale is √6"),
    ("next_row", row_with(softmax=0), "the softmax runs over the wrong dimension"),
    ("next_row", row_with(softmax=None), "the softmax is missing"),
    ("next_row", row_with(scale=3.0), "this is not the last row of the causal pass"),
    ("unpermute", lambda layer, x, p: layer(x[p]), "the rows are still permuted"),
    ("unpermute", lambda layer, x, p: layer(x[p])[p], "right for a swap, wrong for a 3-cycle"),
    ("unpermute", lambda layer, x, p: layer(x), "the layer never saw the permuted rows"),
    ("unpermute", lambda layer, x, p: layer(x[p.argsort()])[p], "sent by the inverse of p"),
    ("unpermute", lambda layer, x, p: layer(x[p]).flip(0), "neither in the order of x nor in that of x[p]"),
    ("unpermute", unpermute_without_asking, "a layer that sees order looks blind to it"),
    ("failing_twin", lambda tokens: " ".join(tokens), "it returned one string"),
    ("failing_twin", lambda tokens: {"the": 1}, "it returned dict: return a list of words"),
    ("failing_twin", lambda tokens: [0, 1, 2], "it returned list: return a list of words"),
    ("failing_twin", lambda tokens: tokens, "this is the same sentence"),
    ("failing_twin", lambda tokens: tokens[1:], "each as often"),
    ("failing_twin", lambda tokens: tokens[::-1], "the last word has moved"),
    ("expected_accuracy", lambda length: 0.5, "one half is right for a neutral last token"),
    ("expected_accuracy", lambda length: 2 / length, "still gets half right by chance"),
    (
        "expected_accuracy",
        lambda length: 1 / length + (1 - 1 / length) / 2,
        "either of the two can stand last",
    ),
    ("expected_accuracy", lambda length: 1.0, "one layer is not that good"),
    ("expected_accuracy", lambda length: 60, "that is in per cent"),
    ("expected_accuracy", lambda length: 0.55 + 1 / length, "0.650 is not it"),
    ("expected_accuracy", lambda length: 0.6, "right for 10 tokens, wrong for 4"),
    ("position_from_share", lambda share: 1 / share, "off by one"),
    ("position_from_share", lambda share: 1 - 1 / share, "the sign is wrong"),
    ("position_from_share", lambda share: 1 - share, "belongs to position 3"),
]

RIGHT = [
    ("hide_the_future", hide),
    ("hide_the_future", lambda m, n: torch.ones(m, n).triu(n - m + 1) * -1e9),
    ("next_row", row),
    ("unpermute", lambda layer, x, p: layer(x[p])[p.argsort()]),
    ("failing_twin", lambda tokens: sorted(tokens[:-1]) + tokens[-1:]),
    ("failing_twin", lambda tokens: tuple(tokens[-2::-1]) + (tokens[-1],)),
    ("expected_accuracy", lambda length: 0.5 + 1 / length),
    ("position_from_share", lambda share: 1 / share - 1),
]


@pytest.mark.parametrize(
    "name, number, words",
    [
        ("hide_the_future", 1, "A score of -inf gets no weight"),
        ("hide_the_future", 3, "Move the edge by N - M"),
        ("unpermute", 2, "argsort gives the inverse"),
        ("position_from_share", 0, "Row m of a causal pass sees m + 1 tokens"),
    ],
)
def test_hints_name_the_right_sign(name, number, words):
    assert words in _exercises[name].hints[number]
