"""Chapter 2's figures of measured data, from data that is made up."""

import torch

from posenc.chapters.additive_encodings import figures


def amplitude_map():
    live = figures.amplitude_map()
    shares = {(rate, a): torch.tensor([rate / 4, a / 40]) for rate in figures.RATES for a in figures.AMPLITUDES}
    figures.show_shares(live, shares)
    return live
