"""A word at a place, binary and sinusoidal codes, and the corners between them."""

import math
from functools import partial

import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle
from torch import Tensor

from posenc.additive import binary, sinusoidal
from posenc.lesson import drawing as draw
from posenc.lesson.controls import choice, slider, switch
from posenc.lesson.drawing import blank, drawing, signed
from posenc.lesson.live import Live, still
from posenc.lesson.palette import (
    ADDED,
    BIAS,
    CONTENT,
    GREY,
    KEY,
    POSITION,
    QUERY,
    SIGNED,
    TURNED,
    VALUE,
)


def where_encodings_act() -> Live:
    """A layer of attention as a drawing, and the three places where a position can enter."""
    panel = drawing(3.6)
    box = partial(draw.box, panel, width=2.2, height=0.9)
    arrow = partial(draw.arrow, panel, width=1.2)

    box(0.4, 4.3, "token x", CONTENT)
    box(4.8, 6.1, "query", QUERY)
    box(4.8, 4.3, "key", KEY)
    box(4.8, 2.5, "value", VALUE)
    box(9.6, 5.2, "score q·k", "black")
    panel.text(12.9, 5.65, "softmax", ha="center", va="center", fontsize=10)
    box(13.4, 3.3, "output", "black")
    for y in (6.55, 4.75, 2.95):
        arrow((2.6, 4.75), (4.8, y))
    arrow((7.0, 6.55), (9.6, 5.85))
    arrow((7.0, 4.75), (9.6, 5.45))
    arrow((11.8, 5.65), (12.2, 5.65))
    arrow((13.3, 5.35), (14.3, 4.2))
    arrow((7.0, 2.95), (13.4, 3.65))
    sums = "added to the embedding: integers, binary digits, sinusoids, learned tables (this chapter)"
    ways = (
        (ADDED, [(1.5, 5.2)], sums),
        (TURNED, [(8.2, 6.22), (8.2, 5.08)], "as a turn of query and key: rotary encodings (chapter 4)"),
        (BIAS, [(10.7, 6.1)], "added to the score: T5, ALiBi (chapters 4 and 5)"),
    )
    number = {"color": "white", "weight": "bold", "ha": "center", "va": "center", "zorder": 4}
    for row, (colour, places, words) in enumerate(ways):
        for x, y in [*places, (0.7, 1.55 - 0.6 * row)]:
            panel.plot([x], [y], "o", color=colour, markersize=15, markeredgecolor="white", zorder=3)
            panel.text(x, y - 0.02, str(row + 1), **number)
        panel.text(1.2, 1.55 - 0.6 * row, words, color="black", va="center", fontsize=10)
    return still(
        panel.figure,
        alt="A token gives a query, a key and a value; query and key give a score; the softmax of the scores weighs the "
        "values. A position can enter at three places: added to the embedding (integers, binary digits, sinusoids, "
        "learned tables; this chapter), as a turn of query and key (rotary; chapter 4), or added to the score (T5, "
        "ALiBi; chapters 4 and 5).",
    )


def word_at_a_place() -> Live:
    """Eight numbers of a word, what the Transformer of 2017 adds to them at a place, and the sum."""
    word = torch.tensor([0.9, -1.4, 0.3, 1.8, -0.6, -1.1, 1.2, 0.5])
    dimensions = torch.arange(len(word))
    codes = sinusoidal(torch.arange(64), len(word))
    figure = blank(2.5)
    places = ((0.04, 0.22), (0.3, 0.42), (0.76, 0.22))
    panels = [figure.add_axes((left, 0.12, width, 0.68)) for left, width in places]
    for panel in panels:
        panel.set(xlim=(-0.6, len(word) - 0.4), ylim=(-3, 3), xticks=[], yticks=[])
        panel.axhline(0, color=GREY, linewidth=0.5)
    panels[0].set_yticks([-2, 0, 2])
    for x, sign in ((0.28, "+"), (0.74, "=")):
        figure.text(x, 0.46, sign, fontsize=14, ha="center", va="center")
    panels[0].set_title("the word “dog”")
    panels[2].set_title("what the layer gets")
    panels[0].vlines(dimensions, 0, word, color=CONTENT, linewidth=9)
    panels[2].plot(dimensions, word, "_", color=CONTENT, markersize=13, markeredgewidth=2)
    added, summed = (
        panel.add_collection(LineCollection([], colors=colour, linewidths=9))
        for panel, colour in ((panels[1], POSITION), (panels[2], ADDED))
    )
    numbers = [panels[1].text(j, -2.5, "", ha="center", va="center") for j in dimensions.tolist()]
    place = panels[1].set_title(" ")

    def update(position: int) -> None:
        code = codes[position]
        _bars(added, code)
        _bars(summed, word + code)
        place.set_text(f"added at place {position}")
        for number, value in zip(numbers, code.tolist()):
            number.set_text(signed(value))

    return Live(
        figure,
        update,
        moving={"added": added, "sum": summed, "place": place}
        | {f"number {j}": number for j, number in enumerate(numbers)},
        controls={"position": slider("place", 0, len(codes) - 1, value=7)},
        alt="Three rows of eight bars: the numbers of the word “dog”, the numbers that are added at one place, written "
        "below them, and their sum, with the word's own numbers as dashes.",
    )


