"""Attention against torch's own, its symmetries, and inputs it refuses."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc.attention import attention, causal_bias, scores


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


def test_causal_bias_hides_every_later_key_and_no_other():
    bias = causal_bias(3, 5)
    for m in range(3):
        for n in range(5):
            assert bias[m, n] == (-math.inf if n > m + 2 else 0)


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
