"""What is timed and counted: simulated clocks, and bytes worked out by hand."""

import copy
import importlib.util
import statistics
import time

import pytest
import torch
from torch.utils.benchmark import Compare, Measurement, TaskSpec

from posenc import timing
from posenc.chapters.what_it_costs.simulated import SimulatedStream
from posenc.rotary import angles, rotate
from posenc.timing import Timing, copy_floor, count_bytes, measure, peak_memory, sample_host, sample_stream

# ---------------------------------------------------------------------------- the loop on an accelerator


@pytest.mark.parametrize(
    "kernel, longest",
    [
        ({}, 40e-6),
        ({"warm": 20e-6}, 40e-6),  # each finds the cache flushed
        ({"compiling": 1.0, "slow_calls": 3}, 40e-6),
        ({"every": 7, "delay": 1e-3}, 1.04e-3),  # an interruption spoils its own sample
    ],
)
def test_the_loop_reads_what_the_device_does(kernel, longest):
    stream = SimulatedStream()
    _, times, _ = sample_stream(stream.kernel(40e-6, **kernel), stream, seconds=0.005)
    assert (statistics.median(times), max(times)) == pytest.approx((40e-6, longest), abs=1e-9)


@pytest.mark.parametrize("seconds, fewest, most", [(1e-6, 5, 5), (0.01, 50, 150), (100, 1000, 1000)])
def test_the_budget_decides_how_many_samples(seconds, fewest, most):
    stream = SimulatedStream()
    assert fewest <= len(sample_stream(stream.kernel(40e-6), stream, seconds=seconds)[1]) <= most


def test_the_loop_synchronises_once_for_all_samples():
    stream, waits = SimulatedStream(), []
    wait = stream.synchronize
    stream.synchronize = lambda: waits.append(len(stream.log)) or wait()
    _, times, _ = sample_stream(stream.kernel(40e-6), stream, seconds=0.01)
    assert len(waits) == 4  # after the first call, the estimate, the warm-up and the samples
    assert waits[-1] - waits[-2] == 4 * len(times)


@pytest.mark.parametrize("duration, calls", [(40e-6, 1), (5e-6, 1), (4e-6, 2), (2e-6, 4), (0.7e-6, 8)])
def test_short_kernels_are_timed_in_batches(duration, calls):
    stream = SimulatedStream()
    found, times, host_bound = sample_stream(stream.kernel(duration), stream, seconds=0.01)
    assert found == calls and not host_bound
    assert times == pytest.approx([calls * duration] * len(times))  # of a batch, as torch's Measurement takes it


@pytest.mark.parametrize(
    "count, duration, host_bound",
    [
        (1, 1e-6, False),
        (10, 1e-6, False),  # launched in 50 µs, while the device flushes for 60
        (20, 1e-6, True),  # launched in 100: the device waits between the readings
        (20, 20e-6, False),  # launched faster than they are done, so the host gets ahead
        (1, 1e-3, False),
    ],
)
def test_a_host_that_is_too_slow_is_noticed(count, duration, host_bound):
    stream = SimulatedStream()
    kernels = [stream.kernel(duration) for _ in range(count)]
    calls, times, found = sample_stream(lambda: [kernel() for kernel in kernels], stream, seconds=0.05)
    assert found == host_bound
    read = statistics.median(times) / calls
    assert (read > 1.5 * count * duration) == host_bound  # then the launches are in what is read


def test_a_host_that_waits_in_the_function_is_noticed():
    stream = SimulatedStream()
    kernel = stream.kernel(40e-6)
    assert sample_stream(lambda: (kernel(), stream.synchronize()), stream, seconds=0.01)[2]


def test_the_simulated_device_works_in_order_and_the_host_does_not_wait():
    stream = SimulatedStream(launch=1.0, flushing=10.0)
    kernel = stream.kernel(4.0, warm=3.0, compiling=100.0, slow_calls=1)
    kernel(), kernel(), stream.flush(), kernel()
    assert stream.log == [  # name, queued, and on the device from when to when
        ("kernel", 100.0, 101.0, 113.0),
        ("kernel", 101.0, 113.0, 116.0),
        ("flush", 102.0, 116.0, 126.0),
        ("kernel", 103.0, 126.0, 130.0),
    ]
    assert stream.clock() == 104.0
    stream.synchronize()
    assert stream.clock() == 130.0
    assert copy.deepcopy(stream) is stream


