"""The curves that grow while models train."""

import torch

from posenc.live import follow, training_curves


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
