"""Conventions that transformers' configurations ask for, against what transformers' own code does."""

import importlib
from functools import partial

import pytest
import rotations
import torch
from rotations import Setting

from posenc.probe import Convention, convention

pytestmark = pytest.mark.slow  # transformers and its classes take seconds to import

SMALL = {"hidden_size": 128, "num_attention_heads": 2, "num_hidden_layers": 4}
NAMES = """
    Llama Mistral Mixtral Qwen2 Qwen3 Qwen3Moe GPTNeoX Gemma Gemma2 Phi Phi3 StableLm Olmo2 Cohere Glm GptOss Apertus
    Arcee Cohere2 Ernie4_5 Glm4 Glm4Moe Helium Qwen3Next Qwen3VLText SmolLM3
""".split()
BEFORE = {"original_max_position_embeddings": 2048}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
FACTORS = {"short_factor": [1 + pair / 16 for pair in range(32)], "long_factor": [1 + pair for pair in range(32)]}
SCALINGS = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic": {"rope_type": "dynamic", "factor": 4.0},
    "llama3": LLAMA3 | BEFORE,
    "yarn": {"rope_type": "yarn", "factor": 4.0} | BEFORE,
    "longrope": {"rope_type": "longrope", "factor": 4.0} | BEFORE | FACTORS,
}


def config_of(name, **options):
    return getattr(pytest.importorskip("transformers"), f"{name}Config")(**options)


def theirs(name, config, dtype=torch.float32, layer_type=None):
    """Their rotation, as their attention calls it."""
    folder = importlib.import_module(type(config).__module__).__name__.rpartition(".")[0]
    modeling = importlib.import_module(f"{folder}.modeling_{folder.rpartition('.')[2]}")
    embedding = getattr(modeling, f"{name}RotaryEmbedding")(config)
    options = {} if layer_type is None else {"layer_type": layer_type}

    def turned(x, positions):
        cos, sin = embedding(x, positions[None], **options)
        cos, sin = cos.to(dtype), sin.to(dtype)
        size = 2 * cos.shape[-1] if name == "GptOss" else cos.shape[-1]
        queries = (x[..., :size],) if name == "Gemma4Text" else (x[..., :size],) * 2
        part = modeling.apply_rotary_pos_emb(*queries, cos, sin)
        part = part[0] if len(queries) == 2 else part
        return torch.cat([part, x[..., size:]], dim=-1)

    return turned


def configured(name, scaling=None, base=500_000.0):
    make = partial(config_of, name, **SMALL, pad_token_id=0)
    rope = {"partial_rotary_factor": make().rope_parameters.get("partial_rotary_factor", 1.0)}
    rope |= {"rope_type": "default", "rope_theta": base} | (scaling or {})
    return make(rope_parameters=rope)


def read(name, scaling=None, dtype=torch.float32):
    config = configured(name, scaling)
    expected = Convention.from_config(config, layer=0)
    return convention(theirs(name, config), expected.head_dim, dtype=dtype), expected


@pytest.mark.parametrize("name", NAMES)
def test_the_code_of_transformers_does_what_its_configuration_says(name):
    found, expected = read(name)
    assert found.differs(expected) == ""
    assert found == expected, "and they are equal"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("how", SCALINGS)
def test_scaling_is_what_the_configuration_says_and_is_missed_where_it_was_dropped(how, dtype):
    scaled, expected = read("Llama", SCALINGS[how], dtype)
    assert scaled.differs(expected) == ""
    plain, unscaled = read("Llama", dtype=dtype)
    if how != "dynamic":  # up to its length it does nothing
        assert plain.differs(expected).startswith("the scaling is missing: base 500,000 as it is, expected")
        assert scaled.differs(unscaled)


def test_the_other_factors_of_longrope_are_named():
    """Used for a long text, or for a short one, where the configuration has the others."""
    config = configured("Llama", SCALINGS["longrope"])
    short, long = (Convention.from_config(config, longest=longest) for longest in (2048, 2049))
    assert short.scaling == "LongRoPE scaling by 4 from 2,048 positions, its short factors"
    assert convention(short.rotate, 64).differs(long) == f"LongRoPE's short factors, expected {long.scaling}"
    assert convention(long.rotate, 64, dtype=torch.bfloat16).differs(short) == (
        f"LongRoPE's long factors, expected {short.scaling}"
    )
    neither = Convention(64, speeds=0.9 * short.speeds, length=short.length)
    assert "LongRoPE's" not in convention(neither.rotate, 64).differs(short)


