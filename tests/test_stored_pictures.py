"""`make test` sees a stored picture that is not the one that its cell draws."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from nbformat import v4

from courseware import notebooks

PARAMETERS = v4.new_code_cell("SEED = 0", metadata={"tags": ["parameters"]})
MEASURE = "def measure(*_): ..."
FIGURE = """from posenc.lesson.live import canvas, still

canvas_{place} = canvas(4, 2)
canvas_{place}.add_subplot().plot([0, {height}])
still(canvas_{place}, alt=f"A line{words}.")"""
OTHERS = {  # what the cell draws now; stored is a line to 1
    "the same": ({}, False),
    "another line": ({"height": "1, 0"}, True),
    "other words": ({"words": " up to 0.5"}, True),
    "a measured time": ({"height": "1, 0]); measure([0"}, False),
    "a training's line and number": ({"height": "1 + SEED, 0", "words": " up to {SEED + 0.5}"}, False),
    "a training's words": ({"height": "1 + SEED", "words": " up {SEED}"}, True),
}


@pytest.mark.slow
def test_a_picture_that_changed_is_seen_unless_time_or_a_training_changed_it(tmp_path):
    """Where a number stands in the words now, the stored ones are "A line up to 0.25."."""
    cells, shown = [PARAMETERS, v4.new_code_cell(MEASURE)], []
    for place, (change, _) in enumerate(OTHERS.values()):
        now = {"place": place, "height": "1", "words": ""} | change
        before = now | {"height": "1", "words": " up to 0.25" if "0.5" in now["words"] else ""}
        cells.append(v4.new_code_cell(FIGURE.format(**before)))
        shown.append(FIGURE.format(**now))
    executed = notebooks.execute(v4.new_notebook(cells=cells, metadata=notebooks.METADATA), folder=tmp_path)
    executed = notebooks.normalise(executed)
    for cell, source in zip(executed.cells[2:], shown, strict=True):
        cell.source = source
    (tmp_path / "one.ipynb").write_text(notebooks.text(executed))
    command = [sys.executable, "-m", "pytest", "-p", "stored_pictures", "--nbval", "--nbval-current-env", "-rf"]
    environment = os.environ | {"PYTHONPATH": f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    failed = re.findall(r"^FAILED one\.ipynb::Cell (\d+)", done.stdout, re.MULTILINE)
    assert [[*OTHERS][int(number) - 2] for number in failed] == [n for n, (_, fails) in OTHERS.items() if fails]
    told, _ = done.stdout.split("short test summary info")  # which on CI repeats each failure in full
    assert told.count("the picture looks different from the stored one") == 1, done.stdout
