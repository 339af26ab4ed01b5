"""Hidden tests of chapter 2: what every right answer has, on inputs that the checks don't use, and no answer.

Each function raises where an answer is wrong, and says what it tried. It is copied into a learner's notebook to give
marks, and learners read it afterwards, so it imports what it needs and holds no solution.
"""


def flipped_digits(answer):
    """The digits of two neighbours, written down and compared one by one."""
    import random

    numbers = random.Random(30)
    for position in (0, 1, 2, 3, 6, 63, 64, 2**20 - 1, *(numbers.randrange(10**6) for _ in range(20))):
        here, after = (f"{number:032b}" for number in (position, position + 1))
        flipped = sum(one != other for one, other in zip(here, after))
        got = float(answer(position))
        assert got == flipped, f"from {position} to {position + 1} {flipped} digits change, not {got:g}"


def sinusoid(answer):
    """Each position turns every pair by the angle that one position turns it, and pairs slow down evenly."""
    import torch

    generator = torch.Generator().manual_seed(31)
    for d, base in ((2, 100.0), (12, 10_000.0), (64, 500.0)):
        positions = torch.randint(1000, (9,), generator=generator)
        got = answer(positions.clone(), d, base)
        both = answer(torch.tensor([0, 1]), d, base)
        here = f"at d = {d} and base {base:g}"
        assert type(got) is torch.Tensor, f"{here} the encoding is no tensor"
        assert got.shape == (9, d), f"{here} the encoding of 9 positions has shape {tuple(got.shape)}"
        assert got.dtype == torch.float64, f"{here} the encoding is {got.dtype}"
        interleaved = both[0, 1::2].sum() == d // 2 and both[0, 0::2].abs().max() == 0
        pairs = (lambda e: e.unflatten(-1, (-1, 2))) if interleaved else (lambda e: e.unflatten(-1, (2, -1)).mT)
        sine, cosine = pairs(both)[1].unbind(-1)
        speed = torch.atan2(sine, cosine)
        assert abs(speed[0] - 1) < 1e-9, f"{here} pair 0 turns by {speed[0]:.9f} a position, not by 1"
        evenly = torch.allclose(speed[1:] ** (d / 2), speed[:-1] ** (d / 2) / base, rtol=1e-6, atol=0)
        assert evenly, f"{here} the pairs turn by {speed.tolist()[:4]} …; the ratio of neighbours is another one"
        turned = torch.polar(torch.ones_like(speed), speed) ** positions[:, None]
        there = torch.allclose(pairs(got), torch.stack([turned.imag, turned.real], dim=-1), atol=1e-5)
        assert there, f"{here} position p is not p times the angle of position 1"


def places_between(answer):
    """Wherever two places stand, their codes tell how far it is and which way."""
    import torch

    from posenc.additive import sinusoidal

    generator = torch.Generator().manual_seed(35)
    for d in (32, 128):
        for here in torch.randint(40_000, (20,), generator=generator).tolist():
            there = here + torch.randint(-3_000, 3_000, (1,), generator=generator).item()
            got = float(answer(*sinusoidal(torch.tensor([here, there]), d, dtype=torch.float64)))
            assert got == there - here, f"at d = {d}, from {here} to {there}, it finds {got:g}"


def shift(answer):
    """One matrix moves every position by the same number of places; two shifts are one, and no length changes."""
    import torch

    from posenc.additive import sinusoidal

    generator = torch.Generator().manual_seed(32)
    for d in (2, 6, 32):
        positions = torch.randint(-500, 500, (30,), generator=generator)
        encoding = sinusoidal(positions, d, dtype=torch.float64)
        for offset in (1, -17, 120):
            matrix = answer(offset, d)
            here = f"at d = {d} and offset {offset}"
            assert type(matrix) is torch.Tensor, f"{here} the matrix is no tensor"
            assert matrix.shape == (d, d), f"{here} the matrix has shape {tuple(matrix.shape)}"
            assert matrix.dtype == torch.float64, f"{here} the matrix is {matrix.dtype}"
            moved = sinusoidal(positions + offset, d, dtype=torch.float64)
            away = (encoding @ matrix.T - moved).abs().max()
            assert away < 1e-9, f"{here} 30 encodings are moved, and miss their places by {away:.2g}"
            square = matrix @ matrix.T - torch.eye(d, dtype=matrix.dtype)
            assert square.abs().max() < 1e-9, f"{here} the matrix is not orthogonal"
        assert torch.allclose(answer(3, d) @ answer(4, d), answer(7, d), atol=1e-9), f"at d = {d}, 3 and 4 are not 7"