YARN = {"rope_type": "yarn"}
PARTLY_SLOWED = {  # what chapter 5 teaches, as models have it: base, size of a head, settings, trained length
    "Llama 3.1": (500_000.0, 128, LLAMA3, 8192),
    "Llama 3.2": (500_000.0, 64, LLAMA3 | {"factor": 32.0}, 8192),
    "Qwen 2.5": (1e6, 128, YARN | {"factor": 4.0}, 32768),
    "gpt-oss": (150_000.0, 64, YARN | {"factor": 32.0, "truncate": False}, 4096),
    "an unusual length": (10_000.0, 96, LLAMA3 | {"factor": 3.0}, 6000),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", PARTLY_SLOWED)
def test_what_slows_some_pairs_is_named_with_its_factor_and_length(name, dtype):
    base, head_dim, scaling, before = PARTLY_SLOWED[name]
    rope = {"rope_theta": base, "original_max_position_embeddings": before} | scaling
    config = config_of("Llama", head_dim=head_dim, max_position_embeddings=131_072, rope_parameters=rope)
    kind = {"llama3": "llama3", "yarn": "YaRN"}[scaling["rope_type"]]
    found = convention(theirs("Llama", config), head_dim, dtype=dtype)
    assert found.scaling == f"{kind} scaling by {scaling['factor']:g} from {before:,} positions"
    assert found.base == base and found.precision and not found.differs(Convention.from_config(config))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_proportional_scaling_is_pairs_that_stand_still(dtype):
    """Gemma 4's layers that see everything; those with a window have smaller heads and another base."""
    config = config_of("Gemma4Text", **SMALL, layer_types=["sliding_attention"] * 3 + ["full_attention"])
    with pytest.raises(ValueError, match="pass layer="):
        Convention.from_config(config)
    near, far = (Convention.from_config(config, layer=layer) for layer in (0, 3))
    assert (near.head_dim, near.base, far.head_dim, far.base) == (256, 10_000, 512, 1_000_000)
    assert far.scaling == "of its 256 pairs, those from 64 on stand still"
    read = {
        kind: convention(theirs("Gemma4Text", config, dtype, kind), size, dtype=dtype)
        for kind, size in (("sliding_attention", 256), ("full_attention", 512))
    }
    assert not read["sliding_attention"].differs(near) and not read["full_attention"].differs(far)
    dropped = convention(Convention(512, base=1e6).rotate, 512, dtype=dtype)
    assert dropped.differs(far) == f"the scaling is missing: base 1,000,000 as it is, expected {far.scaling}"
    assert far.rotate(torch.ones(1, 5, 512), torch.arange(5)).shape == (1, 5, 512)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_another_scaling_than_was_asked_for_is_one_sentence(dtype):
    def turned(factor, before, **options):
        yarn = SCALINGS["yarn"] | {"factor": factor, "original_max_position_embeddings": before}
        config = configured("Llama", yarn | options)
        return convention(theirs("Llama", config), 64, dtype=dtype), Convention.from_config(config)

    found, _ = turned(4.0, 4096, attention_factor=1.0)
    _, expected = turned(8.0, 2048, attention_factor=1.0)
    both = "base 500,000, YaRN scaling by {} from {} positions".format
    assert found.differs(expected) == f"{both(4, '4,096')}; expected {both(8, '2,048')}"
    plain, _ = read("Llama", dtype=dtype)
    _, expected = turned(4.0, 2048)
    assert plain.differs(expected) == (
        "the scaling is missing: base 500,000 as it is, expected YaRN scaling by 4 from 2,048 positions "
        "with vectors × 1.13863"
    )


PLAIN = {"model_type": "llama", "head_dim": 64, "rope_theta": 10_000.0}


@pytest.mark.parametrize(
    "change, words",
    [
        ({"base": 500_000.0}, "base 500,000, expected 10,000"),
        ({"direction": -1}, "turns clockwise, expected counter-clockwise"),
        ({"offset": 1}, "offset +1, expected 0"),
        ({"rotary_dim": 32}, "turns 32 dimensions from 0 on, expected 64 dimensions from 0 on"),
        ({"layout": "interleaved"}, "layout interleaved, expected half_split"),
        ({"length": 1.1}, "vectors × 1.1, expected × 1"),
        ({"scale": 0.5}, "positions × 0.5, expected × 1"),
    ],
)
def test_one_mistake_is_one_sentence(change, words):
    wrong = Convention(**{"head_dim": 64} | change)
    got = convention(wrong.rotate, 64).differs(Convention.from_config(PLAIN))
    assert words in got and "; " not in got


def test_what_cannot_be_read_is_not_called_the_same():
    expected = Convention.from_config(PLAIN)
    assert "not readable" in convention(rotations.along_heads(Setting(64, 64)), 64).differs(expected)
    assert "nothing is turned" in convention(lambda x, p: x, 64).differs(expected)


def test_layers_that_differ_are_named():
    config = config_of("SmolLM3", **SMALL, pad_token_id=0)
    with pytest.raises(ValueError, match="pass layer="):
        Convention.from_config(config)
    still = Convention.from_config(config, layer=3)
    assert still.rotary_dim == 0 and not convention(lambda x, p: x, 64).differs(still)
    assert Convention.from_config(config, layer=0).base == 2_000_000
    gemma = config_of("Gemma3Text", **SMALL)
    bases = {gemma.layer_types[i]: Convention.from_config(gemma, layer=i).base for i in range(4)}
    assert bases["sliding_attention"] == 10_000
    full = config_of("Gemma3Text", **SMALL, layer_types=["full_attention"] * 4)
    expected = Convention.from_config(full, layer=2)
    assert not convention(theirs("Gemma3", full, layer_type="full_attention"), 256).differs(expected)
    for name in ("Cohere2", "Exaone4"):  # no rotation where there is no window
        config = config_of(name, **SMALL | {"num_hidden_layers": 8})
        turns = [Convention.from_config(config, layer=layer).rotary_dim > 0 for layer in range(8)]
        assert turns == [True, True, True, False] * 2


BEFORE = {"original_max_position_embeddings": 4096}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"model_type": "gemma3_text", "rope_local_base_freq": 10_000.0}, "older configuration"),
        ({"model_type": "bert"}, "write the Convention"),
        ({"model_type": "llama"}, "head_dim, or hidden_size"),
        (PLAIN | {"num_hidden_layers": 2}, "layer is 2: llama has 2"),
        (PLAIN | {"rope_scaling": {"rope_type": "linear"}}, "linear needs a factor"),
        (PLAIN | {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, "dynamic needs max_position"),
        (PLAIN | {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "yarn needs original_max"),
        (PLAIN | {"rope_scaling": {"rope_type": "yarn"} | BEFORE}, "yarn needs a factor"),
        (PLAIN | {"rope_scaling": {"rope_type": "longrope", "factor": 2.0} | BEFORE}, "needs short_factor and"),
        (PLAIN | {"rope_scaling": {"rope_type": "other", "factor": 2.0}}, "rope_type is 'other'"),
    ],
)
def test_a_configuration_in_which_something_is_missing_says_what(config, words):
    with pytest.raises(ValueError, match=words):
        Convention.from_config(config, layer=2)