def _bars(lines: LineCollection, values: Tensor) -> None:
    """Bars from 0 to each of the values, (d,)."""
    lines.set_segments([[(j, 0), (j, value)] for j, value in enumerate(values.tolist())])


def count_and_norm() -> Live:
    """A number is added to (1, −2, 4), and then the mean is taken off."""
    word = torch.tensor([1.0, -2.0, 4.0])
    figure = blank(2.9)
    moving, words = {}, {}
    for name, left in (("sum", 0.08), ("minus its mean", 0.58)):
        panel = figure.add_axes((left, 0.1, 0.38, 0.74))
        panel.set(xlim=(-0.7, 2.7), ylim=(-9, 17), xticks=[], yticks=[-5, 0, 5, 10, 15])
        panel.axhline(0, color=GREY, linewidth=0.5)
        moving[name] = panel.add_collection(LineCollection([], colors=ADDED, linewidths=26))
        words[name] = [panel.text(j, 0, "", ha="center") for j in range(3)]
        moving |= {f"{name}, {j}": text for j, text in enumerate(words[name])}
        if name == "sum":
            panel.plot(range(3), word, "_", color=CONTENT, markersize=30, markeredgewidth=2)
            (moving["mean"],) = panel.plot([], [], color="black", linestyle="--", linewidth=1)
            moving["mean in words"] = panel.text(2.66, 0, "", ha="right", va="bottom")
            panel.set_title("the sum; dashes: (1, −2, 4)", loc="left")
        else:
            panel.set_title("the sum less its mean: what the layer reads", loc="left")
    figure.text(0.52, 0.47, "→", fontsize=16, ha="center", va="center")

    def update(position: int, where: str) -> None:
        total = word + position * (torch.ones(3) if where == "every number" else torch.tensor([1.0, 0, 0]))
        for name, values in (("sum", total), ("minus its mean", total - total.mean())):
            _bars(moving[name], values)
            for text, value in zip(words[name], values.tolist()):
                text.set(text=signed(value, ".3g"), y=value + 0.4 if value >= 0 else value - 0.5)
                text.set_va("bottom" if value >= 0 else "top")
        mean = total.mean().item()
        moving["mean"].set_data([-0.7, 2.7], [mean, mean])
        moving["mean in words"].set(text=f"mean {signed(mean, '.3g')}", x=0.92, y=mean + 0.2)

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "position": slider("place", 0, 10, value=2),
            "where": choice("add it to", ["every number", "the first alone"]),
        },
        alt="Left, three bars: the sum of (1, −2, 4) and what is added at a place, a dashed line at their mean. Right, "
        "the three bars less that mean, which is what a layer behind LayerNorm reads.",
    )


