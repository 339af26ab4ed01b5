"""Hidden tests of chapter 6: what every right answer has, on inputs that the checks don't use, and no answer.

Each function raises where an answer is wrong, and says what it tried. It is copied into a learner's notebook to give
marks, and learners read it afterwards, so it imports what it needs and holds no solution.
"""


def standing_back(answer):
    """In a picture that is written down row by row, it is the patch that stands so many earlier in the list."""
    import torch

    for rows, width in ((9, 4), (6, 11), (7, 2)):
        written = [[row, column] for row in range(rows) for column in range(width)]
        for back in (1, width - 1, width, 2 * width + 1):
            got = answer(torch.tensor(written[back:]), back, width)
            here = f"{back} back in {rows} rows of {width}"
            assert type(got) is torch.Tensor, f"{here}: it returned no tensor, or a Parameter"
            assert got.dtype == torch.int64, f"{here}: the places are {got.dtype}"
            assert got.shape == (len(written) - back, 2), f"{here}: the places have shape {tuple(got.shape)}"
            for start, end, found in zip(written[back:], written, got.tolist()):
                assert found == end, f"{here}: from {start} it comes to {found}, not to {end}"


def axial_angles(answer):
    """A step down turns the first half of the pairs alone, a step right the second, at the same even speeds."""
    import torch

    for head_dim, base in ((8, 100.0), (16, 10.0), (64, 500_000.0)):
        corners = torch.tensor([[0, 0], [1, 0], [0, 1], [7, -3]])
        got = answer(corners, head_dim, base)
        here = f"with a head of {head_dim} and base {base:g}"
        assert type(got) is torch.Tensor or type(got) is torch.nn.Parameter, f"{here} it returned no tensor"
        kind = (tuple(got.shape), got.dtype)
        assert kind == ((4, head_dim // 2), torch.float64), f"{here} shape and dtype of the angles are {kind}"
        origin, down, right, both = got
        pairs = head_dim // 4
        assert (origin == 0).all(), f"{here} the patch (0, 0) is turned"
        assert (down[pairs:] == 0).all(), f"{here} a step down turns pairs of the second half"
        assert (right[:pairs] == 0).all(), f"{here} a step to the right turns pairs of the first half"
        assert torch.allclose(down[:pairs], right[pairs:]), f"{here} rows and columns have different speeds"
        assert torch.allclose(both, 7 * down - 3 * right), f"{here} (7, -3) is not 7 steps down and 3 to the left"
        assert abs(down[0] - 1) < 1e-9, f"{here} pair 0 turns by {down[0]:.9f} a row, not by 1"
        ratio = torch.tensor(1 / base, dtype=torch.float64)
        evenly = torch.allclose((down[1:pairs] / down[: pairs - 1]) ** pairs, ratio, rtol=1e-9)
        assert evenly, (
            f"{here} a row turns the pairs by {down[:pairs].tolist()[:4]} …; the ratio of neighbours is another one"
        )
        far = torch.allclose(answer(corners * 100_000, head_dim, base), 100_000 * got, rtol=1e-12)
        assert far, f"{here} 100,000 steps are not 100,000 times a step"


def second_difference(answer):
    """Nothing is left of a row part plus a column part, and of row times column 1 everywhere."""
    import torch

    generator = torch.Generator().manual_seed(80)
    for rows, columns in ((2, 2), (3, 7), (5, 4)):
        row = torch.arange(rows, dtype=torch.float64)[:, None]
        column = torch.arange(columns, dtype=torch.float64)
        f, g = (torch.randn(n, generator=generator, dtype=torch.float64) for n in (rows, columns))
        got = answer(row * column + f[:, None] + g)
        here = f"for {rows} × {columns} scores, row times column plus what rows and columns add,"
        assert type(got) is torch.Tensor, f"{here} it returned no tensor, or a Parameter"
        assert got.shape == (rows - 1, columns - 1), f"{here} the result has shape {tuple(got.shape)}"
        same = torch.allclose(got, torch.ones(1, dtype=torch.float64), atol=1e-9)
        assert same, f"{here} it is {got.min():.3g} to {got.max():.3g}, and should be 1 everywhere"


def pair_steps(answer):
    """A wavelength in the direction is a whole turn, and any step across it turns nothing."""
    import cmath
    import random

    import torch

    numbers = random.Random(81)
    for _ in range(20):
        direction, wavelength = numbers.uniform(-3, 3), numbers.uniform(2, 30)
        got = answer(direction, wavelength)
        here = f"with direction {direction:.3f} and wavelength {wavelength:.3f}"
        assert type(got) is torch.Tensor, f"{here} it returned no tensor, or a Parameter"
        kind = (tuple(got.shape), got.dtype)
        assert kind == ((2,), torch.float64), f"{here} shape and dtype are {kind}"
        row, column = got.tolist()
        there = cmath.rect(wavelength, direction)  # real part down, imaginary part to the right
        turned = there.real * row + there.imag * column
        assert abs(turned - 2 * cmath.pi) < 1e-9, f"{here} a wavelength turns it by {turned:.9f}, not by 2π"
        across = there.imag * row - there.real * column
        assert abs(across) < 1e-9, f"{here} a step along the stripes turns it by {across:.3g}, not by 0"


def places_in_text(answer):
    """Text counts, each patch is where the first is plus its row and column, and nothing is used twice."""
    import torch

    for before, rows, columns, after in ((1, 3, 6, 2), (5, 7, 2, 4), (2, 4, 4, 1)):
        got = answer(before, rows, columns, after)
        patches = rows * columns
        here = f"with {before} tokens, {rows} × {columns} patches and {after} tokens"
        assert type(got) is torch.Tensor, f"{here} it returned no tensor, or a Parameter"
        kind = (tuple(got.shape), got.dtype)
        assert kind == ((before + patches + after, 3), torch.int64), f"{here} shape and dtype are {kind}"
        text, image, rest = got.tensor_split([before, before + patches])
        counts = all(token.tolist() == [n] * 3 for n, token in enumerate(text))
        assert counts, f"{here} the first text is at {text.tolist()}"
        assert image[0].tolist() == [before] * 3, f"{here} the first patch is at {image[0].tolist()}"
        steps = [[0, r, c] for r in range(rows) for c in range(columns)]
        even = (image - image[0]).tolist() == steps
        assert even, f"{here} a patch is not where the first is plus its row and column"
        goes_on, largest = rest[0].tolist(), int(image.max())
        assert goes_on == [largest + 1] * 3, f"{here} the text goes on at {goes_on}, after {largest}"
        assert (rest.diff(dim=0) == 1).all(), f"{here} the second text does not count by 1"


def next_coordinate(answer):
    """It is where a text that was laid out token by token goes on."""
    from posenc.axes import text_and_images

    for parts in ([4], [3, (5, 5), 2], [(2, 9), 6, (4, 3), (1, 1), 1], [1, (8, 2), 1, (2, 8)]):
        places = text_and_images(*parts)
        images = [part for part in parts if not isinstance(part, int)]
        got, largest = float(answer(len(places), images)), float(places.max())
        here = f"after {len(places)} tokens with the images {images} the largest coordinate is {largest:g}"
        assert got == largest + 1, f"{here}, and the next token is put at {got:g}"
