"""What chapter 7 draws: a layer's costs, bytes, the roofline, timing loops on a simulated device, measured costs."""

from collections.abc import Callable, Mapping, Sequence

import torch
from matplotlib.collections import LineCollection, PolyCollection

from posenc.chapters.what_it_costs.layer import TEXT, WAYS, layer, rotate_with_cat, shares, times
from posenc.chapters.what_it_costs.simulated import SimulatedStream
from posenc.lesson.controls import choice, slider
from posenc.lesson.drawing import blank, log_axis
from posenc.lesson.live import Live, canvas, still
from posenc.lesson.palette import ADDED, BIAS, GREY, KEY, QUERY, TURNED, VALUE
from posenc.rotary import angles, rotate
from posenc.timing import Traffic, count_bytes

HEADS = 8


def rotary_share() -> Live:
    """What share of a layer's arithmetic, bytes, launches and time the rotation is, as a GPU of round numbers has it."""
    figure = canvas(8, 2.6)
    axes = figure.add_subplot()
    names = list(shares(1, WAYS[0]))
    axes.set(xlim=(0, 50), ylim=(len(names) - 0.4, -0.6), yticks=range(len(names)), yticklabels=names)
    axes.tick_params(left=False)
    axes.set_xlabel("the rotation's share (%)")
    for spine in ("top", "right"):
        axes.spines[spine].set_visible(False)
    bars = axes.add_collection(PolyCollection([], facecolors=TURNED))
    numbers = {name: axes.text(0, row, " ", va="center") for row, name in enumerate(names)}
    readout = axes.set_title(" ", loc="left")

    def update(new: int, way: str, launch: int) -> None:
        found = shares(2**new, way, 1e-6 * launch)
        ends = [100 * share for share in found.values()]
        bars.set_verts(
            [[(0, row - 0.3), (end, row - 0.3), (end, row + 0.3), (0, row + 0.3)] for row, end in enumerate(ends)]
        )
        for text, end in zip(numbers.values(), ends):
            text.set_position((end + 0.5, text.get_position()[1]))
            text.set_text(f"{end:.3f}%" if end < 0.1 else f"{end:.1f}%")
        host, device = (1e6 * each for each in times(layer(2**new, way), 1e-6 * launch))
        tokens = "1 new token" if new == 0 else f"{2**new:,} new tokens"
        readout.set_text(f"{tokens} of a text of {TEXT:,}: the host needs {host:,.0f} µs, the device {device:,.0f}")

    return Live(
        figure,
        update,
        moving={"bars": bars, **numbers, "readout": readout},
        controls={
            "new": slider("new tokens", 0, 12, unit="power of two", value=12),
            "way": choice("the rotation in", WAYS),
            "launch": slider("a launch", 1, 10, unit="µs", value=5),
        },
        alt="Four bars: the share that the rotation has of one layer's arithmetic, which is next to nothing, of the bytes "
        "that it moves, of its kernel launches, and of its time.",
    )


