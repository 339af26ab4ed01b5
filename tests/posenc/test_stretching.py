"""Angles for longer texts: where they land, transformers' own functions, and inputs they refuse."""

import math
from functools import partial

import pytest
import torch

from posenc import stretching
from posenc.rotary import angles
from posenc.stretching import (
    dynamic_ntk,
    interpolated,
    llama3,
    longrope,
    longrope_factor,
    ntk,
    p_rope,
    yarn,
    yarn_factor,
)

ONE = torch.tensor(1)
TABLES = {"short": [1.0 + 0.1 * i for i in range(64)], "long": [1.0 + i for i in range(64)]}

# Every function with the options that make it slow something down, for heads of 128
METHODS = {
    "interpolated": partial(interpolated, scale=8.0),
    "ntk": partial(ntk, scale=8.0),
    "dynamic_ntk": partial(dynamic_ntk, scale=2.0, trained_length=4096, length=32_768),
    "yarn": partial(yarn, scale=8.0, trained_length=4096),
    "llama3": partial(llama3, scale=8.0, trained_length=8192, base=500_000.0),
    "longrope": partial(longrope, **TABLES, trained_length=4096, length=5000),
    "p_rope": partial(p_rope, share=0.75),
}


def speeds(way, head_dim=128, **options):
    """Radians a position of every pair, relative to those of training."""
    return way(ONE, head_dim, **options) / angles(ONE, head_dim, base=options.get("base", 10_000.0))


# --- what each method promises ---------------------------------------------------------------


@pytest.mark.parametrize("head_dim", [4, 16, 128])
@pytest.mark.parametrize("scale", [2.0, 8.0, 40.0])
def test_interpolation_slows_every_pair_by_scale_and_ntk_from_none_to_scale(head_dim, scale):
    assert speeds(interpolated, head_dim, scale=scale).tolist() == pytest.approx([1 / scale] * (head_dim // 2))
    slowed = speeds(ntk, head_dim, scale=scale)
    assert slowed[0] == 1 and slowed[-1].item() == pytest.approx(1 / scale)
    assert (slowed.diff() < 0).all()


def test_yarns_ramp_may_end_behind_the_last_pair():
    """Within 1000 positions of base 100 the last of four pairs turns five times: the ramp goes from pair 1 to 5."""
    slowed = speeds(partial(yarn, scale=2.0, trained_length=1000), 8, base=100.0)
    assert slowed.tolist() == pytest.approx([1, 1, 1 - 1 / 8, 1 - 2 / 8])


def test_p_rope_turns_the_fastest_pairs_alone():
    assert torch.equal(speeds(partial(p_rope, share=0.25), 16), torch.tensor([1.0, 1, 0, 0, 0, 0, 0, 0]).double())
    assert p_rope(ONE, 6, share=0.9).count_nonzero() == 2  # of 2.7 pairs
    assert torch.equal(p_rope(ONE, 16, share=1), angles(ONE, 16)) and not p_rope(ONE, 16, share=0).any()


def test_factors_are_the_published_numbers():
    assert yarn_factor(32) == pytest.approx(1.3466, abs=1e-4) and yarn_factor(1) == yarn_factor(0.5) == 1
    assert yarn_factor(40, strength=0.707) == pytest.approx(1 + 0.0707 * math.log(40))
    assert longrope_factor(32, trained_length=4096) == pytest.approx(1.19024, abs=1e-5)
    assert longrope_factor(1, trained_length=4096) == 1


# --- what all methods share ------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_a_method_only_changes_speeds(name):
    way = METHODS[name]
    positions = torch.tensor([[0, 5], [131_071, -3]])
    theta = way(positions, 128)
    assert theta.dtype == torch.float64 and theta.shape == (2, 2, 64)
    assert torch.allclose(theta, positions[..., None] * way(ONE, 128))
    assert torch.equal(way(positions.int(), 128), theta) and way(positions[:0], 128).shape == (0, 2, 64)
    assert (way(ONE, 128) <= angles(ONE, 128)).all() and (way(ONE, 128) < 0.9 * angles(ONE, 128)).any()


@pytest.mark.parametrize("name", METHODS)
def test_bad_positions_and_sizes_are_refused(name):
    way = METHODS[name]
    with pytest.raises(TypeError, match="pass integers"):
        way(torch.arange(3.0), 128)
    for head_dim in (127, 0, -2):
        with pytest.raises(ValueError):
            way(ONE, head_dim)
    with pytest.raises(ValueError, match="base is"):
        way(ONE, 128, base=0.0)


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda: interpolated(ONE, 4, scale=0), "scale is 0"),
        (lambda: ntk(ONE, 4, scale=-1), "scale is -1"),
        (lambda: ntk(ONE, 2, scale=2), "at least 4"),
        (lambda: ntk(ONE, 4, scale=math.nan), "scale is nan"),
        (lambda: dynamic_ntk(ONE, 4, scale=0.5, trained_length=8, length=9), "at least 1"),
        (lambda: dynamic_ntk(ONE, 4, scale=2, trained_length=0, length=9), "trained_length is 0"),
        (lambda: dynamic_ntk(ONE, 4, scale=2, trained_length=8, length=0), "length is 0"),
        (lambda: yarn(ONE, 4, scale=0, trained_length=8), "scale is 0"),
        (lambda: yarn(ONE, 4, scale=2, trained_length=-8), "trained_length is -8"),
        (lambda: yarn(ONE, 4, scale=2, trained_length=8, fast=1, slow=1), "fast above slow"),
        (lambda: yarn(ONE, 4, scale=2, trained_length=8, slow=0), "slow is 0"),
        (lambda: yarn(ONE, 4, scale=2, trained_length=8, base=1.0), "above 1"),
        (lambda: yarn_factor(0), "scale is 0"),
        (lambda: llama3(ONE, 4, scale=2, trained_length=8, slow=4, fast=1), "fast above slow"),
        (lambda: llama3(ONE, 4, scale=2, trained_length=0), "trained_length is 0"),
        (lambda: longrope(ONE, 4, short=[1], long=[1, 1], trained_length=8, length=9), "short has 1 numbers"),
        (lambda: longrope(ONE, 4, short=[1, 1], long=[1, 0], trained_length=8, length=9), "the smallest 0"),
        (lambda: longrope(ONE, 4, short=[1, 1], long=[1, 1], trained_length=8, length=0), "length is 0"),
        (lambda: longrope_factor(2, trained_length=1), "2 or more"),
        (lambda: p_rope(ONE, 4, share=1.5), "from 0 to 1"),
    ],
)
def test_bad_options_are_refused(call, word):
    with pytest.raises(ValueError, match=word):
        call()


