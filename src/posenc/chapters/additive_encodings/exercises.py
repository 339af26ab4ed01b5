"""What chapter 2 asks: digits that flip, waves, offsets, what a sum still holds, and an encoding of one's own."""

import math
from functools import partial

import torch
from torch import Tensor

from posenc.additive import binary, frequencies, integer, shift_matrix, sinusoidal
from posenc.chapters.additive_encodings.wishes import PLACES, WIDTH, granted
from posenc.lesson.exercises import Answer, difference, exercise, normal, wrong


@exercise(
    "Write 7 and 8 as binary numbers, one below the other. Which digits differ?",
    "Adding 1 turns every 1 at the end into a 0, and the 0 before them into a 1.",
    """Written with as many digits, zeros in front, two neighbours can be compared digit by digit:
>>> f"{5:04b}", f"{6:04b}"
('0101', '0110')""",
    well_done="a step of one position can be as long as the whole code.",
)
def flipped_digits(answer: Answer) -> None:
    for position in (7, 0, 4, 5, 8, 255, 1023, 65_535, 2**40 - 1):
        got = answer.number(position)
        expected = (position ^ (position + 1)).bit_count()
        if got == expected:
            continue
        ones = position.bit_count()
        if position == 7 and got == expected - 1:
            wrong("3 of them go from 1 to 0; count also the 0 before them, which becomes 1")
        if position == 7 and got == 2 and answer.number(5) == 2:
            wrong("it compares 111 with the first digits of 1000: write both with as many digits, zeros in front")
        if position == 7 and got == abs((position + 1).bit_count() - ones):
            wrong("that compares how many ones there are: compare digit by digit")
        if position == 7 and got == 1:
            wrong("from 7 to 8 more than one digit changes: 0111 and 1000")
        if position == 0 and got == 0:
            wrong("from 0 to 1 one digit changes, also where no 1 stands at the end")
        if got == ones + 1:
            wrong(
                f"{position} has {ones} ones, but only the ones at its end flip, and the 0 before them: {position:b} and {position + 1:b}"
            )
        if got == (position + 1).bit_length():
            wrong(f"{got:.0f} is the number of digits of {position + 1}; count those that changed")
        if position > 10_000:
            wrong(
                f"right up to here, wrong from {position:,} to the next: let a number have as many digits as it needs"
            )
        wrong(f"from {position:b} to {position + 1:b} {expected} digits change, not {got:g}")


