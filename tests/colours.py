"""What colour-blind readers see of a figure's colours."""

import itertools
from collections.abc import Iterator

import numpy as np
from matplotlib.colors import to_rgb

APART = 30  # of CIE76: so far apart two colours are told from each other as lines and dots

# Machado, Oliveira and Fernandes 2009, "A Physiologically-based Model for Simulation of Color Vision Deficiency",
# table 1, severity 1: matrices for linear RGB.
SEEN_BY = {
    "everybody else": np.eye(3),
    "protanopes": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopes": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopes": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def distance(one: str, other: str) -> float:
    """The smallest distance, CIE76, between two colours as readers of the four kinds see them."""
    return min(float(np.linalg.norm(_lab(one, seen) - _lab(other, seen))) for seen in SEEN_BY.values())


def _lab(colour: str, seen: np.ndarray) -> np.ndarray:
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    ratio = XYZ @ np.clip(seen @ linear, 0, 1) / XYZ.sum(1)  # to white
    f = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def confused(looks: dict[str, tuple[str, object]]) -> Iterator[str]:
    """The pairs of names whose colours are too near for somebody, although all else of their looks is the same.

    Args:
        looks: name → colour, and the rest of its look.
    """
    for (one, (colour, look)), (other, (another, its_look)) in itertools.combinations(looks.items(), 2):
        near = distance(colour, another)
        if look == its_look and to_rgb(colour) != to_rgb(another) and near < APART:
            yield f"{one} and {other}: {colour} and {another} are {near:.0f} apart for some"
