"""Chapter 7's worked solutions, with the names that the notebook has above each exercise."""

import math

import torch

from posenc.rotary import angles, rotate


def rotation_bytes(heads, length, d, itemsize):
    n, t = heads * length * d, length * d
    times_cos = n + t + n
    minus = n // 2 + n // 2
    cat = n + n
    times_sin = n + t + n
    total = n + n + n
    return itemsize * (times_cos + minus + cat + times_sin + total)


def faster(first, second, bytes_per_second, seconds_per_launch):
    def seconds(traffic):
        return max(traffic.bytes / bytes_per_second, traffic.kernels * seconds_per_launch)

    return "first" if seconds(first) < seconds(second) else "second"


def time_kernel(kernel, stream):
    pairs = []
    for _ in range(30):
        stream.flush()
        start = stream.record()
        kernel()
        pairs.append((start, stream.record()))
    stream.synchronize()
    times = [start.elapsed_time(end) / 1000 for start, end in pairs[5:]]
    return sorted(times)[len(times) // 2]


def decode_step(query, key, keys, position):
    d = key.shape[-1]
    angle = angles(torch.tensor([position]), d)
    query, key = rotate(query[:, None], angle), rotate(key[:, None], angle)
    keys = torch.cat([keys, key], dim=1)
    return (query @ keys.mT)[:, 0] / math.sqrt(d), keys


def longest_bias(memory, heads, itemsize):
    return math.isqrt(memory // (heads * itemsize))
