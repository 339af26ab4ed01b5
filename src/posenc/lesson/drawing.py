"""What figures of several chapters are drawn with: panels, dials and hands, logarithmic ticks, boxes and arrows."""

import math
from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch

from posenc.lesson.live import canvas
from posenc.lesson.palette import GREY


def blank(height: float) -> Figure:
    """An empty figure of 8 by height inches, whose panels stand where they are put."""
    figure = canvas(8, height)
    figure.set_layout_engine("none")
    return figure


def bare(panel: Axes) -> Axes:
    """The panel without frame and ticks. `Live` would draw spines that are only switched off with their axes."""
    panel.set(xticks=[], yticks=[])
    panel.spines[:].set_visible(False)
    panel.patch.set_visible(False)
    return panel


def log_axis(axis: Axis, ticks: Sequence[float], *, base: float = 10) -> None:
    """Make an axis logarithmic, with these ticks alone, written without powers."""
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log", base=base)
    axis.set_ticks(ticks, [f"{tick:,g}" for tick in ticks])
    axis.minorticks_off()


def dial(panel: Axes, limit: float = 1.2, colour: str = GREY, width: float = 0.8) -> Axes:
    """The panel as a square around a circle of radius 1, without ticks."""
    panel.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal", xticks=[], yticks=[])
    turn = torch.linspace(0, 2 * math.pi, 100)
    panel.plot(turn.cos().numpy(), turn.sin().numpy(), color=colour, linewidth=width)
    return panel


def hand(panel: Axes, colour: str, tip: Sequence[float] | None = None, **look) -> Line2D:
    """A line with a dot at its end: from the origin to the tip, or to be set later."""
    ends = ([], []) if tip is None else ([0, tip[0]], [0, tip[1]])
    look = {"linewidth": 2.5, "marker": "o", "markevery": [1]} | look
    return panel.plot(*ends, color=colour, **look)[0]


def signed(number: float, form: str = ".2f") -> str:
    """A number with a true minus, and without one where it rounds to 0."""
    return f"{float(number):z{form}}".replace("-", "−")


def drawing(height: float) -> Axes:
    """Empty room for a schematic drawing, 16 units wide and twice as many units high as its height in inches."""
    panel = blank(height).add_axes((0, 0, 1, 1))
    panel.set(xlim=(0, 16), ylim=(0, 2 * height))
    panel.axis("off")
    return panel


def box(panel: Axes, x: float, y: float, words: str, colour: str, *, width: float, height: float) -> None:
    """A box with white words, its lower left corner at (x, y)."""
    style = "round,pad=0,rounding_size=0.15"
    shape = FancyBboxPatch((x, y), width, height, boxstyle=style, facecolor=colour, edgecolor="none")
    panel.add_patch(shape)
    panel.text(x + width / 2, y + height / 2, words, color="white", ha="center", va="center", fontsize=10)


def arrow(
    panel: Axes, start: tuple[float, float], end: tuple[float, float], colour: str = GREY, width: float = 1
) -> None:
    """An arrow from start to end."""
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": width, "shrinkA": 2, "shrinkB": 2}
    panel.annotate("", end, start, arrowprops=style)
