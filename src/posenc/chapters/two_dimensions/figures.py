"""What chapter 6 draws: a picture and what is near in it, where heads look, what an axial head can say, M-RoPE, stripes."""

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D
from torch import Tensor

from posenc.axes import directed, grid, mixed, raster, section_axes, text_and_images
from posenc.chapters.two_dimensions.picture import KINDS, SIDE, drawn, scene
from posenc.lesson.controls import choice, slider
from posenc.lesson.drawing import bare, blank, hand, signed
from posenc.lesson.live import Live, canvas, still
from posenc.lesson.palette import ADDED, GREY, KEY, MAGNITUDE, POSITION, QUERY, SIGNED, TURNED
from posenc.rotary import angles

PAIRS, BASE = 8, 10.0  # of the head whose similarities are drawn
AXES = {"time": "#222222", "row": POSITION, "column": "#882255"}  # the coordinates of M-RoPE
UP_AND_RIGHT = (-1, 2)  # the patch that is asked for


def fan(pairs: int = PAIRS, *, base: float = BASE) -> Tensor:
    """Steps for `mixed`: every pair in a direction of its own, spread over half a turn, at the speeds of `axial`."""
    speeds = angles(torch.tensor(1), pairs, base=base).repeat(2)  # each of the speeds twice, as for two axes
    directions = math.pi * (torch.arange(pairs, dtype=torch.float64) + 0.5) / pairs
    return directed(directions, speeds)


def similarity(theta: Tensor, chosen: int) -> Tensor:
    """How well one vector at the chosen place matches itself at every other, 1 at the place itself, (T,)."""
    return (theta - theta[chosen]).cos().mean(-1)


def _patches(panel: Axes, rows: int, columns: int) -> tuple[float, float, float, float]:
    """Axes on which patch (r, c) is the square around x = c and y = r. Returns the extent of a picture there."""
    panel.set(xticks=range(0, columns, 2), yticks=range(0, rows, 2))
    panel.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), aspect="equal")
    panel.tick_params(length=2, pad=1)
    panel.set_xlabel("column", labelpad=1)
    panel.set_ylabel("row", labelpad=1)
    return -0.5, columns - 0.5, rows - 0.5, -0.5


def _show_picture(panel: Axes) -> None:
    """The picture with the borders of its patches."""
    kinds = scene()
    panel.imshow(drawn(kinds), extent=_patches(panel, *kinds.shape), interpolation="nearest")
    for column in range(1, kinds.shape[1]):
        panel.axvline(column - 0.5, color="white", linewidth=0.5)
    for row in range(1, len(kinds)):
        panel.axhline(row - 0.5, color="white", linewidth=0.5)


def _cover(panel: Axes) -> AxesImage:
    """What `_dark` makes of a picture is laid over it."""
    rows, columns = scene().shape
    extent = (-0.5, columns - 0.5, rows - 0.5, -0.5)
    return panel.imshow(np.zeros((rows, columns, 4)), extent=extent, interpolation="nearest")


def _frame(panel: Axes, colour: str) -> Rectangle:
    """A frame around a patch, for `_put`."""
    return panel.add_patch(Rectangle((0, 0), 1, 1, fill=False, edgecolor=colour, linewidth=2.5))


def _put(frame: Rectangle, row: int, column: int) -> None:
    frame.set_xy((column - 0.5, row - 0.5))


