"""Models of transformers, without a download: small ones of its classes, with random weights, and stored ones.

transformers is an extra of this course, `models`; the functions here import it, and this module does not.
"""

import copy
from pathlib import Path

import torch
from torch import Tensor, nn

from posenc.tasks import CHARACTERS
from posenc.terms import FourTerms, four_terms, layer_norm_parts

INSTALL = 'pip install -c constraints.txt -e ".[course,models]"'

_TOKENS = {"vocab_size": len(CHARACTERS), "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
_USUAL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
_WIDE = _USUAL | {"intermediate_size": 256}
_OLDER = {"n_embd": 64, "n_layer": 2, "n_head": 4}
_FOUR = {"num_hidden_layers": 4, "num_key_value_heads": 2}
CLASSES = {  # the name that people use → class of the configuration, and its numbers
    "GPT-2": ("GPT2Config", _OLDER | {"n_positions": 128}),
    "OPT": (
        "OPTConfig",
        _USUAL | {"ffn_dim": 256, "word_embed_proj_dim": 64, "max_position_embeddings": 128},
    ),
    "BERT": ("BertConfig", _WIDE | {"max_position_embeddings": 128}),
    "Llama": ("LlamaConfig", _WIDE | {"max_position_embeddings": 128}),
    "Qwen2": ("Qwen2Config", _WIDE | {"num_key_value_heads": 2}),
    "GPT-NeoX": ("GPTNeoXConfig", _WIDE),
    "GPT-J": ("GPTJConfig", _OLDER | {"rotary_dim": 8}),
    "Falcon": ("FalconConfig", _USUAL),
    "RoFormer": ("RoFormerConfig", _WIDE),
    "Gemma 3": (
        "Gemma3TextConfig",
        _WIDE | {"num_hidden_layers": 6, "num_key_value_heads": 2, "head_dim": 16},
    ),
    "Gemma 4": (
        "Gemma4TextConfig",
        _WIDE
        | {
            "num_hidden_layers": 6,
            "num_key_value_heads": 2,
            "num_global_key_value_heads": 2,
            "head_dim": 16,
            "global_head_dim": 16,
            "vocab_size_per_layer_input": len(CHARACTERS),
            "hidden_size_per_layer_input": 16,
            "num_kv_shared_layers": 0,
        },
    ),
    "SmolLM3": ("SmolLM3Config", _WIDE | _FOUR),
    "gpt-oss": (
        "GptOssConfig",
        _WIDE | {"num_key_value_heads": 2, "head_dim": 16, "num_local_experts": 2, "num_experts_per_tok": 1},
    ),
    "DeepSeek V3": (
        "DeepseekV3Config",
        _WIDE
        | {
            "kv_lora_rank": 32,
            "q_lora_rank": 32,
            "qk_nope_head_dim": 16,
            "qk_rope_head_dim": 8,
            "v_head_dim": 16,
            "num_key_value_heads": 4,
            "first_k_dense_replace": 2,  # no layer with experts
        },
    ),
    "Qwen3-Next": (
        "Qwen3NextConfig",
        _WIDE
        | _FOUR
        | {
            "head_dim": 16,
            "linear_num_value_heads": 4,
            "linear_num_key_heads": 2,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
            "num_experts": 2,
            "num_experts_per_tok": 1,
            "moe_intermediate_size": 64,
            "shared_expert_intermediate_size": 64,
        },
    ),
    "Qwen2-VL": (
        "Qwen2VLTextConfig",
        _WIDE
        | {
            "num_key_value_heads": 2,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 3, 3]},
        },
    ),
    "BLOOM": ("BloomConfig", {"hidden_size": 64, "n_layer": 2, "n_head": 4}),
    "MPT": ("MptConfig", {"d_model": 64, "n_layers": 2, "n_heads": 4}),
    "T5": ("T5Config", {"d_model": 64, "d_kv": 16, "d_ff": 256, "num_layers": 2, "num_heads": 4}),
    "DeBERTa": (
        "DebertaV2Config",
        _WIDE
        | {
            "relative_attention": True,
            "pos_att_type": ["c2p", "p2c"],
            "norm_rel_ebd": "layer_norm",
            "position_biased_input": False,
            "max_position_embeddings": 128,
        },
    ),
}


def require_transformers() -> None:
    """Nothing where transformers is installed; elsewhere one line that says how to get it, and the run ends.

    Raises:
        Missing: it is not installed.
    """
    try:
        import transformers
    except ModuleNotFoundError:
        raise Missing(f"This chapter needs transformers. In the course's folder, run:  {INSTALL}") from None
    del transformers


