"""Scaled dot-product attention, written to be read.

Convention: the last two axes are (tokens, width); any axes before them are batches or heads.
When there are fewer queries than keys, the queries are the last rows: the newest tokens.
"""

import math

import torch
from torch import Tensor


def scores(query: Tensor, key: Tensor) -> Tensor:
    """How well each query matches each key.

    Args:
        query: shape (…, n_queries, d).
        key: shape (…, n_keys, d).

    Returns:
        q·k / √d, shape (…, n_queries, n_keys).

    Raises:
        ValueError: query and key have different widths.

    Source: Vaswani et al. 2017, "Attention Is All You Need", eq. 1.
    """
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query is {query.shape[-1]} wide and key {key.shape[-1]}: "
            "a dot product needs equal widths; project both to the same head size"
        )
    return query @ key.mT / math.sqrt(query.shape[-1])


def causal_bias(n_queries: int, n_keys: int) -> Tensor:
    """The bias that hides the future: 0 where the key is visible, -inf where it is later.

    Args:
        n_queries: the number of the newest tokens that ask.
        n_keys: all tokens so far, at least as many. Query row r has position n_keys - n_queries + r.

    Returns:
        shape (n_queries, n_keys), to be added to the scores.

    Raises:
        ValueError: there are more queries than keys.
    """
    if n_queries > n_keys:
        raise ValueError(f"{n_queries} queries but {n_keys} keys: every query needs at least its own key")
    return torch.full((n_queries, n_keys), -math.inf).triu(diagonal=n_keys - n_queries + 1)


def attention_weights(query: Tensor, key: Tensor, *, bias: Tensor | None = None) -> Tensor:
    """The share of each key in each query's answer: the softmax over the keys.

    Args:
        query: shape (…, n_queries, d).
        key: shape (…, n_keys, d).
        bias: added to the scores, shape that broadcasts to (…, n_queries, n_keys). -inf hides a key;
            a row in which all keys are hidden has no softmax and becomes NaN.

    Returns:
        shape (…, n_queries, n_keys); each row sums to 1.
    """
    logits = scores(query, key)
    if bias is not None:
        logits = logits + bias.to(logits)
    return logits.softmax(dim=-1)


def attention(query: Tensor, key: Tensor, value: Tensor, *, bias: Tensor | None = None) -> Tensor:
    """The weighted sum of the values.

    Args:
        query: shape (…, n_queries, d).
        key: shape (…, n_keys, d).
        value: shape (…, n_keys, e).
        bias: as in attention_weights.

    Returns:
        shape (…, n_queries, e).
    """
    return attention_weights(query, key, bias=bias) @ value


def projections(width: int, layer: int = 0) -> Tensor:
    """Random W_query, W_key and W_value of one layer, float64, shape (3, width, width), the same every time."""
    generator = torch.Generator().manual_seed(layer)
    return torch.randn(3, width, width, generator=generator, dtype=torch.float64) / width**0.5


def residual_attention(x: Tensor, layers: int, *, causal: bool) -> Tensor:
    """Layers of attention with random weights, each adding its output to its input, (T, d) → (T, d)."""
    bias = causal_bias(len(x), len(x)) if causal else None
    for layer in range(layers):
        w_query, w_key, w_value = projections(x.shape[-1], layer)
        x = x + attention(x @ w_query, x @ w_key, x @ w_value, bias=bias)
    return x
