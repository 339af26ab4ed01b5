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


def powers(parts: Parts, base: float | None = None) -> Tensor:
    pairs = parts.rotary_dim // 2
    return (base or parts.base) ** -(torch.arange(pairs, dtype=torch.float64) / pairs)


# ---- each mistake: (parts, draw) → (parts, words of the sentence)


def table(make: Callable, *rows: tuple | Callable) -> list[Callable]:
    """Mistakes, and those from rows (name, words, change, what is drawn from): `make` writes a change into the parts.

    The words are a function of what was drawn, or are formatted with it; the change gets it as its last argument.
    """

    def mistake(name, words, change, *choices):
        def made(parts, draw):
            drawn = [draw.choice(choices)] if choices else []
            said = words(*drawn) if callable(words) else words.format(*drawn, pairs=len(parts.speeds))
            made_of = (lambda *inputs: change(*inputs, *drawn)) if drawn else change
            return replace(parts, **make(parts, made_of)), [said]

        made.__name__ = name
        return made

    return [row if callable(row) else mistake(*row) for row in rows]


def scaled(speeds: Tensor, which, factor) -> Tensor:
    speeds = speeds.clone()
    speeds[which] *= factor
    return speeds


def exponents_of_the_whole_head(parts, draw):
    size = parts.head_dim // 4 * 2
    parts = replace(parts, rotary_dim=size)
    speeds = powers(parts) ** (size / parts.head_dim)
    return replace(parts, speeds=speeds), [f"the first {size} of {parts.head_dim}", "base 100,"]


def one_pair(parts, draw):
    pair = draw.randrange(2, len(parts.speeds) - 2)
    speeds = scaled(parts.speeds, pair, draw.choice([1.004, 0.99, 1.5, 2.0]))
    return replace(parts, speeds=speeds), [f"pair {pair} turns"]


