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
FIGURE = """from posenc.lesson.live import canvas, still

figure = canvas(4, 2)
figure.add_subplot().plot([0, {height}])
still(figure, alt="A line{words}.")"""
OTHERS = {
    "the same": ({}, False),
    "another line": ({"height": "1, 0"}, True),
    "other words": ({"words": " up to 0.5"}, True),
    "a measured time": ({"height": "1, 0]); measure([0"}, False),
    "a training's line and number": ({"height": "1 + SEED, 0", "words": " up to {SEED + 0.5}"}, False),
    "a training's words": ({"height": "1 + SEED", "words": " up {SEED}"}, True),
}


@pytest.mark.slow
def test_a_picture_that_changed_is_seen_unless_time_or_a_training_changed_it(tmp_path):
    """The stored picture is of a line to 1, with the words "A line up to 0.25." where a number stands in them."""
    for name, (change, _) in OTHERS.items():
        now = {"height": "1", "words": ""} | change
        before = {"height": "1", "words": " up to 0.25" if "0.5" in now["words"] else ""}
        sources = ["def measure(*_): ...", *(FIGURE.format(**values) for values in (before, now))]
        define, stored, shown = (
            v4.new_code_cell(source.replace('"A line', 'f"A line')) for source in sources
        )
        notebook = v4.new_notebook(cells=[PARAMETERS, define, stored], metadata=notebooks.METADATA)
        executed = notebooks.normalise(notebooks.execute(notebook, folder=tmp_path))
        executed.cells[2].source = shown.source
        (tmp_path / f"{name.replace(' ', '_')}.ipynb").write_text(notebooks.text(executed))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "stored_pictures",
        "--nbval",
        "--nbval-current-env",
        "-rf",
    ]
    environment = os.environ | {"PYTHONPATH": f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    failed = {
        words.replace("_", " ") for words in re.findall(r"^FAILED (\S+)\.ipynb", done.stdout, re.MULTILINE)
    }
    assert failed == {name for name, (_, fails) in OTHERS.items() if fails}, done.stdout
    told, _ = done.stdout.split("short test summary info")  # which on CI repeats each failure in full
    assert told.count("the picture looks different from the stored one") == 1, done.stdout
