"""Chapter 4's figures of measured data, from data that is made up."""

import torch

from posenc.chapters.rotary_encoding import figures


def rounding_errors():
    positions = torch.arange(0, 1000, 50)
    errors = {"table rounded": 0.001 + 0.0001 * (positions % 7), "positions rounded": 0.2 * (positions > 256)}
    return figures.rounding_errors(positions, errors)


def by_learning_rate():
    seeds = torch.tensor([2.1, 2.2, 2.25])
    return figures.by_learning_rate(
        {0.01: {0.0: seeds + 0.3, 1.0: seeds + 0.2, "turned": seeds}} | {0.03: {3.0: seeds}}
    )
