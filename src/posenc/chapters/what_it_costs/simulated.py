"""An accelerator that only pretends: a queue of work and two clocks, to see what a timing loop reads.

Conventions: seconds, but milliseconds between two events, as torch has them. Nothing is computed.
"""

from collections.abc import Callable
from dataclasses import dataclass


class SimulatedStream:
    """An accelerator's queue on two simulated clocks, to see what a loop would read. Nothing is computed.

    The host queues a piece of work in `launch` seconds and goes on; the device does the pieces in order.

    Args:
        launch: seconds of the host's clock to queue a piece of work.
        flushing: seconds of the device's clock to flush the cache.

    Attributes:
        log: of each piece of work its name, when the host queued it, and from when to when the device did it.
    """

    def __init__(self, *, launch: float = 5e-6, flushing: float = 60e-6):
        self.launch, self.flushing = launch, flushing
        self.log: list[tuple[str, float, float, float]] = []
        self._now = self._free = 0.0  # the host's clock, and when the device has done all that is queued
        self._cached: object = None  # whose data are in the cache

    def __deepcopy__(self, memo: dict) -> "SimulatedStream":
        """A machine is not copied along with what refers to it."""
        return self

    def clock(self) -> float:
        """The host's, in seconds."""
        return self._now

    def kernel(
        self,
        cold: float,
        *,
        warm: float | None = None,
        compiling: float = 0.0,
        slow_calls: int = 0,
        every: int = 0,
        delay: float = 0.0,
    ) -> Callable[[], None]:
        """A function to be timed.

        Args:
            cold: seconds on the device.
            warm: seconds where its data are still in the cache; cold, unless given.
            compiling: seconds of the host in the first call.
            slow_calls: so many calls at the start take three times as long.
            every, delay: each `every`-th call takes `delay` seconds longer: something else uses the device.
        """
        calls = 0

        def call() -> None:
            nonlocal calls
            self._now += 0.0 if calls else compiling
            seconds = warm if warm is not None and self._cached is call else cold
            calls += 1
            seconds = 3 * seconds if calls <= slow_calls else seconds
            self._queue("kernel", seconds + (delay if every and calls % every == 0 else 0.0))
            self._cached = call

        return call

    def flush(self) -> None:
        self._queue("flush", self.flushing)
        self._cached = None

    def record(self) -> "SimulatedEvent":
        """Queue a reading of the device's clock."""
        self._queue("record", 0.0)
        return SimulatedEvent(self, self._free)

    def synchronize(self) -> None:
        """Wait until all is done."""
        self._now = max(self._now, self._free)

    def _queue(self, name: str, seconds: float) -> None:
        queued, self._now = self._now, self._now + self.launch
        start = max(self._free, self._now)
        self._free = start + seconds
        self.log.append((name, queued, start, self._free))


@dataclass(frozen=True)
class SimulatedEvent:
    """A reading of the simulated device's clock."""

    stream: SimulatedStream
    time: float

    def query(self) -> bool:
        """Whether the device has come that far."""
        return self.stream.clock() >= self.time

    def elapsed_time(self, later: "SimulatedEvent") -> float:
        """Milliseconds from this reading to a later one.

        Raises:
            RuntimeError: the device has not come that far, or nobody has waited for it.
        """
        if self.stream.clock() < later.time:
            raise RuntimeError("the device has not come that far: synchronize before you ask for a time")
        return 1000 * (later.time - self.time)