def near() -> Live:
    """The picture, and how similar each patch is to the chosen one where a head knows only the count of the patches."""
    rows, columns = scene().shape
    places = grid(rows, columns)
    theta = angles(raster(places, columns), 2 * PAIRS, base=BASE**2)
    figure = blank(3.1)
    picture = figure.add_axes((0.05, 0.13, 0.43, 0.78))
    _show_picture(picture)
    panel = figure.add_axes((0.51, 0.13, 0.43, 0.78))
    extent = _patches(panel, rows, columns)
    panel.set_ylabel("")
    seen = panel.imshow(np.zeros((rows, columns)), cmap=SIGNED, vmin=-1, vmax=1, extent=extent)
    figure.colorbar(seen, cax=figure.add_axes((0.95, 0.18, 0.01, 0.68)), ticks=[-1, 0, 1])
    moving = {"seen": seen, "chosen": _frame(picture, QUERY), "on the map": _frame(panel, QUERY)}
    (moving["nearest"],) = panel.plot([], [], "o", color="white", markeredgecolor="black", markersize=6)
    moving["number"], moving["title"] = picture.set_title(" "), panel.set_title(" ")

    def update(row: int, column: int) -> None:
        chosen = row * columns + column
        alike = similarity(theta, chosen)
        seen.set_data(alike.view(rows, columns).numpy())
        alike[chosen] = -2
        best = places[alike > alike.max() - 1e-9]
        moving["nearest"].set_data(best[:, 1].numpy(), best[:, 0].numpy())
        _put(moving["chosen"], row, column)
        _put(moving["on the map"], row, column)
        moving["number"].set_text(f"patch ({row}, {column}): number {chosen} in the count")
        moving["title"].set_text(f"similarity; the nearest, ○, have {alike.max():.2f}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "row": slider("row", 0, rows - 1, value=3),
            "column": slider("column", 0, columns - 1, value=5),
        },
        alt="Left, a picture of a house, a tree and hills, cut into 8 rows of 12 patches, with a frame around the "
        "chosen one. Right, how similar each patch is to it for a head that knows only how many patches came before: "
        "white dots mark the most similar ones.",
    )


