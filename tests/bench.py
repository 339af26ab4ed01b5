"""What the course costs, in tables: `python tests/bench.py` or `make bench`.

    moves        a move of a control inside the kernel, for every figure that needs no data
    rotations    a rotation on the CPU, beside that of transformers, in copies of the same bytes
    chapters     each chapter from its first cell to its last
    browser      a key in a browser (Chromium)
    grading      submissions a minute (make load)

Without a name the first three are made. CPU time is judged where it can be, since other work on the machine is not
ours. A figure beyond its limit makes the bench fail; for one beyond its goal the table says what it would take.
"""

import argparse
import importlib
import inspect
import itertools
import os
import pkgutil
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import ipywidgets as widgets
import torch
from nbformat import NotebookNode, v4
from torch import Tensor

import posenc.chapters
from courseware import notebooks, solutions
from posenc.lesson.live import Live
from posenc.rotary import LAYOUTS, angles, rotate, rotate_by

HERE = os.path.dirname(os.path.abspath(__file__))


def judged(value: float, goal: float, limit: float) -> str:
    """What to write behind a figure that should be at most its goal, and must be at most its limit."""
    if value > limit:
        return f"  BEYOND THE LIMIT of {limit:g}"
    return f"  the goal of {goal:g} takes {value / goal:.2f} times less" if value > goal else ""


def percentiles(times: Sequence[float]) -> tuple[float, float]:
    """The median and the 95th percentile."""
    return statistics.median(times), sorted(times)[int(0.95 * len(times))]


# ------------------------------------------------------------------- moves


def figure_functions(*, needing: bool = False) -> dict[str, Callable[..., Live]]:
    """The public functions of all chapters that return a figure, by chapter and name; with needing, those too that
    have to be given data."""
    found = {}
    for chapter in pkgutil.iter_modules(posenc.chapters.__path__):
        module = importlib.import_module(f"posenc.chapters.{chapter.name}.figures")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            signature = inspect.signature(function, eval_str=True)
            own = f"{function.__module__}.".startswith(f"{module.__name__}.") and not name.startswith("_")
            needs = any(p.default is p.empty for p in signature.parameters.values())
            if own and signature.return_annotation is Live and (needing or not needs):
                found[f"{chapter.name}.{name}"] = function
    return found


def other_values(control: widgets.Widget) -> Iterator:
    """Values for one move after the other, each another one than the last: there and back again."""
    if isinstance(control, widgets.Text):
        values = [control.value, " ".join(reversed(control.value.split()))]
    elif hasattr(control, "step"):
        steps = range(round((control.max - control.min) / control.step) + 1)
        values = [control.min + step * control.step for step in steps]
    else:
        values = list(getattr(control, "options", [False, True]))
    there_and_back = itertools.cycle(values + values[-2:0:-1])
    return (value for value in there_and_back if value != control.value)


def move_times(names: list[str], moves: int = 30) -> None:
    """Print what the moves of every control of these figures cost: ms of the clock and of the processor."""
    torch.set_num_threads(1)
    for name in names:
        live = figure_functions()[name]()
        live.png()
        for label, control in live.controls.items():
            times = []
            for value in itertools.islice(other_values(control), moves):
                wall, cpu = time.perf_counter(), time.process_time()
                control.value = value
                times.append([1000 * (time.perf_counter() - wall), 1000 * (time.process_time() - cpu)])
            clock, cpu = (percentiles(each) for each in zip(*times))
            verdict = "  (changes the layout)" if label in live.relayout else judged(cpu[0], 15, 25)
            print(f"{f'{name} · {label}':58} {clock[0]:7.1f} {clock[1]:7.1f} {cpu[0]:7.1f} {cpu[1]:7.1f}{verdict}")


def moves() -> Iterator[str]:
    """One kernel a chapter, as a learner has it. What changes the layout is not judged."""
    yield f"{'move, ms: figure · control':58} {'clock p50, p95':>15} {'CPU p50, p95':>15}"
    for _, names in itertools.groupby(figure_functions(), lambda name: name.partition(".")[0]):
        code = f"import sys\nsys.path.insert(0, {HERE!r})\nimport bench\nbench.move_times({list(names)})"
        cells = [v4.new_code_cell("%matplotlib inline"), v4.new_code_cell(code)]
        notebook = v4.new_notebook(cells=cells, metadata=notebooks.METADATA)
        executed = notebooks.execute(notebook, folder=notebooks.NOTEBOOKS)
        yield from "".join(output.text for output in executed.cells[1].outputs).splitlines()


