"""Let weights and a text name the rotation that the weights were trained with.

A wrong convention costs loss, so the right one is where the loss is lowest. What a text cannot tell, it leaves
open: two conventions are told apart only where their difference is far above its own noise.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from posenc.probe.convention import Convention

LEAST = 5e-3  # nats a token: no convention is named by less
BASES = (100.0, 1_000.0, 10_000.0, 50_000.0, 100_000.0, 500_000.0, 1_000_000.0, 5_000_000.0)


def conventions(
    head_dim: int,
    *,
    layouts: Sequence[str] = ("interleaved", "half_split"),
    bases: Sequence[float] = BASES,
    directions: Sequence[int] = (1, -1),
    parts: Sequence[float] = (1.0, 0.5, 0.25),
    scales: Sequence[float] = (1.0,),
) -> list[Convention]:
    """All combinations: 96 with the defaults.

    Args:
        head_dim: size of one head.
        parts: how much of a head is turned; parts that are no even number of dimensions are left out.
    """
    found = [
        Convention(
            head_dim,
            layout=layout,
            rotary_dim=int(part * head_dim),
            base=base,
            direction=direction,
            scale=scale,
        )
        for layout in layouts
        for base in bases
        for direction in directions
        for part in parts
        for scale in scales
        if part * head_dim >= 2 and part * head_dim % 2 == 0
    ]
    return found


@dataclass(frozen=True, repr=False)
class Ranking:
    """Conventions by the loss that a model has with them.

    Attributes:
        best: the one with the lowest loss.
        losses: nats a token of each convention, the lowest first.
        ranked: the conventions in that order.
        margin: how much more the second one costs; NaN if there is no second.
        open: the others that this text does not tell from the best.
        warning: what the text is too short for, or "".
    """

    best: Convention
    ranked: tuple[Convention, ...]
    losses: tuple[float, ...]
    margin: float
    open: tuple[Convention, ...]
    warning: str

    def __repr__(self) -> str:
        lines = [f"{self.best}: {self.losses[0]:.3f} nats, {self.margin:.3f} less than the next"]
        return "\n".join(lines + ([f"warning: {self.warning}"] if self.warning else []))


def best_convention(
    model: Callable[[Tensor, Callable[[Tensor, Tensor], Tensor]], Tensor],
    text: Tensor,
    candidates: Iterable[Convention] | None = None,
    *,
    head_dim: int | None = None,
) -> Ranking:
    """The convention with which a model reads a text best.

    Args:
        model: (tokens, rotate) → logits (B, T, vocabulary). It has to use this `rotate` for its own, with
            x (B, heads, T, head_dim) and integer positions (T,): `rotate(query, positions)`.
        text: tokens (B, T) of text such as the model was trained on. T is the context: with a short one the slow
            pairs have hardly turned, and the base cannot be told.
        candidates: the conventions to try, or `conventions(head_dim)`.
        head_dim: size of one head, where no candidates are given.

    Returns:
        the lowest loss, the margin to the next, and what is left open. A rival is left open while it costs less
        than four standard errors of the difference, over the rows of the text or their pieces, or than LEAST.

    Raises:
        ValueError: neither candidates nor head_dim are given, or the text is too short.
    """
    if candidates is None:
        if head_dim is None:
            raise ValueError("pass candidates, or head_dim so that they can be made")
        candidates = conventions(head_dim)
    candidates = list(candidates)
    if not candidates or text.ndim != 2 or text.shape[1] < 4:
        raise ValueError(f"{len(candidates)} candidates and text of shape {tuple(text.shape)}: both are needed")
    with torch.no_grad():
        pieces = torch.stack([_pieces(model(text, convention.rotate), text) for convention in candidates])
    losses = pieces.mean(dim=1)
    order = losses.argsort().tolist()
    ranked = [candidates[index] for index in order]
    best = order[0]
    excess = pieces - pieces[best]  # (candidates, pieces)
    noise = excess.std(dim=1) / excess.shape[1] ** 0.5
    near = [candidates[i] for i in order[1:] if excess[i].mean() <= max(4 * noise[i].item(), LEAST)]
    winner = ranked[0]
    warning = ""
    if near:
        bases = [rival for rival in near if replace(rival, base=winner.base, speeds=None) == winner]
        if bases:
            named = " and ".join(f"{rival.base:,.0f}" for rival in bases)
            warning = f"a context of {text.shape[1]} tokens is too short to tell base {winner.base:,.0f} from {named}"
        if len(bases) < len(near):
            others = len(near) - len(bases)
            warning += ("; " if warning else "") + f"{others} other candidates are as good on this text"
    margin = (losses[order[1]] - losses[best]).item() if len(order) > 1 else float("nan")
    return Ranking(winner, tuple(ranked), tuple(losses[order].tolist()), margin, tuple(near), warning)


def _pieces(logits: Tensor, text: Tensor) -> Tensor:
    """Mean loss of 16 to 32 pieces of the text, or of each row where there are more rows."""
    losses = F.cross_entropy(logits[:, :-1].flatten(0, 1).double(), text[:, 1:].flatten(), reduction="none")
    rows = losses.view(len(text), -1)
    if len(rows) >= 16:
        return rows.mean(dim=1)
    count = min(rows.shape[1], -(-16 // len(rows)))
    size = rows.shape[1] // count
    return rows[:, -count * size :].reshape(-1, size).mean(dim=1)
