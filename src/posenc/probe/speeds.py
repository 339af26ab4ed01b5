"""How the speeds of a rotation's pairs might be made, the roundest numbers first.

Speeds are radians a position, one for each pair; exponents are those of the base, 2i / rotary_dim for pair i.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product

import torch
from torch import Tensor

from posenc.probe.precision import EXACT, LOW
from posenc.stretching import llama3, yarn

SCALES = {"π/180 (degrees)": math.pi / 180, "2π": 2 * math.pi, "π": math.pi}
ONE = torch.tensor(1)
LENGTHS = [2**k for k in range(7, 23)]  # what models were trained on before their text was stretched


@dataclass(frozen=True)
class Series:
    """Speeds, and how they are made: scale · base^(-exponent), and what slows some pairs in words.

    `measured`: taken as they were read, since no round numbers give them.
    """

    speeds: Tensor
    base: float | None
    scale: float
    scaling: str = ""
    notes: tuple[str, ...] = ()
    measured: bool = False


def series_to_try(speed: Tensor, reach: Tensor, exponents: Tensor) -> Iterator[Series]:
    """What might have made these speeds.

    Args:
        speed: as measured, signed, shape (pairs,); all of one sign.
        reach: up to which position each pair was followed, shape (pairs,).
        exponents: shape (pairs,).
    """
    size, sign = speed.abs(), speed[-1].sign()
    if len(size) == 1:
        for scale in [*round_numbers(size.item(), 1e-2), size.item()]:
            yield Series(sign * torch.full_like(size, scale), None, scale)
        return
    if (size <= 0).any():
        return
    certain = (size * reach).clamp(max=1.0)  # of a logarithm of a speed: slow pairs are known less well
    for series in chain(_powers(size, exponents, certain), _scaled(size, exponents, certain)):
        yield replace(series, speeds=sign * series.speeds)


def _powers(size: Tensor, exponents: Tensor, certain: Tensor) -> Iterator[Series]:
    """Powers of one base."""
    logs, pairs = size.log(), len(size)
    for first in range(max(1, pairs - 2)):  # a first pair may turn by more than half a turn a position
        log_scale, log_base, off = _line(exponents[first:], logs[first:], certain[first:])
        if off < 8e-3:
            break
    else:
        return
    whole = (log_scale - exponents * log_base).exp()
    if first:
        turned = torch.polar(torch.ones(first, dtype=torch.float64), (size - whole)[:first])
        back = torch.polar(torch.ones(first, dtype=torch.float64), (-size - whole)[:first])
        if min((turned - 1).abs().max(), (back - 1).abs().max()) > 0.05 or whole[:first].min() < 2.5:
            return
    base, scale = math.exp(log_base), math.exp(log_scale)
    scales = [*round_numbers(scale, 2.5e-2), *SCALES.values()]
    scales = [number for number in scales if abs(number / scale - 1) < 2.5e-2]
    bases = [(number, ()) for number in round_numbers(base, 5e-2, inverses=False)]
    for number in round_numbers(base ** ((pairs - 1) / pairs), 1e-4, inverses=False)[:1]:
        note = f"this is base {spoken_number(number)} with the exponent i/(pairs − 1), so that the last pair reaches it"
        bases.append((number ** (pairs / (pairs - 1)), (note,)))
    bases.append((base, ()))
    for number in scales:
        for root, notes in bases:
            yield Series(number * root**-exponents, root, number, "", notes)
    if base < 1:  # then the last pair is the fastest
        for number in round_numbers(whole[-1].item(), 2.5e-2):
            for root in round_numbers(1 / base, 5e-2, inverses=False):
                speeds = number * root ** (exponents - exponents[-1])
                yield Series(speeds, 1 / root, speeds[0].item())
    for root in round_numbers(base, 5e-2, inverses=False):
        if abs(scale * root ** exponents[1].item() / root ** exponents[0].item() - 1) < 1e-3 and pairs > 2:
            note = f"its exponents start at 1/{round(2 / (2 * exponents[1].item()))}"
            yield Series(root ** -(exponents + exponents[1]), root, root ** -exponents[1].item(), "", (note,))
    yield Series(whole, base, scale)
    if off > 1e-5:
        note = "its base is known to three digits only"
        yield Series(size, float(f"{base:.3g}"), rounded(scale, 1e-2), "", (note,), measured=True)


def odd_pairs(speed: Tensor, reach: Tensor, exponents: Tensor, rounded_results: bool) -> tuple[str, list[int]]:
    """Which few pairs do not turn as one base has the others turn, in words; "" where there is no such base."""
    size, pairs = speed.abs().clamp(min=1e-12), len(speed)
    if pairs < 8:
        return "", []
    certain = 1.0 if rounded_results else (size * reach).clamp(max=1.0)  # a small sine keeps its digits
    tolerance = 3e-3 if rounded_results else 3e-5
    logs = size.log()
    far = (exponents - exponents[:, None]) >= exponents[pairs // 4] - exponents[0]
    log_base = -((logs - logs[:, None]) / (exponents - exponents[:, None]))[far].median().item()
    if log_base <= 0 or log_base > 40:
        return "", []
    readings = []
    for base in _numbers(math.exp(log_base), 5e-2):
        scale = rounded((logs + exponents * math.log(base)).median().exp().item(), 2.5e-2)
        expected = scale * base**-exponents
        sign = torch.ones_like(speed) * speed.sign().median()
        ratio = speed / (sign * expected)
        off = (ratio.abs().clamp(min=1e-9).log().abs() * certain > tolerance) | (ratio <= 0)
        off &= expected < 2.5  # a faster one may have come round
        readings.append((int(off.sum()), base, off.nonzero().flatten().tolist(), ratio))
    count, base, off, ratio = min(readings, key=lambda reading: reading[0])
    if not off:
        return "", []
    backwards = [pair for pair in off if abs(ratio[pair].item() + 1) < 5e-3]
    ends = {tuple(range(off[0], pairs)): f"from {off[0]} on", tuple(range(off[-1] + 1)): f"up to {off[-1]}"}
    if backwards == off and (tuple(off) in ends and count > 2):
        return f"pairs {ends[tuple(off)]} turn the other way round", off
    if count > max(2, pairs // 16):
        return "", []
    which = " and ".join([", ".join(map(str, off[:-1])), str(off[-1])] if off[1:] else map(str, off))
    verb = f"pairs {which} turn" if off[1:] else f"pair {which} turns"
    if backwards == off:
        return f"{verb} the other way round", off
    times = " and ".join(f"{ratio[pair].item():.4g}" for pair in off)
    return f"{verb} {times} times as fast as base {spoken_number(rounded(base, 1e-3))} has it", off


def _scaled(size: Tensor, exponents: Tensor, certain: Tensor) -> Iterator[Series]:
    """The fast pairs untouched, the slow ones divided, a ramp between: llama3 and YaRN."""
    logs, pairs = size.log(), len(size)
    if exponents[0] > 0:
        return
    for tolerance, near in ((3e-6, 1e-4), (8e-3, 2e-2)):
        for untouched in range(pairs - 2, 2, -1):
            log_scale, log_base, off = _line(exponents[:untouched], logs[:untouched], certain[:untouched])
            if off < tolerance:
                break
        else:
            continue
        if log_base <= 0:
            return
        scale, base = rounded(math.exp(log_scale), near), math.exp(log_base)
        slowed = size / (log_scale - exponents * log_base).exp()
        if not 0 < slowed[-1] < 0.98:
            continue
        for base, factor in product(_numbers(base, near), _numbers(1 / slowed[-1].item(), near)):  # noqa: B020
            for speeds, words in _usual(scale, base, factor, exponents, size):
                if ((speeds / size).log().abs() * certain < 3 * tolerance).all():
                    yield Series(speeds, base, scale, words)
        ramp = _ramp(size, slowed, untouched, tolerance)
        if ramp:
            yield Series(size, rounded(math.exp(log_base), near), scale, *ramp, measured=True)


def _usual(scale: float, base: float, factor: float, exponents: Tensor, size: Tensor) -> Iterator[tuple[Tensor, str]]:
    """Speeds by both methods as models use them, for the usual lengths and for those that were read off."""
    if factor <= 1 or base <= 1:
        return
    rotary_dim = round(2 / exponents[1].item())
    plain = scale * base**-exponents
    kept = (size / plain - 1 / factor) / (1 - 1 / factor)
    middle = (kept - 0.5).abs().argmin()  # of the ramp
    by_turns = (3 * kept[middle] + 1) * 2 * math.pi / plain[middle] * scale
    width = rotary_dim * math.log(32) / (2 * math.log(base))  # of YaRN's ramp, in pairs
    start = middle - (1 - kept[middle]) * width
    by_pairs = 64 * math.pi * base ** (2 * start.item() / rotary_dim)
    for name, method, lengths in (
        ("llama3", llama3, _numbers(by_turns.item(), 1e-2)),
        ("YaRN", yarn, []),
        ("YaRN", partial(yarn, truncate=False), _numbers(by_pairs, 1e-2)),
    ):
        for length in [*LENGTHS, *lengths]:
            speeds = method(ONE, rotary_dim, scale=factor, trained_length=length, base=base)
            yield scale * speeds[: len(size)], scaling_words(name, factor, length)


def _ramp(size: Tensor, slowed: Tensor, untouched: int, tolerance: float) -> tuple[str, tuple[str, ...]] | None:
    """A ramp that is no model's, in words, with a note; None where there is none."""
    pairs, last = len(size), slowed[-1].item()
    divided = 0
    while divided < pairs and abs(slowed[pairs - 1 - divided].item() / last - 1) < max(tolerance, 1e-4) * 2:
        divided += 1
    end = pairs - divided
    middle = slowed[untouched:end]
    falling = (middle.diff() < 1e-3).all() and ((middle < 1.001) & (middle > 0.999 * last)).all()
    if divided < 2 or not falling:
        return None
    kinds, limit = [], 2e-4 if tolerance < 1e-4 else 1e-2
    if len(middle) >= 3:
        kept = (middle - last) / (1 - last)
        along = {"llama3": size[untouched:end] / middle, "YaRN": torch.arange(untouched, end).double()}
        kinds = [name for name, by in along.items() if _line(by, kept, torch.ones_like(kept))[2] < limit]
    name, notes = "", ("its ramp is too short to tell llama3 from YaRN",)
    if len(kinds) == 1:
        name, notes = kinds[0], ()
    factor = rounded(1 / last, 2e-3 if tolerance > 1e-4 else 1e-5)
    return scaling_words(name, factor, ramp=(untouched, end)), notes


