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


def places_between(here, there):
    speed = 10_000 ** (2 / len(here) - 1)  # of the slowest hand
    (s, c), (t, e) = here[-2:], there[-2:]
    return round(torch.atan2(t * c - e * s, e * c + t * s).item() / speed)


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


def mine(positions, d):
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(d, d, generator=generator, dtype=torch.float64)
    turn = torch.linalg.matrix_exp(0.05 * (drawn - drawn.T))  # the same small turn, again at each place
    codes = [torch.randn(d, generator=generator, dtype=torch.float64)]
    for _ in range(int(positions.max())):
        codes.append(turn @ codes[-1])
    return torch.stack(codes)[positions]
