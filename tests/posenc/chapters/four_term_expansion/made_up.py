"""Chapter 3's figures of measured data, from data that is made up."""

import torch

from posenc.chapters.four_term_expansion import figures


def missed():
    shares = torch.tensor([[0.6, 0.1, 0.2, 0.1], [0.5, 0.2, 0.1, 0.2]])
    removed = {term: torch.tensor([0.1, 0.3]) * n for n, term in enumerate([*figures.NAMES, "both mixed"])}
    less = {term: values / 2 for term, values in removed.items()}
    return figures.missed({"a": shares, "b": 1 - shares}, {"a": shares / 2, "b": shares}, {"a": removed, "b": less})


def wanted_by_places():
    own = torch.linspace(-2, 2, 10).sin() + torch.linspace(-0.5, 1, 400).view(2, 2, 10, 10).square()
    return figures.wanted_by_places(own, "to be, or\n")


def position_maps():
    before = torch.linspace(-2, 2, 400).view(2, 2, 10, 10)
    return figures.position_maps({"a": before, "b": before.mT}, {"a": before / 2, "b": -before})


def subspaces():
    steps, ways = (0, 500, 1500), ("a", "another way")
    dots = torch.linspace(0, 1, 36).view(2, 3, 2, 3)  # ways, steps, seeds, places
    table = {way: dict(zip(steps, dots[n])) for n, way in enumerate(ways)}
    sizes = {
        way: {step: torch.tensor([25 + n, 5 + step // 100]).expand(2, 3, 2) for step in steps}
        for n, way in enumerate(ways)
    }
    within, smallest = (
        {way: {step: most * seeds for step, seeds in steps.items()} for way, steps in table.items()}
        for most in (0.7, 90)
    )
    return figures.subspaces(within, smallest, sizes)
