"""Chapter 5's figures of measured data, from data that is made up."""

import torch

from posenc.chapters.longer_than_trained import figures
from posenc.chapters.longer_than_trained.judging import ROWS


def shares_by_position():
    shares = torch.linspace(1, 0.1, 253) * torch.tensor([[1.0], [0.8]])
    return figures.shares_by_position({"rotary": shares, "none": 1 - shares})


def dots():
    seeds = torch.tensor([0.3, 0.5, 0.9])
    values = {"rotary": [seeds, seeds / 2], "none": [1 - seeds, seeds]}
    return figures.dots(values, series=["before", "after"])


def needles():
    shares = torch.tensor([[1.0, 0.8, 0.3], [0.9, 0.7, 0.2]])
    found = {"rotary": shares, "none": shares / 3}
    found = {"recall": found, "the newest": {name: 1 - each for name, each in found.items()}}
    return figures.needles(found, guessing={"recall": 1 / 12, "the newest": 0.5})


def dilution():
    return figures.dilution(torch.linspace(1, 0.4, 5)[:, None] ** torch.tensor([[1.0, 2.0]]))


def worth():
    rows = {"as trained": 0.2, "PI": 0.6, "NTK": 0.9}
    return figures.worth({name: [torch.tensor([share, share / 2])] * 4 for name, share in rows.items()})


def card():
    rows = {"a": 0.2, "b": 0.9}
    return figures.card({name: dict.fromkeys(ROWS, share) for name, share in rows.items()})
