"""Positions in low precision, and the losses of added and turned positions."""

from collections.abc import Mapping

import torch
from torch import Tensor

from posenc.chapters.rotary_encoding.figures.turning import PALE
from posenc.lesson.controls import choice, slider
from posenc.lesson.drawing import blank, dial, hand
from posenc.lesson.live import Live, canvas, still
from posenc.lesson.palette import (
    ADDED,
    GREY,
    NONE,
    POSITION,
    TURNED,
)
from posenc.rotary import angles


def low_precision() -> Live:
    """Positions as a low-precision float holds them, and how far the fastest hand is off."""
    types = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
    length, around = 4096, torch.arange(-16, 17)
    figure = blank(3.8)
    stairs = figure.add_axes((0.08, 0.14, 0.4, 0.73))
    stairs.set(xlim=(-17, 17), ylim=(-25, 25))
    stairs.plot([-17, 17], [-17, 17], color=GREY, linewidth=0.8)
    stairs.set_xlabel("true position, relative to the chosen")
    stairs.set_ylabel("position held, relative to the chosen", labelpad=1)
    moving = {"count": stairs.set_title(" ")}
    (moving["held"],) = stairs.plot([], [], "o", color="black", markersize=4)

    clock = figure.add_axes((0.51, 0.14, 0.25, 0.73))
    dial(clock, 1.25, PALE, 1)
    (moving["true hand"],) = clock.plot([], [], color=POSITION, linewidth=6, alpha=0.7)
    moving["held hand"] = hand(clock, "black", linewidth=2)
    moving["off"] = clock.set_title(" ")
    clock.set_xlabel("pair 0: true (wide), held")

    bars = figure.add_axes((0.855, 0.14, 0.115, 0.73))
    bars.set(xlim=(-0.6, 0.6), ylim=(0, length * 1.05), xticks=[], yticks=[0, 1024, 2048, 3072, 4096])
    bars.set_xlabel("distinct values")
    (moving["bar"],) = bars.plot([], [], color=GREY, linewidth=28, solid_capstyle="butt")
    moving["distinct"] = bars.set_title(" ")

    def update(dtype: str, position: int) -> None:
        def hold(positions: Tensor) -> Tensor:
            return positions.to(types[dtype]).long()

        values = hold(position + around)
        true, wrong = angles(torch.stack([torch.tensor(position), hold(torch.tensor(position))]), 2).flatten()
        moving["held"].set_data(around, values - position)
        moving["count"].set_text(f"{position} is held as {values[16]}")
        for name, angle in (("true hand", true), ("held hand", wrong)):
            moving[name].set_data([0, angle.cos()], [0, angle.sin()])
        moving["off"].set_text(f"off by {(wrong - true).abs():.0f} rad")
        number = len(hold(torch.arange(length)).unique())
        moving["bar"].set_data([0, 0], [0, number])
        moving["distinct"].set_text(str(number))

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "dtype": choice("dtype", list(types)),
            "position": slider("position", 16, length - 17, value=301),
        },
        alt="Left, positions around the chosen one against the values that a floating-point type holds: stairs for "
        "bfloat16 from 257 on, a straight line for float32. Middle, the hand of the fastest pair for the true and for "
        f"the held position. Right, how many distinct values the first {length} positions have.",
    )


def rounding_errors(positions: Tensor, errors: Mapping[str, Tensor]) -> Live:
    """Error of a score against the position of its query.

    Args:
        positions: of the queries, (M,).
        errors: what was rounded → mean error of the scores, (M,).
    """
    figure = canvas(8, 3)
    panel = figure.subplots()
    panel.set_yscale("log")
    panel.set(xlim=(0, positions[-1].item()), ylim=(1e-4, 2))
    panel.minorticks_off()
    for (name, error), marker, colour in zip(errors.items(), ".x", (TURNED, "black")):
        panel.plot(positions, error, marker, color=colour, markersize=4, label=name)
    panel.set_xlabel("position of the query")
    panel.set_ylabel("mean error of a score")
    panel.legend(loc="upper left")
    return still(
        figure,
        alt="Mean error of a score against the position of its query, on a logarithmic axis: about a thousandth with "
        "a rounded table anywhere; with rounded positions nothing up to 256, and beyond up to one.",
    )


def by_learning_rate(losses: Mapping[float, Mapping[float | str, Tensor]]) -> Live:
    """Every seed's loss as a dot, one panel a learning rate and one column an amplitude, the turned model last.

    Args:
        losses: learning rate → amplitude or "turned" → one loss a seed, (seeds,).
    """
    figure = canvas(8, 3)
    panels = figure.subplots(1, len(losses), sharey=True)
    for panel, (rate, rows) in zip(panels, losses.items()):
        for column, (name, seeds) in enumerate(rows.items()):
            mark, colour = ("s", TURNED) if name == "turned" else ("o", ADDED if name else NONE)
            panel.plot([column] * len(seeds), seeds, mark, color=colour, alpha=0.7)
        panel.set_xticks(range(len(rows)), ["turned" if name == "turned" else f"{name:g}" for name in rows])
        panel.set(xlim=(-0.5, len(rows) - 0.5), ylim=(2, 2.7), title=f"learning rate {rate:g}")
        panel.grid(axis="y", color=PALE, linewidth=0.8)
    figure.supxlabel("amplitude of the added sinusoids, or turned")
    panels[0].set_ylabel("loss (nats a character)")
    return still(
        figure,
        alt="Loss of every seed in three panels, one a learning rate: without positions, with sinusoids added at "
        "three amplitudes, and turned. The turned models are lowest in each panel.",
    )
