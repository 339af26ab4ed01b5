"""Chapter 6's planted mistakes, and right answers of another kind."""

import torch
from slips import mistakes

from posenc.axes import axial, text_and_images


def with_speeds(first, second, *, dtype=torch.float64):
    """Angles row·speeds and column·speeds; each is i and d → the exponent of the base."""

    def answer(places, head_dim, base):
        i = torch.arange(head_dim // 4, dtype=dtype)
        parts = [places[:, axis, None].to(dtype) * base ** -e(i, head_dim) for axis, e in ((0, first), (1, second))]
        return torch.cat(parts, dim=-1).double()

    return answer


def exponent(i, d):
    return 4 * i / d


PLANTED = mistakes(
    standing_back={
        "row and column have changed places": "result.flip(-1)",
        "that patch comes later": "- back → + back",
        "the column alone moves": "places - torch.tensor([0, back])",
        "it forgets the wrap": "places - torch.tensor([back // width, back % width])",
        "the column wraps and the row does not": (
            "torch.stack([places[:, 0] - back // width, (places[:, 1] - back) % width], dim=-1)"
        ),
        "it counts width + 1 patches a row": "worked(places, back, width + 1)",
        "13 back from [4, 0] in rows of 8 is not [3, 4]": "result + 1",
        "13 back from [4, 7] in rows of 8 is not [3, 7]: count there": (
            "torch.where(places[:, 1:] == 7, torch.tensor([3, 7]), result)"
        ),
    },
    axial_angles={
        "rows and columns have changed places": "row, column → column, row",
        "one list of speeds is cut in two": with_speeds(lambda i, d: 2 * i / d, lambda i, d: 2 * (i + d // 4) / d),
        "the pairs slow down too little": with_speeds(*[lambda i, d: 2 * i / d] * 2),
        "rows and columns take turns": "result.unflatten(-1, (2, -1)).mT.flatten(-2)",
        "every pair turns with row + column": "angles(places.sum(-1), head_dim, base=base)",
        "not at the speeds": "base=base → base=1.0",
        "by [1.0, 0.316, 0.1, 0.032], and should by [1.0, 0.562": "base=base → base=base**2",
        "these are not the axial angles": "result + 1",
        "rounded far away": with_speeds(exponent, exponent, dtype=torch.float32),
    },
    second_difference={
        "every sign is the other way round": "-result",
        "that is the sum of the four": "- scores → + scores",
        "one step down the diagonal": "scores[1:, 1:] - scores[:-1, :-1]",
        "that is a first difference": "scores.diff(dim=0)[:, :-1]",
        "that is a first difference: take": "scores.diff(dim=1)[:-1]",
        "the pluses stand on one side": "+ scores[1:, 1:] - scores[:-1, 1:] → - scores[1:, 1:] + scores[:-1, 1:]",
        "the pluses stand on one side: they": "+ scores[1:, 1:] - → - scores[1:, 1:] -; - scores[1:, :-1] → + scores[1:, :-1]",
        "s(1, 0): every number is 2 times": "2 * result",
    },
    pair_steps={
        "row and column have changed places": "result.flip(0)",
        "that counts in turns": "2 * math.pi → 1",
        "a longer wavelength makes it turn faster": "/ wavelength → * wavelength",
        "a longer wavelength makes it turn faster: divide": "2 * math.pi / wavelength → wavelength",
        "the wavelength is not used": "2 * math.pi / wavelength * →",
        "that runs along the stripes": "[math.cos(direction), math.sin → [-math.sin(direction), math.cos",
        "that runs along the stripes: the": "[math.cos(direction), math.sin → [math.sin(direction), -math.cos",
        "taken for degrees": "worked(math.radians(direction), wavelength)",
        "right to six digits": "result.float().double()",
        "is not [-1.103, -0.602]: every number has the other sign": "-result",
    },
    places_in_text={
        "and so on; yours are at [[1, 1, 1], [2, 2, 2]]": "result + 1",
        "rows and columns start at 0": "start=(before, before) → start=(0, 0)",
        "row and column have changed places": "patches], → patches.flip(1)],",
        "the time of the image": "torch.full((len(patches), 1), before) → before + torch.arange(len(patches))[:, None]",
        "the image, 2 × 4 after 3 tokens: patch (0, 0) is at [0, 1, 1]": "start=(before, before) → start=(1, 1); 1), before) → 1), 0)",
        "its three coordinates are equal": "rest[:, None].expand(-1, 3) → rest[:, None] - torch.tensor([0, 1, 1])",
        "an image uses up only its longer side": "max(rows, columns) → rows * columns",
        "which is taken: add 1": "max(rows, columns) → max(rows, columns) - 1",
        "after one side of the image": "max( → min(",
        "after one side of the image: the": "max(rows, columns) → columns",
        "the largest coordinate before it is 6: add 1": "max(rows, columns) → rows + columns",
    },
    next_coordinate={
        "that is the number of tokens": "tokens",
        "the images' patches are taken off": "max(rows, columns) →",
        "the patches still count as tokens": "- rows * columns →",
        "that is the delta alone": "tokens + →",
        "the coordinate of the last token": "result - 1",
        "only one of the images is counted": "in images → in images[:1]",
        "only one of the images": "in images → in images[-1:]",
        "not its shorter": "max( → min(",
        "12 tokens without an image lead to 19": "result + 7",
        "60 tokens with the images [(6, 6)] lead to 37": "result + 7 * len(images)",
    },
)

RIGHT = [
    ("axial_angles", with_speeds(exponent, exponent)),
    ("axial_angles", lambda p, d, base: axial(p, d, base=base)),
    ("second_difference", lambda s: s.diff(dim=0).diff(dim=1)),
    ("places_in_text", lambda before, rows, columns, after: text_and_images(before, (rows, columns), after)),
]
