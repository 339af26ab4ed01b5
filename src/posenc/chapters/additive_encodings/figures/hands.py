"""The hands whose tips draw the waves, the matrix that turns them, and how alike two positions are."""

import math

import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from posenc.additive import frequencies, shift_matrix, sinusoidal
from posenc.lesson.controls import slider, switch
from posenc.lesson.drawing import bare, blank, dial, hand, log_axis, signed
from posenc.lesson.live import Live
from posenc.lesson.palette import (
    ADDED,
    GREY,
    POSITION,
    SIGNED,
)


def clock_and_waves() -> Live:
    """The hand of one pair, which draws its two waves, and the wavelengths of all pairs."""
    width, length = 32, 100
    pairs = torch.arange(width // 2)
    steps = torch.linspace(0, length, 801)
    height = 4.7
    figure = blank(height)

    def panel(left: float, bottom: float, wide: float, high: float) -> Axes:
        """Axes at a place that is given in inches."""
        return figure.add_axes((left / 8, bottom / height, wide / 8, high / height))

    clock, sine_panel = panel(0.55, 2.5, 1.8, 1.8), panel(2.75, 2.5, 5.05, 1.8)
    cosine_panel, lengths = panel(0.55, 0.42, 1.8, 1.75), panel(3.55, 0.45, 4.25, 1.35)
    dial(clock).set(yticks=[-1, 0, 1])
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
    moving["hand"] = hand(clock, "black", markersize=6)
    dashed = {"color": ADDED, "linestyle": (0, (4, 2)), "linewidth": 1.3, "marker": "o", "markevery": [1]}
    for name in ("to the sine", "to the cosine"):  # from the hand's tip, across the panels
        moving[name] = figure.add_artist(Line2D([], [], **dashed))
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
        return figure.transFigure.inverted().transform(where.transData.transform((x, y)))

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
        tip = on_page(clock, c, s)
        moving["to the sine"].set_data(*zip(tip, on_page(sine_panel, position, s)))
        moving["to the cosine"].set_data(*zip(tip, on_page(cosine_panel, c, position)))
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
    figure = blank(3.9)
    moving = {}
    for pair in range(width // 2):
        left, bottom = 0.02 + 0.215 * (pair % 2), 0.5 - 0.49 * (pair // 2)
        clock = bare(dial(figure.add_axes((left, bottom, 0.2, 0.41))))
        moving[f"before {pair}"], moving[f"after {pair}"] = (
            hand(clock, GREY, linestyle="--"),
            hand(clock, POSITION),
        )
        (moving[f"turn {pair}"],) = clock.plot([], [], color=ADDED, linewidth=1.5)
        moving[f"angle {pair}"] = clock.set_title(" ")
    panel = figure.add_axes((0.53, 0.03, 0.42, 0.86))
    look = {"cmap": SIGNED, "vmin": -1, "vmax": 1, "edgecolor": "0.9", "linewidth": 0.5}
    mesh = moving["matrix"] = panel.pcolormesh(torch.zeros(width, width).numpy(), **look)
    panel.set(ylim=(width, 0), xticks=[], yticks=[], title="S")
    entries = {
        (row, column): panel.text(column + 0.5, row + 0.5, "", ha="center", va="center")
        for row in range(width)
        for column in (row - row % 2, row - row % 2 + 1)
    }
    moving |= {f"S[{row}, {column}]": text for (row, column), text in entries.items()}

    def update(position: int, offset: int) -> None:
        matrix = shift_matrix(offset, width, base=base)
        mesh.set_array(matrix.numpy())
        for place, text in entries.items():
            text.set(text=signed(matrix[place]), color="white" if abs(matrix[place]) > 0.6 else "black")
        before = sinusoidal(torch.tensor(position), width, base=base, dtype=torch.float64)
        hands = zip(before.view(-1, 2), (matrix @ before).view(-1, 2), speeds.tolist())
        for pair, (old, new, speed) in enumerate(hands):
            moving[f"before {pair}"].set_data([0, old[1]], [0, old[0]])
            moving[f"after {pair}"].set_data([0, new[1]], [0, new[0]])
            way = torch.linspace(position, position + offset, 200) * speed
            radius = torch.linspace(0.35, 0.6, 200)
            moving[f"turn {pair}"].set_data(radius * way.cos(), radius * way.sin())
            moving[f"angle {pair}"].set_text(f"pair {pair}: {signed(offset * speed)} radians")

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
    figure = blank(3.6)

    matrix = figure.add_axes((0.07, 0.14, 0.33, 0.74))
    moving = {"matrix": matrix.pcolormesh([[0.0] * shown] * shown, cmap=SIGNED, vmin=-1, vmax=1)}
    matrix.set(xlim=(0, shown), ylim=(shown, 0))
    for axis in (matrix.xaxis, matrix.yaxis):
        axis.set_ticks([0.5, 20.5, 40.5, 60.5], ["0", "20", "40", "60"])
    matrix.set_xlabel("position n")
    matrix.set_ylabel("position m")
    matrix.set_title("similarity of PE(m) and PE(n)")
    (moving["diagonal"],) = matrix.plot([], [], color="black", linewidth=1.5)
    figure.colorbar(moving["matrix"], cax=figure.add_axes((0.41, 0.14, 0.013, 0.74)), ticks=[-1, 0, 1])

    panel = figure.add_axes((0.53, 0.14, 0.45, 0.74))
    log_axis(panel.xaxis, [1, 10, 100, 500])
    panel.set(xlim=(1, 600), ylim=(0.15, 1.02), yticks=[0.2, 0.4, 0.6, 0.8, 1.0])
    panel.set_xlabel("offset m − n")
    panel.set_ylabel("similarity")
    (moving["falling"],) = panel.plot([], [], color=GREY, linewidth=1.5)
    moving["rising"] = panel.add_collection(LineCollection([], colors="black", linewidths=2.5))
    (moving["now"],) = panel.plot([], [], "o", color=POSITION, markersize=6)
    moving["readout"] = panel.set_title(" ", loc="left")

    def update(offset: int, sines_only: bool) -> None:
        drawn = grams[sines_only][:shown, :shown].where(apart <= offset, torch.nan)
        moving["matrix"].set_array(drawn.numpy())
        inside = min(offset, shown)
        moving["diagonal"].set_data([0, shown - inside], [inside, shown])
        moving["falling"].set_data(range(1, offset + 1), curve[1 : offset + 1])
        steps = [k for k in range(1, offset) if curve[k + 1] > curve[k]]
        moving["rising"].set_segments([[(k, curve[k]), (k + 1, curve[k + 1])] for k in steps])
        moving["now"].set_data([offset], [curve[offset]])
        rises = f"steps that rise so far: {len(steps)}"
        moving["readout"].set_text(f"offset {offset}: {curve[offset]:.3f}; {rises}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "offset": slider("offset m − n", 1, length - 1, unit="positions", value=6),
            "sines_only": switch("left: sines only"),
        },
        alt=f"Left, the similarities of {shown} positions with each other as a heat map, up to the chosen offset, whose "
        "diagonal is marked. Right, the similarity against the offset, drawn as far; steps that rise are black.",
    )
