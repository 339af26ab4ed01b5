"""Chapter 1's checks: every mistake is planted and must be called by its name."""

import math

import pytest
import torch

import posenc.chapters.permutation_invariance.exercises  # noqa: F401
from posenc.lesson.exercises import _exercises


def hide(n_queries, n_keys, offset=None):
    return torch.full((n_queries, n_keys), -math.inf).triu(n_keys - n_queries + 1 if offset is None else offset)


def hide_only_what_is_square(n_queries, n_keys):
    return hide(n_queries, n_keys, offset=1)


def hide_for_one_query(n_queries, n_keys):
    return hide(n_queries, n_keys, offset=n_keys if n_queries == 1 else 1)


def row(new, keys, values, w_query, w_key, w_value, *, itself=True, scale=None, softmax=-1, key=None, value=None):
    query = new @ w_query
    made = {"query": query, "key": new @ w_key, "value": new @ w_value}
    if itself:
        keys = torch.cat([keys, made[key or "key"][None]])
        values = torch.cat([values, made[value or "value"][None]])
    logits = (keys @ query)[None] / (scale or math.sqrt(len(query)))
    return ((logits.softmax(softmax) if softmax is not None else logits) @ values)[0]


def row_with(**options):
    return lambda new, keys, values, w_query, w_key, w_value: row(new, keys, values, w_query, w_key, w_value, **options)


def exchanged_row(new, keys, values, w_query, w_key, w_value):
    keys, values = torch.cat([keys, (new @ w_key)[None]]), torch.cat([values, (new @ w_value)[None]])
    return (values @ (new @ w_query) / math.sqrt(values.shape[-1])).softmax(-1) @ keys


def attended(x, w_query, w_key, w_value, *, scale=None, softmax=-1, order="qkv", mask=False):
    made = {"q": x @ w_query, "k": x @ w_key, "v": x @ w_value}
    query, key, value = (made[letter] for letter in order)
    logits = query @ key.T / (math.sqrt(query.shape[-1]) if scale is None else scale)
    if mask:
        logits = logits + hide(len(x), len(x))
    return (logits.softmax(softmax) if softmax is not None else logits) @ value


def attended_with(**options):
    return lambda x, w_query, w_key, w_value: attended(x, w_query, w_key, w_value, **options)


def another_order(tokens):
    return tokens[1:-1] + tokens[:1] + tokens[-1:]


def unpermute_without_asking(layer, x, p):
    layer(x[p])
    return layer(x)


