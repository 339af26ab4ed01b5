"""Texts of facts in which order decides: every question that counts has an older fact with another value."""

import torch
from torch import Tensor

from posenc.tasks import ASK, FACT_KEYS, FACT_VALUES, UNASKED, fact_batch, fact_token


def rival_batch(
    generator: torch.Generator, *, seeds: int, batch: int = 16, length: int = 32, keys: int = 6
) -> tuple[Tensor, Tensor]:
    """Texts for "the newest", as `posenc.tasks.fact_batch` makes them, with a rival for every answer.

    A model that knows the facts and not their order can only guess between the newest one and its rivals.

    Args:
        keys: how many different keys a text uses; which ones is drawn for each text.

    Returns:
        tokens and answers, each (seeds, batch, length); UNASKED where no older fact has another value.
    """
    tokens, answers = fact_batch(generator, seeds=seeds, newest=True, batch=batch, length=length, keys=keys)
    key, value = tokens // (FACT_VALUES + 1), tokens % (FACT_VALUES + 1)
    names = torch.rand(seeds, batch, FACT_KEYS, generator=generator).argsort(-1)
    told_before = torch.ones(length, length, dtype=torch.bool).tril(-1) & (value[..., None, :] != ASK)
    rivals = told_before & (key[..., None] == key[..., None, :]) & (value[..., None, :] != answers[..., None])
    return fact_token(names.gather(-1, key), value), answers.where(rivals.any(-1), UNASKED)
