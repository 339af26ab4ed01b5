"""What chapter 3 draws: a product of two sums, its four terms in a sentence, what training did, angles and their cost."""

import math
from collections.abc import Mapping

import matplotlib
import torch
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon, Rectangle
from torch import Tensor
from torch.nn.functional import normalize

from posenc.additive import sinusoidal
from posenc.chapters.four_term_expansion.distances import fit_by_distance
from posenc.geometry import principal_angles, random_span, spans_at
from posenc.lesson.controls import choice, sentence_box, slider, switch, text
from posenc.lesson.live import Live, canvas
from posenc.lesson.palette import CONTENT, GREY, KEY, MAGNITUDE, POSITION, QUERY, SIGNED, SKY, VALUE
from posenc.terms import FourTerms, centre, four_terms, matrix_for, shares
from posenc.text import ROOM, read, short, word_vectors

WIDTH, HEAD = 64, 16  # of the word vectors, and of the one head

NAMES = FourTerms("content → content", "content → position", "position → content", "position → position")
COLOURS = FourTerms(CONTENT, SKY, VALUE, POSITION)


def weights() -> tuple[Tensor, Tensor]:
    """Random W_query and W_key of one head, each (HEAD, WIDTH), the same every time."""
    generator = torch.Generator().manual_seed(0)
    w_query, w_key = torch.randn(2, HEAD, WIDTH, generator=generator, dtype=torch.float64) / WIDTH**0.5
    return w_query, w_key


