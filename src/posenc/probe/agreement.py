"""Runs of one model that must give the same answer. Where they don't, a port disagrees with itself.

No reference is needed, and no checkpoint: random weights will do. What the runs cannot see is a mistake that a
port makes in every one of them, a wrong base for example.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

QUIET = 1e-3  # nats: float32 rounding stays well below, the mistakes of this field well above


@dataclass(frozen=True, kw_only=True)
class Calls:
    """How your code calls a causal model: one function for each thing that it can do, None for what it cannot.

    Write each as your program does it, since that is where the mistakes are: if it counts the positions of a
    padded batch itself, leave that to it. Tokens are integers (B, T), logits (B, T, vocabulary).

    Args:
        whole: tokens → logits, the plain call with positions from 0.
        at: (tokens, start) → logits of the same text with its first token at position start.
        step: (tokens, cache) → (logits, cache): the next tokens of a text whose start is in the cache; None for
            an empty one.
        evict: (cache, n) → cache without its n oldest tokens. Needs `step` and `hidden`.
        hidden: (tokens, visible) → logits, where query m may see key n if visible[m, n]; (T, T), causal already.
        padded: (tokens, real) → logits. The rows are padded on the left; real is True at their own tokens.
        packed: (tokens, documents) → logits. Texts stand behind each other in one row, which ones documents says:
            0 0 0 1 1. No text may see another.

    The course's own model has positions and no cache:

        >>> from posenc.models import Transformer
        >>> from posenc.rotary import angles, rotate
        >>> model = Transformer(97, 97, causal=True, rotate=lambda x, p: rotate(x, angles(p, 16)))
        >>> calls = Calls(
        ...     whole=model,
        ...     at=lambda tokens, start: model(tokens, start + torch.arange(tokens.shape[-1])),
        ... )
        >>> sorted(agreement(calls, torch.arange(48).view(2, 24)).differences)
        ['far', 'rows', 'shift']

    A model of transformers has them all but a cache that forgets its oldest tokens:

        def positions(tokens, start=0):
            return torch.arange(start, start + tokens.shape[1])[None].expand(len(tokens), -1)

        def step(tokens, cache):
            out = model(tokens, past_key_values=cache, use_cache=True)
            return out.logits, out.past_key_values

        def padded(tokens, real):
            return model(tokens, attention_mask=real.long(), position_ids=(real.cumsum(1) - 1).clamp(min=0)).logits

        calls = Calls(
            whole=lambda tokens: model(tokens).logits,
            at=lambda tokens, start: model(tokens, position_ids=positions(tokens, start)).logits,
            step=step,
            padded=padded,
        )
    """

    whole: Callable[[Tensor], Tensor]
    at: Callable[[Tensor, int], Tensor] | None = None
    step: Callable[[Tensor, Any], tuple[Tensor, Any]] | None = None
    evict: Callable[[Any, int], Any] | None = None
    hidden: Callable[[Tensor, Tensor], Tensor] | None = None
    padded: Callable[[Tensor, Tensor], Tensor] | None = None
    packed: Callable[[Tensor, Tensor], Tensor] | None = None


@dataclass(frozen=True, repr=False)
class Agreement:
    """What two runs that must agree differ by.

    Attributes:
        differences: run → the largest difference of a log-probability, in nats.
        left_out: run → why it was not made.
        quiet: differences above it count as a disagreement.
    """

    differences: Mapping[str, float]
    left_out: Mapping[str, str] = field(default_factory=dict)
    quiet: float = QUIET

    @property
    def disagree(self) -> tuple[str, ...]:
        """The runs that differ."""
        return tuple(name for name, size in self.differences.items() if not size <= self.quiet)

    def __repr__(self) -> str:
        lines = []
        for name, size in self.differences.items():
            lines.append(f"{'✗' if name in self.disagree else '✓'} {name:8} {size:8.2g}  {RUNS[name]}")
        lines += [f"– {name:8} {'':8}  left out: {why}" for name, why in self.left_out.items()]
        return "\n".join(lines)


RUNS = {  # what is compared with the plain run
    "shift": "the same text 7 positions on",
    "far": "the same text 1000 positions on",
    "steps": "one token at a time, with a cache",
    "chunks": "five tokens at a time, with a cache",
    "padding": "two texts of different lengths in one batch, padded on the left",
    "packing": "two texts behind each other in one row",
    "rows": "a batch, and its rows alone",
    "eviction": "one token more after the oldest were dropped, and the same with them hidden",
}


def agreement(
    calls: Calls,
    tokens: Tensor,
    *,
    relative: bool = True,
    far: int = 1000,
    pad: int = 0,
    quiet: float = QUIET,
) -> Agreement:
    """Make the runs that must agree, and measure how far they do.

    Args:
        calls: how the model is called.
        tokens: (B, T), at least two rows of at least 12 tokens, as the model reads them.
        relative: whether only distances may matter. Leave out `shift` and `far` with False, for a model whose
            encoding is absolute.
        far: by how many positions the text is moved for `far`.
        pad: the token that fills up a padded row.
        quiet: largest difference of a log-probability that rounding may explain; more in half precision.

    Returns:
        the largest difference of each run, and which were left out, and why.

    Raises:
        ValueError: there are too few tokens. What the model raises is raised.
    """
    if tokens.ndim != 2 or tokens.shape[0] < 2 or tokens.shape[1] < 12:
        raise ValueError(
            f"tokens of shape {tuple(tokens.shape)}: pass at least two rows of at least 12 tokens"
        )
    runs = {
        "shift": ("at", lambda: _apart(calls.at(tokens, 7), plain)),
        "far": ("at", lambda: _apart(calls.at(tokens, far), plain)),
        "steps": ("step", lambda: _apart(_fed(calls, tokens, 1), plain)),
        "chunks": ("step", lambda: _apart(_fed(calls, tokens, 5), plain)),
        "padding": ("padded", lambda: _padding(calls, tokens, pad)),
        "packing": ("packed", lambda: _packing(calls, tokens)),
        "rows": ("whole", lambda: _apart(torch.cat([calls.whole(row[None]) for row in tokens]), plain)),
        "eviction": ("step, evict, hidden", lambda: _eviction(calls, tokens)),
    }
    differences, left_out = {}, {}
    with torch.no_grad():
        plain = calls.whole(tokens)
        for name, (needs, run) in runs.items():
            missing = [need for need in needs.split(", ") if getattr(calls, need) is None]
            if missing:
                left_out[name] = f"no {' and no '.join(missing)} given"
            elif name in ("shift", "far") and not relative:
                left_out[name] = "its encoding is absolute"
            else:
                differences[name] = run()
    return Agreement(differences, left_out, quiet)


def _apart(logits: Tensor, expected: Tensor) -> float:
    """The largest difference of a log-probability; NaN where one is NaN."""
    logits, expected = logits.double().cpu(), expected.double().cpu()
    return (logits.log_softmax(-1) - expected.log_softmax(-1)).abs().max().item()


def _fed(calls: Calls, tokens: Tensor, size: int) -> Tensor:
    """All logits, with so many tokens at a time."""
    cache, parts = None, []
    for part in tokens.split(size, dim=1):
        logits, cache = calls.step(part, cache)
        parts.append(logits)
    return torch.cat(parts, dim=1)


def _padding(calls: Calls, tokens: Tensor, pad: int) -> float:
    """The first row as it is, the second without its last four tokens and padded."""
    rows = tokens[:2].clone()
    rows[1, 4:], rows[1, :4] = tokens[1, :-4], pad
    real = torch.ones_like(rows, dtype=torch.bool)
    real[1, :4] = False
    got = calls.padded(rows, real)
    alone = calls.whole(tokens[1:2, :-4])
    return max(_apart(got[:1], calls.whole(tokens[:1])), _apart(got[1:2, 4:], alone))


def _packing(calls: Calls, tokens: Tensor) -> float:
    first, second = tokens[:1, :-3], tokens[1:2]
    documents = torch.cat([torch.zeros_like(first), torch.ones_like(second)], dim=1)
    got = calls.packed(torch.cat([first, second], dim=1), documents)
    ends = first.shape[1]
    return max(_apart(got[:, :ends], calls.whole(first)), _apart(got[:, ends:], calls.whole(second)))


def _eviction(calls: Calls, tokens: Tensor) -> float:
    dropped = tokens.shape[1] // 3
    _, cache = calls.step(tokens[:, :-1], None)
    got, _ = calls.step(tokens[:, -1:], calls.evict(cache, dropped))
    length = tokens.shape[1]
    visible = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()
    visible[-1, :dropped] = False
    return _apart(got[:, -1], calls.hidden(tokens, visible)[:, -1])