# --------------------------------------------------------------- rotations

SHAPES = [(1, 32, 4096, 128), (8, 8, 1024, 64), (1, 8, 32768, 64), (32, 32, 1, 128), (1, 2, 131072, 64)]
Way = Callable[[], Tensor]


def ways(x: Tensor) -> dict[str, Way]:
    """Every way to rotate x (batch, heads, T, d), by name; each keeps what it keeps between layers."""
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    theta = angles(torch.arange(x.shape[-2]), x.shape[-1])
    tables = theta.cos().float(), theta.sin().float()
    found = {f"rotate, {layout}": partial(rotate, x, theta, layout=layout) for layout in LAYOUTS}
    found |= {f"rotate_by, {layout}": partial(rotate_by, x, *tables, layout=layout) for layout in LAYOUTS}
    rope = {"rope_type": "default", "rope_theta": 10_000.0}
    embedding = LlamaRotaryEmbedding(LlamaConfig(head_dim=x.shape[-1], rope_parameters=rope))
    cos, sin = embedding(x, torch.arange(x.shape[-2])[None])
    no_heads = x[:, :0]  # it always turns queries and keys
    return found | {"transformers Llama, half_split": partial(apply_rotary_pos_emb, x, no_heads, cos, sin)}


def medians(candidates: dict[str, Way], rounds: int, clock=time.process_time) -> dict[str, float]:
    """Median time of each, measured in turns."""
    times = {name: [] for name in candidates}
    for _, (name, way) in itertools.product(range(rounds), candidates.items()):
        start = clock()
        way()
        times[name].append(clock() - start)
    return {name: statistics.median(spent) for name, spent in times.items()}


def rotations(shapes=tuple(SHAPES), dtypes=(torch.float32, torch.bfloat16), rounds: int = 7) -> Iterator[str]:
    """On one thread. The floors move the same bytes: `copy_` into a tensor that is there, `clone` into fresh pages."""
    torch.set_num_threads(1)
    for shape, dtype in itertools.product(shapes, dtypes):
        x = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)
        ours = {"rotate_by, interleaved"}
        if shape[0] * shape[1] >= 8 and shape[2] > 1:  # else its angles cost more than its vectors
            ours |= {"rotate, interleaved"}
        floors = {"copy_": partial(torch.empty_like(x).copy_, x), "clone": x.clone}
        spent = medians(floors | ways(x), rounds)
        yield f"{f'rotation of {shape}, {str(dtype)[6:]}':46} × copy_  × clone"
        for name in [name for name in spent if name not in floors]:
            clones = spent[name] / spent["clone"]
            verdict = judged(clones, 1.5, 2.5) if name in ours and dtype == torch.float32 else ""
            yield f"  {name:44} {spent[name] / spent['copy_']:7.1f} {clones:8.2f}{verdict}"


# ---------------------------------------------------------------- chapters

SPENT = """
import re, time
peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]
print(time.process_time(), int(peak) / 1e6)
"""


def spent(chapter: NotebookNode) -> tuple[float, float, float]:
    """Seconds on the clock, seconds of CPU and the peak of memory in GB that it takes to run a chapter."""
    start = time.monotonic()
    cells = [*chapter.cells, v4.new_code_cell(SPENT)]
    executed = notebooks.execute(NotebookNode(chapter, cells=cells), folder=notebooks.NOTEBOOKS)
    return time.monotonic() - start, *map(float, executed.cells[-1].outputs[0].text.split())


def chapters() -> Iterator[str]:
    """Each in a kernel of its own, trainings included. The peak of its memory is what Linux counts."""
    for path in sorted(notebooks.NOTEBOOKS.glob("[0-9]*.ipynb")):
        clock, seconds, memory = spent(notebooks.read(path))
        verdict = judged(seconds, 60, 120)
        yield f"{path.stem:34} {clock:5.0f} s {seconds:5.0f} s of CPU {memory:6.2f} GB{verdict}"


# ----------------------------------------------------------------- browser

SHOWN = ["angle", "clocks", "out_of_step"]  # figures of chapter 4
# The first of them, drawn anew at each move as most tutorials do.
INTERACT = """
%matplotlib inline
import matplotlib.pyplot as plt, numpy as np
from ipywidgets import interact

@interact(degrees=(-180, 180, 5))
def angle(degrees=60):
    _, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4))
    x, y = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    left.plot([0, 1], [0, 0], [0, x], [0, y], [x, x], [y, 0])
    left.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), aspect="equal", title="the vector, its copy and the shadow")
    turned = np.arange(-180, 181, 2)
    right.plot(turned, np.cos(np.radians(turned)), [degrees], [x], "o")
    right.set(xlabel="angle (degrees)", ylabel="dot product", title=f"dot product {x:.2f}")
    plt.show()
"""


