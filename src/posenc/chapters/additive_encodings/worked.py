"""Chapter 2's worked solutions, with the names that the notebook has above each exercise."""

import math

import torch

from posenc.additive import sinusoidal


def flipped_digits(position):
    return (position ^ (position + 1)).bit_count()


def sinusoid(positions, d, base):
    pair = torch.arange(d // 2, dtype=torch.float64)
    angles = positions[:, None] / base ** (2 * pair / d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def longest_wavelength(d, base):
    return 2 * math.pi * base ** ((d - 2) / d)


def shift(offset, d):
    angles = offset / 10_000 ** (torch.arange(0, d, 2, dtype=torch.float64) / d)
    blocks = [torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]], dtype=torch.float64) for a in angles]
    return torch.block_diag(*blocks)


def embed(table, tokens):
    d = table.shape[1]
    positions = torch.arange(tokens.shape[1])
    return math.sqrt(d) * table[tokens] + sinusoidal(positions, d, dtype=table.dtype)


def separate(tokens, encodings):
    both = torch.cat([tokens, encodings])
    wanted = torch.cat([tokens, torch.zeros_like(encodings)])
    return torch.linalg.pinv(both) @ wanted
