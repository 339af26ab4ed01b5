"""Chapter 4's worked solutions, with the names that the notebook has above each exercise."""

import math

import torch

from posenc.rotary import angles, rotate


def turn(v, angle):
    cos, sin = math.cos(angle), math.sin(angle)
    return torch.stack([cos * v[0] - sin * v[1], sin * v[0] + cos * v[1]])


def rotary(x, positions, base):
    d = x.shape[-1]
    theta = positions[:, None] * base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)  # (T, d/2)
    first, second = x[..., 0::2], x[..., 1::2]
    turned = [first * theta.cos() - second * theta.sin(), first * theta.sin() + second * theta.cos()]
    return torch.stack(turned, dim=-1).flatten(-2)


def look_back(back, d):
    key = 20 * torch.ones(d, dtype=torch.float64)
    return torch.stack([rotate(key, angles(torch.tensor(-back), d)), key])


def break_decay(d):
    speeds = angles(torch.tensor(1), d)
    pair = int((64 * speeds > math.pi).sum())  # the first that makes less than half a turn in 64 steps
    query = torch.zeros(d, dtype=torch.float64)
    query[2 * pair] = 1
    return torch.stack([query, -query])


def half_split_weight(weight, head_dim):
    rows = weight.unflatten(0, (-1, head_dim // 2, 2))  # (heads, pairs, 2, width)
    return rows.transpose(1, 2).flatten(0, 2)


def move_keys(cached, dropped):
    back = angles(torch.tensor([-dropped]), cached.shape[-1])
    return rotate(cached, back)


def cached_position(key, cached, length):
    everywhere = rotate(key.expand(length, -1), angles(torch.arange(length), len(key)))  # (length, d)
    return (everywhere - cached).norm(dim=-1).argmin().item()


def tables(length, d, dtype):
    theta = angles(torch.arange(length), d)  # integers times float64
    return torch.stack([theta.cos(), theta.sin()]).to(dtype)  # the only cast
