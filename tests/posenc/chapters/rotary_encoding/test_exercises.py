"""Chapter 4's planted mistakes, and right answers of another kind."""

import math

import torch
from slips import mistakes, slip

from posenc.rotary import angles, rotate, to_half_split, to_interleaved

right_look_back = slip("look_back", "result")


def first_close(key, cached, length):
    close = torch.isclose(rotate(key.expand(length, -1), angles(torch.arange(length), len(key))), cached, atol=1e-6)
    return close.all(dim=-1).int().argmax().item()


def by_pair(pair):
    def answer(key, cached, length):
        a, b = (torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())[pair] for x in (cached, key))
        theta = ((a / b).angle() + 1e-9) % (2 * math.pi)
        return round((theta / angles(torch.tensor(1), len(key))[pair]).item())

    return answer


PLANTED = mistakes(
    turn={
        "wrong way round: you turned by -angle": "worked(v, -angle)",
        "taken for degrees": "worked(v, math.radians(angle))",
        "have changed places": "result.flip(0)",
        "it mirrors the vector": "worked(v * torch.tensor([1, -1]), angle)",
        "it mirrors the vector:": "-result",
        "the second number is lost": "v[0] * torch.tensor([math.cos(angle), math.sin(angle)]).double()",
        "one of the two sines needs a minus": "- sin → + sin",
        "the first number after its turn": "sin * v[0] → sin * (cos * v[0] - sin * v[1])",
        "the length went from 5.00 to 5.39, and a turn keeps it": "v + 2 * angle",
        "right to six digits": "math.cos(angle), math.sin(angle) → torch.tensor([math.cos(angle), math.sin(angle)])",
        "by 1.0 radians is not": "worked(v, 2 * angle)",
    },
    rotary={
        "it turns clockwise": "worked(x, -positions, base)",
        "in degrees": "worked(x, positions.double().deg2rad(), base)",
        "a factor 2π too much": "worked(x, 2 * math.pi * positions, base)",
        "the exponent is wrong: i/d": "0, d, 2, dtype=torch.float64) → d // 2, dtype=torch.float64)",
        "the exponent is wrong: 4i/d": "0, d, 2 → 0, 2 * d, 4",
        "the exponent is wrong: i/(d/2 - 1)": "torch.float64) / d → torch.float64) / (d - 2)",
        "the exponent has the wrong sign": "base ** (- → base ** (",
        "at the speed of pair 0": "worked(x, positions, 1)",
        "the other layout": lambda x, p, b: rotate(x, angles(p, x.shape[-1], base=b), layout="half_split"),
        "the next position": "worked(x, positions + 1, base)",
        "whatever the positions are": "worked(x, torch.arange(len(positions)), base)",
        "along the first axis, the heads": "worked(x.transpose(0, 1), positions, base).transpose(0, 1)",
        "it adds cosines and sines": (
            "first * theta.cos() - second * theta.sin() → first + theta.cos();"
            "first * theta.sin() + second * theta.cos() → second + theta.sin()"
        ),
        "the base is not used": "worked(x, positions, 10_000)",
        "the token at position 0 has changed, where the angle is 0: at [0, 0]": "worked(x, positions + 2, base)",
        "the lengths have changed": "- second → + second",
        "pair 0 at position 3 and base 10000 turns by": "worked(x, 2 * positions, base)",
        "right numbers, wrong places": "stack → cat; .flatten(-2) →",
        "the seconds are turned with firsts that have been turned": "first * theta.sin() → (first * theta.cos() - second * theta.sin()) * theta.sin()",
        "right to six digits": "result.float().double()",
        "wrong at position 1,000,000": "float64 → float32; theta. → theta.double().",
        "and p·base^(-2i/d) is": "float64 → bfloat16; theta. → theta.double().",
    },
    look_back={
        "it looks 3 ahead": "-back → back",
        "with a weight of": "20 * →",
        "it looks at the token itself": "-back → 0",
        "it looks at position 0": "0 * result",
        "positions back, not 3: the turn of every pair": "angles(torch.tensor(-back), d) → torch.full((d // 2,), -1.0 * back)",
    },
    break_decay={
        "have the lengths 2 and 2": "2 * result",
        "have the lengths 0 and 0": "0 * result",
        "with d = 64 it rises all the way, but by 3.64e-05 only": "query[2 * pair] → query[-1]",
        "the same at every distance": "torch.eye(d).double()[[0, -1]]",
        "it rises with n - m, towards keys that stand ahead": (
            "64 * → 128 *; -query → -query.unflatten(0, (-1, 2)).flip(1).flatten()"
        ),
        "it falls with every step, from 1.00 to -0.90": "-query → query",
        "it rises up to distance 42 and falls from there": "64 * → 32 *",
        "it goes from -1.00 to -0.43, but falls from distance 5 to 6": "query[2 * pair] = 1 → query[:] = d**-0.5",
        "but falls from distance 3 to 4": "query[2 * pair] → query[0]",
    },
    move_keys={
        "the keys are unchanged": "cached.clone()",
        "turned 1 further": "worked(cached, -dropped)",
        "the other layout": "back) → back, layout='half_split')",
        "every turn is taken off": "[-dropped] → [-dropped - place for place in range(cached.shape[-2])]",
        "turned a second time, by their new positions": "[-dropped] → [*range(cached.shape[-2])]",
        "the new positions are taken off": "[-dropped] → [-place for place in range(cached.shape[-2])]",
        "with 100 dropped, these are not the keys": "dropped → 1",
    },
    cached_position={
        "4 for the key at 3: positions count from 0": "result + 1",
        "2045 for the key at 3: the turn is counted the wrong way round": "length - result",
        "-3 for the key at 3: the turn is counted the wrong way round": "-result",
        "pair 0 comes round every 6.28 positions": by_pair(0),
        "that was stored in bfloat16": by_pair(-1),
        "that was stored in bfloat16: a slow pair": first_close,
        "2 for the key at 3: row 0 has to be": "result - 1",
        "7 for the key at 3: turned by 7 positions, the key": "7",
    },
    half_split_weight={
        "the weight is unchanged": "weight.clone()",
        "columns are reordered": lambda w, d: to_half_split(w, d, dim=1),
        "columns are reordered: they": lambda w, d: torch.cat([w[:, 0::2], w[:, 1::2]], dim=1),
        "that is the way back": lambda w, d: to_interleaved(w, d, dim=0),
        "rows of different heads are mixed": "worked(weight, len(weight))",
        "seconds come first": "transpose(1, 2) → transpose(1, 2).flip(1)",
        "not the rows of the weight in another order": "2 * result",
        "the rows are in another order": "weight.flip(0)",
    },
    tables={
        "sines first": "theta.cos(), theta.sin() → theta.sin(), theta.cos()",
        "the positions are still in bfloat16": "torch.arange(length) → torch.arange(length).to(dtype).long()",
        "the speeds are still rounded": "theta = → theta = torch.arange(length)[:, None] * angles(torch.tensor(1), d).to(dtype).double()  #",
        "the angles are rounded to bfloat16": "d) → d).to(dtype).double()",
        "the angles are computed in bfloat16": "theta = → theta = torch.arange(length).to(dtype)[:, None] * angles(torch.tensor(1), d).to(dtype)  #",
        "the angles need more than float32": "d) → d).float()",
        "and in torch.bfloat16 at [0, 1, 0] it is -0.416": "theta. → (2 * theta).",
    },
)

RIGHT = [
    ("rotary", lambda x, p, base: rotate(x, angles(p, x.shape[-1], base=base))),
    ("look_back", slip("look_back", "-back → back; , key]) →]); stack([ → stack([key,")),
    ("break_decay", slip("break_decay", "query[2 * pair] → query[2 * pair + 1]")),
    ("break_decay", slip("break_decay", "0.8**0.5 * result + 0.2**0.5 * result.roll(2, -1)")),
    ("half_split_weight", lambda w, d: to_half_split(w, d, dim=0)),
]