def corners() -> Live:
    """The four binary digits of 0 to 15 as waves, whose corners can be filed off, and the steps from place to place."""
    length, digits = 16, 4
    periods = [2**j for j in range(digits, 0, -1)]  # the slowest digit stands first, as one writes it
    steps = torch.linspace(-0.5, length - 0.5, 1601)
    places = torch.arange(length)
    figure = blank(4.9)

    def panel(left: float, width: float) -> Axes:
        made = figure.add_axes((left, 0.03, width, 0.85))
        made.set(ylim=(length - 0.4, -0.6), yticks=[])
        made.axhspan(6.5, 8.5, color="0.93")
        return made

    table = panel(0.01, 0.12)
    table.set(xlim=(0, 1), xticks=[])
    table.axis("off")
    for p in range(length):
        table.text(0.3, p, str(p), ha="right", va="center", color=POSITION)
        table.text(0.95, p, f"{p:04b}", ha="right", va="center", family="monospace")
    moving, curves, dots, partners = {}, [], [], []
    for column, period in enumerate(periods):
        wave = panel(0.15 + 0.115 * column, 0.105)
        wave.set(xlim=(-0.25, 1.25), xticks=[])
        wave.set_title(("eights", "fours", "twos", "ones")[column])
        partners.append(wave.plot([], [], color="black", linestyle=(0, (3, 2)), linewidth=0.9)[0])
        curves.append(wave.plot([], [], color=POSITION, linewidth=1.8)[0])
        dots.append(wave.plot([], [], "o", color=POSITION, markersize=4)[0])
        name = f"{period // 2}s"
        moving |= {name: curves[-1], f"{name}, dots": dots[-1], f"{name}, cosine": partners[-1]}
    distance = panel(0.64, 0.34)
    distance.set(xlim=(0, 2.45), xticks=[0, 1, 2])
    distance.xaxis.tick_top()
    distance.xaxis.set_label_position("top")
    distance.set_xlabel("distance to the next place")
    moving["steps"] = distance.add_collection(LineCollection([], colors=ADDED, linewidths=9))
    moving["readout"] = distance.text(2.42, 15.2, "", ha="right")

    def update(filed: int, cosines: bool) -> None:
        def code(p: Tensor, turn: float = 0.0) -> Tensor:
            """The waves at these places, each as far behind as this share of its period, (T, digits)."""
            turns = [(p + 0.5) / period - 0.5 + turn for period in periods]
            return _filed(torch.stack(turns, dim=-1), filed / 100)

        for j, (along, ahead) in enumerate(zip(code(steps).T, code(steps, 0.25).T)):
            curves[j].set_data(along, steps)
            partners[j].set_data(ahead if cosines else [], steps if cosines else [])
            dots[j].set_data(code(places)[:, j], places)
        whole = torch.cat([code(places), code(places, 0.25)], dim=-1) if cosines else code(places)
        apart = (whole[1:] - whole[:-1]).norm(dim=-1)
        moving["steps"].set_segments([[(0, p + 0.5), (x, p + 0.5)] for p, x in enumerate(apart.tolist())])
        moving["readout"].set_text(f"from {apart.min():.2f} to {apart.max():.2f}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "filed": slider("corners filed off", 0, 100, unit="%", value=0, step=5),
            "cosines": switch("each wave with its cosine"),
        },
        alt="The numbers 0 to 15, one below the other, in binary; beside them the four columns of digits as waves that "
        "run downwards; right, a bar for the distance from each place to the next. The step from 7 to 8 is shaded.",
    )


def _filed(turns: Tensor, filed: float) -> Tensor:
    """A wave between 0 and 1: square where filed is 0, a sine where it is 1."""
    sharp = max(3 * (1 - filed) / max(filed, 0.02), 1e-3)
    return 0.5 + torch.tanh(sharp * (2 * math.pi * turns).sin()) / (2 * math.tanh(sharp))


def position_codes() -> Live:
    """Every position's binary and sinusoidal code as heat maps, and one position's vectors."""
    length = 64
    codes = {  # base 100, so that all four waves can be seen to move
        "binary, 6 digits": binary(torch.arange(length + 1), 7)[:, :6],
        "sinusoidal, 4 pairs": sinusoidal(torch.arange(length + 1), 8, base=100.0),
    }
    figure = blank(4.2)
    moving = {}
    for column, (name, code) in enumerate(codes.items()):
        left, width = 0.08 + 0.43 * column, code.shape[1]
        whole = figure.add_axes((left, 0.38, 0.36, 0.54))
        mesh = whole.pcolormesh(code[:length].T.numpy(), cmap=SIGNED, vmin=-1, vmax=1)
        whole.set_ylim(width, 0)
        whole.set_xticks([0.5, 16.5, 32.5, 48.5], ["0", "16", "32", "48"])
        whole.set_yticks([])
        whole.set_title(name, loc="left")
        moving[f"{name}, step"] = whole.set_title(" ", loc="right")
        frame = Rectangle((0, 0), 1, width, fill=False, edgecolor="black", linewidth=1.5)
        moving[f"{name}, column"] = whole.add_patch(frame)
        one = figure.add_axes((left, 0.11, 0.36, 0.19))
        one.set(xlim=(-0.6, 7.6), ylim=(-1.2, 1.2), yticks=[-1, 0, 1], xticks=range(8))
        one.axhline(0, color=GREY, linewidth=0.5)
        one.set_xlabel("dimension", labelpad=1)
        (moving[f"{name}, vector"],) = one.plot([], [], "o", markersize=5, color=POSITION)
        if not column:
            whole.set_ylabel("dimension, fast on top")
            one.set_ylabel("value")
    figure.colorbar(mesh, cax=figure.add_axes((0.89, 0.38, 0.02, 0.54)), label="value")

    def update(position: int) -> None:
        for name, code in codes.items():
            moving[f"{name}, column"].set_x(position)
            moving[f"{name}, vector"].set_data(range(code.shape[1]), code[position])
            step = (code[position + 1] - code[position]).norm()
            moving[f"{name}, step"].set_text(f"to the next: {step:.2f}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={"position": slider("position", 0, length - 1, value=6)},
        alt=f"Two heat maps, six binary digits and four pairs of sinusoids down and {length} positions across, one "
        "position framed; below each its numbers as dots, above it the distance to the next position's vector.",
    )
