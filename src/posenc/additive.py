"""Encodings that are added to the token vectors.

Layout: interleaved as in the paper, pair i in dimensions 2i (sine) and 2i + 1 (cosine).
Positions are integers that may start anywhere and repeat; they count from 0 in the chapters.
"""

import torch
from torch import Tensor


def sinusoidal(
    positions: Tensor, d_model: int, *, base: float = 10_000.0, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Sines and cosines of the position, one frequency a pair.

    Args:
        positions: integers, shape (…).
        d_model: width of the encoding, even.
        base: the wavelengths run from 2π to 2π·base^((d-2)/d) positions.
        dtype: of the result; the angles are computed in float64.

    Returns:
        shape (…, d_model).

    Raises:
        TypeError: positions are not integers.
        ValueError: d_model is odd or not positive.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5.
    """
    if positions.is_floating_point() or positions.is_complex() or positions.dtype == torch.bool:
        raise TypeError(
            f"positions are {positions.dtype}: pass integers, for example torch.arange(T); "
            "low-precision floats cannot even hold 257"
        )
    if d_model <= 0 or d_model % 2:
        raise ValueError(
            f"d_model is {d_model}: sines and cosines come in pairs, so choose a positive even number"
        )
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64, device=positions.device) / d_model
    angles = positions[..., None].double() * base**-exponent  # (…, d_model / 2), radians
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).to(dtype)
