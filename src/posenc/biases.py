"""Position as a number added to every score: ALiBi, T5's buckets, Kerple.

Convention: distance = m - n, how far the key n lies before the query m; it is negative where the key comes
later. A bias has the shape (heads, M, N) and knows nothing of the future: hiding it is the causal mask's
work. Each of the three fits the hook `bias` of `posenc.models.Transformer`, with partial(alibi, heads=2) for
the one that is a function.
"""

import math

import torch
from torch import Tensor, nn

from posenc.additive import require_integers


def alibi_slopes(heads: int) -> Tensor:
    """How much each head takes off per position of distance.

    A power of two, h, has the slopes 2^(-8/h), 2^(-16/h), …, 2^(-8). Any other number has those of the next
    smaller power of two, and then every other one of the next larger: 12 heads have 8 slopes of 8 heads,
    and the first, third, fifth and seventh of 16.

    Args:
        heads: how many.

    Returns:
        positive numbers, float64, shape (heads,). They fall within each of the two groups.

    Raises:
        ValueError: heads is not positive.

    Source: Press et al. 2022, "Train Short, Test Long", section 3, and the code that its authors published.
    """
    if heads < 1:
        raise ValueError(f"heads is {heads}: choose at least 1")
    below = 1 << (heads.bit_length() - 1)  # the largest power of two that is not larger than heads
    first = 2.0 ** (-8 * torch.arange(1, below + 1, dtype=torch.float64) / below)
    between = 2.0 ** (-4 * (2 * torch.arange(heads - below, dtype=torch.float64) + 1) / below)
    return torch.cat([first, between])


def alibi(query_positions: Tensor, key_positions: Tensor, *, heads: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Minus slope times distance. A key after the query is charged for its distance too.

    Args:
        query_positions: integers, shape (…, M).
        key_positions: integers, shape (…, N).
        heads: how many, any number from 1.
        dtype: of the result.

    Returns:
        shape (…, heads, M, N).

    Raises:
        TypeError: positions are not integers.
        ValueError: heads is not positive.

    Source: Press et al. 2022, "Train Short, Test Long", section 3.
    """
    away = distances(query_positions, key_positions).abs()[..., None, :, :]
    return (-alibi_slopes(heads).to(away.device)[:, None, None] * away).to(dtype)


def t5_buckets(distances: Tensor, *, buckets: int = 32, max_distance: int = 128, bidirectional: bool = False) -> Tensor:
    """Which of T5's learned numbers belongs to a distance.

    The first half of the buckets is for one distance each; the others grow with the logarithm of the distance,
    and the last takes all from max_distance on. Two-sided, the keys before the query and the query itself have
    the first half of all buckets, the keys after it the second.

    Args:
        distances: m - n, integers, shape (…).
        buckets: how many numbers there are.
        max_distance: from here on all distances share the last bucket of their side.
        bidirectional: as in an encoder. Otherwise all keys after the query fall into bucket 0.

    Returns:
        integers from 0 to buckets - 1, shape (…).

    Raises:
        TypeError: distances are not integers.
        ValueError: there are too few buckets, or max_distance does not exceed those that hold one distance each.

    Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer",
    section 2.1, and the code that its authors published.
    """
    require_integers(distances)
    distances = distances.long()
    side = buckets // 2 if bidirectional else buckets
    exact = side // 2
    if exact < 1:
        raise ValueError(f"buckets is {buckets}: choose at least {4 if bidirectional else 2}")
    if max_distance <= exact:
        raise ValueError(
            f"max_distance is {max_distance}, and {exact} buckets hold one distance each: choose more than {exact}"
        )
    away = distances.abs() if bidirectional else distances.clamp(min=0)
    # in float32, like the published code: where the quotient is a whole number, rounding decides
    ratio = torch.log(away.clamp(min=1).float() / exact) / math.log(max_distance / exact)
    grown = (exact + (ratio * (side - exact)).long()).clamp(max=side - 1)
    return torch.where(away < exact, away, grown) + side * (bidirectional & (distances < 0))


class T5(nn.Module):
    """A learned number for every head and bucket of distances, all 0 at first.

    Args:
        heads: how many.
        buckets, max_distance, bidirectional: as in `t5_buckets`.
        gain: the bias is gain times what is stored. Adam moves a stored number by about its learning rate a step,
            however large the gradient; a gain lets a bias get somewhere in a short training.

    Source: Raffel et al. 2020, section 2.1. The gain is this course's.
    """

    def __init__(
        self,
        heads: int,
        *,
        buckets: int = 32,
        max_distance: int = 128,
        bidirectional: bool = False,
        gain: float = 1.0,
    ):
        super().__init__()
        self.buckets, self.max_distance, self.bidirectional, self.gain = (
            buckets,
            max_distance,
            bidirectional,
            gain,
        )
        t5_buckets(torch.tensor(0), **self._rule())  # refuses what does not fit, now
        self.table = nn.Parameter(torch.zeros(heads, buckets))

    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Integer positions (M,) and (N,) → (heads, M, N)."""
        bucket = t5_buckets(distances(query_positions, key_positions), **self._rule())
        return self.gain * self.table[:, bucket]

    def _rule(self) -> dict:
        return {
            "buckets": self.buckets,
            "max_distance": self.max_distance,
            "bidirectional": self.bidirectional,
        }


class Kerple(nn.Module):
    """Minus a · log(1 + b · distance), with two learned positive numbers a head, both 1 at first.

    Args:
        heads: how many.
        gain: the numbers stored are the logarithms of a and b, divided by gain: see `T5`.

    Source: Chi et al. 2022, "KERPLE", section 4 (the logarithmic kernel).
    """

    def __init__(self, heads: int, *, gain: float = 1.0):
        super().__init__()
        self.gain = gain
        self.logarithms = nn.Parameter(torch.zeros(2, heads))

    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Integer positions (M,) and (N,) → (heads, M, N)."""
        away = distances(query_positions, key_positions).abs().to(self.logarithms.dtype)
        a, b = (self.gain * self.logarithms).exp()[..., None, None]
        return -a * torch.log1p(b * away)


def distances(query_positions: Tensor, key_positions: Tensor) -> Tensor:
    """How far each key lies before each query, m - n.

    Args:
        query_positions: integers, shape (…, M).
        key_positions: integers, shape (…, N).

    Returns:
        integers, shape (…, M, N).

    Raises:
        TypeError: positions are not integers.
    """
    for positions in (query_positions, key_positions):
        require_integers(positions)
    return query_positions[..., :, None].long() - key_positions[..., None, :].long()