def rectangle() -> Live:
    """(x + e)(x′ + e′) as the area of a rectangle that is cut in four."""
    most = 4
    figure = canvas(8, 3.5)
    figure.set_layout_engine("none")
    field = figure.add_axes((0.02, 0.02, 0.56, 0.96))
    field.set(xlim=(-2.2, 2 * most + 0.3), ylim=(2 * most + 0.2, -1.3))
    field.text(most, -0.95, "the token that is asked (key)", color=KEY, ha="center")
    field.text(-2.0, most, "the token that asks (query)", color=QUERY, rotation=90, ha="center", va="center")
    beside = figure.add_axes((0.6, 0.02, 0.39, 0.96))
    beside.set(xlim=(0, 1), ylim=(0, 1))
    for axes in (field, beside):
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    moving = {}
    for row, (name, title) in enumerate(NAMES._asdict().items()):
        colour = COLOURS[row]
        moving[name] = field.add_patch(
            Rectangle((0, 0), 0, 0, facecolor=colour, edgecolor="white", linewidth=2)
        )
        moving[f"{name}, area"] = field.text(0, 0, " ", color="black", ha="center", va="center")
        beside.add_patch(Rectangle((0.02, 0.785 - 0.15 * row), 0.045, 0.05, facecolor=colour))
        beside.text(0.11, 0.81 - 0.15 * row, title, va="center")
        moving[f"{name}, product"] = beside.text(0.66, 0.81 - 0.15 * row, " ", va="center")
    for name, words, colour in (
        ("word that asks", "word\n{:g}", CONTENT),
        ("place that asks", "place\n{:g}", POSITION),
        ("word asked", "word {:g}", CONTENT),
        ("place asked", "place {:g}", POSITION),
    ):
        beside_it = {"ha": "right", "va": "center"} if "that" in name else {"ha": "center", "va": "bottom"}
        moving[name] = field.text(0, 0, words, color=colour, **beside_it)
    moving["total"] = beside.text(0.02, 0.16, " ", va="center")

    def update(x: int, e: int, x_asked: int, e_asked: int) -> None:
        heights, widths = (
            {"content": (0, x), "position": (x, e)},
            {"content": (0, x_asked), "position": (x_asked, e_asked)},
        )
        areas = []
        for name in NAMES._fields:
            query, key = name.split("_")
            (top, height), (left, width) = heights[query], widths[key]
            moving[name].set_bounds(left, top, width, height)
            moving[f"{name}, area"].set_position((left + width / 2, top + height / 2))
            moving[f"{name}, area"].set_text(str(height * width) if height * width else " ")
            moving[f"{name}, product"].set_text(f"{height} · {width} = {height * width}")
            areas.append(height * width)
        for name, middle, size in (("word that asks", x / 2, x), ("place that asks", x + e / 2, e)):
            moving[name].set_position((-0.15, middle))
            moving[name].set_text(f"{name.split()[0]}\n{size}" if size else " ")
        for name, middle, size in (
            ("word asked", x_asked / 2, x_asked),
            ("place asked", x_asked + e_asked / 2, e_asked),
        ):
            moving[name].set_position((middle, -0.1))
            moving[name].set_text(f"{name.split()[0]} {size}" if size else " ")
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
    figure = canvas(8, 5.4)
    figure.set_layout_engine("none")
    left, bottom, width, height = (0.125, 0.4, 0.675), (0.575, 0.155), 0.235, 0.325
    moving, panels, labels = {}, [], []

    def panel(row: int, column: int, title: str, name: str, ink: str = "black", **colours) -> None:
        axes = figure.add_axes((left[column], bottom[row], width, height))
        moving[name] = axes.pcolormesh([[0] * ROOM] * ROOM, **colours)
        axes.text(
            0, 1.13, title, transform=axes.transAxes, color=ink, weight="bold" if ink != "black" else "normal"
        )
        moving[f"{name}, readout"] = axes.text(0, 1.03, " ", transform=axes.transAxes, color="#444444")
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)  # they would be drawn anew with every move
        axes.add_patch(
            Rectangle((0, 0), 1, 1, transform=axes.transAxes, fill=False, linewidth=1.6, clip_on=False)
        )
        panels.append(axes)

    scores = {"cmap": signed, "vmin": -2.5, "vmax": 2.5}
    for index, (name, title) in enumerate(NAMES._asdict().items()):
        panel(*divmod(index, 2), title, name, COLOURS[index], **scores)
    panel(0, 2, "sum of the four: the score", "sum", **scores)
    panel(1, 2, "weights: softmax of the sum", "weights", cmap=MAGNITUDE, vmin=0, vmax=0.5)
    for row, (name, label) in enumerate({"sum": "score, row mean taken off", "weights": "weight"}.items()):
        bar = figure.colorbar(moving[name], cax=figure.add_axes((0.925, bottom[row], 0.013, height)))
        bar.set_label(label)
    for axes in (panels[0], panels[2]):
        axes.text(-0.4, 0.5, "reads (query)", rotation=90, va="center", ha="center", transform=axes.transAxes)
    for axes in (panels[2], panels[3], panels[5]):
        axes.set_xlabel("is read (key)", labelpad=2)

    def update(sentence: str, power: float, **on: bool) -> None:
        tokens = read(sentence, at_least=2)
        content = 10**power * word_vectors(tokens, WIDTH)
        position = sinusoidal(torch.arange(len(tokens)), WIDTH, dtype=content.dtype)
        terms = four_terms(content, position, w_query, w_key)
        visible = torch.ones(len(tokens), len(tokens), dtype=torch.bool)
        for (name, term), share in zip(terms._asdict().items(), shares(terms, visible).tolist()):
            draw(name, centre(term, visible) if on[name] else torch.full_like(term, torch.nan))
            moving[f"{name}, readout"].set_text(f"share {share:.1%}" if on[name] else "left out")
        total = sum((term for name, term in terms._asdict().items() if on[name]), torch.zeros_like(term))
        draw("sum", centre(total, visible))
        draw("weights", total.softmax(dim=-1))
        moving["sum, readout"].set_text(f"words std {10**power:.2f}, places 0.71")
        moving["weights, readout"].set_text(f"largest weight {total.softmax(dim=-1).max():.2f}")
        if labels != tokens:
            labels[:] = tokens
            for axes in panels:
                axes.set(xlim=(0, len(tokens)), ylim=(len(tokens), 0))
            middles, names = [n + 0.5 for n in range(len(tokens))], [short(token, 8) for token in tokens]
            for axes in (panels[0], panels[2]):
                axes.set_yticks(middles, names)
            for axes in (panels[2], panels[3], panels[5]):
                axes.set_xticks(middles, names, rotation=90)

    def draw(name: str, matrix: Tensor) -> None:
        room = torch.full((ROOM, ROOM), torch.nan, dtype=matrix.dtype)
        room[: len(matrix), : len(matrix)] = matrix
        moving[name].set_array(room.numpy())

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
    order = {
        "A": "position_content",
        "B": "content_content",
        "C": "position_position",
        "D": "content_position",
    }
    w_query, w_key = weights()
    signed = matplotlib.colormaps[SIGNED].with_extremes(bad="#dddddd")
    figure = canvas(8, 2.5)
    figure.set_layout_engine("none")
    moving, panels, labels = {}, [], []
    for column, letter in enumerate(order):
        axes = figure.add_axes((0.1 + 0.225 * column, 0.27, 0.205, 0.62))
        moving[letter] = axes.pcolormesh([[0] * ROOM] * ROOM, cmap=signed, vmin=-2.5, vmax=2.5)
        moving[f"{letter}, name"] = axes.text(0, 1.05, " ", transform=axes.transAxes)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        panels.append(axes)
    panels[0].text(-0.42, 0.5, "reads", rotation=90, va="center", ha="center", transform=panels[0].transAxes)

    def update(sentence: str, named: bool) -> None:
        tokens = read(sentence, at_least=2)
        x = word_vectors(tokens, WIDTH)
        e = sinusoidal(torch.arange(len(tokens)), WIDTH, dtype=x.dtype)
        terms = four_terms(x, e, w_query, w_key)._asdict()
        visible = torch.ones(len(tokens), len(tokens), dtype=torch.bool)
        for letter, name in order.items():
            room = torch.full((ROOM, ROOM), torch.nan, dtype=x.dtype)
            room[: len(tokens), : len(tokens)] = centre(terms[name], visible)
            moving[letter].set_array(room.numpy())
            moving[f"{letter}, name"].set_text(f"{letter}: {getattr(NAMES, name)}" if named else letter)
        if labels != tokens:
            labels[:] = tokens
            middles, names = [n + 0.5 for n in range(len(tokens))], [short(token, 8) for token in tokens]
            for axes in panels:
                axes.set(xlim=(0, len(tokens)), ylim=(len(tokens), 0))
                axes.set_xticks(middles, names, rotation=90)
            panels[0].set_yticks(middles, names)

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "sentence": text(
                "sentence", value="to be or not to be", placeholder="type a sentence and press Enter"
            ),
            "named": switch("name the panels"),
        },
        relayout=["sentence"],
        alt="Four heat maps, A to D, of one sentence, reading words down and words that are read across: the four terms "
        "of its score, in an order that is not told.",
    )


