"""What matrices R(p) say: which dimensions make a pair, and what each pair does as the position grows.

Conventions as in `posenc.probe.convention`.
"""

import math
from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from posenc.probe.precision import EXACT, LOW, NOISE, recipe
from posenc.probe.speeds import Series, rounded_speeds, series_to_try, standing_still


def read_matrices(matrices: Tensor, positions: Tensor, head_dim: int, *, frozen: bool = True) -> dict:
    """Name what a sequence of matrices does.

    Args:
        matrices: R(p), shape (P, head_dim, head_dim), float64, for column vectors.
        positions: P integers, ascending; 0, 1 and the powers of two up to the largest are among them.
        frozen: whether R depends on p alone; otherwise speeds are not named.

    Returns:
        fields of a Convention.
    """
    unknown: dict[str, str] = {}
    found: dict = {"unknown": unknown}
    order = matrices[0].argmax(dim=1)
    if order.tolist() != sorted(order.tolist()) and torch.equal(
        matrices[0], torch.eye(head_dim).double()[order]
    ):
        found |= {"order": tuple(order.tolist()), "notes": ("it puts the dimensions in another order",)}
        matrices = matrices[0].mT @ matrices
    away = (matrices - torch.eye(head_dim, dtype=matrices.dtype)).abs().amax(dim=0)  # (out, in)
    dims = (away.amax(dim=1) > NOISE).nonzero().flatten().tolist()
    if not dims:
        return found | {"rotary_dim": 0, "speeds": torch.zeros(0)} | _without(unknown, "nothing is turned")
    crossed = away.clone().fill_diagonal_(0)
    partner = crossed.argmax(dim=1).tolist()
    alone = [j for j in dims if crossed[j].max() <= NOISE]
    second = crossed.topk(min(2, head_dim - 1), dim=1).values
    if head_dim > 2 and second[dims, 1].max() > NOISE:
        return nothing_read(
            found, unknown, "it mixes more than two dimensions, so it is no rotation of pairs"
        )
    if alone and len(alone) == len(dims):
        return nothing_read(found, unknown, "no dimension meets another one")
    if alone or any(partner[partner[j]] != j for j in dims):
        return nothing_read(found, unknown, "its dimensions do not go in pairs")

    pairs = sorted({(min(j, partner[j]), max(j, partner[j])) for j in dims})
    a, b = torch.tensor(pairs).T
    z_a = torch.complex(matrices[:, a, a], -matrices[:, a, b])  # what the first dimension's row turns by
    z_b = torch.complex(matrices[:, b, b], matrices[:, b, a])
    layout, numbers = _layout(pairs, head_dim, unknown)
    found |= layout
    if (z_a - z_b).abs().max() > 0.02 * z_a.abs().max():
        return found | _no_rotation(found, pairs, z_a, z_b, positions, unknown)
    z = (z_a + z_b) / 2  # (P, pairs)
    found |= _lengths(z, unknown)
    if found["length"] is None:
        z = z / z.abs().clamp(min=1e-30)
    found |= _speeds(z, positions, found, numbers, unknown, frozen)
    every = torch.zeros(found["rotary_dim"] // 2, dtype=torch.float64)
    every[numbers] = found["speeds"]
    return found | {"speeds": every}


def _layout(pairs: list[tuple[int, int]], head_dim: int, unknown: dict[str, str]) -> tuple[dict, list[int]]:
    """Which dimensions are turned and which make a pair, and the numbers of the pairs that move."""
    dims = sorted(j for pair in pairs for j in pair)
    size, start, half = len(dims), dims[0], head_dim // 2
    found: dict = {"rotary_dim": size, "start": start, "layout": None}
    numbers = list(range(size // 2))
    if dims == list(range(start, start + size)):
        if size == 2:
            unknown["layout"] = "with one pair the layouts are the same"
        elif pairs == [(start + 2 * i, start + 2 * i + 1) for i in numbers]:
            found["layout"] = "interleaved"
        elif pairs == [(start + i, start + i + size // 2) for i in numbers]:
            found["layout"] = "half_split"
    if found["layout"] is None and "layout" not in unknown and head_dim % 2 == 0:
        for layout, first, gap in (("half_split", lambda i: i, half), ("interleaved", lambda i: 2 * i, 1)):
            moving = [i for i in range(half) if (first(i), first(i) + gap) in pairs]
            if len(moving) == len(pairs):
                numbers = moving
                found = {"layout": layout, "rotary_dim": head_dim, "start": 0}
                found["scaling"] = standing_still(moving, half)
    if found["layout"] is None and "layout" not in unknown:
        shown = ", ".join(map(str, pairs[:3]))
        unknown["layout"] = f"its pairs are {shown}{', …' if len(pairs) > 3 else ''}"
    return found, numbers


def _no_rotation(
    found: dict, pairs: list, z_a: Tensor, z_b: Tensor, positions: Tensor, unknown: dict
) -> dict:
    """The two rows of a pair turn by different angles."""
    if (z_a - z_b.conj()).abs().max() < 0.02 * z_a.abs().max():
        reason = "both sines have the same sign, so it is no rotation and lengths change"
        return {"layout": f"{_spoken(found['layout'])} pairs"} | _without(unknown, reason)
    rows = torch.cat([_velocity(z / z.abs().clamp(min=1e-30), positions)[0].abs() for z in (z_a, z_b)])
    dims = torch.tensor([pair[0] for pair in pairs] + [pair[1] for pair in pairs])
    rows = rows[dims.argsort()]  # the speed of every turned dimension

    def same(x: Tensor, y: Tensor) -> bool:
        return bool(((x - y).abs() <= 0.01 * y.abs()).all())

    half = len(rows) // 2
    tables = []
    if same(rows[0::2], rows[1::2]):
        tables.append("interleaved")
    if same(rows[:half], rows[half:]):
        tables.append("half-split")
    reason = "the two dimensions of a pair turn by different angles, so it is no rotation"
    layout = found["layout"]
    if len(tables) == 1 and layout is not None:
        found["layout"] = f"{_spoken(layout)} turn with an {tables[0]} table".replace("an half", "a half")
    return {"layout": found["layout"]} | _without(unknown, reason)


def _lengths(z: Tensor, unknown: dict[str, str]) -> dict:
    """The factor on the norm, if there is one."""
    sizes = z.abs()
    middle = sizes.median().item()
    if (sizes - middle).abs().max() < 0.01 * middle:
        return {"length": 1.0 if abs(middle - 1) < 2e-6 else middle}
    over_positions = (sizes.amax(0) - sizes.amin(0)).max()
    low, high = sizes.min().item(), sizes.max().item()
    what = "the position" if over_positions > 0.01 * middle else "the pair"
    unknown["length"] = f"it depends on {what}: {low:.3g} to {high:.3g}"
    return {"length": None}


def _velocity(u: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Radians a position of every pair, and up to which position they were followed.

    From one power of two to the next the angle is known well enough to count the full turns.
    """
    place = {p: index for index, p in enumerate(positions.tolist())}
    still = u[place[0]].conj()
    speed = (u[place[1]] * still).angle()
    reach = torch.ones_like(speed)
    going = torch.ones_like(speed, dtype=torch.bool)
    step = 2
    while step in place:
        expected = speed * step
        surplus = (u[place[step]] * still * torch.polar(torch.ones_like(expected), -expected)).angle()
        going &= surplus.abs() < 0.3
        speed = torch.where(going, (expected + surplus) / step, speed)
        reach = torch.where(going, torch.full_like(reach, step), reach)
        step *= 2
    places = positions[:, None].double()
    rest = (u * still * torch.polar(torch.ones_like(u.real), -places * speed)).angle()
    near = places <= reach
    steady = ((rest.abs() < 0.05) | ~near).all(dim=0)  # otherwise digits are lost between the powers of two
    better = (places * rest * near).sum(dim=0) / (places**2 * near).sum(dim=0)
    return speed + better * steady, reach


def _speeds(
    z: Tensor, positions: Tensor, found: dict, numbers: list[int], unknown: dict[str, str], frozen: bool
) -> dict:
    """Base, direction, scale, offset and precision."""
    u = z / z.abs()
    speed, reach = _velocity(u, positions)
    result: dict = {"speeds": speed, "base": None, "scale": None, "offset": None, "precision": None}
    slow = speed[len(speed) // 2 :]
    signs = slow.sign().unique()
    result["direction"] = int(signs.item()) if len(signs) == 1 and signs.item() else None
    if result["direction"] is None:
        unknown["direction"] = "some pairs turn one way round and some the other"
    if not frozen or found["length"] is None or result["direction"] is None:
        reason = "R depends on more than the position" if not frozen else "this is no plain rotation"
        for name in ("base", "scale", "offset", "precision"):
            unknown[name] = reason
        return result

    exponents = 2 * torch.tensor(numbers, dtype=torch.float64) / found["rotary_dim"]
    offset = _offset(u[0], speed, positions)
    offsets = [] if offset is None else list(dict.fromkeys([float(round(offset)), offset]))

    def explained() -> Iterator[tuple[Series, float, tuple]]:
        for series, offset in product(series_to_try(speed, reach, exponents), offsets):
            how = recipe(z, positions, series.speeds, offset, series.scale)
            if how is not None and series.measured:
                how = rounded_speeds(series, how)
            if how is not None:
                yield series, offset, how

    best = next(explained(), None)
    if best is None:
        return result | _unexplained(z, speed, exponents, reach, positions, unknown)
    series, offset, (precision, length, rivals) = best
    notes = (*found.get("notes", ()), *series.notes)
    if series.base is not None and series.base < 1:
        notes += ("its pairs get faster, not slower",)
    if series.base == 1:
        notes += ("all its pairs turn at one speed",)
    if abs(length - 1) < 2e-6 or abs(length - 1) < 3e-3 and precision not in EXACT:
        length = 1.0
    if precision is None:
        unknown["precision"] = f"these give the same up to here: {', or '.join(rivals)}"
    if series.base is None:
        unknown["base"] = "there is one pair, and its speed does not depend on the base"
    return result | {
        "base": series.base,
        "scale": series.scale,
        "offset": int(offset) if offset == round(offset) else offset,
        "precision": precision,
        "speeds": series.speeds,
        "scaling": series.scaling or found.get("scaling", ""),
        "length": length,
        "notes": notes,
    }


def _offset(start: Tensor, speed: Tensor, positions: Tensor) -> float | None:
    """The position that position 0 is turned as: from the slowest pair, then ever finer."""
    angle = start.angle()
    if angle.abs().max() < 1e-5:
        return 0.0

    def fits(offset: Tensor) -> Tensor:
        theta = offset[..., None] * speed
        miss = (start * torch.polar(torch.ones_like(theta), -theta)).angle().abs()
        return (miss - 0.05 - theta.abs() / 256).amax(dim=-1)

    offset = 0.0
    for pair in reversed(range(len(speed))):
        rest = (angle[pair] - speed[pair] * offset).item()
        offset += math.remainder(rest, 2 * math.pi) / speed[pair].item()
    if fits(torch.tensor(offset).double()) < 0:
        return offset
    # a slow pair knows its angle badly in half precision: look for the whole number that fits all pairs
    whole = torch.arange(-int(positions[-1]), int(positions[-1]) + 1, dtype=torch.float64)
    miss = fits(whole)
    return whole[miss.argmin()].item() if miss.min() < 0 else None


def _unexplained(
    z: Tensor, speed: Tensor, exponents: Tensor, reach: Tensor, positions: Tensor, unknown: dict[str, str]
) -> dict:
    """No set of round numbers gives these turns: say what is known all the same."""
    u = z / z.abs()
    if next(series_to_try(speed, reach, exponents), None) is None:
        reason = "its speeds are not the powers of one base, nor those with their slow end divided"
    else:
        reason = "no base and scale give these turns at all positions"
    unknown |= dict.fromkeys(("base", "scale"), reason)
    result: dict = {}
    turned = torch.polar(torch.ones(len(positions), len(speed)).double(), positions[:, None] * speed)
    parts = torch.view_as_real(z)
    rounded = any(torch.equal(parts, parts.to(low).double()) for low in LOW.values())
    steady = (u - u[0] * turned).abs().max() < (0.02 if rounded else 1e-3)
    if steady and (u[0] - 1).abs().max() < 1e-5:
        result["offset"] = 0
    else:
        unknown["offset"] = (
            "position 0 is turned" if steady else "the turns do not grow evenly with the position"
        )
    unknown["precision"] = "it takes the speeds to tell"
    return result


def _without(unknown: dict[str, str], reason: str) -> dict:
    names = ("base", "direction", "scale", "offset", "length", "precision")
    for name in names:
        unknown[name] = reason
    return dict.fromkeys(names)


def nothing_read(found: dict, unknown: dict[str, str], reason: str) -> dict:
    unknown |= dict.fromkeys(("layout", "rotary_dim"), reason)
    return found | {"layout": None, "rotary_dim": None, "start": None} | _without(unknown, reason)


def _spoken(layout: str | None) -> str:
    return {"half_split": "half-split", None: "unknown"}.get(layout, layout)