PLANTED = [
    ("self_attention", attended_with(scale=1.0), "the scores are not scaled"),
    ("self_attention", attended_with(scale=4.0), "the scores are divided by d = 4"),
    ("self_attention", attended_with(scale=math.sqrt(6)), "the scale is √6, the width of x"),
    ("self_attention", attended_with(scale=math.sqrt(5)), "the scale is √5, the number of tokens"),
    ("self_attention", attended_with(softmax=0), "the columns of the weights sum to 1"),
    ("self_attention", attended_with(softmax=None), "the softmax is missing"),
    ("self_attention", attended_with(order="kqv"), "queries and keys have changed places"),
    ("self_attention", attended_with(order="qvk"), "keys and values have changed places"),
    ("self_attention", attended_with(mask=True), "it hides the later tokens"),
    ("self_attention", lambda x, *w: attended(x, *w) + x[:, :4], "check each step"),
    ("self_attention", lambda x, q, k, v: attended(x, q, k, v) @ v.T, "shape (5, 6), expected (5, 4)"),
    ("hide_the_future", lambda m, n: -hide(m, n), "the future gets +inf, so it takes all the weight: look at the sign"),
    ("hide_the_future", lambda m, n: torch.full((m, n), -math.inf).tril(-1), "rows are queries, columns are keys"),
    ("hide_the_future", lambda m, n: torch.ones(m, n).triu(1), "hiding takes -math.inf"),
    ("hide_the_future", lambda m, n: torch.zeros(m, n), "key 1 has the bias 0 for query 0"),
    ("hide_the_future", lambda m, n: hide(m, n, offset=n - m), "a token cannot see itself"),
    (
        "hide_the_future",
        lambda m, n: torch.ones(m, n).tril() + hide(m, n),
        "a bias other than 0: key 0 has 1 for query 0",
    ),
    ("hide_the_future", hide_only_what_is_square, "one query against four keys must see all four"),
    ("hide_the_future", hide_for_one_query, "move the edge by n_keys - n_queries"),
    ("hide_the_future", lambda m, n: hide(m, n).double(), "make it with dtype=torch.float32"),
    ("hide_the_future", lambda m, n: torch.ones(m, n).triu(n - m + 1) * -math.inf, "0·inf"),
    ("hide_the_future", lambda m, n: torch.nn.Parameter(hide(m, n)), "it returned a Parameter"),
    ("next_row", row_with(itself=False), "the new token does not see itself"),
    ("next_row", row_with(scale=1.0), "the scores are not scaled"),
    ("next_row", row_with(scale=math.sqrt(6)), "the scale is √6, the width of x"),
    ("next_row", row_with(scale=math.sqrt(7)), "the scale is √7, the length of the cache"),
    ("next_row", row_with(scale=math.sqrt(8)), "the scale is √8, the number of tokens"),
    ("next_row", exchanged_row, "keys and values have changed places"),
    ("next_row", row_with(key="value", value="key"), "the new token's key and value have changed places"),
    ("next_row", row_with(key="query"), "the new token's key is made with another matrix"),
    ("next_row", row_with(key="value"), "the new token's key is made with another matrix"),
    ("next_row", row_with(value="key"), "the new token's value is made with another matrix"),
    ("next_row", row_with(value="query"), "the new token's value is made with another matrix"),
    ("next_row", row_with(softmax=0), "the softmax runs over the wrong dimension"),
    ("next_row", row_with(softmax=None), "the softmax is missing"),
    ("next_row", row_with(scale=3.0), "check each of the three steps"),
    ("unpermute", lambda layer, x, p: layer(x[p]), "the rows are still permuted"),
    ("unpermute", lambda layer, x, p: layer(x[p])[p], "right for a swap, wrong for a 3-cycle"),
    ("unpermute", lambda layer, x, p: layer(x), "the layer never saw the permuted rows"),
    ("unpermute", lambda layer, x, p: layer(x[p.argsort()])[p], "sent by the inverse of p"),
    ("unpermute", lambda layer, x, p: layer(x[p]).flip(0), "for p = [1, 0, 2, 3] the rows are neither in the order"),
    ("unpermute", lambda layer, x, p: layer(x[p])[p.argsort()] + 1, "not the rows that the layer returned"),
    ("unpermute", lambda layer, x, p: layer(x[p]).sort(dim=0).values, "it sorts the numbers"),
    ("unpermute", unpermute_without_asking, "a layer that sees order looks blind to it"),
    ("failing_twin", lambda tokens: " ".join(tokens), "it returned one string"),
    ("failing_twin", lambda tokens: {"the": 1}, "it returned dict: return a list of words"),
    ("failing_twin", lambda tokens: [0, 1, 2], "it returned a list with 0 in it"),
    ("failing_twin", lambda tokens: [another_order(tokens)], "it returned a list with ['dog', 'bit', "),
    ("failing_twin", lambda tokens: tokens, "this is the same sentence"),
    ("failing_twin", lambda tokens: sorted(tokens[:-1]) + tokens[-1:], "for “a bird flew over” this is the same"),
    ("failing_twin", lambda tokens: tokens[:-1][::-1] + tokens[-1:], "for “to be to sleep” this is the same"),
    ("failing_twin", lambda tokens: tokens[1:], "“the” is 2 of the 6 words of “the dog bit the man .”, and 1 of the 5"),
    ("failing_twin", lambda tokens: tokens[:1] + another_order(tokens), "each as often"),
    ("failing_twin", lambda tokens: tokens[::-1], "the last word has changed"),
    ("failing_twin", lambda t: [t[1], t[0], *t[2:]], "for “very very good words” this is the same"),
    ("failing_twin", lambda t: [*t[:-3], t[-2], t[-3], t[-1]], "for “we had had enough” this is the same"),
    ("failing_twin", lambda tokens: [], "the last word has changed"),
    ("expected_accuracy", lambda length: 0.5, "one half is right for a neutral last token"),
    ("expected_accuracy", lambda length: 2 / length, "still gets half right by chance"),
    ("expected_accuracy", lambda length: 1 / length + (1 - 1 / length) / 2, "either of the two can stand last"),
    ("expected_accuracy", lambda length: 1.0, "one layer is not that good"),
    ("expected_accuracy", lambda length: 60, "that is in per cent"),
    ("expected_accuracy", lambda length: 0.55 + 1 / length, "for 10 tokens it is not 0.650"),
    ("expected_accuracy", lambda length: 0.6, "right for 10 tokens, wrong for 4"),
    ("expected_accuracy", lambda length: round(0.5 + 1 / length, 2), "right to 2 digits for 7 tokens"),
    ("position_from_share", lambda share: 1 / share, "off by one"),
    ("position_from_share", lambda share: 1 - 1 / share, "the sign is wrong"),
    ("position_from_share", lambda share: 1 // share - 1, "3 at position 4, since 1 // 0.2 is 4.0"),
    (
        "position_from_share",
        lambda share: share.reciprocal() - 1,
        "no attribute 'reciprocal' (called with share = 0.25)",
    ),
    (
        "position_from_share",
        lambda share: round(1 / share) - 1,
        "(called with share = tensor(0.5000, dtype=torch.float64))",
    ),
    ("position_from_share", lambda share: 1 - share, "belongs to position 3"),
    ("position_from_share", lambda share: int(1 / share) - 1, "91 at position 92, since 1/share is 92.9999"),
    ("position_from_share", lambda share: math.floor(1 / share - 1), "int, floor and ceil cut"),
    ("position_from_share", lambda share: math.ceil(1 / share) - 1, "49 at position 48"),
]

RIGHT = [
    ("self_attention", attended),
    ("hide_the_future", hide),
    ("hide_the_future", lambda m, n: torch.ones(m, n).triu(n - m + 1) * -1e9),
    ("next_row", row),
    ("unpermute", lambda layer, x, p: layer(x[p])[p.argsort()]),
    ("failing_twin", another_order),
    ("failing_twin", lambda tokens: tuple(another_order(tokens))),
    ("failing_twin", lambda tokens: [word for word in tokens for _ in range(2)]),
    ("expected_accuracy", lambda length: 0.5 + 1 / length),
    ("position_from_share", lambda share: 1 / share - 1),
    ("position_from_share", lambda share: round(float(1 / share)) - 1),
]


@pytest.mark.parametrize(
    "name, number, words",
    [
        ("hide_the_future", 1, "A score of -inf gets no weight"),
        ("unpermute", 2, "argsort says which places"),
        ("position_from_share", 0, "Row m of a causal pass sees m + 1 tokens"),
    ],
)
def test_hints_name_the_right_sign(name, number, words):
    assert words in _exercises[name].hints[number]


@pytest.mark.parametrize(
    "name, solution",
    [
        ("self_attention", "math.sqrt("),
        ("hide_the_future", "triu(diagonal=n_keys - n_queries + 1)"),
        ("unpermute", "[p.argsort()]"),
        ("failing_twin", "tokens[-1:]"),
        ("expected_accuracy", "/ length"),
        ("position_from_share", "1 / share"),
    ],
)
def test_no_hint_is_the_solution(name, solution):
    assert not any(solution in hint for hint in _exercises[name].hints)