def test_those_that_turn_neighbours():
    gptj = config_of("GPTJ", n_embd=128, n_head=2, rotary_dim=32)
    expected = Convention.from_config(gptj)
    assert (expected.layout, expected.rotary_dim, expected.head_dim) == ("interleaved", 32, 64)
    assert Convention.from_config(config_of("Llama4Text", **SMALL), layer=0).layout == "interleaved"
    deepseek = Convention.from_config(config_of("DeepseekV3"))
    assert (deepseek.layout, deepseek.head_dim) == ("interleaved", 64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_rotation_that_reorders_its_dimensions_is_read(dtype):
    """DeepSeek V3 turns neighbours and puts their first dimensions before all second ones."""
    config = config_of("DeepseekV3", qk_rope_head_dim=32)
    deepseek = importlib.import_module("transformers.models.deepseek_v3.modeling_deepseek_v3")
    embedding = deepseek.DeepseekV3RotaryEmbedding(config)

    def turned(x, positions):
        return deepseek.apply_rotary_pos_emb_interleave(x, x, *embedding(x, positions[None]))[0]

    found = convention(turned, 32, dtype=dtype)
    assert found.differs(Convention.from_config(config)) == ""
    assert found.order == (*range(0, 32, 2), *range(1, 32, 2))
    assert "weights are stored for interleaved, what it returns is half-split" in repr(found)
    x = torch.randn(1, 1, 9, 32, generator=torch.Generator().manual_seed(0))
    places = torch.arange(9)
    if dtype == torch.float32:
        torch.testing.assert_close(found.rotate(x, places), turned(x, places), rtol=0, atol=1e-5)