def where_they_look(heads: Mapping[str, Mapping[int, tuple[Tensor, Tensor]]]) -> Live:
    """Where heads look from one patch of the picture, as light on it, and what their models name.

    Args:
        heads: name → width of the picture, from 8 to 12 → the weights of every patch on every other, (T, T), and the
            kinds that the model names, (T,); T is 8 times the width.
    """
    kinds = scene()
    rows = len(kinds)
    widths = [*next(iter(heads.values()))]
    high = (len(heads) + 2) // 2  # rows of panels
    figure = blank(3.1 * high)
    panels = []
    for index in range(1 + len(heads)):
        left, bottom = 0.05 + 0.5 * (index % 2), 1 - (index // 2 + 0.87) / high
        panels.append(figure.add_axes((left, bottom, 0.43, 0.78 / high)))
        _show_picture(panels[-1])
    moving = {"title": panels[0].set_title(" ")}
    moving["asks"], moving["asked for"] = _frame(panels[0], QUERY), _frame(panels[0], KEY)
    moving["beside"] = _cover(panels[0])
    for name, panel in zip(heads, panels[1:]):
        moving[name] = _cover(panel)
        moving[f"{name}, asks"], moving[f"{name}, asked for"] = _frame(panel, QUERY), _frame(panel, KEY)
        moving[f"{name}, title"] = panel.set_title(" ")

    def update(row: int, column: int, width: int = widths[-1]) -> None:
        _put(moving["asks"], row, column)
        there = row + UP_AND_RIGHT[0], column + UP_AND_RIGHT[1]
        _put(moving["asked for"], *there)
        moving["beside"].set_data(_dark(torch.zeros(rows, width), 0.0))
        moving["title"].set_text(f"({row}, {column}) is to name {there}: {KINDS[kinds[there]]}")
        for name, looked in heads.items():
            weights, named = looked[width]
            asks = row * width + column
            at = divmod(int(weights[asks].argmax()), width)
            moving[name].set_data(_dark(weights[asks].view(rows, width), 0.85))
            _put(moving[f"{name}, asks"], row, column)
            _put(moving[f"{name}, asked for"], *there)
            share, kind = weights[asks].max(), KINDS[named[asks]]
            moving[f"{name}, title"].set_text(f"{name}: {share:.2f} on {at}, names {kind}")

    controls = {}
    if len(widths) > 1:
        controls["width"] = slider("width", min(widths), max(widths), unit="patches", value=widths[0])
    controls["row"] = slider("row", 1, rows - 1, value=4, stops=[1, 3, 4, 5, 7])
    controls["column"] = slider("column", 0, min(widths) - 3, value=3, stops=[0, 2, 3, min(widths) - 3])
    return Live(
        figure,
        update,
        moving=moving,
        controls=controls,
        alt="The picture, with a frame around the patch that asks and another around the one above it, two to the "
        f"right. Beside it the same picture, dark but where a head looks: {', '.join(heads)}.",
    )


def _dark(weights: Tensor, most: float) -> np.ndarray:
    """A cover for the picture, (8, 12, 4): black where nothing is looked at, white beyond the width."""
    rows, columns = scene().shape
    cover = np.ones((rows, columns, 4))
    cover[:, : weights.shape[1], :3] = 0
    cover[:, : weights.shape[1], 3] = most * (1 - weights.numpy() / max(weights.max().item(), 1e-9))
    return cover


def two_wishes() -> Live:
    """Two patches that a head is to look at, and each row's share of that weight times each column's."""
    reach, first = 4, UP_AND_RIGHT
    size = 2 * reach + 1
    extent = (-reach - 0.5, reach + 0.5, reach + 0.5, -reach - 0.5)
    figure = blank(3.6)
    moving = {}
    for name, left in (("wanted", 0.07), ("axial", 0.54)):
        panel = figure.add_axes((left, 0.13, 0.33, 0.33 * 8 / 3.6))
        panel.set(aspect="equal", xticks=range(-4, 5, 2), yticks=range(-4, 5, 2), xlabel="columns to the right")
        panel.set_ylabel("rows down", labelpad=1)
        moving[name] = panel.imshow(np.zeros((size, size)), cmap=MAGNITUDE, vmin=0, vmax=1, extent=extent)
        for corner in range(4):
            moving[f"{name}, corner {corner}"] = panel.text(0, 0, " ", ha="center", va="center")
        square = {"color": "white", "markersize": 10, "fillstyle": "none", "markeredgewidth": 2}
        (moving[f"{name}, asks"],) = panel.plot([0], [0], "s", **square)
        moving[f"{name}, title"] = figure.text(left, 0.985, " ", va="top")
    above, beside = (0.54, 0.885, 0.33, 0.04), (0.88, 0.13, 0.018, 0.33 * 8 / 3.6)
    for name, place, shape in (("columns", above, (1, size)), ("rows", beside, (size, 1))):
        bar = figure.add_axes(place, xticks=[], yticks=[])
        moving[name] = bar.imshow(np.zeros(shape), cmap=MAGNITUDE, vmin=0, vmax=1, aspect="auto")

    def update(row: int, column: int) -> None:
        wanted = torch.zeros(size, size)
        for at in (first, (row, column)):
            wanted[reach + at[0], reach + at[1]] += 0.5
        by_row, by_column = wanted.sum(1), wanted.sum(0)
        product = by_row[:, None] * by_column
        for name, weights in (("wanted", wanted), ("axial", product)):
            moving[name].set_data((weights / weights.max()).numpy())
            corners = {*itertools.product((first[0], row), (first[1], column))}  # 4, 2 or 1
            for corner, (r, c) in itertools.zip_longest(range(4), sorted(corners), fillvalue=first):
                share = weights[reach + r, reach + c].item() if corner < len(corners) else 0
                words = f"{share:.2f}".removeprefix("0") if share else " "
                moving[f"{name}, corner {corner}"].set(x=c, y=r, text=words)
        moving["rows"].set_data((by_row / by_row.max())[:, None].numpy())
        moving["columns"].set_data((by_column / by_column.max())[None].numpy())
        second = "alone" if (row, column) == first else f"or {_offset(row, column)}"
        moving["wanted, title"].set_text(f"wanted: {_offset(*first)} {second}")
        kept = product[wanted > 0].sum()
        moving["axial, title"].set_text(f"row's share × column's share: {kept:.2f} on what was wanted")

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "row": slider("second: rows down", -reach, reach, value=first[0]),
            "column": slider("second: columns right", -reach, reach, value=first[1]),
        },
        alt="Left, the patches around the one that asks, a white square in the middle, with the weight that a head is "
        "to give them: one half each on two patches. Right, each row's share of that weight, in the strip on the "
        "right, times each column's, in the strip above: as much as an axial head can put on the two.",
    )


def _offset(row: int, column: int) -> str:
    return f"({row:+d}, {column:+d})".replace("-", "−").replace("+0", "0")


