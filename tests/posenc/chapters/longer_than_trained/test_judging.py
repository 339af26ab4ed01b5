"""The card of an encoding: its tasks, its exact rows, and the nine known rows, computed again."""

import pytest
import torch
from thorough import thorough

from posenc.chapters.longer_than_trained.judging import (
    KNOWN,
    MEASURED,
    ROWS,
    TASKS,
    judge,
    reverse,
    since_last_zero,
    three_back,
)
from posenc.tasks import UNASKED


def test_the_tasks_ask_what_they_say():
    generator = torch.Generator().manual_seed(0)
    tokens, targets = three_back(generator, seeds=2, batch=3, length=10)
    assert torch.equal(targets[..., 3:], tokens[..., :-3]) and (targets[..., :3] == UNASKED).all()
    tokens, targets = reverse(generator, seeds=2, batch=3, length=8)
    assert torch.equal(targets[..., 4:], tokens[..., :4].flip(-1)) and (targets[..., :4] == UNASKED).all()
    assert (tokens[..., :4] > 0).all() and (tokens[..., 4:] == 0).all()
    tokens, targets = since_last_zero(generator, seeds=2, batch=3, length=40)
    for text, answers in zip(tokens.flatten(0, 1).tolist(), targets.flatten(0, 1).tolist()):
        for place, answer in enumerate(answers):
            zeros = [p for p in range(place + 1) if text[p] == 0]
            assert answer == (min(place - zeros[-1], 9) if zeros else UNASKED)


def quick(encoding):
    return judge(encoding, steps=1, seeds=[0])


@pytest.mark.slow
def test_the_exact_rows_tell_blind_relative_and_absolute_apart():
    rows = {name: quick(KNOWN[name]) for name in ("none", "rotary", "sinusoidal", "T5")}
    assert all(tuple(row) == ROWS for row in rows.values())
    reordered, moved = ({name: row[column] for name, row in rows.items()} for column in ROWS[:2])
    assert reordered["none"] < 1e-12 and min(reordered[name] for name in ("rotary", "sinusoidal", "T5")) > 0.01
    assert max(moved[name] for name in ("none", "rotary", "T5")) < 1e-6 and moved["sinusoidal"] > 0.1


def test_a_table_that_ends_is_told_and_raises_nothing():
    from posenc.additive import Learned

    def short():
        table = Learned(24, 32)
        return {"encode": lambda x, p: x + table(p)}

    row = quick(short)
    assert row["moved by 100"] == float("inf") and row["three back ×2"] == row["three back ×8"] == 0
    assert row["three back ×1"] > 0


def test_there_are_nine_known_rows_of_all_columns():
    assert list(KNOWN) == list(MEASURED) and len(KNOWN) == 9
    assert {len(row) for row in MEASURED.values()} == {len(ROWS)}
    assert {name.rpartition(" ")[0] for name in ROWS[2:]} == set(TASKS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ("none", "rotary") else thorough) for name in KNOWN]
)
def test_the_known_rows_are_what_judging_gives(name):
    """Trainings differ a little between machines: .15 is three times what other seeds move the mean by."""
    row = judge(KNOWN[name])
    for column, number in zip(ROWS, MEASURED[name]):
        assert row[column] == pytest.approx(number, abs=0.01 if column in ROWS[:2] else 0.15), column
