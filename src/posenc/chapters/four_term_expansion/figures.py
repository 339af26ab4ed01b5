"""What chapter 3 draws: the four terms of the learner's sentence, angles of random vectors, what training did."""

import math
from collections.abc import Mapping, Sequence

import matplotlib
import torch
from matplotlib.patches import Rectangle
from torch import Tensor
from torch.nn.functional import normalize

from posenc.additive import sinusoidal
from posenc.live import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    SIGNED,
    SKY,
    Live,
    canvas,
    sentence_box,
    slider,
    switch,
)
from posenc.terms import FourTerms, centre, four_terms, shares
from posenc.text import ROOM, read, short, word_vectors

WIDTH, HEAD = 64, 16  # of the word vectors, and of the one head

QUESTIONS = FourTerms(  # the query reads, the key is read
    "Which word does this word read?",
    "Which place does this word read?",
    "Which word does this place read?",
    "Which place does this place read?",
)
SHORT = FourTerms("content → content", "content → position", "position → content", "position → position")
COLOURS = FourTerms(BLUE, SKY, PINK, ORANGE)


def weights() -> tuple[Tensor, Tensor]:
    """Random W_query and W_key of one head, each (HEAD, WIDTH), the same every time."""
    generator = torch.Generator().manual_seed(0)
    w_query, w_key = torch.randn(2, HEAD, WIDTH, generator=generator, dtype=torch.float64) / WIDTH**0.5
    return w_query, w_key