def stripes() -> Live:
    """What one pair sees of a grid, for the direction in which it turns: stripes across that direction."""
    reach = 8
    offsets = grid(2 * reach + 1, 2 * reach + 1, start=(-reach, -reach))
    figure = blank(3.5)
    panel = figure.add_axes((0.06, 0.14, 0.42, 0.75))
    panel.set(xlabel="columns to the right", aspect="equal", xticks=range(-8, 9, 4), yticks=range(-8, 9, 4))
    panel.set_ylabel("rows down", labelpad=1)
    extent = (-reach - 0.5, reach + 0.5, reach + 0.5, -reach - 0.5)
    picture = panel.imshow(np.zeros((17, 17)), cmap=SIGNED, vmin=-1, vmax=1, extent=extent)
    along = hand(panel, "black", linewidth=2, markersize=5)
    figure.colorbar(picture, cax=figure.add_axes((0.475, 0.2, 0.012, 0.63)), ticks=[-1, 0, 1])
    title = panel.set_title(" ")

    plane = figure.add_axes((0.62, 0.14, 0.35, 0.75))
    plane.set(xlim=(-2.4, 2.4), ylim=(2.4, -2.4), aspect="equal", xticks=range(-2, 3), yticks=range(-2, 3))
    plane.set_xlabel("radians a column")
    plane.set_ylabel("radians a row", labelpad=1)
    plane.axhline(0, color=ADDED, linewidth=2)
    plane.axvline(0, color=ADDED, linewidth=2)
    plane.text(2.3, -0.12, "axial", color="#8A6000", ha="right", va="bottom")
    step = hand(plane, TURNED, markersize=7)
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
        readout.set_text(f"{signed(row)} a row, {signed(column)} a column")

    return Live(
        figure,
        update,
        moving={"picture": picture, "along": along, "step": step, "title": title, "readout": readout},
        controls={
            # The question before it asks for 0°, 45°, 90° or 135°.
            "degrees": slider("direction", 0, 180, unit="degrees", value=30, step=5, stops=range(0, 181, 15)),
            "wavelength": slider("wavelength", 3, 8, unit="patches", value=6, stops=[3, 4, 6, 8]),
        },
        alt="Left, the cosine of the angle by which one pair turns from the middle to every patch around it: straight "
        "stripes, across the pair's direction. Right, the same pair as a point: its radians a column and a row. Axial "
        "pairs lie on one of the two axes, and their stripes are level or upright.",
    )


def token_strip() -> Live:
    """A text, an image and a text as one strip of tokens, and below each token its three coordinates."""
    words, answer = ("It", "shows", "this", ":"), ("a", "red", "roof", ".")
    most, house = (3, 5), scene()[4:7, 1:6]
    longest = len(words) + most[0] * most[1] + len(answer)
    figure = blank(2.5)
    panel = figure.add_axes((0.075, 0.02, 0.92, 0.84))
    moving = {"title": bare(panel).set_title(" ")}
    for line, (name, colour) in enumerate((*AXES.items(), ("place", GREY)), start=1):
        panel.text(-0.8, line, name, color=colour, ha="right", va="center")
        moving[name] = _numbers(panel, colour)
    extent = (-0.5, longest - 0.5, 0.35, -0.65)
    moving["tiles"] = panel.imshow(np.ones((SIDE, SIDE, 3)), extent=extent, aspect="auto")
    panel.set(xlim=(-0.6, longest - 0.4), ylim=(4.6, -1.6))
    for number in range(len(words) + len(answer)):
        moving[f"word {number}"] = panel.text(0, 0.3, " ", rotation=90, ha="center", va="bottom")

    def update(before: int, rows: int, columns: int) -> None:
        places = text_and_images(before, (rows, columns), len(answer))
        on = before + rows * columns
        strip = np.ones((SIDE, SIDE * longest, 3))
        for patch, kind in enumerate(house[:rows, :columns].flatten(), start=before):
            strip[:, SIDE * patch + 1 : SIDE * (patch + 1)] = drawn(kind.view(1, 1))[:, 1:]
        moving["tiles"].set_data(strip)
        for number, word in enumerate((*words, *answer)):
            first = number < len(words)  # of the two texts; a short one loses its first words
            x = number - len(words) + (before if first else on)
            moving[f"word {number}"].set(x=x, text=word if number >= len(words) - before else " ")
        for line, name in enumerate((*AXES, "place"), start=1):
            shown = range(len(places)) if name == "place" else places[:, line - 1].tolist()
            moving[name].set_paths([_number(each) for each in shown])
            moving[name].set_offsets([(token, line) for token in range(len(places))])
        moving["title"].set_text(f"the text goes on at {places[on, 0]}, in place {on}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "before": slider("text before", 0, len(words), unit="tokens", value=4),
            "rows": slider("rows of the image", 1, most[0], value=2),
            "columns": slider("columns of the image", 1, most[1], value=2),
        },
        alt="A strip of tokens, words, the patches of an image, and words. Below each stand its time, row and column, "
        "and its place in the sequence. In text the three are equal; in the image the time stands still.",
    )


