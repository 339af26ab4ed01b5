"""The convention that a configuration of transformers asks for, and where one that was read departs from it."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from posenc.probe.convention import Convention
from posenc.probe.precision import LOW
from posenc.probe.speeds import scaling_words, spoken_number, standing_still
from posenc.rotary import angles
from posenc.stretching import (
    dynamic_ntk,
    llama3,
    longrope,
    longrope_factor,
    p_rope,
    yarn,
    yarn_factor,
)

_ONE = torch.tensor(1)
_MISSING = "the scaling is missing"
LAYOUTS = {  # by model_type, as the code of transformers has it
    **dict.fromkeys(
        """
        apertus arcee deepseek_v32 dots1 exaone4 falcon gemma gemma2 gemma3_text gemma4_text glm4_moe gpt_neox gpt_oss
        granite llama minimax ministral mistral mixtral olmo2 olmo3 persimmon phi phi3 qwen2 qwen2_moe qwen3 qwen3_5_text
        qwen3_moe qwen3_next qwen3_vl_text seed_oss smollm3 stablelm starcoder2
        """.split(),
        "half_split",
    ),
    **dict.fromkeys(
        "cohere cohere2 deepseek_v2 deepseek_v3 ernie4_5 glm glm4 gptj helium llama4_text".split(),
        "interleaved",
    ),
}
WINDOWS_ALONE = ("cohere2", "exaone4")  # their layers that see everything don't turn


def from_config(config: Any, *, layer: int | None, longest: int) -> Convention:
    """As `Convention.from_config` says."""
    config = dict(config if isinstance(config, Mapping) else config.to_dict())
    config = config.get("text_config") or config
    config = {name: value for name, value in config.items() if value is not None}
    kind = config.get("model_type", "")
    if kind not in LAYOUTS:
        raise ValueError(f"model_type is {kind!r}: known are {', '.join(LAYOUTS)}; write the Convention")
    layout = LAYOUTS[kind]
    if kind == "deepseek_v3" and not config.get("rope_interleave", True):
        layout = "half_split"
    if "rope_local_base_freq" in config:
        raise ValueError(f"this is an older configuration of {kind}: load it with transformers' AutoConfig")
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    by_kind = bool(rope) and all(isinstance(value, Mapping) for value in rope.values())
    turns = _turning(config, kind)
    layers = config.get("num_hidden_layers") or config.get("n_layer") or len(turns)
    if layer is not None and layers and not 0 <= layer < layers:
        raise ValueError(f"layer is {layer}: {kind} has {layers}, from 0 on")
    if layer is None and (len(set(turns)) > 1 or by_kind and len(set(config["layer_types"])) > 1):
        raise ValueError(f"the layers of {kind} differ: pass layer=")
    if layer is None and turns:
        layer = 0
    head_dim = _head_dim(config, layer)
    if turns and not turns[layer]:
        return Convention(head_dim, rotary_dim=0, speeds=torch.zeros(0, dtype=torch.float64))
    if by_kind:
        rope = rope[config["layer_types"][layer or 0]]
    return _turned(config, rope, head_dim, layout, longest)


def _turning(config: Mapping, kind: str) -> list[bool]:
    """Which layers turn anything; [] where all do."""
    if flags := config.get("no_rope_layers"):  # a 1 for each layer that does turn
        return [bool(flag) for flag in flags]
    types = config.get("layer_types") or []
    if kind in WINDOWS_ALONE and "sliding_attention" in types:
        return [name == "sliding_attention" for name in types]
    every = config.get("no_rope_layer_interval")
    return [(place + 1) % every != 0 for place in range(config["num_hidden_layers"])] if every else []


def _head_dim(config: Mapping, layer: int | None) -> int:
    own = config.get("per_layer_config", {})
    own = own.get(str(layer), own.get(layer, {})).get("head_dim")
    heads = config.get("num_attention_heads") or config.get("n_head")
    size = config.get("qk_rope_head_dim") or own or config.get("head_dim")
    width = config.get("hidden_size") or config.get("n_embd")
    if not size and not (width and heads):
        raise ValueError("the size of a head is missing: head_dim, or hidden_size and num_attention_heads")
    return size or width // heads


def _turned(config: Mapping, rope: Mapping, head_dim: int, layout: str, longest: int) -> Convention:
    """What one kind of layer does."""
    part = rope.get("partial_rotary_factor") or config.get("partial_rotary_factor") or config.get("rotary_pct") or 1.0
    if "qk_rope_head_dim" in config:
        part = 1.0
    base = float(rope.get("rope_theta") or config.get("rope_theta") or config.get("rotary_emb_base") or 10_000.0)
    how = rope.get("rope_type") or rope.get("type") or "default"
    size = head_dim if how == "proportional" else config.get("rotary_dim") or int(head_dim * part)
    most = config.get("max_position_embeddings") or config.get("n_positions")
    before = rope.get("original_max_position_embeddings") or config.get("original_max_position_embeddings")
    factor = rope.get("factor")
    if how in ("yarn", "llama3", "longrope", "su") and not before:
        raise ValueError(f"{how} needs original_max_position_embeddings")
    if how == "dynamic" and not most:
        raise ValueError("dynamic needs max_position_embeddings")
    if how in ("longrope", "su") and not {"short_factor", "long_factor"} <= rope.keys():
        raise ValueError(f"{how} needs short_factor and long_factor")
    if factor is None and most and how in ("yarn", "longrope", "su"):
        factor = most / before
    if factor is None and how not in ("default", "proportional"):
        raise ValueError(f"{how} needs a factor")

    scale, length, scaling, others = 1.0, 1.0, "", {}
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
        scaling = _ramp("llama3", speeds / plain, factor, before if ramp == {"slow": 1, "fast": 4} else None)
    elif how == "yarn":
        ramp = {"fast": rope.get("beta_fast") or 32.0, "slow": rope.get("beta_slow") or 1.0}
        truncate = rope.get("truncate", True)
        speeds = yarn(_ONE, size, scale=factor, trained_length=before, base=base, truncate=truncate, **ramp)
        scaling = _ramp("YaRN", speeds / plain, factor, before if ramp == {"fast": 32, "slow": 1} else None)
        length = yarn_factor(factor)
        if rope.get("mscale") and rope.get("mscale_all_dim"):
            length = yarn_factor(factor, strength=rope["mscale"])
            length /= yarn_factor(factor, strength=rope["mscale_all_dim"])
        length = rope.get("attention_factor") or length
    elif how in ("longrope", "su"):
        tables = {"short": rope["short_factor"], "long": rope["long_factor"]}
        both = {"short": before, "long": before + 1}  # up to which length each is used
        both = {
            name: longrope(_ONE, size, trained_length=before, length=to, base=base, **tables)
            for name, to in both.items()
        }
        used, other = ("long", "short") if longest > before else ("short", "long")
        speeds, others = both[used], {f"LongRoPE's {other} factors": both[other]}
        length = rope.get("attention_factor") or longrope_factor(factor, trained_length=before)
        scaling = f"{scaling_words('LongRoPE', factor, before)}, its {used} factors"
    elif how == "proportional":
        speeds = p_rope(_ONE, size, share=part, base=base)
        scaling = standing_still((speeds > 0).nonzero().flatten().tolist(), len(speeds))
    elif how != "default":
        known = "default, linear, dynamic, yarn, llama3, longrope, proportional"
        raise ValueError(f"rope_type is {how!r}: known are {known}")
    return Convention(
        head_dim,
        layout,
        size,
        base=base,
        scale=scale,
        length=float(length),
        scaling=scaling,
        speeds=speeds,
        mistaken_for=others,
        precision="float32 angles",
    )


def _ramp(name: str, ratio: Tensor, factor: float, trained_length: float | None) -> str:
    """In the words of `convention`, which tells the usual ramps by the length and others by their pairs."""
    if trained_length is not None:
        return scaling_words(name, factor, trained_length)
    untouched, divided = int((ratio > 1 - 1e-6).sum()), int((ratio * factor < 1 + 2e-4).sum())
    return scaling_words(name, factor, ramp=(untouched, len(ratio) - divided))


def differs(found: Convention, expected: Convention) -> str:
    """As `Convention.differs` says."""
    if found.rotary_dim is None or found.depends_on:
        reasons = [*found.depends_on, *dict.fromkeys(found.unknown.values())]
        return f"it cannot be compared, since it is not readable: {', '.join(reasons)}"
    if 0 in (found.rotary_dim, expected.rotary_dim):
        if found.rotary_dim == expected.rotary_dim:
            return ""
        return "nothing is turned, expected a rotation" if not found.rotary_dim else "it turns, expected nothing"
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
    near = _near(own, wanted, room)
    if not near:
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
        if not near and found.length == 1 and words[-1].startswith(_MISSING):
            words[-1] += f" with vectors × {spoken_number(expected.length)}"
        else:
            words.append(f"vectors × {spoken_number(found.length)}, expected × {spoken_number(expected.length)}")
    if found.besides:
        words.append(found.besides)
    return "; ".join(words)


def _faster_or_slower(found: Convention, expected: Convention, own: Tensor, wanted: Tensor, room: Tensor) -> str:
    if _near(own, -wanted, room):
        ways = {1: "counter-clockwise", -1: "clockwise"}
        return f"turns {ways[found.direction]}, expected {ways[expected.direction]}"
    how = expected.scaling or (
        f"positions ÷ {spoken_number(round(1 / expected.scale, 6))}" if expected.scale != 1 else ""
    )
    plain = expected.direction * angles(_ONE, expected.rotary_dim, base=expected.base)
    if how and _near(own, plain, room):
        return f"{_MISSING}: base {spoken_number(expected.base)} as it is, expected {how}"
    for name, other in expected.mistaken_for.items():
        if _near(own, other, room):
            return f"{name}, expected {how}"
    if not found.scaling and not how and found.base and found.scale == expected.scale:
        return f"base {spoken_number(found.base)}, expected {spoken_number(expected.base)}"
    if not found.scaling and not expected.scaling and found.scale and found.base == expected.base:
        return f"positions × {spoken_number(found.scale)}, expected × {spoken_number(expected.scale)}"
    if found.base and expected.base:
        parts = [", ".join(_named(one)) for one in (found, expected)]
        return f"{parts[0]}; expected {parts[1]}"
    off = ((own - wanted).abs() > room).nonzero().flatten()
    first = off[0].item()
    return (
        f"{len(off)} of {len(own)} pairs turn at another speed, pair {first} by {own[first]:.4g} radians a position, "
        f"expected {wanted[first]:.4g} ({', '.join(_named(expected))})"
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