def two_pairs_exchanged(parts, draw):
    first = draw.randrange(1, len(parts.speeds) // 2)
    second = first + draw.randrange(3, max(4, len(parts.speeds) // 3))
    speeds = parts.speeds.clone()
    speeds[[first, second]] = speeds[[second, first]]
    return replace(parts, speeds=speeds), [f"pairs {first} and {second} turn"]


def one_pair_backwards(parts, draw):
    pair = draw.randrange(1, len(parts.speeds))
    return replace(parts, speeds=scaled(parts.speeds, pair, -1)), [f"pair {pair} turns the other way round"]


def last_quarter_still(parts, draw):
    kept = len(parts.speeds) * 3 // 4
    words = f"those from {kept} on stand still"
    if parts.turn is by_stack:  # these are the head's last dimensions
        words = "the same as base 10,000 with the exponents of all"
    return replace(parts, speeds=scaled(parts.speeds, slice(kept, None), 0)), [words]


def folded(parts, draw):
    """Dimension i meets dimension d - 1 - i."""
    half = parts.rotary_dim // 2

    def turn(x, cos, sin):
        first, second = x[..., :half], x[..., half:].flip(-1)
        return torch.cat([first * cos - second * sin, (second * cos + first * sin).flip(-1)], -1)

    return replace(parts, turn=turn), [f"its pairs are ({parts.where}, {parts.where + parts.rotary_dim - 1})"]


def partly(parts, draw):
    size = parts.head_dim // draw.choice([2, 4]) // 2 * 2
    parts = replace(parts, rotary_dim=size)
    return replace(parts, speeds=powers(parts)), [f"the first {size} of {parts.head_dim} dimensions"]


def last_dimensions(parts, draw):
    size = parts.head_dim // 4 * 2
    parts = replace(parts, rotary_dim=size, where=parts.head_dim - size)
    return replace(parts, speeds=powers(parts)), [f"the last {size} of {parts.head_dim} dimensions"]


def first_row_alone_when_decoding(inner, x, p):
    turned = inner(x, p)
    return torch.cat([turned[:1], x[1:]]) if x.shape[2] == 1 else turned


SPEEDS = table(
    lambda parts, change: {"speeds": change(parts)},
    ("other_base", "base {:,.0f},", powers, 500.0, 20_000.0, 500_000.0, 1e6),
    ("half_exponents", "base 100,", lambda m: m.speeds**0.5),
    ("doubled_exponents", "base 100,000,000,", lambda m: m.speeds**2),
    ("last_pair_reaches_the_base", "the exponent i/(pairs − 1)", lambda m: m.speeds ** (1 + 1 / (len(m.speeds) - 1))),
    ("exponents_from_1", "its exponents start at 1/{pairs}", lambda m: m.speeds * powers(m)[1]),
    ("flipped", "its pairs get faster, not slower", lambda m: m.speeds.flip(0)),
    one_pair,
    two_pairs_exchanged,
    one_pair_backwards,
    (
        "slow_half_backwards",
        "turn the other way round",
        lambda m: scaled(m.speeds, slice(len(m.speeds) // 2, None), -1),
    ),
    ("first_pair_still", "0 stand still", lambda m: scaled(m.speeds, 0, 0)),
    last_quarter_still,
    ("degrees", "degrees", lambda m: m.speeds.deg2rad()),
    ("whole_turns", "positions × 2π", lambda m: m.speeds * 2 * torch.pi),
    ("low_speeds", "bfloat16 speeds", lambda m: m.speeds.bfloat16().double()),
    ("one_speed", "all its pairs turn at one speed", lambda m: torch.ones_like(m.speeds)),
    ("backwards", ", clockwise", lambda m: -m.speeds),
)
PLACES = table(
    lambda parts, change: {"places": lambda p: change(p).double()},
    ("wraps", "its positions start again at {}", lambda p, size: p % size, 256, 512, 100, 300),
    ("small_integers", "its positions start again at 256", lambda p: p.to(torch.uint8)),
    ("signed_bytes", "position 128 is turned as -128", lambda p: p.to(torch.int8)),
    ("clamped", "its positions stay at {}", lambda p, last: p.clamp(max=last), 255, 511, 700, 90),
    ("offset", lambda by: f"offset {'+' if by > 0 else '−'}{abs(by)}", lambda p, by: p + by, 1, -1, 2),
    ("divided", "positions ÷ {}", lambda p, by: p.double() / by, 2, 4, 8),
    ("low_positions", "bfloat16 positions", lambda p: p.bfloat16()),
    ("grouped", "position 1 is turned as 0", lambda p: p // 4),
    ("short_table", "IndexError from position {}", lambda p, rows: torch.arange(rows)[p], 256, 512, 400),
    (
        "switches",
        lambda at: f"position {at} is turned as {at // 4}",
        lambda p, at: torch.where(p < at, p, p / 4),  # beyond its first positions it is scaled
        *(256, 512),
    ),
)
TABLES = table(
    lambda parts, change: {"tables": change},
    ("exchanged_tables", "cos and sin are exchanged", lambda t: (t.sin(), t.cos())),
    ("low_tables", "bfloat16", lambda t: (t.cos().bfloat16().double(), t.sin().bfloat16().double())),
    ("longer", "length × {:g}", lambda t, by: (by * t.cos(), by * t.sin()), 1.25, 0.5, 1.1),
    ("sines_lost", "no dimension meets another one", lambda t: (t.cos(), 0 * t)),
    ("cosines_twice", "it depends on the position", lambda t: (t.cos(), t.cos())),
)
TURNS = table(
    lambda parts, change: {"turn": change},
    ("interleaved", "interleaved, ", by_stack),
    ("mixed_table", "half-split turn with an interleaved table", by_mixed_table),
    ("other_mixed_table", "interleaved turn with a half-split table", by_other_mixed_table),
    ("minus_lost", "both sines have the same sign", by_mirror),
    folded,
    ("reordered", "another order", lambda x, c, s: by_chunks(x, c, s).roll(x.shape[-1] // 2, -1)),
    partly,
    last_dimensions,
    exponents_of_the_whole_head,
)
AROUND = table(
    lambda parts, change: {"around": lambda inner: lambda x, p: change(inner, x, p)},
    ("deaf", "not on the positions given", lambda inner, x, p: inner(x, torch.arange(x.shape[-2]))),
    ("from_first", "depends on the other positions of the call", lambda inner, x, p: inner(x, p - p.min())),
    ("remembering", "depends on the calls before", lambda inner, x, p: inner(x, vars(inner).setdefault(len(p), p))),
    ("in_place", "changes its input in place", lambda inner, x, p: x.copy_(inner(x, p))),
    ("heads_reversed", "its heads come out in another order", lambda inner, x, p: inner(x, p).flip(1)),
    ("tokens_reversed", "its tokens come out in another order", lambda inner, x, p: inner(x, p).flip(2)),
    ("rows_reversed", "the rows of its batch come out in another order", lambda inner, x, p: inner(x, p).flip(0)),
    (
        "first_row_alone_when_decoding",
        "where T is 1 it depends on the row of the batch",
        first_row_alone_when_decoding,
    ),
    ("first_head_alone", "depends on the head", lambda inner, x, p: torch.cat([inner(x[:, :1], p), x[:, 1:]], 1)),
    (
        "first_token_left_out",
        "depends on the place in the sequence",
        lambda inner, x, p: torch.cat([x[:, :, :1], inner(x, p)[:, :, 1:]], 2),
    ),
    ("normed", "the content of x", lambda inner, x, p: inner(x / x.norm(dim=-1, keepdim=True).clamp(min=1e-6), p)),
    ("added_to", "the content of x", lambda inner, x, p: inner(x, p) + 0.1),
    ("twice", "positions × 2", lambda inner, x, p: inner(inner(x, p), p)),
)
PARTS = {"speeds": SPEEDS, "places": PLACES, "tables": TABLES, "turn": TURNS, "around": AROUND}
ORDER = ["turn", "speeds", "places", "tables", "around"]  # each is made of what stands before it
# What hides the rest: after these, the words of a second mistake cannot be asked for. The speeds of the last two are
# replaced by the other's; the scale of `flipped` is the first pair's.
HIDING = {
    *("sines_lost", "cosines_twice", "minus_lost", "mixed_table", "other_mixed_table", "deaf", "normed", "added_to"),
    *("remembering", "first_head_alone", "first_token_left_out", "from_first", "one_speed", "short_table"),
    *("exponents_of_the_whole_head", "flipped"),
}
HIDING = {mistake for part in PARTS.values() for mistake in part if mistake.__name__ in HIDING}
