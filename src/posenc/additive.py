"""Encodings that are added to the token vectors.

Layout: interleaved as in the paper, pair i in dimensions 2i (sine) and 2i + 1 (cosine).
Positions are integers that may start anywhere and repeat; they count from 0 in the chapters.
"""

import torch
from torch import Tensor, nn


def integer(positions: Tensor, d_model: int, *, dtype: torch.dtype = torch.float32) -> Tensor:
    """The position itself, the same number in every dimension.

    Args:
        positions: integers, shape (…).
        d_model: width of the encoding.
        dtype: of the result.

    Returns:
        shape (…, d_model).

    Raises:
        TypeError: positions are not integers.
        ValueError: d_model is not positive.
    """
    require_integers(positions)
    _require_width(d_model)
    return positions[..., None].to(dtype).repeat_interleave(d_model, dim=-1)


def binary(positions: Tensor, d_model: int, *, dtype: torch.dtype = torch.float32) -> Tensor:
    """The binary digits of the position, the fastest first: dimension j is 1 where 2^j is in the sum.

    Args:
        positions: integers from 0 to 2^d_model - 1, shape (…).
        d_model: number of digits.
        dtype: of the result.

    Returns:
        zeros and ones, shape (…, d_model).

    Raises:
        TypeError: positions are not integers.
        ValueError: d_model is not positive, or a position is negative or needs more digits. Inside `torch.vmap`,
            where positions cannot be looked at, such a position gets NaN instead.
    """
    require_integers(positions)
    _require_width(d_model)
    positions = positions.long()
    outside = (positions < 0) | (positions >> min(d_model, 63) > 0)  # int64 has 63 digits and a sign
    if _any(outside):
        raise ValueError(
            f"position {positions[outside][0]} does not fit: {d_model} binary digits hold 0 to 2^{d_model} - 1; "
            "count from 0, or choose a larger d_model"
        )
    digit = torch.arange(d_model, device=positions.device).clamp(max=63)
    digits = (positions[..., None] >> digit & 1).to(dtype)
    return digits.masked_fill(outside[..., None], torch.nan) if dtype.is_floating_point else digits


def sinusoidal(
    positions: Tensor, d_model: int, *, base: float = 10_000.0, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Sines and cosines of the position, one frequency per pair.

    Args:
        positions: integers, shape (…).
        d_model: width of the encoding, even.
        base: the wavelengths run from 2π to 2π·base^((d-2)/d) positions.
        dtype: of the result; the angles are computed in float64.

    Returns:
        shape (…, d_model).

    Raises:
        TypeError: positions are not integers.
        ValueError: d_model is odd or not positive, or base is not positive.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5.
    """
    require_integers(positions)
    angles = positions[..., None].double() * frequencies(d_model, base=base).to(positions.device)  # (…, d / 2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).to(dtype)


def shift_matrix(offset: int, d_model: int, *, base: float = 10_000.0) -> Tensor:
    """The matrix S that moves every sinusoidal encoding by offset positions: PE(p + offset) = S PE(p).

    Args:
        offset: how many positions, of either sign.
        d_model: width of the encoding, even.
        base: that of the encoding.

    Returns:
        orthogonal, a rotation in each pair of dimensions, float64, shape (d_model, d_model).

    Raises:
        TypeError: offset is not an integer.
        ValueError: d_model is odd or not positive, or base is not positive.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5, says that it exists.
    """
    if isinstance(offset, bool) or not isinstance(offset, int):
        raise TypeError(f"offset is a {type(offset).__name__}: pass an integer, a number of positions")
    angles = offset * frequencies(d_model, base=base)
    rows = torch.stack([angles.cos(), angles.sin(), -angles.sin(), angles.cos()], dim=-1)
    return torch.block_diag(*rows.unflatten(-1, (2, 2)))


class Learned(nn.Module):
    """A table with one vector per position, drawn at random and trained with the model.

    Args:
        length: number of positions, 0 to length - 1.
        d_model: width of the encoding.
        std: of the numbers that the table starts from.

    Raises:
        ValueError: length or d_model is not positive.

    Source: Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", section 3.1.
    """

    def __init__(self, length: int, d_model: int, *, std: float = 1.0):
        super().__init__()
        if length <= 0:
            raise ValueError(f"length is {length}: a table needs at least one position")
        _require_width(d_model)
        self.table = nn.Parameter(std * torch.randn(length, d_model))

    def forward(self, positions: Tensor) -> Tensor:
        """Look the positions up.

        Args:
            positions: integers from 0 to length - 1, shape (…), on the table's device.

        Returns:
            shape (…, d_model).

        Raises:
            TypeError: positions are not integers.
            ValueError: a position is outside the table, or on another device. Inside `torch.vmap`, where positions
                cannot be looked at, a position outside the table gets NaN instead.
        """
        require_integers(positions)
        if positions.device != self.table.device:
            raise ValueError(
                f"positions are on {positions.device} and the table is on {self.table.device}: "
                "move one of them with .to(…)"
            )
        outside = (positions < 0) | (positions >= len(self.table))
        if _any(outside):  # a GPU's own check would leave the device unusable for this process
            raise ValueError(
                f"position {positions[outside][0]} is not in the table, which was made for 0 to "
                f"{len(self.table) - 1}: shorten the text or train a longer table"
            )
        rows = self.table[positions.long().clamp(0, len(self.table) - 1)]
        return rows.masked_fill(outside[..., None], torch.nan)


def frequencies(width: int, *, base: float = 10_000.0) -> Tensor:
    """How fast each pair of dimensions goes, in sinusoids and in rotations alike: base^(-2i/width) for pair i.

    Args:
        width: number of dimensions, even.
        base: the wavelengths run from 2π to 2π·base^((width-2)/width) positions.

    Returns:
        radians a position, float64, shape (width / 2,).

    Raises:
        ValueError: width is odd or not positive, or base is not positive.
    """
    if width <= 0 or width % 2:
        raise ValueError(f"{width} dimensions: they are used in pairs, so choose a positive even number")
    if not base > 0:
        raise ValueError(f"base is {base}: wavelengths are powers of it, so choose a positive number")
    return base ** -(torch.arange(0, width, 2, dtype=torch.float64) / width)


def require_integers(positions: Tensor) -> None:
    """Positions are counted.

    Raises:
        TypeError: they are not integers.
    """
    if positions.is_floating_point() or positions.is_complex() or positions.dtype == torch.bool:
        raise TypeError(
            f"positions are {positions.dtype}: pass integers, for example torch.arange(T); "
            "low-precision floats cannot even hold 257"
        )


def _any(condition: Tensor) -> bool:
    """Whether any is true, as far as that can be known: inside `torch.vmap` a tensor's values cannot be asked for."""
    try:
        return bool(condition.any())
    except RuntimeError as error:
        if "vmap" not in str(error):
            raise
        return False


def _require_width(d_model: int) -> None:
    if d_model <= 0:
        raise ValueError(f"d_model is {d_model}: choose a positive number")
