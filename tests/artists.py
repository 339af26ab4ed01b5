"""What a figure draws, read off its artists."""

import torch
from torch import Tensor

from posenc.lesson.live import Live


def said(live: Live, name: str) -> str:
    """The words of a text."""
    return live.artists[name].get_text()


def points(live: Live, name: str) -> Tensor:
    """Where a line goes: x and y of each of its points, (points, 2)."""
    return torch.stack([torch.as_tensor(axis, dtype=torch.float64) for axis in live.artists[name].get_data()], 1)


def tips(live: Live, name: str) -> Tensor:
    """Where the segments of a collection end: x and y of each, (segments, 2)."""
    return torch.tensor([[*segment[-1]] for segment in live.artists[name].get_segments()], dtype=torch.float64)


def shown(live: Live, name: str, rows: int, columns: int | None = None) -> Tensor:
    """The upper left numbers of a map, NaN where nothing is drawn, (rows, columns); as many columns as rows."""
    return torch.tensor(live.artists[name].get_array())[:rows, : columns or rows]
