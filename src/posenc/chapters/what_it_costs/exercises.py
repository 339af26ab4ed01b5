"""What chapter 7 asks: bytes of a rotation, a prediction, a benchmark with mistakes, a cache, the longest bias."""

import math
from typing import Any

import torch
from torch import Tensor

from posenc.chapters.what_it_costs.simulated import SimulatedStream
from posenc.lesson.exercises import Answer, difference, exercise, normal, shown, wrong
from posenc.rotary import angles, rotate
from posenc.timing import Traffic


@exercise(
    "There are five operations: two multiplications, a minus, a cat and a sum. Write down each on a line of its own.",
    "With n numbers in x and t in a table: x * cos reads n + t and writes n. The minus touches half of x.",
    "Compare your list for one head, one token and d = 2, where x and each table have 2 numbers: the five operations read 4, 1, 2, 4 and 4 numbers. What does each write?",
    well_done="every intermediate result is written to memory and read again.",
)
def rotation_bytes(answer: Answer) -> None:
    for heads, length, d, itemsize in ((8, 1024, 128, 4), (1, 6, 4, 2), (3, 5, 8, 8)):
        got = answer.number(heads, length, d, itemsize)
        n, t = heads * length * d, length * d

        def same(numbers: float) -> bool:
            return math.isclose(got, numbers * itemsize, rel_tol=1e-9)

        if same(10 * n + 2 * t):
            continue
        if same((10 * n + 2 * t) / itemsize):
            wrong("that counts numbers, not bytes: each has itemsize bytes")
        if same(2 * n + 2 * t) or same(2 * n):
            wrong("that reads x once and writes the result once: eager torch does so in each of five operations")
        if same(12 * n) and heads > 1:
            wrong("cos and sin are read where they stand, T·d numbers each, however many heads they serve")
        if same(10 * n):
            wrong("cos and sin are read too")
        if same(9 * n + 2 * t):
            wrong("the minus in front of the second half is an operation: it reads and writes half of x")
        if same(11 * n + 2 * t):
            wrong("the minus stands in front of one half of x: it reads n/2 and writes n/2")
        if same(8 * n + 2 * t):
            wrong("cat copies: it reads both halves and writes all of them")
        if same(7 * n + 2 * t):
            wrong("rotate_half moves bytes too: its minus and its cat")
        if same(4.5 * n):
            wrong("that is what the operations write: add what they read")
        if same(5.5 * n + 2 * t):
            wrong("that is what the operations read: add what they write")
        wrong(
            f"for {heads} heads, T = {length}, d = {d}, itemsize {itemsize} it is not {got:,.0f} bytes: that is {got / itemsize / n:.3g} times the numbers of x. List 5 operations, what each reads and what it writes"
        )


@exercise(
    "How long does the device need for the bytes? How long does the host need to launch the kernels?",
    "Both work at the same time, so a function takes the longer of its two times.",
    "An example: 10 MB at 4 TB/s take 2.5 µs. One launch of 4 µs takes longer than that, so the function takes 4 µs. Write a function that gives this time for one of the two, and call it twice.",
    well_done="with few bytes launches decide, with many the bytes.",
)
def faster(answer: Answer) -> None:
    few, many = _traffic(10_000_000, 1), _traffic(2_000_000, 5)
    cases = [  # first, second, bytes a second, seconds a kernel, and the faster
        (few, many, 4e12, 4e-6, "first"),
        (few, many, 2e10, 1e-6, "second"),
        (many, few, 4e12, 4e-6, "second"),
        (_traffic(40_000_000, 2), _traffic(44_000_000, 1), 4e12, 5e-6, "first"),
    ]
    got = [answer(*case[:4]) for case in cases]
    for word in got:
        if not isinstance(word, str) or word not in ("first", "second"):
            wrong(f'it returned {shown(word)}: return "first" or "second"')
    if got == [case[4] for case in cases]:
        return
    if got == ["second" if case[4] == "first" else "first" for case in cases]:
        wrong("that names the slower one each time")
    if got == ["second", "second", "first", "first"]:
        wrong("it looks at the bytes alone: five launches of 4 µs can take longer than 10 MB at 4 TB/s")
    if got == ["first", "first", "second", "second"]:
        wrong("it looks at the launches alone: at 20 GB/s the bytes of 10 MB take 500 µs")
    if got == ["first", "second", "second", "second"]:
        wrong("it adds the two times: host and device work at the same time, so the longer one counts")
    index = next(i for i, case in enumerate(cases) if got[i] != case[4])
    first, second, speed, launch, _ = cases[index]
    times = " and ".join(
        f"{1e6 * each.bytes / speed:g} µs for bytes and {1e6 * each.kernels * launch:g} µs for launches"
        for each in (first, second)
    )
    wrong(
        f"wrong for {first.bytes:,} bytes in {first.kernels} against {second.bytes:,} in {second.kernels} kernels, which need {times}: the longer of each two counts"
    )