def four_panels() -> Live:
    """The four terms of a sentence as heat maps on one colour scale, their sum, and its softmax."""
    w_query, w_key = weights()
    signed = matplotlib.colormaps[SIGNED].with_extremes(bad="#dddddd")
    figure = canvas(8, 4.7)
    figure.set_layout_engine("none")
    left, bottom, width, height = (0.115, 0.395, 0.675), (0.535, 0.05), 0.235, 0.37
    moving, panels, labels = {}, [], []

    def panel(row: int, column: int, title: str, name: str, **colours) -> None:
        axes = figure.add_axes((left[column], bottom[row], width, height))
        moving[name] = axes.pcolormesh([[0] * ROOM] * ROOM, **colours)
        axes.text(0, 1.115, title, transform=axes.transAxes, fontsize=8.5)
        moving[f"{name}, readout"] = axes.text(
            0, 1.03, " ", transform=axes.transAxes, fontsize=8, color="#444444"
        )
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)  # they would be drawn anew with every move
        axes.add_patch(
            Rectangle((0, 0), 1, 1, transform=axes.transAxes, fill=False, linewidth=1.6, clip_on=False)
        )
        panels.append(axes)

    scores = {"cmap": signed, "vmin": -2.5, "vmax": 2.5}
    for index, (name, question) in enumerate(QUESTIONS._asdict().items()):
        panel(*divmod(index, 2), question, name, **scores)
    panel(0, 2, "Their sum, the score", "sum", **scores)
    panel(1, 2, "What the softmax makes of it", "weights", cmap="viridis", vmin=0, vmax=0.5)
    for row, (name, label) in enumerate({"sum": "score, row mean taken off", "weights": "weight"}.items()):
        bar = figure.colorbar(moving[name], cax=figure.add_axes((0.925, bottom[row], 0.013, height)))
        bar.ax.tick_params(labelsize=7)
        bar.set_label(label, fontsize=8)
    for axes in (panels[0], panels[2]):
        axes.set_ylabel("reads (query)", fontsize=8, labelpad=44)
    for axes in (panels[2], panels[3], panels[5]):
        axes.set_xlabel("is read (key), in the same order", fontsize=8, labelpad=3)

    def update(sentence: str, power: float, **on: bool) -> None:
        tokens = read(sentence, at_least=2)
        content = 10**power * word_vectors(tokens, WIDTH)
        position = sinusoidal(torch.arange(len(tokens)), WIDTH, dtype=content.dtype)
        terms = four_terms(content, position, w_query, w_key)
        visible = torch.ones(len(tokens), len(tokens), dtype=torch.bool)
        for (name, term), share in zip(terms._asdict().items(), shares(terms, visible).tolist()):
            draw(name, centre(term, visible) if on[name] else torch.full_like(term, torch.nan))
            moving[f"{name}, readout"].set_text(f"{share:.1%} of the four" if on[name] else "left out")
        total = sum((term for name, term in terms._asdict().items() if on[name]), torch.zeros_like(term))
        draw("sum", centre(total, visible))
        draw("weights", total.softmax(dim=-1))
        moving["sum, readout"].set_text(f"embedding std {10**power:.2f}, positions 0.71")
        moving["weights, readout"].set_text(f"largest weight {total.softmax(dim=-1).max():.2f}")
        if labels != tokens:
            labels[:] = tokens
            for axes in panels:
                axes.set(xlim=(0, len(tokens)), ylim=(len(tokens), 0))
            for axes in (panels[0], panels[2]):
                places = [n + 0.5 for n in range(len(tokens))]
                axes.set_yticks(places, [short(token, 8) for token in tokens], fontsize=7.5)

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
            "power": slider("embedding std", -2.0, 0.4, unit="power of ten", value=0.0, step=0.1),
            **{name: switch(words, value=True) for name, words in SHORT._asdict().items()},
        },
        relayout=["sentence"],
        alt="Six heat maps, reading words down and words that are read across. Four show the terms of the score, "
        "word with word, word with place, place with word and place with place, each with its share above it; "
        "the fifth their sum on the same colours, the sixth its softmax.",
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
    figure.set_layout_engine("none")
    histogram = figure.add_axes((0.08, 0.16, 0.52, 0.7))
    histogram.set(xlim=(-1, 1), ylim=(0, 0.25), xticks=[-1, -0.5, 0, 0.5, 1])
    histogram.tick_params(labelsize=8)
    histogram.set_xlabel("cosine of two random vectors", fontsize=9)
    histogram.set_ylabel("share of the pairs", fontsize=9)
    (expected,) = histogram.plot([], [], color=ORANGE, linewidth=1.2, linestyle="--")
    bars = histogram.stairs(torch.zeros(120).numpy(), edges.numpy(), fill=True, color=BLUE, alpha=0.7)
    readout = histogram.set_title(" ", fontsize=9, loc="left")

    panel = figure.add_axes((0.71, 0.16, 0.27, 0.7))
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set(xlim=(6, 1500), ylim=(0.02, 0.6))
    panel.set_xticks([8, 64, 384, 768], ["8", "64", "384", "768"])
    panel.set_yticks([0.036, 0.051, 0.125, 0.354], ["0.036", "0.051", "0.125", "0.354"])
    panel.minorticks_off()
    panel.tick_params(labelsize=8)
    panel.plot(widths, [width**-0.5 for width in widths], color=ORANGE, linestyle="--", linewidth=1.2)
    for width in (384, 768):
        panel.plot([width, width, 6], [0.02, width**-0.5, width**-0.5], color=GREY, linewidth=0.7)
    panel.set_xlabel("d", fontsize=9)
    panel.set_title("spread: measured (dot), 1/√d (dashes)", fontsize=9, x=0.4)
    (spread,) = panel.plot([], [], "o", color="black", markersize=6)
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