# ------------------------------------------------------------------------------- the loop on the host


class Clock:
    """A clock that the timed function moves."""

    def __init__(self, durations):
        self.now, self.durations, self.calls = 0.0, durations, 0

    def __call__(self):
        return self.now

    def work(self):
        self.now += self.durations(self.calls)
        self.calls += 1


@pytest.mark.parametrize(
    "durations, samples, longest",
    [
        (lambda call: 1e-3 if call > 2 else 1.0, 200, 1e-3),  # the first ones are no samples
        (lambda call: 2e-3 if call < 20 else 1e-3, 200, 1e-3),  # warm after a quarter of the budget: 40 ms of 50
        (lambda call: 1e-2 if call % 10 == 0 else 1e-3, 105, 1e-2),  # an interruption spoils its own sample
    ],
)
def test_every_call_is_a_sample_once_it_is_warm(durations, samples, longest):
    clock = Clock(durations)
    calls, times = sample_host(clock.work, seconds=0.2, clock=clock)
    assert calls == 1 and len(times) == pytest.approx(samples, abs=5)
    assert (statistics.median(times), max(times)) == pytest.approx((1e-3, longest))


@pytest.mark.parametrize("duration, calls", [(30e-6, 1), (11e-6, 2), (1e-6, 32), (0.3e-6, 128)])
def test_short_calls_are_doubled_until_a_sample_is_long_enough(duration, calls):
    clock = Clock(lambda call: duration)
    found, times = sample_host(clock.work, seconds=0.01, clock=clock)
    assert found == calls
    assert times == pytest.approx([calls * duration] * len(times))


def test_a_slow_function_gets_five_samples_and_two_calls_before():
    clock = Clock(lambda call: 2.0)
    assert len(sample_host(clock.work, seconds=0.2, clock=clock)[1]) == 5
    assert clock.calls == 8  # the first, one to warm up, one to see how long it takes


def test_a_sleep_of_known_length():
    timing = measure(lambda: time.sleep(1e-3), device="cpu", seconds=0.05)
    assert 1e-3 <= timing.minimum <= timing.median and timing.samples >= 5


# -------------------------------------------------------------------------------------------- results


def result(times, calls=1, **options):
    return Timing(Measurement(calls, times, TaskSpec("f", "pass", label="time")), **options)


def test_statistics_are_exact():
    found = result([8.0, 2.0, 4.0, 6.0, 10.0], calls=2)
    assert (found.median, found.iqr, found.minimum, found.samples) == (3.0, 2.0, 1.0, 5)
    assert found.bytes_per_second is None and found.floor_fraction is None
    assert result([8.0, 2.0, 4.0, 6.0, 10.0], calls=2, bytes_moved=6).bytes_per_second == 2.0
    assert str(result([4e-6] * 5)).startswith("f: 4 µs · ")


def test_a_result_against_the_floor():
    found = result([0.002] * 5, bytes_moved=4_000_000, floor=result([0.0005] * 5, bytes_moved=4_000_000))
    assert found.bytes_per_second == pytest.approx(2e9)
    assert found.floor_fraction == pytest.approx(0.25)
    assert str(found) == "f: 2 ms · IQR 0 · least 2 · 5 samples · 2 GB/s · 0.25 of a copy's speed"
    assert repr(found) == str(found)


def test_a_wide_spread_is_noted_and_a_slow_host_and_the_clock_stand_beside_the_figures():
    assert result([1.0, 1.0, 1.1, 1.2, 1.2]).note == ""
    wide = result([1.0, 1.0, 1.0, 2.0, 2.0])
    assert wide.note == "the spread is 100% of the median: do not trust it"
    assert str(wide).endswith(wide.note) and "\n" not in str(wide)
    found = result([1.0, 1.0, 1.0, 1.3, 1.3], host_bound=True, clock=1755)
    assert str(found).endswith(
        " · at 1,755 MHz · the host is the bottleneck: its launches are in this time; record them in a graph; "
        "the spread is 30% of the median: do not trust it"
    )


