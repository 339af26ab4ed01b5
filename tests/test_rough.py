"""The chapters print the same however they are run, and a chapter that would not is seen."""

import random
import re

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from courseware import build, rough
from courseware.needed import without_training

CHAPTERS = sorted(build.NOTEBOOKS.glob("[0-9]*.ipynb"))
ALL_AT_ONCE = rough.Condition(
    kernels=lambda cells, draw: [cells + cells],
    first=(rough.FLOAT64, rough.OFFLINE),
    settings=rough.TWO_THREADS,
    away=True,
)


@pytest.mark.slow
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_prints_the_same_under_all_conditions_at_once(path):
    assert rough.run(without_training(build.read(path)), ALL_AT_ONCE) == ""


# Cells that depend on how they are run, and what they print when run once and plainly


PLANTED = [
    ("print(1)", "1"),
    ("import torch\nprint(torch.ones(1).dtype)", "torch.float32"),
    ("import os\nprint(os.environ['OMP_NUM_THREADS'])", "1"),
    (
        "import socket\nwith socket.create_server(('127.0.0.1', 0)) as server:\n"
        "    socket.create_connection(server.getsockname()).close()\nprint('reached')",
        "reached",
    ),
    ("times = globals().get('times', 0) + 1\nprint(times)", "1"),
]
WRITES = "import pathlib, posenc\nnotes = (pathlib.Path(posenc.__file__).parent / 'notes').write_text('mine')"


def notebook(planted):
    cells = [
        new_code_cell(
            source, execution_count=1, outputs=[new_output("stream", name="stdout", text=printed + "\n")]
        )
        for source, printed in planted
    ]
    return new_notebook(cells=cells, metadata=build.METADATA)


def failed(said):
    return [int(number) for number in re.findall(r"^FAILED \S+::Cell (\d+)", said, re.MULTILINE)]


@pytest.mark.slow
def test_what_depends_on_how_it_is_run_is_seen():
    planted = notebook(PLANTED)
    planted.cells.append(new_code_cell(WRITES, execution_count=1))
    said = rough.run(planted, ALL_AT_ONCE)
    assert failed(said)[:7] == [
        3,
        4,
        5,
        9,
        10,
        11,
        12,
    ]  # behind two cells that come first, and in the second pass
    assert "posenc/notes" in said  # what root can write is found afterwards


@pytest.mark.slow
def test_nothing_is_seen_where_nothing_is_wrong():
    assert rough.run(notebook(PLANTED), rough.Condition()) == ""


def test_the_kernels_of_a_chapter():
    cells = list(range(9))
    *starts, whole = rough.restarts(cells, random.Random(0))
    assert whole == cells and len(starts) == 2
    assert all(0 < len(start) < 9 and start == cells[: len(start)] for start in starts)
    (one,) = rough.again(cells, random.Random(0))
    assert one[:9] == one[-9:] == cells and one[9:-9] == cells[: len(one) - 18] != []


def test_a_table_says_which_chapter_fails_where(monkeypatch, capsys):
    monkeypatch.setattr(
        rough,
        "run",
        lambda chapter, condition: (
            "Cell 7 differs" if condition.away and "03 ·" in chapter.cells[0].source else ""
        ),
    )
    assert rough.main([]) == 1
    said = capsys.readouterr().out
    assert said.count("WRONG") == 1 and "--- 03_four_term_expansion, away\nCell 7 differs" in said
    assert rough.main(["01"]) == 0
    assert "02_" not in capsys.readouterr().out
    assert rough.main(["9"]) == 1
    assert "No such chapter: 9" in capsys.readouterr().err
