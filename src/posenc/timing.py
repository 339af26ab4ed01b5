"""Time a function on a CPU or an accelerator, beside what a copy costs; count the bytes that it moves.

Conventions: times are seconds. Bytes count what is read and what is written, so copying n bytes moves 2n.
A function is timed as it stands, with the threads that torch has (`torch.get_num_threads()`).
"""

import html
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from weakref import finalize

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.benchmark import Measurement, TaskSpec, select_unit

LONG_ENOUGH = 20e-6  # seconds of a sample on the host, so that reading the clock costs nothing beside it
RESOLVED = 5e-6  # seconds of a sample on an accelerator, whose events don't resolve much less
FLUSH = 512 << 20  # bytes, twice the largest cache of today's accelerators, the 256 MiB of an MI300X
TRUST = 0.25  # of the median: torch's own limit for a "significant environmental influence"


@dataclass(frozen=True)
class Timing:
    """What `measure` found.

    Attributes:
        measurement: the samples as torch keeps them; hand several to `torch.utils.benchmark.Compare`.
        bytes_moved: what the function has to read and write, if it was given.
        floor: how long a copy takes that moves as many bytes.
        host_bound: the accelerator had to wait for launches, and the waiting is in the samples.
        clock: MHz of the accelerator, None where it cannot be read. Compare figures of one clock: heat lowers it.
    """

    measurement: Measurement
    bytes_moved: int | None = None
    floor: "Timing | None" = None
    host_bound: bool = False
    clock: int | None = None

    @property
    def median(self) -> float:
        """Of the samples, seconds a call."""
        return self.measurement.median

    @property
    def iqr(self) -> float:
        """The interquartile range: how far apart a quarter and three quarters of the samples are, seconds."""
        return self.measurement.iqr

    @property
    def minimum(self) -> float:
        """The shortest sample, seconds a call."""
        return min(self.measurement.times)

    @property
    def samples(self) -> int:
        """How many there are."""
        return len(self.measurement.raw_times)

    @property
    def bytes_per_second(self) -> float | None:
        """bytes_moved in a median, or None."""
        return None if self.bytes_moved is None else self.bytes_moved / self.median

    @property
    def floor_fraction(self) -> float | None:
        """1 is as fast as a copy of as many bytes, ½ is half as fast; or None."""
        return None if self.floor is None else self.floor.median / self.median

    @property
    def note(self) -> str:
        """Why the figures should not be trusted, or an empty string."""
        spread = self.iqr / self.median
        notes = []
        if self.host_bound:
            notes.append("the host is the bottleneck: its launches are in this time; record them in a graph")
        if spread > TRUST:
            notes.append(f"the spread is {spread:.0%} of the median: do not trust it")
        return "; ".join(notes)

    def __str__(self) -> str:
        return f"{self.measurement.stmt}: {' · '.join(self._words())}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = "".join(f"<td>{html.escape(words)}</td>" for words in self._words())
        return f"<b>{html.escape(self.measurement.stmt)}</b><table><tr>{cells}</tr></table>"

    def _words(self) -> list[str]:
        unit, scale = select_unit(self.median)
        words = [
            f"{self.median / scale:.3g} {unit.replace('u', 'µ')}",
            f"IQR {self.iqr / scale:.2g}",
            f"least {self.minimum / scale:.3g}",
            f"{self.samples} samples",
        ]
        if self.bytes_moved is not None:
            words.append(f"{self.bytes_per_second / 1e9:.3g} GB/s")
        if self.floor is not None:
            words.append(f"{self.floor_fraction:.2f} of a copy's speed")
        if self.clock is not None:
            words.append(f"at {self.clock:,} MHz")
        return [*words, self.note] if self.note else words


