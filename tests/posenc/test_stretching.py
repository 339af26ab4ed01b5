"""Angles for longer texts: where they land, transformers' own functions, and inputs they refuse."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc import stretching
from posenc.rotary import angles, rotate
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


@settings(max_examples=25)
@given(scale=st.floats(0.1, 100), delta=st.integers(0, 500))
def test_interpolation_puts_a_scaled_distance_where_the_trained_one_was(scale, delta):
    got = interpolated(torch.tensor(8 * delta), 16, scale=8)
    assert torch.allclose(got, angles(torch.tensor(delta), 16))
    assert torch.allclose(interpolated(torch.tensor(delta), 16, scale=scale) * scale, angles(torch.tensor(delta), 16))


@pytest.mark.parametrize("head_dim", [4, 16, 128])
@pytest.mark.parametrize("scale", [2.0, 8.0, 40.0])
def test_ntk_keeps_the_fastest_pair_and_slows_the_last_by_scale(head_dim, scale):
    slowed = speeds(ntk, head_dim, scale=scale)
    assert slowed[0] == 1 and slowed[-1].item() == pytest.approx(1 / scale)
    assert (slowed.diff() < 0).all()


def test_dynamic_ntk_changes_nothing_until_the_text_is_longer():
    way = partial(dynamic_ntk, scale=4.0, trained_length=64)
    for length in (1, 63, 64):
        assert torch.equal(way(ONE, 16, length=length), angles(ONE, 16))
    assert torch.allclose(way(ONE, 16, length=256), ntk(ONE, 16, scale=13))  # 4 · 4 - 3
    assert torch.allclose(dynamic_ntk(ONE, 16, scale=1, trained_length=64, length=256), ntk(ONE, 16, scale=4))


def test_yarn_leaves_pairs_alone_that_turn_often_and_interpolates_those_that_hardly_do():
    slowed = speeds(partial(yarn, scale=8.0, trained_length=4096))
    turns = 4096 * angles(ONE, 128) / (2 * math.pi)
    assert slowed[0] == 1 and slowed[-1].item() == pytest.approx(1 / 8)
    # rounded outwards, the ramp starts before the first pair below 32 turns and ends after the first below 1
    assert (slowed[turns < 1][1:] - 1 / 8).abs().max() < 1e-12 and (slowed[turns > 32] == 1).sum() == (turns > 32).sum()
    between = slowed[(turns < 32) & (turns > 1)]
    assert (between < 1).sum() >= len(between) - 1 and (between > 1 / 8).all()
    assert between.diff().diff().abs().max() < 1e-12  # straight in the number of the pair


def test_yarn_without_rounding_starts_exactly_at_fast_and_slow_turns():
    options = {"scale": 4.0, "trained_length": 4096, "truncate": False}
    slowed, turns = speeds(partial(yarn, **options)), 4096 * angles(ONE, 128) / (2 * math.pi)
    assert torch.equal(slowed == 1, turns >= 32) and torch.equal(slowed < 1 / 4 + 1e-12, turns <= 1)


def test_yarns_ramp_may_end_behind_the_last_pair():
    """Within 1000 positions of base 100 the last of four pairs turns five times: the ramp goes from pair 1 to 5."""
    slowed = speeds(partial(yarn, scale=2.0, trained_length=1000), 8, base=100.0)
    assert slowed.tolist() == pytest.approx([1, 1, 1 - 1 / 8, 1 - 2 / 8])


def test_llama3_ramps_in_turns():
    slowed = speeds(partial(llama3, scale=8.0, trained_length=8192), base=500_000.0)
    turns = 8192 * angles(ONE, 128, base=500_000.0) / (2 * math.pi)
    assert torch.equal(slowed == 1, turns >= 4) and torch.equal(slowed < 1 / 8 + 1e-12, turns <= 1)
    middle = (turns > 1) & (turns < 4)
    assert middle.sum() > 3
    assert torch.allclose(slowed[middle], 1 / 8 + (turns[middle] - 1) / 3 * 7 / 8)


def test_longrope_takes_the_table_that_belongs_to_the_text():
    way = partial(longrope, **TABLES, trained_length=4096)
    for length, table in ((4096, "short"), (4097, "long")):
        got = speeds(partial(way, length=length))
        assert torch.allclose(1 / got, torch.tensor(TABLES[table], dtype=torch.float64))


def test_p_rope_turns_the_fastest_pairs_alone():
    assert torch.equal(speeds(partial(p_rope, share=0.25), 16), torch.tensor([1.0, 1, 0, 0, 0, 0, 0, 0]).double())
    assert p_rope(ONE, 6, share=0.9).count_nonzero() == 2  # of 2.7 pairs
    assert torch.equal(p_rope(ONE, 16, share=1), angles(ONE, 16)) and not p_rope(ONE, 16, share=0).any()


def test_factors_are_the_published_numbers():
    assert yarn_factor(32) == pytest.approx(1.3466, abs=1e-4) and yarn_factor(1) == yarn_factor(0.5) == 1
    assert yarn_factor(40, strength=0.707) == pytest.approx(1 + 0.0707 * math.log(40))
    assert longrope_factor(32, trained_length=4096) == pytest.approx(1.19024, abs=1e-5)
    assert longrope_factor(1, trained_length=4096) == 1


@pytest.mark.parametrize("stretch", [interpolated, ntk])
def test_scale_1_changes_nothing(stretch):
    assert torch.allclose(stretch(torch.arange(9), 8, scale=1), angles(torch.arange(9), 8))


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
def test_scores_stay_relative(name):
    q, k = torch.randn(2, 128, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    near, far = (
        rotate(q, METHODS[name](torch.tensor(m), 128)) @ rotate(k, METHODS[name](torch.tensor(m - 7), 128))
        for m in (9, 5000)
    )
    assert abs(near - far) < 1e-9


@pytest.mark.parametrize("name", METHODS)
def test_bad_positions_and_sizes_are_refused(name):
    way = METHODS[name]
    for wrong in (torch.arange(3.0), torch.arange(3).bfloat16()):
        with pytest.raises(TypeError, match="pass integers"):
            way(wrong, 128)
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


# Their speeds are float32: 2^-24 in each of a few products. Every mistake planted below is off by more than 1%.
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
    for length in (4000, 4096, 4097, 100_000):
        expected, factor = theirs(
            "longrope",
            **size,
            short_factor=tables["short"],
            long_factor=tables["long"],
            factor=scale,
            length=length,
            **long,
        )
        assert apart(longrope(ONE, **size, **tables, trained_length=4096, length=length), expected) < SAME
        assert longrope_factor(scale, trained_length=4096) == pytest.approx(factor, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.25, 0.5, 0.75, 1.0])
def test_p_rope_is_proportional_in_transformers(share):
    expected, _ = theirs("proportional", partial_rotary_factor=share)
    assert torch.equal(expected == 0, p_rope(ONE, 128, share=share) == 0)
    turned = expected > 0
    assert apart(p_rope(ONE, 128, share=share)[turned], expected[turned]) < SAME


@pytest.mark.slow
def test_the_tolerance_can_fail():
    """What ports get wrong: each is far outside what rounding explains."""
    long = {"original_max_position_embeddings": 4096}
    dynamic = theirs("dynamic", factor=4.0, length=16_384)[0]
    assert apart(ntk(ONE, 128, scale=4), dynamic) > 0.5  # the scale is 13, not 4
    expected = theirs("yarn", factor=8.0, **long)[0]
    for mistake in (
        yarn(ONE, 128, scale=8.0, trained_length=4096 * 8),  # the length after stretching
        yarn(ONE, 128, scale=8.0, trained_length=4096, truncate=False),
        llama3(ONE, 128, scale=8.0, trained_length=4096),
        interpolated(ONE, 128, scale=8.0),
    ):
        assert apart(mistake, expected) > 0.01
    expected = theirs("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, **long)[0]
    assert apart(llama3(ONE, 128, scale=8.0, trained_length=4096, fast=5), expected) > 0.01


def test_every_public_function_says_where_it_comes_from():
    for name, function in vars(stretching).items():
        if callable(function) and getattr(function, "__module__", "") == "posenc.stretching" and name[0] != "_":
            assert "Source: " in function.__doc__, name
