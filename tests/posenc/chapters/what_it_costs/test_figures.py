"""Chapter 7's figures: what they draw is what is counted, simulated and handed to them."""

import functools

import pytest
import torch
from artists import points, said
from pictures import at

from posenc.chapters.what_it_costs import figures
from posenc.chapters.what_it_costs.layer import layer, rotate_with_cat, shares, times
from posenc.rotary import angles, rotate
from posenc.timing import Traffic, count_bytes


def call_by_call():
    times = [5e-3, 2e-4] + [1e-4 + 1e-6 * (call % 7) for call in range(48)]
    return figures.call_by_call(times, [2**n for n in range(12, 27, 2)], [2e9 * n for n in (1, 3, 6, 9, 9, 7, 4, 4)])


def predicted_and_measured():
    return figures.predicted_and_measured({"a": (1, 1.2), "b": (4, 9), "c": (3, None)}, missing="no compiler")


def bytes_by_operation():
    operations = {"one": Traffic((("mul", 40, 40),)), "two": Traffic((("neg", 10, 10), ("cat", 60, 80)))}
    return figures.bytes_by_operation(operations, copy=80)


def bytes_by_length():
    lengths = {T: {"added": 10**4 * T, "rotated": 3 * 10**4 * T, "bias": 100 * T**2} for T in (64, 512, 4096)}
    return figures.bytes_by_length(lengths)


roof = functools.cache(figures.roofline)  # made once, and moved from test to test


@pytest.mark.parametrize("length, d", [(32, 32), (65_536, 256)])
def test_operations_a_byte_by_hand(length, d):
    n, t, square = 8 * length * d, length * d, 8 * length**2
    live = at(roof(), power=length.bit_length() - 1, d=d)
    expected = {
        "add a vector": n / (2 * n + t),
        "rotate, with cat": 3 * n / (10 * n + 2 * t),
        "rotate, one kernel": 3 * n / (2 * n + t),
        "add a dense bias": square / (3 * square),
        "scores of one query": 2 * n / (8 * d + n + 8 * length),
        "scores of all": 2 * d * square / (2 * n + square),
    }
    for name, numbers in expected.items():
        x = numbers / 4  # four bytes a number
        assert points(live, name)[0].tolist() == pytest.approx([x, min(25e9 * x, 100e9)])
    assert f"T = {length:,}, d = {d}: scores of all, {expected['scores of all'] / 4:.1f}" in said(live, "readout")


def test_all_marks_are_inside_the_frame():
    axes = roof().figure.axes[0]
    for power in (5, 16):
        for d in (32, 256):
            live = at(roof(), power=power, d=d)
            assert all(axes.viewLim.contains(*points(live, name)[0]) for name in live.artists if name != "readout")


def test_the_roof_is_the_machines():
    live = figures.roofline(bytes_per_second=1e12, flops=1e14)
    assert live.alt == roof().alt  # no measured number is in the words
    live.set(power=16, d=256)
    assert points(live, "scores of all")[0, 1] == 1e14
    x, y = points(live, "add a vector")[0].tolist()
    assert y == pytest.approx(1e12 * x)


def test_what_the_figure_counts_is_a_rotation():
    x, angle = torch.randn(2, 6, 8), angles(torch.arange(6), 8)
    cos, sin = angle.cos().float().repeat(1, 2), angle.sin().float().repeat(1, 2)
    expected = rotate(x, angle, layout="half_split")
    torch.testing.assert_close(rotate_with_cat(x, cos, sin), expected)


@pytest.mark.parametrize(
    "way, cold, third",
    [("host, no wait", 80, 5), ("host, wait", 80, 45), ("events", 80, 40), ("events, flush", 80, 80)],
)
def test_the_time_axis_shows_what_is_read(way, cold, third):
    live = at(figures.timeline(), way=way, cold=cold)
    start, end = live.artists["read"].get_segments()[-1][:, 0]
    assert end - start + 1.6 == pytest.approx(third)  # drawn a little shorter
    assert said(live, "readout").startswith(f"reads {third} µs in the third call")
    assert len(live.artists["kernels"].get_paths()) == 3
    assert len(live.artists["flushes"].get_paths()) == (3 if way == "events, flush" else 0)
    right = max(path.vertices[:, 0].max() for path in live.artists["kernels"].get_paths())
    assert right < live.figure.axes[0].get_xlim()[1]


def test_the_bars_are_the_shares():
    live = at(figures.rotary_share(), new=8, way="one kernel", launch=10)
    expected = shares(256, "one kernel", 10e-6)
    ends = [path.vertices[:, 0].max() for path in live.artists["bars"].get_paths()]
    assert ends == pytest.approx([100 * share for share in expected.values()])
    for name, share in expected.items():
        assert said(live, name) == (f"{share:.3%}" if share < 0.001 else f"{share:.1%}")
    host, device = times(layer(256, "one kernel"), 10e-6)
    assert said(live, "readout").startswith("256 new tokens of ")
    assert said(live, "readout").endswith(f"needs {1e6 * host:,.0f} µs, the device {1e6 * device:,.0f}")
    live.set(new=0)
    assert said(live, "readout").startswith("1 new token of ")


def test_a_step_before_the_cache_costs_the_same_at_any_length():
    live = at(figures.rotated_in_a_step(), power=16)
    before, after = (points(live, name)[:, 1] for name in ("before", "after"))
    one, many = (
        count_bytes(lambda: rotate(torch.empty(8, n, 128, device="meta"), angles(places, 128))).bytes
        for n in (1, 64)
        for places in [torch.arange(n, device="meta")]
    )
    assert before.tolist() == [2 * one] * 17 and after[6] == one + many
    assert "65,536 in the cache" in said(live, "readout")
    live.set(power=3)
    assert [len(points(live, name)) for name in ("before", "after")] == [4, 4]


def test_no_measured_number_is_in_the_words():
    one = figures.call_by_call([1.0, 2.0], [1024], [1e9])
    other = figures.call_by_call([3.0, 4.0], [1024], [5e9])
    assert repr(one) == repr(other)
    rows = [figures.predicted_and_measured({"a": (1, measured)}) for measured in (2.0, 3.0, None)]
    assert len({repr(live) for live in rows}) == 1
