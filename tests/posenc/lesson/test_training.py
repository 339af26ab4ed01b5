"""The curves that grow while models train."""

from pathlib import Path

import torch
from pictures import as_kept

from posenc.lesson.palette import ADDED
from posenc.lesson.training_curves import follow, training_curves


def test_training_curves_grow_one_line_a_seed():
    live = training_curves(["first", "second"], steps=100, measure="share right", chance=0.5)
    empty = live.png()
    report = follow(live, "second", lambda: torch.tensor([0.5, 0.75, 1.0]))
    report(0)
    report(50)
    segments = live.artists["second"].get_segments()
    assert [segment.tolist() for segment in segments] == [[[0, v], [50, v]] for v in (0.5, 0.75, 1.0)]
    assert len(live.artists["first"].get_segments()) == 0
    assert live.png() != empty


def test_training_curves_are_drawn_as_they_are_kept():
    live = training_curves(["none", "added"], steps=100, measure="share right", chance=0.5, colours={"added": ADDED})
    measured = iter(torch.linspace(0.4, 1, 12).view(6, 2))
    for name in ("none", "added"):
        report = follow(live, name, lambda: next(measured))
        for step in (0, 40, 100):
            report(step)
    as_kept(live.png(), Path(__file__).with_name("training_curves.png"))
