"""Chapter 6's checks: every mistake is planted and must be called by its name."""

import math
from functools import partial

import torch

from posenc.axes import axial, grid, text_and_images
from posenc.rotary import angles

# --- 6.1 standing_back


def right_back(places, back, width, *, sign=-1, patch=lambda n, w: (n // w, n % w), more=0):
    row, column = places.unbind(-1)
    return torch.stack(patch((width + more) * row + column + sign * back, width + more), dim=-1)


def no_wrap(places, back, width):
    return places - torch.tensor([back // width, back % width])


def half_a_wrap(places, back, width):
    row, column = places.unbind(-1)
    return torch.stack([row - back // width, (column - back) % width], dim=-1)


# --- 6.2 axial_angles


def right_axial(places, head_dim, base):
    return torch.cat([angles(places[:, axis], head_dim // 2, base=base) for axis in (0, 1)], dim=-1)


def with_speeds(first, second, *, dtype=torch.float64):
    """Angles row·speeds and column·speeds; each is i and d → the exponent of the base."""

    def answer(places, head_dim, base):
        i = torch.arange(head_dim // 4, dtype=dtype)
        parts = [places[:, axis, None].to(dtype) * base ** -e(i, head_dim) for axis, e in ((0, first), (1, second))]
        return torch.cat(parts, dim=-1).double()

    return answer


def exponent(i, d):
    return 4 * i / d


# --- 6.3 second_difference


def corners(a, b, c, d):
    """a·s(r, c) + b·s(r, c+1) + c·s(r+1, c) + d·s(r+1, c+1)."""
    return lambda s: a * s[:-1, :-1] + b * s[:-1, 1:] + c * s[1:, :-1] + d * s[1:, 1:]


# --- 6.4 pair_steps


def right_steps(direction, wavelength, *, turn=2 * math.pi, power=-1, wave=lambda a: (math.cos(a), math.sin(a))):
    return turn * wavelength**power * torch.tensor(wave(direction), dtype=torch.float64)


# --- 6.5 places_in_text


def right_places(before, rows, columns, after, *, used=max, start=None, time=None, order=(0, 1)):
    text = torch.arange(before)[:, None].expand(-1, 3)
    start = before if start is None else start
    patches = grid(rows, columns, start=(start, start))[:, order]
    time = torch.full((len(patches), 1), before) if time is None else time(before, patches)
    rest = (before + used(rows, columns) + torch.arange(after))[:, None].expand(-1, 3)
    return torch.cat([text, torch.cat([time, patches], dim=-1), rest])


def places_with(**options):
    return partial(right_places, **options)


def text_from_one(*numbers):
    return right_places(*numbers) + 1


def columns_only_at_the_end(before, rows, columns, after):
    places = right_places(before, rows, columns, after)
    places[-after:, 1:] -= 1
    return places


# --- 6.6 next_coordinate


def right_next(tokens, images, *, patches=-1, sides=1, count=1, more=0, which=slice(None)):
    images = images[which]
    return count * tokens + patches * sum(r * c for r, c in images) + sides * sum(max(image) for image in images) + more


def next_with(**options):
    return partial(right_next, **options)


def no_column_7(places, back, width):
    right = right_back(places, back, width)
    return torch.where(places[:, 1:] == 7, torch.tensor([3, 7]), right)


PLANTED = [
    ("standing_back", lambda *a: right_back(*a).flip(-1), "row and column have changed places"),
    ("standing_back", partial(right_back, sign=1), "that patch comes later"),
    ("standing_back", lambda p, back, w: p - torch.tensor([0, back]), "the column alone moves"),
    ("standing_back", no_wrap, "it forgets the wrap"),
    ("standing_back", half_a_wrap, "the column wraps and the row does not"),
    ("standing_back", partial(right_back, more=1), "it counts width + 1 patches a row"),
    ("standing_back", lambda *a: right_back(*a) + 1, "13 back from [4, 0] in rows of 8 is not [3, 4]"),
    ("standing_back", no_column_7, "13 back from [4, 7] in rows of 8 is not [3, 7]: count there"),
    ("axial_angles", lambda p, *a: right_axial(p.flip(-1), *a), "rows and columns have changed places"),
    (
        "axial_angles",
        with_speeds(lambda i, d: 2 * i / d, lambda i, d: 2 * (i + d // 4) / d),
        "one list of speeds is cut in two",
    ),
    ("axial_angles", with_speeds(*[lambda i, d: 2 * i / d] * 2), "the pairs slow down too little"),
    ("axial_angles", lambda *a: right_axial(*a).unflatten(-1, (2, -1)).mT.flatten(-2), "rows and columns take turns"),
    ("axial_angles", lambda p, d, base: angles(p.sum(-1), d, base=base), "every pair turns with row + column"),
    ("axial_angles", with_speeds(*[lambda i, d: 0 * i] * 2), "not at the speeds"),
    (
        "axial_angles",
        with_speeds(*[lambda i, d: 8 * i / d] * 2),
        "by [1.0, 0.316, 0.1, 0.032], and should by [1.0, 0.562",
    ),
    ("axial_angles", lambda *a: right_axial(*a) + 1, "these are not the axial angles"),
    ("axial_angles", with_speeds(exponent, exponent, dtype=torch.float32), "rounded far away"),
    ("second_difference", corners(-1, 1, 1, -1), "every sign is the other way round"),
    ("second_difference", corners(1, 1, 1, 1), "that is the sum of the four"),
    ("second_difference", corners(-1, 0, 0, 1), "one step down the diagonal"),
    ("second_difference", corners(-1, 0, 1, 0), "that is a first difference"),
    ("second_difference", corners(-1, 1, 0, 0), "that is a first difference"),
    ("second_difference", corners(1, -1, 1, -1), "the pluses stand on one side"),
    ("second_difference", corners(1, 1, -1, -1), "the pluses stand on one side"),
    ("second_difference", corners(2, -2, -2, 2), "s(1, 0): every number is 2 times"),
    ("pair_steps", lambda *a: right_steps(*a).flip(0), "row and column have changed places"),
    ("pair_steps", partial(right_steps, turn=1), "that counts in turns"),
    ("pair_steps", partial(right_steps, power=1), "a longer wavelength makes it turn faster"),
    ("pair_steps", partial(right_steps, power=1, turn=1), "a longer wavelength makes it turn faster"),
    ("pair_steps", partial(right_steps, power=0, turn=1), "the wavelength is not used"),
    ("pair_steps", partial(right_steps, wave=lambda a: (-math.sin(a), math.cos(a))), "that runs along the stripes"),
    ("pair_steps", partial(right_steps, wave=lambda a: (math.sin(a), -math.cos(a))), "that runs along the stripes"),
    ("pair_steps", lambda a, w: right_steps(math.radians(a), w), "taken for degrees"),
    ("pair_steps", lambda *a: right_steps(*a).float().double(), "right to six digits"),
    ("pair_steps", lambda *a: -right_steps(*a), "is not [-1.103, -0.602]: every number has the other sign"),
    ("places_in_text", text_from_one, "and so on; yours are at [[1, 1, 1], [2, 2, 2]]"),
    ("places_in_text", places_with(start=0), "rows and columns start at 0"),
    ("places_in_text", places_with(order=(1, 0)), "row and column have changed places"),
    (
        "places_in_text",
        places_with(time=lambda before, patches: before + torch.arange(len(patches))[:, None]),
        "the time of the image",
    ),
    (
        "places_in_text",
        places_with(start=1, time=lambda before, patches: torch.zeros(len(patches), 1, dtype=torch.long)),
        "the image, 2 × 4 after 3 tokens: patch (0, 0) is at [0, 1, 1]",
    ),
    ("places_in_text", columns_only_at_the_end, "its three coordinates are equal"),
    ("places_in_text", places_with(used=lambda r, c: r * c), "an image uses up only its longer side"),
    ("places_in_text", places_with(used=lambda r, c: max(r, c) - 1), "which is taken: add 1"),
    ("places_in_text", places_with(used=min), "after one side of the image"),
    ("places_in_text", places_with(used=lambda r, c: c), "after one side of the image"),
    ("places_in_text", places_with(used=lambda r, c: r + c), "the largest coordinate before it is 6: add 1"),
    ("next_coordinate", next_with(patches=0, sides=0), "that is the number of tokens"),
    ("next_coordinate", next_with(sides=0), "the images' patches are taken off"),
    ("next_coordinate", next_with(patches=0), "the patches still count as tokens"),
    ("next_coordinate", next_with(count=0), "that is the delta alone"),
    ("next_coordinate", next_with(more=-1), "the coordinate of the last token"),
    ("next_coordinate", next_with(which=slice(1)), "only one of the images is counted"),
    ("next_coordinate", next_with(which=slice(-1, None)), "only one of the images is counted"),
    ("next_coordinate", lambda n, images: n + sum(min(i) - i[0] * i[1] for i in images), "not its shorter"),
    ("next_coordinate", next_with(more=7), "12 tokens with the images [] lead to 19"),
]

RIGHT = [
    ("standing_back", right_back),
    ("axial_angles", right_axial),
    ("axial_angles", with_speeds(exponent, exponent)),
    ("axial_angles", lambda p, d, base: axial(p, d, base=base)),
    ("second_difference", corners(1, -1, -1, 1)),
    ("second_difference", lambda s: s.diff(dim=0).diff(dim=1)),
    ("pair_steps", right_steps),
    ("places_in_text", right_places),
    ("places_in_text", lambda before, rows, columns, after: text_and_images(before, (rows, columns), after)),
    ("next_coordinate", right_next),
]