def separate(answer):
    """It gives the token of every sum, and what two tokens differ by, however loud their positions differ."""
    import torch

    from posenc.additive import sinusoidal

    generator = torch.Generator().manual_seed(33)

    def draw(rows, rank, width):
        return torch.randn(rows, rank, generator=generator, dtype=torch.float64) @ torch.randn(
            rank, width, generator=generator, dtype=torch.float64
        )

    for n_tokens, rank, length, width in ((5, 5, 3, 8), (20, 20, 20, 50), (12, 12, 16, 64), (90, 15, 40, 64)):
        tokens = draw(n_tokens, rank, width)
        for name, encodings in (
            ("random encodings", draw(length, min(length, width // 3), width)),
            ("sinusoids", sinusoidal(torch.arange(min(length, 8)), width, dtype=torch.float64)),
        ):
            matrix = answer(tokens.clone(), encodings.clone())
            here = f"with {n_tokens} tokens of rank {rank} and {len(encodings)} {name} in {width} dimensions"
            assert type(matrix) is torch.Tensor, f"{here} the matrix is no tensor"
            assert matrix.shape == (width, width), f"{here} the matrix has shape {tuple(matrix.shape)}"
            away = ((tokens[:, None] + encodings) @ matrix - tokens[:, None]).abs().max()
            assert away < 1e-3, f"{here} the tokens are missed by {away:.2g}"
            difference = tokens[1:] - tokens[:-1]
            loud = 100 * (encodings[1:] - encodings[:-1])
            away = ((difference[:, None] + loud) @ matrix - difference[:, None]).abs().max()
            assert away < 1e-2, f"{here}, encodings a hundred times as long, the tokens are missed by {away:.2g}"


def embed(answer):
    """What the position adds is the same for every token and sentence; what the token adds has length √d."""
    import math

    import torch

    from posenc.additive import sinusoidal

    generator = torch.Generator().manual_seed(34)
    for d, rows, length in ((8, 2, 6), (32, 4, 4), (50, 3, 1)):
        table = torch.randn(11, d, generator=generator, dtype=torch.float64)
        table /= table.norm(dim=-1, keepdim=True)
        tokens = torch.randint(11, (rows, length), generator=generator)
        got = answer(table.clone(), tokens.clone())
        here = f"at d = {d}"
        assert type(got) is torch.Tensor, f"{here} the result is no tensor"
        assert got.shape == (rows, length, d), f"{here} the result has shape {tuple(got.shape)}"
        silent = answer(torch.zeros_like(table), tokens.clone())
        places = sinusoidal(torch.arange(length), d, dtype=table.dtype)
        right = torch.allclose(silent, places.expand_as(silent), atol=1e-5)
        assert right, f"{here}, with a table of zeros, what is left is not the encoding of each token's position"
        words = got - silent
        long = words.norm(dim=-1).mean()
        same = torch.allclose(words.norm(dim=-1), torch.tensor(math.sqrt(d), dtype=table.dtype), atol=1e-3)
        assert same, f"{here} the token's part has length {long:.3g}, not √{d}"
        along = (words * table[tokens]).sum(dim=-1)
        assert torch.allclose(along, words.norm(dim=-1), atol=1e-3), f"{here} the token's part points another way"


def mine(answer):
    """Every position has a code of its own, of bounded size, that differs from dimension to dimension; and it is new."""
    import torch

    from posenc.additive import binary, sinusoidal

    for d, length in ((8, 300), (32, 1500)):
        codes = answer(torch.arange(length), d)
        here = f"at d = {d}"
        assert type(codes) is torch.Tensor, f"{here} the result is no tensor"
        assert codes.shape == (length, d), f"{here} the codes of {length} positions have shape {tuple(codes.shape)}"
        assert codes.dtype == torch.float64, f"{here} the codes are {codes.dtype}"
        assert codes.isfinite().all(), f"{here} some numbers are not finite"
        backwards = answer(torch.arange(length).flip(0), d).flip(0)
        assert torch.allclose(backwards, codes), f"{here} a position's code depends on the other positions asked for"
        assert len(codes.unique(dim=0)) == length, f"{here} two positions have the same code"
        grown = codes.abs().max() / codes[: length // 10].abs().max()
        assert grown < 3, (
            f"{here} the largest number of {length} positions is {grown:.3g} times that of the first tenth"
        )
        assert codes.var(dim=-1).max() > 1e-9, f"{here} every dimension has the same number"
    for known in (binary, sinusoidal):
        same = torch.allclose(codes, known(torch.arange(length), d, dtype=torch.float64), atol=1e-4)
        assert not same, f"{here} it is {known.__name__}, which the chapter has"