@exercise(
    "Start on paper: which mistakes does the listing make when its kernel's first call compiles for a second?",
    "One pair of readings for each call, the flush before the first of the pair, and the wait after the last pair.",
    """A median does not mind one interruption:
>>> times = torch.tensor([40.0, 40.0, 1040.0, 40.0, 40.0])
>>> times.mean().item(), times.median().item()
(240.0, 40.0)""",
    well_done="a benchmark that four kinds of kernel could not mislead.",
)
def time_kernel(answer: Answer) -> None:
    def read(seconds: float = 40e-6, **kernel: Any) -> float:
        stream = SimulatedStream()
        return answer.number(stream.kernel(seconds, **kernel), stream)

    def near(got: float, wanted: float, tolerance: float = 0.02) -> bool:
        return math.isclose(got, wanted, rel_tol=tolerance)

    got = read()
    if near(got, 40e-3) or near(got, 40):
        wrong(f"that is {'milli' if got < 1 else 'micro'}seconds: return seconds")
    if near(got, 5e-6):
        wrong("5 µs is what the host needs to queue the call: it did not wait for the device")
    if near(got, 45e-6):
        wrong(
            "45 µs is the kernel and its launch: the device was idle and waited for the host; let it flush meanwhile, and wait once, at the end"
        )
    if near(got, 105e-6, 0.06):
        wrong("about 100 µs is the kernel and the flush: flush before the first reading of the pair")
    if not near(got, 40e-6):
        wrong(f"it reads {1e6 * got:.3g} µs off a kernel of 40 µs")
    got = read(warm=20e-6)
    if not near(got, 40e-6):
        wrong(f"it reads {1e6 * got:.3g} µs, since the data were still in the cache: flush it before each call")
    got = read(compiling=1.0, slow_calls=3)
    if not near(got, 40e-6):
        wrong(f"it reads {1e6 * got:.3g} µs, since the first calls are in it: leave out at least three of them")
    got = read(every=10, delay=1e-3)
    if not near(got, 40e-6):
        wrong(
            f"it reads {1e6 * got:.3g} µs off a kernel of 40 µs that is interrupted in each tenth call: take the median of single calls, not a mean"
        )
    got = read(90e-6)
    if not near(got, 90e-6):
        wrong(f"it reads 40 µs off a kernel of 40 µs, and {1e6 * got:.3g} µs off one of 90 µs")


