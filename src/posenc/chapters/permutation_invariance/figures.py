"""What chapter 1 draws: attention itself, the learner's words, and what an exchange of words moves."""

from functools import partial
from itertools import combinations

import ipywidgets as widgets
import torch
from torch import Tensor

from posenc.additive import sinusoidal
from posenc.attention import attention, attention_weights, projections, residual_attention
from posenc.lesson import drawing as draw
from posenc.lesson.controls import choice, sentence_box, slider, switch
from posenc.lesson.drawing import drawing
from posenc.lesson.live import Live, canvas, still
from posenc.lesson.palette import CONTENT, GREY, KEY, MAGNITUDE, POSITION, QUERY, SIGNED, VALUE
from posenc.text import ROOM, read, short, word_vectors

WIDTH = 16  # of the word vectors
LEAST = 3  # different words that every figure needs


def attention_drawing() -> Live:
    """Attention as a drawing: one token asks, every token answers, and the values are summed."""
    panel = drawing(4.4)
    box = partial(draw.box, panel, width=1.7, height=0.8)
    arrow = partial(draw.arrow, panel)

    weights = (0.1, 0.6, 0.3)
    for row, (token, weight) in enumerate(zip(("the", "dog", "bit"), weights)):
        y = 6.2 - 2.1 * row
        box(0.3, y, token, CONTENT)
        box(3.6, y, f"key {row}", KEY)
        arrow((2.0, y + 0.4), (3.6, y + 0.4))
        panel.text(7.6, y + 0.4, f"score {row}", ha="center", va="center", fontsize=10)
        arrow((5.3, y + 0.4), (6.9, y + 0.4), KEY)
        panel.text(10.1, y + 0.4, f"weight {weight:.1f}", ha="center", va="center", fontsize=10)
        arrow((8.3, y + 0.4), (9.2, y + 0.4))
        panel.text(11.3, y + 0.4, "×", ha="center", va="center", fontsize=10)
        box(11.6, y, f"value {row}", VALUE)
        arrow((13.3, y + 0.4), (14.2, 4.9 - 0.5 * row), VALUE, 12 * weight)
    box(3.6, 0.4, "query 2", QUERY)
    arrow((1.15, 2.0), (3.6, 0.9))
    for row in range(3):
        arrow((5.3, 0.9), (7.3, 6.3 - 2.1 * row), QUERY)
    box(14.2, 4.0, "output 2", "black", width=1.6)
    for x, words in (
        (1.15, "tokens"),
        (4.45, "what each offers"),
        (7.6, "query · key / √d"),
        (10.1, "softmax:\nsum 1"),
        (12.45, "what each\nhands over"),
        (15.0, "weighted sum"),
    ):
        panel.text(x, 7.9, words, ha="center", va="center", color="black")
    panel.text(5.5, 0.5, "“bit” asks. Every token, itself included, has a key and a value.", va="center")
    return still(
        panel.figure,
        alt="Three tokens, the, dog, bit. Each has a key and a value. The query of bit meets each key and gives a score; "
        "the softmax turns the scores into weights of 0.1, 0.6 and 0.3; the output is the sum of the values, each "
        "times its weight.",
    )


def token_vectors(sentence: widgets.Text | None = None) -> Live:
    """The vectors of the words, one row per word."""
    figure = canvas(8, 3)
    figure.set_layout_engine("none")
    panel = figure.add_axes((0.13, 0.17, 0.74, 0.79))
    image = panel.imshow([[0] * WIDTH], cmap=SIGNED, vmin=-3, vmax=3, aspect="auto")
    panel.set_xticks(range(WIDTH))
    panel.set_xlabel("dimension")
    figure.colorbar(image, cax=figure.add_axes((0.89, 0.17, 0.02, 0.79)), label="value")

    def update(sentence: str) -> None:
        tokens = read(sentence, at_least=LEAST)
        image.set_data(word_vectors(tokens, WIDTH).numpy())
        image.set_extent((-0.5, WIDTH - 0.5, len(tokens) - 0.5, -0.5))
        panel.set_yticks(range(len(tokens)), [short(token) for token in tokens])

    return Live(
        figure,
        update,
        moving={"vectors": image},
        controls={"sentence": sentence or sentence_box()},
        relayout=["sentence"],
        alt=f"Heat map of the word vectors, one row per word, {WIDTH} dimensions. Rows of the same word are equal.",
    )


