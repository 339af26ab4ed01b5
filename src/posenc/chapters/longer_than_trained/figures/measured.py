"""What models find beyond their trained length, as the chapter measured it."""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from posenc.chapters.longer_than_trained.figures.angles import NEW, PALE
from posenc.chapters.longer_than_trained.judging import MEASURED, ROWS
from posenc.lesson.controls import choice, slider
from posenc.lesson.drawing import log_axis
from posenc.lesson.live import Live, canvas, still
from posenc.lesson.palette import ADDED, BIAS, GREY, MAGNITUDE, NONE, SEEN, TURNED

# Colour and line of every encoding: a hue a family, a line a member.
STYLES = {
    "none": (NONE, ":"),
    "sinusoids": (ADDED, "-"),
    "rotary": (TURNED, "-"),
    "p-RoPE": (TURNED, "--"),
    "ALiBi": (BIAS, "-"),
    "T5": (BIAS, "--"),
    "none, 2 layers": ("black", "--"),
    "rotary, 2 layers": (TURNED, ":"),
    "hybrid, 2 layers": (TURNED, "-."),
}


def dilution(weights: Tensor | None = None, lengths: Sequence[int] = (32, 256, 1024, 4096, 16_384)) -> Live:
    """The weight on one token, as more and more competitors stand at distances that training has shown.

    Args:
        weights: (lengths, seeds); made up unless given.
        lengths: of the texts.
    """
    if weights is None:
        weights = torch.linspace(1, 0.5, len(lengths))[:, None].expand(-1, 2)
    figure = canvas(8, 3.3)
    panel = figure.subplots()
    log_axis(panel.xaxis, lengths, base=2)
    panel.set(xlim=(lengths[0] * 0.8, lengths[-1] * 1.25), ylim=(0, 1.05), xlabel="tokens in the text")
    panel.set_ylabel("weight on the token three back")
    look = {"color": TURNED, "alpha": 0.6, "linewidth": 1.2, "markersize": 4}
    lines = {f"seed {n}": panel.plot([], [], "o-", **look)[0] for n in range(weights.shape[1])}
    readout = panel.set_title(" ")

    def update(place: int) -> None:
        for line, seed in zip(lines.values(), weights.T.tolist()):
            line.set_data(lengths[: place + 1], seed[: place + 1])
        competitors = f"{lengths[place] - 1:,} competitors, all at trained distances"
        readout.set_text(f"{competitors}: weight {weights[place].mean():.2f}, the mean of the seeds")

    return Live(
        figure,
        update,
        moving=lines | {"readout": readout},
        controls={"place": slider("length, short to long", 0, len(lengths) - 1)},
        alt="The weight of the better head on the token three back against the number of tokens in the text, one line a "
        "seed; every competitor stands at a distance that training has shown. The lines grow with the slider.",
    )


def shares_by_position(right: Mapping[str, Tensor] | None = None, *, first: int = 3, trained: int = 32) -> Live:
    """Share of right answers against the position, one panel an encoding and one line a seed.

    Args:
        right: encoding → shares, (seeds, positions), drawn as means of eight positions; made up unless given.
        first: the position that the first share belongs to.
        trained: length of the training texts, shaded.
    """
    right = {"made up": torch.linspace(1, 0.2, 253).expand(2, -1)} if right is None else right
    figure = canvas(8, 2.5)
    panels = figure.subplots(1, len(right), sharey=True, squeeze=False)[0]
    for panel, (name, shares) in zip(panels, right.items()):
        colour, _ = STYLES.get(name, (TURNED, "-"))
        panel.axvspan(0, trained, color=SEEN, linewidth=0)
        groups = shares.unfold(-1, 8, 8).mean(dim=-1)  # eight positions at a time
        centres = first + 8 * torch.arange(groups.shape[1]) + 3.5
        panel.plot(centres, groups.T, color=colour, alpha=0.7, linewidth=1.2)
        panel.set(xlim=(0, first + shares.shape[1]), ylim=(0, 1.05), title=name)
    figure.supxlabel("position; shaded, the length of the training texts")
    figure.supylabel("share right")
    return still(
        figure,
        alt=f"Share of right answers against the position, one panel an encoding: {', '.join(right)}. "
        f"The first {trained} positions, which were trained, are shaded.",
    )


