"""Run the chapters as learners come to run them, and compare what they print: `make rough CHAPTER=04`.

Each run is a notebook of a chapter's cells in some order, which nbval executes in a kernel of its own, in a folder
of its own, and compares with the stored outputs:

- restarts: "Restart and run up to here" at two cells drawn at random, and then the whole;
- again: the whole, then once more up to a cell drawn at random, then once more the whole, all in one kernel;
- two threads: on a machine that offers them;
- float64: torch makes float64 numbers unless it is told otherwise;
- away: no network, and a copy of the course whose files are locked; a file that changes all the same is named.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from courseware import build

ROOT = build.NOTEBOOKS.parent
NBVAL = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=600"]  # time is not what is looked at
NBVAL += [f"--nbval-sanitize-with={ROOT / 'tests' / 'sanitize.cfg'}"]
NBVAL += ["--quiet", "--tb=short", "--color=no", "-p", "no:cacheprovider"]

FLOAT64 = "import torch\n\ntorch.set_default_dtype(torch.float64)"
OFFLINE = """
import sys


def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise OSError("there is no network")


sys.addaudithook(refuse)
"""

Cells = list[NotebookNode]


def once(cells: Cells, draw: random.Random) -> list[Cells]:
    return [cells]


def restarts(cells: Cells, draw: random.Random) -> list[Cells]:
    return [*(cells[: draw.randrange(1, len(cells))] for _ in range(2)), cells]


def again(cells: Cells, draw: random.Random) -> list[Cells]:
    return [cells + cells[: draw.randrange(1, len(cells))] + cells]


@dataclass(frozen=True)
class Condition:
    """How a chapter is run."""

    kernels: Callable[[Cells, random.Random], list[Cells]] = once  # the cells that each kernel runs
    first: tuple[str, ...] = ()  # code that each kernel runs before
    settings: dict[str, str] = field(default_factory=dict)  # environment variables
    away: bool = False  # on a copy whose files are locked


TWO_THREADS = {"OMP_NUM_THREADS": "2"}
CONDITIONS = {
    "restarts": Condition(kernels=restarts),
    "again": Condition(kernels=again),
    "two threads": Condition(settings=TWO_THREADS),
    "float64": Condition(first=(FLOAT64,)),
    "away": Condition(first=(OFFLINE,), away=True),
}


def run(chapter: NotebookNode, condition: Condition) -> str:
    """What went wrong or came out otherwise when a chapter was run under a condition; empty if nothing did.

    Args:
        chapter: with its stored outputs.
        condition: how it is run.
    """
    with tempfile.TemporaryDirectory() as scratch:
        here, course, settings = Path(scratch) / "here", ROOT, build.STEADY | condition.settings
        here.mkdir()
        first = [new_code_cell(source, execution_count=0) for source in condition.first]
        for number, cells in enumerate(condition.kernels(chapter.cells, random.Random(0))):
            cells = [NotebookNode(cell, id=str(place)) for place, cell in enumerate(first + cells)]
            notebook = new_notebook(cells=cells, metadata=chapter.metadata)
            (here / f"kernel_{number}.ipynb").write_text(build.text(notebook), encoding="utf-8")
        if condition.away:
            course = locked_copy(Path(scratch) / "course")
            settings |= {"PYTHONDONTWRITEBYTECODE": "1"}  # root would write it in spite of the locks
            before = stamps(course)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *NBVAL, str(here)],
            env=os.environ | settings | {"PYTHONPATH": str(course / "src")},
            cwd=here,
            capture_output=True,
            text=True,
        )
        changed = dict(stamps(course) ^ before) if condition.away else {}
    said = "" if done.returncode == 0 else done.stdout + done.stderr
    return said + "".join(f"changed: {name}\n" for name in changed)


def locked_copy(course: Path) -> Path:
    """Make this folder, with what a learner's kernel reads of a checkout and without the right to write there."""
    for name in ("src", "notebooks"):
        shutil.copytree(ROOT / name, course / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in [course, *course.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    return course


def stamps(folder: Path) -> set[tuple[str, int]]:
    """Each file and folder, and when it was changed last."""
    return {(str(path.relative_to(folder)), path.stat().st_mtime_ns) for path in folder.rglob("*")}


def main(chapters: list[str]) -> int:
    """Run the chapters with these numbers, or all, under every condition. Returns the exit status."""
    paths = [
        path
        for path in sorted(build.NOTEBOOKS.glob("[0-9]*.ipynb"))
        if path.name[:2] in chapters or not chapters
    ]
    if not paths:
        print(f"No such chapter: {' '.join(chapters)}", file=sys.stderr)
        return 1
    wrong = []
    for path in paths:
        print(f"{path.stem:28}", end="", flush=True)
        for name, condition in CONDITIONS.items():
            said = run(build.read(path), condition)
            print(f"  {name}: {'WRONG' if said else 'ok'}", end="", flush=True)
            wrong += [f"--- {path.stem}, {name}\n{said}"] if said else []
        print()
    print(*wrong, sep="\n", end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