class Missing(ModuleNotFoundError):
    """A package of an extra is not installed. In a notebook it is one line without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def small(name: str, *, seed: int = 0, predicts: bool = False) -> nn.Module:
    """A model of one of transformers' classes, a few layers of width 64, with random weights.

    Its tokens are the course's characters. It computes its attention step by step ("eager").

    Args:
        name: one of CLASSES.
        seed: of the weights; the learner's random numbers are left alone.
        predicts: with a head that gives the logits of the next character.

    Returns:
        the model, in evaluation mode.

    Raises:
        ValueError: there is no such name, or no such class that predicts.
        Missing: transformers is not installed.
    """
    require_transformers()
    import transformers

    if name not in CLASSES:
        raise ValueError(f"there is no small {name!r}; there are: {', '.join(CLASSES)}")
    kind, numbers = CLASSES[name]
    if kind == "Qwen2VLTextConfig":
        from transformers.models.qwen2_vl import modeling_qwen2_vl

        config = modeling_qwen2_vl.Qwen2VLTextConfig(**_TOKENS, **numbers)
        config._attn_implementation = "eager"
        made = None if predicts else lambda: modeling_qwen2_vl.Qwen2VLTextModel(config)
    else:
        config = getattr(transformers, kind)(**_TOKENS, **numbers)
        auto = transformers.AutoModelForCausalLM if predicts else transformers.AutoModel
        known = type(config) in auto._model_mapping
        made = (lambda: auto.from_config(config, attn_implementation="eager")) if known else None
    if made is None:
        raise ValueError(f"no {name} here predicts the next character: leave predicts out")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return made().float().eval()


@torch.no_grad()
def gpt2_terms(model: nn.Module, tokens: Tensor) -> FourTerms:
    """The four terms of the scores in GPT-2's first layer.

    Args:
        model: a GPT-2 of transformers, with a head or without.
        tokens: shape (B, T).

    Returns:
        each (B, heads, T, T); their sum is the score. The biases count as content, LayerNorm's among them.

    Raises:
        TypeError: the model is no GPT-2.
    """
    model = getattr(model, "transformer", model)
    if not hasattr(model, "wpe"):
        raise TypeError(f"{type(model).__name__} is no GPT-2: it has no table wpe that is added to its tokens")
    first = model.h[0]
    x = model.wte(tokens)
    e = model.wpe.weight[: tokens.shape[1]].expand_as(x)
    content, position = layer_norm_parts([x, e], first.ln_1)
    heads = first.attn.num_heads
    weights = first.attn.c_attn.weight.T.unflatten(0, (3, heads, -1))[:2]  # queries and keys, (heads, d_head, d)
    biases = first.attn.c_attn.bias.unflatten(0, (3, heads, -1))[:2] + weights @ first.ln_1.bias
    return four_terms(content[:, None], position[:, None], *weights, query_bias=biases[0], key_bias=biases[1])


@torch.no_grad()
def without_scores(model: nn.Module) -> nn.Module:
    """A copy of a GPT-2, an OPT or a Llama of transformers whose queries are all 0: each key gets the same weight.

    Raises:
        TypeError: its queries are not where they are in these.
    """
    silent, found = copy.deepcopy(model), False
    for name, weight in silent.named_parameters():
        if ".attn.c_attn." in name:  # GPT-2: queries, keys and values side by side
            weight[..., : weight.shape[-1] // 3] = 0
        elif ".q_proj." in name:
            weight.zero_()
        else:
            continue
        found = True
    if not found:
        raise TypeError(f"{type(model).__name__} has no queries where GPT-2, OPT or Llama have them")
    return silent


@torch.no_grad()
def next_log_probabilities(model: nn.Module, texts: Tensor, *, padding: int = 0) -> Tensor:
    """What a model expects after each token of its texts, in nats.

    Args:
        model: one of transformers, with a head that predicts.
        texts: shape (B, T).
        padding: tokens put in front of each text, which an attention mask hides. That is all that the model is told.

    Returns:
        shape (B, T, vocabulary), without what stands in front.
    """
    mask = torch.ones(len(texts), padding + texts.shape[1], dtype=torch.long)
    mask[:, :padding] = 0
    tokens = torch.cat([texts.new_zeros(len(texts), padding), texts], dim=1)
    return model(input_ids=tokens, attention_mask=mask).logits[:, padding:].log_softmax(dim=-1)


def load(where: str | Path) -> nn.Module:
    """A model as `save_pretrained` stored it, ready to be asked; nothing is downloaded but by its name.

    Args:
        where: a folder; or a model's name on the hub, such as "openai-community/gpt2". A Path, and what begins
            with ".", "/" or "~", is a folder.

    Raises:
        Missing: transformers is not installed.
        FileNotFoundError: there is no such folder.
        ValueError: it is a file, the folder holds no model, or what it holds cannot be read.
        OSError: the hub cannot be reached, or has no model of this name.
    """
    require_transformers()
    from transformers import AutoModel

    folder = Path(where).expanduser()
    if folder.is_file():
        raise ValueError(f"{where} is a file: pass the folder that save_pretrained wrote, with config.json in it")
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ValueError(f"{where} has no config.json: pass the folder that model.save_pretrained(folder) wrote")
        try:
            return AutoModel.from_pretrained(folder, local_files_only=True).eval()
        except Exception as error:  # noqa: BLE001 - a library of a thousand models raises all there is
            raise ValueError(f"{where} cannot be read: {_first_line(error)}") from None
    if isinstance(where, Path) or str(where).startswith((".", "/", "~")):
        raise FileNotFoundError(f"there is no folder {where}: save a model first, with model.save_pretrained(folder)")
    try:
        return AutoModel.from_pretrained(where).eval()
    except (OSError, ValueError) as error:
        raise OSError(
            f"{where!r} is no folder here, and the hub did not give a model of that name: {_first_line(error)}"
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__