def operations(length: int, head_dim: int) -> dict[str, tuple[Callable[[], object], int]]:
    """What brings positions in, and what attention does with queries and keys, on shapes without memory.

    Args:
        length: T tokens.
        head_dim: d, with 8 heads.

    Returns:
        name → (the function, to be counted; its multiplications and additions).
    """
    x = torch.empty(HEADS, length, head_dim, device="meta")
    row, pairs, one = x[0], torch.empty(length, head_dim // 2, dtype=torch.complex64, device="meta"), x[:, :1]
    scores, numbers = x.new_empty(HEADS, length, length), x.numel()
    return {
        "add a vector": (lambda: x + row, numbers),
        "rotate, with cat": (lambda: rotate_with_cat(x, row, row), 3 * numbers),
        "rotate, one kernel": (lambda: torch.view_as_complex(x.unflatten(-1, (-1, 2))) * pairs, 3 * numbers),
        "add a dense bias": (lambda: scores + scores.new_empty(scores.shape), scores.numel()),
        "scores of one query": (lambda: one @ x.mT, 2 * numbers),
        "scores of all": (lambda: x @ x.new_empty(x.shape).mT, 2 * length * numbers),
    }


def roofline(*, bytes_per_second: float = 25e9, flops: float = 100e9) -> Live:
    """How fast an operation can run, against how many operations it does for a byte.

    Args:
        bytes_per_second: of the machine's memory.
        flops: floating-point operations a second, of its processor.
    """
    powers, sizes = range(3, 17), (32, 64, 128, 256)
    intensity = {
        (power, d): {name: work / count_bytes(fn).bytes for name, (fn, work) in operations(2**power, d).items()}
        for power in powers
        for d in sizes
    }
    figure = canvas(8, 4.1)
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set(xlim=(0.03, 300), ylim=(0.02 * bytes_per_second, 3 * flops))
    axes.set_xlabel("operations for a byte moved")
    axes.set_ylabel("operations a second, at best")
    ridge = flops / bytes_per_second
    axes.plot([0.01, ridge, 1000], [0.01 * bytes_per_second, flops, flops], color="black", linewidth=1.2)
    axes.axvline(ridge, color=GREY, linestyle=":", linewidth=1)
    axes.text(0.04, 2 * 0.04 * bytes_per_second, "memory decides", rotation=32, color=GREY)
    axes.text(25, 1.25 * flops, "arithmetic decides", color=GREY)
    moving = {}
    styles = zip(intensity[powers[0], 32], (ADDED, TURNED, TURNED, BIAS, QUERY, "black"), "os^Dv*")
    look = {"markersize": 9, "markeredgecolor": "black", "markeredgewidth": 0.6}
    for name, colour, marker in styles:
        (moving[name],) = axes.plot([], [], marker, color=colour, label=name, **look)
    axes.legend(loc="lower right")
    moving["readout"] = axes.set_title(" ", loc="left")
    head_size = choice("head size d", sizes)
    head_size.value = 128

    def update(power: int, d: int) -> None:
        for name, x in intensity[power, d].items():
            moving[name].set_data([x], [min(x * bytes_per_second, flops)])
        most = intensity[power, d]["scores of all"]
        moving["readout"].set_text(f"T = {2**power:,}, d = {d}: scores of all, {most:.1f} operations a byte")

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "power": slider("T", powers[0], powers[-1], unit="power of two", value=10),
            "d": head_size,
        },
        alt="A roofline on logarithmic axes: operations a second against operations for a byte, rising along the "
        "memory's speed to a level roof. Six marks on it; adding, rotating, a dense bias and the scores of one "
        "query stand far left, the scores of all queries further right, the more so the longer the text.",
    )


def bytes_by_operation(counted: Mapping[str, Traffic], *, copy: int) -> Live:
    """One row a function, one block an operation, as wide as the bytes that it reads and writes.

    Args:
        counted: function → what `count_bytes` found.
        copy: the bytes of a copy, which are the unit.
    """
    figure = canvas(8, 0.9 + 0.5 * len(counted))
    axes = figure.add_subplot()
    for row, traffic in enumerate(counted.values()):
        left = 0.0
        for name, read, written in traffic.operations:
            width = (read + written) / copy
            axes.barh(row, width, left=left, color=TURNED, edgecolor="white", alpha=0.75)
            if width > 0.35:
                axes.text(left + width / 2, row, name, ha="center", va="center", color="white")
            left += width
    axes.axvline(1, color=GREY, linestyle=":")
    axes.set_yticks(range(len(counted)), list(counted))
    axes.invert_yaxis()
    axes.set_xlabel("copies of x")
    moved = ", ".join(f"{name} {traffic.bytes / copy:.2f}" for name, traffic in counted.items())
    return still(figure, alt=f"Bytes of each operation in copies of x, one row a function: {moved}.")


def bytes_by_length(counted: Mapping[int, Mapping[str, int]]) -> Live:
    """Bytes in one layer against the length of the text, one line a kind of encoding.

    Args:
        counted: T → "added", "rotated" and "bias" → bytes.
    """
    figure = canvas(8, 3.2)
    axes = figure.add_subplot()
    axes.set_yscale("log")
    lengths = list(counted)
    log_axis(axes.xaxis, lengths, base=2)
    axes.minorticks_off()
    for name, colour, style in (("added", ADDED, "--"), ("rotated", TURNED, "-"), ("bias", BIAS, "-.")):
        values = [row[name] / 1e6 for row in counted.values()]
        axes.plot(lengths, values, color=colour, linestyle=style, linewidth=2)
        axes.text(1.08 * lengths[-1], values[-1], name, color=colour, va="center")
    axes.set_xlim(lengths[0], 2 * lengths[-1])
    axes.set_xlabel("tokens T")
    axes.set_ylabel("MB in one layer")
    return still(
        figure,
        alt="Megabytes in one layer against the length of the text, both axes logarithmic. The lines of an added vector "
        "and of a rotation rise alike, that of a dense bias twice as steeply, and crosses them near 200 tokens.",
    )


def _by_the_host(kernel: Callable, stream: SimulatedStream) -> tuple[float, float]:
    start = stream.clock()
    kernel()
    return start, stream.clock()


def _by_the_host_waiting(kernel: Callable, stream: SimulatedStream) -> tuple[float, float]:
    start = stream.clock()
    kernel()
    stream.synchronize()
    return start, stream.clock()


