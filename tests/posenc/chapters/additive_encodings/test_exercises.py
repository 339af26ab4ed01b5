"""Chapter 2's checks: every mistake is planted and must be called by its name."""

import math

import torch

from posenc.additive import binary, integer, shift_matrix, sinusoidal


def right_sinusoid(p, d, base, *, exponent=2, dtype=torch.float64):
    angles = p[:, None].to(dtype) / base ** (exponent * torch.arange(d // 2, dtype=dtype) / d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).double()


def halves(encoding):
    return torch.cat([encoding[:, 0::2], encoding[:, 1::2]], dim=-1)


def per_column(p, d, base):
    angles = p[:, None] / base ** (torch.arange(d, dtype=torch.float64) / d)
    return torch.where(torch.arange(d) % 2 == 0, angles.sin(), angles.cos())


def exchanged(p, d, base):
    return right_sinusoid(p, d, base)[:, torch.arange(d) ^ 1]


def sines_only(p, d, base):
    return right_sinusoid(p, d, base)[:, torch.arange(d) // 2 * 2]


def whisper(p, d, base):
    return right_sinusoid(p, d, base, exponent=2 * d / (d - 2))


def split_shift(offset, d):
    order = torch.cat([torch.arange(0, d, 2), torch.arange(1, d, 2)])
    return shift_matrix(offset, d)[order][:, order]


def one_block(offset, d):
    whole = torch.eye(d, dtype=torch.float64)
    whole[:2, :2] = shift_matrix(offset, 2)
    return whole


def from_position_0(offset, d):
    start, end = sinusoidal(torch.tensor([0, offset]), d, dtype=torch.float64)
    return torch.outer(end, start) / (start @ start)


def mirrored(offset, d):
    return shift_matrix(offset, d).mul(torch.where(torch.arange(d) % 2 == 0, -1, 1))


def squeezed(offset, d):
    return 0.9 * shift_matrix(offset, d)


def right_separate(tokens, encodings):
    both = torch.cat([tokens, encodings])
    return torch.linalg.pinv(both)[:, : len(tokens)] @ tokens


def keep_span(tokens, encodings):
    return torch.linalg.pinv(tokens) @ tokens


def remove_span(tokens, encodings):
    return torch.eye(tokens.shape[1], dtype=tokens.dtype) - torch.linalg.pinv(encodings) @ encodings


def by_least_squares(tokens, encodings):
    both, wanted = torch.cat([tokens, encodings]), torch.cat([tokens, 0 * encodings])
    return torch.linalg.lstsq(both, wanted).solution


def from_pairs(tokens, encodings):
    sums = (tokens[:, None] + encodings).flatten(0, 1)
    return torch.linalg.pinv(sums) @ tokens.repeat_interleave(len(encodings), 0)


def as_long_as_all_are_independent(tokens, encodings):
    few = len(tokens) + len(encodings) <= tokens.shape[1]
    return right_separate(tokens, encodings) if few else torch.eye(tokens.shape[1]).double()


def by_inverse(tokens, encodings):
    gram = encodings @ encodings.T
    rest = torch.eye(tokens.shape[1]) - encodings.T @ torch.linalg.inv(gram) @ encodings
    return rest @ torch.linalg.pinv(tokens @ rest) @ tokens


def encode(tokens, d, start=0):
    return sinusoidal(torch.arange(start, start + tokens.shape[1]), d, dtype=torch.float64)


def right_embed(table, tokens, *, token=None, sums=1.0, encoding=1.0, start=0):
    d = table.shape[1]
    token = math.sqrt(d) if token is None else token
    return sums * (token * table[tokens] + encoding * encode(tokens, d, start))


def embed_with(**options):
    return lambda table, tokens: right_embed(table, tokens, **options)


def batch_axis(table, tokens):
    e = encode(tokens.T, table.shape[1])[:, None]
    return math.sqrt(table.shape[1]) * table[tokens] + e


def positions_of_tokens(table, tokens):
    d = table.shape[1]
    return math.sqrt(d) * table[tokens] + sinusoidal(tokens, d, dtype=torch.float64)


def angle_between(here, there):
    (s, c), (t, e) = here[-2:].tolist(), there[-2:].tolist()
    return math.atan2(t * c - e * s, e * c + t * s)


def slowest(code):
    return 10_000 ** (2 / len(code) - 1)


def read_offset(here, there):
    return round(angle_between(here, there) / slowest(here))


def by_heights(here, there):
    return round((there[-2].asin() - here[-2].asin()).item() / slowest(here))


def by_two_angles(here, there):
    first, second = (math.atan2(*code[-2:].tolist()) for code in (here, there))
    return round((second - first) / slowest(here))


def by_angles_brought_back(here, there):
    first, second = (math.atan2(*code[-2:].tolist()) for code in (here, there))
    return round(math.remainder(second - first, 2 * math.pi) / slowest(here))


def random_rows(p, d):
    return torch.randn(2000, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)[p]


def repeated_turn(p, d):
    generator = torch.Generator().manual_seed(1)
    drawn, start = (torch.randn(d, n, generator=generator, dtype=torch.float64) for n in (d, 1))
    step = 0.05 * (drawn - drawn.T)
    return torch.stack([(torch.linalg.matrix_exp(n * step) @ start)[:, 0] for n in p.tolist()])


def triangles(p, d):
    lengths = 6 * 1.3 ** torch.arange(d, dtype=torch.float64)
    return ((p[:, None] / lengths) % 1 * 2 - 1).abs()


ROOT = 4.0  # √16, the width that the check of embed uses

PLANTED = [
    ("flipped_digits", lambda p: (p ^ (p + 1)).bit_count() - 1, "count also the 0 before them"),
    ("flipped_digits", lambda p: abs((p + 1).bit_count() - p.bit_count()), "how many ones there are"),
    (
        "flipped_digits",
        lambda p: sum(a != b for a, b in zip(f"{p:b}", f"{p + 1:b}")),
        "it compares 111 with the first digits of 1000",
    ),
    (
        "flipped_digits",
        lambda p: sum(a != b for a, b in zip(f"{p:016b}", f"{p + 1:016b}")),
        "right up to here, wrong from 65,535",
    ),
    ("flipped_digits", lambda p: 1, "more than one digit changes"),
    ("flipped_digits", lambda p: p and (p ^ (p + 1)).bit_count(), "from 0 to 1 one digit changes"),
    ("flipped_digits", lambda p: p.bit_count() + 1, "4 has 1 ones, but only the ones at its end flip"),
    ("flipped_digits", lambda p: (p + 1).bit_length(), "3 is the number of digits of 5"),
    ("flipped_digits", lambda p: 9, "from 111 to 1000 4 digits change, not 9"),
    ("sinusoid", lambda p, d, b: right_sinusoid(p, d, b, exponent=1), "the exponent is wrong: i/d"),
    ("sinusoid", lambda p, d, b: halves(right_sinusoid(p, d, b, exponent=1)), "the exponent is wrong: i/d"),
    ("sinusoid", lambda p, d, b: right_sinusoid(p, d, b, exponent=4), "the exponent is wrong: 4i/d"),
    ("sinusoid", whisper, "the exponent is wrong: i/(d/2 - 1)"),
    ("sinusoid", lambda p, d, b: right_sinusoid(p, d, b, exponent=-2), "the exponent has the wrong sign"),
    (
        "sinusoid",
        lambda p, d, b: right_sinusoid(p, d, b, exponent=0),
        "every pair has speed 1: // rounds the exponent down to 0",
    ),
    (
        "sinusoid",
        lambda p, d, b: right_sinusoid(p, d, b).float(),
        "expected torch.float64: make it with dtype=torch.float64",
    ),
    ("sinusoid", per_column, "the exponent counts columns"),
    ("sinusoid", exchanged, "sine and cosine have changed places"),
    ("sinusoid", lambda p, d, b: halves(exchanged(p, d, b)), "sine and cosine have changed places"),
    ("sinusoid", sines_only, "every dimension is a sine"),
    ("sinusoid", lambda p, d, b: right_sinusoid(p + 1, d, b), "the next position"),
    ("sinusoid", lambda p, d, b: right_sinusoid(torch.arange(len(p)), d, b), "whatever the positions are"),
    ("sinusoid", lambda p, d, b: right_sinusoid(p.double().deg2rad(), d, b), "the angles are in degrees"),
    ("sinusoid", lambda p, d, b: right_sinusoid(2 * math.pi * p, d, b), "a factor 2π too much"),
    ("sinusoid", lambda p, d, b: right_sinusoid(p, d, 100.0), "for base 10000 these are the waves of base 100"),
    ("sinusoid", lambda p, d, b: right_sinusoid(p, d, 1e4), "for base 50 these are the waves of base 10000"),
    ("sinusoid", lambda p, d, b: halves(right_sinusoid(p, d, 1e4)), "for base 50 these are the waves of base"),
    (
        "sinusoid",
        lambda p, d, b: 2 * right_sinusoid(p, d, b),
        "not sine and cosine of p / base^(2i/d). For base 10000 and the positions [3, 0, 1, 2, 11, 40], "
        "every number is 2",
    ),
    ("sinusoid", lambda p, d, b: torch.zeros(len(p), d).double(), "not sine and cosine of p / base^(2i/d)"),
    ("sinusoid", lambda p, d, b: right_sinusoid(p, d, b, dtype=torch.float32), "wrong at position 1,000,000"),
    ("sinusoid", lambda *a: right_sinusoid(*a).float().double(), "rounded to float32 on the way"),
    ("places_between", lambda m, n: -read_offset(m, n), "it goes from there to here"),
    ("places_between", lambda m, n: abs(read_offset(m, n)), "backwards it loses the sign"),
    ("places_between", lambda m, n: angle_between(m, n) / slowest(m), "positions are whole, so round"),
    ("places_between", lambda m, n: round(angle_between(m[:2], n[:2])), "pair 0 has come round several times"),
    (
        "places_between",
        by_heights,
        "between position 14,000 and position 14,010 it finds -10: there the slowest sine falls",
    ),
    ("places_between", by_two_angles, "the slowest hand passes the half turn"),
    ("places_between", lambda m, n: 5, "between position 3 and position 7 it finds 5, not 4"),
    (
        "places_between",
        lambda m, n: round(angle_between(m, n) / 10_000 ** (-62 / 64)),
        "right for d = 64; for d = 16 it finds",
    ),
    ("shift", lambda k, d: torch.eye(d).double(), "it leaves every position where it is"),
    ("shift", lambda k, d: shift_matrix(-k, d), "the wrong way"),
    ("shift", split_shift, "it pairs dimension i with i + d/2"),
    ("shift", lambda k, d: torch.block_diag(*[shift_matrix(k, 2)] * (d // 2)), "by the angle of pair 0"),
    ("shift", one_block, "only pair 0 turns"),
    ("shift", from_position_0, "S PE(0) is PE(3), but S PE(1) is not PE(4)"),
    ("shift", squeezed, "the matrix is not orthogonal"),
    ("shift", lambda k, d: shift_matrix(k + 1, d), "the block of pair 0 turns by -2.28, and 3 / base^(2·0/d) is 3"),
    ("shift", lambda k, d: shift_matrix(k, d).float().double(), "and for d = 12 and an offset of 120 right to a few"),
    ("shift", mirrored, "tests the second column of each block alone"),
    ("separate", lambda x, e: torch.eye(x.shape[1]).double(), "the identity hands over the sum"),
    ("separate", lambda x, e: right_separate(x, e).T, "transposed"),
    ("separate", lambda x, e: right_separate(e, x), "the other way round"),
    ("separate", keep_span, "it keeps the tokens, and a part of the encodings too"),
    ("separate", remove_span, "it removes the encodings, and a part of the tokens with them"),
    ("separate", lambda x, e: torch.ones(x.shape[1], x.shape[1]).double(), "(x + e) @ W is not x"),
    ("separate", by_inverse, "inaccurate for sinusoids"),
    ("separate", as_long_as_all_are_independent, "wrong for 120 that span only 32 of them"),
    ("embed", embed_with(token=1.0), "the √d is still missing"),
    ("embed", batch_axis, "the position is taken from the batch axis"),
    ("embed", embed_with(token=1.0, sums=ROOT), "it scales the sum"),
    ("embed", embed_with(token=1.0, encoding=1 / ROOT), "it shrinks the encoding"),
    ("embed", embed_with(token=1 / ROOT), "it divides by √d"),
    ("embed", embed_with(token=ROOT**2), "that is d, not √d"),
    ("embed", embed_with(encoding=0.0), "the positions are missing"),
    ("embed", embed_with(start=1), "the encoding of position 1"),
    ("embed", embed_with(token=ROOT), "right for d = 16, wrong for d = 36"),
    (
        "embed",
        lambda t, k: right_embed(t, k, token=math.sqrt(len(t))),
        "√9, the number of rows of the table, and d = 16",
    ),
    ("embed", lambda t, k: right_embed(t, k, token=math.sqrt(k.shape[1])), "√5, the length of the text, and d = 16"),
    ("embed", positions_of_tokens, "it encodes the tokens' numbers"),
    ("embed", embed_with(token=2.5), "encoding of its position: for d = 16, at [0, 0, 0] it is"),
    ("embed", lambda t, k: right_embed(t, k) + 0.02, "encoding of its position: for d = 16"),
    ("mine", lambda p, d: (triangles(p, d) + 1) / 0, "no layer can read them"),
    ("mine", lambda p, d: torch.randn(2000, d, dtype=torch.float64)[p], "two calls give two codes"),
    ("mine", lambda p, d: triangles(p - p.double().mean(), d), "depends on the other positions"),
    ("mine", lambda p, d: sinusoidal(p, d, dtype=torch.float64), "the chapter's own sinusoidal"),
    ("mine", lambda p, d: binary(p, d).double(), "the chapter's own binary"),
    ("mine", lambda p, d: integer(p, d).double(), "the chapter's own integer"),
    (
        "mine",
        lambda p, d: (0.1 * p.double()).sin()[:, None].expand(-1, d),
        "it adds the same number in every dimension",
    ),
    ("mine", lambda p, d: triangles(p % 40, d), "positions 0 and 40 get the same code"),
    (
        "mine",
        lambda p, d: p[:, None] * torch.arange(d).double(),
        "its numbers grow with the position, up to 30,969 at 1,000",
    ),
]

RIGHT = [
    ("flipped_digits", lambda p: (p ^ (p + 1)).bit_count(), "✓"),
    ("sinusoid", right_sinusoid, "the paper's order"),
    ("sinusoid", lambda p, d, b: halves(right_sinusoid(p, d, b)), "the half-split layout"),
    ("places_between", read_offset, "✓"),
    ("places_between", by_angles_brought_back, "✓"),
    ("shift", shift_matrix, "✓"),
    ("separate", right_separate, "✓"),
    ("separate", from_pairs, "✓"),
    ("separate", by_least_squares, "✓"),
    ("embed", right_embed, "✓"),
    ("mine", repeated_turn, "grants: smooth, one step, offset readable."),
    ("mine", triangles, "grants: smooth."),
    ("mine", lambda p, d: random_rows(p, d), "grants: none."),
]
