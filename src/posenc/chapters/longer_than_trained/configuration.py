"""What a model's config.json says of its rotation, in the symbols of chapter 5.

The keys are those of transformers, in the older form (`rope_theta` and `rope_scaling` at the top) and in the newer one
(`rope_parameters`, which may hold an entry for each kind of layer).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from posenc.rotary import angles
from posenc.stretching import (
    dynamic_ntk,
    interpolated,
    llama3,
    longrope,
    longrope_factor,
    p_rope,
    yarn,
    yarn_factor,
)

ONE = torch.tensor(1)
TURN = 2 * math.pi
METHODS = {
    "default": "as trained",
    "linear": "PI",
    "dynamic": "dynamic NTK",
    "yarn": "YaRN",
    "llama3": "llama3",
    "longrope": "LongRoPE",
    "su": "LongRoPE",
    "proportional": "p-RoPE",
}


@dataclass(frozen=True)
class Rotation:
    """How one kind of layer turns its queries and keys.

    Attributes:
        layers: which layers, as the configuration calls them, or "every layer".
        method: a name of chapter 5's table.
        base: of the angles.
        scale: s, how many times longer the method makes the text.
        before: T₀, how many positions the model was trained on before the method came in.
        stated: whether the configuration says T₀; where `linear` stands alone, it is taken to be the length over s.
        reads: the longest text that the configuration names.
        trained_speeds, speeds: radians a position before and after the method, one for each pair that has angles.
        on_vectors: the factor on queries and keys; the scores get its square.
        on_scores: a factor on the scores besides.
    """

    layers: str
    method: str
    base: float
    scale: float
    before: int
    stated: bool
    reads: int
    trained_speeds: Tensor
    speeds: Tensor
    on_vectors: float
    on_scores: float

    @property
    def reach(self) -> float:
        """The largest distance at which no pair has passed the angles of its first `before` positions."""
        seen = self.trained_speeds * (self.before - 1)
        open_pairs = (seen < TURN) & (self.speeds > 0)
        return (seen / self.speeds)[open_pairs].min().item() if open_pairs.any() else math.inf

    def __str__(self) -> str:
        times = f" ×{self.scale:g}" if self.scale != 1 else ""
        still = int((self.speeds == 0).sum())
        words = [
            f"{self.layers}: {len(self.speeds)} pairs, base {self.base:,.0f}, {self.method}{times} "
            f"from {self.before:,} positions{'' if self.stated else ' (not stated)'}, reads {self.reads:,}",
            f"{still} pairs stand still" if still else "",
            f"vectors × {self.on_vectors:.3f}" if self.on_vectors != 1 else "",
            f"scores × {self.on_scores:.3f}" if self.on_scores != 1 else "",
            f"no new angle up to distance {self.reach:,.0f}" if self.reach < math.inf else "no angle is ever new",
        ]
        return "; ".join(word for word in words if word)


def rotations(config: Mapping[str, object]) -> list[Rotation]:
    """The rotations that a configuration asks for, one for each kind of layer that has its own.

    Args:
        config: what a config.json holds; of a model that also sees, the part for text.

    Raises:
        ValueError: a method or a number that the rotation needs is missing or unknown.
    """
    kinds = config.get("rope_parameters") or {}
    if kinds and all(isinstance(value, Mapping) for value in kinds.values()):
        return [_rotation(config, kind, dict(given)) for kind, given in kinds.items()]
    given = dict(kinds or config.get("rope_scaling") or {})
    given.setdefault("rope_theta", config.get("rope_theta", 10_000.0))
    if "rope_local_base_freq" in config:  # Gemma 3: layers with a window have a base of their own, and no scaling
        local = {"rope_theta": config["rope_local_base_freq"]}
        return [_rotation(config, "full_attention", given), _rotation(config, "sliding_attention", local)]
    return [_rotation(config, "every layer", given)]


def unturned(config: Mapping[str, object]) -> list[int]:
    """The layers without rotation.

    `no_rope_layers` holds a 1 for each layer that *does* turn, whatever its name says; without it every
    `no_rope_layer_interval`-th layer doesn't.
    """
    if flags := config.get("no_rope_layers"):
        return [layer for layer, turns in enumerate(flags) if not turns]
    every = config.get("no_rope_layer_interval")
    return [layer for layer in range(config["num_hidden_layers"]) if (layer + 1) % every == 0] if every else []


def head_size(config: Mapping[str, object]) -> int:
    """The dimensions of a head that have angles, before any part of them is left out."""
    if "qk_rope_head_dim" in config:
        return config["qk_rope_head_dim"]
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def _rotation(config: Mapping[str, object], layers: str, given: dict) -> Rotation:
    kind = given.get("rope_type") or given.get("type") or "default"
    if kind not in METHODS:
        raise ValueError(f"rope_type is {kind!r}; known are {', '.join(METHODS)}")
    base, size, part = float(given["rope_theta"]), head_size(config), given.get("partial_rotary_factor")
    part = config.get("partial_rotary_factor", 1.0) if part is None else part
    turned = size if kind == "proportional" else int(size * part)
    longest = config["max_position_embeddings"]
    before = given.get("original_max_position_embeddings") or config.get("original_max_position_embeddings")
    scale, stated = given.get("factor"), bool(before) or kind in ("default", "proportional")
    if kind in ("yarn", "longrope", "su", "llama3") and not before:
        raise ValueError(f"{kind} needs original_max_position_embeddings")
    if kind in ("default", "proportional"):
        before, scale = longest, scale or 1.0
    elif kind in ("linear", "dynamic"):
        before = before or (longest if kind == "dynamic" else round(longest / scale))
    scale = float(scale or longest / before)
    reads = max(longest, round(before * scale)) if kind not in ("default", "proportional") else longest

    where = {"scale": scale, "trained_length": before, "base": base}
    on_vectors = on_scores = 1.0
    plain = angles(ONE, turned, base=base)
    if kind == "linear":
        speeds = interpolated(ONE, turned, scale=scale, base=base)
    elif kind == "dynamic":
        speeds = dynamic_ntk(ONE, turned, **where, length=reads)
    elif kind == "yarn":
        ramp = {"fast": given.get("beta_fast") or 32.0, "slow": given.get("beta_slow") or 1.0}
        speeds = yarn(ONE, turned, **where, **ramp, truncate=given.get("truncate", True))
        own, everywhere = given.get("mscale"), given.get("mscale_all_dim")
        on_vectors = given.get("attention_factor") or yarn_factor(scale)
        if own and everywhere:  # DeepSeek's: it cancels in the vectors, and its square goes to all scores
            on_vectors = yarn_factor(scale, strength=own) / yarn_factor(scale, strength=everywhere)
            on_scores = yarn_factor(scale, strength=everywhere) ** 2
    elif kind == "llama3":
        ramp = {"slow": given.get("low_freq_factor", 1.0), "fast": given.get("high_freq_factor", 4.0)}
        speeds = llama3(ONE, turned, **where, **ramp)
    elif kind in ("longrope", "su"):
        tables = {"short": given["short_factor"], "long": given["long_factor"]}
        speeds = longrope(ONE, turned, **tables, trained_length=before, length=reads, base=base)
        on_vectors = given.get("attention_factor") or longrope_factor(scale, trained_length=before)
    elif kind == "proportional":
        plain = speeds = p_rope(ONE, turned, share=part, base=base)
    else:
        speeds = plain
    return Rotation(
        layers=layers,
        method=METHODS[kind],
        base=base,
        scale=scale,
        before=before,
        stated=stated,
        reads=reads,
        trained_speeds=plain,
        speeds=speeds,
        on_vectors=float(on_vectors),
        on_scores=float(on_scores),
    )