def _by_events(kernel: Callable, stream: SimulatedStream) -> tuple[float, float]:
    start = stream.record()
    kernel()
    return start.time, stream.record().time


def _by_events_flushed(kernel: Callable, stream: SimulatedStream) -> tuple[float, float]:
    stream.flush()
    return _by_events(kernel, stream)


LOOPS = {
    "host, no wait": _by_the_host,
    "host, wait": _by_the_host_waiting,
    "events": _by_events,
    "events, flush": _by_events_flushed,
}


def timeline() -> Live:
    """Four ways to time three calls on a simulated device: what host and device do, and what is read."""
    figure = blank(3.2)
    axes = figure.add_axes((0.1, 0.17, 0.88, 0.7))
    axes.set(xlim=(0, 460), ylim=(-0.6, 2.7), yticks=[0, 1, 2], yticklabels=["read", "device", "host"])
    axes.tick_params(left=False)
    axes.set_xlabel("time (µs)")
    for spine in ("top", "right", "left"):
        axes.spines[spine].set_visible(False)
    bars = {
        name: axes.add_collection(PolyCollection([], facecolors=colour, edgecolors="white", linewidths=0.5))
        for name, colour in (("launches", VALUE), ("kernels", TURNED), ("flushes", "#BBBBBB"))
    }
    read = axes.add_collection(LineCollection([], colors=KEY, linewidths=4))
    readout = axes.set_title(" ", loc="left")
    for x, (name, colour) in zip((330, 372, 414), (("launch", VALUE), ("kernel", TURNED), ("flush", "#BBBBBB"))):
        axes.plot([x], [2.55], "s", color=colour, markersize=7)
        axes.text(x + 5, 2.55, name, va="center")

    def box(start: float, end: float, row: float) -> list[tuple[float, float]]:
        a, b = 1e6 * start, 1e6 * end
        return [(a, row - 0.3), (b, row - 0.3), (b, row + 0.3), (a, row + 0.3)]

    def update(way: str, cold: int) -> None:
        stream = SimulatedStream()
        kernel = stream.kernel(1e-6 * cold, warm=0.5e-6 * cold)
        times = [LOOPS[way](kernel, stream) for _ in range(3)]
        log = [entry for entry in stream.log if entry[0] != "record"]
        bars["launches"].set_verts([box(queued, queued + stream.launch, 2) for _, queued, _, _ in log])
        for name in ("kernel", "flush"):
            bars[f"{name}{'es' if name == 'flush' else 's'}"].set_verts(
                [box(start, end, 1) for kind, _, start, end in log if kind == name]
            )
        read.set_segments([[(1e6 * start + 0.8, 0), (1e6 * end - 0.8, 0)] for start, end in times])
        last = 1e6 * (times[-1][1] - times[-1][0])
        readout.set_text(f"reads {last:.0f} µs in the third call; from memory the kernel takes {cold} µs")

    return Live(
        figure,
        update,
        moving={**bars, "read": read, "readout": readout},
        controls={
            "way": choice("timed by", list(LOOPS)),
            "cold": slider("kernel", 10, 80, unit="µs", value=40, step=5),
        },
        alt="Three calls on a time axis: the host's launches above, the device's kernels and flushes below, and under "
        "them the stretch that each way of timing reads, which is the launch, the launch and the kernel, the kernel "
        "with its data in the cache, or the kernel from memory.",
    )


