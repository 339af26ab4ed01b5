"""The students' notebook in a real browser: it opens, and answers as the course does."""

import re
import subprocess

import pytest
from browser import chromium, lab

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not chromium(), reason="no Chromium is installed: apt-get install chromium"),
]
CHAPTER = "01_permutation_invariance"
STUB = "def unpermute(layer, x, p):\n    return layer(x[p])"


@pytest.fixture
def notebook(classroom_python, tmp_path):
    subprocess.run(
        [
            classroom_python,
            "-m",
            "classroom.release",
            "01",
            "--classroom",
            str(tmp_path / "class"),
        ],
        check=True,
    )
    with lab(tmp_path / "class" / "release" / CHAPTER, tmp_path / "home") as running:
        yield running.open(f"{CHAPTER}.ipynb")


def test_a_student_answers_in_the_browser(notebook):
    assert notebook.errors() == []
    stored = notebook.page.locator(".jp-OutputArea-output img").count()
    assert stored > 0, "the pictures of the chapter are gone"
    notebook.page.evaluate("window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
    notebook.run("import torch")
    notebook.run("def unpermute(")
    check = 'check("unpermute"'
    assert notebook.run(check) == "○ unpermute: not attempted yet\n"
    notebook.run("def unpermute(", f"{STUB}[p]")
    assert "wrong for a 3-cycle" in notebook.run(check)
    notebook.run("def unpermute(", f"{STUB}[p.argsort()]")
    assert re.fullmatch(r"✓ \x1b\[\d+munpermute.*\x1b\[0m\n", notebook.run(check)), "in colour"
    assert notebook.errors() == []
