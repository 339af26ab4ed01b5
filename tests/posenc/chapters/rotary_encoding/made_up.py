"""Chapter 4's figures of measured data, from data that is made up."""

import torch

from posenc.chapters.rotary_encoding import figures


def shares_by_position():
    shares = torch.linspace(1, 0, 64).repeat(2, 1) * torch.tensor([[1.0], [0.8]])
    return figures.shares_by_position({"a": shares, "b": 1 - shares}, first=3, trained=32)


def dots():
    seeds = torch.tensor([1.0, 1.2, 2.5])
    values = {"a": [seeds, seeds + 1], "b": [seeds / 2, 4 - seeds]}
    return figures.dots(values, series=["before", "after"], measure="loss", limits=(0, 5))
