"""Chapter 4's checks: every mistake is planted and must be called by its name."""

import math
from functools import partial

import torch

from posenc.rotary import angles, rotate, to_half_split, to_interleaved

# --- 4.1 turn


def right_turn(v, angle, *, rows=lambda c, s: ((c, -s), (s, c))):
    return torch.tensor(rows(math.cos(angle), math.sin(angle)), dtype=v.dtype) @ v


def turn_with(rows):
    return partial(right_turn, rows=rows)


# --- 4.2 rotary


def right_rotary(x, p, base, *, sign=1, exponent=2, start=0, units=1.0, layout="interleaved", dtype=torch.float64):
    d = x.shape[-1]
    speed = base ** (-exponent * torch.arange(d // 2, dtype=dtype) / d)
    theta = sign * units * (p + start)[:, None].to(dtype) * speed
    return rotate(x, theta.double(), layout=layout)


def rotary_with(**options):
    return partial(right_rotary, **options)


def by_hand(x, p, base, *, first_sign=-1, order=1):
    theta = p[:, None] * base ** (-torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1])
    a, b = x[..., 0::2], x[..., 1::2]
    pair = [a * theta.cos() + first_sign * b * theta.sin(), a * theta.sin() + b * theta.cos()]
    return torch.stack(pair[::order], dim=-1).flatten(-2)


def ignores_positions(x, p, base):
    return right_rotary(x, torch.arange(len(p)), base)


def heads_for_tokens(x, p, base):
    return right_rotary(x.transpose(0, 1), p, base).transpose(0, 1)


def adds(x, p, base):
    theta = p[:, None] * base ** (-torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1])
    return x + torch.stack([theta.cos(), theta.sin()], dim=-1).flatten(-2)


def other_angle(x, p, base):
    return right_rotary(x, 2 * p, base)


# --- 4.3 look_back


def right_look_back(back, d, *, size=20.0, sign=1):
    key = size * torch.ones(d, dtype=torch.float64)
    return torch.stack([rotate(key, angles(torch.tensor(-sign * back), d)), key])


def turns_the_key(back, d):
    query = 20 * torch.ones(d, dtype=torch.float64)
    return torch.stack([query, rotate(query, angles(torch.tensor(back), d))])


