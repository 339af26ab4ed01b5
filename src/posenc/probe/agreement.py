"""Runs of one model that must give the same answer. Where they don't, a port disagrees with itself.

No reference is needed, and no checkpoint: random weights will do. What the runs cannot see is a mistake that a
port makes in every one of them, a wrong base for example.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

QUIET = 1e-3  # nats: float32 rounding stays well below, the mistakes of this field well above
ROUNDED = 1e-6  # nats: below it a report has no digits, since another processor rounds otherwise
ROUNDINGS = 4  # half precision: so many times the last digit of the largest logit; 2 were seen over two layers


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
        packed: (tokens, documents) → logits. Texts stand one after the other in one row, which ones documents says:
            0 0 0 1 1. No text may see another.
        padded_step: (tokens, real, cache) → (logits, cache): the next tokens of rows that were padded, on the left or
            behind; real (B, all so far) is True at their own tokens, in the cache and in these. How a batch is generated.
        longest: how many positions the model has, where it has a last one.

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

    `Calls.of(model)` writes them for a model of transformers.
    """

    whole: Callable[[Tensor], Tensor]
    at: Callable[[Tensor, int], Tensor] | None = None
    step: Callable[[Tensor, Any], tuple[Tensor, Any]] | None = None
    evict: Callable[[Any, int], Any] | None = None
    hidden: Callable[[Tensor, Tensor], Tensor] | None = None
    padded: Callable[[Tensor, Tensor], Tensor] | None = None
    packed: Callable[[Tensor, Tensor], Tensor] | None = None
    padded_step: Callable[[Tensor, Tensor, Any], tuple[Tensor, Any]] | None = None
    longest: int | None = None

    @classmethod
    def of(cls, model: nn.Module) -> "Calls":
        """How a causal model of transformers is called: positions given, a cache, padding masked and not counted.

        Raises:
            TypeError: the model has no configuration, or its logits are not those of a next token.
        """
        config = getattr(model, "config", None)
        if config is None or getattr(config, "is_encoder_decoder", False):
            raise TypeError(f"{type(model).__name__} is no causal model of transformers: write its Calls")
        config = config.get_text_config() if hasattr(config, "get_text_config") else config
        known = inspect.signature(model.forward).parameters

        def run(tokens: Tensor, *, start: int = 0, real: Tensor | None = None, **options):
            device = next(model.parameters()).device
            places = torch.arange(start, start + tokens.shape[1]).expand(len(tokens), -1)
            if real is not None:
                places = (real.long().cumsum(1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
                options["attention_mask"] = real.long().to(device)
            if "position_ids" in known and (start or real is not None):
                options["position_ids"] = places.to(device)
            out = model(tokens.to(device), use_cache="past_key_values" in options, **options)
            if getattr(out, "logits", None) is None or out.logits.shape[:2] != tokens.shape:
                raise TypeError(f"{type(model).__name__} gives no logits of each token: load it with its causal head")
            return out

        def fed(tokens: Tensor, cache: Any, **options):
            out = run(tokens, past_key_values=cache, **options)
            return out.logits, out.past_key_values

        caches = "past_key_values" in known
        return cls(
            whole=lambda tokens: run(tokens).logits,
            at=(lambda tokens, start: run(tokens, start=start).logits) if "position_ids" in known else None,
            step=fed if caches else None,
            padded=lambda tokens, real: run(tokens, real=real).logits,
            padded_step=(lambda tokens, real, cache: fed(tokens, cache, real=real)) if caches else None,
            longest=getattr(config, "max_position_embeddings", None),
        )


@dataclass(frozen=True, repr=False)
class Agreement:
    """What two runs that must agree differ by; true where all agree.

    Attributes:
        differences: run → the largest difference of a log-probability, in nats; NaN where it raised an error.
        left_out: run → why it was not made.
        quiet: differences above it count as a disagreement.
        errors: run → what it raised.
        far: by how many positions the text was moved for `far`.
    """

    differences: Mapping[str, float]
    left_out: Mapping[str, str] = field(default_factory=dict)
    quiet: float = QUIET
    errors: Mapping[str, str] = field(default_factory=dict)
    far: int = 1000

    @property
    def disagree(self) -> tuple[str, ...]:
        """The runs that differ, or that raised an error."""
        return tuple(name for name, size in self.differences.items() if not size <= self.quiet)

    def __bool__(self) -> bool:
        return not self.disagree

    def check(self) -> None:
        """For a test of your own: `agreement(calls, tokens).check()`.

        Raises:
            AssertionError: some runs disagree; its message is the whole report.
        """
        if not self:
            raise AssertionError(f"{', '.join(self.disagree)} disagree with the plain run\n{self!r}")

    def __repr__(self) -> str:
        lines = []
        for name, size in self.differences.items():
            mark, run = "✗" if name in self.disagree else "✓", RUNS[name].format(far=self.far)
            if name in self.errors:
                lines.append(f"{mark} {name:8} {'error':>8}  {run}: {self.errors[name]}")
            else:
                shown = f"{size:.2g}" if size >= ROUNDED else f"< {ROUNDED:.0e}"
                lines.append(f"{mark} {name:8} {shown:>8}  {run}")
        lines += [f"– {name:8} {'':8}  left out: {why}" for name, why in self.left_out.items()]
        return "\n".join(lines)


RUNS = {  # what is compared with the plain run
    "shift": "the same text 7 positions on",
    "far": "the same text {far} positions on",
    "steps": "one token at a time, with a cache",
    "chunks": "five tokens at a time, with a cache",
    "padding": "two texts of different lengths in one batch, padded on the left",
    "packing": "two texts one after the other in one row",
    "rows": "a batch, and its rows alone",
    "eviction": "one token more after the oldest were dropped, and the same with them hidden",
    "ragged": "two texts of different lengths, padded on the left, and from there one token at a time",
    "behind": "two texts of different lengths, padded on the right, and from there one token at a time",
}


def agreement(
    calls: Calls,
    tokens: Tensor,
    *,
    relative: bool = True,
    far: int | None = None,
    pad: int = 0,
    quiet: float | None = None,
) -> Agreement:
    """Make the runs that must agree, and measure how far they do.

    Args:
        calls: how the model is called.
        tokens: (B, T), at least two rows of at least 12 tokens, as the model reads them.
        relative: whether only distances may matter. Leave out `shift` and `far` with False, for a model whose
            encoding is absolute.
        far: by how many positions the text is moved for `far`; 1000 unless given, or as many as the model has left.
        pad: the token that fills up a padded row.
        quiet: largest difference of a log-probability, in nats, that rounding may explain. Unless given 10⁻³, and
            four times the last digit of the largest logit in half precision: a small mistake is seen in float32.

    Returns:
        the largest difference of each run, and which were left out, and why. An error in one run is its result.

    Raises:
        ValueError: there are too few tokens. What the plain run raises is raised.
    """
    if tokens.ndim != 2 or tokens.shape[0] < 2 or tokens.shape[1] < 12:
        raise ValueError(f"tokens of shape {tuple(tokens.shape)}: pass at least two rows of at least 12 tokens")
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
    if calls.padded_step is not None:
        runs["ragged"] = ("padded_step", lambda: _ragged(calls, tokens, pad, 0))
        runs["behind"] = ("padded_step", lambda: _ragged(calls, tokens, pad, tokens.shape[1] - 8))
    left = math.inf if calls.longest is None else calls.longest - tokens.shape[1]
    far = min(1000, left) if far is None else far
    differences, left_out, errors = {}, {}, {}
    with torch.no_grad():
        plain = calls.whole(tokens)
        for name, (needs, run) in runs.items():
            missing = [need for need in needs.split(", ") if getattr(calls, need) is None]
            if missing:
                left_out[name] = f"no {' and no '.join(missing)} given"
            elif name in ("shift", "far") and not relative:
                left_out[name] = "its encoding is absolute"
            elif name in ("shift", "far") and left < (7 if name == "shift" else 8):
                left_out[name] = f"the model has {calls.longest} positions"
            else:
                try:
                    differences[name] = run()
                except Exception as error:  # noqa: BLE001 - a port may fail in any way, and the other runs count
                    differences[name] = math.nan
                    errors[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    quiet = _rounding(plain) if quiet is None else quiet
    return Agreement(differences, left_out, quiet, errors, far)


def _rounding(logits: Tensor) -> float:
    """What rounding may change of a log-probability: logits that half precision holds were computed in it."""
    for low in (torch.bfloat16, torch.float16):
        if torch.equal(logits, logits.to(low).to(logits.dtype)):
            return max(QUIET, ROUNDINGS * torch.finfo(low).eps * logits.abs().max().item())
    return QUIET


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


def _padded(tokens: Tensor, pad: int, place: int) -> tuple[Tensor, Tensor]:
    """The first row as it is, the second without its last four tokens and padded at this place; and what is real."""
    rows = tokens[:2].clone()
    rows[1, place + 4 :], rows[1, place : place + 4] = tokens[1, place:-4], pad
    real = torch.ones_like(rows, dtype=torch.bool)
    real[1, place : place + 4] = False
    return rows, real


def _padding(calls: Calls, tokens: Tensor, pad: int) -> float:
    rows, real = _padded(tokens, pad, 0)
    return _each_apart(calls, tokens, calls.padded(rows, real), real)


def _ragged(calls: Calls, tokens: Tensor, pad: int, place: int) -> float:
    """The last four tokens are fed one at a time."""
    rows, real = _padded(tokens, pad, place)
    cache, got = None, []
    start = rows.shape[1] - 4
    for first, last in [(0, start)] + [(place, place + 1) for place in range(start, rows.shape[1])]:
        logits, cache = calls.padded_step(rows[:, first:last], real[:, :last], cache)
        got.append(logits)
    return _each_apart(calls, tokens, torch.cat(got, dim=1), real)


def _each_apart(calls: Calls, tokens: Tensor, got: Tensor, real: Tensor) -> float:
    """Of padded rows from the same rows alone."""
    first, second = calls.whole(tokens[:1]), calls.whole(tokens[1:2, :-4])
    return max(_apart(got[:1], first), _apart(got[1:2, real[1].to(got.device)], second))


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