def measure(
    fn: Callable[[], object],
    *,
    device: torch.device | str | None = None,
    bytes_moved: int | None = None,
    floor: Timing | None = None,
    name: str | None = None,
    seconds: float = 0.2,
) -> Timing:
    """How long a call takes, once everything is warm and compiled.

    On a CPU the caches stay as the calls leave them, on an accelerator each sample finds them flushed. A sample is one
    call, or a batch of them where one is too short for the clock.

    Args:
        fn: takes nothing and returns the tensors that it computes.
        device: where it computes; that of the tensors which it returns, unless given.
        bytes_moved: what it has to read and write at the least, for a speed and a fraction of the copy floor.
        floor: made by `copy_floor`; measured here, unless given, if there are bytes_moved.
        name: for the result; that of the function, unless given.
        seconds: budget for the samples. Five are taken in any case; warming up takes a quarter more.

    Raises:
        TypeError: fn cannot be called, or no device is given and it returns no tensor, or tensors on several.
        RuntimeError: fn raises, or this machine or this build of torch has no such device.
        ValueError: no device has that name, fn computes on another, seconds are not positive, bytes_moved below 2.
    """
    if not seconds > 0:
        raise ValueError(f"seconds is {seconds}: give the samples a positive budget")
    if bytes_moved is not None:
        _require_bytes(bytes_moved)
    place = _first_call(fn, device)
    if place.type == "cpu":
        (calls, times), host_bound, clock = sample_host(fn, seconds=seconds), False, None
    else:
        calls, times, host_bound = sample_stream(fn, _Stream(place), seconds=seconds)
        clock = _clock(place)
    if bytes_moved is not None and floor is None:
        floor = copy_floor(bytes_moved, device=place, seconds=seconds)
    stmt = name or getattr(fn, "__name__", type(fn).__name__)
    spec = TaskSpec(stmt, setup="pass", label="time", description=str(place), num_threads=torch.get_num_threads())
    return Timing(Measurement(calls, times, spec), bytes_moved, floor, host_bound, clock)