# --- transformers ----------------------------------------------------------------------------


def theirs(kind, *, length=None, head_dim=128, base=10_000.0, longest=4096, **options):
    """transformers' speeds and factor, in float32."""
    rope = pytest.importorskip("transformers.modeling_rope_utils", reason="it comes with the extra `dev`")
    from transformers import LlamaConfig

    parameters = {"rope_type": kind, "rope_theta": base, **options}
    config = LlamaConfig(head_dim=head_dim, max_position_embeddings=longest, rope_parameters=parameters)
    got, factor = rope.ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"), seq_len=length)
    return got.double(), factor


# Their speeds are float32: 2^-24 in each of a few products. What ports get wrong is off by more than 1%.
SAME = 1e-6


def apart(got, expected):
    return ((got - expected) / expected).abs().max().item()


@pytest.mark.slow
@pytest.mark.parametrize("head_dim, base", [(128, 10_000.0), (64, 500_000.0), (96, 1e6)])
@pytest.mark.parametrize("scale", [2.0, 8.0, 32.0])
def test_each_method_is_that_of_transformers(head_dim, base, scale):
    size = {"head_dim": head_dim, "base": base}
    long = {"original_max_position_embeddings": 4096}
    assert apart(interpolated(ONE, **size, scale=scale), theirs("linear", **size, factor=scale)[0]) < SAME
    for length in (2000, 4096, 5000, 100_000):
        expected = theirs("dynamic", **size, factor=scale, length=length)[0]
        assert apart(dynamic_ntk(ONE, **size, scale=scale, trained_length=4096, length=length), expected) < SAME
    plain = theirs("dynamic", **size, factor=1.0, length=round(4096 * scale))[0]
    assert apart(ntk(ONE, **size, scale=scale), plain) < SAME
    for options, named in (
        ({}, {}),
        ({"fast": 8.0, "slow": 2.0}, {"beta_fast": 8, "beta_slow": 2}),
        ({"truncate": False}, {"truncate": False}),
    ):
        expected, factor = theirs("yarn", **size, factor=scale, **long, **named)
        # 1 - ramp in float32 loses digits where the ramp ends, and counts scale times there
        rounding = SAME if options.get("truncate", True) else SAME * max(1, scale / 8)
        assert apart(yarn(ONE, **size, scale=scale, trained_length=4096, **options), expected) < rounding
        assert yarn_factor(scale) == pytest.approx(factor, rel=1e-12)
    expected, _ = theirs("llama3", **size, factor=scale, low_freq_factor=1.0, high_freq_factor=4.0, **long)
    assert apart(llama3(ONE, **size, scale=scale, trained_length=4096), expected) < SAME
    tables = {"short": [1 + 0.03 * i for i in range(head_dim // 2)], "long": [1 + i for i in range(head_dim // 2)]}
    named = long | {f"{name}_factor": table for name, table in tables.items()}
    for length in (4000, 4096, 4097, 100_000):
        expected, factor = theirs("longrope", **size, **named, factor=scale, length=length)
        assert apart(longrope(ONE, **size, **tables, trained_length=4096, length=length), expected) < SAME
        assert longrope_factor(scale, trained_length=4096) == pytest.approx(factor, rel=1e-12)


def test_every_public_function_says_where_it_comes_from():
    for name, function in vars(stretching).items():
        if callable(function) and getattr(function, "__module__", "") == "posenc.stretching" and name[0] != "_":
            assert "Source: " in function.__doc__, name
