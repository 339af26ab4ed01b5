"""What chapter 6 asks: places in a count, axial angles, a second difference, a pair's stripes, an image in a text."""

import math
from functools import partial

import torch
from torch import Tensor

from posenc.additive import frequencies
from posenc.axes import axial, grid, text_and_images
from posenc.lesson.exercises import Answer, difference, exercise, normal, wrong


@exercise(
    "Count the patch's number first: width·row + column. Then take `back` off, and ask which patch has that number.",
    "A number tells its row by a division without remainder, and its column by the remainder.",
    """Both work on whole tensors. Rows and columns apart, and together again:
>>> row, column = torch.tensor([[4, 0], [5, 1]]).unbind(-1)
>>> row.tolist(), torch.stack([row, column], dim=-1).tolist()
([4, 5], [[4, 0], [5, 1]])""",
    well_done="the same step back lands on another offset at every width, and at the start of a row it wraps.",
)
def standing_back(answer: Answer) -> None:
    for width, back in ((8, 13), (12, 6), (5, 1), (7, 23)):
        places = torch.tensor([[4, 0], [4, width - 1], [5, 1], [9, 3]])
        row, column = places.unbind(-1)
        got = answer.tensor(places, back, width, shape=places.shape, dtype=torch.int64)
        same, numbers = partial(torch.equal, got), width * row + column
        right = _patch(numbers - back, width)
        if same(right):
            continue
        if same(right.flip(-1)):
            wrong("row and column have changed places: coordinates are (row, column)")
        if same(_patch(numbers + back, width)):
            wrong("that patch comes later: a step back makes the number smaller")
        if same(places - torch.tensor([0, back])):
            wrong(
                "the column alone moves, and becomes negative: before the first of a row stands the last of the row above"
            )
        if same(places - torch.tensor([back // width, back % width])):
            wrong("it forgets the wrap: where the column falls below 0, one row more is used up")
        if same(torch.stack([row - back // width, (column - back) % width], dim=-1)):
            wrong("the column wraps and the row does not: where the column falls below 0, one row more is used up")
        if same(_patch(numbers + row - back, width + 1)):
            wrong("it counts width + 1 patches a row: the columns go from 0 to width - 1, and that makes width")
        here = (got != right).any(-1).nonzero()[0].item()
        wrong(
            f"{back} back from {places[here].tolist()} in rows of {width} is not {got[here].tolist()}: count there by hand"
        )


def _patch(numbers: Tensor, width: int) -> Tensor:
    return torch.stack([numbers // width, numbers % width], dim=-1)


@exercise(
    "Half of the pairs turn with the row, half with the column. Write the angles of one half first.",
    "The half is a rotary encoding of its own, of a head of head_dim / 2 dimensions: `angles` gives its head_dim / 4 pairs, if you hand it that size, and the base.",
    """Two tensors of angles side by side:
>>> torch.cat([torch.zeros(3, 2), torch.ones(3, 2)], dim=-1).shape
torch.Size([3, 4])""",
    well_done="rows and columns have the same speeds, and each its own pairs.",
)
def axial_angles(answer: Answer) -> None:
    head_dim = 16
    places = torch.tensor([[0, 0], [1, 0], [0, 1], [5, 3], [1000, 2000]])
    for base in (10.0, 10_000.0):
        got = answer.tensor(places, head_dim, base, shape=(len(places), head_dim // 2))
        right, same = axial(places, head_dim, base=base), partial(torch.allclose, got, rtol=1e-9, atol=1e-9)
        if same(right):
            continue
        if torch.allclose(got, right, rtol=0, atol=1e-3):
            wrong("right near 0, and rounded far away: keep the speeds and the angles in float64")
        row, column = places.double().unbind(-1)
        speeds = frequencies(head_dim, base=base)
        if same(axial(places.flip(-1), head_dim, base=base)):
            wrong("rows and columns have changed places: the first pairs turn with the row")
        if same(torch.cat([row[:, None] * speeds[:4], column[:, None] * speeds[4:]], dim=-1)):
            wrong(
                "one list of speeds is cut in two, so that columns get the slow ones: both halves have the same speeds, those of a head of head_dim / 2"
            )
        if same(torch.cat([row[:, None] * speeds[:4], column[:, None] * speeds[:4]], dim=-1)):
            wrong(
                "the pairs slow down too little: a half has head_dim / 2 dimensions, so pair i has base^(-4i/head_dim)"
            )
        if same(right.unflatten(-1, (2, -1)).mT.flatten(-2)):
            wrong("rows and columns take turns: that is a layout too, but here the first half belongs to the row")
        if same((row + column)[:, None] * speeds):
            wrong("every pair turns with row + column: (0, 1) and (1, 0) then are one place")
        if torch.allclose(got, got[:, :1].expand_as(got)) or same(right / right[-1] * got[-1]):
            wrong(
                f"the angles grow with the places as they should, but not at the speeds base^(-4i/head_dim): for base {base:g} a row turns the pairs 0 to 3 by {_rounded(got[1, :4])}, and should by {_rounded(right[1, :4])}"
            )
        wrong(
            f"these are not the axial angles: the pairs 0 to 3 are row·speed, the pairs 4 to 7 column·speed; for {places.tolist()}, {difference(got, right)}"
        )


def _rounded(numbers: Tensor) -> list[float]:
    return [round(number, 3) for number in numbers.tolist()]


@exercise(
    "Take two patches that differ by a row and a column, and the two that share a row or a column with both.",
    "Where s(r, c) = f(r) + g(c), what is left of s(r, c) + s(r+1, c+1) − s(r, c+1) − s(r+1, c)?",
    """All neighbours of a row at once, by slices. A table has two axes to slice:
>>> row = torch.tensor([1.0, 4.0, 9.0])
>>> (row[1:] - row[:-1]).tolist()
[3.0, 5.0]""",
    well_done="it is 0 where rows and columns only add up.",
)
def second_difference(answer: Answer) -> None:
    scores = normal(4, 6)
    first, below = scores[:-1], scores[1:]
    got = answer.tensor(scores, shape=(3, 5))
    same = partial(torch.allclose, got, atol=1e-9)
    right = first[:, :-1] + below[:, 1:] - first[:, 1:] - below[:, :-1]
    if same(right):
        return
    if same(-right):
        wrong("every sign is the other way round: s(r, c) and s(r+1, c+1) come with a plus")
    if same(first[:, :-1] + below[:, 1:] + first[:, 1:] + below[:, :-1]):
        wrong("that is the sum of the four: two of them come with a minus")
    if same(below[:, 1:] - first[:, :-1]):
        wrong("that is one step down the diagonal: the two other corners are missing")
    if same((below - first)[:, :-1]) or same((scores[:, 1:] - scores[:, :-1])[:-1]):
        wrong("that is a first difference: take the difference of two of them")
    if same(below[:, :-1] + first[:, :-1] - first[:, 1:] - below[:, 1:]) or same(
        first[:, :-1] + first[:, 1:] - below[:, :-1] - below[:, 1:]
    ):
        wrong("the pluses stand on one side: they belong on the corners of a diagonal")
    wrong(f"compare one entry by hand, s(0, 0) + s(1, 1) − s(0, 1) − s(1, 0): {difference(got, right)}")


@exercise(
    "Going one wavelength in its direction, the pair makes a whole turn: 2π.",
    "A step of one row is a step of cos(direction) in the direction; a step of one column is one of sin(direction).",
    "Try the ends. With direction 0 and wavelength 8, eight rows are a whole turn, and columns turn nothing; with direction π/2 it is the other way round.",
    well_done="two numbers a pair are all that mixed angles need.",
)
def pair_steps(answer: Answer) -> None:
    for direction, wavelength in ((0.5, 5.0), (0.0, 4.0), (2.0, 3.0), (math.pi / 2, 8.0)):
        got = answer.tensor(direction, wavelength, shape=(2,))
        wave = torch.tensor([math.cos(direction), math.sin(direction)], dtype=torch.float64)
        same = partial(torch.allclose, got, atol=1e-6)
        right = 2 * math.pi / wavelength * wave
        if torch.allclose(got, right, rtol=0, atol=1e-12):
            continue
        if same(right):
            wrong("right to six digits: build the tensor in torch.float64")
        if same(right.flip(0)):
            wrong("row and column have changed places: a direction of 0 is down, along the rows")
        if same(wave / wavelength):
            wrong("that counts in turns: a whole turn is 2π radians")
        if same(2 * math.pi * wavelength * wave) or same(wavelength * wave):
            wrong("a longer wavelength makes it turn faster: divide by the wavelength")
        if same(wave):
            wrong("the wavelength is not used")
        across = torch.tensor([-wave[1], wave[0]]) * 2 * math.pi / wavelength
        if same(across) or same(-across):
            wrong("that runs along the stripes: the angle grows across them, in the direction")
        small = math.radians(direction)
        degrees = torch.tensor([math.cos(small), math.sin(small)], dtype=torch.float64)
        if same(2 * math.pi / wavelength * degrees):
            wrong("the direction is taken for degrees: it is in radians already")
        wrong(f"direction {direction:.2f}, wavelength {wavelength:g} is not {_rounded(got)}: {difference(got, right)}")


@exercise(
    "Write the three parts apart, each of shape (tokens, 3), and put them together with torch.cat.",
    "In the image, time stays at the coordinate that a next token of text would have had. Rows and columns start there.",
    "How many coordinates does an image use up? Its longer side. The text goes on at the largest coordinate + 1.",
    """The rows and the columns of a grid:
>>> from posenc.axes import grid
>>> grid(2, 2, start=(7, 7)).tolist()
[[7, 7], [7, 8], [8, 7], [8, 8]]""",
    well_done="an image of 24 × 24 patches uses up 24 coordinates, not 576.",
)
def places_in_text(answer: Answer) -> None:
    for before, rows, columns, after in ((3, 2, 4, 3), (4, 5, 2, 2), (0, 3, 3, 1), (2, 1, 1, 2)):
        got = answer.tensor(before, rows, columns, after, shape=(before + rows * columns + after, 3), dtype=torch.int64)
        right = text_and_images(before, (rows, columns), after)
        if torch.equal(got, right):
            continue
        text, image, rest = got.tensor_split([before, before + rows * columns])
        if not torch.equal(text, right[:before]):
            wrong(
                f"the text before the image: token 0 is at (0, 0, 0), token 1 at (1, 1, 1), and so on; yours are at {text[:2].tolist()} …"
            )
        patches = grid(rows, columns, start=(before, before))
        if not torch.equal(image, right[before : before + rows * columns]):
            if torch.equal(image[:, 1:], patches - before) and before:
                wrong("the image's rows and columns start at 0: they start where the text stopped, as its time does")
            if torch.equal(image[:, [2, 1]], patches):
                wrong("row and column have changed places: the three are (time, row, column)")
            if torch.equal(image[:, 1:], patches):
                wrong("the time of the image: it stands still, at the coordinate after the last token before it")
            r, c = divmod((image != right[before : before + rows * columns]).any(-1).nonzero()[0].item(), columns)
            wrong(
                f"the image, {rows} × {columns} after {before} tokens: patch ({r}, {c}) is at {image[r * columns + c].tolist()}, and (before, before + r, before + c) is {[before, before + r, before + c]}"
            )
        went_on = int(rest[0, 0])
        if not torch.equal(rest, went_on + torch.arange(after)[:, None].expand(-1, 3)):
            wrong("the text after the image: its three coordinates are equal, and grow by 1 a token")
        if went_on == before + rows * columns:
            wrong("the text goes on after rows·columns: an image uses up only its longer side")
        if went_on == before + max(rows, columns) - 1:
            wrong("the text goes on at the largest coordinate of the image, which is taken: add 1")
        if went_on in (before + rows, before + columns):
            wrong(
                "the text goes on after one side of the image: the longer one counts, else a coordinate is used twice"
            )
        wrong(
            f"the text goes on at {went_on}, and the largest coordinate before it is {right[:-after].max()}: add 1 to that"
        )


@exercise(
    "Without an image, the next token has the coordinate `tokens`: they count from 0.",
    "An image has rows·columns patches in the sequence and uses up max(rows, columns) coordinates.",
    "An example: 10 tokens, of which 6 are the patches of an image of 2 × 3. Four are text, the image uses up three coordinates, so the next token stands at 7.",
    well_done="a cache that counts tokens must add this difference, the delta, to every token that it decodes.",
)
def next_coordinate(answer: Answer) -> None:
    for tokens, images in ((12, []), (60, [(6, 6)]), (50, [(4, 10)]), (90, [(2, 3), (5, 4), (3, 7)])):
        got = answer.number(tokens, images)
        patches, sides = sum(r * c for r, c in images), sum(max(image) for image in images)
        if got == tokens + sides - patches:
            continue
        if got == tokens:
            wrong("that is the number of tokens: an image has more patches than it uses up coordinates")
        if got == tokens - patches:
            wrong("the images' patches are taken off, and their coordinates are missing: add the longer sides")
        if got == tokens + sides:
            wrong("the longer sides are added, but the patches still count as tokens: take them off")
        if got == sides - patches:
            wrong("that is the delta alone: add it to the number of tokens")
        if got == tokens + sides - patches - 1:
            wrong("that is the coordinate of the last token: the next one is 1 further")
        if images and got == tokens - patches + sum(map(min, images)):
            wrong("an image uses up as many coordinates as its longer side has patches, not its shorter")
        if images and got in (tokens + max(images[i]) - math.prod(images[i]) for i in (0, -1)):
            wrong("only one of the images is counted")
        seen = f"with the images {images}" if images else "without an image"
        wrong(f"{tokens} tokens {seen} lead to {got:g}: tokens, less the patches, plus the longer sides")
