"""Chapter 7's checks: every mistake is planted and must be called by its name."""

import math
import statistics

import pytest
import torch
from planted import verdict

from posenc.rotary import angles, rotate
from posenc.timing import sample_stream


def numbers(of_x, of_a_table, *, bytes_too=True):
    def answer(heads, length, d, itemsize):
        n, t = heads * length * d, length * d
        return (of_x * n + of_a_table * t) * (itemsize if bytes_too else 1)

    return answer


def pair_of_events(kernel, stream):
    start = stream.record()
    kernel()
    return start, stream.record()


def pairs_of_events(kernel, stream, *, flush=True, calls=60):
    pairs = []
    for _ in range(calls):
        if flush:
            stream.flush()
        pairs.append(pair_of_events(kernel, stream))
    stream.synchronize()
    return [start.elapsed_time(end) / 1000 for start, end in pairs]


def right_time(kernel, stream):
    return statistics.median(pairs_of_events(kernel, stream)[10:])


def shortest(kernel, stream):
    return min(pairs_of_events(kernel, stream))


def median_of_many(kernel, stream):
    return torch.tensor(pairs_of_events(kernel, stream), dtype=torch.float64).median()


def no_wait(kernel, stream):
    start = stream.clock()
    kernel()
    return stream.clock() - start


def wait_for_each(kernel, stream):
    for _ in range(10):
        stream.flush()
        stream.synchronize()
        start, end = pair_of_events(kernel, stream)
        stream.synchronize()
    return start.elapsed_time(end) / 1000


def flush_inside(kernel, stream):
    for _ in range(10):
        start = stream.record()
        stream.flush()
        kernel()
        end = stream.record()
    stream.synchronize()
    return start.elapsed_time(end) / 1000


def block(kernel, stream):
    start = stream.record()
    for _ in range(100):
        stream.flush()
        kernel()
    end = stream.record()
    stream.synchronize()
    return start.elapsed_time(end) / 1000 / 100


def asked_too_early(kernel, stream):
    start, end = pair_of_events(kernel, stream)
    return start.elapsed_time(end) / 1000


def warm_cache(kernel, stream):
    return statistics.median(pairs_of_events(kernel, stream, flush=False)[10:])


def first_calls_kept(kernel, stream):
    return statistics.mean(pairs_of_events(kernel, stream, calls=4))


def mean(kernel, stream):
    return statistics.mean(pairs_of_events(kernel, stream)[10:])


def by_bytes(first, second, speed, launch):
    return "first" if first.bytes < second.bytes else "second"


def by_kernels(first, second, speed, launch):
    return "first" if first.kernels < second.kernels else "second"


def by(combine):
    def answer(first, second, speed, launch):
        one, other = (combine((f.bytes / speed, f.kernels * launch)) for f in (first, second))
        return "first" if one < other else "second"

    return answer


def slower(first, second, speed, launch):
    return {"first": "second", "second": "first"}[by(max)(first, second, speed, launch)]


def at(place):
    return angles(torch.tensor([place]), 8)


def step(
    query,
    key,
    keys,
    position,
    *,
    new=lambda p, n: p,
    asking=lambda p: p,
    turn_key=True,
    turn_query=True,
    scale=8**0.5,
    in_front=False,
):
    query, key = query[:, None], key[:, None]
    key = rotate(key, at(new(position, keys.shape[1]))) if turn_key else key
    query = rotate(query, at(asking(position))) if turn_query else query
    keys = torch.cat([key, keys] if in_front else [keys, key], dim=1)
    return (query @ keys.mT)[:, 0] / scale, keys


def step_with(**options):
    return lambda query, key, keys, position: step(query, key, keys, position, **options)


def whole_cache(query, key, keys, position):
    scores, keys = step(query, key, keys, position, turn_key=False)
    return scores, rotate(keys, angles(torch.arange(keys.shape[1]), 8))


def kept_as_they_came(query, key, keys, position):
    keys = torch.cat([keys, key[:, None]], dim=1)
    turned = rotate(keys, angles(torch.arange(keys.shape[1]), 8))
    return (rotate(query[:, None], at(position)) @ turned.mT)[:, 0] / math.sqrt(8), keys


def coarse(query, key, keys, position):
    angle = at(position).float()
    key = torch.cat([keys, rotate(key[:, None], angle)], dim=1)
    return (rotate(query[:, None], angle) @ key.mT)[:, 0] / math.sqrt(8), key