def scaling_words(name: str, factor: float, length: float | None = None, *, ramp: tuple[int, int] | None = None) -> str:
    """How a method that slows only some of the pairs is said."""
    named = f"{name} scaling" if name else "scaling of unknown kind"
    words = f"{named} by {spoken_number(factor)}"
    if length is not None:
        words += f" from {spoken_number(length)} positions"
    if ramp is not None:
        words += f", its ramp from pair {ramp[0]} to {ramp[1]}"
    return words


def standing_still(moving: list[int], pairs: int) -> str:
    """Which pairs are never turned, in words; "" for none."""
    still = sorted({*range(pairs)} - {*moving})
    if still and still == list(range(still[0], pairs)):
        return f"of its {pairs} pairs, those from {still[0]} on stand still"
    if not still:
        return ""
    return f"of its {pairs} pairs, {', '.join(map(str, still[:6]))}{', …' if still[6:] else ''} stand still"


def _line(x: Tensor, y: Tensor, certain: Tensor) -> tuple[float, float, float]:
    """Weighted fit of y = a - b·x: a, b, and the largest miss, in units that let badly known points miss more."""
    weight = certain**2
    total = weight.sum()
    mx, my = (weight * x).sum() / total, (weight * y).sum() / total
    spread = (weight * (x - mx) ** 2).sum()
    slope = -((weight * (x - mx) * (y - my)).sum() / spread).item() if spread > 0 else 0.0
    start = (my + slope * mx).item()
    off = ((y - start + slope * x).abs() * certain).max().item()
    return start, slope, off