def test_the_clock_is_read_where_it_can_be(monkeypatch):
    assert timing._clock(torch.device("cpu")) is None
    monkeypatch.setattr(torch.cuda, "clock_rate", lambda device: {"cuda:1": 1980}[str(device)])
    assert timing._clock(torch.device("cuda:1")) == 1980
    assert timing._clock(torch.device("cuda:0")) is None  # as without the package that reads it


def test_what_an_accelerator_gives_is_kept(monkeypatch):
    monkeypatch.setattr(timing, "_first_call", lambda fn, device: torch.device("cuda"))
    monkeypatch.setattr(timing, "_Stream", lambda device: None)
    monkeypatch.setattr(timing, "sample_stream", lambda fn, stream, seconds: (4, [8e-6] * 5, True))
    monkeypatch.setattr(timing, "_clock", lambda device: 1980)
    found = measure(lambda: None)
    assert (found.median, found.host_bound, found.clock) == (2e-6, True, 1980)


def test_a_notebook_shows_a_table():
    measurement = Measurement(1, [0.002] * 5, TaskSpec("<lambda>", "pass"))
    html = Timing(measurement, bytes_moved=4_000_000)._repr_html_()
    assert html.startswith("<b>&lt;lambda&gt;</b><table>") and html.endswith("</table>")
    assert "<td>2 ms</td>" in html and "<td>2 GB/s</td>" in html


def test_results_go_into_torchs_table_and_keep_the_name_of_what_was_measured():
    one = torch.ones(10)
    rows = [measure(lambda: one + 1, name=name, seconds=0.001) for name in ("first", "second")]
    table = str(Compare([row.measurement for row in rows]))
    assert all(word in table for word in ("first", "second", "cpu", "time"))


def test_the_floor_copies_half_and_the_clone_beside_it(monkeypatch):
    seen = {}
    monkeypatch.setattr(timing, "sample_host", lambda fn, seconds: (1, [seen.setdefault("fn", fn) and 1.0] * 5))
    assert copy_floor(1_000_000).bytes_per_second == 1_000_000
    assert [(read, written) for _, read, written in count_bytes(seen.pop("fn")).operations] == [(500_000, 500_000)]
    copy_floor(1_000_000, clone=True)
    assert count_bytes(seen["fn"]).operations == (("clone", 500_000, 500_000),)


def test_the_floor_is_measured_where_none_is_given():
    x = torch.ones(1000)
    found = measure(lambda: x + 1, bytes_moved=8000, seconds=0.001)
    assert found.floor.bytes_moved == 8000 and found.floor_fraction > 0
    given = measure(lambda: x + 1, bytes_moved=8000, floor=found.floor, seconds=0.001)
    assert given.floor is found.floor
    assert found.measurement.stmt == "<lambda>"


# -------------------------------------------------------------------------------------------- bad use


def raises():
    raise KeyError("what?")


@pytest.mark.parametrize(
    "fn, options, error, words",
    [
        (torch.ones(2), {}, TypeError, "fn is a Tensor: pass a function"),
        (raises, {}, RuntimeError, "fn raised KeyError: 'what"),
        (lambda: None, {}, TypeError, "fn returns no tensor: return what it computes"),
        (lambda: [torch.ones(1), torch.ones(1, device="meta")], {}, TypeError, "fn returns cpu and meta"),
        (lambda: torch.ones(1), {"device": "gpu"}, ValueError, "there is no device named 'gpu'"),
        (lambda: torch.ones(1), {"device": "meta"}, RuntimeError, "device meta cannot be used"),
        (lambda: torch.ones(1, device="meta"), {}, RuntimeError, "device meta cannot be used"),
        (lambda: torch.ones(1, device="meta"), {"device": "cpu"}, ValueError, "computes on meta, which a clock"),
        (lambda: torch.ones(1), {"seconds": 0}, ValueError, "seconds is 0"),
        (lambda: torch.ones(1), {"bytes_moved": 1}, ValueError, "a copy moves at least 2"),
        (lambda: torch.ones(1), {"bytes_moved": -8, "floor": 1}, ValueError, "bytes_moved is -8"),
    ],
)
def test_bad_use_of_measure(fn, options, error, words):
    with pytest.raises(error, match=words):
        measure(fn, **options)
    with pytest.raises(ValueError, match="bytes_moved is 1: a copy moves at least 2"):
        copy_floor(1)


