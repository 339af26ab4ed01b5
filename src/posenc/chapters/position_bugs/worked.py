"""Chapter 8's worked solutions, with the names that the notebook has above each exercise."""

import torch

from posenc.rotary import to_half_split


def steps_apart(whole, step, tokens):
    cache, parts = None, []
    for token in tokens.split(1, dim=1):
        logits, cache = step(token, cache)
        parts.append(logits)
    difference = torch.cat(parts, dim=1).log_softmax(-1) - whole(tokens).log_softmax(-1)
    return difference.abs().max().item()


def layout_of(rotate, head_dim):
    unit = torch.eye(head_dim)[0].view(1, 1, 1, head_dim)
    awake = rotate(unit, torch.tensor([1])).flatten().nonzero().flatten()
    return "interleaved" if 1 in awake else "half_split"


def base_of(rotate, head_dim):
    x = torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(head_dim // 2).view(1, 1, 1, head_dim)
    turned = rotate(x, torch.tensor([1])).view(-1, 2)  # (pairs, 2)
    speeds = torch.atan2(turned[:, 1], turned[:, 0])
    return ((speeds[0] / speeds[-1]) ** (head_dim / (head_dim - 2))).item()


def repaired(state, heads):
    new = dict(state)
    for name, rows in state.items():
        if name.startswith(("query", "key")):
            new[name] = to_half_split(rows, len(rows) // heads, dim=0)
    return new


def positions_from_mask(real):
    return (real.cumsum(dim=1) - 1).clamp(min=0) * real


def packing_mask(documents):
    size = len(documents)
    same = documents[:, None] == documents
    return same & torch.ones(size, size, dtype=torch.bool).tril()
