"""What matrices R(p) say: which dimensions make a pair, and what each pair does as the position grows.

Conventions as in `posenc.probe.convention`.
"""

import math
from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from posenc.probe.precision import EXACT, LOW, NOISE, recipe
from posenc.probe.speeds import (
    Series,
    odd_pairs,
    round_numbers,
    rounded_speeds,
    series_to_try,
    spoken_number,
    standing_still,
)


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
    if order.tolist() != sorted(order.tolist()) and torch.equal(matrices[0], torch.eye(head_dim).double()[order]):
        found |= {"order": tuple(order.tolist())}
        matrices = matrices[0].mT @ matrices
    away = (matrices - torch.eye(head_dim, dtype=matrices.dtype)).abs().amax(dim=0)  # (out, in)
    dims = (away.amax(dim=1) > NOISE).nonzero().flatten().tolist()
    if not dims:
        return found | {"rotary_dim": 0, "speeds": torch.zeros(0)} | _without(unknown, "nothing is turned")
    crossed = away.clone().fill_diagonal_(0)
    partner = crossed.argmax(dim=1).tolist()
    alone = [j for j in dims if crossed[j].max() <= NOISE]
    usual = matrices.square().sum(1).sqrt().median()  # the factor on the length
    still = (matrices - matrices[0]).abs().amax(dim=(0, 1)) <= NOISE
    same = (matrices[0].diagonal() - usual).abs() < 0.01 * usual
    dims = [j for j in dims if not (j in alone and still[j] and same[j])] or dims
    alone = [j for j in alone if j in dims]
    second = crossed.topk(min(2, head_dim - 1), dim=1).values
    if head_dim > 2 and second[dims, 1].max() > NOISE:
        if (matrices.abs().amax(0) > NOISE).sum(1).max() <= 2:
            reason = "it puts the dimensions in another order, and position 0 is turned too"
        else:
            reason = "it mixes more than two dimensions, so it is no rotation of pairs"
        return nothing_read(found, unknown, reason)
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
    if "order" in found:
        found["notes"] = (_reordered(found["order"], pairs, found["layout"]),)
    if (z_a - z_b).abs().max() > 0.02 * z_a.abs().max():
        return found | _no_rotation(found, pairs, z_a, z_b, positions, unknown)
    z = (z_a + z_b) / 2  # (P, pairs)
    found |= _lengths(z, unknown)
    if found["length"] is None:
        z = z / z.abs().clamp(min=1e-30)
    whole = {"rotary_dim": head_dim, "start": 0}
    first = pairs[0][0] // 2
    if found["start"] % 2 == 0 and found["layout"] == "interleaved" and found["rotary_dim"] < head_dim:
        beside = [first + i for i in numbers]  # or the others of the head's pairs stand still
        lost = dict(unknown)
        other = _speeds(z, positions, found | whole, beside, lost, frozen)
        plain = _speeds(z, positions, found, numbers, dict(unknown), frozen)
        if _round(other) and not _round(plain):
            found, numbers = found | whole, beside
            found["scaling"] = standing_still(numbers, head_dim // 2)
    found |= _speeds(z, positions, found, numbers, unknown, frozen)
    base, part = found["base"], found["rotary_dim"] / head_dim
    if base is not None and part < 1 and 1 < base < 9_000:
        spread = base ** (1 / part)
        if nearby := [n for n in round_numbers(spread, 1e-4, inverses=False)[:1] if 9_000 <= n <= 2e7]:
            note = f"the same as base {spoken_number(nearby[0])} with the exponents of all {head_dim} dimensions"
            found["notes"] = (*found.get("notes", ()), note)
    every = torch.zeros(found["rotary_dim"] // 2, dtype=torch.float64)
    every[numbers] = found["speeds"]
    return found | {"speeds": every, "pairs": pairs}


def _round(read: dict) -> bool:
    """Whether base and scale are numbers that somebody would have chosen."""
    return read["base"] is not None and all(read[name] == float(f"{read[name]:.1e}") for name in ("base", "scale"))


def _layout(pairs: list[tuple[int, int]], head_dim: int, unknown: dict[str, str]) -> tuple[dict, list[int]]:
    """Which dimensions are turned and which make a pair, and the numbers of the pairs that move."""
    dims = sorted(j for pair in pairs for j in pair)
    size, start = len(dims), dims[0]
    found: dict = {"rotary_dim": size, "start": start, "layout": None}
    numbers = list(range(size // 2))
    if dims == list(range(start, start + size)):
        if size == 2:
            unknown["layout"] = "with one pair the layouts are the same"
        elif pairs == [(start + 2 * i, start + 2 * i + 1) for i in numbers]:
            found["layout"] = "interleaved"
        elif pairs == [(start + i, start + i + size // 2) for i in numbers]:
            found["layout"] = "half_split"
    if found["layout"] is None and "layout" not in unknown:
        gaps = {b - a for a, b in pairs}
        gap = gaps.pop()
        first = [a for a, _ in pairs]
        if not gaps and gap > 1:  # some pairs stand still
            for begin in (0, head_dim - 2 * gap):
                if begin >= 0 and begin <= first[0] and first[-1] < begin + gap:
                    numbers = [a - begin for a in first]
                    found = {"layout": "half_split", "rotary_dim": 2 * gap, "start": begin}
                    break
        elif not gaps and head_dim % 2 == 0 and all(a % 2 == 0 for a in first):
            numbers = [a // 2 for a in first]
            found = {"layout": "interleaved", "rotary_dim": head_dim, "start": 0}
        found["scaling"] = standing_still(numbers, found["rotary_dim"] // 2)
    if found["layout"] is None and "layout" not in unknown:
        shown = ", ".join(map(str, pairs[:3]))
        unknown["layout"] = f"its pairs are {shown}{', …' if len(pairs) > 3 else ''}"
    return found, numbers


def _reordered(order: tuple[int, ...], pairs: list[tuple[int, int]], layout: str | None) -> str:
    """Where pairs stand in what comes out, in words."""
    place = {dim: where for where, dim in enumerate(order)}
    after, _ = _layout(sorted(tuple(sorted((place[a], place[b]))) for a, b in pairs), len(order), {})
    words = "it puts the dimensions in another order"
    if None in (layout, after["layout"]) or layout == after["layout"]:
        return words
    return f"{words}: weights are stored for {_spoken(layout)}, what it returns is {_spoken(after['layout'])}"


def _no_rotation(found: dict, pairs: list, z_a: Tensor, z_b: Tensor, positions: Tensor, unknown: dict) -> dict:
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
    if _rounded(z):
        middle = float(f"{middle:.3g}")
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
    exponents = 2 * torch.tensor(numbers, dtype=torch.float64) / found["rotary_dim"]
    if (
        frozen
        and found["length"] is not None
        and len(speed) > 1
        and ((u[0] - 1j).abs().max() < 1e-3 or (u[0] + 1j).abs().max() < 1e-3)
    ):
        quarter = 1j * u[0, 0].imag.sign()
        z = z / quarter
        moving = ((z - z[0]).abs().amax(0) > NOISE).nonzero().flatten().tolist()
        if not moving:
            return result | {"direction": None}
        which = [numbers[pair] for pair in moving]
        if moving != list(range(len(speed))):
            found = found | {"scaling": standing_still(which, found["rotary_dim"] // 2)}
        read = _speeds(z[:, moving], positions, found, which, unknown, frozen)
        speed = torch.zeros_like(speed)
        speed[moving] = read["speeds"]
        exchanged = read["direction"] == -quarter.imag
        what = "cos and sin are exchanged" if exchanged else "every pair is turned by a quarter more"
        unknown["offset"] = what
        return read | {"offset": None, "speeds": speed}
    signs = speed[len(speed) // 2 :].sign().unique()
    result["direction"] = int(signs.item()) if len(signs) == 1 and signs.item() else None
    reason = ""
    if not frozen:
        reason = "R depends on more than the position"
    elif found["length"] is None:
        reason = "this is no plain rotation"
    elif result["direction"] is None:
        reason = (
            odd_pairs(speed, reach, exponents, _rounded(z))[0] or "some pairs turn one way round and some the other"
        )
    if result["direction"] is None:
        unknown["direction"] = reason if frozen else "some pairs turn one way round and some the other"
    if reason:
        unknown |= dict.fromkeys(("base", "scale", "offset", "precision"), reason)
        return result

    offset = _offset(u[0], speed, positions)
    offsets = [] if offset is None else list(dict.fromkeys([float(round(offset)), offset]))

    def explained() -> Iterator[tuple[Series, float, tuple]]:
        for series, offset in product(series_to_try(speed, reach, exponents), offsets):
            how = recipe(z, positions, series.speeds, offset, series.scale)
            if how is not None and series.measured:
                how = rounded_speeds(series, how)
            if how is not None:
                yield series, offset, how

    def nearly() -> Iterator[tuple[Series, float, tuple]]:
        """What was rounded more than once has no recipe."""
        for series, offset in product(series_to_try(speed, reach, exponents), offsets):
            theta = (positions.double() + offset)[:, None] * series.speeds
            if not series.measured and (z - torch.polar(torch.ones_like(theta), theta)).abs().max() < 0.012:
                yield series, offset, (None, 1.0, ["rounding more than once"])

    best = next(explained(), None)
    if best is None and _rounded(z) and not odd_pairs(speed, reach, exponents, True)[0]:
        best = next(nearly(), None)
    if best is None:
        return result | _unexplained(z, speed, exponents, reach, positions, found, numbers, unknown)
    series, offset, (precision, length, rivals) = best
    notes = (*found.get("notes", ()), *series.notes)
    if series.base is not None and series.base < 1:
        notes += ("its pairs get faster, not slower",)
    if series.base == 1:
        notes += ("all its pairs turn at one speed",)
    if abs(length - 1) < 2e-6 or abs(length - 1) < 3e-3 and precision not in EXACT:
        length = 1.0
    elif precision not in EXACT and abs(float(f"{length:.3g}") / length - 1) < 5e-5:
        length = float(f"{length:.3g}")
    if precision is None:
        same = f"these give the same up to here: {', or '.join(rivals)}"
        unknown["precision"] = same if rivals[1:] else f"its digits are lost by {rivals[0]}"
    if series.base is None:
        unknown["base"] = "there is one pair, and its speed does not depend on the base"
    return result | {
        "base": series.base,
        "scale": series.scale,
        "offset": int(offset) if offset == round(offset) else offset,
        "precision": precision,
        "speeds": series.speeds,
        "scaling": series.scaling or _still(found, numbers, series, positions),
        "length": length,
        "notes": notes,
    }


def _still(found: dict, numbers: list[int], series: Series, positions: Tensor) -> str:
    """Which pairs stand still, unless they would be seen to with these speeds: by whole turns, or by too slow ones."""
    if series.base is None:
        return found.get("scaling", "")
    pairs = found["rotary_dim"] // 2
    theirs = series.scale * series.base ** (-2 * torch.arange(pairs).double() / found["rotary_dim"])
    theta = positions[:, None].double() * theirs
    seen = (torch.polar(torch.ones_like(theta), theta) - 1).abs().amax(0) > 10 * NOISE
    return standing_still([i for i in range(pairs) if i in numbers or not seen[i]], pairs)


def _offset(start: Tensor, speed: Tensor, positions: Tensor) -> float | None:
    """The position that position 0 is turned as: from the slowest pair, then ever finer."""
    angle = start.angle()
    if angle.abs().max() < 1e-5:
        return 0.0
    if not speed.all():
        return None

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


def _rounded(z: Tensor) -> bool:
    """Whether all entries have the digits of half precision only."""
    parts = torch.view_as_real(z)
    return any(torch.equal(parts, parts.to(low).double()) for low in LOW.values())


def _unexplained(
    z: Tensor,
    speed: Tensor,
    exponents: Tensor,
    reach: Tensor,
    positions: Tensor,
    found: dict,
    numbers: list[int],
    unknown: dict[str, str],
) -> dict:
    """No set of round numbers gives these turns: say what is known all the same."""
    u = z / z.abs()
    odd, which = odd_pairs(speed, reach, exponents, _rounded(z))
    if odd:
        good = [pair for pair in range(len(speed)) if pair not in which]
        rest = _speeds(z[:, good], positions, found, [numbers[pair] for pair in good], {}, True)
        if rest["base"] is not None:
            unknown["base"] = odd
            if rest["precision"] is None:
                unknown["precision"] = "it takes the speeds to tell"
            return {name: rest[name] for name in ("scale", "offset", "precision", "length")}
        reason = odd
    elif next(series_to_try(speed, reach, exponents), None) is None:
        reason = "its speeds are not the powers of one base, nor those with their slow end divided"
    else:
        reason = "no base and scale give these turns at all positions"
    unknown |= dict.fromkeys(("base", "scale"), reason)
    result: dict = {}
    turned = torch.polar(torch.ones(len(positions), len(speed)).double(), positions[:, None] * speed)
    steady = (u - u[0] * turned).abs().max() < (0.02 if _rounded(z) else 1e-3)
    if steady and (u[0] - 1).abs().max() < 1e-5:
        result["offset"] = 0
    else:
        unknown["offset"] = "position 0 is turned" if steady else "the turns do not grow evenly with the position"
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
