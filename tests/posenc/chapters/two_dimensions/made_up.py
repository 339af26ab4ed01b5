"""Chapter 6's figures of measured data, made from made-up data."""

import torch

from posenc.chapters.two_dimensions import figures
from posenc.lesson.live import Live
from posenc.lesson.palette import ADDED, TURNED


def shares() -> Live:
    """Two members of one family and one of another, at two sizes of the picture."""
    seeds = torch.tensor([0.0, 0.02, 0.1, 0.3])
    right = {"8 × 8": [1 - seeds, 0.9 - seeds, 0.5 + seeds], "8 × 12": [0.1 + seeds, 0.8 - seeds, seeds]}
    return figures.shares(right, series={"counted": TURNED, "axial": TURNED, "table": ADDED}, chance=1 / 12)
