"""Chapter 1's figures of measured data, from data that is made up."""

import torch

from posenc.chapters.permutation_invariance import figures


def norms_by_position():
    seen = torch.arange(1.0, 65.0)
    return figures.norms_by_position(2 * seen**-0.5, torch.full((64,), 0.5))


def right_by_places():
    shares = torch.arange(9.0)[:, None] / 8 * torch.ones(9)
    return figures.right_by_places(shares.fill_diagonal_(torch.nan))