def _numbers(panel: Axes, colour: str) -> PathCollection:
    """Room for many numbers, which are drawn as one artist: as texts they would take too long to follow a slider."""
    points = Affine2D().scale(panel.figure.dpi / 72)
    numbers = PathCollection([], facecolors=colour, linewidths=0, offset_transform=panel.transData)
    numbers.set_transform(points)
    return panel.add_collection(numbers, autolim=False)


@cache
def _number(number: int) -> Path:
    """The outline of a number, in points, around (0, 0)."""
    outline = TextPath((0, 0), str(number), size=9)
    return outline.transformed(Affine2D().translate(*-outline.get_extents().get_points().mean(axis=0)))


def dealt_pairs() -> Live:
    """Which of 64 pairs reads time, rows and columns in two models, above the wavelengths of the pairs."""
    models = {
        "one coordinate": ([64, 0, 0], False, 1e6),
        "blocks (Qwen2-VL)": ([16, 24, 24], False, 1e6),
        "interleaved (Qwen3-VL)": ([24, 20, 20], True, 5e6),
    }
    pairs = 64
    colours = list(AXES.values())
    figure = blank(3.6)
    strip = figure.add_axes((0.09, 0.74, 0.89, 0.1))
    bare(strip).set(xlim=(-0.5, pairs - 0.5), ylim=(0, 1))
    panel = figure.add_axes((0.09, 0.14, 0.89, 0.57))
    panel.set_yscale("log")
    panel.set(xlim=(-0.5, pairs - 0.5), ylim=(3, 1e8), yticks=[10, 1e3, 1e5, 1e7])
    panel.minorticks_off()
    panel.set_xlabel("pair i")
    panel.set_ylabel("wavelength", labelpad=1)
    moving = {"title": strip.set_title(" ")}
    moving["limit"] = panel.axhline(24, color=GREY, linewidth=1, linestyle="--")
    moving["limit's name"] = panel.text(pairs - 1, 24, " ", color=GREY, ha="right", va="bottom")
    for pair in range(pairs):
        moving[f"pair {pair}"] = strip.add_patch(Rectangle((pair - 0.42, 0), 0.84, 1))
    for (name, colour), mark in zip(AXES.items(), "s^o"):
        (moving[name],) = panel.plot([], [], mark, color=colour, markersize=5, label=name)
    panel.legend(loc="upper left", frameon=False, ncols=3)

    def update(order: str, columns: int) -> None:
        sizes, interleaved, base = models[order]
        axes = section_axes(sizes, interleaved=interleaved)
        speeds = angles(torch.tensor(1), 2 * pairs, base=base)
        wavelengths = 2 * math.pi / speeds
        for pair, axis in enumerate(axes.tolist()):
            moving[f"pair {pair}"].set_facecolor(colours[axis])
        for axis, name in enumerate(AXES):
            mine = axes == axis
            moving[name].set_data(torch.arange(pairs)[mine], wavelengths[mine])
        moving["limit"].set_ydata([columns, columns])
        moving["limit's name"].set(y=1.15 * columns, text=f"{columns} columns")
        title = "all 64 pairs turn with the one coordinate that there is"
        if (axes == 2).any():
            turned = math.degrees(columns * speeds[axes == 2].max().item())
            by = f"{turned:.0f}°" if turned > 10 else f"{turned:.2f}°"
            title = f"{columns} columns to the right turn the fastest of the columns' pairs by {by}"
        moving["title"].set_text(title)

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "order": choice("order", list(models)),
            "columns": slider("picture", 4, 64, unit="columns", value=24, stops=[4, 24, 64]),
        },
        alt="Above, a strip of 64 squares, one a pair, coloured by the coordinate that the pair turns with: time, row "
        "or column. Below, the wavelength of each pair on a logarithmic axis, and a dashed line at the width of a "
        "picture.",
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
        panel.plot(x, y, "os^D"[index], color=colour, mfc=face, markersize=7, alpha=0.8, label=name)
    for column in range(1, len(right)):
        panel.axvline(column - 0.5, color="#DDDDDD", linewidth=0.8)
    figure.legend(loc="outside upper center", ncols=len(series) + 1, frameon=False)
    return still(
        figure,
        alt=f"Share of right answers, one dot a seed: {', '.join(right)}; {', '.join(series)}. "
        f"A dashed line marks chance, {chance:.2f}.",
    )
