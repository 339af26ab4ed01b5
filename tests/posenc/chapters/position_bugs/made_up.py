"""Made-up data for chapter 8's figures."""

import torch

from posenc.chapters.position_bugs import figures
from posenc.lesson.live import Live

RUNS = ["shift", "far", "steps", "chunks", "padding", "packing", "rows", "eviction"]


def texts() -> Live:
    written = {"the model": "The name of the rose ", "with base 100": "The rose of the name "}
    return figures.texts({name: 7 * text for name, text in written.items()}, prompt=21)


def cost() -> Live:
    base = 1.5 + torch.exp(-torch.arange(64) / 6)
    mistakes = {"clockwise": 0.8, "base 100": 0.1, "cache from 0": 0.0}
    return figures.cost({"none": base} | {name: base + size * torch.arange(64) / 32 for name, size in mistakes.items()})


def runs() -> Live:
    quiet = {run: 1e-6 * (1 + row) for row, run in enumerate(RUNS)}
    return figures.runs({"none": quiet, "clockwise": quiet, "cache from 0": quiet | {"steps": 6.0, "chunks": 5.0}})


def bases() -> Live:
    powers = torch.arange(1, 7.01, 0.25, dtype=torch.float64)
    return figures.bases(powers, {8: 2 + 0.01 * (powers - 4) ** 2, 128: 1.6 + 0.1 * (powers - 4) ** 2})


def gap() -> Live:
    draw = torch.Generator().manual_seed(0)
    chances = {
        name: (2 * torch.randn(5, 3, 96, generator=draw)).log_softmax(-1)
        for name in ("none", "cache from 0", "cache + 1")
    }
    return figures.gap([4, 8, 12, 16, 20], chances, {" ": "space", "\n": "line"})


def packing() -> Live:
    ways = ("mask, start again", "mask, go on", "no mask, start again", "no mask, go on")
    sizes = {"rotary": (0.0, 0.0, 0.8, 0.02), "table": (0.0, 0.01, 0.5, 0.03)}
    return figures.packing({(model, way): torch.tensor(x) for model, row in sizes.items() for way, x in zip(ways, row)})
