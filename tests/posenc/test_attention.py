"""Attention against torch's own, its symmetries, and inputs it refuses."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc.attention import attention, attention_weights, causal_bias, scores


def qkv(queries: int, keys: int, *, width: int = 8, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(2, 3, queries, width), (2, 3, keys, width), (2, 3, keys, 5)]
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


@settings(max_examples=30)
@given(st.integers(1, 7), st.integers(0, 5), st.integers(1, 9), st.booleans())
def test_equals_torch(queries, earlier, width, causal):
    keys = queries + earlier
    query, key, value = qkv(queries, keys, width=width)
    bias = causal_bias(queries, keys) if causal else None
    mask = torch.ones(queries, keys).tril(earlier).bool() if causal else None
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    torch.testing.assert_close(attention(query, key, value, bias=bias), expected, rtol=0, atol=1e-12)


def test_a_loop_gives_the_same_scores():
    query, key, _ = qkv(3, 4)
    for m in range(3):
        for n in range(4):
            product = sum(a * b for a, b in zip(query[0, 0, m], key[0, 0, n]))
            torch.testing.assert_close(scores(query, key)[0, 0, m, n], product / math.sqrt(8))


def test_weights_of_a_query_sum_to_one_and_those_of_a_key_do_not():
    query, key, _ = qkv(4, 4)
    weights = attention_weights(query, key)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 4, dtype=torch.float64))
    assert (weights.sum(-2) - 1).abs().max() > 0.1


def test_causal_bias_hides_every_later_key_and_no_other():
    bias = causal_bias(3, 5)
    for m in range(3):
        for n in range(5):
            assert bias[m, n] == (-math.inf if n > m + 2 else 0)


def test_permuting_tokens_permutes_outputs():
    query, key, value = qkv(6, 6)
    p = torch.tensor([1, 2, 0, 5, 3, 4])  # two 3-cycles: p is not its own inverse
    outputs = attention(query[..., p, :], key[..., p, :], value[..., p, :])
    expected = attention(query, key, value)
    torch.testing.assert_close(outputs, expected[..., p, :], rtol=0, atol=1e-12)
    assert (outputs - expected[..., p.argsort(), :]).abs().max() > 0.1


def test_a_bias_for_each_head_and_a_dtype_that_stays():
    query, key, value = (tensor.float() for tensor in qkv(4, 4))
    bias = torch.randn(3, 4, 4, dtype=torch.float64)
    result = attention(query, key, value, bias=bias)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result[:, 1], attention(query[:, 1], key[:, 1], value[:, 1], bias=bias[1]))


def test_refuses_what_cannot_be_meant():
    query, key, _ = qkv(3, 3)
    with pytest.raises(ValueError, match="8 wide and key 4.*project both"):
        scores(query, key[..., :4])
    with pytest.raises(ValueError, match="4 queries but 3 keys"):
        causal_bias(4, 3)
