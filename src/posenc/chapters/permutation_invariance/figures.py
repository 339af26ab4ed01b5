"""What chapter 1 draws: the learner's words, their attention, and what an exchange of words moves."""

from itertools import combinations

import ipywidgets as widgets
import torch
from torch import Tensor

from posenc.additive import sinusoidal
from posenc.attention import attention, attention_weights, projections, residual_attention
from posenc.live import BLUE, GREY, ORANGE, SIGNED, Live, canvas, choice, sentence_box, slider, switch
from posenc.text import ROOM, read, short, word_vectors

WIDTH = 16  # of the word vectors


def token_vectors(sentence: widgets.Text | None = None) -> Live:
    """The vectors of the words, one row a word."""
    figure = canvas(8, 3)
    figure.set_layout_engine("none")
    panel = figure.add_axes((0.13, 0.17, 0.74, 0.79))
    image = panel.imshow([[0] * WIDTH], cmap=SIGNED, vmin=-3, vmax=3, aspect="auto")
    panel.set_xticks(range(WIDTH))
    panel.set_xlabel("dimension")
    figure.colorbar(image, cax=figure.add_axes((0.89, 0.17, 0.02, 0.79)), label="value")

    def update(sentence: str) -> None:
        tokens = read(sentence)
        image.set_data(word_vectors(tokens, WIDTH).numpy())
        image.set_extent((-0.5, WIDTH - 0.5, len(tokens) - 0.5, -0.5))
        panel.set_yticks(range(len(tokens)), [short(token) for token in tokens])

    return Live(
        figure,
        update,
        moving={"vectors": image},
        controls={"sentence": sentence or sentence_box()},
        relayout=["sentence"],
        alt=f"Heat map of the word vectors, one row a word, {WIDTH} dimensions. Rows of the same word are equal.",
    )


def permutation(sentence: widgets.Text | None = None) -> Live:
    """The attention matrix of a shuffled sentence, and three outputs that move or stay."""
    w_query, w_key, w_value = projections(WIDTH)
    figure = canvas(8, 4.2)
    figure.set_layout_engine("none")
    matrix = figure.add_axes((0.125, 0.15, 0.34, 0.77))
    matrix.set_xticks([])
    matrix.set_yticks([])
    mesh = matrix.pcolormesh([[0] * ROOM] * ROOM, cmap="viridis", vmin=0, vmax=0.5)  # faster than imshow
    matrix.set_title("attention weights: dark 0, bright ½ or more", fontsize=9)
    matrix.set_ylabel("query", labelpad=54, fontsize=9)
    matrix.set_xlabel("key, in the same order", fontsize=9)
    labels = {
        f"query {n}": matrix.text(-0.15, n + 0.5, "", ha="right", va="center", fontsize=9)
        for n in range(ROOM)
    }

    outputs, readouts = {}, {}
    titles = {
        "last": "output of the last token",
        "mean": "mean of all outputs",
        "positions": "mean of all outputs, positions added",
    }
    for row, (name, title) in enumerate(titles.items()):
        panel = figure.add_axes((0.55, 0.72 - 0.285 * row, 0.43, 0.19))
        panel.set_xlim(-0.7, WIDTH - 0.3)
        panel.set_ylim(-3, 3)
        panel.axhline(0, color=GREY, linewidth=0.5)
        panel.set_title(title, fontsize=9, loc="left")
        panel.tick_params(labelsize=8, labelbottom=row == 2)
        readouts[name] = panel.set_title(" ", fontsize=9, loc="right")
        (typed,) = panel.plot([], [], "o", markersize=9, markerfacecolor="none", color=GREY)
        (now,) = panel.plot([], [], "o", markersize=4, color=ORANGE if row == 2 else BLUE)
        outputs[name] = (typed, now)
    panel.set_xlabel("dimension (ring: as typed, dot: now)", fontsize=9)

    def output(x: Tensor) -> Tensor:
        return attention(x @ w_query, x @ w_key, x @ w_value)

    def update(sentence: str, shuffle: int, keep_last: bool) -> None:
        tokens = read(sentence, at_least=2)
        order = shuffled(len(tokens), shuffle, keep_last)
        x = word_vectors(tokens, WIDTH)
        now, encoding = x[order], sinusoidal(torch.arange(len(x)), WIDTH, dtype=x.dtype)

        weights = torch.full((ROOM, ROOM), torch.nan)
        weights[: len(x), : len(x)] = attention_weights(now @ w_query, now @ w_key)
        mesh.set_array(weights.numpy())
        matrix.set(xlim=(0, len(x)), ylim=(len(x), 0))
        for n in range(ROOM):
            labels[f"query {n}"].set_text(short(tokens[order[n]], 8) if n < len(x) else "")

        pairs = {
            "last": (output(x)[-1], output(now)[-1]),
            "mean": (output(x).mean(0), output(now).mean(0)),
            "positions": (output(x + encoding).mean(0), output(now + encoding).mean(0)),
        }
        for name, values in pairs.items():
            for line, value in zip(outputs[name], values):
                line.set_data(range(WIDTH), value.numpy())
            readouts[name].set_text(f"moved by {(values[1] - values[0]).norm():.2f}")

    return Live(
        figure,
        update,
        moving={"matrix": mesh, **labels, **readouts}
        | {
            f"{name}, {when}": line
            for name, lines in outputs.items()
            for when, line in zip(("typed", "now"), lines)
        },
        controls={
            "sentence": sentence or sentence_box(),
            "shuffle": slider("shuffle", 0, 20, value=1),
            "keep_last": switch("keep the last word last", value=True),
        },
        relayout=["sentence"],
        alt="Left, the matrix of attention weights of the shuffled sentence, queries down, keys across. Right, "
        "three outputs in 16 dimensions, rings for the sentence as typed and dots for the shuffled one: of the "
        "last token, the mean of all, and the mean when positions are added.",
    )


