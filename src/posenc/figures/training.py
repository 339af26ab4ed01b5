"""Curves that grow while models train: one panel a model, one line a seed."""

from collections.abc import Callable, Sequence

from matplotlib.collections import LineCollection
from torch import Tensor

from posenc.figures import BLUE, GREY
from posenc.live import Live, canvas


def training_curves(
    names: Sequence[str], *, steps: int, measure: str, chance: float, limits=(0.0, 1.0)
) -> Live:
    """A figure with one empty panel a model, to be filled by `follow`.

    Args:
        names: one a panel.
        steps: length of the training.
        measure: what is on the vertical axis.
        chance: what guessing reaches, drawn as a dashed line.
        limits: of the vertical axis.
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
        panel.set_title(names[index], fontsize=9)
        panel.tick_params(labelsize=8)
        moving[names[index]] = panel.add_collection(
            LineCollection([], colors=BLUE, alpha=0.6, linewidths=1.5)
        )
    figure.supxlabel("step", fontsize=9)
    figure.supylabel(measure, fontsize=9)
    return Live(
        figure,
        lambda: None,
        moving=moving,
        controls={},
        alt=f"{measure} while training, one panel a model and one line a seed: {', '.join(names)}."
        f" A dashed line marks chance, {chance:g}.",
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