def rotated_in_a_step() -> Live:
    """The bytes that rotating moves in one step of writing, against how many tokens stand in the cache."""
    heads, d, powers = HEADS, 128, range(0, 17)

    def turn(positions: torch.Tensor) -> Callable[[], object]:
        x = torch.empty(heads, len(positions), d, device="meta")
        return lambda: rotate(x, angles(positions, d))

    new = count_bytes(turn(torch.zeros(1, dtype=torch.long, device="meta"))).bytes
    every = [count_bytes(turn(torch.arange(2**power, device="meta"))).bytes for power in powers]
    lengths = [2**power for power in powers]
    moved = {"before": [2 * new] * len(lengths), "after": [new + bytes for bytes in every]}
    figure = canvas(8, 3.2)
    axes = figure.add_subplot()
    axes.set_yscale("log")
    log_axis(axes.xaxis, (1, 16, 256, 4096, 65_536), base=2)
    axes.minorticks_off()
    axes.set(xlim=(0.8, 2**21), ylim=(1e4, 3e9))
    axes.set_xlabel("tokens in the cache")
    axes.set_ylabel("bytes moved in a step")
    moving = {}
    for name, colour, style in (("before", TURNED, "-o"), ("after", BIAS, "--o")):
        (moving[name],) = axes.plot([], [], style, color=colour, linewidth=2, markersize=3.5)
        moving[f"{name}, its name"] = axes.text(1, 1, f"{name} the cache", color=colour, va="center")
    moving["readout"] = axes.set_title(" ", loc="left")

    def update(power: int) -> None:
        for name in moved:
            moving[name].set_data(lengths[: power + 1], moved[name][: power + 1])
            shift = 0.6 if name == "before" else 1.6
            moving[f"{name}, its name"].set_position((1.4 * lengths[power], shift * moved[name][power]))
        times = moved["after"][power] / moved["before"][power]
        moving["readout"].set_text(f"{lengths[power]:,} in the cache: after it, {times:,.0f} times the bytes of before")

    return Live(
        figure,
        update,
        moving=moving,
        controls={"power": slider("tokens", powers[0], powers[-1], unit="power of two", value=4)},
        alt="Bytes that rotating moves in one step of writing against the tokens in the cache, both axes logarithmic: level "
        "where keys are rotated before they are cached, rising with the text where they are rotated after it. Both are "
        "drawn as far as the slider has come.",
    )


def call_by_call(times: Sequence[float], sizes: Sequence[int], speeds: Sequence[float]) -> Live:
    """Measured here: the times of single calls from the first on, and the speed of a copy against its size.

    Args:
        times: seconds of each call.
        sizes: bytes that are copied.
        speeds: bytes a second of each copy, read and written.
    """
    figure = canvas(8, 3.4)
    calls, copies = figure.subplots(1, 2)
    values = torch.tensor(times, dtype=torch.float64)
    later = values[1:]
    calls.set_yscale("log")
    (dots,) = calls.plot(range(len(times)), (1e6 * values).tolist(), "o", color=TURNED, markersize=3, label="a call")
    calls.axhline(1e6 * values.mean().item(), color=KEY, linestyle="--", label="mean of all")
    calls.axhline(1e6 * later.median().item(), color="black", label="median")
    calls.set_xlabel("call")
    calls.set_ylabel("time (µs)")
    calls.legend(loc="upper right")
    copies.set_xscale("log", base=2)
    (curve,) = copies.plot(sizes, [speed / 1e9 for speed in speeds], "o-", color=TURNED, markersize=4)
    copies.set_ylim(0, 1.15 * max(speeds) / 1e9)
    copies.set_xlabel("bytes copied")
    copies.set_ylabel("speed (GB/s)")
    return Live(
        figure,
        lambda: None,
        moving={"calls": dots, "copies": curve},
        controls={},
        alt="Measured on the machine that ran it. Left, the time of each call, the first one and the interrupted ones "
        "far above the others, with the mean and the median as lines. Right, the speed of a copy against its size.",
    )


def predicted_and_measured(rows: Mapping[str, tuple[float, float | None]], *, missing: str = "") -> Live:
    """Two marks a row: how many copies its bytes are worth, and how many copies long it took.

    Args:
        rows: name → (predicted, measured or None), as multiples of a copy.
        missing: what to write where nothing was measured.
    """
    figure = canvas(8, 0.9 + 0.32 * len(rows))
    axes = figure.add_subplot()
    furthest = max([2.0, *(copies for row in rows.values() for copies in row if copies is not None)])
    log_axis(axes.xaxis, [x for x in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if x < 1.5 * furthest])
    axes.set(xlim=(0.3, 1.5 * furthest), ylim=(len(rows) - 0.5, -0.5))
    axes.set_yticks(range(len(rows)), list(rows))
    axes.axvline(1, color=GREY, linestyle=":", linewidth=1)
    axes.set_xlabel("times a copy in float32")
    predicted = [predicted for predicted, _ in rows.values()]
    (rings,) = axes.plot(predicted, range(len(rows)), "o", color="black", fillstyle="none", label="by its bytes")
    found = [(measured, row) for row, (_, measured) in enumerate(rows.values()) if measured is not None]
    (dots,) = axes.plot([x for x, _ in found], [row for _, row in found], "o", color=TURNED, markersize=5)
    dots.set_label("measured")
    for row, (expected, measured) in enumerate(rows.values()):
        if measured is None:
            axes.text(1.2 * expected, row, missing, color=GREY, va="center")
    axes.legend(loc="upper right")
    return Live(
        figure,
        lambda: None,
        moving={"predicted": rings, "measured": dots},
        controls={},
        alt="Measured on the machine that ran it. A row for each of "
        f"{', '.join(rows)}: a ring for what its bytes predict, a dot for what it took, in multiples of a copy.",
    )