def browser() -> Iterator[str]:
    """Key press to changed pixels of the first slider: as JupyterLab is, as `make lab` starts it, and by `interact`."""
    from browser import lab  # which takes playwright

    source = "from posenc.chapters.rotary_encoding import figures\n\nfigures.{}()"
    cells = [v4.new_code_cell(code) for code in [*map(source.format, SHOWN), INTERACT]]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        notebook = v4.new_notebook(cells=cells, metadata=notebooks.METADATA)
        (Path(folder) / "a.ipynb").write_text(notebooks.text(notebook))
        yield f"{'browser':36} p50 ms   p95 ms"
        for kind, plain in {"as JupyterLab is": True, "as make lab starts it": False}.items():
            with lab(Path(folder), Path(home) / kind, plain=plain) as opened:
                page = opened.open("a.ipynb")
                page.run_all()
                boxes = {f"{name}, {kind}": box for name, box in zip(SHOWN, page.figures)}
                if plain:
                    boxes[f"{SHOWN[0]}, by interact"] = page.page.locator(".widget-interact")
                for name, box in boxes.items():
                    p50, p95 = percentiles(page.press(box, 50))
                    verdict = "" if plain else judged(p50, 35, 60) or judged(p95, 55, 110)
                    yield f"{name:36} {p50:6.0f} {p95:8.0f}{verdict}"


# ----------------------------------------------------------------- grading


def grading(chapter: str, count: int) -> Iterator[str]:
    """Submissions with other answers in each, right, blank or wrong, with one worker and with two."""
    from classroom import grade, release
    from classroom.submissions import find_submissions
    from classroom.workplace import Limits

    path = release.chapter(chapter)
    solved = {c.metadata.ex.id: c.source for c in solutions.solved(notebooks.read(path)).cells if "ex" in c.metadata}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        release.assignment(path, folder / "classroom")
        source = folder / "classroom" / "source" / path.stem / path.name
        template = grade.new_template(source, folder / "template")
        (folder / "submissions").mkdir()
        draw = random.Random(0)
        for number in range(count):
            notebook = notebooks.read(template)
            for cell in (cell for cell in notebook.cells if "ex" in cell.metadata):
                wrong = cell.source.replace(release.STUB, 'return "not this"')
                cell.source = draw.choice([solved[cell.metadata.ex.id]] * 2 + [wrong, cell.source])
            (folder / "submissions" / f"student {number:03}.ipynb").write_text(notebooks.text(notebook))
        submissions, _ = find_submissions(folder / "submissions", source.stem)
        yield f"{count} submissions of {path.stem}, {os.cpu_count()} processors"
        seconds = []
        for workers in (1, 2):
            start = time.monotonic()
            grader = grade.Grader(source, template, folder / f"graded {workers}", Limits())
            results = [result for _, result in grader.grade(submissions, workers=workers)]
            seconds.append(time.monotonic() - start)
            if failed := [result.reason for result in results if result.reason]:
                raise RuntimeError(f"a submission was not graded: {failed[0]}")
            peak = max(result.memory for result in results) / 1e9
            yield f"{workers} at once: {60 * count / seconds[-1]:5.1f} a minute, {peak:.2f} GB for the largest"
        share = seconds[1] / seconds[0]
        yield f"two workers take {share:.2f} of the time of one{judged(share, 0.625, 1)}"


def main(arguments: list[str]) -> int:
    """Print tables. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.partition("\n")[0])
    usual = {"moves": moves, "rotations": rotations, "chapters": chapters}
    tables = usual | {"browser": browser, "grading": lambda: grading(given.chapter, given.count)}
    parser.add_argument("tables", nargs="*", choices=[*tables, []], default=[])
    parser.add_argument("--chapter", default="04", help="that is graded")
    parser.add_argument("--count", type=int, default=200, help="of submissions")
    given = parser.parse_args(arguments)
    beyond = 0
    for name in given.tables or usual:
        for line in tables[name]():
            print(line, flush=True)
            beyond += "BEYOND" in line
        load = os.getloadavg()[0] / os.cpu_count()
        busy = ", so all times are longer" if load > 1 else ""
        print(f"({load:.1f} tasks for each processor{busy})\n", flush=True)
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
