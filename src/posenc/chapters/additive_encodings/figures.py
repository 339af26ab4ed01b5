"""What chapter 2 draws: a word at a place, codes of positions, the clock behind a pair, and what a sum still holds."""

import math
from collections.abc import Mapping
from functools import partial

import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from torch import Tensor

from posenc.additive import binary, frequencies, shift_matrix, sinusoidal
from posenc.geometry import nearest
from posenc.lesson import drawing as draw
from posenc.lesson.controls import choice, slider, switch
from posenc.lesson.drawing import drawing
from posenc.lesson.live import Live, canvas, still
from posenc.lesson.palette import (
    ADDED,
    BIAS,
    CONTENT,
    GREY,
    KEY,
    MAGNITUDE,
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
    ways = (
        (
            "1",
            ADDED,
            [(1.5, 5.2)],
            "added to the embedding: integers, binary digits, sinusoids, learned tables (this chapter)",
        ),
        ("2", TURNED, [(8.2, 6.22), (8.2, 5.08)], "as a turn of query and key: rotary encodings (chapter 4)"),
        ("3", BIAS, [(10.7, 6.1)], "added to the score: T5, ALiBi (chapters 4 and 5)"),
    )
    for row, (number, colour, places, words) in enumerate(ways):
        for x, y in [*places, (0.7, 1.55 - 0.6 * row)]:
            panel.plot([x], [y], "o", color=colour, markersize=15, markeredgecolor="white", zorder=3)
            panel.text(x, y - 0.02, number, color="white", weight="bold", ha="center", va="center", zorder=4)
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
    figure = canvas(8, 2.5)
    figure.set_layout_engine("none")
    panels = [
        figure.add_axes((left, 0.12, width, 0.68))
        for left, width in ((0.04, 0.22), (0.3, 0.42), (0.76, 0.22))
    ]
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
            number.set_text(f"{value:.2f}".replace("-", "−"))

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
    figure = canvas(8, 2.9)
    figure.set_layout_engine("none")
    moving, lines, words = {}, {}, {}
    for name, left in (("sum", 0.08), ("minus its mean", 0.58)):
        panel = figure.add_axes((left, 0.1, 0.38, 0.74))
        panel.set(xlim=(-0.7, 2.7), ylim=(-9, 17), xticks=[], yticks=[-5, 0, 5, 10, 15])
        panel.axhline(0, color=GREY, linewidth=0.5)
        lines[name] = moving[name] = panel.add_collection(LineCollection([], colors=ADDED, linewidths=26))
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
            _bars(lines[name], values)
            for text, (j, value) in zip(words[name], enumerate(values.tolist())):
                text.set_text(f"{value:.3g}".replace("-", "−"))
                text.set_position((j, value + 0.4 if value >= 0 else value - 0.5))
                text.set_va("bottom" if value >= 0 else "top")
        mean = total.mean().item()
        moving["mean"].set_data([-0.7, 2.7], [mean, mean])
        moving["mean in words"].set_text(f"mean {mean:.3g}".replace("-", "−"))
        moving["mean in words"].set_position((0.92, mean + 0.2))

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
    periods = [
        2 ** (j + 1) for j in reversed(range(digits))
    ]  # the slowest digit stands first, as one writes it
    steps = torch.linspace(-0.5, length - 0.5, 1601)
    places = torch.arange(length)
    figure = canvas(8, 4.9)
    figure.set_layout_engine("none")

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
        moving |= {
            f"{period // 2}s": curves[-1],
            f"{period // 2}s, dots": dots[-1],
            f"{period // 2}s, cosine": partners[-1],
        }
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
            return torch.stack(
                [_filed((p + 0.5) / period - 0.5 + turn, filed / 100) for period in periods], dim=-1
            )

        for j, (along, ahead) in enumerate(zip(code(steps).T, code(steps, 0.25).T)):
            curves[j].set_data(along, steps)
            partners[j].set_data(ahead if cosines else [], steps if cosines else [])
            dots[j].set_data(code(places)[:, j], places)
        whole = torch.cat([code(places), code(places, 0.25)], dim=-1) if cosines else code(places)
        apart = (whole[1:] - whole[:-1]).norm(dim=-1)
        moving["steps"].set_segments(
            [[(0, p + 0.5), (step, p + 0.5)] for p, step in enumerate(apart.tolist())]
        )
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
    figure = canvas(8, 4.2)
    figure.set_layout_engine("none")
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
        moving[f"{name}, column"] = whole.add_patch(
            Rectangle((0, 0), 1, width, fill=False, edgecolor="black", linewidth=1.5)
        )
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
            moving[f"{name}, vector"].set_data(torch.arange(code.shape[1]).numpy(), code[position].numpy())
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


def clock_and_waves() -> Live:
    """The hand of one pair, which draws its two waves, and the wavelengths of all pairs."""
    width, length = 32, 100
    pairs = torch.arange(width // 2)
    steps = torch.linspace(0, length, 801)
    height = 4.7
    figure = canvas(8, height)
    figure.set_layout_engine("none")

    def panel(left: float, bottom: float, wide: float, high: float) -> Axes:
        """Axes at a place that is given in inches."""
        return figure.add_axes((left / 8, bottom / height, wide / 8, high / height))

    clock, sine_panel = panel(0.55, 2.5, 1.8, 1.8), panel(2.75, 2.5, 5.05, 1.8)
    cosine_panel, lengths = panel(0.55, 0.42, 1.8, 1.75), panel(3.55, 0.45, 4.25, 1.35)
    clock.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), xticks=[], yticks=[-1, 0, 1])
    circle = torch.linspace(0, 2 * math.pi, 100)
    clock.plot(circle.cos(), circle.sin(), color=GREY, linewidth=0.8)
    sine_panel.set(xlim=(0, length), ylim=(-1.2, 1.2), yticks=[])
    sine_panel.set_xlabel("position", labelpad=1)
    cosine_panel.set(xlim=(-1.2, 1.2), ylim=(length, 0), xticks=[-1, 0, 1], yticks=[0, 50, 100])
    cosine_panel.set_ylabel("position", labelpad=1)
    cosine_panel.set_xlabel("cosine", labelpad=1)
    sine_panel.set_title("sine", loc="right")
    moving = {}
    for name, where, colour in (("sine", sine_panel, POSITION), ("cosine", cosine_panel, "black")):
        (moving[f"{name}, ahead"],) = where.plot([], [], color="0.82", linewidth=1)
        (moving[name],) = where.plot([], [], color=colour, linewidth=1.8)
    (moving["hand"],) = clock.plot(
        [], [], color="black", linewidth=2.5, marker="o", markersize=6, markevery=[1]
    )
    for name in ("to the sine", "to the cosine"):  # from the hand's tip, across the panels
        moving[name] = figure.add_artist(
            Line2D([], [], color=ADDED, linestyle=(0, (4, 2)), linewidth=1.3, marker="o", markevery=[1])
        )
    moving["once round"] = clock.set_title(" ", loc="left")

    lengths.set_yscale("log")
    lengths.set(xlim=(-0.5, width // 2 - 0.5), ylim=(3, 1e6), xticks=pairs.tolist(), yticks=[10, 1e3, 1e5])
    lengths.minorticks_off()
    lengths.axhline(length, color=GREY, linestyle=":", linewidth=1)
    lengths.text(width // 2 - 0.6, length * 0.8, "100 positions", ha="right", va="top", color=GREY)
    lengths.set_xlabel("pair", labelpad=1)
    lengths.set_title("once round, in positions: all 16 hands", loc="left")
    (moving["wavelengths"],) = lengths.plot([], [], "o", color=POSITION, markersize=4)
    (moving["chosen"],) = lengths.plot([], [], "o", color="black", markersize=9, fillstyle="none")

    def on_page(where: Axes, x: float, y: float) -> tuple[float, float]:
        """A point of a panel in the coordinates of the figure."""
        box, (left, right), (bottom, top) = where.get_position(), where.get_xlim(), where.get_ylim()
        return box.x0 + box.width * (x - left) / (right - left), box.y0 + box.height * (y - bottom) / (
            top - bottom
        )

    def update(pair: int, power: float, position: int) -> None:
        base = 10**power
        wavelength = 2 * math.pi / frequencies(width, base=base)
        angle = 2 * math.pi * steps / wavelength[pair]
        s, c = sinusoidal(torch.tensor(position), width, base=base)[2 * pair : 2 * pair + 2].tolist()
        moving["hand"].set_data([0, c], [0, s])
        gone = steps <= position
        moving["sine, ahead"].set_data(steps, angle.sin())
        moving["cosine, ahead"].set_data(angle.cos(), steps)
        moving["sine"].set_data(steps[gone], angle[gone].sin())
        moving["cosine"].set_data(angle[gone].cos(), steps[gone])
        for name, there in (
            ("to the sine", (sine_panel, position, s)),
            ("to the cosine", (cosine_panel, c, position)),
        ):
            moving[name].set_data(*zip(on_page(clock, c, s), on_page(*there)))
        moving["once round"].set_text(f"pair {pair}: once round in {wavelength[pair]:,.1f} positions")
        moving["wavelengths"].set_data(pairs, wavelength)
        moving["chosen"].set_data([pair], [wavelength[pair]])

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "position": slider("position", 0, length, value=8),
            "pair": slider("pair", 0, width // 2 - 1, value=2),
            "power": slider("base, 10 to the power", 1.0, 5.0, value=4.0, step=0.5),
        },
        alt=f"The hand of one pair on its dial. A dashed line leads from its tip to the right, to the sine over {length} "
        "positions, and another one down to the cosine; both waves are drawn up to the chosen position and grey beyond "
        "it. Below, how many positions each of the 16 hands takes to come round, on a logarithmic axis.",
    )


def all_hands() -> Live:
    """Four hands at a position and some positions on, and the matrix that turns them."""
    width, base = 8, 100.0  # so small a base that all four hands can be seen to turn
    speeds = frequencies(width, base=base)
    figure = canvas(8, 3.9)
    figure.set_layout_engine("none")
    moving, dials = {}, []
    for pair in range(width // 2):
        left, bottom = 0.02 + 0.215 * (pair % 2), 0.5 - 0.49 * (pair // 2)
        dial = figure.add_axes((left, bottom, 0.2, 0.41))
        dial.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal", xticks=[], yticks=[])
        dial.spines[:].set_visible(False)
        circle = torch.linspace(0, 2 * math.pi, 100)
        dial.plot(circle.cos(), circle.sin(), color=GREY, linewidth=0.8)
        (moving[f"before {pair}"],) = dial.plot([], [], color=GREY, linewidth=2.5, marker="o", markevery=[1])
        (moving[f"after {pair}"],) = dial.plot(
            [], [], color=POSITION, linewidth=2.5, marker="o", markevery=[1]
        )
        (moving[f"turn {pair}"],) = dial.plot([], [], color=ADDED, linewidth=1.5)
        moving[f"angle {pair}"] = dial.set_title(" ")
        dials.append(dial)
    panel = figure.add_axes((0.53, 0.03, 0.42, 0.86))
    mesh = moving["matrix"] = panel.pcolormesh(
        torch.zeros(width, width).numpy(), cmap=SIGNED, vmin=-1, vmax=1, edgecolor="0.9", linewidth=0.5
    )
    panel.set(ylim=(width, 0), xticks=[], yticks=[])
    panel.set_title("S")
    entries = {
        (row, column): panel.text(column + 0.5, row + 0.5, "", ha="center", va="center")
        for pair in range(width // 2)
        for row in (2 * pair, 2 * pair + 1)
        for column in (2 * pair, 2 * pair + 1)
    }
    moving |= {f"S[{row}, {column}]": text for (row, column), text in entries.items()}

    def update(position: int, offset: int) -> None:
        matrix = shift_matrix(offset, width, base=base)
        mesh.set_array(matrix.numpy())
        for place, text in entries.items():
            text.set_text(f"{matrix[place]:z.2f}".replace("-", "−"))
            text.set_color("white" if abs(matrix[place]) > 0.6 else "black")
        before = sinusoidal(torch.tensor(position), width, base=base, dtype=torch.float64)
        for pair, (old, new, speed) in enumerate(
            zip(before.view(-1, 2), (matrix @ before).view(-1, 2), speeds.tolist())
        ):
            moving[f"before {pair}"].set_data([0, old[1]], [0, old[0]])
            moving[f"after {pair}"].set_data([0, new[1]], [0, new[0]])
            way = torch.linspace(position, position + offset, 200) * speed
            radius = torch.linspace(0.35, 0.6, 200)
            moving[f"turn {pair}"].set_data(radius * way.cos(), radius * way.sin())
            moving[f"angle {pair}"].set_text(f"pair {pair}: {offset * speed:z.2f} radians".replace("-", "−"))

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "position": slider("position", 0, 40, value=3),
            "offset": slider("offset", -10, 10, unit="positions", value=4),
        },
        alt="Left, four dials, each with a grey hand at the position and a coloured hand at the position plus the "
        "offset, and the turn between them. Right, the 8 × 8 matrix S that leads from the one to the other: four blocks "
        "of 2 × 2 numbers on the diagonal, and nothing elsewhere.",
    )


def similarity_by_offset() -> Live:
    """The dot products of all pairs of positions, and how they change with the offset."""
    length, width, shown = 512, 128, 64
    codes = sinusoidal(torch.arange(length), width, dtype=torch.float64)
    grams = {False: codes @ codes.T / (width / 2), True: codes[:, 0::2] @ codes[:, 0::2].T / (width / 4)}
    curve = grams[False][0]  # by offset, the same along every diagonal
    apart = (torch.arange(shown)[:, None] - torch.arange(shown)).abs()
    figure = canvas(8, 3.6)
    figure.set_layout_engine("none")

    matrix = figure.add_axes((0.07, 0.14, 0.33, 0.74))
    mesh = matrix.pcolormesh(grams[False][:shown, :shown].numpy(), cmap=SIGNED, vmin=-1, vmax=1)
    matrix.set(xlim=(0, shown), ylim=(shown, 0))
    for axis in (matrix.xaxis, matrix.yaxis):
        axis.set_ticks([0.5, 20.5, 40.5, 60.5], ["0", "20", "40", "60"])
    matrix.set_xlabel("position n")
    matrix.set_ylabel("position m")
    matrix.set_title("similarity of PE(m) and PE(n)")
    (diagonal,) = matrix.plot([], [], color="black", linewidth=1.5)
    bar = figure.colorbar(mesh, cax=figure.add_axes((0.41, 0.14, 0.013, 0.74)))
    bar.set_ticks([-1, 0, 1])

    panel = figure.add_axes((0.53, 0.14, 0.45, 0.74))
    panel.set_xscale("log")
    panel.set(xlim=(1, 600), ylim=(0.15, 1.02), yticks=[0.2, 0.4, 0.6, 0.8, 1.0])
    panel.set_xticks([1, 10, 100, 500], ["1", "10", "100", "500"])
    panel.minorticks_off()
    panel.set_xlabel("offset m − n")
    panel.set_ylabel("similarity")
    (falling,) = panel.plot([], [], color=GREY, linewidth=1.5)
    rising = panel.add_collection(LineCollection([], colors="black", linewidths=2.5))
    (now,) = panel.plot([], [], "o", color=POSITION, markersize=6)
    readout = panel.set_title(" ", loc="left")

    def update(offset: int, sines_only: bool) -> None:
        mesh.set_array(grams[sines_only][:shown, :shown].where(apart <= offset, torch.nan).numpy())
        inside = min(offset, shown)
        diagonal.set_data([0, shown - inside], [inside, shown])
        falling.set_data(range(1, offset + 1), curve[1 : offset + 1])
        steps = [k for k in range(1, offset) if curve[k + 1] > curve[k]]
        rising.set_segments([[(k, curve[k]), (k + 1, curve[k + 1])] for k in steps])
        now.set_data([offset], [curve[offset]])
        readout.set_text(f"offset {offset}: {curve[offset]:.3f}; steps that rise so far: {len(steps)}")

    return Live(
        figure,
        update,
        moving={
            "matrix": mesh,
            "diagonal": diagonal,
            "falling": falling,
            "rising": rising,
            "now": now,
            "readout": readout,
        },
        controls={
            "offset": slider("offset m − n", 1, length - 1, unit="positions", value=6),
            "sines_only": switch("left: sines only"),
        },
        alt=f"Left, the similarities of {shown} positions with each other as a heat map, up to the chosen offset, whose "
        "diagonal is marked. Right, the similarity against the offset, drawn as far; steps that rise are black.",
    )


def tokens_and_positions() -> tuple[Tensor, Tensor]:
    """Forty token vectors of variance 1 and 24 encodings, both 64 wide, float64: 40 + 24 = 64."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randn(40, 64, generator=generator, dtype=torch.float64)
    return tokens, sinusoidal(torch.arange(24), 64, dtype=torch.float64)


def amplitude(separate: Tensor | None = None) -> Live:
    """What is left of a token when an encoding of any length is added.

    Args:
        separate: the matrix that takes a sum to its token, (64, 64); solved for here if it is not given.
    """
    tokens, encodings = tokens_and_positions()
    if separate is None:
        both = torch.cat([tokens, encodings])
        separate = torch.linalg.pinv(both)[:, : len(tokens)] @ tokens
    ratio = (encodings.norm(dim=-1).mean() / tokens.norm(dim=-1).mean()).item()  # at amplitude 1
    names = torch.arange(len(tokens))[:, None]

    def shares(amplitude: float) -> list[float]:
        """Of the sums whose token is found, straight and after the matrix."""
        sums = tokens[:, None] + amplitude * encodings  # (V, L, d)
        return [(nearest(v, tokens) == names).double().mean().item() for v in (sums, sums @ separate)]

    powers = torch.arange(-2, 6.01, 0.25).tolist()
    curves = list(zip(*(shares(2**power) for power in powers)))
    shown, position = 12, 5
    figure = canvas(8, 3.4)
    figure.set_layout_engine("none")
    one = figure.add_axes((0.05, 0.14, 0.42, 0.74))
    one.set(xlim=(-0.6, shown - 0.4), ylim=(-5, 5), xticks=range(shown))
    one.axhline(0, color=GREY, linewidth=0.5)
    one.set_xlabel("dimension")
    one.set_title(f"token 0 at position {position}: its first {shown} of 64 numbers", loc="left")
    one.plot(
        range(shown), tokens[0, :shown], "_", color=CONTENT, markersize=16, markeredgewidth=2.5, label="token"
    )
    (summed,) = one.plot([], [], "o", markersize=5, color=ADDED, label="sum")
    (restored,) = one.plot([], [], "x", markersize=6, color="black", label="sum after the matrix")
    one.legend(loc="lower left", ncols=3, frameon=False, columnspacing=1, handletextpad=0.2)

    panel = figure.add_axes((0.57, 0.14, 0.41, 0.74))
    panel.set_xscale("log")
    panel.set(xlim=(0.15, 70), ylim=(-0.03, 1.12))
    panel.set_xticks([0.2, 1, 5, 20, 50], ["0.2", "1", "5", "20", "50"])
    panel.minorticks_off()
    lengths = [ratio * 2**power for power in powers]
    (after,) = panel.plot([], [], color="0.75", linewidth=6, solid_capstyle="round")
    (before,) = panel.plot([], [], color=ADDED, linestyle="--", linewidth=2)
    panel.text(0.17, 1.06, "grey: after the matrix; dashes: nearest to the sum", va="center")
    panel.set_xlabel("length of the encoding / length of the token")
    panel.set_ylabel("tokens found")
    (now,) = panel.plot([], [], "o", color="black", markersize=6)
    readout = panel.set_title(" ", loc="left")

    def update(amplitude: float) -> None:
        total = tokens[0] + amplitude * encodings[position]
        summed.set_data(range(shown), total[:shown])
        restored.set_data(range(shown), (total @ separate)[:shown])
        found = shares(amplitude)
        reached = sum(2**power <= amplitude for power in powers)  # the curves grow up to the slider
        after.set_data(lengths[:reached], curves[1][:reached])
        before.set_data(lengths[:reached], curves[0][:reached])
        now.set_data([ratio * amplitude] * 2, found)
        readout.set_text(f"found {found[0]:.0%}, and {found[1]:.0%} after the matrix")

    return Live(
        figure,
        update,
        moving={
            "sum": summed,
            "restored": restored,
            "after": after,
            "before": before,
            "now": now,
            "readout": readout,
        },
        controls={"amplitude": choice("amplitude", [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64])},
        alt="Left, twelve of a token's numbers as dashes, the sum with an encoding as dots, and the sum after the matrix "
        "as crosses. Right, the share of tokens found against the length of the encoding, up to the chosen amplitude, "
        "for the nearest token to the sum and after the matrix.",
    )


AMPLITUDES, RATES = (0.3, 1, 3, 10, 30), (1 / 3, 1, 3)  # rates times that of the chapter's other trainings


def amplitude_map() -> Live:
    """An empty map of what models learn at several amplitudes and learning rates; filled by `show_shares`."""
    figure = canvas(8, 3.2)
    panel = figure.subplots()
    mesh = panel.pcolormesh(
        torch.full((len(RATES), len(AMPLITUDES)), torch.nan).numpy(), cmap=MAGNITUDE, vmin=0, vmax=1
    )
    panel.set_xticks([n + 0.5 for n in range(len(AMPLITUDES))], [f"{a:g}" for a in AMPLITUDES])
    panel.set_yticks([n + 0.5 for n in range(len(RATES))], ["÷ 3", "× 1", "× 3"])
    panel.set_xlabel("amplitude of the sinusoids")
    panel.set_ylabel("learning rate")
    figure.colorbar(mesh, label="share right, mean of the seeds")
    cells = {
        (rate, amplitude): panel.text(column + 0.5, row + 0.5, "", ha="center", va="center")
        for row, rate in enumerate(RATES)
        for column, amplitude in enumerate(AMPLITUDES)
    }
    return Live(
        figure,
        lambda: None,
        moving={"map": mesh}
        | {f"{rate:.2g}, {amplitude:g}": text for (rate, amplitude), text in cells.items()},
        controls={},
        alt="Heat map, five amplitudes across and three learning rates up: the share of right answers. High in the "
        "middle, and the higher the learning rate the further to the right; low at the left and right ends.",
    )


def show_shares(live: Live, right: Mapping[tuple[float, float], Tensor]) -> None:
    """Fill the cells of `amplitude_map` that are measured so far; right: (rate, amplitude) → one share per seed."""
    shares = torch.full((len(RATES), len(AMPLITUDES)), torch.nan)
    for (rate, amplitude), seeds in right.items():
        mean = seeds.mean().item()
        shares[RATES.index(rate), AMPLITUDES.index(amplitude)] = mean
        words = live.artists[f"{rate:.2g}, {amplitude:g}"]
        words.set_text(f"{mean:.2f}\n{seeds.min():.2f} to {seeds.max():.2f}")
        words.set_color("black" if mean > 0.5 else "white")
    live.artists["map"].set_array(shares.numpy())
    live.redraw()
