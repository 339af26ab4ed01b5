"""Words to vectors: a vocabulary without a table.

A word's vector is drawn from a seed of its own spelling, so it is the same in every sentence,
every session and every chapter.
"""

import re
import zlib

import torch
from torch import Tensor

ROOM = 12  # words that fit into a figure


def words(sentence: str) -> list[str]:
    """Split a sentence into lower-case words and single punctuation marks.

    Raises:
        ValueError: the sentence holds no word.
    """
    found = re.findall(r"\w+(?:['’-]\w+)*|[^\w\s]", sentence.lower())
    if not found:
        raise ValueError("no words here: type a sentence, for example 'the dog bit the man'")
    return found


def word_vectors(tokens: list[str], width: int) -> Tensor:
    """One vector a word, the same for the same word.

    Args:
        tokens: T words.
        width: d, the number of dimensions.

    Returns:
        independent normal numbers of variance 1, float64, shape (T, d).
    """
    rows = []
    for token in tokens:
        generator = torch.Generator().manual_seed(zlib.crc32(token.encode()))
        rows.append(torch.randn(width, generator=generator, dtype=torch.float64))
    return torch.stack(rows)


def read(sentence: str, *, at_least: int = 1) -> list[str]:
    """The words of a sentence that a figure has room for.

    Raises:
        ValueError: too few different words, or too many in all.
    """
    tokens = words(sentence)
    if len(tokens) > ROOM:
        raise ValueError(f"{len(tokens)} words and signs: there is room for {ROOM}, so type a shorter sentence")
    if len(set(tokens)) < at_least:
        raise ValueError(f"type at least {at_least} different words or signs; this has {len(set(tokens))}")
    return tokens


def short(word: str, length: int = 9) -> str:
    """A word as an axis label."""
    return word if len(word) <= length else word[: length - 1] + "…"
