"""The curves that grow while models train."""

from pathlib import Path

import torch
from pictures import as_kept

from posenc.lesson.palette import ADDED
from posenc.lesson.training_curves import follow, training_curves


def test_training_curves_are_drawn_as_they_are_kept():
    live = training_curves(["none", "added"], steps=100, measure="share right", chance=0.5, colours={"added": ADDED})
    measured = iter(torch.linspace(0.4, 1, 12).view(6, 2))
    for name in ("none", "added"):
        report = follow(live, name, lambda: next(measured))
        for step in (0, 40, 100):
            report(step)
    as_kept(live.png(), Path(__file__).with_name("training_curves.png"))
