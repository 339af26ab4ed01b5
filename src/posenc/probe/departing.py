"""From which position on a rotation does something else, and what: positions that wrap, stay, or jump."""

import torch
from torch import Tensor


def departure(turns: Tensor) -> int | None:
    """The first position that is not one step further than the one before.

    Args:
        turns: what each pair is turned by at positions from 0, complex, shape (P, pairs).
    """
    u = turns / turns.abs().clamp(min=1e-30)
    steps = u[1:] * u[:-1].conj()
    if (steps[0] - 1).abs().max() < 1e-3 and (steps - 1).abs().max() > 0.1:
        return 1
    usual = steps[:32].real.median(0).values + 1j * steps[:32].imag.median(0).values
    off = ((steps * usual.conj()).angle().abs() > 0.1).any(dim=1).nonzero()
    return None if not len(off) else off[0].item() + 1


def departing(turns: Tensor, first: int) -> str:
    """What happens from that position on, in words."""
    u = turns / turns.abs().clamp(min=1e-30)
    u = u * u[0].conj()

    def turned_as(position: int) -> int | None:
        last = u[first - 1] * u[1]  # where it would be
        before = torch.cat([last.conj()[None], u[1:first].conj().flip(0), u[:first]])  # of -first to first - 1
        miss = (before - u[position]).abs().amax(dim=1)
        near = (miss < miss.min() + 1e-6).nonzero().flatten() - first
        return min(near.tolist(), key=abs) if miss.min() < 0.03 else None

    here, after = (turned_as(min(first + step, len(u) - 1)) for step in (0, 1))
    if (here, after) == (0, 1):
        return f"its positions start again at {first:,}"
    if here == first - 1 and (u[first:] - u[first - 1]).abs().max() < 0.03:
        return f"its positions stay at {first - 1:,}"
    if here is not None:
        return f"position {first:,} is turned as {here:,}"
    return f"from position {first:,} on it turns otherwise"