def longest(memory, heads, itemsize):
    return math.isqrt(memory // (heads * itemsize))


PLANTED = [
    ("rotation_bytes", numbers(10, 2, bytes_too=False), "numbers, not bytes"),
    ("rotation_bytes", numbers(2, 2), "that reads x once and writes the result once"),
    ("rotation_bytes", numbers(2, 0), "that reads x once and writes the result once"),
    ("rotation_bytes", numbers(12, 0), "read where they stand"),
    ("rotation_bytes", numbers(10, 0), "cos and sin are read too"),
    ("rotation_bytes", numbers(9, 2), "the minus in front of the second half is an operation"),
    ("rotation_bytes", numbers(11, 2), "the minus stands in front of one half"),
    ("rotation_bytes", numbers(8, 2), "cat copies"),
    ("rotation_bytes", numbers(7, 2), "rotate_half moves bytes too"),
    ("rotation_bytes", numbers(4.5, 0), "what the operations write"),
    ("rotation_bytes", numbers(5.5, 2), "what the operations read"),
    ("rotation_bytes", numbers(13, 2), "it is not 55,574,528 bytes: that is 13.2 times the numbers of x"),
    ("time_kernel", lambda k, s: 1e3 * right_time(k, s), "milliseconds"),
    ("time_kernel", lambda k, s: 1e6 * right_time(k, s), "microseconds"),
    ("time_kernel", no_wait, "it did not wait for the device"),
    ("time_kernel", wait_for_each, "the device was idle"),
    ("time_kernel", flush_inside, "the kernel and the flush"),
    ("time_kernel", block, "the kernel and the flush"),
    ("time_kernel", asked_too_early, "synchronize before you ask"),
    ("time_kernel", lambda k, s: 2 * right_time(k, s), "it reads 80 µs off a kernel of 40 µs"),
    ("time_kernel", lambda k, s: 40e-6, "and 40 µs off one of 90 µs"),
    ("time_kernel", warm_cache, "still in the cache"),
    ("time_kernel", first_calls_kept, "the first calls are in it"),
    ("time_kernel", mean, "take the median"),
    ("faster", lambda *inputs: "first", "which need 500 µs for bytes and 1 µs for launches and 100 µs"),
    ("faster", lambda *inputs: 1, 'it returned 1: return "first" or "second"'),
    ("faster", slower, "the slower one"),
    ("faster", by_bytes, "the bytes alone"),
    ("faster", by_kernels, "the launches alone"),
    ("faster", by(sum), "it adds the two times"),
    ("decode_step", lambda q, k, c, p: c, "return two tensors"),
    ("decode_step", lambda q, k, c, p: (c, c), "the scores should be a tensor of shape (2, 6)"),
    ("decode_step", lambda q, k, c, p: (step(q, k, c, p)[0], None), "it is NoneType"),
    ("decode_step", lambda q, k, c, p: [v.float() for v in step(q, k, c, p)], "should be torch.float64"),
    ("decode_step", coarse, "right to a few digits"),
    ("decode_step", kept_as_they_came, "the key goes into the cache as it came"),
    ("decode_step", step_with(turn_key=False), "the key goes into the cache as it came"),
    ("decode_step", step_with(in_front=True), "in front of the cache"),
    ("decode_step", whole_cache, "it rotates the whole cache"),
    ("decode_step", step_with(new=lambda p, n: 0), "or turned to position 0"),
    ("decode_step", step_with(new=lambda p, n: n), "the length of the cache is not the position"),
    ("decode_step", step_with(new=lambda p, n: p + 1), "the new key is turned to position + 1"),
    (
        "decode_step",
        step_with(new=lambda p, n: p + 9),
        "have stayed, and the last is not the key turned by its position",
    ),
    ("decode_step", lambda *a: (step(*a)[0], 2 * step(*a)[1]), "have changed, and are to stay"),
    ("decode_step", step_with(turn_query=False), "the keys are turned and the query is not"),
    ("decode_step", step_with(asking=lambda p: 0), "or to position 0"),
    ("decode_step", step_with(scale=1), "the division by √d"),
    (
        "decode_step",
        step_with(asking=lambda p: p + 1),
        "the scores are not: rotated query times every key of the new cache, over √d (at [0, 0]",
    ),
    ("longest_bias", lambda m, h, i: math.sqrt(m / (h * i)) + 0.3, "round down"),
    ("longest_bias", lambda m, h, i: math.ceil(math.sqrt(m / (h * i))), "needs more than 17,179,869,183 bytes"),
    ("longest_bias", lambda m, h, i: m // (h * i), "T appears squared"),
    ("longest_bias", lambda m, h, i: math.isqrt(m // i), "every head has a bias of its own"),
    ("longest_bias", lambda m, h, i: math.isqrt(m // h), "that counts numbers"),
    (
        "longest_bias",
        lambda m, h, i: 7,
        "7 is not the longest text for 17,179,869,184 bytes, 32 heads, itemsize 2: its bias takes 3,136",
    ),
]

RIGHT = [
    ("rotation_bytes", numbers(10, 2)),
    ("rotation_bytes", lambda *sizes: torch.tensor(numbers(10, 2)(*sizes))),
    ("time_kernel", right_time),
    ("time_kernel", shortest),
    ("time_kernel", median_of_many),
    ("time_kernel", lambda kernel, stream: statistics.median(sample_stream(kernel, stream, seconds=0.005)[1])),
    ("faster", by(max)),
    ("decode_step", step),
    ("decode_step", lambda *inputs: list(step(*inputs))),
    ("longest_bias", longest),
]

NAMES = ["rotation_bytes", "time_kernel", "faster", "decode_step", "longest_bias"]


def changes(*inputs):
    for value in inputs:
        if isinstance(value, torch.Tensor):
            value.zero_()
    return inputs[0]


GARBAGE = {
    "nothing": lambda *inputs: None,
    "words": lambda *inputs: "words",
    "not a number": lambda *inputs: math.nan,
    "a NumPy array": lambda *inputs: torch.ones(3).numpy(),
    "a tensor": lambda *inputs: torch.full((2, 6), math.nan),
    "two tensors of not a number": lambda *inputs: (torch.full((2, 6), math.nan), torch.full((2, 6, 8), math.nan)),
    "another call": lambda: 3,
    "an error": lambda *inputs: 1 / 0,
    "its first input": lambda *inputs: inputs[0],
    "a changed input": changes,
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("answer", GARBAGE.values(), ids=GARBAGE)
def test_anything_gets_one_line(name, answer, capsys):
    line = verdict(capsys, name, answer)
    assert line.startswith("✗") and "\n" not in line
