"""The chapters print the same however they are run: all conditions that learners bring, at once.

A copy whose files are locked, another working directory, no network, two threads, float64 as torch's default, and the
whole twice in one kernel.
"""

import os
import shutil
import subprocess
import sys

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from thorough import thorough

from courseware import notebooks
from courseware.dependencies import without_training

pytestmark = pytest.mark.slow

ROOT = notebooks.NOTEBOOKS.parent
CHAPTERS = [pytest.param(p, marks=[thorough] * ("04" not in p.stem), id=p.stem) for p in notebooks.chapters()]
FLOAT64 = "import torch\n\ntorch.set_default_dtype(torch.float64)"
OFFLINE = """
import sys


def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise OSError("there is no network")


sys.addaudithook(refuse)
"""
NBVAL = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=1200"]
NBVAL += [f"--nbval-sanitize-with={ROOT / 'tests' / 'sanitize.cfg'}"]
NBVAL += ["--quiet", "--tb=short", "--color=no", "-p", "no:cacheprovider"]


def run(chapter, folder):
    """What came out otherwise, and which files changed; empty if nothing did."""
    course, here = folder / "course", folder / "here"
    here.mkdir(parents=True)
    for name in ("src", "notebooks"):
        shutil.copytree(ROOT / name, course / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in [course, *course.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = stamps(course)
    first = [new_code_cell(source, execution_count=0) for source in (FLOAT64, OFFLINE)]
    cells = first + chapter.cells + chapter.cells
    cells = [notebooks.NotebookNode(cell, id=str(place)) for place, cell in enumerate(cells)]
    twice = new_notebook(cells=cells, metadata=chapter.metadata)
    (here / "chapter.ipynb").write_text(notebooks.text(twice), encoding="utf-8")
    settings = notebooks.STEADY | {"OMP_NUM_THREADS": "2", "PYTHONPATH": str(course / "src")}
    settings |= {"PYTHONDONTWRITEBYTECODE": "1"}  # root would write it in spite of the locks
    command = [sys.executable, "-m", "pytest", *NBVAL, str(here)]
    done = subprocess.run(command, env=os.environ | settings, cwd=here, capture_output=True, text=True)
    said = "" if done.returncode == 0 else done.stdout + done.stderr
    return said + "".join(f"changed: {name}\n" for name in dict(stamps(course) ^ before))


def stamps(folder):
    return {(str(path.relative_to(folder)), path.stat().st_mtime_ns) for path in folder.rglob("*")}


@pytest.mark.parametrize("path", CHAPTERS)
def test_a_chapter_prints_the_same(path, tmp_path):
    assert run(without_training(notebooks.read(path)), tmp_path) == ""


PLANTED = [
    ("import torch\nprint(torch.ones(1).dtype)", "torch.float32"),
    ("import os\nprint(os.environ['OMP_NUM_THREADS'])", "1"),
    (
        "import socket\nwith socket.create_server(('127.0.0.1', 0)) as server:\n"
        "    socket.create_connection(server.getsockname()).close()\nprint('reached')",
        "reached",
    ),
    ("times = globals().get('times', 0) + 1\nprint(times)", "1"),
    ("from pathlib import Path\nprint(Path('01_permutation_invariance.ipynb').exists())", "True"),
    ("import pathlib, posenc\n_ = (pathlib.Path(posenc.__file__).parent / 'notes').write_text('mine')", ""),
]


def test_what_depends_on_how_it_is_run_is_seen(tmp_path):
    cells = [new_code_cell(source, execution_count=1) for source, _ in PLANTED]
    for cell, (_, printed) in zip(cells, PLANTED):
        cell.outputs = [new_output("stream", name="stdout", text=f"{printed}\n")] if printed else []
    said = run(new_notebook(cells=cells, metadata=notebooks.METADATA), tmp_path)
    for number in (2, 3, 4, 6, 5 + len(PLANTED)):  # counted with the two cells in front; `times` is 1 once
        assert f"Cell {number}" in said
    assert "posenc/notes" in said or os.geteuid() != 0
