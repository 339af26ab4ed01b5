"""Words to vectors: a vocabulary without a table.

A word's vector is drawn from a seed of its own spelling, so it is the same in every sentence,
every session and every chapter.
"""

import re
import zlib

import torch
from torch import Tensor


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