def position_maps(
    before: Mapping[str, Tensor] | None = None, after: Mapping[str, Tensor] | None = None
) -> Live:
    """The position-with-position term of models, before and after training.

    Args:
        before: variant → its term, (seeds, heads, T, T); drawn for two variants, causal. Untrained ones are
            made here if it is not given.
        after: the same after training.
    """
    if before is None:
        before = _untrained()
    if after is None:
        after = before
    seeds, heads, length, _ = next(iter(before.values())).shape
    visible = torch.ones(length, length, dtype=torch.bool).tril()
    signed = matplotlib.colormaps[SIGNED].with_extremes(bad="white")
    figure = canvas(8, 2.75)
    figure.set_layout_engine("none")
    moving, maps = {}, {}
    for column, (name, when) in enumerate((name, when) for name in before for when in ("before", "after")):
        axes = figure.add_axes((0.065 + 0.23 * column + 0.015 * (column // 2), 0.16, 0.21, 0.66))
        key = f"{name}, {when}"
        maps[key] = {"before": before, "after": after}[when][name]
        moving[key] = axes.pcolormesh(torch.zeros(length, length).numpy(), cmap=signed, vmin=-1, vmax=1)
        axes.set_ylim(length, 0)
        for axis in (axes.xaxis, axes.yaxis):
            ticks = range(0, length, 10)
            labels = [str(n) if not column or axis is axes.xaxis else "" for n in ticks]
            axis.set_ticks([n + 0.5 for n in ticks], labels, fontsize=8)
        axes.set_xlabel("key position n", fontsize=8)
        axes.text(0, 1.12, key, transform=axes.transAxes, fontsize=9)
        moving[f"{key}, readout"] = axes.text(0, 1.03, " ", transform=axes.transAxes, fontsize=8)
        if not column:
            axes.set_ylabel("query position m", fontsize=8)

    def update(seed: int, head: int) -> None:
        for key, terms in maps.items():
            seen = centre(terms[seed, head], visible)
            largest = seen.abs().max().item()
            moving[key].set_array((seen / largest).masked_fill(~visible, torch.nan).numpy())
            moving[f"{key}, readout"].set_text(f"colours reach ±{largest:.2f}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={"seed": slider("seed", 0, seeds - 1), "head": slider("head", 0, heads - 1)},
        alt="The position-with-position term of one head as four triangular heat maps, each on its own scale: "
        f"{'; '.join(maps)}. Stripes along the diagonals mean that only the distance counts.",
    )


def _untrained() -> dict[str, Tensor]:
    """Position-with-position terms of sinusoids and of a random table under random weights, (2, 4, 32, 32)."""
    generator = torch.Generator().manual_seed(0)
    positions = {
        "sinusoidal": sinusoidal(torch.arange(32), WIDTH),
        "learned": torch.randn(32, WIDTH, generator=generator),
    }
    w_query, w_key = torch.randn(2, 2, 4, HEAD, WIDTH, generator=generator) / WIDTH**0.5
    return {
        name: four_terms(position, position, w_query, w_key).position_position
        for name, position in positions.items()
    }


def every_seed(
    shares_before: Mapping[str, Tensor],
    shares_after: Mapping[str, Tensor],
    lost: Mapping[str, Mapping[str, Tensor]],
) -> Live:
    """Shares of the four terms and what taking them out costs, a dot a seed and a column a variant.

    Args:
        shares_before: variant → (seeds, 4), untrained.
        shares_after: the same, trained.
        lost: variant → what was taken out → added loss, (seeds,).
    """
    figure = canvas(8, 5)
    grid = figure.subplots(2, len(lost), sharey="row", squeeze=False)
    for column, (name, removed) in enumerate(lost.items()):
        upper, lower = grid[:, column]
        upper.set_title(name, fontsize=10)
        for place, colour in enumerate(COLOURS):
            _dots(upper, place - 0.18, shares_before[name][:, place], colour, filled=False)
            _dots(upper, place + 0.18, shares_after[name][:, place], colour, filled=True)
        upper.set_xticks(range(4), [_label(term) for term in SHORT], fontsize=8)
        colours = [*COLOURS, GREEN, GREY]
        for place, (values, colour) in enumerate(zip(removed.values(), colours)):
            _dots(lower, place, values, colour, filled=True)
        lower.axhline(0, color=GREY, linewidth=0.7)
        lower.set_xticks(range(len(removed)), [_label(what) for what in removed], fontsize=8)
        upper.set_ylim(-0.03, 1)
        for axes in (upper, lower):
            axes.tick_params(axis="y", labelsize=8)
    grid[0, 0].set_ylabel("share (ring: before, dot: after)", fontsize=8.5)
    grid[1, 0].set_ylabel("added loss, nats a character", fontsize=8.5)
    figure.supxlabel("query → key; c content, p position", fontsize=8.5)
    return Live(
        figure,
        lambda: None,
        moving={},
        controls={},
        alt="One column a variant, a dot a seed. Above, the shares of the four terms before and after training; "
        "below, the loss that is added when a term is taken out of layer 0.",
    )


def _label(name: str) -> str:
    """Short enough for six of them in a row."""
    if "→" in name:
        return name.replace("content", "c").replace("position", "p")
    return name.replace(" ", "\n")


def _dots(axes, place: float, values: Tensor, colour: str, *, filled: bool) -> None:
    """One dot a seed, beside each other."""
    beside = torch.linspace(-0.1, 0.1, len(values)) if len(values) > 1 else torch.zeros(1)
    face: Sequence | str = colour if filled else "none"
    axes.plot(
        (place + beside).tolist(), values.tolist(), "o", markersize=4, color=colour, markerfacecolor=face
    )