def dots(
    values: Mapping[str, Sequence[Tensor]] | None = None,
    *,
    series: Sequence[str] = ("made up",),
    measure: str = "share right",
    limits: tuple[float, float] = (0.0, 1.05),
) -> Live:
    """Every seed as a dot, one column a name, with several series beside each other.

    Args:
        values: name → for each series one number a seed, (seeds,); made up unless given.
        series: what the numbers beside each other are, one or two.
        measure: what is on the vertical axis.
        limits: of the vertical axis.
    """
    values = {"made up": [torch.tensor([0.4, 0.5])]} if values is None else values
    figure = canvas(8, 3)
    panel = figure.subplots()
    panel.set(xlim=(-0.5, len(values) - 0.5), ylim=limits, ylabel=measure)
    panel.set_xticks(range(len(values)), list(values))
    panel.grid(axis="y", color=PALE, linewidth=0.8)
    for index, name in enumerate(series):
        shift = 0.22 * (index - (len(series) - 1) / 2)
        x = [column + shift for column, row in enumerate(values.values()) for _ in row[index]]
        y = [seed for row in values.values() for seed in row[index].tolist()]
        filled = {"mfc": "none"} if index else {}  # two series at the most
        panel.plot(x, y, "os"[index], color=TURNED, **filled, markersize=6, alpha=0.7, label=name)
    if len(series) > 1:
        figure.legend(loc="outside upper right", ncols=len(series))
    return still(figure, alt=f"{measure}, one dot a seed: {', '.join(values)}; {', '.join(series)}.")


def needles(
    found: Mapping[str, Mapping[str, Tensor]] | None = None,
    distances: Sequence[int] = (8, 31, 240),
    *,
    trained: int = 32,
    short: Mapping[str, Mapping[str, Tensor]] | None = None,
    guessing: Mapping[str, float] | None = None,
) -> Live:
    """How often each encoding finds a fact: in a text as long as those of training, and further and further back.

    Args:
        found: task → encoding → share of right answers, (seeds, distances); made up unless given.
        distances: where the facts stood.
        trained: distances below this one stood in training texts.
        short: task → encoding → share in texts of the trained length, (seeds,).
        guessing: task → share that a guess finds.
    """
    if found is None:
        made_up = torch.linspace(1, 0.2, len(distances)).expand(2, -1)
        found = {"recall": {"rotary": made_up}, "the newest": {"none": made_up / 2}}
    short = short or {task: {name: share[:, 0] for name, share in row.items()} for task, row in found.items()}
    figure = canvas(8, 4.2)
    panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    moving, means, before = {}, {}, distances[0] / 1.9
    for panel, (task, curves) in zip(panels, found.items()):
        panel.set_xscale("log", base=2)
        panel.set(xlim=(before * 0.7, distances[-1] * 13), ylim=(0, 1.06), title=task)
        panel.set_xlabel("distance of the fact in a text of 256 tokens")
        panel.axvspan(distances[0] * 0.8, trained, color=SEEN, linewidth=0)
        close = {after for one, after in zip(distances, distances[1:]) if after < 1.6 * one}
        names = ["" if each in close else str(each) for each in distances]
        panel.set_xticks([before, *distances], ["text\nof 32", *names])
        panel.minorticks_off()
        if guessing:
            panel.axhline(guessing[task], color=GREY, linewidth=1, linestyle=":")
            panel.text(before * 0.75, guessing[task] + 0.015, "a guess", color=GREY, fontsize=9)
        for name, shares in curves.items():
            colour, line = STYLES[name]
            means[task, name] = shares.mean(0)
            panel.plot([before], [short[task][name].mean()], "o", color=colour, mfc="none", markersize=6)
            look = {"color": colour, "linestyle": line, "marker": "o", "markersize": 3.5, "linewidth": 1.8}
            (moving[f"{task}, {name}"],) = panel.plot([], [], **look)
            moving[f"{task}, {name}, end"] = panel.text(0, 0, " ", color=colour, va="center", fontsize=9)
    panels[0].set_ylabel("share found, mean of the seeds")

    def update(place: int) -> None:
        for task, curves in found.items():
            ends = {name: means[task, name][place].item() for name in curves}
            for name, level in _apart(ends).items():
                moving[f"{task}, {name}"].set_data(distances[: place + 1], means[task, name][: place + 1])
                words = f"{name} {ends[name]:.2f}"
                moving[f"{task}, {name}, end"].set(x=distances[place] * 1.15, y=level, text=words)

    return Live(
        figure,
        update,
        moving=moving,
        controls={"place": slider("distance, near to far", 0, len(distances) - 1)},
        alt=f"Share of facts found against their distance, one panel a task ({' and '.join(found)}), one line an "
        f"encoding: {', '.join(dict.fromkeys(name for row in found.values() for name in row))}. Rings at the left are "
        f"the shares in texts of the trained length. Distances below {trained}, which stood in training texts, are "
        "shaded, and a dotted line marks what a guess finds. The lines grow with the slider, and their values stand at "
        "their ends.",
    )


def _apart(heights: Mapping[str, float], least: float = 0.065) -> dict[str, float]:
    """Heights for names that should stand at these heights and not on each other, from 0.03 to 1.02."""
    levels, above, below = {}, 1.02 + least, 0.03 - least
    for name in sorted(heights, key=heights.get, reverse=True):
        above = levels[name] = min(heights[name], above - least)
    for name in reversed(levels):
        below = levels[name] = max(levels[name], below + least)
    return levels


