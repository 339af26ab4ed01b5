"""The layer's kernels, against torch's own operations on tensors without memory, and its time by hand."""

import pytest
import torch

from posenc.chapters.what_it_costs.layer import (
    HEAD,
    HIDDEN,
    KEYS,
    QUERIES,
    TEXT,
    WIDTH,
    Kernel,
    layer,
    rotate_with_cat,
    rotation,
    shares,
    times,
)
from posenc.chapters.what_it_costs.simulated import SimulatedStream
from posenc.timing import count_bytes


def empty(*shape):
    return torch.empty(shape, dtype=torch.bfloat16, device="meta")


def by_part(new, way):
    kernels = layer(new, way)
    return {part: [k for k in kernels if k.part == part] for part in {k.part for k in kernels}}


def bytes_of(function):
    return count_bytes(function).bytes


def test_the_weights_are_those_of_the_model():
    weights = sum(kernel.operations for kernel in by_part(1, None)["products"]) // 2
    assert weights == 218_103_808


@pytest.mark.parametrize("new", [1, 7, 4096])
def test_the_products_and_the_rest_are_torchs(new):
    found = {part: [kernel.bytes for kernel in kernels] for part, kernels in by_part(new, None).items()}
    shapes = [(WIDTH, QUERIES), (WIDTH, KEYS), (WIDTH, KEYS), (QUERIES, WIDTH), (WIDTH, HIDDEN)]
    shapes += [(WIDTH, HIDDEN), (HIDDEN, WIDTH)]
    assert found["products"] == [bytes_of(lambda: empty(new, into) @ empty(out, into).mT) for into, out in shapes]
    x, hidden, key = empty(new, WIDTH), empty(new, HIDDEN), empty(new, KEYS)
    norm = 2 * x.nbytes  # read once and written once, as a fused kernel does it
    residual = bytes_of(lambda: x + empty(new, WIDTH))
    silu = bytes_of(lambda: torch.nn.functional.silu(hidden))
    gated = bytes_of(lambda: hidden * empty(new, HIDDEN))
    cached = bytes_of(lambda: empty(new, KEYS).copy_(key))
    assert found["the rest"] == [norm, cached, cached, residual, norm, silu, gated, residual]


def test_attention_by_hand():
    for new, pairs in ((TEXT, TEXT * (TEXT + 1) // 2), (1, TEXT), (2, 2 * TEXT - 1)):
        (kernel,) = by_part(new, None)["attention"]
        assert kernel.operations == 2 * 2 * pairs * QUERIES  # a product and a sum, for scores and for values
        assert kernel.bytes == 2 * (2 * new * QUERIES + 2 * TEXT * KEYS)


@pytest.mark.parametrize("new", [1, 7])
def test_the_rotation_is_torchs(new):
    cos = empty(new, HEAD)
    found = rotation(new, "ten kernels")
    for kernels, size in ((found[:5], QUERIES), (found[5:], KEYS)):
        turned = bytes_of(lambda: rotate_with_cat(empty(size // HEAD, new, HEAD), cos, cos))
        assert sum(kernel.bytes for kernel in kernels) == turned
    (fused,) = rotation(new, "one kernel")
    assert fused.operations == sum(k.operations for k in found) == 3 * new * (QUERIES + KEYS)
    assert fused.bytes == 2 * (2 * new * (QUERIES + KEYS) + 2 * new * HEAD)


def test_times_by_hand():
    few, many = [Kernel("products", 400_000_000, 0)], [Kernel("the rest", 0, 0)] * 10
    assert times(few) == pytest.approx((5e-6, 100e-6))  # 400 MB at 4 TB/s
    assert times(many) == pytest.approx((50e-6, 0))  # ten launches of 5 µs
    assert times(few + many, launch=1e-6) == pytest.approx((11e-6, 100e-6))
    slow = Kernel("products", 400_000_000, 2 * 10**11)
    assert times([slow]) == pytest.approx((5e-6, 200e-6))  # at 1e15 operations a second


def test_the_slower_of_host_and_device_decides_in_a_row_of_layers():
    for new, way in ((1, "ten kernels"), (1, "one kernel"), (4096, "ten kernels")):
        stream, kernels, ends = SimulatedStream(launch=5e-6), layer(new, way), []
        for _ in range(12):
            for kernel in kernels:
                stream.kernel(times([kernel])[1])()
            ends.append(stream.log[-1][-1])
        assert ends[-1] - ends[-2] == pytest.approx(max(times(kernels)))


def test_shares_by_hand():
    found = shares(1, "ten kernels")
    assert found["launches"] == 10 / 26
    kernels = layer(1, "ten kernels")
    assert found["bytes"] == sum(k.bytes for k in rotation(1, "ten kernels")) / sum(k.bytes for k in kernels)
    without = sum(k.bytes for k in layer(1, None)) / 4e12  # the device's time, longer than 16 launches take
    assert found["time"] == pytest.approx(1 - without / 130e-6, rel=1e-3)
    assert shares(1, "ten kernels", launch=1e-6)["time"] < 0.001  # as with a graph
