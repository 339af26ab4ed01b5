"""One layer of an 8-billion model, kernel by kernel: what it computes, what it moves, how long a GPU would take.

The shapes are those of Llama 3 8B, in bfloat16. The rotation is counted from its operations; the rest of the layer has
as few kernels as good programs have. Conventions: bytes are read and written; times are seconds, of a device of round
numbers.
"""

from dataclasses import dataclass

import torch

from posenc.timing import count_bytes

WIDTH, QUERIES, KEYS, HIDDEN, HEAD = 4096, 32 * 128, 8 * 128, 14_336, 128  # numbers a token
TEXT = 4096  # tokens, the new ones included
BYTES_PER_SECOND, OPERATIONS_PER_SECOND, LAUNCH = 4e12, 1e15, 5e-6  # round numbers of a large GPU of today
WAYS = ("ten kernels", "one kernel")


@dataclass(frozen=True)
class Kernel:
    """What one kernel does.

    Attributes:
        part: "rotation", "products", "attention" or "the rest".
        bytes: read and written.
        operations: multiplications and additions.
    """

    part: str
    bytes: int
    operations: int


def rotate_with_cat(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """The half-split rotation as many models spell it, x (…, T, d), cos and sin (T, d) → (…, T, d)."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def rotation(new: int, way: str) -> list[Kernel]:
    """The kernels that rotate the queries and keys of so many new tokens, in one of WAYS."""
    operations = 3 * new * (QUERIES + KEYS)  # of a number, two products and a sum
    cos = torch.empty(new, HEAD, dtype=torch.bfloat16, device="meta")
    if way == "one kernel":  # q and k read once and written once, and two tables of cosines and sines
        return [Kernel("rotation", 2 * (2 * new * (QUERIES + KEYS) + 2 * new * HEAD), operations)]
    kernels = []
    for numbers in (QUERIES, KEYS):
        x = cos.new_empty(numbers // HEAD, new, HEAD)
        for name, read, written in count_bytes(lambda: rotate_with_cat(x, cos, cos)).operations:
            kernels.append(Kernel("rotation", read + written, new * numbers if name in ("mul", "add") else 0))
    return kernels


def layer(new: int, way: str | None) -> list[Kernel]:
    """All kernels of the layer in order, for the last `new` tokens of a text of 4,096; way None rotates nothing.

    The cache holds the keys and values of the tokens before.
    """

    def product(into: int, out: int) -> Kernel:
        return Kernel("products", 2 * (into * out + new * (into + out)), 2 * new * into * out)

    def rest(read: int, written: int) -> Kernel:
        return Kernel("the rest", 2 * new * (read + written), new * (read + written))

    norm, residual = rest(WIDTH, WIDTH), rest(2 * WIDTH, WIDTH)
    pairs = new * TEXT - new * (new - 1) // 2  # that a causal mask leaves
    attention = Kernel("attention", 2 * (2 * new * QUERIES + 2 * TEXT * KEYS), 4 * pairs * QUERIES)
    up, silu, gated = product(WIDTH, HIDDEN), rest(HIDDEN, HIDDEN), rest(2 * HIDDEN, HIDDEN)
    return [
        *(norm, product(WIDTH, QUERIES), product(WIDTH, KEYS), product(WIDTH, KEYS)),
        *(rotation(new, way) if way else []),
        *(rest(KEYS, KEYS), rest(KEYS, KEYS)),  # into the cache
        *(attention, product(QUERIES, WIDTH), residual),
        *(norm, up, up, silu, gated, product(HIDDEN, WIDTH), residual),
    ]


def times(kernels: list[Kernel], launch: float = LAUNCH) -> tuple[float, float]:
    """How long the host needs to launch them, and the device to do them."""
    device = sum(max(k.bytes / BYTES_PER_SECOND, k.operations / OPERATIONS_PER_SECOND) for k in kernels)
    return len(kernels) * launch, device


def shares(new: int, way: str, launch: float = LAUNCH) -> dict[str, float]:
    """The rotation's share of the layer's arithmetic, bytes, launches and time, each from 0 to 1.

    Many layers alike follow each other, so a layer takes as long as the slower of host and device. The rotation's
    share of the time is what the layer would save without it.
    """
    kernels = layer(new, way)
    turning = [kernel for kernel in kernels if kernel.part == "rotation"]
    return {
        "arithmetic": sum(k.operations for k in turning) / sum(k.operations for k in kernels),
        "bytes": sum(k.bytes for k in turning) / sum(k.bytes for k in kernels),
        "launches": len(turning) / len(kernels),
        "time": 1 - max(times(layer(new, None), launch)) / max(times(kernels, launch)),
    }
