"""Vectors and what lies between them: cosines and nearest neighbours."""

import torch
from torch import Tensor
from torch.nn.functional import normalize


def cosines(vectors: Tensor) -> Tensor:
    """Cosine between any two rows, (L, d) → (L, L)."""
    unit = normalize(vectors, dim=-1)
    return unit @ unit.T


def off_diagonal(square: Tensor) -> Tensor:
    """All entries but those on the diagonal, (L, L) → (L·(L - 1),)."""
    return square[~torch.eye(len(square), dtype=torch.bool)]


def nearest(vectors: Tensor, tokens: Tensor) -> Tensor:
    """Index of the token that is nearest to each vector, (…, d) and (V, d) → (…)."""
    # |v - t|² without |v|², which is the same for every token
    return (tokens.square().sum(-1) / 2 - vectors @ tokens.T).argmin(dim=-1)
