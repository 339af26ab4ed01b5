"""The bench sees every figure, moves every control and judges by the limits."""

import pytest

from courseware import bench
from posenc.chapters.permutation_invariance import figures as permutation_invariance
from posenc.live import choice, slider, switch, text


def test_every_figure_without_needs_is_found():
    chapter = "permutation_invariance"
    found = bench.figure_functions()
    assert found[f"{chapter}.permutation"] is permutation_invariance.permutation
    assert {f"{chapter}.token_vectors", f"{chapter}.layers_and_mask"} <= set(found)
    names = {name.rpartition(".")[2] for name in found}
    assert not {"training_curves", "canvas", "shuffled", "sentence_box"} & names


@pytest.mark.parametrize(
    "control, expected",
    [
        (slider("x", 0, 3, value=1), [0, 1, 2, 3, 2, 1, 0]),
        (slider("x", 0, 1, value=0, step=0.5), [0.5, 1, 0.5, 0, 0.5, 1, 0.5]),
        (choice("x", ["a", "b"]), list("bababab")),
        (switch("x", value=True), [False, True, False, True, False, True, False]),
        (text("x", value="the dog bit"), ["bit dog the", "the dog bit"] * 3),
    ],
)
def test_every_value_is_another_one_than_the_last(control, expected):
    values = bench.other_values(control)
    for value in expected:
        moved = next(values)
        assert moved == value != control.value
        control.value = moved


def row(live, interact, *, judged=True):
    return {
        "figure": "f",
        "control": "c",
        "judged": judged,
        "live": [[live] * 2],
        "interact": [[interact] * 2],
    }


@pytest.mark.parametrize(
    "rows, good",
    [
        ([row(20, 150)], True),
        ([row(26, 500)], False),
        ([row(20, 90)], False),
        ([row(90, 200, judged=False), row(20, 150)], True),
        ([row(20, 150), row(26, 500)], False),
    ],
)
def test_a_slow_figure_is_told_from_a_fast_one(rows, good):
    table, verdict = bench.report(rows)
    assert verdict == good
    assert ("TOO SLOW" in table) == (not good)


def test_other_work_on_the_machine_is_not_judged():
    waiting = {**row(20, 150), "live": [[60, 20]], "interact": [[400, 150]]}
    assert bench.report([waiting])[1]


@pytest.mark.slow
def test_a_figure_is_measured_in_a_kernel():
    code = bench.KERNEL.format("one").replace(
        'bench.run("one")',
        "from posenc.chapters.permutation_invariance.figures import layers_and_mask\n"
        "bench.MOVES = 4\n"
        "bench.figure_functions = lambda: {'one.a': layers_and_mask, 'ones.b': None}\n"
        'bench.run("one")',
    )
    rows = bench.in_a_kernel(code)
    assert [row["control"] for row in rows] == ["sentence", "layers", "mask"]
    assert [row["judged"] for row in rows] == [False, True, True]
    for row in rows:
        assert len(row["live"]) == 4 and len(row["interact"]) == 2
        assert all(0 < cpu for way in ("live", "interact") for _, cpu in row[way])
    assert all(one < other for (_, one), (_, other) in zip(rows[1]["live"], rows[1]["interact"]))