def copy_floor(
    bytes_moved: int, *, device: torch.device | str = "cpu", clone: bool = False, seconds: float = 0.2
) -> Timing:
    """How long a copy takes that moves so many bytes: half of them read, half of them written.

    Args:
        bytes_moved, device, seconds: as in `measure`, which says too what is raised.
        clone: ask for new memory each time, for which a CPU may have to fetch new pages.
    """
    _require_bytes(bytes_moved)
    source = torch.zeros(bytes_moved // 2, dtype=torch.uint8, device=_require_device(device))
    target = source.clone()
    fn, name = (source.clone, "clone") if clone else (lambda: target.copy_(source), "copy")
    timing = measure(fn, device=source.device, name=name, seconds=seconds)
    return replace(timing, bytes_moved=bytes_moved)


def sample_host(
    fn: Callable[[], object], *, seconds: float = 0.2, clock: Callable[[], float] = time.perf_counter
) -> tuple[int, list[float]]:
    """Call after call by the host's clock: how many calls a sample has, and the samples in seconds.

    A sample is one call, or 2, 4, 8 … where one is too short. So an interruption spoils one sample.
    """
    fn()  # compiles, and touches the memory
    start = clock()
    while clock() - start < seconds / 4:
        fn()

    def sample(calls: int) -> float:
        start = clock()
        for _ in range(calls):
            fn()
        return clock() - start

    calls = 1
    while sample(calls) < LONG_ENOUGH:
        calls *= 2
    times, start = [], clock()
    while len(times) < 5 or clock() - start < seconds:
        times.append(sample(calls))
    return calls, times


def sample_stream(fn: Callable[[], object], stream, *, seconds: float = 0.2) -> tuple[int, list[float], bool]:
    """Call after call by the accelerator's own clock.

    The host only queues work, so the clock is read in the queue, before and after each sample. Between samples the
    cache is flushed, which is not timed, and the host can queue the next calls. A host that needs longer for that
    does not keep ahead: the accelerator waits inside a sample.

    Args:
        fn: queues work.
        stream: has `flush()`, `synchronize()`, and `record()`, which queues a reading of the clock and returns an
            event; its `elapsed_time(later)` is in ms, its `query()` tells whether it was reached.
        seconds: budget, flushes included; at least 5 and at most 1000 samples.

    Returns:
        how many calls a sample has: one, or 2, 4, 8 … where one is too short, and all after the first find in the
        cache what they read; the samples in seconds; and whether most had begun before the host was done with
        queueing, so that they hold its launches.
    """

    def rounds(count: float, calls: int = 1) -> tuple[list[tuple], list[bool]]:
        pairs, late = [], []
        for _ in range(int(min(max(count, 5), 1000))):
            stream.flush()
            start = stream.record()
            for _ in range(calls):
                fn()
            late.append(start.query())
            pairs.append((start, stream.record()))
        stream.synchronize()  # once: one after each sample would leave the queue empty
        return pairs, late

    def times(pairs: list[tuple]) -> list[float]:
        return [start.elapsed_time(end) / 1000 for start, end in pairs]

    fn()  # compiles
    stream.synchronize()
    pairs, _ = rounds(5)
    each = pairs[0][0].elapsed_time(pairs[-1][1]) / 1000 / len(pairs)
    pairs, _ = rounds(seconds / 4 / each)
    calls = 1
    while median(times(pairs)) < RESOLVED:
        calls *= 2
        pairs, _ = rounds(5, calls)
    pairs, late = rounds(seconds / each, calls)
    return calls, times(pairs), sum(late) > len(late) / 2


def _clock(device: torch.device) -> int | None:
    """MHz of an accelerator, where it can be read: on NVIDIA's it takes the package nvidia-ml-py."""
    try:
        return torch.get_device_module(device).clock_rate(device)
    except Exception:  # noqa: BLE001  a driver raises what it likes
        return None


class _Stream:
    """The current stream of an accelerator."""

    def __init__(self, device: torch.device):
        self.device = device
        self._cache = torch.empty(FLUSH, dtype=torch.uint8, device=device)

    def record(self) -> torch.Event:
        event = torch.Event(device=self.device, enable_timing=True)
        event.record(torch.accelerator.current_stream(self.device))
        return event

    def flush(self) -> None:
        self._cache.zero_()

    def synchronize(self) -> None:
        torch.accelerator.synchronize(self.device)


@dataclass(frozen=True)
class Traffic:
    """What `count_bytes` found.

    Attributes:
        operations: name, bytes read and bytes written of each, in order.
    """

    operations: tuple[tuple[str, int, int], ...]

    @property
    def bytes(self) -> int:
        """Read and written, together."""
        return sum(read + written for _, read, written in self.operations)

    @property
    def kernels(self) -> int:
        """Operations that touch memory. On a GPU each launches one kernel, some of them several."""
        return len(self.operations)

    def __repr__(self) -> str:
        names = ", ".join(f"{name} {read:,} + {written:,}" for name, read, written in self.operations)
        kernels = "1 kernel" if self.kernels == 1 else f"{self.kernels} kernels"
        return f"{self.bytes:,} bytes in {kernels}, read + written: {names or 'none'}"


def last_level_cache() -> int:
    """Bytes of the largest cache of this machine's processor, or 32 MiB where the system does not tell."""
    unit = {"K": 2**10, "M": 2**20, "G": 2**30}
    sizes = []
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        size = path.read_text().strip()
        sizes.append(int(size[:-1]) * unit[size[-1]] if size[-1:] in unit else int(size))
    return max(sizes, default=32 * 2**20)


def count_bytes(fn: Callable[[], object]) -> Traffic:
    """What the eager operations of a call read and write, if no cache keeps anything from one to the next.

    A view moves nothing, and neither does memory that is only handed out. An operand counts with the memory it stands
    in: an axis along which it is expanded counts once, and so does an operand that is given twice. An operation in
    place reads and writes its tensor; copy_, fill_, zero_ and `out=` only write theirs. A lookup reads as much of its
    table as it returns. Tensors on "meta" are counted without being computed, a function from `torch.compile` as it
    was before. TypeError where fn cannot be called, RuntimeError where it raises.
    """
    with _Watch() as watch:
        _call(fn)
    return Traffic(tuple(watch.operations))


def peak_memory(fn: Callable[[], object]) -> int:
    """The most bytes of new tensors that a call holds at one moment, its results included.

    Counted from the tensors' storages after each eager operation, on any device, "meta" too. What an operation needs
    for itself while it runs, and what the allocator rounds up, is not in it. It raises as `count_bytes` does.
    """
    with _Watch() as watch:
        _call(fn)
    return watch.peak


HANDED_OUT = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
OVERWRITES = {"copy_", "fill_", "zero_", "normal_", "uniform_", "random_"}
LOOKUPS = {"embedding", "index_select", "gather", "index"}


class _Watch(TorchDispatchMode):
    """Sees every operation below autograd, where composite ones are already taken apart."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[tuple[str, int, int]] = []
        self.live = self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.removeprefix("aten::")
        given = list(_tensors((args, kwargs)))
        results = list(_tensors(result))
        made = [tensor for tensor in results if not any(_shared(tensor, other) for other in given)]
        for storage in {id(s): s for s in (tensor.untyped_storage() for tensor in made)}.values():
            self._hold(storage)
        changed, unread = [], []
        for index, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = args[index] if index < len(args) else (kwargs or {}).get(argument.name)
                changed += _tensors(value)
                unread += _tensors(value) if argument.is_out or name in OVERWRITES else []
        is_view = bool(results) and not made and not changed
        is_question = not results and not given  # about dtypes, for example
        is_nothing = name == "copy_" and _same(given[0], given[-1])
        if not (is_view or is_question or is_nothing or name in HANDED_OUT):
            read = [_size(tensor) for tensor in given if not any(tensor is other for other in unread)]
            written = sum(map(_size, made + changed))
            if name in LOOKUPS:
                read[0] = min(read[0], written)
            self.operations.append((name, sum(read), written))
        return result

    def _hold(self, storage: torch.UntypedStorage) -> None:
        self.live += storage.nbytes()
        self.peak = max(self.peak, self.live)
        finalize(storage, self._release, storage.nbytes()).atexit = False

    def _release(self, size: int) -> None:
        self.live -= size


def _tensors(values: object) -> Iterator[Tensor]:
    """The tensors in nested lists and dicts, each once."""
    return iter({id(leaf): leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)}.values())


def _shared(one: Tensor, other: Tensor) -> bool:
    return one.untyped_storage() is other.untyped_storage()


def _same(one: Tensor, other: Tensor) -> bool:
    """Whether both are the same memory: x[…] += 1 ends by copying to itself, which torch leaves out."""
    return _shared(one, other) and all(
        getattr(one, what)() == getattr(other, what)() for what in ("size", "stride", "storage_offset")
    )


def _size(tensor: Tensor) -> int:
    """Bytes of memory that a tensor stands in, an expanded axis counted once."""
    count = tensor.element_size()
    for size, stride in zip(tensor.shape, tensor.stride()):
        count *= size if stride else min(size, 1)
    return min(count, tensor.untyped_storage().nbytes())


def _call(fn: Callable[[], object]) -> object:
    if not callable(fn):
        raise TypeError(f"fn is a {type(fn).__name__}: pass a function, such as lambda: rotate(x, angles)")
    try:
        return fn()
    except Exception as error:
        raise RuntimeError(f"fn raised {type(error).__name__}: {error}") from error


def _first_call(fn: Callable[[], object], device: torch.device | str | None) -> torch.device:
    """Call once; on which device the results are, which has to be the given one."""
    place = None if device is None else _require_device(device)
    found = {tensor.device for tensor in _tensors(_call(fn))}
    if place is None and len(found) != 1:
        what = " and ".join(sorted(map(str, found))) or "no tensor"
        raise TypeError(f"fn returns {what}: return what it computes, on one device, or name the device")
    if place is None:
        return _require_device(found.pop())
    if any(other.type != place.type or place.index not in (None, other.index) for other in found):
        raise ValueError(f"fn computes on {', '.join(map(str, found))}, which a clock of {place} cannot see")
    return place


def _require_bytes(bytes_moved: int) -> None:
    if bytes_moved < 2:
        raise ValueError(f"bytes_moved is {bytes_moved}: a copy moves at least 2, one read and one written")


def _require_device(device: torch.device | str) -> torch.device:
    try:
        device = torch.device(device)
    except RuntimeError:
        raise ValueError(f"there is no device named {device!r}: try 'cpu' or 'cuda'") from None
    if device.type == "cpu":
        return device
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if found is None or found.type != device.type or (device.index or 0) >= torch.accelerator.device_count():
        others = f" and {torch.accelerator.device_count()} {found.type}" if found else " alone"
        raise RuntimeError(f"device {device} cannot be used: torch {torch.__version__} sees cpu{others} here")
    return device