def rounded_speeds(series: Series, recipe: tuple) -> tuple | None:
    """What speeds that were measured, not made from a base, say about their digits."""
    precision, length, rivals = recipe
    for name, low in LOW.items():
        if (series.speeds.to(low).double() / series.speeds - 1).abs().max() < 2e-6:
            rest = "" if precision in EXACT else f" and {precision}"
            return f"{name} speeds{rest}", length, rivals
    return recipe if series.scaling else None


def round_numbers(value: float, near: float, *, inverses: bool = True) -> list[float]:
    """Round numbers, and inverses of round numbers, within a relative distance, the roundest first."""
    found = []
    for digits in range(1, 5):
        numbers = [float(f"{value:.{digits - 1}e}")]
        if inverses:
            numbers.append(1 / float(f"{1 / value:.{digits - 1}e}"))
        found += [n for n in numbers if abs(n / value - 1) <= near and n not in found]
    return found


def _numbers(value: float, near: float) -> list[float]:
    return [*round_numbers(value, near, inverses=False), value]


def rounded(value: float, near: float) -> float:
    """The roundest number within a relative distance, or the value itself."""
    return next(iter(round_numbers(value, near)), value)


def spoken_number(value: float) -> str:
    """10,000 or 0.25 or 1.2079."""
    if abs(value - round(value)) < 1e-9 * max(1.0, abs(value)) and abs(value) < 1e15:
        return f"{round(value):,}"
    return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
