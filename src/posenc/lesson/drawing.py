"""Schematic drawings: boxes and arrows on an empty panel."""

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from posenc.lesson.live import canvas
from posenc.lesson.palette import GREY


def drawing(height: float) -> Axes:
    """Empty room for a schematic drawing, 16 units wide and twice as many units high as its height in inches."""
    figure = canvas(8, height)
    figure.set_layout_engine("none")
    panel = figure.add_axes((0, 0, 1, 1))
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