def worth(
    rows: Mapping[str, Sequence[Tensor]] | None = None, tuned: Mapping[str, Sequence[Tensor]] | None = None
) -> Live:
    """What each method finds far away and near by in a long text, and what it costs in a short one, a dot a seed.

    Args:
        rows: method → shares for recall far away, the newest far away, the newest near by, and the newest in short
            texts, each (seeds,); made up unless given.
        tuned: the same after a few steps of training; as `rows` unless given.
    """
    columns = {  # and what a guess finds
        "recall\n240 back in 256": 1 / 12,
        "the newest\n64 to 240 back": 0.5,
        "the newest\n8 and 16 back": 0.5,
        "the newest\nin texts of 32": 0.5,
    }
    rows = {"made up": [torch.tensor([0.4, 0.5])] * 4} if rows is None else rows
    tuned = {name: [share / 2 for share in row] for name, row in rows.items()} if tuned is None else tuned
    names = list(rows)
    figure = canvas(8, 0.9 + 0.34 * len(names))
    panels = figure.subplots(1, 4, sharey=True)
    moving = {}
    for number, (panel, (column, guess)) in enumerate(zip(panels, columns.items())):
        panel.set(xlim=(-0.04, 1.04), ylim=(len(names) - 0.5, -0.5), title=column)
        panel.set_yticks(range(len(names)), names)
        panel.set_xticks([0, 0.5, 1])
        panel.grid(axis="y", color=PALE, linewidth=0.8)
        panel.tick_params(length=0)
        panel.axvline(guess, color=GREY, linewidth=1, linestyle=":")
        (moving[f"other {number}"],) = panel.plot([], [], "o", color=PALE, markersize=6)
        (moving[f"shown {number}"],) = panel.plot([], [], "o", color=TURNED, markersize=6, alpha=0.7)
    moving["readout"] = figure.supxlabel(" ")

    def update(steps: str) -> None:
        now, other = (rows, tuned) if steps == "untuned" else (tuned, rows)
        for number in range(4):
            for name, table in (("other", other), ("shown", now)):
                shares = [table[row][number] for row in names]
                heights = [row for row, seeds in enumerate(shares) for _ in seeds]
                moving[f"{name} {number}"].set_data(torch.cat(shares), heights)
        moving["readout"].set_text(f"share found, a dot a seed; dotted, a guess; {steps}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={"steps": choice("methods", ["untuned", "20 steps on long texts"])},
        alt=f"Share of facts found, one row a method ({', '.join(names)}), one dot a seed, in four panels: recall far away, "
        "the newest far away, the newest near by in a long text, and the newest in short texts. Dotted lines mark what a "
        "guess finds. The other choice stands behind in grey.",
    )


def card(judged: Mapping[str, Mapping[str, float]] | None = None) -> Live:
    """The rows of some encodings beside those of the nine that are known.

    Args:
        judged: name → its row, as `posenc.judging.judge` returns it; made up unless given.
    """
    judged = {"made up": dict.fromkeys(ROWS, 0.5)} if judged is None else judged
    rows = {name: [row[column] for column in ROWS] for name, row in judged.items()} | dict(MEASURED)
    figure = canvas(8, 0.9 + 0.27 * len(rows))
    exact, shares = figure.subplots(1, 2, width_ratios=(2, 6))
    table = torch.tensor(list(rows.values()))
    for panel, columns in ((exact, slice(0, 2)), (shares, slice(2, None))):
        part = table[:, columns]
        picture, colours = (part, MAGNITUDE) if panel is shares else (torch.zeros_like(part), "Greys")
        image = panel.imshow(picture.numpy(), cmap=colours, vmin=0, vmax=1, aspect="auto")
        panel.set_xticks(range(part.shape[1]), [name.replace(" ", "\n", 1) for name in ROWS[columns]])
        panel.tick_params(length=0)
        panel.axhline(len(judged) - 0.5, color=NEW, linewidth=2)
        for row, numbers in enumerate(part.tolist()):
            for column, number in enumerate(numbers):
                colour = "white" if panel is shares and number < 0.5 else "black"
                shown = "∞" if math.isinf(number) else f"{number:.2f}"
                panel.text(column, row, shown, ha="center", va="center", color=colour)
    exact.set_yticks(range(len(rows)), list(rows))
    exact.set_title("change of the output")
    shares.set_yticks([])
    shares.set_title("share right")
    figure.colorbar(image, ax=shares, label="share right")
    return still(
        figure,
        alt=f"A card: rows for {', '.join(judged)} above those of nine known encodings, {', '.join(MEASURED)}; columns "
        f"{', '.join(ROWS)}.",
    )
