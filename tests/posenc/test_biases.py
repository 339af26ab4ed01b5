"""Biases on scores: the published numbers, transformers' own code, and inputs they refuse."""

import math
from functools import partial

import pytest
import torch

from posenc.biases import T5, Kerple, alibi, alibi_slopes, distances, t5_buckets
from posenc.models import Ensemble, Transformer

HERE = torch.arange(6)


def test_distance_is_how_far_the_key_lies_before_the_query():
    assert distances(torch.tensor([5, 2]), torch.tensor([3, 2, 9])).tolist() == [[2, 3, -4], [-1, 0, -7]]
    unsigned = torch.tensor([1, 4], dtype=torch.uint8)
    assert distances(unsigned, unsigned).tolist() == [[0, -3], [3, 0]]  # and not 253


# --- ALiBi -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "heads, expected",
    [
        (1, [8]),
        (2, [4, 8]),
        (8, [1, 2, 3, 4, 5, 6, 7, 8]),
        (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5]),
        (3, [4, 8, 2]),
    ],
)
def test_slopes_are_the_published_powers_of_two(heads, expected):
    assert torch.allclose(-alibi_slopes(heads).log2(), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.slow
def test_slopes_are_those_of_transformers():
    bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
    for heads in range(1, 129):
        theirs = bloom.build_alibi_tensor(torch.ones(1, 2), heads, torch.float32)[:, 0, 1]  # at position 1
        assert (theirs / alibi_slopes(heads) - 1).abs().max() < 1e-6, heads


def test_alibi_takes_slope_times_distance_off():
    bias = alibi(HERE + 100, HERE + 100, heads=3)
    assert bias.dtype == torch.float32 and bias.shape == (3, 6, 6)
    for head, slope in enumerate((2**-4, 2**-8, 2**-2)):
        for m in range(6):
            for n in range(6):
                assert bias[head, m, n].item() == -slope * abs(m - n)
    assert alibi(HERE[-1:], HERE, heads=2, dtype=torch.float64)[0, 0].tolist() == [-(5 - n) / 16 for n in range(6)]
    assert alibi(torch.stack([HERE, HERE + 1]), torch.stack([HERE, HERE]), heads=4).shape == (2, 4, 6, 6)


# --- T5 --------------------------------------------------------------------------------------


def test_buckets_by_hand():
    """8 buckets, one side: 0, 1, 2, 3, then from 4 on by factors of 16^(1/4) = 2, up to 64."""
    got = t5_buckets(torch.tensor([-5, 0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 33, 64, 9999]), buckets=8, max_distance=64)
    assert got.tolist() == [0, 0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 7, 7, 7]
    two = t5_buckets(torch.tensor([-9, -1, 0, 1, 9]), buckets=8, max_distance=9, bidirectional=True)
    assert two.tolist() == [7, 5, 0, 1, 3]


@pytest.mark.slow
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("buckets, max_distance", [(32, 128), (32, 256), (64, 128), (16, 20)])
def test_buckets_are_those_of_transformers(bidirectional, buckets, max_distance):
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    away = torch.arange(-3000, 3000)
    theirs = t5.T5Attention._relative_position_bucket(-away, bidirectional, buckets, max_distance)
    options = {"buckets": buckets, "max_distance": max_distance, "bidirectional": bidirectional}
    got = t5_buckets(away, **options)
    assert torch.equal(got, theirs) and got.min() == 0 and got.max() == buckets - 1
    assert not torch.equal(t5_buckets(-away, **options), theirs)  # T5 counts key minus query


def test_t5_gives_each_bucket_its_number():
    bias = T5(2, buckets=8, max_distance=64, gain=10.0)
    assert torch.equal(bias(HERE, HERE), torch.zeros(2, 6, 6))
    with torch.no_grad():
        bias.table.copy_(torch.arange(16.0).view(2, 8))
    got = bias(HERE + 50, HERE)
    assert got.shape == (2, 6, 6)
    assert got[1, 0, 0].item() == 10 * (8 + 7) and got[0, 0, 0].item() == 70  # 50 away: the last bucket
    near = bias(HERE, HERE)
    assert near[0, 3].tolist() == [30, 20, 10, 0, 0, 0]


# --- Kerple ----------------------------------------------------------------------------------


def test_kerple_falls_with_the_logarithm():
    bias = Kerple(2, gain=2.0)
    assert torch.allclose(bias(HERE, HERE)[1, 5], -torch.log(torch.tensor([6.0, 5, 4, 3, 2, 1])))
    with torch.no_grad():
        bias.logarithms.copy_(torch.tensor([[0.0, math.log(3) / 2], [0.0, math.log(5) / 2]]))
    assert bias(HERE, HERE)[1, 4, 1].item() == pytest.approx(-3 * math.log(1 + 5 * 3), rel=1e-6)
    assert bias(HERE, HERE)[0, 4, 1].item() == pytest.approx(-math.log(4), rel=1e-6)


# --- all -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "build",
    [lambda: partial(alibi, heads=2), lambda: T5(2, buckets=8, max_distance=16), lambda: Kerple(2)],
    ids=["alibi", "t5", "kerple"],
)
def test_a_bias_is_a_hook_of_the_transformer_alone_and_in_an_ensemble(build):
    tokens = torch.randint(0, 5, (3, 4, 7), generator=torch.Generator().manual_seed(0))
    ensemble = Ensemble(lambda: Transformer(5, 3, width=8, causal=True, bias=build()), seeds=range(3))
    together = ensemble(tokens)
    assert together.shape == (3, 4, 7, 3)
    moved = ensemble(tokens, (torch.arange(7) + 1000).expand(3, -1))
    assert (moved - together).abs().max() < 1e-6  # a bias knows distances alone
    with torch.no_grad():
        for value in ensemble.parameters.values():
            value.add_(0.1)
    assert (ensemble(tokens) - together).abs().max() > 1e-3


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: alibi(HERE.float(), HERE, heads=2), TypeError, "pass integers"),
        (lambda: alibi(HERE, HERE.float(), heads=2), TypeError, "pass integers"),
        (lambda: T5(2)(HERE.float(), HERE.float()), TypeError, "pass integers"),
        (lambda: Kerple(2)(HERE.float(), HERE.float()), TypeError, "pass integers"),
        (lambda: t5_buckets(HERE.float()), TypeError, "pass integers"),
        (lambda: distances(HERE.float(), HERE), TypeError, "pass integers"),
        (lambda: alibi_slopes(0), ValueError, "choose at least 1"),
        (lambda: t5_buckets(HERE, buckets=1), ValueError, "choose at least 2"),
        (lambda: t5_buckets(HERE, buckets=3, bidirectional=True), ValueError, "choose at least 4"),
        (lambda: t5_buckets(HERE, max_distance=16), ValueError, "choose more than 16"),
        (lambda: T5(2, max_distance=8, bidirectional=True), ValueError, "choose more than 8"),
    ],
)
def test_bad_input_is_refused_with_a_word(call, error, words):
    with pytest.raises(error, match=words):
        call()
