"""The four terms of a product of two sums, and of a sentence."""

from collections.abc import Sequence

import matplotlib
import torch
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.patches import Rectangle
from torch import Tensor

from posenc.additive import sinusoidal
from posenc.lesson.controls import sentence_box, slider, switch
from posenc.lesson.drawing import bare, blank
from posenc.lesson.live import Live
from posenc.lesson.palette import CONTENT, KEY, MAGNITUDE, POSITION, QUERY, SIGNED, SKY, VALUE
from posenc.terms import FourTerms, centre, four_terms, shares
from posenc.text import ROOM, read, short, word_vectors

WIDTH, HEAD = 64, 16  # of the word vectors, and of the one head

NAMES = FourTerms("content → content", "content → position", "position → content", "position → position")

COLOURS = FourTerms(CONTENT, SKY, VALUE, POSITION)


def weights() -> tuple[Tensor, Tensor]:
    """Random W_query and W_key of one head, each (HEAD, WIDTH), the same every time."""
    generator = torch.Generator().manual_seed(0)
    w_query, w_key = torch.randn(2, HEAD, WIDTH, generator=generator, dtype=torch.float64) / WIDTH**0.5
    return w_query, w_key


def _fill(mesh: QuadMesh, matrix: Tensor) -> None:
    """Draw a matrix of the words' size in the corner of a mesh that has room for more words."""
    room = torch.full((ROOM, ROOM), torch.nan, dtype=matrix.dtype)
    room[: len(matrix), : len(matrix)] = matrix
    mesh.set_array(room.numpy())


def _name_ticks(tokens: list[str], panels: Sequence[Axes], left: Sequence[Axes], low: Sequence[Axes]) -> None:
    """Show the part of the panels that the tokens fill, with their names left of some and below some."""
    middles, names = [n + 0.5 for n in range(len(tokens))], [short(token, 8) for token in tokens]
    for axes in panels:
        axes.set(xlim=(0, len(tokens)), ylim=(len(tokens), 0))
    for axes in left:
        axes.set_yticks(middles, names)
    for axes in low:
        axes.set_xticks(middles, names, rotation=90)


def rectangle() -> Live:
    """(x + e)(x′ + e′) as the area of a rectangle that is cut in four."""
    most = 4
    figure = blank(3.5)
    field = figure.add_axes((0.02, 0.02, 0.56, 0.96))
    field.set(xlim=(-2.2, 2 * most + 0.3), ylim=(2 * most + 0.2, -1.3))
    field.text(most, -0.95, "the token that is asked (key)", color=KEY, ha="center")
    field.text(-2.0, most, "the token that asks (query)", color=QUERY, rotation=90, ha="center", va="center")
    beside = figure.add_axes((0.6, 0.02, 0.39, 0.96))
    beside.set(xlim=(0, 1), ylim=(0, 1))
    for axes in (field, beside):
        bare(axes)
    moving = {}
    for row, (name, title) in enumerate(NAMES._asdict().items()):
        colour = COLOURS[row]
        part = Rectangle((0, 0), 0, 0, facecolor=colour, edgecolor="white", linewidth=2)
        moving[name] = field.add_patch(part)
        moving[f"{name}, area"] = field.text(0, 0, " ", color="black", ha="center", va="center")
        beside.add_patch(Rectangle((0.02, 0.785 - 0.15 * row), 0.045, 0.05, facecolor=colour))
        beside.text(0.11, 0.81 - 0.15 * row, title, va="center")
        moving[f"{name}, product"] = beside.text(0.66, 0.81 - 0.15 * row, " ", va="center")
    for what, colour in (("word", CONTENT), ("place", POSITION)):
        moving[f"{what} that asks"] = field.text(-0.15, 0, " ", color=colour, ha="right", va="center")
        moving[f"{what} asked"] = field.text(0, -0.1, " ", color=colour, ha="center", va="bottom")
    moving["total"] = beside.text(0.02, 0.16, " ", va="center")

    def update(x: int, e: int, x_asked: int, e_asked: int) -> None:
        heights = {"content": (0, x), "position": (x, e)}
        widths = {"content": (0, x_asked), "position": (x_asked, e_asked)}
        areas = []
        for name in NAMES._fields:
            query, key = name.split("_")
            (top, height), (left, width) = heights[query], widths[key]
            moving[name].set_bounds(left, top, width, height)
            areas.append(height * width)
            moving[f"{name}, area"].set(x=left + width / 2, y=top + height / 2, text=str(areas[-1] or " "))
            moving[f"{name}, product"].set_text(f"{height} · {width} = {areas[-1]}")
        for what, start, size in (("word", 0, x), ("place", x, e)):
            moving[f"{what} that asks"].set(y=start + size / 2, text=f"{what}\n{size}" if size else " ")
        for what, start, size in (("word", 0, x_asked), ("place", x_asked, e_asked)):
            moving[f"{what} asked"].set(x=start + size / 2, text=f"{what} {size}" if size else " ")
        sums = f"({x} + {e}) · ({x_asked} + {e_asked}) = "
        moving["total"].set_text(f"{sums}{' + '.join(map(str, areas))} = {sum(areas)}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "x": slider("query's word x", 0, most, value=3, stops=[0, 1, most]),
            "e": slider("query's place e", 0, most, value=2, stops=[0, 4, most]),
            "x_asked": slider("key's word x′", 0, most, value=4, stops=[0, 2, most]),
            "e_asked": slider("key's place e′", 0, most, value=2, stops=[0, 4, most]),
        },
        alt="A rectangle as high as x + e and as wide as x′ + e′, cut in four: word times word, word times place, place "
        "times word, place times place. Beside it the four areas and their sum, the product of the two sums.",
    )


