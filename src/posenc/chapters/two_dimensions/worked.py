"""Chapter 6's worked solutions, with the names that the notebook has above each exercise."""

import math

import torch

from posenc.axes import grid
from posenc.rotary import angles


def standing_back(places, back, width):
    numbers = width * places[:, 0] + places[:, 1] - back
    return torch.stack([numbers // width, numbers % width], dim=-1)


def axial_angles(places, head_dim, base):
    row, column = places.unbind(-1)
    return torch.cat([angles(row, head_dim // 2, base=base), angles(column, head_dim // 2, base=base)], dim=-1)


def second_difference(scores):
    return scores[:-1, :-1] + scores[1:, 1:] - scores[:-1, 1:] - scores[1:, :-1]


def pair_steps(direction, wavelength):
    step = torch.tensor([math.cos(direction), math.sin(direction)], dtype=torch.float64)
    return 2 * math.pi / wavelength * step


def places_in_text(before, rows, columns, after):
    text = torch.arange(before)[:, None].expand(-1, 3)
    patches = grid(rows, columns, start=(before, before))
    image = torch.cat([torch.full((len(patches), 1), before), patches], dim=-1)
    rest = before + max(rows, columns) + torch.arange(after)
    return torch.cat([text, image, rest[:, None].expand(-1, 3)])


def next_coordinate(tokens, images):
    return tokens + sum(max(rows, columns) - rows * columns for rows, columns in images)
