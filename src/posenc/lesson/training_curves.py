"""Curves that grow while models train."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from matplotlib.collections import LineCollection
from torch import Tensor

from posenc.lesson.live import Live, canvas
from posenc.lesson.palette import GREY, NONE


def training_curves(
    names: Sequence[str],
    *,
    steps: int,
    measure: str,
    chance: float,
    limits: tuple[float, float] = (0.0, 1.0),
    colours: Mapping[str, str] = MappingProxyType({}),
) -> Live:
    """A figure with one empty panel a model, to be filled by `follow`.

    Args:
        names: one a panel.
        steps: length of the training.
        measure: what is on the vertical axis.
        chance: what guessing reaches, drawn as a dashed line.
        limits: of the vertical axis.
        colours: of the models of a family, by name; the others are grey.
    """
    rows = -(-len(names) // 4)  # at most four panels in a row
    columns = -(-len(names) // rows)
    figure = canvas(8, 0.5 + 1.65 * rows)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    moving = {}
    for index, panel in enumerate(panels.flat):
        if index >= len(names):
            panel.set_visible(False)
            continue
        panel.set_xlim(0, steps)
        panel.set_ylim(*limits)
        panel.axhline(chance, color=GREY, linestyle="--", linewidth=1)
        panel.set_title(names[index])
        moving[names[index]] = panel.add_collection(
            LineCollection([], colors=colours.get(names[index], NONE), alpha=0.6, linewidths=1.5)
        )
    figure.supxlabel("step")
    figure.supylabel(measure)
    return Live(
        figure,
        lambda: None,
        moving=moving,
        controls={},
        alt=f"{measure} while training, one panel a model and one line a seed: "
        f"{', '.join(names)}. A dashed line marks chance, {chance:g}.",
    )


def follow(live: Live, name: str, measured: Callable[[], Tensor]) -> Callable[[int], None]:
    """A report for `posenc.models.train`: measure every seed and let the panel's lines grow.

    Args:
        live: made by `training_curves`.
        name: which panel.
        measured: gives one number a seed, shape (seeds,).
    """
    steps, values = [], []

    def report(step: int) -> None:
        steps.append(step)
        values.append(measured().tolist())
        live.artists[name].set_segments([list(zip(steps, seed)) for seed in zip(*values)])
        live.redraw()

    return report
