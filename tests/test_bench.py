"""The bench finds every figure, moves every control, measures in turns, and judges by goals and limits."""

from functools import partial

import bench
import pytest
import torch
from nbformat.v4 import new_code_cell, new_notebook

from courseware import notebooks
from posenc.chapters.permutation_invariance import figures as permutation_invariance
from posenc.lesson.controls import choice, slider, switch, text


def test_every_figure_without_needs_is_found():
    chapter = "permutation_invariance"
    found = bench.figure_functions()
    assert found[f"{chapter}.permutation"] is permutation_invariance.permutation
    names = {name.rpartition(".")[2] for name in found}
    assert "attention_drawing" in names and not {"training_curves", "canvas", "norms_by_position"} & names
    assert f"{chapter}.norms_by_position" in bench.figure_functions(needing=True)


@pytest.mark.parametrize(
    ("control", "expected"),
    [
        (slider("x", 0, 3, value=1), [0, 1, 2, 3, 2, 1, 0]),
        (slider("x", 0, 1, value=0, step=0.5), [0.5, 1, 0.5, 0, 0.5, 1, 0.5]),
        (choice("x", ["a", "b"]), list("bababab")),
        (switch("x", value=True), [False, True] * 3),
        (text("x", value="the dog bit"), ["bit dog the", "the dog bit"] * 3),
    ],
)
def test_every_value_is_another_one_than_the_last(control, expected):
    values = bench.other_values(control)
    for value in expected:
        moved = next(values)
        assert moved == value != control.value
        control.value = moved


@pytest.mark.parametrize(
    ("goal", "limit", "verdict", "status"),
    [
        (15, 25, "", 0),
        (10, 15, "  the goal of 10 takes 1.50 times less", 0),
        (10, 14, "  BEYOND THE LIMIT of 14", 1),
    ],
)
def test_a_goal_says_what_it_takes_and_a_limit_decides(monkeypatch, capsys, goal, limit, verdict, status):
    line = f"torch 15 s{bench.judged(15, goal, limit)}"
    monkeypatch.setattr(bench, "chapters", lambda: iter([line]))
    assert bench.main(["chapters"]) == status
    assert capsys.readouterr().out.startswith(f"torch 15 s{verdict}\n(")


@pytest.mark.slow
def test_moves_are_measured_in_a_kernel(monkeypatch):
    only = {"permutation_invariance.sentence_shuffled": None}
    monkeypatch.setattr(bench, "figure_functions", lambda: only)
    _, *lines = bench.moves()
    assert [line.split()[2] for line in lines] == ["sentence", "shuffle", "told"]
    assert "(changes the layout)" in lines[0] and "layout" not in lines[1]
    assert all(float(number) > 0 for line in lines for number in line.split()[3:7])


def test_medians_are_taken_in_turns_by_the_clock():
    now, calls, costs = [0.0], [], {"a": [5, 1, 2], "b": [7, 7, 100]}

    def way(name):
        now[0] += costs[name][calls.count(name)]
        calls.append(name)

    spent = bench.medians({name: partial(way, name) for name in costs}, 3, clock=lambda: now[0])
    assert spent == {"a": 2, "b": 7}
    assert calls == ["a", "b"] * 3


@pytest.mark.slow
def test_every_way_to_rotate_is_timed():
    _, *lines = bench.rotations([(2, 3, 20, 8)], [torch.float32], 1)
    ways = ["rotate", "rotate", "rotate_by", "rotate_by", "transformers Llama"]
    assert [line.partition(",")[0].strip() for line in lines] == ways
    assert all(float(number) > 0 for line in lines for number in line[46:].split()[:2])


@pytest.mark.slow
def test_a_chapter_is_measured_in_its_kernel():
    cells = [
        new_code_cell("import time\ntime.sleep(2)"),
        new_code_cell("held = bytearray(500_000_000)\nheld[::4096] = bytes(len(held[::4096]))"),
    ]
    clock, seconds, memory = bench.spent(new_notebook(cells=cells, metadata=notebooks.METADATA))
    assert 0 < seconds < clock and clock > 2 and 0.5 < memory < 5
