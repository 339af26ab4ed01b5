"""Vectors and what lies between them: cosines, nearest neighbours, and subspaces.

Convention: vectors are rows. A subspace is given by a basis, orthonormal rows of shape (r, d).
"""

import math

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


def span(vectors: Tensor, share: float = 0.95) -> Tensor:
    """The directions in which vectors vary, as few as hold this share of their variance.

    Args:
        vectors: shape (N, d); their mean is taken off.
        share: above 0, at most 1.

    Returns:
        a basis, the strongest direction first, shape (r, d).

    Raises:
        ValueError: share is not above 0 and at most 1, or the vectors are all the same.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share is {share}: a share of the variance is above 0 and at most 1")
    centred = (vectors - vectors.mean(dim=0)).double()
    energy, directions = torch.linalg.eigh(centred.T @ centred)
    energy, directions = energy.flip(0).clamp(min=0), directions.T.flip(0).to(vectors.dtype)
    if not energy.sum() > 1e-12 * vectors.square().sum():
        raise ValueError(f"these {len(vectors)} vectors don't vary, so they span nothing: pass different ones")
    held = energy.cumsum(dim=0) / energy.sum()
    return directions[: int((held < share - 1e-9).sum()) + 1]


def random_span(rank: int, width: int, generator: torch.Generator) -> Tensor:
    """A random subspace, every direction as likely as any other: a basis, float64, shape (rank, width).

    Raises:
        ValueError: rank is not between 1 and width.
    """
    if not 1 <= rank <= width:
        raise ValueError(f"rank is {rank}: a subspace of {width} dimensions has 1 to {width}")
    return torch.linalg.qr(torch.randn(width, rank, generator=generator, dtype=torch.float64)).Q.T


def spans_at(angle: float, rank: int, width: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Two subspaces at one angle: each direction of the one has this angle to the other.

    Args:
        angle: degrees.
        rank: dimensions of each.
        width: of the space, 2·rank at least.
        generator: draws them.

    Returns:
        two bases, float64, (rank, width) each.
    """
    one, aside = random_span(2 * rank, width, generator).chunk(2)
    turned = math.radians(angle)
    return one, math.cos(turned) * one + math.sin(turned) * aside


def share_within(vectors: Tensor, basis: Tensor) -> Tensor:
    """How much of the vectors' variance lies in a subspace, (N, d) and (r, d) → one number, 0 to 1.

    In a random subspace it is r/d on average.
    """
    vectors = vectors - vectors.mean(dim=0)
    return (vectors @ basis.T).square().sum() / vectors.square().sum()


def principal_angles(one: Tensor, other: Tensor) -> Tensor:
    """The angles between two subspaces, the smallest first.

    The first is the smallest angle between a direction of the one and a direction of the other. The next is that of
    directions at right angles to those, and so on.

    Args:
        one: a basis, (r, d).
        other: a basis, (s, d).

    Returns:
        degrees, 0 to 90, shape (min(r, s),).
    """
    # From sines where they are small and from cosines where those are: each is exact where the other is not.
    small, large = sorted((one, other), key=len)
    cosine = torch.linalg.svdvals(small @ large.T).clamp(max=1)
    sine = torch.linalg.svdvals(small - small @ large.T @ large).flip(0).clamp(max=1)
    return torch.where(cosine > 0.5**0.5, sine.asin(), cosine.acos()).rad2deg()


def content_and_position(states: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Split states into what the token adds, what its position adds, and the rest, by least squares.

    At the embedding these are the token's vector, the encoding, and nothing. Behind a layer the rest is what depends
    on both, and on the other tokens.

    Args:
        states: of many texts of one length, shape (B, T, d).
        tokens: their tokens, integers, shape (B, T).

    Returns:
        contents, one a token of the text, shape (B·T, d); positions, shape (T, d); and the rest, (B·T, d). All in
        float64; contents and positions without their means.
    """
    batch, length, width = states.shape
    kinds, token = tokens.flatten().unique(return_inverse=True)
    place = torch.arange(length).repeat(batch)
    found = states.reshape(-1, width).double()
    found = found - found.mean(dim=0)
    total = len(kinds) + length
    # Normal equations of one number for each token and one for each place.
    counts = torch.zeros(total, total, dtype=torch.float64)
    pairs = torch.zeros(len(kinds), length, dtype=torch.float64)
    pairs.index_put_((token, place), torch.ones(len(token), dtype=torch.float64), accumulate=True)
    counts[: len(kinds), len(kinds) :], counts[len(kinds) :, : len(kinds)] = pairs, pairs.T
    counts.diagonal().copy_(torch.cat([pairs.sum(1), pairs.sum(0)]))
    sums = torch.zeros(total, width, dtype=torch.float64)
    sums.index_add_(0, token, found).index_add_(0, len(kinds) + place, found)
    solution = torch.linalg.pinv(counts, hermitian=True) @ sums
    contents, positions = solution[token], solution[len(kinds) :]
    contents, positions = contents - contents.mean(dim=0), positions - positions.mean(dim=0)
    return contents, positions, found - contents - positions[place]