def four_panels() -> Live:
    """The four terms of a sentence as heat maps on one colour scale, their sum, and its softmax."""
    w_query, w_key = weights()
    signed = matplotlib.colormaps[SIGNED].with_extremes(bad="#dddddd")
    figure = blank(5.4)
    left, bottom, width, height = (0.125, 0.4, 0.675), (0.575, 0.155), 0.235, 0.325
    moving, panels, labels = {}, [], []

    def panel(row: int, column: int, title: str, name: str, ink: str = "black", **colours) -> None:
        axes = figure.add_axes((left[column], bottom[row], width, height))
        moving[name] = axes.pcolormesh([[0] * ROOM] * ROOM, **colours)
        weight = "bold" if ink != "black" else "normal"
        axes.text(0, 1.13, title, transform=axes.transAxes, color=ink, weight=weight)
        moving[f"{name}, readout"] = axes.text(0, 1.03, " ", transform=axes.transAxes, color="#444444")
        frame = {"fill": False, "linewidth": 1.6, "clip_on": False}
        bare(axes).add_patch(Rectangle((0, 0), 1, 1, transform=axes.transAxes, **frame))
        panels.append(axes)

    scores = {"cmap": signed, "vmin": -2.5, "vmax": 2.5}
    for index, (name, title) in enumerate(NAMES._asdict().items()):
        panel(*divmod(index, 2), title, name, COLOURS[index], **scores)
    panel(0, 2, "sum of the four: the score", "sum", **scores)
    panel(1, 2, "weights: softmax of the sum", "weights", cmap=MAGNITUDE, vmin=0, vmax=0.5)
    for row, (name, label) in enumerate({"sum": "score, row mean taken off", "weights": "weight"}.items()):
        bar = figure.colorbar(moving[name], cax=figure.add_axes((0.925, bottom[row], 0.013, height)))
        bar.set_label(label)
    at_the_left, below = (panels[0], panels[2]), (panels[2], panels[3], panels[5])
    for axes in at_the_left:
        axes.text(-0.4, 0.5, "reads (query)", rotation=90, va="center", ha="center", transform=axes.transAxes)
    for axes in below:
        axes.set_xlabel("is read (key)", labelpad=2)

    def update(sentence: str, power: float, **on: bool) -> None:
        tokens = read(sentence, at_least=2)
        content = 10**power * word_vectors(tokens, WIDTH)
        position = sinusoidal(torch.arange(len(tokens)), WIDTH, dtype=content.dtype)
        terms = four_terms(content, position, w_query, w_key)
        visible = torch.ones(len(tokens), len(tokens), dtype=torch.bool)
        for (name, term), share in zip(terms._asdict().items(), shares(terms, visible).tolist()):
            _fill(moving[name], centre(term, visible) if on[name] else torch.full_like(term, torch.nan))
            moving[f"{name}, readout"].set_text(f"share {share:.1%}" if on[name] else "left out")
        total = sum((term for name, term in terms._asdict().items() if on[name]), torch.zeros_like(term))
        _fill(moving["sum"], centre(total, visible))
        _fill(moving["weights"], total.softmax(dim=-1))
        moving["sum, readout"].set_text(f"words std {10**power:.2f}, places 0.71")
        moving["weights, readout"].set_text(f"largest weight {total.softmax(dim=-1).max():.2f}")
        if labels != tokens:
            labels[:] = tokens
            _name_ticks(tokens, panels, at_the_left, below)

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "sentence": sentence_box(),
            "power": slider("std", -2.0, 0.4, unit="power of ten", value=0.0, step=0.1),
            **{name: switch(words, value=True) for name, words in NAMES._asdict().items()},
        },
        relayout=["sentence"],
        alt="Six heat maps, reading words down and words that are read across. Four show the terms of the score, "
        "word with word, word with place, place with word and place with place, each with its share above it; "
        "the fifth their sum on the same colours, the sixth its softmax.",
    )


def unlabelled() -> Live:
    """The four panels of a sentence without their names, in another order."""
    order = dict(zip("ABCD", ("position_content", "content_content", "position_position", "content_position")))
    w_query, w_key = weights()
    signed = matplotlib.colormaps[SIGNED].with_extremes(bad="#dddddd")
    figure = blank(2.5)
    moving, panels, labels = {}, [], []
    for column, letter in enumerate(order):
        axes = figure.add_axes((0.1 + 0.225 * column, 0.27, 0.205, 0.62))
        moving[letter] = axes.pcolormesh([[0] * ROOM] * ROOM, cmap=signed, vmin=-2.5, vmax=2.5)
        moving[f"{letter}, name"] = axes.text(0, 1.05, " ", transform=axes.transAxes)
        panels.append(bare(axes))
    panels[0].text(-0.42, 0.5, "reads", rotation=90, va="center", ha="center", transform=panels[0].transAxes)

    def update(sentence: str, named: bool) -> None:
        tokens = read(sentence, at_least=2)
        x = word_vectors(tokens, WIDTH)
        e = sinusoidal(torch.arange(len(tokens)), WIDTH, dtype=x.dtype)
        terms = four_terms(x, e, w_query, w_key)._asdict()
        visible = torch.ones(len(tokens), len(tokens), dtype=torch.bool)
        for letter, name in order.items():
            _fill(moving[letter], centre(terms[name], visible))
            moving[f"{letter}, name"].set_text(f"{letter}: {getattr(NAMES, name)}" if named else letter)
        if labels != tokens:
            labels[:] = tokens
            _name_ticks(tokens, panels, panels[:1], panels)

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "sentence": sentence_box("to be or not to be"),
            "named": switch("name the panels"),
        },
        relayout=["sentence"],
        alt="Four heat maps, A to D, of one sentence, reading words down and words that are read across: the four terms "
        "of its score, in an order that is not told.",
    )
