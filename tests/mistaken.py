"""Rotations with one or two mistakes, as ports have them, each with the words by which it is to be named.

Built from parts that a port has: speeds, positions, tables, the turn itself, and the call around it. Two mistakes are
of different parts. None is made with the course's own `rotate`, nor with a `Convention`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from rotations import by_chunks, by_mirror, by_mixed_table, by_other_mixed_table, by_stack
from torch import Tensor


@dataclass
class Parts:
    head_dim: int
    rotary_dim: int
    base: float
    turn: Callable = by_chunks
    speeds: Tensor = field(default=None)
    places: Callable = lambda positions: positions.double()
    tables: Callable = lambda theta: (theta.cos(), theta.sin())
    around: Callable = lambda inner: inner
    where: int = 0

    def rotate(self) -> Callable:
        def inner(x, positions):
            cos, sin = self.tables(self.places(positions)[:, None] * self.speeds)
            before, part, after = x.split(
                [self.where, self.rotary_dim, self.head_dim - self.rotary_dim - self.where], dim=-1
            )
            return torch.cat([before, self.turn(part, cos.to(x.dtype), sin.to(x.dtype)), after], dim=-1)

        return self.around(inner)


def usual(head_dim: int, *, base: float = 10_000.0, rotary_dim: int | None = None) -> Parts:
    parts = Parts(head_dim, rotary_dim or head_dim, base)
    return replace(parts, speeds=powers(parts))


def powers(parts: Parts, exponent: Callable = lambda i, pairs: i / pairs) -> Tensor:
    pairs = parts.rotary_dim // 2
    return parts.base ** -exponent(torch.arange(pairs, dtype=torch.float64), pairs)


# ---- each mistake: (parts, draw) → (parts, words of the sentence)


def other_base(parts, draw):
    base = draw.choice([500.0, 20_000.0, 500_000.0, 1e6])
    return replace(parts, speeds=powers(replace(parts, base=base))), [f"base {base:,.0f},"]


def half_exponents(parts, draw):
    return replace(parts, speeds=powers(parts, lambda i, n: i / (2 * n))), ["base 100,"]


def doubled_exponents(parts, draw):
    return replace(parts, speeds=powers(parts, lambda i, n: 2 * i / n)), ["base 100,000,000,"]


def last_pair_reaches_the_base(parts, draw):
    return replace(parts, speeds=powers(parts, lambda i, n: i / (n - 1))), ["the exponent i/(pairs − 1)"]


def exponents_from_1(parts, draw):
    pairs = parts.rotary_dim // 2
    return replace(parts, speeds=powers(parts, lambda i, n: (i + 1) / n)), [f"its exponents start at 1/{pairs}"]


def exponents_of_the_whole_head(parts, draw):
    size = parts.head_dim // 4 * 2
    parts = replace(parts, rotary_dim=size)
    speeds = powers(parts, lambda i, n: 2 * i / parts.head_dim)
    return replace(parts, speeds=speeds), [f"the first {size} of {parts.head_dim}", "base 100,"]


def flipped(parts, draw):
    return replace(parts, speeds=parts.speeds.flip(0)), ["its pairs get faster, not slower"]


def one_pair(parts, draw):
    pair = draw.randrange(2, len(parts.speeds) - 2)
    speeds = parts.speeds.clone()
    speeds[pair] *= draw.choice([1.004, 0.99, 1.5, 2.0])
    return replace(parts, speeds=speeds), [f"pair {pair} turns"]


def two_pairs_exchanged(parts, draw):
    first = draw.randrange(1, len(parts.speeds) // 2)
    second = first + draw.randrange(3, len(parts.speeds) // 3)
    speeds = parts.speeds.clone()
    speeds[[first, second]] = speeds[[second, first]]
    return replace(parts, speeds=speeds), [f"pairs {first} and {second} turn"]


def one_pair_backwards(parts, draw):
    pair = draw.randrange(1, len(parts.speeds))
    speeds = parts.speeds.clone()
    speeds[pair] *= -1
    return replace(parts, speeds=speeds), [f"pair {pair} turns the other way round"]


def slow_half_backwards(parts, draw):
    half = len(parts.speeds) // 2
    sign = torch.ones(len(parts.speeds)).double()
    sign[half:] = -1
    return replace(parts, speeds=parts.speeds * sign), ["turn the other way round"]


def first_pair_still(parts, draw):
    speeds = parts.speeds.clone()
    speeds[0] = 0
    return replace(parts, speeds=speeds), ["0 stand still"]


def last_quarter_still(parts, draw):
    kept = len(parts.speeds) * 3 // 4
    speeds = parts.speeds.clone()
    speeds[kept:] = 0
    words = f"those from {kept} on stand still"
    if parts.turn is by_stack:  # these are the head's last dimensions
        words = "the same as base 10,000 with the exponents of all"
    return replace(parts, speeds=speeds), [words]


def degrees(parts, draw):
    return replace(parts, speeds=parts.speeds * torch.pi / 180), ["degrees"]


def whole_turns(parts, draw):
    return replace(parts, speeds=parts.speeds * 2 * torch.pi), ["positions × 2π"]


def low_speeds(parts, draw):
    return replace(parts, speeds=parts.speeds.bfloat16().double()), ["bfloat16 speeds"]


def one_speed(parts, draw):
    return replace(parts, speeds=torch.ones_like(parts.speeds)), ["all its pairs turn at one speed"]


def backwards(parts, draw):
    return replace(parts, speeds=-parts.speeds), [", clockwise"]


def wraps(parts, draw):
    size = draw.choice([256, 512, 100, 300])
    return replace(parts, places=lambda p: (p % size).double()), [f"its positions start again at {size}"]


def small_integers(parts, draw):
    return replace(parts, places=lambda p: p.to(torch.uint8).double()), ["its positions start again at 256"]


def signed_bytes(parts, draw):
    return replace(parts, places=lambda p: p.to(torch.int8).double()), ["position 128 is turned as -128"]


def clamped(parts, draw):
    last = draw.choice([255, 511, 700, 90])
    return replace(parts, places=lambda p: p.clamp(max=last).double()), [f"its positions stay at {last}"]


def offset(parts, draw):
    by = draw.choice([1, -1, 2])
    return replace(parts, places=lambda p: (p + by).double()), [f"offset {'+' if by > 0 else '−'}{abs(by)}"]


def divided(parts, draw):
    by = draw.choice([2, 4, 8])
    return replace(parts, places=lambda p: p.double() / by), [f"positions ÷ {by}"]


def low_positions(parts, draw):
    return replace(parts, places=lambda p: p.bfloat16().double()), ["bfloat16 positions"]


def grouped(parts, draw):
    return replace(parts, places=lambda p: (p // 4).double()), ["position 1 is turned as 0"]


def short_table(parts, draw):
    rows = draw.choice([256, 512, 400])
    table = torch.arange(rows).double()
    return replace(parts, places=lambda p: table[p]), [f"IndexError from position {rows}"]


def switches(parts, draw):
    """Beyond its first positions it is scaled."""
    at = draw.choice([256, 512])
    return replace(parts, places=lambda p: torch.where(p < at, p, p / 4)), [f"position {at} is turned as {at // 4}"]


def exchanged_tables(parts, draw):
    return replace(parts, tables=lambda theta: (theta.sin(), theta.cos())), ["cos and sin are exchanged"]


def low_tables(parts, draw):
    return replace(parts, tables=lambda t: (t.cos().bfloat16().double(), t.sin().bfloat16().double())), ["bfloat16"]


def longer(parts, draw):
    by = draw.choice([1.25, 0.5, 1.1])
    return replace(parts, tables=lambda t: (by * t.cos(), by * t.sin())), [f"length × {by:g}"]


def sines_lost(parts, draw):
    return replace(parts, tables=lambda t: (t.cos(), 0 * t)), ["no dimension meets another one"]


def cosines_twice(parts, draw):
    return replace(parts, tables=lambda t: (t.cos(), t.cos())), ["it depends on the position"]


def interleaved(parts, draw):
    return replace(parts, turn=by_stack), ["interleaved, "]


def mixed_table(parts, draw):
    return replace(parts, turn=by_mixed_table), ["half-split turn with an interleaved table"]


def other_mixed_table(parts, draw):
    return replace(parts, turn=by_other_mixed_table), ["interleaved turn with a half-split table"]


def minus_lost(parts, draw):
    return replace(parts, turn=by_mirror), ["both sines have the same sign"]


def folded(parts, draw):
    """Dimension i meets dimension d - 1 - i."""
    half = parts.rotary_dim // 2

    def turn(x, cos, sin):
        first, second = x[..., :half], x[..., half:].flip(-1)
        return torch.cat([first * cos - second * sin, (second * cos + first * sin).flip(-1)], -1)

    return replace(parts, turn=turn), [f"its pairs are ({parts.where}, {parts.where + parts.rotary_dim - 1})"]


def reordered(parts, draw):
    half = parts.rotary_dim // 2
    return replace(parts, turn=lambda x, c, s: by_chunks(x, c, s).roll(half, -1)), ["another order"]


def partly(parts, draw):
    size = parts.head_dim // draw.choice([2, 4]) // 2 * 2
    parts = replace(parts, rotary_dim=size)
    return replace(parts, speeds=powers(parts)), [f"the first {size} of {parts.head_dim} dimensions"]


def last_dimensions(parts, draw):
    size = parts.head_dim // 4 * 2
    parts = replace(parts, rotary_dim=size, where=parts.head_dim - size)
    return replace(parts, speeds=powers(parts)), [f"the last {size} of {parts.head_dim} dimensions"]


def around(words, shapes_of_output=None):
    def mark(wrap):
        def mistake(parts, draw):
            return replace(parts, around=wrap), [words]

        mistake.__name__ = wrap.__name__
        return mistake

    return mark


@around("not on the positions given")
def deaf(inner):
    return lambda x, p: inner(x, torch.arange(x.shape[-2]))


@around("depends on the other positions of the call")
def from_first(inner):
    return lambda x, p: inner(x, p - p.min())


@around("depends on the calls before")
def remembering(inner):
    kept = {}
    return lambda x, p: inner(x, kept.setdefault(len(p), p))


@around("changes its input in place")
def in_place(inner):
    return lambda x, p: x.copy_(inner(x, p))


@around("its heads come out in another order")
def heads_reversed(inner):
    return lambda x, p: inner(x, p).flip(1)


@around("its tokens come out in another order")
def tokens_reversed(inner):
    return lambda x, p: inner(x, p).flip(2)


@around("the rows of its batch come out in another order")
def rows_reversed(inner):
    return lambda x, p: inner(x, p).flip(0)


@around("where T is 1 it depends on the row of the batch")
def first_row_alone_when_decoding(inner):
    def rotate(x, p):
        turned = inner(x, p)
        return torch.cat([turned[:1], x[1:]]) if x.shape[2] == 1 else turned

    return rotate


@around("depends on the head")
def first_head_alone(inner):
    return lambda x, p: torch.cat([inner(x[:, :1], p), x[:, 1:]], 1)


@around("depends on the place in the sequence")
def first_token_left_out(inner):
    return lambda x, p: torch.cat([x[:, :, :1], inner(x, p)[:, :, 1:]], 2)


@around("the content of x")
def normed(inner):
    return lambda x, p: inner(x / x.norm(dim=-1, keepdim=True).clamp(min=1e-6), p)


@around("the content of x")
def added_to(inner):
    return lambda x, p: inner(x, p) + 0.1


@around("positions × 2")
def twice(inner):
    return lambda x, p: inner(inner(x, p), p)


PARTS = {
    "speeds": [
        other_base,
        half_exponents,
        doubled_exponents,
        last_pair_reaches_the_base,
        exponents_from_1,
        flipped,
        one_pair,
        two_pairs_exchanged,
        one_pair_backwards,
        slow_half_backwards,
        first_pair_still,
        last_quarter_still,
        degrees,
        whole_turns,
        low_speeds,
        one_speed,
        backwards,
    ],
    "places": [
        wraps,
        small_integers,
        signed_bytes,
        clamped,
        offset,
        divided,
        low_positions,
        grouped,
        short_table,
        switches,
    ],
    "tables": [exchanged_tables, low_tables, longer, sines_lost, cosines_twice],
    "turn": [
        interleaved,
        mixed_table,
        other_mixed_table,
        minus_lost,
        folded,
        reordered,
        partly,
        last_dimensions,
        exponents_of_the_whole_head,
    ],
    "around": [
        deaf,
        from_first,
        remembering,
        in_place,
        heads_reversed,
        tokens_reversed,
        rows_reversed,
        first_row_alone_when_decoding,
        first_head_alone,
        first_token_left_out,
        normed,
        added_to,
        twice,
    ],
}
ORDER = ["turn", "speeds", "places", "tables", "around"]  # each is made of what stands before it
# what hides the rest: after these, the words of a second mistake cannot be asked for
HIDING = {sines_lost, cosines_twice, minus_lost, mixed_table, other_mixed_table, deaf, normed, added_to, remembering}
HIDING |= {first_head_alone, first_token_left_out, from_first, one_speed, short_table}
HIDING |= {exponents_of_the_whole_head, flipped}  # the other's speeds replace its own; its scale is the first pair's
