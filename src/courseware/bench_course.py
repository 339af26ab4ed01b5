"""What importing the helper and running each chapter cost: `python -m courseware.bench_course`.

`import posenc` itself imports nothing. So its subject modules are compared with torch, which is all that they need,
and all its modules with all that these need: torch, its benchmark tools, matplotlib and ipywidgets. Fresh processes
take turns, and their CPU time is judged, since other work on the machine is not the import's fault.

A chapter's figures are those of the kernel that runs it from the first cell to the last, trainings included. The
peak of its memory is what Linux counts.
"""

import json
import resource
import subprocess
import sys
import time

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from courseware import notebooks

LIMIT = 1.15  # times the import of what is needed
ROUNDS = 5
NEEDED, SUBJECT, ALL_NEEDED, ALL = (
    "torch",
    "the subject modules",
    "torch and all else needed",
    "all of posenc",
)
IMPORTS = {
    NEEDED: "import torch",
    SUBJECT: "from posenc import additive, attention, models, rotary, simulated, tasks, terms, text",
    ALL_NEEDED: "import torch, torch.utils.benchmark, matplotlib.figure, ipywidgets",
    ALL: """
import importlib, pkgutil, posenc
for module in pkgutil.walk_packages(posenc.__path__, "posenc."):
    importlib.import_module(module.name)
""",
}
SPENT = """
import json, re, time
peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]
print(json.dumps([time.process_time(), int(peak)]))
"""


def import_times() -> dict[str, float]:
    """The least CPU time of each import in a fresh process, in seconds."""
    times = {name: [] for name in IMPORTS}
    for _ in range(ROUNDS):
        for name, code in IMPORTS.items():
            start = _seconds_of_children()
            subprocess.run([sys.executable, "-c", code], check=True)
            times[name].append(_seconds_of_children() - start)
    return {name: min(spent) for name, spent in times.items()}


def _seconds_of_children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def report(seconds: dict[str, float]) -> tuple[str, list[str]]:
    """A table of the import times, and what is slower than it may be."""
    lines = [f"import {name:26} {spent:6.2f} s of CPU" for name, spent in seconds.items()]
    slow = []
    for name, needed in ((SUBJECT, NEEDED), (ALL, ALL_NEEDED)):
        times = seconds[name] / seconds[needed]
        lines.append(f"{name} against {needed}: {times:.2f} ×")
        if times > LIMIT:
            slow.append(f"importing {name} takes more than {LIMIT} times importing {needed}")
    return "\n".join(lines), slow


def spent(chapter: NotebookNode) -> tuple[float, float, float]:
    """Seconds on the clock, seconds of CPU and the peak of memory in GB that it takes to run a chapter."""
    start = time.monotonic()
    cells = [*chapter.cells, new_code_cell(SPENT)]
    executed = notebooks.execute(NotebookNode(chapter, cells=cells), folder=notebooks.NOTEBOOKS)
    seconds, kilobytes = json.loads(executed.cells[-1].outputs[0].text)
    return time.monotonic() - start, seconds, kilobytes / 1e6


def main() -> list[str]:
    """Print the tables; what is too slow."""
    table, slow = report(import_times())
    print(table, end="\n\n", flush=True)
    for path in sorted(notebooks.NOTEBOOKS.glob("[0-9]*.ipynb")):
        clock, seconds, memory = spent(notebooks.read(path))
        print(f"{path.stem:34} {clock:6.0f} s {seconds:6.0f} s of CPU {memory:6.2f} GB", flush=True)
    return slow


if __name__ == "__main__":
    sys.exit("\n".join(main()) or 0)
