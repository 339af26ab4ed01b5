"""Hidden tests of chapter 2: what every right answer has, on inputs that the checks don't use, and no answer.

Each function raises where an answer is wrong. It is copied into a learner's notebook to give marks, and learners
read it afterwards, so it imports what it needs and holds no solution.
"""


def flipped_digits(answer):
    """The digits of two neighbours, written down and compared one by one."""
    import random

    numbers = random.Random(30)
    for position in (0, 1, 2, 3, 6, 63, 64, *(numbers.randrange(10**6) for _ in range(20))):
        here, after = (f"{number:032b}" for number in (position, position + 1))
        flipped = sum(one != other for one, other in zip(here, after))
        assert float(answer(position)) == flipped


def sinusoid(answer):
    """Each position turns every pair by the angle that one position turns it, and pairs slow down evenly."""
    import torch

    generator = torch.Generator().manual_seed(31)
    for d, base in ((2, 100.0), (12, 10_000.0), (64, 500.0)):
        positions = torch.randint(1000, (9,), generator=generator)
        got = answer(positions.clone(), d, base)
        both = answer(torch.tensor([0, 1]), d, base)
        assert type(got) is torch.Tensor and got.shape == (9, d) and got.dtype == torch.float64
        interleaved = both[0, 1::2].sum() == d // 2 and both[0, 0::2].abs().max() == 0
        pairs = (
            (lambda e: e.unflatten(-1, (-1, 2))) if interleaved else (lambda e: e.unflatten(-1, (2, -1)).mT)
        )
        sine, cosine = pairs(both)[1].unbind(-1)
        speed = torch.atan2(sine, cosine)
        assert abs(speed[0] - 1) < 1e-9
        assert torch.allclose(speed[1:] ** (d / 2), speed[:-1] ** (d / 2) / base, rtol=1e-6, atol=0)
        turned = torch.polar(torch.ones_like(speed), speed) ** positions[:, None]
        assert torch.allclose(pairs(got), torch.stack([turned.imag, turned.real], dim=-1), atol=1e-5)


def longest_wavelength(answer):
    """After it the slowest pair of the encoding stands where it stood, and after half of it opposite."""
    import math

    for d, base in ((4, 50.0), (20, 1000.0), (128, 10_000.0), (2, 7.0)):
        got = float(answer(d, base))
        speeds = [base ** -(pair / d) for pair in range(0, d, 2)]
        assert abs(math.sin(got * min(speeds))) < 1e-6
        assert abs(math.cos(got / 2 * min(speeds)) + 1) < 1e-6
        assert got * min(speeds) < 7


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
            assert type(matrix) is torch.Tensor and matrix.shape == (d, d)
            moved = sinusoidal(positions + offset, d, dtype=torch.float64)
            assert torch.allclose(encoding @ matrix.T, moved, atol=1e-6)
            assert torch.allclose(matrix @ matrix.T, torch.eye(d, dtype=matrix.dtype), atol=1e-6)
        assert torch.allclose(answer(3, d) @ answer(4, d), answer(7, d), atol=1e-6)


def separate(answer):
    """It gives the token of every sum, and what two tokens differ by, however loud their positions differ."""
    import torch

    from posenc.additive import sinusoidal

    generator = torch.Generator().manual_seed(33)
    for n_tokens, length, width in ((5, 3, 8), (20, 20, 50), (12, 16, 64)):
        tokens = torch.randn(n_tokens, width, generator=generator, dtype=torch.float64)
        random = torch.randn(length, width, generator=generator, dtype=torch.float64)
        for encodings in (random, sinusoidal(torch.arange(length), width, dtype=torch.float64)):
            matrix = answer(tokens.clone(), encodings.clone())
            assert type(matrix) is torch.Tensor and matrix.shape == (width, width)
            assert torch.allclose((tokens[:, None] + encodings) @ matrix, tokens[:, None], atol=1e-3)
            difference = tokens[1:] - tokens[:-1]
            loud = 100 * (encodings[1:] - encodings[:-1])
            assert torch.allclose((difference[:, None] + loud) @ matrix, difference[:, None], atol=1e-2)


def embed(answer):
    """What the position adds is the same for every token and sentence; what the token adds has length √d."""
    import torch

    from posenc.additive import sinusoidal

    generator = torch.Generator().manual_seed(34)
    for d, rows, length in ((8, 2, 6), (32, 4, 4), (50, 3, 1)):
        table = torch.randn(11, d, generator=generator, dtype=torch.float64)
        table /= table.norm(dim=-1, keepdim=True)
        tokens = torch.randint(11, (rows, length), generator=generator)
        got = answer(table.clone(), tokens.clone())
        assert type(got) is torch.Tensor and got.shape == (rows, length, d)
        silent = answer(torch.zeros_like(table), tokens.clone())
        assert torch.allclose(silent, sinusoidal(torch.arange(length), d, dtype=table.dtype), atol=1e-5)
        words = got - silent
        assert torch.allclose(
            words.norm(dim=-1).square(), torch.tensor(float(d), dtype=table.dtype), atol=1e-3
        )
        assert torch.allclose(
            (words * table[tokens]).sum(dim=-1).square(), words.norm(dim=-1).square(), atol=1e-3
        )
        assert (words * table[tokens]).sum(dim=-1).min() > 0
