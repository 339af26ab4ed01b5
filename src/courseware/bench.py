"""What a move of a control costs, then a rotation, an import and a chapter: `python -m courseware.bench`.

Every figure function of the course is measured twice, in one Jupyter kernel a chapter and move by move in turns:

- as it is, a `Live` that draws only what moves;
- the way most notebooks do it, under `ipywidgets.interact`: each move calls the figure function for a new figure,
  and the inline backend of matplotlib renders and displays it in an Output widget.

A move is the assignment of a value to the control inside the kernel; the time of the browser is not in it. The
figures made for interact don't open the comms of their own controls, which a notebook of that kind would not have.
A figure fails if one of its moves takes more than 25 ms at the median, or is less than 5 times faster. CPU time is
judged, since other work on the machine is not the figure's fault. Controls that change ticks and labels, like the
text boxes, are listed but not judged. The table of rotations is that of `bench_rotary`; imports and chapters are
those of `bench_course`.
"""

import importlib
import importlib.util
import inspect
import itertools
import json
import os
import pkgutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from unittest.mock import patch

import ipywidgets as widgets
import nbclient
import nbformat
import torch
from IPython.display import display

import posenc.chapters
from courseware import bench_course, bench_rotary
from posenc.live import Live

LIMIT = 25  # ms
FASTER = 5  # times
MOVES = 30

KERNEL = """
%matplotlib inline
from courseware import bench
bench.run("{}")
"""


def figure_functions() -> dict[str, Callable[[], Live]]:
    """All public functions of the chapters' figures that return a Live and need no arguments: chapter.function."""
    found = {}
    for chapter in pkgutil.iter_modules(posenc.chapters.__path__):
        name = f"posenc.chapters.{chapter.name}.figures"
        if not importlib.util.find_spec(name):  # a chapter need not draw
            continue
        module = importlib.import_module(name)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            signature = inspect.signature(function, eval_str=True)
            needs = [p for p in signature.parameters.values() if p.default is p.empty]
            own = function.__module__ == module.__name__ and not name.startswith("_")
            if own and signature.return_annotation is Live and not needs:
                found[f"{chapter.name}.{name}"] = function
    return found


def other_values(control: widgets.Widget) -> Iterator:
    """Values for one move after the other, each another one than the last: there and back again."""
    if isinstance(control, widgets.Text):
        values = [control.value, " ".join(reversed(control.value.split()))]
    elif isinstance(control, widgets.Checkbox):
        values = [control.value, not control.value]
    elif hasattr(control, "options"):
        values = list(control.options)
    else:
        count = round((control.max - control.min) / control.step) + 1
        values = [control.min + step * control.step for step in range(count)]
    there_and_back = itertools.cycle(values + values[-2:0:-1])
    return (value for value in there_and_back if value != control.value)


def under_interact(make: Callable[[], Live]) -> dict[str, widgets.Widget]:
    """Show the figure under interact, drawn anew on every move; its controls."""

    def redraw(**values: object) -> bool:
        with patch.object(widgets.Widget, "open", lambda self: None):
            live = make()
        live.update(**values)
        display(live.figure)
        return True

    controls = make().controls
    for control in controls.values():
        control.unobserve_all("value")
    shown = widgets.interactive(redraw, **controls)
    display(shown)
    shown.update()
    if not shown.result:  # interactive has printed the error
        raise RuntimeError("the figure cannot be drawn under interact")
    return controls


def time_move(control: widgets.Widget, value: object) -> tuple[float, float]:
    """Wall and CPU time of one move in ms."""
    wall, cpu = time.perf_counter(), time.process_time()
    control.value = value
    return 1000 * (time.perf_counter() - wall), 1000 * (time.process_time() - cpu)


def measure(make: Callable[[], Live]) -> list[dict]:
    """The times of every control of a figure, under Live and under interact."""
    live = make()
    display(live)
    plain = under_interact(make)
    rows = []
    for name, control in live.controls.items():
        times = {"live": [], "interact": []}
        for move, value in enumerate(itertools.islice(other_values(control), MOVES)):
            times["live"].append(time_move(control, value))
            if move % 3 == 0:  # it takes long enough
                times["interact"].append(time_move(plain[name], value))
        rows.append({"control": name, "judged": name not in live.relayout, **times})
    return rows


def run(chapter: str) -> None:
    """Measure all figures of a chapter, named like its module, in a kernel, and print the times as JSON."""
    torch.set_num_threads(1)
    found = {name: make for name, make in figure_functions().items() if name.startswith(f"{chapter}.")}
    for name, make in found.items():
        for row in measure(make):
            print(json.dumps({"figure": name, **row}))


def in_a_kernel(code: str) -> list[dict]:
    """The rows that `run` prints in a Jupyter kernel of its own."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    quiet = ["--log-level=ERROR"]
    nbclient.NotebookClient(notebook, timeout=1200, kernel_name="python3", extra_arguments=quiet).execute()
    streams = [output for output in notebook.cells[0].outputs if output.output_type == "stream"]
    lines = "".join(stream.text for stream in streams if stream.name == "stdout").splitlines()
    return [json.loads(line) for line in lines]


def report(rows: list[dict]) -> tuple[str, bool]:
    """A table of the times, and whether every judged control keeps to the limits."""
    heads = f"{'wall p50/p95':>13} {'CPU p50/p95':>13}"
    lines = [
        f"{'':60} {'Live, ms':^27}   {'interact, ms':^27}",
        f"{'figure · control':60} {heads}   {heads}  faster",
    ]
    good = True
    for row in rows:
        live, interact = ([summary(times) for times in zip(*row[way])] for way in ("live", "interact"))
        faster = interact[1][0] / live[1][0]
        kept = live[1][0] <= LIMIT and faster >= FASTER
        good = good and (kept or not row["judged"])
        cells = [f"{p50:.0f} / {p95:.0f}" for p50, p95 in live + interact]
        verdict = ("" if kept else "  TOO SLOW") if row["judged"] else "  (changes labels: not judged)"
        lines.append(
            f"{row['figure'] + ' · ' + row['control']:60} {cells[0]:>13} {cells[1]:>13}   "
            f"{cells[2]:>13} {cells[3]:>13}  {faster:4.1f} ×{verdict}"
        )
    return "\n".join(lines), good


def summary(times: tuple[float, ...]) -> tuple[float, float]:
    """The median and the 95th percentile."""
    return statistics.median(times), sorted(times)[int(0.95 * len(times))]


def main() -> None:
    chapters = dict.fromkeys(name.partition(".")[0] for name in figure_functions())
    rows = [row for chapter in chapters for row in in_a_kernel(KERNEL.format(chapter))]
    if not any(row["judged"] for row in rows):
        sys.exit("the chapters have no figure with a control to measure")
    table, good = report(rows)
    print(table)
    load = os.getloadavg()[0] / os.cpu_count()
    print(
        f"{load:.1f} tasks for each processor"
        + (": a busy machine makes all times longer" if load > 1 else "")
    )
    print()
    slow = bench_rotary.main()
    print()
    slow += bench_course.main()
    if not good:
        slow.append(f"a move may cost {LIMIT} ms, and is to be {FASTER} times faster than under interact")
    if slow:
        sys.exit("too slow: " + "; ".join(slow))


if __name__ == "__main__":
    main()
