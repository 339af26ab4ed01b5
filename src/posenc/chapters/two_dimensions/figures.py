"""What chapter 6 draws: what each encoding takes for near, a pair's stripes, an image in a text, shares of answers."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from posenc.axes import axial, decoding_delta, directed, grid, mixed, raster, text_and_images
from posenc.lesson.controls import slider
from posenc.lesson.live import Live, canvas
from posenc.lesson.palette import ADDED, GREY, POSITION, SIGNED, TURNED
from posenc.rotary import angles

PAIRS, BASE = 8, 10.0  # of the head whose similarities are drawn
DARK = "#882255"


def fan(pairs: int = PAIRS, *, base: float = BASE) -> Tensor:
    """Steps for `mixed`: every pair in a direction of its own, spread over half a turn, at the speeds of `axial`."""
    speeds = angles(torch.tensor(1), pairs, base=base).repeat(2)  # each of the speeds twice, as for two axes
    directions = math.pi * (torch.arange(pairs, dtype=torch.float64) + 0.5) / pairs
    return directed(directions, speeds)


def similarity(theta: Tensor, chosen: int) -> Tensor:
    """How well one vector at the chosen place matches itself at every other, 1 at the place itself, (T,)."""
    return (theta - theta[chosen]).cos().mean(-1)


def neighbourhoods() -> Live:
    """The similarity of one patch to all others, where a head counts row by row, and with axial and mixed angles."""
    rows, widest = 8, 12
    names = ("counted row by row", "axial", "mixed")
    figure = canvas(8, 2.75)
    figure.set_layout_engine("none")
    moving = {}
    for index, name in enumerate(names):
        panel = figure.add_axes((0.05 + 0.295 * index, 0.15, 0.275, 0.74))
        panel.set(xlim=(-0.5, widest - 0.5), ylim=(rows - 0.5, -0.5), aspect="equal")
        panel.set(xticks=range(0, widest, 3), yticks=range(0, rows, 2) if not index else [])
        panel.set_xlabel("column")
        if not index:
            panel.set_ylabel("row", labelpad=1)
        moving[name] = panel.imshow(
            np.zeros((rows, widest)),
            cmap=SIGNED,
            vmin=-1,
            vmax=1,
            extent=(-0.5, widest - 0.5, rows - 0.5, -0.5),
        )
        (moving[f"{name}, nearest"],) = panel.plot(
            [], [], "o", color="white", markeredgecolor="black", markersize=6
        )
        (moving[f"{name}, chosen"],) = panel.plot(
            [], [], "s", color="white", markersize=8, fillstyle="none", mew=2
        )
        moving[f"{name}, title"] = panel.set_title(" ")
    bar = figure.add_axes((0.945, 0.23, 0.012, 0.56))
    figure.colorbar(moving["axial"], cax=bar, ticks=[-1, 0, 1])
    bar.set_title("similarity", loc="right")

    def update(width: int, row: int, column: int) -> None:
        places, column = grid(rows, width), min(column, width - 1)
        chosen = row * width + column
        ways = {
            names[0]: angles(raster(places, width), 2 * PAIRS, base=BASE**2),
            names[1]: axial(places, 2 * PAIRS, base=BASE),
            names[2]: mixed(places, fan()),
        }
        for name, theta in ways.items():
            near = similarity(theta, chosen)
            picture = np.full((rows, widest), np.nan)
            picture[:, :width] = near.view(rows, width).numpy()
            moving[name].set_data(picture)
            near[chosen] = -2
            best = places[near > near.max() - 1e-9]
            moving[f"{name}, nearest"].set_data(best[:, 1].numpy(), best[:, 0].numpy())
            moving[f"{name}, chosen"].set_data([column], [row])
            moving[f"{name}, title"].set_text(f"{name}: {near.max():.2f} at ○")

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "width": slider("width of a row", 4, widest, unit="patches", value=8, stops=[4, 6, 8, 10, 12]),
            "row": slider("row", 0, rows - 1, value=2, stops=[0, 2, 5]),
            "column": slider("column", 0, widest - 1, value=7, stops=[0, 3, 5, 7, 11]),
        },
        alt="Three maps of a grid of 8 rows, coloured by how similar each patch is to the chosen one, a white square; "
        "white dots are the most similar others. Counted row by row, a patch at the end of a row is nearest to the "
        "one before it and to the first of the next row, at the other end of the picture. Axial and mixed angles find "
        "the patches around it.",
    )


def stripes() -> Live:
    """What one pair sees of a grid, for the direction in which it turns: stripes across that direction."""
    reach = 8
    offsets = grid(2 * reach + 1, 2 * reach + 1, start=(-reach, -reach))
    figure = canvas(8, 3.5)
    figure.set_layout_engine("none")
    panel = figure.add_axes((0.06, 0.14, 0.42, 0.75))
    panel.set(
        xlabel="columns to the right", aspect="equal", xticks=[-8, -4, 0, 4, 8], yticks=[-8, -4, 0, 4, 8]
    )
    panel.set_ylabel("rows down", labelpad=1)
    extent = (-reach - 0.5, reach + 0.5, reach + 0.5, -reach - 0.5)
    picture = panel.imshow(np.zeros((17, 17)), cmap=SIGNED, vmin=-1, vmax=1, extent=extent)
    (along,) = panel.plot([], [], color="black", linewidth=2, marker="o", markevery=[1], markersize=5)
    bar = figure.add_axes((0.475, 0.2, 0.012, 0.63))
    figure.colorbar(picture, cax=bar, ticks=[-1, 0, 1])
    title = panel.set_title(" ")

    plane = figure.add_axes((0.62, 0.14, 0.35, 0.75))
    plane.set(
        xlim=(-2.4, 2.4), ylim=(2.4, -2.4), aspect="equal", xticks=[-2, -1, 0, 1, 2], yticks=[-2, -1, 0, 1, 2]
    )
    plane.set_xlabel("radians a column")
    plane.set_ylabel("radians a row", labelpad=1)
    plane.axhline(0, color=ADDED, linewidth=2)
    plane.axvline(0, color=ADDED, linewidth=2)
    plane.text(2.3, -0.12, "axial", color="#8A6000", ha="right", va="bottom")
    (step,) = plane.plot([], [], color=TURNED, linewidth=2.5, marker="o", markevery=[1], markersize=7)
    readout = plane.set_title(" ")

    def update(degrees: int, wavelength: int) -> None:
        direction = torch.tensor(math.radians(degrees), dtype=torch.float64)
        steps = directed(direction, torch.tensor([2 * math.pi / wavelength], dtype=torch.float64))
        seen = mixed(offsets, steps)[:, 0].cos()
        picture.set_data(seen.view(2 * reach + 1, -1).numpy())
        row, column = steps[0].tolist()
        length = math.hypot(row, column)
        along.set_data([0, wavelength * column / length], [0, wavelength * row / length])
        step.set_data([0, column], [0, row])
        title.set_text(f"the pair at {degrees}°: one stripe every {wavelength} patches")
        readout.set_text(f"{_signed(row)} a row, {_signed(column)} a column")

    return Live(
        figure,
        update,
        moving={"picture": picture, "along": along, "step": step, "title": title, "readout": readout},
        controls={
            "degrees": slider(
                "direction",
                0,
                180,
                unit="degrees",
                value=45,
                step=5,
                stops=range(0, 181, 15),
            ),
            "wavelength": slider("wavelength", 3, 8, unit="patches", value=6, stops=[3, 4, 6, 8]),
        },
        alt="Left, the cosine of the angle by which one pair turns from the middle to every patch around it: straight "
        "stripes, across the pair's direction. Right, the same pair as a point: its radians a column and a row. Axial "
        "pairs lie on one of the two axes, and their stripes are level or upright.",
    )


def image_in_text() -> Live:
    """The three coordinates of every token of a text with an image in it."""
    after, most = 6, 50
    shown = {"time": ("black", "s", "-"), "row": (POSITION, "^", "--"), "column": (DARK, "o", ":")}
    figure = canvas(8, 3.6)
    figure.set_layout_engine("none")
    panel = figure.add_axes((0.075, 0.14, 0.62, 0.74))
    panel.set(xlim=(-1, most), ylim=(-1, 24))
    panel.set_xlabel("place in the sequence")
    panel.set_ylabel("coordinate")
    (counted,) = panel.plot([0, most], [0, most], color=GREY, linewidth=1, label="place = coordinate")
    moving = {}
    for name, (colour, marker, style) in shown.items():
        (moving[name],) = panel.plot(
            [], [], color=colour, marker=marker, linestyle=style, linewidth=1, markersize=4, label=name
        )
    panel.legend(loc="upper left", frameon=False)
    moving["title"] = panel.set_title(" ")

    picture = figure.add_axes((0.735, 0.14, 0.25, 0.74))
    picture.set(xlim=(-0.6, 5.6), ylim=(5.6, -0.6), aspect="equal", xticks=[], yticks=[])
    picture.set_title("row and column of each patch")
    for side in picture.spines.values():
        side.set_visible(False)
    moving["patches"] = picture.scatter([], [], s=640, marker="s", facecolor="white", edgecolor=POSITION)
    for row in range(6):
        for column in range(6):
            moving[f"patch {row} {column}"] = picture.text(
                column, row, " ", ha="center", va="center", fontsize=9
            )

    def update(before: int, rows: int, columns: int) -> None:
        places = text_and_images(before, (rows, columns), after)
        for index, name in enumerate(shown):
            moving[name].set_data(range(len(places)), places[:, index].numpy())
        patches = grid(rows, columns)
        moving["patches"].set_offsets(patches.flip(-1).numpy())
        for row in range(6):
            for column in range(6):
                inside = row < rows and column < columns
                moving[f"patch {row} {column}"].set_text(
                    f"{before + row}\n{before + column}" if inside else " "
                )
        on = places[before + rows * columns, 0]
        moving["title"].set_text(
            f"the text goes on at {on}, in place {before + rows * columns}: delta {str(decoding_delta(places)).replace('-', '−')}"
        )

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "before": slider("text before", 0, 8, unit="tokens", value=4),
            "rows": slider("rows of the image", 1, 6, value=3),
            "columns": slider("columns of the image", 1, 6, value=5),
        },
        alt="Left, time, row and column of every token against its place in the sequence. In text the three lie on one "
        "line. In the image the time stands still, the row climbs in stairs and the column in teeth, and the text "
        "after it goes on one above the highest of them, below the grey line on which place and coordinate are equal. "
        "Right, the patches of the image with their row and column.",
    )


def shares(right: Mapping[str, Sequence[Tensor]], *, series: Mapping[str, str], chance: float) -> Live:
    """The share of right answers of every seed as a dot, one column a name, with several series beside each other.

    Args:
        right: name → for each series one share a seed, (seeds,).
        series: what stands beside each other → the colour of its family. Members of a family differ by their marks.
        chance: the share that guessing gets.
    """
    figure = canvas(8, 2.9)
    panel = figure.subplots()
    panel.set(xlim=(-0.5, len(right) - 0.5), ylim=(-0.04, 1.06), ylabel="share right")
    panel.set_xticks(range(len(right)), list(right))
    panel.axhline(chance, color=GREY, linewidth=1, linestyle="--", label=f"chance, {chance:.2f}")
    for index, (name, colour) in enumerate(series.items()):
        shift = 0.7 * (index - (len(series) - 1) / 2) / len(series)
        x = [column + shift for column, row in enumerate(right.values()) for _ in row[index]]
        y = [share for row in right.values() for share in row[index].tolist()]
        face = "white" if colour in list(series.values())[:index] else colour
        mark = {"marker": "os^D"[index], "markerfacecolor": face, "linestyle": "none"}
        panel.plot(x, y, color=colour, markersize=7, alpha=0.8, label=name, **mark)
    for column in range(1, len(right)):
        panel.axvline(column - 0.5, color="#DDDDDD", linewidth=0.8)
    figure.legend(loc="outside upper center", ncols=len(series) + 1, frameon=False)
    return Live(
        figure,
        lambda: None,
        moving={},
        controls={},
        alt=f"Share of right answers, one dot a seed: {', '.join(right)}; {', '.join(series)}. "
        f"A dashed line marks chance, {chance:.2f}.",
    )


def _signed(number: float) -> str:
    """With a true minus, and no negative zero."""
    return f"{number + 0.0 if abs(number) >= 0.005 else 0.0:.2f}".replace("-", "−")