@pytest.mark.skipif(torch.accelerator.is_available(), reason="this machine has an accelerator")
@pytest.mark.parametrize("device", ["cuda", "cuda:7", "mps"])
def test_an_accelerator_asked_for_where_there_is_none(device):
    for ask in (lambda: measure(lambda: torch.ones(1), device=device), lambda: copy_floor(100, device=device)):
        with pytest.raises(RuntimeError, match=f"device {device} cannot be used: torch .* sees cpu alone"):
            ask()


@pytest.mark.parametrize("count", [count_bytes, peak_memory])
def test_bad_use_of_the_counters(count):
    with pytest.raises(TypeError, match="fn is a int"):
        count(3)
    with pytest.raises(RuntimeError, match="fn raised KeyError"):
        count(raises)


def test_an_event_is_not_asked_before_a_synchronisation():
    stream = SimulatedStream()
    start, _, end = stream.record(), stream.kernel(1.0)(), stream.record()
    with pytest.raises(RuntimeError, match="has not come that far"):
        start.elapsed_time(end)


# ---------------------------------------------------------------------------------- bytes, by hand

x, y, row = torch.ones(8, 16), torch.ones(8, 16), torch.ones(16)
half = x.to(torch.bfloat16)
table, places = torch.ones(100, 16), torch.tensor([3, 1, 3])


@pytest.mark.parametrize(
    "fn, read, written, kernels",
    [
        (lambda: x + y, 1024, 512, 1),
        (lambda: x + row, 512 + 64, 512, 1),  # broadcast: the row is read where it stands
        (lambda: x + y[0].expand(8, 16), 512 + 64, 512, 1),
        (lambda: x.flatten().unfold(0, 4, 1).sum(), 512, 4, 1),  # windows that overlap
        (lambda: x * x, 512, 512, 1),  # the same operand twice
        (lambda: x.to(torch.bfloat16), 512, 256, 1),
        (lambda: half + row, 256 + 64, 512, 1),
        (lambda: x[:, 1:].mT.unflatten(0, (3, 5)), 0, 0, 0),  # views
        (lambda: x.mT.contiguous(), 512, 512, 1),
        (lambda: torch.empty_like(x), 0, 0, 0),
        (lambda: torch.zeros(8, 16), 0, 512, 1),
        (lambda: x.clone().add_(y), 512 + 1024, 512 + 512, 2),
        (lambda: torch.empty_like(x).copy_(y), 512, 512, 1),
        (lambda: torch.add(x, y, out=torch.empty(8, 16)), 1024, 512, 1),
        (lambda: torch.empty(4).fill_(2), 0, 16, 1),
        (lambda: x.copy_(x), 0, 0, 0),
        (lambda: torch.promote_types(x.dtype, half.dtype), 0, 0, 0),
        (lambda: x.sum().item(), 512 + 4, 4, 2),
        (lambda: torch.cat([x, y]), 1024, 1024, 1),
        (lambda: x @ y.mT, 1024, 256, 1),
        (lambda: table[places], 192 + 24, 192, 1),
        (lambda: torch.nn.functional.embedding(places, table), 192 + 24, 192, 1),
        (lambda: table.index_select(0, places), 192 + 24, 192, 1),
        (lambda: x.gather(1, x[:, :2].long()), 64 + 64 + 128, 128 + 64, 2),  # the long copy is the other kernel
        (lambda: x.split(4), 0, 0, 0),
        (lambda: 3, 0, 0, 0),
    ],
)
def test_bytes_by_hand(fn, read, written, kernels):
    found = count_bytes(fn)
    assert sum(operation[1] for operation in found.operations) == read
    assert sum(operation[2] for operation in found.operations) == written
    assert (found.bytes, found.kernels) == (read + written, kernels)
    assert repr(found).startswith(f"{read + written:,} bytes in {kernels} kernel{'s' * (kernels != 1)}, read + wr")


