"""Chapter 6's figures of measured data, made from made-up data."""

import torch

from posenc.chapters.two_dimensions import figures
from posenc.chapters.two_dimensions.picture import scene
from posenc.lesson.live import Live
from posenc.lesson.palette import ADDED, TURNED


def shares() -> Live:
    """Two members of one family and one of another, at two sizes of the picture."""
    seeds = torch.tensor([0.0, 0.02, 0.1, 0.3])
    right = {"8 × 8": [1 - seeds, 0.9 - seeds, 0.5 + seeds], "8 × 12": [0.1 + seeds, 0.8 - seeds, seeds]}
    return figures.shares(right, series={"counted": TURNED, "axial": TURNED, "table": ADDED}, chance=1 / 12)


def where_they_look() -> Live:
    """One head that looks six back and one that looks one up and two to the right, and models that name what they see."""

    def look(width: int, back: int) -> tuple[torch.Tensor, torch.Tensor]:
        there = (torch.arange(8 * width) - back).clamp(min=0)
        weights = torch.full((8 * width, 8 * width), 0.1 / (8 * width - 1)).scatter(1, there[:, None], 0.9)
        return weights, scene()[:, :width].flatten()[there]

    counted = {width: look(width, 6) for width in range(8, 13)}
    axial = {width: look(width, width - 2) for width in range(8, 13)}
    return figures.where_they_look({"counted": counted, "axial": axial})
