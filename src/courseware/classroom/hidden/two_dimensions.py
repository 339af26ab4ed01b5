"""Hidden tests of chapter 6: what every right answer has, on inputs that the checks don't use, and no answer.

Each function raises where an answer is wrong. It is copied into a learner's notebook to give marks, and learners
read it afterwards, so it imports what it needs and holds no solution.
"""


def standing_back(answer):
    """In a picture that is written down row by row, it is the patch that stands so many earlier in the list."""
    import torch

    for rows, width in ((9, 4), (6, 11), (7, 2)):
        written = [[row, column] for row in range(rows) for column in range(width)]
        for back in (1, width - 1, width, 2 * width + 1):
            got = answer(torch.tensor(written[back:]), back, width)
            assert type(got) is torch.Tensor and got.dtype == torch.int64
            assert got.tolist() == written[: len(written) - back]


def axial_angles(answer):
    """A step down turns the first half of the pairs alone, a step right the second, at the same even speeds."""
    import torch

    for head_dim, base in ((8, 100.0), (16, 10.0), (64, 500_000.0)):
        corners = torch.tensor([[0, 0], [1, 0], [0, 1], [7, -3]])
        origin, down, right, both = answer(corners, head_dim, base)
        assert origin.dtype == torch.float64 and origin.shape == (head_dim // 2,)
        pairs = head_dim // 4
        assert (origin == 0).all() and (down[pairs:] == 0).all() and (right[:pairs] == 0).all()
        assert torch.allclose(down[:pairs], right[pairs:]) and torch.allclose(both, 7 * down - 3 * right)
        assert abs(down[0] - 1) < 1e-12
        ratio = torch.tensor(1 / base, dtype=torch.float64)
        assert torch.allclose((down[1:pairs] / down[: pairs - 1]) ** pairs, ratio, rtol=1e-9)
        far = answer(corners * 100_000, head_dim, base)
        assert torch.allclose(far, 100_000 * answer(corners, head_dim, base), rtol=1e-12)


def second_difference(answer):
    """Nothing is left of a row part plus a column part, and of row times column 1 everywhere."""
    import torch

    generator = torch.Generator().manual_seed(80)
    for rows, columns in ((2, 2), (3, 7), (5, 4)):
        row = torch.arange(rows, dtype=torch.float64)[:, None]
        column = torch.arange(columns, dtype=torch.float64)
        f, g = (torch.randn(n, generator=generator, dtype=torch.float64) for n in (rows, columns))
        got = answer(row * column + f[:, None] + g)
        assert type(got) is torch.Tensor and got.shape == (rows - 1, columns - 1)
        assert torch.allclose(got, torch.ones(1, dtype=torch.float64), atol=1e-9)


def pair_steps(answer):
    """A wavelength in the direction is a whole turn, and any step across it turns nothing."""
    import cmath
    import random

    import torch

    numbers = random.Random(81)
    for _ in range(20):
        direction, wavelength = numbers.uniform(-3, 3), numbers.uniform(2, 30)
        got = answer(direction, wavelength)
        assert type(got) is torch.Tensor and got.shape == (2,) and got.dtype == torch.float64
        row, column = got.tolist()
        there = cmath.rect(wavelength, direction)  # real part down, imaginary part to the right
        assert abs(there.real * row + there.imag * column - 2 * cmath.pi) < 1e-9
        assert abs(there.imag * row - there.real * column) < 1e-9


def places_in_text(answer):
    """Text counts, each patch is where the first is plus its row and column, and nothing is used twice."""
    import torch

    for before, rows, columns, after in ((1, 3, 6, 2), (5, 7, 2, 4), (2, 4, 4, 1)):
        got = answer(before, rows, columns, after)
        patches = rows * columns
        assert type(got) is torch.Tensor and got.dtype == torch.int64
        assert got.shape == (before + patches + after, 3)
        text, image, rest = got.tensor_split([before, before + patches])
        assert all(token.tolist() == [n] * 3 for n, token in enumerate(text))
        assert image[0].tolist() == [before] * 3
        steps = [[0, r, c] for r in range(rows) for c in range(columns)]
        assert (image - image[0]).tolist() == steps
        assert rest[0].tolist() == [int(image.max()) + 1] * 3
        assert (rest.diff(dim=0) == 1).all()


def next_coordinate(answer):
    """It is where a text that was laid out token by token goes on."""
    from posenc.axes import text_and_images

    for parts in ([4], [3, (5, 5), 2], [(2, 9), 6, (4, 3), (1, 1), 1], [1, (8, 2), 1, (2, 8)]):
        places = text_and_images(*parts)
        images = [part for part in parts if not isinstance(part, int)]
        assert float(answer(len(places), images)) == float(places.max()) + 1
