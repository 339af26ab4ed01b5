"""A configuration's words, and its angles beside those of transformers."""

import pytest
import torch

from posenc.chapters.longer_than_trained.configuration import rotations, unturned
from posenc.chapters.longer_than_trained.published import CONFIGURATIONS

WORDS = {
    "Llama 2": "64 pairs, base 10,000, as trained from 4,096 positions, reads 4,096; no new angle up to distance 4,095",
    "Llama 3.1": "base 500,000, llama3 ×8 from 8,192 positions, reads 131,072; no new angle up to distance 65,528",
    "Qwen2.5, YaRN": "base 1,000,000, YaRN ×4 from 32,768 positions, reads 131,072; vectors × 1.139; no new",
    "Gemma 3": "full_attention: 128 pairs, base 1,000,000, PI ×8 from 16,384 positions (not stated)",
    "DeepSeek V3": "32 pairs, base 10,000, YaRN ×40 from 4,096 positions, reads 163,840; scores × 1.874; no new angle",
    "Phi-3 128k": "48 pairs, base 10,000, LongRoPE ×32 from 4,096 positions, reads 131,072; vectors × 1.190",
    "gpt-oss": "32 pairs, base 150,000, YaRN ×32 from 4,096 positions, reads 131,072; vectors × 1.347; no new angle",
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_published_configuration_gets_its_words(name):
    first, *others = map(str, rotations(CONFIGURATIONS[name]))
    assert WORDS[name] in first and len(others) == (name == "Gemma 3")
    assert all("base 10,000, as tr" in words for words in others)


def test_the_newer_form_says_the_same():
    for name, old in CONFIGURATIONS.items():
        scaling = dict(old["rope_scaling"] or {})
        scaling["rope_type"] = scaling.pop("type", None) or scaling.get("rope_type", "default")
        new = {key: value for key, value in old.items() if not key.startswith("rope_")}
        new["rope_parameters"] = scaling | {"rope_theta": old["rope_theta"]}
        if name == "Gemma 3":
            local = {"rope_type": "default", "rope_theta": old["rope_local_base_freq"]}
            new["rope_parameters"] = {"full_attention": new["rope_parameters"], "sliding_attention": local}
        assert list(map(str, rotations(new))) == list(map(str, rotations(old)))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CONFIGURATIONS if name not in ("Gemma 3", "DeepSeek V3")])
def test_speeds_and_factors_are_those_of_transformers(name):
    transformers = pytest.importorskip("transformers", reason="it comes with the extra `models`")
    utils = pytest.importorskip("transformers.modeling_rope_utils")
    config = CONFIGURATIONS[name]
    scaling = {"rope_theta": config["rope_theta"], "rope_type": "default"} | dict(config["rope_scaling"] or {})
    scaling["rope_type"] = scaling.pop("type", scaling["rope_type"])
    scaling.setdefault("original_max_position_embeddings", config.get("original_max_position_embeddings"))
    kept = {key: value for key, value in config.items() if not key.startswith(("rope_", "original"))}
    theirs = transformers.LlamaConfig(**kept, rope_parameters=scaling)
    (ours,) = rotations(config)
    if scaling["rope_type"] == "default":
        factor, speeds = 1.0, theirs.rope_parameters["rope_theta"] ** (-torch.arange(0, 128, 2) / 128)
    else:
        compute = utils.ROPE_INIT_FUNCTIONS[scaling["rope_type"]]
        speeds, factor = compute(theirs, torch.device("cpu"), seq_len=config["max_position_embeddings"])
    assert torch.allclose(ours.speeds.float(), speeds, rtol=3e-6)  # theirs are float32
    assert ours.on_vectors == pytest.approx(factor)


def test_parts_and_layers_that_do_not_turn():
    plain = {"hidden_size": 512, "num_attention_heads": 4, "max_position_embeddings": 64, "num_hidden_layers": 8}
    (quarter,) = rotations(plain | {"partial_rotary_factor": 0.25})
    assert len(quarter.speeds) == 16 and (quarter.speeds > 0).all()
    proportional = {"rope_type": "proportional", "rope_theta": 10_000.0, "partial_rotary_factor": 0.25}
    (p_rope,) = rotations(plain | {"rope_parameters": proportional})
    assert len(p_rope.speeds) == 64 and (p_rope.speeds > 0).sum() == 16
    assert "48 pairs stand still" in str(p_rope)
    assert unturned(plain) == []
    assert unturned(plain | {"no_rope_layer_interval": 4}) == [3, 7]
    assert unturned(plain | {"no_rope_layers": [1, 1, 1, 0] * 2}) == [3, 7]


def test_what_cannot_be_read_is_refused():
    plain = {"hidden_size": 64, "num_attention_heads": 1, "max_position_embeddings": 64}
    for kind, message in (("spiral", "rope_type is 'spiral'"), ("yarn", "yarn needs original_max_position_embeddings")):
        with pytest.raises(ValueError, match=message):
            rotations(plain | {"rope_scaling": {"rope_type": kind, "factor": 2.0}})