def random_cosines() -> Live:
    """How often random vectors have which cosine, against the width, and the spread against 1/√d."""
    pairs, widest = 1500, 1024
    generator = torch.Generator().manual_seed(5)
    first, second = torch.randn(2, pairs, widest, generator=generator)
    edges = torch.linspace(-1, 1, 121)
    widths = [8, 16, 32, 64, 128, 256, 384, 512, 768, 1024]

    def cosine(width: int) -> Tensor:
        return (normalize(first[:, :width], dim=-1) * normalize(second[:, :width], dim=-1)).sum(-1)

    figure = canvas(8, 3.3)
    histogram, panel = figure.subplots(1, 2, width_ratios=(2, 1))
    histogram.set(xlim=(-1, 1), ylim=(0, 0.25), xticks=[-1, -0.5, 0, 0.5, 1])
    histogram.set_xlabel("cosine of two random vectors")
    histogram.set_ylabel("share of the pairs")
    bars = histogram.stairs(
        torch.zeros(120).numpy(), edges.numpy(), fill=True, color="#b0b0b0", label="measured"
    )
    (expected,) = histogram.plot(
        [], [], color="black", linewidth=1.2, linestyle="--", label="normal, spread 1/√d"
    )
    histogram.legend(loc="upper right", frameon=False)
    readout = histogram.set_title(" ", loc="left")

    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set(xlim=(6, 1500), ylim=(0.02, 0.6))
    panel.set_xticks([8, 64, 384, 768], ["8", "64", "384", "768"])
    panel.set_yticks([0.036, 0.051, 0.125, 0.354], ["0.036", "0.051", "0.125", "0.354"])
    panel.minorticks_off()
    panel.plot(
        widths, [width**-0.5 for width in widths], color="black", linestyle="--", linewidth=1.2, label="1/√d"
    )
    for width in (384, 768):
        panel.plot([width, width, 6], [0.02, width**-0.5, width**-0.5], color=GREY, linewidth=0.7)
    panel.set_xlabel("d (dimensions)")
    panel.set_ylabel("spread of the cosine")
    (spread,) = panel.plot([], [], "o", color="black", markersize=6, label="measured")
    panel.legend(loc="upper right", frameon=False)
    step = (edges[1] - edges[0]).item()
    fine = torch.linspace(-1, 1, 401)

    def update(width: int) -> None:
        values = cosine(width)
        bars.set_data(values.histc(120, -1, 1).numpy() / pairs)
        normal = math.sqrt(width / (2 * math.pi)) * torch.exp(-width * fine.square() / 2)
        expected.set_data(fine.numpy(), (step * normal).numpy())
        spread.set_data([width], [values.std().item()])
        readout.set_text(f"d = {width}: spread {values.std():.4f}, 1/√d = {width**-0.5:.4f}")

    return Live(
        figure,
        update,
        moving={"expected": expected, "bars": bars, "spread": spread, "readout": readout},
        controls={"width": slider("d", 8, widest, unit="dimensions", value=384, step=8)},
        alt=f"Left, a histogram of the cosines of {pairs} pairs of random vectors with a bell curve of spread 1/√d: "
        "narrower for larger d. Right, the spread against d on logarithmic axes, 384 and 768 marked.",
    )