def shuffled(length: int, number: int, keep_last: bool) -> Tensor:
    """Shuffle number 0 leaves the order as it is; every other number is one fixed permutation, shape (length,)."""
    order = torch.arange(length)
    if number:
        free = length - keep_last
        order[:free] = torch.randperm(free, generator=torch.Generator().manual_seed(number))
        if torch.equal(order, torch.arange(length)):
            order[:free] = order[:free].roll(1)
    return order


def exchanged(tokens: list[str]) -> list[int]:
    """An order of the tokens in which two of them have changed places and the last one stands still.

    These are the second word and the last but one, as in "the dog bit the man."; where they are the
    same word, the first two that differ.
    """
    order = list(range(len(tokens)))
    for i, j in [(1, len(tokens) - 2), *combinations(range(len(tokens) - 1), 2)]:
        if tokens[i] != tokens[j]:
            order[i], order[j] = order[j], order[i]
            break
    return order


def layers_and_mask(sentence: widgets.Text | None = None) -> Live:
    """How far each token's state moves when two words before the last change places."""
    figure = canvas(8, 3.4)
    panel = figure.subplots()
    panel.set_xlim(-0.6, ROOM - 0.4)
    panel.set_ylim(0, 1.5)
    panel.set_ylabel("moved (share of its length)")
    bars = panel.bar(range(ROOM), [0] * ROOM, color=BLUE)
    title = panel.set_title(" ", fontsize=10)

    def update(sentence: str, layers: int, mask: str) -> None:
        tokens = read(sentence, at_least=3)
        order = exchanged(tokens)
        x = word_vectors(tokens, WIDTH)
        before, after = (residual_attention(y, layers, causal=mask == "causal") for y in (x, x[order]))
        moved = (after - before[order]).norm(dim=-1) / before[order].norm(dim=-1)

        panel.set_xlim(-0.6, len(x) - 0.4)
        panel.set_xticks(range(len(x)), [short(tokens[place], 7) for place in order], fontsize=9)
        for n, bar in enumerate(bars):
            bar.set(height=moved[n].item() if n < len(x) else 0, color=ORANGE if n == len(x) - 1 else BLUE)
        swapped = " and ".join(f"“{short(tokens[place])}”" for n, place in enumerate(order) if n != place)
        title.set_text(f"{swapped} exchanged: the last token's state moved by {moved[-1]:.2f}")

    return Live(
        figure,
        update,
        moving={f"bar {n}": bar for n, bar in enumerate(bars)} | {"title": title},
        controls={
            "sentence": sentence or sentence_box(),
            "layers": slider("layers", 1, 4),
            "mask": choice("mask", ["causal", "none"]),
        },
        relayout=["sentence"],
        alt="Bars, one a token, the last one in another colour: how far the token's state moves when two words "
        "before the last change places, relative to its length.",
    )


def norms_by_position(causal: Tensor, bidirectional: Tensor) -> Live:
    """Length of the attention output against the position, both (T,), on logarithmic axes."""
    figure = canvas(8, 3.2)
    panel = figure.subplots()
    seen = range(1, len(causal) + 1)
    moving = {
        "causal": panel.loglog(seen, causal.numpy(), color=ORANGE, label="causal")[0],
        "bidirectional": panel.loglog(
            seen, bidirectional.numpy(), color=BLUE, linestyle="--", label="bidirectional"
        )[0],
    }
    panel.set_xlabel("tokens that a causal row sees, m + 1")
    panel.set_ylabel("length of the output")
    panel.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
    panel.set_yticks([0.25, 0.5, 1, 2, 4], ["0.25", "0.5", "1", "2", "4"])
    panel.minorticks_off()
    panel.legend()
    return Live(
        figure,
        lambda: None,
        moving=moving,
        controls={},
        alt="Length of the attention output against the position, both axes logarithmic: the causal line falls, "
        "the bidirectional line is level.",
    )
