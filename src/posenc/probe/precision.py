"""Where the digits of a rotation are lost: of all ways to lose them, the ones that give exactly its numbers."""

from collections.abc import Sequence
from itertools import combinations

import torch
from torch import Tensor

LOW = {"bfloat16": torch.bfloat16, "float16": torch.float16}
EXACT = ("float64", "float64 angles", "float32 angles", "float32 or better")
STAGES = ("positions", "speeds", "angles", "tables")
NOISE = 1e-6  # of an entry of R(p) that was computed in float32


def recipe(
    z: Tensor, positions: Tensor, series: Tensor, offset: float, scale: float | None
) -> tuple[str | None, float, list[str]] | None:
    """Where digits are lost: of all ways to lose them, the ones that give exactly these numbers.

    Returns:
        the precision, the factor on the length, and what cannot be told apart; None if nothing explains them.
    """
    places = positions.double() + offset
    theta = places[:, None] * series
    exact = torch.polar(torch.ones_like(theta), theta)
    near = theta.abs() <= max(16.0, 1.5 * theta.abs().min().item())  # a large offset leaves nothing small
    length = _factor(torch.where(near, z, 0), torch.where(near, exact, 0))
    miss = (z / length - exact).abs()
    if (miss <= 2 * NOISE + 5e-7 * theta.abs()).all():
        if abs(length - 1) < 1e-12 and miss.max() < 1e-11:
            return "float64", length, []
        if theta.abs().max() < 40:
            return "float32 or better", length, []
        # a slow drift is a base that is known to a few digits only
        return ("float64 angles" if miss.max() < 4e-7 else "float32 angles"), length, []

    if miss[near].max() > 0.16:
        return None  # no loss of digits is as large as that

    explained: list[str] = []
    factor = length
    for count in range(1, len(STAGES) + 1):
        for name, low in LOW.items():
            for stages in combinations(STAGES, count):
                size = reproduced(z, places, series, scale, low, stages)
                if size is not None:
                    explained.append(" and ".join(f"{name} {stage}" for stage in stages))
                    factor = size
        if explained:
            break
    if not explained:
        return None
    return (explained[0] if len(explained) == 1 else None), factor, explained


def _factor(z: Tensor, model: Tensor) -> float:
    return ((z * model.conj()).real.sum() / (model.abs() ** 2).sum()).item()


def reproduced(
    z: Tensor, places: Tensor, series: Tensor, scale: float | None, low: torch.dtype, stages: Sequence[str]
) -> float | None:
    """The factor on the length if these stages in low precision give z, else None."""

    def cut(x: Tensor, stage: str) -> Tensor:
        return x.to(low).double() if stage in stages else x

    if "positions" in stages and torch.equal(cut(places, "positions"), places) and scale in (None, 1.0):
        return None  # this loses nothing, so it explains nothing
    scale = scale or 1.0
    orders = [(1.0, series)]  # the scale may be part of the speeds or of the positions
    if scale != 1:
        orders += [(scale, series / scale)]
    for factor, speeds in orders:
        at = cut(places * factor, "positions")
        ways = [at, cut(places, "positions") * factor] if factor != 1 and "positions" in stages else [at]
        for at in ways:
            theta = cut(at[:, None].float().double() * cut(speeds, "speeds"), "angles")
            turn = torch.polar(torch.ones_like(theta), theta)
            plain = torch.complex(cut(turn.real, "tables"), cut(turn.imag, "tables"))
            for size in dict.fromkeys([1.0, _factor(z, plain)]):
                tables = [size * plain]
                if "tables" in stages and size != 1:
                    size = _before_rounding(z, turn, low)
                    tables.append(torch.complex(cut(size * turn.real, "tables"), cut(size * turn.imag, "tables")))
                for model in tables:
                    miss = (z - model).abs()
                    close = miss <= 3 * NOISE + 5e-7 * theta.abs()
                    # rounding the other way is spread over all pairs: a wrong pair is more than that
                    spread = close.double().mean(dim=0).min() > 0.85
                    if spread and close.double().mean() > 0.985 and miss.max() < 0.2:
                        return size
    return None


def _before_rounding(z: Tensor, turn: Tensor, low: torch.dtype) -> float:
    """The factor with which the turn's entries round to those of z: every entry leaves it a little room."""
    got, exact = (torch.cat([x.real.flatten(), x.imag.flatten()]) for x in (z, turn))
    large = exact.abs() > 0.05
    got, exact = got[large].abs(), exact[large].abs()
    room = got.log2().floor().exp2() * torch.finfo(low).eps / 2
    ends = torch.stack([(got - room) / exact, (got + room) / exact]).sort(dim=1).values
    few = len(got) // 200  # may be rounded the other way by an angle's last digit
    return ((ends[0, -1 - few] + ends[1, few]) / 2).item()