@exercise(
    "A rotated key never changes again. So what has to be rotated in this step?",
    "One query and one key: rotate both by the angles of `position`, then append the key to the cache.",
    """position as a tensor of one element gives angles of shape (1, d / 2); None adds the axis of tokens:
>>> torch.tensor([7]).shape, torch.ones(2, 8)[:, None].shape
(torch.Size([1]), torch.Size([2, 1, 8]))""",
    well_done="each key is turned once, when it comes.",
)
def decode_step(answer: Answer) -> None:
    heads, n, d = 2, 5, 8
    (query, key), cache = normal(2, heads, d), normal(heads, n, d, seed=1)

    def turned(x: Tensor, position: int) -> Tensor:
        return rotate(x[:, None], angles(torch.tensor([position]), d))

    def scores(keys: Tensor, asking: Tensor) -> Tensor:
        return (asking @ keys.mT)[:, 0] / math.sqrt(d)

    for position in (n, 40):
        results = answer(query, key, cache, position)
        if not isinstance(results, (tuple, list)) or len(results) != 2:
            wrong("return two tensors: the scores, and the cache with the new key")
        shapes = {"scores": (heads, n + 1), "cache": (heads, n + 1, d)}
        got = {}
        for result, (name, shape) in zip(results, shapes.items()):
            if not isinstance(result, Tensor) or tuple(result.shape) != shape:
                found = tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
                wrong(f"the {name} should be a tensor of shape {shape}, and it is {found}")
            if result.dtype != query.dtype:
                wrong(f"the {name} should be {query.dtype} like the inputs, and it is {result.dtype}")
            got[name] = result.detach()

        def cached(*keys: Tensor, atol: float = 1e-9) -> bool:
            return torch.allclose(got["cache"], torch.cat(keys, dim=1), rtol=0, atol=atol)

        new = turned(key, position)
        right = torch.cat([cache, new], dim=1)
        if not cached(right) and cached(right, atol=1e-4):
            wrong("right to a few digits: keep the angles in float64, as they come from `angles`")
        if not cached(right):
            if cached(cache, key[:, None]):
                wrong(
                    "the key goes into the cache as it came, or turned to position 0, which is the same: rotate it by the angles of `position`, then append it"
                )
            if cached(new, cache):
                wrong("the new key stands in front of the cache: append it at the end")
            everything = torch.cat([cache, key[:, None]], dim=1)
            for start in {0, position - n}:
                if cached(rotate(everything, angles(torch.arange(start, start + n + 1), d))):
                    wrong("it rotates the whole cache, whose keys are rotated already: rotate the new key alone")
            if position != n and cached(cache, turned(key, n)):
                wrong("the length of the cache is not the position: the start may have been dropped; use `position`")
            if cached(cache, turned(key, position + 1)):
                wrong("the new key is turned to position + 1: it stands at `position`")
            kept = torch.allclose(got["cache"][:, :n], cache)
            wrong(
                f"the new cache at position {position}: the {n} keys that were in it have {'stayed, and the last is not the key turned by its position' if kept else 'changed, and are to stay'}"
            )
        if torch.allclose(got["scores"], scores(right, query[:, None]), rtol=0, atol=1e-9):
            wrong("the keys are turned and the query is not, or to position 0: it stands where the new key stands")
        expected = scores(right, turned(query, position))
        if torch.allclose(got["scores"], expected * math.sqrt(d), rtol=0, atol=1e-9):
            wrong("the scores lack the division by √d")
        if not torch.allclose(got["scores"], expected, rtol=0, atol=1e-9):
            wrong(
                f"the cache is right, the scores are not: rotated query times every key of the new cache, over √d ({difference(got['scores'], expected)})"
            )


@exercise(
    "How many numbers has a bias for h heads and T tokens?",
    "h·T²·itemsize may be at most `memory`. Solve for T, and round down.",
    """math.isqrt takes the root of an integer and rounds down:
>>> math.isqrt(17)
4""",
    well_done="four times the memory for twice the text.",
)
def longest_bias(answer: Answer) -> None:
    for memory, heads, itemsize in ((2**34, 32, 2), (2**34 - 1, 32, 2), (80 * 10**9, 16, 4)):
        got = answer.number(memory, heads, itemsize)
        expected = math.isqrt(memory // (heads * itemsize))
        if got == expected:
            continue
        if not got.is_integer():
            wrong(f"it returned {got:.12g}: a text has a whole number of tokens, so round down")
        if got == expected + 1:
            wrong(f"T = {got:.0f} needs more than {memory:,} bytes: round down")
        if got == memory // (heads * itemsize):
            wrong("every query has a number for every key: T appears squared")
        if got == math.isqrt(memory // itemsize):
            wrong("every head has a bias of its own: divide by the number of heads too")
        if got == math.isqrt(memory // heads):
            wrong("that counts numbers: each has itemsize bytes")
        wrong(
            f"{got:,.0f} is not the longest text for {memory:,} bytes, {heads} heads, itemsize {itemsize}: its bias takes {heads * itemsize * got**2:,.0f} bytes"
        )


def _traffic(size: int, kernels: int) -> Traffic:
    """Bytes spread over so many kernels."""
    return Traffic((("kernel", size // kernels, 0),) * kernels)
