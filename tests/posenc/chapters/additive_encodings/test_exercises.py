"""Chapter 2's planted mistakes, and right answers of another kind."""

import math

import torch
from slips import mistakes

from posenc.additive import binary, integer, shift_matrix, sinusoidal


def by_inverse(tokens, encodings):
    gram = encodings @ encodings.T
    rest = torch.eye(tokens.shape[1]) - encodings.T @ torch.linalg.inv(gram) @ encodings
    return rest @ torch.linalg.pinv(tokens @ rest) @ tokens


def by_two_angles(here, there, *, back=lambda angle: angle):
    first, second = (math.atan2(*code[-2:].tolist()) for code in (here, there))
    return round(back(second - first) * 10_000 ** (1 - 2 / len(here)))


def random_rows(p, d):
    return torch.randn(2000, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)[p]


def triangles(p, d):
    lengths = 6 * 1.3 ** torch.arange(d, dtype=torch.float64)
    return ((p[:, None] / lengths) % 1 * 2 - 1).abs()


PLANTED = mistakes(
    flipped_digits={
        "count also the 0 before them": "result - 1",
        "how many ones there are": "abs((position + 1).bit_count() - position.bit_count())",
        "it compares 111 with the first digits of 1000": (
            "sum(a != b for a, b in zip(f'{position:b}', f'{position + 1:b}'))"
        ),
        "right up to here, wrong from 65,535": "sum(a != b for a, b in zip(f'{position:016b}', f'{position + 1:016b}'))",
        "more than one digit changes": "1",
        "from 0 to 1 one digit changes": "position and result",
        "4 has 1 ones, but only the ones at its end flip": "position.bit_count() + 1",
        "3 is the number of digits of 5": "(position + 1).bit_length()",
        "from 111 to 1000 4 digits change, not 9": "9",
    },
    sinusoid={
        "the exponent is wrong: i/d": "2 * pair → pair",
        "the exponent is wrong: i/d, so that": "2 * pair → pair; stack → cat; .flatten(-2) →",
        "the exponent is wrong: 4i/d": "2 * pair → 4 * pair",
        "the exponent is wrong: i/(d/2 - 1)": "pair / d → pair / (d - 2)",
        "the exponent has the wrong sign": "/ base → * base",
        "every pair has speed 1: // rounds the exponent down to 0": "pair / d → pair // d",
        "expected torch.float64: make it with dtype=torch.float64": "result.float()",
        "the exponent counts columns": "d // 2 → d; 2 * pair → pair; [angles.sin(), angles.cos()] → "
        "[angles[:, 0::2].sin(), angles[:, 1::2].cos()]",
        "sine and cosine have changed places": "sin(), angles.cos() → cos(), angles.sin()",
        "sine and cosine have changed places: dim": "sin(), angles.cos() → cos(), angles.sin(); stack → cat; .flatten(-2) →",
        "every dimension is a sine": "cos → sin",
        "the next position": "worked(positions + 1, d, base)",
        "whatever the positions are": "worked(torch.arange(len(positions)), d, base)",
        "the angles are in degrees": "worked(positions.double().deg2rad(), d, base)",
        "a factor 2π too much": "worked(2 * math.pi * positions, d, base)",
        "for base 10000 these are the waves of base 100": "worked(positions, d, 100.0)",
        "for base 50 these are the waves of base 10000": "worked(positions, d, 1e4)",
        "for base 50 these are the waves of base": "base → 1e4; stack → cat; .flatten(-2) →",
        "For base 10000 and the positions [3, 0, 1, 2, 11, 40], every number is 2": "2 * result",
        "not sine and cosine of p / base^(2i/d)": "0 * result",
        "wrong at position 1,000,000": "torch.float64 → torch.float32; flatten(-2) → flatten(-2).double()",
        "rounded to float32 on the way": "result.float().double()",
    },
    places_between={
        "it goes from there to here": "-result",
        "backwards it loses the sign": "abs(result)",
        "positions are whole, so round": "round( → (",
        "pair 0 has come round several times": "-2: → :2; len(here) - 1 → len(here) * 0",
        "between position 14,000 and position 14,010 it finds -10: there the slowest sine falls": (
            "round((there[-2].asin() - here[-2].asin()).item() * 10_000 ** (1 - 2 / len(here)))"
        ),
        "the slowest hand passes the half turn": by_two_angles,
        "between position 3 and position 7 it finds 5, not 4": "5",
        "right for d = 64; for d = 16 it finds": "len(here) → 64",
    },
    shift={
        "it leaves every position where it is": "torch.eye(d).double()",
        "the wrong way": "worked(-offset, d)",
        "it pairs dimension i with i + d/2": "result[[*range(0, d, 2), *range(1, d, 2)]][:, [*range(0, d, 2), *range(1, d, 2)]]",
        "by the angle of pair 0": "offset / 10_000 ** → offset + 0 *",
        "only pair 0 turns": "torch.block_diag(worked(offset, 2), torch.eye(d - 2).double())",
        "S PE(0) is PE(3), but S PE(1) is not PE(4)": "torch.outer(*sinusoidal(torch.tensor([offset, 0]), d, dtype=torch.float64)) * 2 / d",
        "the matrix is not orthogonal": "0.9 * result",
        "the block of pair 0 turns by -2.28, and 3 / base^(2·0/d) is 3": "worked(offset + 1, d)",
        "and for d = 12 and an offset of 120 right to a few": "result.float().double()",
        "tests the second column of each block alone": "[a.cos(), → [-a.cos(),; -a.sin() → a.sin()",
    },
    separate={
        "the identity hands over the sum": "torch.eye(tokens.shape[1]).double()",
        "transposed": "result.T",
        "the other way round": "worked(encodings, tokens)",
        "it keeps the tokens, and a part of the encodings too": "torch.linalg.pinv(tokens) @ tokens",
        "it removes the encodings, and a part of the tokens with them": (
            "torch.eye(tokens.shape[1]).double() - torch.linalg.pinv(encodings) @ encodings"
        ),
        "(x + e) @ W is not x": "torch.ones(tokens.shape[1], tokens.shape[1]).double()",
        "inaccurate for sinusoids": by_inverse,
        "wrong for 120 that span only 32 of them": "result if len(tokens) < 80 else torch.eye(tokens.shape[1]).double()",
    },
    embed={
        "the √d is still missing": "math.sqrt(d) * →",
        "the position is taken from the batch axis": "shape[1]) → shape[0]); dtype=table.dtype) → dtype=table.dtype)[:, None]",
        "it scales the sum": "table[tokens] + sinusoidal → (table[tokens] + sinusoidal; table.dtype) → table.dtype))",
        "it shrinks the encoding": "result / math.sqrt(table.shape[1])",
        "it divides by √d": "math.sqrt(d) → 1 / math.sqrt(d)",
        "that is d, not √d": "math.sqrt(d) → d",
        "the positions are missing": "+ sinusoidal → + 0 * sinusoidal",
        "the encoding of position 1": "tokens.shape[1]) → 1, tokens.shape[1] + 1)",
        "right for d = 16, wrong for d = 36": "math.sqrt(d) → 4",
        "√9, the number of rows of the table, and d = 16": "math.sqrt(d) → math.sqrt(len(table))",
        "√5, the length of the text, and d = 16": "math.sqrt(d) → math.sqrt(tokens.shape[1])",
        "it encodes the tokens' numbers": "sinusoidal(positions → sinusoidal(tokens",
        "encoding of its position: for d = 16, at [0, 0, 0] it is": "math.sqrt(d) → 2.5",
        "encoding of its position: for d = 16": "result + 0.02",
    },
    mine={
        "no layer can read them": "result / 0",
        "two calls give two codes": "torch.randn(2000, d, dtype=torch.float64)[positions]",
        "depends on the other positions": lambda p, d: triangles(p - p.double().mean(), d),
        "the chapter's own sinusoidal": lambda p, d: sinusoidal(p, d, dtype=torch.float64),
        "the chapter's own binary": lambda p, d: binary(p, d).double(),
        "the chapter's own integer": lambda p, d: integer(p, d).double(),
        "it adds the same number in every dimension": "(0.1 * positions.double()).sin()[:, None].expand(-1, d)",
        "positions 0 and 40 get the same code": "worked(positions % 40, d)",
        "its numbers grow with the position, up to 30,969 at 1,000": "positions[:, None] * torch.arange(d).double()",
    },
)

RIGHT = [
    ("sinusoid", lambda p, d, b: sinusoidal(p, d, base=b, dtype=torch.float64), "the paper's order"),
    (
        "sinusoid",
        lambda p, d, b: sinusoidal(p, d, base=b, dtype=torch.float64)[:, [*range(0, d, 2), *range(1, d, 2)]],
        "the half-split layout",
    ),
    ("places_between", lambda *both: by_two_angles(*both, back=lambda a: math.remainder(a, 2 * math.pi))),
    ("shift", shift_matrix),
    ("separate", lambda t, e: torch.linalg.pinv((t[:, None] + e).flatten(0, 1)) @ t.repeat_interleave(len(e), 0)),
    ("separate", lambda t, e: torch.linalg.lstsq(torch.cat([t, e]), torch.cat([t, 0 * e])).solution),
    ("mine", triangles, "grants: smooth."),
    ("mine", random_rows, "grants: none."),
]
