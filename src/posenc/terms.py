"""The four terms of an attention score, when content and position are added.

A token vector is a sum x + e of a content and a position. The score of a query and a key is a product
of two such sums, so it has four terms. They are named by the query's part first: `content_position`
is the content of the query with the position of the key.

Convention: weights are those of `torch.nn.Linear`, (out, in), so that query = x W_qᵀ. A bias belongs to
no position and counts as content.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from posenc.attention import scores


class FourTerms(NamedTuple):
    """The terms of a score, the query's part first, each (…, T, T); their sum is the score."""

    content_content: Tensor
    content_position: Tensor
    position_content: Tensor
    position_position: Tensor


def four_terms(
    content: Tensor,
    position: Tensor,
    w_query: Tensor,
    w_key: Tensor,
    *,
    query_bias: Tensor | None = None,
    key_bias: Tensor | None = None,
) -> FourTerms:
    """The scores of content + position, term by term.

    Args:
        content: x, shape (…, T, d_model).
        position: e, shape (…, T, d_model).
        w_query: shape (…, d_head, d_model), as `nn.Linear` stores it.
        w_key: likewise.
        query_bias: added to the content's query, shape (…, d_head).
        key_bias: added to the content's key, likewise.
            The axes before the last two are batches or heads and broadcast: for H heads pass weights
            (H, d_head, d_model), biases (H, d_head) and content (B, 1, T, d_model).

    Returns:
        four tensors (…, T, T), each with the 1/√d_head; their sum is the score of x + e.

    Raises:
        ValueError: content and position, or one of them and a weight, have different widths; the weights
            have different head sizes; or a bias is not as long as its head.

    Source: Dai et al. 2019, "Transformer-XL", section 3.3, writes a score as these four.
    """
    _require_fit(content, position, w_query, w_key, query_bias, key_bias)
    content_query, content_key = _project(content, w_query, query_bias), _project(content, w_key, key_bias)
    position_query, position_key = position @ w_query.mT, position @ w_key.mT
    products = (scores(query, key) for query in (content_query, position_query) for key in (content_key, position_key))
    return FourTerms(*torch.broadcast_tensors(*products))


def centre(term: Tensor, visible: Tensor) -> Tensor:
    """What the softmax sees of a term: its rows without their mean, and 0 at keys that are hidden.

    A number that is added to a whole row changes no weight of that row's softmax.

    Args:
        term: shape (…, T, T), queries by keys.
        visible: true where a query may read a key, shape that broadcasts to (…, T, T); at least one key
            a row.

    Returns:
        shape (…, T, T).
    """
    mean = (term * visible).sum(-1, keepdim=True) / visible.sum(-1, keepdim=True)
    return (term - mean) * visible


def shares(terms: FourTerms, visible: Tensor) -> Tensor:
    """How much each of the four contributes to what the softmax sees.

    Args:
        terms: of any shape; all axes before the last two are summed over.
        visible: as in `centre`.

    Returns:
        the sum of squares of each centred term, over that of all four, shape (4,). The terms may also
        help or cancel each other, which this does not count.
    """
    energy = torch.stack([centre(term, visible).square().sum() for term in terms])
    return energy / energy.sum()


def matrix_for(vectors: Tensor, wanted: Tensor) -> Tensor:
    """The smallest M for which vectors @ M @ vectors.T comes nearest to a wanted table of scores.

    Args:
        vectors: contents and positions below each other, shape (N, d).
        wanted: their scores, shape (N, N).

    Returns:
        shape (d, d). It meets the table exactly where the vectors are linearly independent, and also where the table
        asks of dependent vectors nothing that contradicts.
    """
    back = torch.linalg.pinv(vectors)
    return back @ wanted @ back.T


def layer_norm_parts(parts: Sequence[Tensor], norm: nn.LayerNorm) -> list[Tensor]:
    """What each summand of x has in LayerNorm(x).

    LayerNorm is no linear map, since it divides by the deviation of the sum. But that is one number for a token:
    divided by the sum's deviation, and not by its own, each summand has its part, and the parts add up.

    Args:
        parts: the summands, each (…, d).
        norm: weight and bias, over the last axis.

    Returns:
        as many tensors of the same shape; with the norm's bias their sum is norm(sum(parts)).
    """
    deviation = (sum(parts).var(-1, correction=0, keepdim=True) + norm.eps).sqrt()
    return [norm.weight * (part - part.mean(-1, keepdim=True)) / deviation for part in parts]


def _project(vectors: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    projected = vectors @ weight.mT
    return projected if bias is None else projected + bias[..., None, :]


def _require_fit(
    content: Tensor,
    position: Tensor,
    w_query: Tensor,
    w_key: Tensor,
    query_bias: Tensor | None,
    key_bias: Tensor | None,
) -> None:
    widths = {
        "content": content.shape[-1],
        "position": position.shape[-1],
        "w_query": w_query.shape[-1],
        "w_key": w_key.shape[-1],
    }
    if len(set(widths.values())) > 1:
        raise ValueError(
            f"widths differ: {', '.join(f'{name} {width}' for name, width in widths.items())}; "
            "the last axis of all four is d_model, and weights are (d_head, d_model) as nn.Linear stores them"
        )
    if w_query.shape[-2] != w_key.shape[-2]:
        raise ValueError(
            f"w_query has head size {w_query.shape[-2]} and w_key {w_key.shape[-2]}: "
            "queries and keys are compared, so give both the same d_head"
        )
    for name, bias in (("query_bias", query_bias), ("key_bias", key_bias)):
        if bias is not None and bias.shape[-1] != w_query.shape[-2]:
            raise ValueError(f"{name} has {bias.shape[-1]} numbers, but the head size is {w_query.shape[-2]}")
