"""Rotary position encoding with cosines and sines that were made once, for all layers, texts and steps.

`posenc.rotary.rotate` is the one to read: it takes angles, and makes their cosines and sines at each call. Where few
vectors are turned, one token of a batch or a long text with few heads, that costs more than the turning.
"""

import torch
from torch import Tensor

from posenc.rotary import CACHED, LAYOUTS, _fits, _pieces, _turn_halves, _turn_neighbours

WIDE = (torch.float32, torch.float64)


def rotate_by(x: Tensor, cos: Tensor, sin: Tensor, *, layout: str = "interleaved") -> Tensor:
    """Turn every pair of dimensions of every vector, as `rotate` does, by ready cosines and sines.

        >>> from posenc.rotary import angles
        >>> theta = angles(torch.arange(4096), 64)
        >>> cos, sin = theta.cos().float(), theta.sin().float()  # once
        >>> query = torch.randn(1, 8, 1, 64)
        >>> rotate_by(query, cos[[7]], sin[[7]]).shape  # one more token of a text, at position 7
        torch.Size([1, 8, 1, 64])

    Args:
        x: queries or keys, shape (…, T, head_dim). It is not changed.
        cos, sin: of the angles, float32 or float64, one shape that broadcasts to (…, T, pairs). Make them of float64
            angles and round once. With fewer pairs than head_dim / 2, the dimensions from 2·pairs on stay as they are.
        layout: "interleaved" or "half_split".

    Returns:
        the shape and dtype of x, float16 and bfloat16 computed in float32. On a CPU it goes a few tokens at a time
        where numbers are converted or the tables are large, so that these stay in the cache.

    Raises:
        TypeError: x is not floating point, or the tables are neither float32 nor float64.
        ValueError: the layout is unknown, or the tables' shapes differ or do not fit x.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}: choose one of {', '.join(map(repr, LAYOUTS))}")
    if not x.is_floating_point():
        raise TypeError(f"x is {x.dtype}: pass real floating-point queries or keys")
    if cos.dtype not in WIDE or sin.dtype != cos.dtype:
        raise TypeError(f"cos is {cos.dtype} and sin {sin.dtype}: keep both in float32 or in float64")
    pairs = cos.shape[-1]
    if cos.shape != sin.shape or 2 * pairs > x.shape[-1] or not _fits(cos.shape[:-1], x.shape[:-1]):
        raise ValueError(
            f"cos of shape {tuple(cos.shape)} and sin of shape {tuple(sin.shape)} do not fit x of shape "
            f"{tuple(x.shape)}: both must broadcast to its axes but the last, and have one number for two dimensions"
        )
    dtype = x.dtype if x.dtype in WIDE else torch.float32
    if cos.dtype != dtype:
        cos, sin = cos.to(dtype), sin.to(dtype)
    turn = _formula if torch.compiler.is_compiling() else _eager
    if 2 * pairs == x.shape[-1]:
        return turn(x, cos, sin, layout)
    return torch.cat([turn(x[..., : 2 * pairs], cos, sin, layout), x[..., 2 * pairs :]], dim=-1)


def _formula(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """Real and without a loop: a compiler makes one kernel of it, for any T."""
    shape, axis = ((-1, 2), -1) if layout == "interleaved" else ((2, -1), -2)
    first, second = x.to(cos.dtype).unflatten(-1, shape).unbind(axis)
    turned = [first * cos - second * sin, second * cos + first * sin]
    return torch.stack(turned, dim=axis).flatten(-2).to(x.dtype)


def _eager(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """The operations of `rotate`, so that the numbers are the same."""
    turn = _turn_neighbours if layout == "interleaved" else _turn_halves
    same = x.dtype == cos.dtype
    if same and x.storage_offset() % 2:
        x = x.clone()  # neighbours are read as complex numbers, which start at an even place
    if x.device.type != "cpu" or x.numel() <= CACHED or (same and cos.numel() <= CACHED):
        return turn(x.to(cos.dtype), cos, sin).to(x.dtype)
    pieces = _pieces(x, cos, sin)
    return torch.cat([turn(piece.to(cos.dtype), *tables).to(x.dtype) for piece, *tables in pieces], dim=-2)