def permutation(sentence: widgets.Text | None = None) -> Live:
    """The attention matrix of a shuffled sentence, and three outputs that move or stay."""
    w_query, w_key, w_value = projections(WIDTH)
    figure = canvas(8, 4.2)
    figure.set_layout_engine("none")
    matrix = figure.add_axes((0.13, 0.15, 0.31, 0.77))
    matrix.set_xticks([])
    matrix.set_yticks([])
    mesh = matrix.pcolormesh([[0] * ROOM] * ROOM, cmap=MAGNITUDE, vmin=0, vmax=0.5)  # faster than imshow
    matrix.set_title("attention weights")
    matrix.set_ylabel("query", labelpad=58)
    matrix.set_xlabel("key, in the same order")
    bar = figure.colorbar(mesh, cax=figure.add_axes((0.448, 0.15, 0.013, 0.77)), ticks=[0, 0.25, 0.5])
    bar.ax.set_yticklabels(["0", "¼", "½ +"])
    labels = {f"query {n}": matrix.text(-0.15, n + 0.5, "", ha="right", va="center") for n in range(ROOM)}

    outputs, readouts = {}, {}
    titles = {
        "last": "output of the last token",
        "mean": "mean of all outputs",
        "positions": "mean, with positions added",
    }
    for row, (name, title) in enumerate(titles.items()):
        panel = figure.add_axes((0.57, 0.72 - 0.285 * row, 0.41, 0.19))
        panel.set_xlim(-0.7, WIDTH - 0.3)
        panel.set_ylim(-3, 3)
        panel.set_xticks(range(0, WIDTH, 5))
        panel.axhline(0, color=GREY, linewidth=0.5)
        panel.set_title(title, loc="left")
        panel.tick_params(labelbottom=row == 2)
        readouts[name] = panel.set_title(" ", loc="right")
        (typed,) = panel.plot([], [], "o", markersize=9, markerfacecolor="none", color=GREY)
        (now,) = panel.plot([], [], "o", markersize=4, color=POSITION if row == 2 else VALUE)
        outputs[name] = (typed, now)
    panel.set_xlabel("dimension (ring: as typed, dot: now)")

    def output(x: Tensor) -> Tensor:
        return attention(x @ w_query, x @ w_key, x @ w_value)

    def update(sentence: str, shuffle: int, keep_last: bool) -> None:
        tokens = read(sentence, at_least=LEAST)
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
    panel.set_ylim(0, 1.8)
    panel.set_ylabel("moved (share of its length)")
    bars = panel.bar(range(ROOM), [0] * ROOM)
    numbers = [panel.text(n, 0, "", ha="center", va="bottom") for n in range(ROOM)]
    title = panel.set_title(" ")

    def update(sentence: str, layers: int, mask: str) -> None:
        tokens = read(sentence, at_least=LEAST)
        order = exchanged(tokens)
        x = word_vectors(tokens, WIDTH)
        before, after = (residual_attention(y, layers, causal=mask == "causal") for y in (x, x[order]))
        moved = (after - before[order]).norm(dim=-1) / before[order].norm(dim=-1)

        panel.set_xlim(-0.6, len(x) - 0.4)
        panel.set_xticks(range(len(x)), [short(tokens[place], 7) for place in order])
        for n, (bar, number) in enumerate(zip(bars, numbers)):
            height, colour = moved[n].item() if n < len(x) else 0, QUERY if n == len(x) - 1 else GREY
            bar.set(height=height, color=colour)
            number.set(
                position=(n, min(height, 1.65) + 0.02),
                text=f"{height:.2f}" if n < len(x) else "",
                color=colour,
            )
        swapped = " and ".join(f"“{short(tokens[place])}”" for n, place in enumerate(order) if n != place)
        title.set_text(
            f"{swapped} exchanged. Blue: the last token, which is read off; it moved by {moved[-1]:.2f}"
        )

    return Live(
        figure,
        update,
        moving={f"bar {n}": bar for n, bar in enumerate(bars)}
        | {f"number {n}": number for n, number in enumerate(numbers)}
        | {"title": title},
        controls={
            "sentence": sentence or sentence_box(),
            "layers": slider("layers", 1, 4),
            "mask": choice("mask", ["causal", "none"]),
        },
        relayout=["sentence"],
        alt="Bars, one per token with a number above it, the last one blue: how far the token's state moves when two "
        "words before the last change places, relative to its length.",
    )


def norms_by_position(causal: Tensor, bidirectional: Tensor) -> Live:
    """Length of the attention output against the position, both (T,), on logarithmic axes."""
    figure = canvas(8, 3.2)
    panel = figure.subplots()
    seen = range(1, len(causal) + 1)
    moving = {
        "causal": panel.loglog(seen, causal.numpy(), color="black", label="causal")[0],
        "bidirectional": panel.loglog(
            seen, bidirectional.numpy(), color=GREY, linestyle="--", label="without a mask"
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
        "the line without a mask is level.",
    )