def angle_cost() -> Live:
    """What an angle between contents and positions costs: how large M must be, and how noise grows in the scores."""
    rank = 8
    angles = torch.arange(1, 91, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    wanted = torch.block_diag(*torch.randn(2, rank, rank, generator=generator, dtype=torch.float64))
    noise = torch.randn(2 * rank, WIDTH, generator=generator, dtype=torch.float64) / WIDTH**0.5  # of length 1
    cloud = torch.randn(2, 150, generator=generator, dtype=torch.float64) / 2**0.5
    bases = [spans_at(angle, rank, WIDTH, torch.Generator().manual_seed(1)) for angle in angles.tolist()]
    vectors = [torch.cat(pair) for pair in bases]
    matrices = [matrix_for(stack, wanted) for stack in vectors]
    norms = torch.stack([matrix.norm() for matrix in matrices]) / wanted.norm()
    # The error of noisy scores is a term linear in the noise and one that is quadratic.
    linear = [stack @ m @ noise.T + noise @ m @ stack.T for stack, m in zip(vectors, matrices)]
    square = [noise @ m @ noise.T for m in matrices]

    figure = canvas(8, 3.5)
    plane, panel = figure.subplots(1, 2, width_ratios=(1, 1.15))
    plane.set(xlim=(-0.6, 2.6), ylim=(-0.45, 1.55), xticks=[], yticks=[], aspect="equal")
    plane.set_title("a sum, and the content read off it", loc="left")
    plane.plot([-1, 3], [0, 0], color=CONTENT, linewidth=1.2)
    (line,) = plane.plot([], [], color=POSITION, linewidth=1.2)
    (content,) = plane.plot([], [], color=CONTENT, linewidth=3, label="content", solid_capstyle="round")
    (position,) = plane.plot([], [], color=POSITION, linewidth=3, label="position", solid_capstyle="round")
    (dots,) = plane.plot([], [], ".", color="black", markersize=2.5, label="their sum, with noise")
    (ticks,) = plane.plot([], [], "|", color="black", markersize=9, alpha=0.5, label="content as it is read")
    plane.legend(loc="upper left", frameon=False, ncols=2, columnspacing=1, handlelength=1.4)

    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set(xlim=(1, 90), ylim=(1e-4, 1e4))
    panel.set_xticks([1, 3, 10, 30, 90], ["1", "3", "10", "30", "90"])
    panel.set_yticks([1e-4, 1e-2, 1, 1e2, 1e4], ["0.0001", "0.01", "1", "100", "10,000"])
    panel.minorticks_off()
    panel.set_xlabel("angle between the subspaces (degrees)")
    panel.plot(
        angles.tolist(), norms.tolist(), color="black", label="size of M, as a multiple of that at 90°"
    )
    (error,) = panel.plot([], [], color="black", linestyle="--", label="error of the scores, relative")
    (now,) = panel.plot([], [], "o", color="black", markersize=6)
    panel.legend(loc="upper right", frameon=False)
    readout = panel.set_title(" ", loc="left")

    def update(angle: int, noise: float) -> None:
        level, turned = noise / 100, math.radians(angle)
        errors = (
            torch.stack([(level * a + level**2 * b).norm() for a, b in zip(linear, square)]) / wanted.norm()
        )
        error.set_data(angles.tolist(), errors.tolist())
        size, wrong = norms[angle - 1].item(), errors[angle - 1].item()
        now.set_data([angle, angle], [size, wrong])
        readout.set_text(f"{angle}°: M × {size:,.{int(size < 100)}f}, error {wrong:.2g}")
        x, y = math.cos(turned), math.sin(turned)
        line.set_data([-3 * x, 3 * x], [-3 * y, 3 * y])
        content.set_data([0, 1], [0, 0])
        position.set_data([0, x], [0, y])
        right, up = 1 + x + level * cloud[0], y + level * cloud[1]
        dots.set_data(right.tolist(), up.tolist())
        ticks.set_data((right - up * x / y).tolist(), [0] * len(right))  # along the position's line

    return Live(
        figure,
        update,
        moving={
            "line": line,
            "content": content,
            "position": position,
            "dots": dots,
            "ticks": ticks,
            "error": error,
            "now": now,
            "readout": readout,
        },
        controls={
            "angle": slider("angle", 1, 90, unit="degrees", value=30),
            "noise": slider("noise", 0.0, 10.0, unit="% of a vector", value=3.0, step=0.5),
        },
        alt="Left, a content and a position as two arrows with an angle between them, their sum as a cloud of noisy "
        "dots, and the content that is read off each dot along the position's direction: the smaller the angle, the "
        "wider these readings spread. Right, against the angle on logarithmic axes, the size of the M that keeps both "
        "apart, and the relative error of its scores: both grow as the angle falls.",
    )


def wanted_by_places(own: Tensor, text: str) -> Live:
    """Position → content of trained models on one passage, and what is left of it with the mean place.

    Args:
        own: the term of every seed and head, (seeds, heads, T, T).
        text: the T characters of the passage.
    """
    seeds, heads, length, _ = own.shape
    level = own - own.mean(dim=-1, keepdim=True)  # a number for a row is nothing to the softmax
    maps = {
        "each query with its own place": level,
        "each query with the mean place": level.mean(dim=-2, keepdim=True).expand_as(level),
    }
    visible = torch.ones(length, length, dtype=torch.bool).tril()
    signed = matplotlib.colormaps[SIGNED].with_extremes(bad="white")
    signs = [{" ": "␣", "\n": "↵"}.get(character, character) for character in text]
    figure = canvas(8, 3.9)
    figure.set_layout_engine("none")
    moving = {}
    for column, name in enumerate(maps):
        axes = figure.add_axes((0.065 + 0.445 * column, 0.15, 0.425, 0.77))
        moving[name] = axes.pcolormesh(torch.zeros(length, length).numpy(), cmap=signed, vmin=-1, vmax=1)
        axes.set_ylim(length, 0)
        axes.set_xticks([n + 0.5 for n in range(length)], signs)
        axes.tick_params(length=0)
        axes.set_yticks([m + 0.5 for m in range(0, length, 10)], [str(m) for m in range(0, length, 10)])
        axes.set_xlabel("the character that is read (key)")
        axes.set_title(name, loc="left")
    figure.axes[0].set_ylabel("place that reads (query)")
    figure.axes[1].set_yticks([])
    bar = figure.colorbar(moving[name], cax=figure.add_axes((0.945, 0.15, 0.012, 0.77)), ticks=[-1, 0, 1])
    bar.set_label("beside the largest", labelpad=-4)

    def update(seed: int, head: int) -> None:
        largest = level[seed, head][visible].abs().max()
        for name, terms in maps.items():
            shown = (terms[seed, head] / largest).masked_fill(~visible, torch.nan)
            moving[name].set_array(shown.numpy())

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "seed": slider("seed", 0, seeds - 1, value=min(1, seeds - 1)),
            "head": slider("head", 0, heads - 1, value=min(2, heads - 1)),
        },
        alt="The position-with-content term of one head on a passage of help text, places down and characters across, as "
        "two triangular heat maps: with each query's own place, and with the mean place for all. The same vertical "
        "stripes in both mean that all places want the same characters.",
    )