def test_a_slice_changed_in_place_is_not_copied_to_itself():
    def change():
        z = torch.empty(8, 16)
        z[:, :8] += row[:8]

    assert count_bytes(change).operations == (("add_", 256 + 32, 256),)


def test_bytes_of_a_rotation_in_both_layouts():
    batch, heads, length, d = 2, 3, 5, 8
    q = torch.ones(batch, heads, length, d)
    turn = angles(torch.arange(length), d)
    n, pairs = q.numel(), length * d // 2
    tables = 2 * pairs * (8 + 8) + 2 * pairs * (8 + 4)  # cos and sin in float64, then both to float32
    complex_multiply = 4 * (n + 2 * pairs) + 4 * n  # x and e^iθ read, the result written
    assert count_bytes(lambda: rotate(q, turn)).bytes == tables + 2 * 8 * pairs + complex_multiply
    first = 4 * (2 * n + 2 * pairs)  # x times (cos, cos)
    a_half = 4 * (3 * n / 2 + pairs)  # half of x and sin read, half of the result read and written
    expected = tables + 4 * 3 * pairs + first + 2 * a_half
    assert count_bytes(lambda: rotate(q, turn, layout="half_split")).bytes == expected


@pytest.mark.slow  # importing transformers takes five seconds
def test_bytes_of_transformers_rotation_are_those_that_chapter_7_counts():
    llama = pytest.importorskip("transformers.models.llama.modeling_llama", reason="transformers is not installed")
    q, cos = torch.ones(1, 3, 5, 8), torch.ones(1, 5, 8)
    n, t = q.numel(), cos.numel()
    assert count_bytes(lambda: llama.apply_rotary_pos_emb(q, q, cos, cos)).bytes == 2 * 4 * (10 * n + 2 * t)


# ------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize(
    "fn, peak",
    [
        (lambda: x + y, 512),
        (lambda: x.mT, 0),
        (lambda: x.add_(0), 0),
        (lambda: (x + y).sum(), 512 + 4),
        (lambda: (x + y) + y, 1024),
        (lambda: ((x + y) + y) + y, 1024),  # the first sum is gone when the third is made
        (lambda: ((x + y) + y).sum(), 1024),  # not at the end
        (lambda: [x + y for _ in range(3)], 3 * 512),
        (lambda: torch.zeros(1000, dtype=torch.float64), 8000),
        (lambda: (x + y)[:1], 512),  # a view keeps all of its memory
        (lambda: torch.zeros(32, 65_536, 65_536, device="meta"), 32 * 65_536**2 * 4),
    ],
)
def test_memory_by_hand(fn, peak):
    assert peak_memory(fn) == peak


def test_memory_of_an_earlier_call_is_not_counted():
    kept = []
    assert [peak_memory(lambda: kept.append(x + y)) for _ in range(3)] == [512] * 3


# -------------------------------------------------------------------------------------------- on a GPU

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU here: not run")


@gpu
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed: not run")
@pytest.mark.parametrize("megabytes", [4, 64, 1024])
def test_means_agree_with_tritons(megabytes):
    from triton.testing import do_bench

    source = torch.zeros(megabytes << 18, device="cuda")
    target = torch.empty_like(source)
    found = measure(lambda: target.copy_(source))
    assert not found.host_bound
    ours = found.measurement.mean
    assert ours == pytest.approx(do_bench(lambda: target.copy_(source)) / 1000, rel=0.05)


@gpu
def test_the_floor_is_near_the_cards_bandwidth():
    card = torch.cuda.get_device_properties(0)
    known = 2 * card.memory_clock_rate * 1e3 * card.memory_bus_width / 8
    assert 0.7 * known < copy_floor(4 << 30, device="cuda").bytes_per_second < known
