"""Chapter 2's figures of measured data, from data that is made up."""

import torch

from posenc.chapters.additive_encodings import figures


def amplitude_curve():
    live = figures.amplitude_curve()
    figures.show_shares(live, {0.25: torch.tensor([0.1, 0.3]), 1.0: torch.tensor([0.6, 0.9])})
    return live
