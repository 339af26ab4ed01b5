"""Somebody's inference code for the course's Transformer: a cache, padding, packing, and the mistakes of the field.

It runs the weights of a trained `Transformer` with code of its own, as a port does, and agrees with it to rounding
as long as `mistake` is "none".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.probe import Calls, Convention

RIGHT = Convention(16)  # how the chapter's rotary models are trained: half-split, base 10,000, head size 16

MISTAKES = {  # what the port does wrong → in which part of the work
    "none": "",
    "other layout": "rotation",
    "base 500,000": "rotation",
    "half of the head": "rotation",
    "clockwise": "rotation",
    "values turned": "attention",
    "positions in bfloat16": "positions",
    "cache from 0": "decoding",
    "cache + 1": "decoding",
    "count after eviction": "decoding",
    "padding counted": "batching",
    "packing not reset": "batching",
}


@dataclass(frozen=True)
class Cache:
    """Keys and values of each layer, (B, heads, N, d), and how many tokens have been read."""

    layers: tuple[tuple[Tensor, Tensor], ...]
    seen: int

    def __len__(self) -> int:
        return self.layers[0][0].shape[-2]


class Port:
    """Runs the weights of a Transformer.

    Args:
        model: one seed's Transformer, whose weights are used as they are.
        convention: the rotation of queries and keys; None for a model without one.
        mistake: one of MISTAKES.
        rotate: (x, positions) → x, in the place of a convention; or one of these for each layer.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        convention: Convention | None = RIGHT,
        mistake: str = "none",
        rotate: Callable | Sequence[Callable] | None = None,
    ):
        if mistake not in MISTAKES:
            raise ValueError(f"{mistake!r} is none of the mistakes: {', '.join(MISTAKES)}")
        self.model, self.mistake = model, mistake
        wrong = {
            "other layout": {"layout": "interleaved"},
            "base 500,000": {"base": 500_000.0},
            "half of the head": {"rotary_dim": 8},
            "clockwise": {"direction": -1},
        }
        if convention is not None and mistake in wrong:
            convention = Convention(**({"head_dim": convention.head_dim} | wrong[mistake]))
        if rotate is None and convention is not None:
            rotate = convention.rotate
        self.rotations = [rotate] * len(model.blocks) if rotate is None or callable(rotate) else list(rotate)

    @torch.no_grad()
    def __call__(
        self,
        tokens: Tensor,
        *,
        positions: Tensor | None = None,
        visible: Tensor | None = None,
        cache: Cache | None = None,
    ) -> tuple[Tensor, Cache]:
        """The logits of tokens (B, T), and the cache with them in it.

        Args:
            positions: integers, (T,) or (B, T); otherwise those that follow the cache's.
            visible: which keys each query sees, (T, N) or (B, T, N) with those of the cache first; otherwise all
                that are not later.
            cache: what was read before.
        """
        old, new = len(cache) if cache else 0, tokens.shape[-1]
        if positions is None:
            positions = self._start(cache) + torch.arange(new)
        if self.mistake == "positions in bfloat16":
            positions = positions.bfloat16().long()
        if visible is None:
            visible = torch.ones(new, old + new, dtype=torch.bool).tril(old)
        at = positions if positions.ndim == 1 else positions[:, None]  # (T,) or (B, 1, T), one for all heads
        model = self.model
        x = model.embedding(tokens)
        if model.encode is not None:
            x = model.encode(x, positions)
        layers = []
        for index, (block, rotate) in enumerate(zip(model.blocks, self.rotations, strict=True)):
            part = block.attention
            query, key, value = (
                projection(block.attention_norm(x)).unflatten(-1, (part.heads, -1)).transpose(-2, -3)
                for projection in (part.query, part.key, part.value)
            )
            if rotate is not None:
                query, key = rotate(query, at), rotate(key, at)
                if self.mistake == "values turned":
                    value = rotate(value, at)
            if cache:
                key, value = (
                    torch.cat([before, now], dim=-2) for before, now in zip(cache.layers[index], (key, value))
                )
            layers.append((key, value))
            mask = visible if visible.ndim == 2 else visible[:, None]
            mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
            x = x + part.output(mixed.transpose(-2, -3).flatten(-2))
            x = x + block.mlp(block.mlp_norm(x))
        return model.head(model.norm(x)), Cache(tuple(layers), (cache.seen if cache else 0) + new)

    def _start(self, cache: Cache | None) -> int:
        """The position of the next token."""
        if cache is None or self.mistake == "cache from 0":
            return 0
        if self.mistake == "count after eviction":
            return len(cache)
        return cache.seen + (self.mistake == "cache + 1")

    def evict(self, cache: Cache, n: int, *, sinks: int = 0) -> Cache:
        """The cache without its n oldest tokens; the first so many sinks stay in any case."""
        kept = torch.cat([torch.arange(sinks), torch.arange(sinks + n, len(cache))])
        return Cache(tuple((key[..., kept, :], value[..., kept, :]) for key, value in cache.layers), cache.seen)

    def padded(self, tokens: Tensor, real: Tensor) -> Tensor:
        """Logits of rows that are padded on the left; real (B, T) is True at their own tokens."""
        positions = (real.cumsum(dim=1) - 1).clamp(min=0)
        if self.mistake == "padding counted":
            positions = torch.arange(tokens.shape[1])
        length = tokens.shape[1]
        visible = torch.ones(length, length, dtype=torch.bool).tril() & real[:, None]
        visible = visible | torch.eye(length, dtype=torch.bool)  # a row that sees nothing would be NaN
        return self(tokens, positions=positions, visible=visible)[0]

    def packed(self, tokens: Tensor, documents: Tensor, *, masked: bool = True, reset: bool | None = None) -> Tensor:
        """Logits of rows that hold several texts; documents (B, T) says which text a token is of."""
        reset = self.mistake != "packing not reset" if reset is None else reset
        length = tokens.shape[1]
        positions = torch.arange(length).expand(tokens.shape)
        if reset:
            first = documents.diff(dim=1, prepend=documents[:, :1] - 1) != 0
            positions = positions - (positions * first).cummax(dim=1).values
        visible = torch.ones(length, length, dtype=torch.bool).tril().expand(len(tokens), -1, -1)
        if masked:
            visible = visible & (documents[:, :, None] == documents[:, None])
        return self(tokens, positions=positions, visible=visible)[0]

    def calls(self) -> Calls:
        """All its ways to be called, for `agreement`."""
        return Calls(
            whole=lambda tokens: self(tokens)[0],
            at=lambda tokens, start: self(tokens, positions=start + torch.arange(tokens.shape[1]))[0],
            step=lambda tokens, cache: self(tokens, cache=cache),
            evict=self.evict,
            hidden=lambda tokens, visible: self(tokens, visible=visible)[0],
            padded=self.padded,
            packed=self.packed,
        )
