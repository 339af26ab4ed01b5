"""A small picture made of twelve kinds of patches, so that models which name patches can read it."""

import numpy as np
import torch
from torch import Tensor

SIDE = 12  # pixels of a patch, along each side
KINDS = (
    "sky",
    "cloud",
    "sun",
    "bird",
    "hill",
    "roof",
    "wall",
    "window",
    "door",
    "leaves",
    "trunk",
    "grass",
)
_LETTERS = ".csbhrwodltg"
_SCENE = """
..cc......s.
.cccc..b....
......cc..b.
..r.....hh..
.rrr..lhhhhh
.wow.lllhhhh
.wdw..lhhhhh
ggggggtggggg
"""
_SKY, _GREEN = (0.72, 0.86, 0.96), (0.45, 0.66, 0.32)


def scene() -> Tensor:
    """The kind of every patch, integers, shape (8, 12)."""
    return torch.tensor([[_LETTERS.index(letter) for letter in row] for row in _SCENE.split()])


def drawn(kinds: Tensor) -> np.ndarray:
    """The pixels of a picture of these kinds.

    Args:
        kinds: integers from 0 to 11, shape (rows, columns).

    Returns:
        red, green and blue from 0 to 1, shape (rows·SIDE, columns·SIDE, 3).
    """
    tiles = np.stack([_tile(kind) for kind in KINDS])[kinds.numpy()]  # (rows, columns, SIDE, SIDE, 3)
    return np.concatenate(np.concatenate(tiles, axis=1), axis=1)


def _tile(kind: str) -> np.ndarray:
    """One patch, (SIDE, SIDE, 3)."""
    y, x = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2  # from the middle, downwards and to the right
    tile = np.ones((SIDE, SIDE, 3))
    ground = {
        "hill": (0.55, 0.62, 0.66),
        "roof": (0.72, 0.30, 0.22),
        "wall": (0.93, 0.86, 0.72),
        "window": (0.93, 0.86, 0.72),
        "door": (0.93, 0.86, 0.72),
        "leaves": (0.25, 0.48, 0.22),
        "trunk": _GREEN,
        "grass": _GREEN,
    }
    tile[:] = ground.get(kind, _SKY)
    over = {
        "cloud": (np.abs(y) < SIDE, (1.0, 1.0, 1.0)),
        "sun": (x**2 + y**2 < 20, (0.98, 0.80, 0.18)),
        "bird": (np.abs(y + 2 - np.abs(np.abs(x) - 2.5)) < 0.8, (0.2, 0.2, 0.25)),
        "hill": ((x + 2 * y) % 6 < 1, (0.48, 0.55, 0.60)),
        "roof": (y % 4 < 1, (0.60, 0.22, 0.16)),
        "window": ((np.abs(x) < 3.6) & (np.abs(y) < 3.6) & (np.abs(x) > 0.6), (0.35, 0.55, 0.75)),
        "door": ((np.abs(x) < 3.6) & (y > -4), (0.45, 0.28, 0.15)),
        "leaves": ((3 * x + 5 * y) % 7 < 2, (0.33, 0.58, 0.28)),
        "trunk": (np.abs(x) < 2.2, (0.42, 0.29, 0.18)),
        "grass": ((5 * x + 3 * y) % 8 < 1, (0.36, 0.57, 0.26)),
    }
    if kind in over:
        where, colour = over[kind]
        tile[where] = colour
    return tile
