"""The course's bench tells a slow import from a fast one, and what a chapter takes from what another takes."""

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from courseware import bench_course as bench
from courseware import notebooks


@pytest.mark.parametrize(
    "subject, everything, complaints",
    [
        (2.2, 4.5, []),
        (2.4, 4.5, ["importing the subject modules takes more than 1.15 times importing torch"]),
        (
            2.2,
            4.7,
            ["importing all of posenc takes more than 1.15 times importing torch and all else needed"],
        ),
    ],
)
def test_a_slow_import_is_named(subject, everything, complaints):
    seconds = {bench.NEEDED: 2.0, bench.SUBJECT: subject, bench.ALL_NEEDED: 4.0, bench.ALL: everything}
    table, slow = bench.report(seconds)
    assert slow == complaints
    assert all(name in table for name in seconds)


def test_an_import_is_timed_in_a_process_of_its_own(monkeypatch):
    monkeypatch.setattr(
        bench, "IMPORTS", {"busy": "sum(range(20_000_000))", "idle": "import time; time.sleep(0.3)"}
    )
    monkeypatch.setattr(bench, "ROUNDS", 1)
    times = bench.import_times()
    assert 0 < times["idle"] < times["busy"] - 0.1


@pytest.mark.slow
def test_a_chapter_is_measured_in_its_kernel():
    cells = [
        new_code_cell("import time\ntime.sleep(1)"),
        new_code_cell("held = bytearray(500_000_000)\nheld[::4096] = bytes(len(held[::4096]))"),
        new_code_cell("start = time.process_time()\nwhile time.process_time() < start + 2:\n    pass"),
    ]
    idle, light, small = bench.spent(new_notebook(cells=cells[:1], metadata=notebooks.METADATA))
    clock, seconds, memory = bench.spent(new_notebook(cells=cells, metadata=notebooks.METADATA))
    assert idle > 1 and clock > 3
    assert light + 1.5 < seconds < clock
    assert memory > small + 0.4