def one_angle_for_all(back, d):
    key = 20 * torch.ones(d, dtype=torch.float64)
    return torch.stack([rotate(key, torch.full((d // 2,), -float(back), dtype=torch.float64)), key])


# --- 4.4 break_decay


def in_one_pair(d, *, steps=64, sign=-1, pair=None):
    """k = sign · q in the fastest pair that makes less than half a turn in so many steps."""
    pair = int((steps * angles(torch.tensor(1), d) >= math.pi).sum()) if pair is None else pair
    query = torch.zeros(d, dtype=torch.float64)
    query[2 * pair + 1] = 1
    return torch.stack([query, sign * query])


def leaning(d, *, sign):
    """The key a quarter of a turn aside, so that the score is a sine of the distance."""
    query, key = in_one_pair(d, steps=128)
    return torch.stack([query, sign * key.unflatten(0, (-1, 2)).flip(1).flatten()])


def in_two_pairs(d):
    """Most of the score in the fastest pair that is slow enough, a fifth in the next."""
    query = sum(share**0.5 * in_one_pair(d)[0].roll(2 * step) for step, share in enumerate((0.8, 0.2)))
    return torch.stack([query, -query])


def in_all_pairs(d, *, sign=-1):
    query = torch.full((d,), d**-0.5, dtype=torch.float64)
    return torch.stack([query, sign * query])


# --- 4.7 cached_position


def turns(key, length, *, start=0):
    return rotate(key.expand(length, -1), angles(torch.arange(start, start + length), len(key)))


def right_position(key, cached, length):
    return (turns(key, length) - cached).norm(dim=-1).argmin()


def first_close(key, cached, length):
    close = torch.isclose(turns(key, length), cached, atol=1e-6).all(dim=-1)
    return close.nonzero()[0].item() if close.any() else 0


def by_pair(key, cached, length, *, pair):
    a, b = (torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())[pair] for x in (cached, key))
    theta = ((a / b).angle() + 1e-9) % (2 * math.pi)
    return round((theta / angles(torch.tensor(1), len(key))[pair]).item())


# --- 4.5 half_split_weight


def seconds_first(weight, head_dim):
    return weight.unflatten(0, (-1, head_dim // 2, 2)).transpose(1, 2).flip(1).flatten(0, 2)


# --- 4.6 move_keys


def right_move(cached, dropped, *, layout="interleaved"):
    return rotate(cached, -angles(torch.tensor([dropped]), cached.shape[-1]), layout=layout)


def turned_again(cached, dropped, *, start=0, sign=1):
    return rotate(cached, sign * angles(start + torch.arange(cached.shape[-2]), cached.shape[-1]))


# --- 4.8 tables


def right_tables(length, d, dtype, *, position=None, speed=None, angle=None, flip=False, scale=1.0):
    p = torch.arange(length).to(position or torch.int64)
    f = 10_000 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    f = f.to(speed or torch.float64)
    theta = (p[:, None] * f).to(angle or torch.float64) if position and speed else p.double()[:, None] * f.double()
    theta = scale * theta.to(angle or torch.float64).double()
    rows = [theta.cos(), theta.sin()]
    return torch.stack(rows[::-1] if flip else rows).to(dtype)


def low(*names, only=None):
    """The table with these parts in the model's dtype; `only` for one dtype, right for the others."""
    return lambda length, d, dtype: right_tables(
        length, d, dtype, **(dict.fromkeys(names, dtype) if only in (None, dtype) else {})
    )


def first_turned_twice(x, positions, base):
    first, second = right_rotary(x, positions, base)[..., 0::2], x[..., 1::2]
    theta = angles(positions, x.shape[-1], base=base)
    return torch.stack([first, first * theta.sin() + second * theta.cos()], dim=-1).flatten(-2)


PLANTED = [
    ("turn", lambda v, a: right_turn(v, -a), "wrong way round: you turned by -angle"),
    ("turn", lambda v, a: right_turn(v, math.radians(a)), "taken for degrees"),
    ("turn", turn_with(lambda c, s: ((s, c), (c, -s))), "have changed places"),
    ("turn", turn_with(lambda c, s: ((c, s), (s, -c))), "it mirrors the vector"),
    ("turn", turn_with(lambda c, s: ((-c, s), (-s, -c))), "it mirrors the vector"),
    ("turn", lambda v, a: v[0] * torch.tensor([math.cos(a), math.sin(a)]).double(), "the second number is lost"),
    ("turn", turn_with(lambda c, s: ((c, s), (s, c))), "one of the two sines needs a minus"),
    ("turn", turn_with(lambda c, s: ((c, -s), (c * s, c - s * s))), "the first number after its turn"),
    ("turn", lambda v, a: v + 2 * a, "the length went from 5.00 to 5.39, and a turn keeps it"),
    ("turn", turn_with(lambda c, s: torch.tensor([[c, -s], [s, c]]).tolist()), "right to six digits"),
    ("turn", lambda v, a: right_turn(v, 2 * a), "by 1.0 radians is not"),
    ("rotary", rotary_with(sign=-1), "it turns clockwise"),
    ("rotary", rotary_with(units=math.pi / 180), "in degrees"),
    ("rotary", rotary_with(units=2 * math.pi), "a factor 2π too much"),
    ("rotary", rotary_with(exponent=1), "the exponent is wrong: i/d"),
    ("rotary", rotary_with(exponent=4), "the exponent is wrong: 4i/d"),
    ("rotary", rotary_with(exponent=16 / 6), "the exponent is wrong: i/(d/2 - 1)"),
    ("rotary", rotary_with(exponent=-2), "the exponent has the wrong sign"),
    ("rotary", lambda x, p, b: rotate(x, p.double()[:, None].expand(-1, x.shape[-1] // 2)), "at the speed of pair 0"),
    ("rotary", rotary_with(layout="half_split"), "the other layout"),
    ("rotary", rotary_with(start=1), "the next position"),
    ("rotary", ignores_positions, "whatever the positions are"),
    ("rotary", heads_for_tokens, "along the first axis, the heads"),
    ("rotary", adds, "it adds cosines and sines"),
    ("rotary", lambda x, p, b: right_rotary(x, p, 10_000.0), "the base is not used"),
    ("rotary", rotary_with(start=2), "the token at position 0 has changed, where the angle is 0: at [0, 0]"),
    ("rotary", partial(by_hand, first_sign=1), "the lengths have changed"),
    ("rotary", other_angle, "pair 0 at position 3 and base 10000 turns by"),
    ("rotary", lambda *a: right_rotary(*a).unflatten(-1, (-1, 2)).mT.flatten(-2), "right numbers, wrong places"),
    ("rotary", first_turned_twice, "the seconds are turned with firsts that have been turned"),
    ("rotary", lambda *a: right_rotary(*a).float().double(), "right to six digits"),
    ("rotary", rotary_with(dtype=torch.float32), "wrong at position 1,000,000"),
    ("rotary", rotary_with(dtype=torch.bfloat16), "and p·base^(-2i/d) is"),
    ("look_back", partial(right_look_back, sign=-1), "it looks 3 ahead"),
    ("look_back", partial(right_look_back, size=1.0), "with a weight of"),
    ("look_back", partial(right_look_back, sign=0), "it looks at the token itself"),
    ("look_back", lambda back, d: torch.zeros(2, d).double(), "it looks at position 0"),
    ("look_back", one_angle_for_all, "positions back, not 3: the turn of every pair"),
    ("break_decay", lambda d: 2 * in_one_pair(d), "have the lengths 2 and 2"),
    ("break_decay", lambda d: torch.zeros(2, d).double(), "have the lengths 0 and 0"),
    ("break_decay", partial(in_one_pair, pair=-1), "with d = 64 it rises all the way, but by 3.64e-05 only"),
    ("break_decay", lambda d: torch.eye(d).double()[[0, -1]], "the same at every distance"),
    ("break_decay", partial(leaning, sign=-1), "it rises with n - m, towards keys that stand ahead"),
    ("break_decay", partial(in_one_pair, sign=1), "it falls with every step, from 1.00 to -0.90"),
    ("break_decay", partial(in_one_pair, steps=32), "it rises up to distance 42 and falls from there"),
    ("break_decay", in_all_pairs, "it goes from -1.00 to -0.43, but falls from distance 5 to 6"),
    ("break_decay", partial(in_one_pair, pair=0), "but falls from distance 3 to 4"),
    ("move_keys", lambda cached, dropped: cached.clone(), "the keys are unchanged"),
    ("move_keys", lambda cached, dropped: right_move(cached, -dropped), "turned 1 further"),
    ("move_keys", partial(right_move, layout="half_split"), "the other layout"),
    ("move_keys", lambda c, n: turned_again(c, n, start=n, sign=-1), "every turn is taken off"),
    ("move_keys", turned_again, "turned a second time, by their new positions"),
    ("move_keys", partial(turned_again, sign=-1), "the new positions are taken off"),
    ("move_keys", lambda cached, dropped: right_move(cached, 1), "with 100 dropped, these are not the keys"),
    ("cached_position", lambda *a: right_position(*a) + 1, "4 for the key at 3: positions count from 0"),
    ("cached_position", lambda k, c, n: n - right_position(k, c, n), "the wrong way round"),
    ("cached_position", lambda *a: -right_position(*a), "the wrong way round"),
    ("cached_position", partial(by_pair, pair=0), "pair 0 comes round every 6.28 positions"),
    ("cached_position", partial(by_pair, pair=-1), "that was stored in bfloat16"),
    ("cached_position", first_close, "that was stored in bfloat16"),
    ("cached_position", lambda *a: right_position(*a) - 1, "2 for the key at 3: row 0 has to be"),
    ("cached_position", lambda *a: 7, "7 for the key at 3: which of the 2048"),
    ("half_split_weight", lambda w, d: w.clone(), "the weight is unchanged"),
    ("half_split_weight", lambda w, d: to_half_split(w, d, dim=1), "columns are reordered"),
    ("half_split_weight", lambda w, d: torch.cat([w[:, 0::2], w[:, 1::2]], dim=1), "columns are reordered"),
    ("half_split_weight", lambda w, d: to_interleaved(w, d, dim=0), "that is the way back"),
    ("half_split_weight", lambda w, d: to_half_split(w, len(w), dim=0), "rows of different heads are mixed"),
    ("half_split_weight", seconds_first, "seconds come first"),
    ("half_split_weight", lambda w, d: 2 * w, "not the rows of the weight in another order"),
    ("half_split_weight", lambda w, d: w.flip(0), "the rows are in another order"),
    ("tables", partial(right_tables, flip=True), "sines first"),
    ("tables", low("position"), "the positions are still in bfloat16"),
    ("tables", low("speed"), "the speeds are still rounded"),
    ("tables", low("angle"), "the angles are rounded to bfloat16"),
    ("tables", low("position", "speed", "angle"), "the angles are computed in bfloat16"),
    ("tables", low("angle", only=torch.float32), "the angles need more than float32"),
    ("tables", partial(right_tables, scale=2.0), "and in torch.bfloat16 at [0, 1, 0] it is -0.416"),
]

RIGHT = [
    ("turn", right_turn),
    ("rotary", right_rotary),
    ("rotary", by_hand),
    ("look_back", right_look_back),
    ("look_back", turns_the_key),
    ("break_decay", in_one_pair),
    ("break_decay", in_two_pairs),
    ("move_keys", right_move),
    ("cached_position", right_position),
    ("half_split_weight", lambda w, d: to_half_split(w, d, dim=0)),
    ("tables", right_tables),
]
