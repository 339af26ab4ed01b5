"""Where transformers is not installed, the first cell says so in one line, and Run All ends there."""

import subprocess
import sys
from pathlib import Path

import nbformat

from posenc.chapters.models_you_use.checkpoints import INSTALL

NOTEBOOK = Path(__file__).resolve().parents[4] / "notebooks" / "09_models_you_use.ipynb"
SHELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
sys.modules["transformers"] = None  # as if it were not there
done = InteractiveShell.instance().run_cell(sys.stdin.read())
print("ended" if done.error_in_exec else "went on")
"""


def test_one_line_and_no_traceback():
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    first = next(cell.source for cell in cells if cell.cell_type == "code")
    done = subprocess.run([sys.executable, "-c", SHELL], input=first, capture_output=True, text=True, check=True)
    said, end = done.stdout.strip().splitlines()
    assert INSTALL in said and end == "ended"
    assert "Traceback" not in done.stdout + done.stderr