@exercise(
    "The angle of pair i at position p is p / base^(2i/d). Make a matrix of angles first, (T, d/2).",
    "Stack sines and cosines along a new last axis, then flatten the last two axes.",
    """A new last axis puts what belongs together side by side; its rows, one after the other, are the two in turns:
>>> torch.stack([torch.tensor([1, 3]), torch.tensor([2, 4])], dim=-1).tolist()
[[1, 2], [3, 4]]""",
    well_done="these are the paper's numbers in the paper's order.",
)
def sinusoid(answer: Answer) -> str | None:
    positions, width, bases = torch.tensor([3, 0, 1, 2, 11, 40]), 8, (10_000.0, 50.0)
    results = {base: answer.tensor(positions, width, base, shape=(6, width)) for base in bases}
    if _equal(results[50.0], _waves(positions, width, 1.0)):
        wrong("every pair has speed 1: // rounds the exponent down to 0; divide with /")
    used = not torch.equal(*results.values())  # a base written into the function can look like another exponent
    for base, got in results.items():
        right, column = _waves(positions, width, base), torch.arange(width)

        def same(waves: Tensor) -> bool:
            return used and _equal(got, waves)

        if same(_waves(positions, width, base**0.5)):
            wrong("the exponent is wrong: i/d, so that the waves slow down half as fast; pair i has 2i/d")
        if same(_waves(positions, width, base**2)):
            wrong("the exponent is wrong: 4i/d; if your index already counts 0, 2, 4, …, don't double it again")
        if same(_waves(positions, width, base ** (width / (width - 2)))):
            wrong(
                "the exponent is wrong: i/(d/2 - 1), with which some libraries reach the base itself; the paper has 2i/d"
            )
        if same(_waves(positions, width, 1 / base)):
            wrong("the exponent has the wrong sign: the waves get faster from pair to pair; divide by base^(2i/d)")
        angles = positions[:, None] * frequencies(2 * width, base=base)[:width]
        if same(torch.where(column % 2 == 0, angles.sin(), angles.cos())):
            wrong("the exponent counts columns: a pair has one frequency for both, so count pairs, i = column // 2")
        if same(right[:, column ^ 1]):
            wrong("sine and cosine have changed places: dimension 2i is the sine, 2i + 1 the cosine")
        if same(right[:, column // 2 * 2]):
            wrong("every dimension is a sine: the second of each pair is the cosine")
        if same(_waves(positions + 1, width, base)):
            wrong("that is the encoding of the next position: positions count from 0")
        if same(_waves(torch.arange(6), width, base)):
            wrong("it encodes 0, 1, 2, … whatever the positions are: use the argument")
        if same(_waves(positions * math.pi / 180, width, base)):
            wrong("the angles are in degrees: torch takes radians, and p / base^(2i/d) already is in radians")
        if same(_waves(positions * 2 * math.pi, width, base)):
            wrong("a factor 2π too much: the fastest wave takes 2π positions for a turn, not 1")
        for other in _bases(got[2]):
            if not math.isclose(other, base, rel_tol=1e-3) and _equal(got, _waves(positions, width, other)):
                wrong(f"the base is wrong: for base {base:g} these are the waves of base {other:.0f}; use the argument")
        if not _equal(got, right):
            near = min(_layouts(right), key=lambda waves: (got - waves).abs().mean())
            wrong(
                f"these are not sine and cosine of p / base^(2i/d). For base {base:g} and the positions {positions.tolist()}, {difference(got, near)}"
            )
    far = torch.tensor([1_000_000])
    if not _equal(answer.tensor(far, width, 50.0, shape=(1, width)), _waves(far, width, 50.0), within=1e-6):
        wrong("right near 0, wrong at position 1,000,000: compute exponents and angles in torch.float64")
    if not _equal(got, right, within=1e-9):
        wrong("right to six digits: it is rounded to float32 on the way, so make all of it in torch.float64")
    if not torch.allclose(got, right, rtol=0, atol=1e-4):
        return "all sines, then all cosines: the half-split layout of several libraries. The paper's is interleaved, a cosine after its sine, and so is the course's."
    return None


def _equal(got: Tensor, waves: Tensor, *, within: float = 1e-4) -> bool:
    """In the interleaved layout or in the half-split one."""
    return any(torch.allclose(got, layout, rtol=0, atol=within) for layout in _layouts(waves))


def _layouts(waves: Tensor) -> tuple[Tensor, Tensor]:
    return waves, waves.unflatten(-1, (-1, 2)).mT.flatten(-2)


def _bases(encoding: Tensor) -> list[float]:
    """The bases that the angle of pair 1 at position 1 speaks for, in either layout, from one row (d,)."""
    half = len(encoding) // 2
    angles = [math.atan2(encoding[2], encoding[3]), math.atan2(encoding[1], encoding[1 + half])]
    return [angle**-half for angle in angles if angle > 1e-9]


def _waves(positions: Tensor, width: int, base: float) -> Tensor:
    """The encoding of positions that need not be whole."""
    angles = positions[:, None] * frequencies(width, base=base)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


@exercise(
    "A pair is a hand: the angle of its tip is the position times the pair's speed. What do the two angles of one pair tell?",
    "The fast hands have come round, who knows how often. The slowest, the last pair, has not: its speed is 10000^(-(d-2)/d).",
    """The angle from one hand to another needs sine and cosine of both, and comes out right across the half turn too:
>>> here, there = (math.sin(3.0), math.cos(3.0)), (math.sin(3.5), math.cos(3.5))
>>> sine = there[0] * here[1] - there[1] * here[0]
>>> cosine = there[1] * here[1] + there[0] * here[0]
>>> round(math.atan2(sine, cosine), 3)
0.5""",
    well_done="distance and direction stand in the codes, wherever the two are.",
)
def places_between(answer: Answer) -> None:
    width = 64
    slowest = frequencies(width)[-1].item()
    for here, there in ((3, 7), (7, 3), (500, 537), (14_000, 14_010), (23_500, 23_600), (40, 4_000)):
        codes = sinusoidal(torch.tensor([here, there]), width, dtype=torch.float64)
        got, right = answer.number(*codes), there - here
        if got == right:
            continue
        between = f"between position {here:,} and position {there:,}"
        if (here, there) == (7, 3) and got == 4:
            wrong("right forwards; backwards it loses the sign: from position 7 to 3 it is -4")
        if abs(got - right) < 0.5:
            wrong(f"{between} it finds {got:.6g}: positions are whole, so round")
        (s, c), (t, e) = codes[:, :2].tolist()
        if abs(got - math.atan2(t * c - e * s, e * c + t * s)) <= 0.5:
            wrong(f"{between} it finds {got:g}: pair 0 has come round several times; read a hand that has not")
        if abs(got - (codes[1, -2].asin() - codes[0, -2].asin()).item() / slowest) <= 0.5:
            wrong(
                f"{between} it finds {got:g}: there the slowest sine falls; its height alone does not tell, so use both"
            )
        if got == -right:
            wrong(f"{between} it finds {got:g}: it goes from there to here")
        if abs(got - (right - 2 * math.pi / slowest)) <= 1:
            wrong(
                f"{between} it finds {got:,.0f}: the slowest hand passes the half turn, where its angle jumps by 2π; take the angle between the two hands, or bring the difference back"
            )
        wrong(f"{between} it finds {got:g}, not {right}")
    codes = sinusoidal(torch.tensor([30, 42]), 16, dtype=torch.float64)
    if (got := answer.number(*codes)) != 12:
        wrong(f"right for d = 64; for d = 16 it finds {got:g} between position 30 and position 42, not 12")


@exercise(
    "sin(a + b) = sin a cos b + cos a sin b. Write cos(a + b) the same way, and read off four numbers.",
    "Each pair (sin, cos) has a 2 × 2 block of its own, with the angle offset / base^(2i/d); all else is 0.",
    """torch.block_diag puts blocks on the diagonal:
>>> torch.block_diag(torch.ones(1, 1), torch.tensor([[2, 3], [4, 5]])).tolist()
[[1.0, 0.0, 0.0], [0.0, 2.0, 3.0], [0.0, 4.0, 5.0]]""",
    well_done="one matrix for every position: a shift is a rotation in each pair.",
)
def shift(answer: Answer) -> None:
    width, positions = 8, torch.arange(40)
    encoding = sinusoidal(positions, width, dtype=torch.float64)
    for offset in (3, 0, -5):
        got = answer.tensor(offset, width, shape=(width, width))
        same = partial(torch.allclose, atol=1e-6)
        back, stay, there = (
            same(encoding @ got.T, sinusoidal(positions + moved, width, dtype=torch.float64))
            for moved in (-offset, 0, offset)
        )
        if there:
            continue
        if stay:
            wrong("it leaves every position where it is: let the offset enter the angles")
        if back:
            wrong(
                f"it goes from p to p - ({offset}), the wrong way: with the sine first the block is [[cos, sin], [-sin, cos]]"
            )
        split = torch.arange(width).unflatten(0, (-1, 2)).mT.flatten()
        if same(got, shift_matrix(offset, width)[split][:, split]):
            wrong("it pairs dimension i with i + d/2: in the interleaved layout pairs are neighbours, 2i and 2i + 1")
        first = shift_matrix(offset, 2)
        if same(got, torch.block_diag(*[first] * (width // 2))):
            wrong("every pair turns by the angle of pair 0: divide the offset by base^(2i/d)")
        if same(got[:2, :2], first) and same(got[2:, 2:], torch.eye(width - 2, dtype=got.dtype)):
            wrong("only pair 0 turns: every pair needs its block")
        if same(got @ encoding[0], sinusoidal(torch.tensor(offset), width, dtype=torch.float64)):
            wrong(
                f"S PE(0) is PE({offset}), but S PE(1) is not PE({offset + 1}): PE(0) is (0, 1) in every pair, which tests the second column of each block alone, so look at the first"
            )
        if not same(got @ got.T, torch.eye(width, dtype=got.dtype)):
            wrong("the matrix is not orthogonal: each block needs cos twice, and sin with both signs")
        for pair, speed in enumerate(frequencies(width).tolist()):
            block = got[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2]
            if not same(block, shift_matrix(offset, width)[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2]):
                wrong(
                    f"S PE(p) is not PE(p + {offset}): the block of pair {pair} turns by {math.atan2(block[0, 1], block[0, 0]):.3g}, and {offset} / base^(2·{pair}/d) is {offset * speed:.3g}"
                )
    got = answer.tensor(120, 12, shape=(12, 12))
    if not torch.allclose(got, shift_matrix(120, 12), rtol=0, atol=1e-9):
        wrong(f"right for d = 8, and for d = 12 and an offset of 120 {difference(got, shift_matrix(120, 12))}")


@exercise(
    "You want (x + e) W = x, so x W = x for every token and e W = 0 for every encoding.",
    "Stack tokens and encodings to (V + L, d). W must send that to the tokens stacked on zeros.",
    """A pseudo-inverse stands where an inverse would. It leaves all that the rows span as it was, however many
rows there are:
>>> rows = torch.tensor([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
>>> torch.linalg.pinv(rows).shape, (rows @ torch.linalg.pinv(rows) @ rows).round().tolist()
(torch.Size([2, 3]), [[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])""",
    well_done="one matrix gives back the token, and what it takes away is the position.",
)
def separate(answer: Answer) -> None:
    length, width = 24, 64
    tokens, encodings = normal(30, width), normal(length, width, seed=1)
    got = answer.tensor(tokens, encodings, shape=(width, width))
    near = partial(torch.allclose, atol=1e-6)
    if not near((tokens[:, None] + encodings) @ got, tokens[:, None]):
        nothing = torch.zeros_like(encodings)
        if near(got, torch.eye(width, dtype=got.dtype)):
            wrong("the identity hands over the sum, position and all")
        if near(tokens @ got.T, tokens) and near(encodings @ got.T, nothing):
            wrong("transposed: it is used as (x + e) @ W, rows on the left")
        if near(encodings @ got, encodings) and near(tokens @ got, torch.zeros_like(tokens)):
            wrong("it gives the encoding and removes the token: the other way round")
        if near(tokens @ got, tokens):
            wrong(
                "it keeps the tokens, and a part of the encodings too: the two are not at right angles, so solve for both together"
            )
        if near(encodings @ got, nothing):
            wrong(
                "it removes the encodings, and a part of the tokens with them: the two are not at right angles, so solve for both together"
            )
        wrong("(x + e) @ W is not x: ask for x @ W = x and e @ W = 0 at once")
    waves = sinusoidal(torch.arange(length), width, dtype=torch.float64)
    got = answer.tensor(tokens, waves, shape=(width, width))
    if not near((tokens[:, None] + waves) @ got, tokens[:, None]):
        wrong(
            "right for random encodings, inaccurate for sinusoids, whose slow waves are nearly dependent: torch.linalg.pinv takes care of that, an inverse does not"
        )
    many = normal(80, 20, seed=2) @ tokens[:20]
    rows = normal(40, 12, seed=3) @ encodings[:12]
    got = answer.tensor(many, rows, shape=(width, width))
    if not near((many[:, None] + rows) @ got, many[:, None]):
        wrong(
            "right for 54 vectors in 64 dimensions, wrong for 120 that span only 32 of them: what counts is the span, not the number of vectors; torch.linalg.pinv takes care of that too"
        )


@exercise(
    "How long is a row of the table, and how long is an encoding? Compare both with √d.",
    "Section 3.4 of the paper multiplies the token vectors, before anything is added.",
    """Lengths in four dimensions, of a row and of the first encodings. How long is the row to be?
>>> from posenc.additive import sinusoidal
>>> torch.tensor([0.5, -0.5, 0.5, 0.5]).norm().item(), sinusoidal(torch.arange(2), 4).norm(dim=-1).tolist()
(1.0, [1.4142135381698608, 1.4142135381698608])""",
    well_done="tokens of length √d and encodings of length √(d/2) can be heard together.",
)
def embed(answer: Answer) -> None:
    for width, rows, length in ((16, 5, 5), (16, 3, 5), (36, 3, 5)):
        table = normal(9, width) / math.sqrt(width)
        tokens = torch.arange(1, 1 + rows * length).square().view(rows, length) % 9
        got = answer.tensor(table, tokens, shape=(rows, length, width))
        x = table[tokens]
        e = sinusoidal(torch.arange(length), width, dtype=table.dtype)
        root = math.sqrt(width)
        same = partial(torch.allclose, got, atol=1e-5)
        if same(x + e):
            wrong("the √d is still missing: the tokens have length 1, the encodings √(d/2)")
        if rows == length and same(root * x + e[:, None]):
            wrong(
                "the position is taken from the batch axis: every token of a row gets the same encoding; tokens are (B, T), so add (T, d)"
            )
        if same(root * (x + e)):
            wrong("it scales the sum, so nothing changes between token and position: scale the token alone")
        if same(x + e / root):
            wrong("it shrinks the encoding: their ratio is right, but the paper multiplies the token by √d instead")
        if same(x / root + e):
            wrong("it divides by √d, as the scores do; here the token is too short, so multiply")
        if same(width * x + e):
            wrong("that is d, not √d: now the position is drowned")
        if same(root * x):
            wrong("the positions are missing")
        if same(root * x + sinusoidal(torch.arange(1, length + 1), width, dtype=table.dtype)):
            wrong("the first token has the encoding of position 1: count from 0")
        for size, name in ((9, "the number of rows of the table"), (length, "the length of the text")):
            if same(math.sqrt(size) * x + e):
                wrong(f"the factor is √{size}, {name}, and d = {width} is the length of a row")
        if same(root * x + sinusoidal(tokens, width, dtype=table.dtype)):
            wrong("it encodes the tokens' numbers: the positions are 0 to T - 1, whatever the tokens are")
        if width == 36 and same(4 * x + e):
            wrong("right for d = 16, wrong for d = 36: the factor is √d and not always 4")
        if not same(root * x + e):
            wrong(
                f"this is not √d · token + encoding of its position: for d = {width}, {difference(got, root * x + e)}"
            )


@exercise(
    "Three wishes you cannot do without: unique, bounded, not the same everywhere. Take an encoding of this chapter and change one thing: the shape of the wave, the speeds, the base.",
    "Waves of another shape keep the steps short. One turn of all d dimensions, done again at every position, even keeps them equal, and its offset can be read.",
    """A wave of straight lines, four positions long:
>>> ((torch.arange(6) / 4) % 1 * 2 - 1).abs().tolist()
[1.0, 0.5, 0.0, 0.5, 1.0, 0.5]""",
)
def mine(answer: Answer) -> str:
    positions = torch.arange(PLACES)
    codes = answer.tensor(positions, WIDTH, shape=(PLACES, WIDTH))
    if not codes.isfinite().all():
        wrong("it holds infinite numbers: no layer can read them")
    if not torch.equal(answer.tensor(positions, WIDTH, shape=codes.shape), codes):
        wrong("two calls give two codes: draw what is random from a torch.Generator with a fixed seed")
    some = torch.tensor([7, 3, 500, 3])
    if not torch.allclose(answer.tensor(some, WIDTH, shape=(4, WIDTH)), codes[some]):
        wrong(
            "the code of a position depends on the other positions that are asked for: let it depend on its own alone"
        )
    for encode in (integer, binary, sinusoidal):
        if torch.allclose(codes, encode(positions, WIDTH).double(), atol=1e-4):
            wrong(f"that is the chapter's own {encode.__name__}: change something")
    kept = granted(codes)
    if not kept["not the same everywhere"][0]:
        wrong("it adds the same number in every dimension, and LayerNorm takes that off (section 1)")
    if not kept["unique"][0]:
        _, code = codes.unique(dim=0, return_inverse=True)
        first = (code[:, None] == code).int().argmax(dim=-1)  # the first position with the same code
        again = (first < positions).nonzero()[0].item()
        wrong(f"positions {first[again]} and {again} get the same code, so no layer can tell them apart")
    if not kept["bounded"][0]:
        wrong(
            f"its numbers grow with the position, up to {kept['bounded'][1]} at {PLACES:,}: a long text drowns its words"
        )
    more = [wish for wish in ("smooth", "one step", "offset readable") if kept[wish][0]]
    return f"it can go into the race. Of the other wishes it grants: {', '.join(more) or 'none'}."
