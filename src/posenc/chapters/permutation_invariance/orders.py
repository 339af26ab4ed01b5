"""Other orders of a sentence: shuffles that are the same every time, and the exchange of two words."""

from itertools import combinations

import torch
from torch import Tensor


def shuffled(length: int, number: int, *, keep_last: bool) -> Tensor:
    """An order of `length` words: number 0 leaves them as they are, every other number is one fixed permutation.

    Args:
        length: how many words.
        number: which shuffle.
        keep_last: whether the last word stays the last.

    Returns:
        a permutation of 0 … length - 1, to be used as x[order].
    """
    order = torch.arange(length)
    if number:
        free = length - keep_last
        order[:free] = torch.randperm(free, generator=torch.Generator().manual_seed(number))
        if torch.equal(order, torch.arange(length)):
            order[:free] = order[:free].roll(1)
    return order


def exchanged(tokens: list[str]) -> list[int]:
    """An order of the tokens in which two of them have changed places and the last one stands still.

    These are the second word and the last but one, as in "the dog bit the man."; where they are the same word, the
    first two that differ.
    """
    order = list(range(len(tokens)))
    for i, j in [(1, len(tokens) - 2), *combinations(range(len(tokens) - 1), 2)]:
        if tokens[i] != tokens[j]:
            order[i], order[j] = order[j], order[i]
            break
    return order
