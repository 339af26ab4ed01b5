"""`make test` sees a stored picture that is not the one that its cell draws."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from nbformat import v4

from courseware import notebooks

SOURCE = """from posenc.lesson.live import canvas, still

figure = canvas(4, 2)
figure.add_subplot().plot([0, {height}])
still(figure, alt="A line.")"""


GROWING = """import torch
from posenc.lesson.training_curves import follow, training_curves

def trained():
    curves = training_curves(["one"], steps=9, measure="loss", chance=0.5)
    line = follow(curves, "one", lambda: torch.arange(0, 1, 0.01))
    with curves.watch():
        [line(step) for step in (0, 9)]"""


@pytest.mark.slow
@pytest.mark.parametrize("now, fails", [("1", False), ("1, 0", True), ("1, 0]); measure([0", False)])
def test_a_picture_that_changed_is_seen_unless_it_is_a_measured_time(tmp_path, now, fails):
    sources = ["def measure(*_): ...", SOURCE.format(height=1), GROWING, "trained()"]
    cells = [v4.new_code_cell(source) for source in sources]
    notebook = notebooks.execute(v4.new_notebook(cells=cells, metadata=notebooks.METADATA), folder=tmp_path)
    notebook.cells[1].source = SOURCE.format(height=now)
    (tmp_path / "a.ipynb").write_text(notebooks.text(notebooks.normalise(notebook)))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "stored_pictures",
        "--nbval",
        "--nbval-current-env",
        "a.ipynb",
    ]
    environment = os.environ | {"PYTHONPATH": f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == fails, done.stdout
    assert ("the picture looks different from the stored one" in done.stdout) == fails
