"""How much of a causal position term is a matter of distance."""

import torch
from torch import Tensor
from torch.nn.functional import one_hot


def fit_by_distance(term: Tensor) -> tuple[Tensor, float]:
    """Fit a causal term by one number for each row, which the softmax does not see, and one for each distance.

    The numbers of the rows are what a fit with both needs, and not the means of the rows: where a term is a function
    of m − n alone, a row's mean says how far that row can look back, and to take it off would bend the stripes.

    Args:
        term: queries m by keys n, of each of several heads, shape (heads, T, T); n > m is not looked at.

    Returns:
        the term without the numbers of its rows, of mean 0 over what is visible and 0 where n > m, shape
        (heads, T, T); and R², how much of the variance that is left by rows alone distances explain, over all heads.
    """
    heads, length, _ = term.shape
    m, n = torch.tril_indices(length, length)
    seen = term[:, m, n].T.double()  # (pairs, heads)
    rows, distances = one_hot(m).double(), one_hot(m - n).double()
    both = torch.cat([rows, distances], dim=-1)
    by_rows, by_both = (torch.linalg.lstsq(fit, seen, driver="gelsd").solution for fit in (rows, both))
    left = [(seen - fit @ found).square().sum() for fit, found in ((rows, by_rows), (both, by_both))]
    level = seen - rows @ by_both[:length]
    without = torch.zeros(heads, length, length, dtype=torch.float64)
    without[:, m, n] = (level - level.mean(dim=0)).T
    return without, (1 - left[1] / left[0]).item()