def position_maps(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> Live:
    """The position-with-position term of models, before and after training, without a number for each row.

    The number of a row is that of `fit_by_distance`, so that a term of the distance alone shows level stripes.

    Args:
        before: variant → its term, (seeds, heads, T, T); drawn for two variants, causal.
        after: the same after training.
    """
    seeds, heads, length, _ = next(iter(before.values())).shape
    visible = torch.ones(length, length, dtype=torch.bool).tril()
    signed = matplotlib.colormaps[SIGNED].with_extremes(bad="white")
    figure = canvas(8, 2.75)
    figure.set_layout_engine("none")
    moving, maps = {}, {}
    level = {
        (name, when): torch.stack([fit_by_distance(heads)[0] for heads in terms])
        for when, all_terms in (("before", before), ("after", after))
        for name, terms in all_terms.items()
    }
    for column, (name, when) in enumerate((name, when) for name in before for when in ("before", "after")):
        axes = figure.add_axes((0.065 + 0.218 * column + 0.012 * (column // 2), 0.16, 0.2, 0.66))
        key = f"{name}, {when}"
        maps[key] = level[name, when]
        moving[key] = axes.pcolormesh(torch.zeros(length, length).numpy(), cmap=signed, vmin=-1, vmax=1)
        axes.set_ylim(length, 0)
        for axis in (axes.xaxis, axes.yaxis):
            ticks = range(0, length, 10)
            labels = [str(n) if not column or axis is axes.xaxis else "" for n in ticks]
            axis.set_ticks([n + 0.5 for n in ticks], labels)
        axes.set_xlabel("key position n")
        axes.text(0, 1.13, key, transform=axes.transAxes)
        moving[f"{key}, readout"] = axes.text(0, 1.03, " ", transform=axes.transAxes)
        if not column:
            axes.set_ylabel("query position m")
    bar = figure.colorbar(moving[key], cax=figure.add_axes((0.945, 0.16, 0.012, 0.66)), ticks=[-1, 0, 1])
    bar.set_label("beside the largest", labelpad=-4)

    def update(seed: int, head: int) -> None:
        for key, terms in maps.items():
            seen = terms[seed, head]
            largest = seen.abs().max().item()
            moving[key].set_array((seen / largest).masked_fill(~visible, torch.nan).numpy())
            moving[f"{key}, readout"].set_text(f"largest {largest:.2f}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={"seed": slider("seed", 0, seeds - 1), "head": slider("head", 0, heads - 1)},
        alt="The position-with-position term of one head as four triangular heat maps, each on its own scale: "
        f"{'; '.join(maps)}. Stripes along the diagonals mean that only the distance counts.",
    )


def subspaces(
    within: Mapping[str, Mapping[int, Tensor]],
    smallest: Mapping[str, Mapping[int, Tensor]],
    sizes: Mapping[str, Mapping[int, Tensor]],
) -> Live:
    """Where contents and positions of models lie, a dot a seed, beside random subspaces of the same sizes.

    Args:
        within: variant → steps → share of the contents' variance in the positions' subspace, (seeds, places), where
            the places are the embedding and what is behind each layer.
        smallest: the same for the smallest angle between the two, in degrees.
        sizes: the same for the dimensions of contents and positions, (seeds, places, 2).
    """
    steps = list(next(iter(within.values())))
    seeds, places = next(iter(within.values()))[steps[0]].shape
    titles = ["at the embedding", *(f"behind layer {layer}" for layer in range(places - 1))]
    figure = canvas(8, 6.8)
    grid = figure.subplots(3, places, sharey="row", sharex=True, squeeze=False)
    moving = {}
    beside = torch.linspace(-0.16, 0.16, seeds).tolist()
    for column, title in enumerate(titles):
        looks = {"contents": (0, CONTENT, "o"), "positions": (0, POSITION, "s")}
        looks |= {name: (row, "black", "o") for row, name in ((1, "within"), (2, "smallest"))}
        for name, (row, colour, marker) in looks.items():
            (moving[f"{name}, {title}"],) = grid[row, column].plot([], [], marker, color=colour, markersize=4)
        for row, name in ((1, "within"), (2, "smallest")):
            (moving[f"{name}, {title}, random"],) = grid[row, column].plot(
                [], [], "_", color=GREY, markersize=20, markeredgewidth=2, zorder=1
            )
        for row, (low, high) in enumerate(((0, 67), (-0.02, 0.8), (0, 95))):
            grid[row, column].set(xlim=(-0.6, len(within) - 0.4), ylim=(low, high))
        grid[0, column].axhline(WIDTH, color=GREY, linewidth=0.7)
        grid[0, column].set_title(title)
        grid[2, column].set_xticks(range(len(within)), list(within), rotation=90)
    labels = [
        "dimensions that hold 95%",
        "contents' variance in\nthe positions' subspace",
        "smallest angle (degrees)",
    ]
    for row, label in enumerate(labels):
        grid[row, 0].set_ylabel(label)
    keys = [("contents", CONTENT, "o"), ("positions", POSITION, "s"), ("both together", "black", "o")]
    handles = [
        Line2D([], [], marker=marker, linestyle="", color=colour, markersize=4, label=label)
        for label, colour, marker in keys
    ]
    handles.append(Line2D([], [], color=GREY, linewidth=2, label="random subspaces of these sizes"))
    figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False)
    expected: dict[tuple, float] = {}

    def random_angle(contents: int, positions: int) -> float:
        """The mean smallest angle of random subspaces, drawn once for each pair of sizes."""
        if (contents, positions) not in expected:
            generator = torch.Generator().manual_seed(0)
            pairs = [[random_span(r, WIDTH, generator) for r in (contents, positions)] for _ in range(12)]
            expected[contents, positions] = sum(principal_angles(*pair)[0].item() for pair in pairs) / 12
        return expected[contents, positions]

    def update(step: int) -> None:
        across = [place + offset for place in range(len(within)) for offset in beside]
        for column, title in enumerate(titles):
            seen = {name: sizes[name][step][:, column] for name in within}
            dots = {
                "contents": [size[:, 0] for size in seen.values()],
                "positions": [size[:, 1] for size in seen.values()],
                "within": [within[name][step][:, column] for name in within],
                "smallest": [smallest[name][step][:, column] for name in within],
            }
            for name, values in dots.items():
                moving[f"{name}, {title}"].set_data(across, torch.cat(values).tolist())
            usual = [size.double().mean(0).round().long().tolist() for size in seen.values()]
            lines = {
                "within": [positions / WIDTH for _, positions in usual],
                "smallest": [random_angle(*both) for both in usual],
            }
            for name, values in lines.items():
                moving[f"{name}, {title}, random"].set_data(range(len(within)), values)

    for step in steps:  # draw all random subspaces now, so that a move need not
        update(step)
    return Live(
        figure,
        update,
        moving=moving,
        controls={"step": choice("steps of training", sorted(steps, reverse=True))},
        alt=f"For {', '.join(within)}, a dot a seed: how many dimensions hold 95% of contents and of positions; the "
        "share of the contents' variance in the positions' subspace; and the smallest angle between the two, both "
        f"beside random subspaces of the same sizes. Columns: {', '.join(titles)}.",
    )


def missed(
    before: Mapping[str, Tensor],
    after: Mapping[str, Tensor],
    lost: Mapping[str, Mapping[str, Tensor]],
) -> Live:
    """What it costs models to lose a term, and how large its share was before training and after it, a dot a seed.

    Args:
        before: encoding → shares of the four terms, (seeds, 4), untrained.
        after: the same, trained.
        lost: encoding → what is taken out → added loss, (seeds,). The four terms stand first.
    """
    rows = list(next(iter(lost.values())))
    colours = [*COLOURS, *[GREY] * len(rows)]
    furthest = max(values.max().item() for removed in lost.values() for values in removed.values())
    figure = canvas(8, 0.9 + 0.42 * len(rows))
    cost, part = figure.subplots(1, 2, width_ratios=(1.5, 1), sharey=True)
    cost.set(xlim=(-0.04, 1.28 * furthest), ylim=(len(rows) - 0.5, -0.5))
    part.set_xlim(-0.03, 1.03)
    cost.set_yticks(range(len(rows)), rows)
    for label, colour in zip(cost.get_yticklabels(), colours):
        label.set_color(colour)
        label.set_weight("bold")
    cost.set_xlabel("added loss when it is taken out (nats a character)")
    part.set_xlabel("share: ○ untrained, ● trained")
    for axes in (cost, part):
        axes.axvline(0, color=GREY, linewidth=0.7)
        for row in range(len(rows)):
            axes.axhline(row, color="#eeeeee", linewidth=0.8, zorder=0)
    moving = {}
    for row, (name, colour) in enumerate(zip(rows, colours)):
        dots = {"marker": "o", "linestyle": "", "markersize": 5, "color": colour}
        (moving[f"{name}, lost"],) = cost.plot([], [], **dots)
        moving[f"{name}, mean"] = cost.text(0, row, " ", va="center")
        if row < 4:
            (moving[f"{name}, before"],) = part.plot([], [], **dots, markerfacecolor="none")
            (moving[f"{name}, after"],) = part.plot([], [], **dots)

    def update(encoding: str) -> None:
        for row, name in enumerate(rows):
            values = lost[encoding][name]
            moving[f"{name}, lost"].set_data(values.tolist(), _beside(row, len(values)))
            mean = round(values.mean().item(), 2)
            moving[f"{name}, mean"].set_text(f"{abs(mean) if mean == 0 else mean:.2f}")
            moving[f"{name}, mean"].set_x(values.max().item() + 0.05 * furthest)
            for when, shares_then in (("before", before), ("after", after)) if row < 4 else ():
                values = shares_then[encoding][:, row]
                moving[f"{name}, {when}"].set_data(values.tolist(), _beside(row, len(values)))

    return Live(
        figure,
        update,
        moving=moving,
        controls={"encoding": choice("encoding", list(lost))},
        alt="For one encoding at a time, a dot a seed. Left, the loss that is added when a part of the score is taken out "
        f"of layer 0, with the mean written beside it: {', '.join(rows)}. Right, the shares of the four terms before "
        "training and after it.",
    )


def _beside(row: int, seeds: int) -> list[float]:
    """The heights of a row's dots, a little apart."""
    return (row + (torch.linspace(-0.16, 0.16, seeds) if seeds > 1 else torch.zeros(1))).tolist()


def sheets() -> Live:
    """Two sheets of paper with two angles between them, and all the angles between random subspaces of 27 and 9 dimensions."""
    contents, positions, draws = 27, 9, 8
    widths = range(64, 769, 64)
    generator = torch.Generator().manual_seed(3)
    angles = {
        width: torch.stack(
            [
                principal_angles(*(random_span(rank, width, generator) for rank in (contents, positions)))
                for _ in range(draws)
            ]
        ).mean(dim=0)
        for width in widths
    }
    figure = canvas(8, 3.1)
    drawn, panel = figure.subplots(1, 2, width_ratios=(1, 1.35))
    drawn.set(xlim=(-0.2, 4.3), ylim=(-1.15, 3.3), aspect="equal")
    drawn.axis("off")
    drawn.add_patch(Polygon([(0, 0), (2.4, 0.9), (4.2, 0.9), (1.8, 0)], facecolor=POSITION, alpha=0.45))
    drawn.add_patch(Polygon([(0.9, 0), (3.3, 0.9), (3.3, 3.1), (0.9, 2.2)], facecolor=CONTENT, alpha=0.45))
    drawn.add_patch(Polygon([(0.9, 0), (3.3, 0.9), (4.2, 0.9), (1.8, 0)], facecolor=POSITION, alpha=0.45))
    drawn.plot([0.9, 3.3], [0, 0.9], color="black", linewidth=2)
    drawn.annotate(
        "along the fold: 0°", (2.1, 0.45), (1.2, -0.75), arrowprops={"arrowstyle": "-", "color": GREY}
    )
    drawn.plot([1.15, 1.15, 0.9], [0, 0.25, 0.25], color="black", linewidth=1)
    drawn.annotate("across it: 90°", (1.05, 0.25), (-0.2, 1.2), arrowprops={"arrowstyle": "-", "color": GREY})
    drawn.text(1.15, 2.55, "words", color=CONTENT, rotation=20)
    drawn.text(3.0, 0.35, "places", color=POSITION)

    order = range(1, positions + 1)
    for values in angles.values():
        panel.plot(order, values.tolist(), color="#dddddd", linewidth=1, zorder=0)
    panel.set(xlim=(0.5, positions + 0.5), ylim=(0, 95), yticks=[0, 30, 60, 90])
    panel.set_xticks(list(order))
    panel.axhline(90, color=GREY, linewidth=0.7, linestyle="--")
    panel.set_xlabel("angle number, the smallest first")
    panel.set_ylabel("degrees")
    (line,) = panel.plot([], [], "o-", color=GREY, markersize=4, linewidth=1)
    (first,) = panel.plot([], [], "o", color="black", markersize=7)
    readout = panel.set_title(" ", loc="left")

    def update(width: int) -> None:
        values = angles[width].tolist()
        line.set_data(list(order), values)
        first.set_data([1], values[:1])
        readout.set_text(
            f"random subspaces of {contents} and {positions} in {width}: {values[0]:.0f}° where nearest"
        )

    return Live(
        figure,
        update,
        moving={"line": line, "first": first, "readout": readout},
        controls={"width": slider("d", widths[0], widths[-1], unit="dimensions", step=widths.step)},
        alt="Left, two sheets of paper that meet along a fold: along it the angle between them is 0, across it 90 degrees. "
        f"Right, the {positions} angles between two random subspaces of {contents} and {positions} dimensions, the smallest "
        "first: all grow towards 90 degrees as the space grows wider.",
    )
