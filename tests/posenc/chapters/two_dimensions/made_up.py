"""Chapter 6's figures of measured data, from data that is made up."""

import torch

from posenc.chapters.two_dimensions import figures
from posenc.live import ADDED, TURNED


def shares():
    seeds = torch.tensor([0.25, 0.5, 0.9])
    right = {"a": [seeds, 1 - seeds, seeds / 2], "b": [seeds + 0.1, seeds, seeds]}
    return figures.shares(right, series={"added": ADDED, "axial": TURNED, "mixed": TURNED}, chance=0.25)
