"""The convention that a configuration of transformers asks for, and where one that was read departs from it."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from posenc.probe.convention import LOW, Convention, spoken_number
from posenc.rotary import angles
from posenc.stretching import (
    dynamic_ntk,
    llama3,
    longrope,
    longrope_factor,
    yarn,
    yarn_factor,
)

_ONE = torch.tensor(1)
LAYOUTS = {  # by model_type, as the code of transformers has it
    **dict.fromkeys(
        [
            "llama",
            "mistral",
            "mixtral",
            "qwen2",
            "qwen3",
            "qwen3_moe",
            "gpt_neox",
            "gemma",
            "gemma2",
            "gemma3_text",
            "phi",
            "phi3",
            "gpt_oss",
            "stablelm",
            "smollm3",
            "olmo2",
        ],
        "half_split",
    ),
    **dict.fromkeys(["gptj", "cohere", "glm", "llama4_text", "deepseek_v3"], "interleaved"),
}


def from_config(config: Any, *, layer: int | None, longest: int) -> Convention:
    """As `Convention.from_config` says."""
    if not isinstance(config, Mapping) and hasattr(config, "get_text_config"):
        config = config.get_text_config()
    elif isinstance(config, Mapping):
        config = config.get("text_config") or config

    def get(name: str, default: Any = None) -> Any:
        value = config.get(name) if isinstance(config, Mapping) else getattr(config, name, None)
        return default if value is None else value

    kind = get("model_type", "")
    if kind not in LAYOUTS:
        raise ValueError(f"model_type is {kind!r}: known are {', '.join(LAYOUTS)}; write the Convention")
    layout = LAYOUTS[kind]
    if kind == "deepseek_v3" and not get("rope_interleave", True):
        layout = "half_split"
    heads = get("num_attention_heads") or get("n_head")
    head_dim = get("qk_rope_head_dim") or get("head_dim") or (get("hidden_size") or get("n_embd")) // heads
    turns = get("no_rope_layers") or [1]  # a 1 for each layer that does turn
    rope = get("rope_parameters") or get("rope_scaling") or {}
    by_kind = bool(rope) and all(isinstance(value, Mapping) for value in rope.values())
    if layer is None and (len(set(turns)) > 1 or by_kind):
        raise ValueError(f"the layers of {kind} differ: pass layer=")
    if layer is not None and len(turns) > 1 and not turns[layer]:
        return Convention(head_dim, rotary_dim=0, speeds=torch.zeros(0, dtype=torch.float64))
    if by_kind:
        rope = rope[get("layer_types")[layer]]
    elif get("rope_local_base_freq"):
        raise ValueError(f"this is an older configuration of {kind}: load it with transformers' AutoConfig")

    part = rope.get("partial_rotary_factor") or get("partial_rotary_factor") or get("rotary_pct") or 1.0
    size = get("rotary_dim") if kind == "gptj" else int(head_dim * part)
    base = float(rope.get("rope_theta") or get("rope_theta") or get("rotary_emb_base") or 10_000.0)
    how = rope.get("rope_type") or rope.get("type") or "default"
    most = get("max_position_embeddings") or get("n_positions")
    before = rope.get("original_max_position_embeddings") or get("original_max_position_embeddings")
    factor = rope.get("factor")
    if how in ("yarn", "llama3", "longrope", "su") and not before:
        raise ValueError(f"{how} needs original_max_position_embeddings")
    if factor is None and how in ("yarn", "longrope", "su"):
        factor = most / before
    if factor is None and how not in ("default",):
        raise ValueError(f"{how} needs a factor")

    scale, length, scaling = 1.0, 1.0, ""
    speeds = plain = angles(_ONE, size, base=base)
    if how == "linear":
        scale = 1 / factor
        speeds = plain * scale
    elif how == "dynamic":
        speeds = dynamic_ntk(_ONE, size, scale=factor, trained_length=most, length=longest, base=base)
        if longest > most:
            base = (1 / speeds[1].item()) ** (size / 2)
    elif how == "llama3":
        ramp = {"slow": rope.get("low_freq_factor", 1.0), "fast": rope.get("high_freq_factor", 4.0)}
        speeds = llama3(_ONE, size, scale=factor, trained_length=before, base=base, **ramp)
        scaling = _ramp("llama3", speeds / plain, factor)
    elif how == "yarn":
        ramp = {"fast": rope.get("beta_fast") or 32.0, "slow": rope.get("beta_slow") or 1.0}
        truncate = rope.get("truncate", True)
        speeds = yarn(_ONE, size, scale=factor, trained_length=before, base=base, truncate=truncate, **ramp)
        scaling, length = _ramp("YaRN", speeds / plain, factor), yarn_factor(factor)
        if rope.get("mscale") and rope.get("mscale_all_dim"):
            length = yarn_factor(factor, strength=rope["mscale"])
            length /= yarn_factor(factor, strength=rope["mscale_all_dim"])
        length = rope.get("attention_factor") or length
    elif how in ("longrope", "su"):
        tables = {"short": rope["short_factor"], "long": rope["long_factor"]}
        speeds = longrope(_ONE, size, trained_length=before, length=longest, base=base, **tables)
        length = rope.get("attention_factor") or longrope_factor(factor, trained_length=before)
        scaling = "LongRoPE scaling, each pair divided by a number of its own"
    elif how != "default":
        raise ValueError(f"rope_type is {how!r}: known are default, linear, dynamic, yarn, llama3, longrope")
    return Convention(
        head_dim,
        layout,
        size,
        base=base,
        scale=scale,
        length=float(length),
        scaling=scaling,
        speeds=speeds,
        precision="float32 angles",
    )


def _ramp(name: str, ratio: Tensor, factor: float) -> str:
    """In the words of `convention`: from which pair on everything is divided."""
    first = int((ratio * factor > 1 + 2e-4).sum())
    return f"{name} scaling, pairs from {first} on divided by {spoken_number(factor)}"


def differs(found: Convention, expected: Convention) -> str:
    """As `Convention.differs` says."""
    if found.rotary_dim is None or found.depends_on:
        reasons = [*found.depends_on, *dict.fromkeys(found.unknown.values())]
        return f"it cannot be compared, since it is not readable: {', '.join(reasons)}"
    if 0 in (found.rotary_dim, expected.rotary_dim):
        if found.rotary_dim == expected.rotary_dim:
            return ""
        return (
            "nothing is turned, expected a rotation" if not found.rotary_dim else "it turns, expected nothing"
        )
    words = []
    if found.head_dim != expected.head_dim:
        words.append(f"heads of {found.head_dim} dimensions, expected {expected.head_dim}")
    if found.layout != expected.layout and expected.rotary_dim > 2:
        layout = found.layout or found.unknown.get("layout", "unknown")
        words.append(f"layout {layout}, expected {expected.layout}")
    if (found.rotary_dim, found.start) != (expected.rotary_dim, expected.start):
        parts = (f"{c.rotary_dim} dimensions from {c.start} on" for c in (found, expected))
        return "; ".join([*words, "turns {}, expected {}".format(*parts)])
    own, wanted = _speeds(found), _speeds(expected)
    if own is None or wanted is None or found.direction is None:
        reason = "; ".join(dict.fromkeys(found.unknown.values())) or "unknown"
        return "; ".join([*words, f"its speeds cannot be compared: {reason}"])
    # a precision that was not read may be any
    rough = found.precision is None or any(name in found.precision for name in LOW)
    reach = found.probed_to or 1024
    room = (0.05 if rough else 2e-3) / reach + (1e-2 if rough else 2e-4) * wanted.abs()
    if not _near(own, wanted, room):
        words.append(_faster_or_slower(found, expected, own, wanted, room))
    elif found.base and expected.base and abs(found.base / expected.base - 1) > (2e-2 if rough else 1e-4):
        words.append(f"base {spoken_number(found.base)}, expected {spoken_number(expected.base)}")
    if found.offset != expected.offset:
        offset = f"unknown ({found.unknown.get('offset', 'not read')})"
        if found.offset is not None:
            offset = f"{found.offset:+g}"
        words.append(f"offset {offset}, expected {expected.offset:g}")
    if found.length is None:
        words.append(f"length unknown ({found.unknown.get('length', 'not read')})")
    elif abs(found.length / expected.length - 1) > (2e-2 if rough else 2e-4):
        words.append(f"vectors × {spoken_number(found.length)}, expected × {spoken_number(expected.length)}")
    return "; ".join(words)


def _faster_or_slower(
    found: Convention, expected: Convention, own: Tensor, wanted: Tensor, room: Tensor
) -> str:
    if _near(own, -wanted, room):
        ways = {1: "counter-clockwise", -1: "clockwise"}
        return f"turns {ways[found.direction]}, expected {ways[expected.direction]}"
    how = expected.scaling or (
        f"positions ÷ {spoken_number(round(1 / expected.scale, 6))}" if expected.scale != 1 else ""
    )
    if how:
        plain = expected.direction * angles(_ONE, expected.rotary_dim, base=expected.base)
        if _near(own, plain, room):
            base = spoken_number(expected.base)
            return f"the scaling is missing: base {base} as it is, expected {how}"
    if not found.scaling and not how and found.base and found.scale == expected.scale:
        return f"base {spoken_number(found.base)}, expected {spoken_number(expected.base)}"
    if not found.scaling and not expected.scaling and found.scale and found.base == expected.base:
        return f"positions × {spoken_number(found.scale)}, expected × {spoken_number(expected.scale)}"
    off = ((own - wanted).abs() > room).nonzero().flatten()
    first = off[0].item()
    named = [", ".join(_named(one)) or "speeds of no one base" for one in (found, expected)]
    return (
        f"{len(off)} of {len(own)} pairs turn at another speed, pair {first} by {own[first]:.4g} radians a position "
        f"({named[0]}), expected {wanted[first]:.4g} ({named[1]})"
    )


def _named(convention: Convention) -> Iterator[str]:
    if convention.base:
        yield f"base {spoken_number(convention.base)}"
    if convention.scaling:
        yield convention.scaling
    if convention.scale and convention.scale != 1:
        yield f"positions × {spoken_number(convention.scale)}"


def _near(own: Tensor, wanted: Tensor, room: Tensor) -> bool:
    return len(own) == len(wanted) and bool(((own - wanted).abs() <= room).all())


def _speeds(convention: Convention) -> Tensor | None:
    if convention.speeds is not None:
        return convention.speeds
    if None in (convention.base, convention.scale, convention.direction):
        return None
    pair = torch.arange(convention.rotary_dim // 2, dtype=torch.float64)
    return convention.direction * convention.scale * convention.base ** (-2 * pair / convention.rotary_dim)
