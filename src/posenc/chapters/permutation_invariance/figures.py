"""What chapter 1 draws: attention itself, what a shuffle moves and what not, and how far an exchange travels."""

from functools import partial

import ipywidgets as widgets
import torch
from matplotlib.collections import LineCollection
from torch import Tensor

from posenc.additive import sinusoidal
from posenc.attention import attention, attention_weights, projections, residual_attention
from posenc.chapters.permutation_invariance.orders import exchanged, shuffled
from posenc.lesson import drawing as draw
from posenc.lesson.controls import choice, sentence_box, slider, switch
from posenc.lesson.drawing import bare, blank, drawing, log_axis
from posenc.lesson.live import Live, canvas, still
from posenc.lesson.palette import CONTENT, GREY, KEY, MAGNITUDE, QUERY, SIGNED, VALUE
from posenc.text import ROOM, read, short, word_vectors

WIDTH = 16  # of the word vectors
LEAST = 3  # different words that every figure needs
SHUFFLES = 20
LAYERS = 4


def sentence_shuffled(sentence: widgets.Text | None = None) -> Live:
    """The words of a sentence in another order, and what the last one's output makes of it."""
    figure = blank(3.6)
    rows = figure.add_axes((0.1, 0.62, 0.88, 0.36), xlim=(0, 1), ylim=(-0.25, 1.25))
    bare(rows)
    for y, name in ((1, "as typed"), (0, "shuffled")):
        rows.text(-0.01, y, name, ha="right", va="center", color=GREY)
    text = partial(rows.text, 0, s="", ha="center", va="center", fontsize=10, bbox=_card())
    typed, now = ([text(y=y) for _ in range(ROOM)] for y in (1, 0))
    threads = rows.add_collection(LineCollection([], colors=GREY, linewidths=1))

    panel = figure.add_axes((0.1, 0.12, 0.88, 0.43), xlim=(-0.7, WIDTH - 0.3))
    panel.axhline(0, color=GREY, linewidth=0.5)
    panel.set_xticks(range(WIDTH))
    panel.set_xlabel("the 16 numbers (frame: as typed, bar: shuffled)", labelpad=2)
    title, moved = panel.set_title(" ", loc="left"), panel.set_title(" ", loc="right")
    bars = panel.bar(range(WIDTH), 0, color=QUERY, alpha=0.55, width=0.7)
    frames = panel.bar(range(WIDTH), 0, facecolor="none", edgecolor="black", width=0.7)

    def update(sentence: str, shuffle: int, told: bool) -> None:
        tokens = read(sentence, at_least=LEAST)
        order = shuffled(len(tokens), shuffle, keep_last=True)
        places = ((torch.arange(ROOM) + 0.5) / len(tokens)).tolist()
        for n, (above, below) in enumerate(zip(typed, now)):
            here = n < len(tokens)
            colour = QUERY if n == len(tokens) - 1 else "black"
            above.set(x=places[n], text=short(tokens[n], 8) if here else "", color=colour)
            below.set(x=places[n], text=short(tokens[order[n]], 8) if here else "", color=colour)
        threads.set_segments([[(places[m], 0.8), (places[n], 0.2)] for n, m in enumerate(order.tolist())])

        x = word_vectors(tokens, WIDTH)
        encoding = sinusoidal(torch.arange(len(x)), WIDTH, dtype=x.dtype)
        highest = 1.2 * max(_layer(rows)[-1].abs().max().item() for rows in (x, x + encoding))
        panel.set_ylim(-highest, highest)
        before, after = (_layer(rows + encoding * told)[-1] for rows in (x, x[order]))
        for bar, height in zip([*bars, *frames], [*after.tolist(), *before.tolist()]):
            bar.set_height(height)
        title.set_text(f"what “{short(tokens[-1])}” gets from one layer of attention")
        moved.set_text(f"moved by {(after - before).norm():.2f}")

    return Live(
        figure,
        update,
        moving={"threads": threads, "title": title, "moved": moved}
        | {f"typed {n}": word for n, word in enumerate(typed)}
        | {f"now {n}": word for n, word in enumerate(now)}
        | {f"bar {n}": bar for n, bar in enumerate(bars)}
        | {f"frame {n}": frame for n, frame in enumerate(frames)},
        controls={
            "sentence": sentence or sentence_box(),
            "shuffle": slider("shuffle", 0, SHUFFLES),
            "told": switch("tell each word where it stands"),
        },
        relayout=["sentence"],
        alt="Above, the words of the sentence as typed and, joined to them by lines, in the order of a shuffle that "
        "leaves the last one in its place. Below, 16 bars: what the last word gets from one layer of attention, with "
        "a frame around each that shows what it was before the shuffle.",
    )


def attention_drawing() -> Live:
    """Attention as a drawing: one token asks, every token answers, and the values are summed."""
    panel = drawing(4.4)
    box = partial(draw.box, panel, width=1.7, height=0.8)
    arrow = partial(draw.arrow, panel)
    words = partial(panel.text, ha="center", va="center", fontsize=10)

    weights = (0.1, 0.6, 0.3)
    for row, (token, weight) in enumerate(zip(("the", "dog", "bit"), weights)):
        y = 6.2 - 2.1 * row
        box(0.3, y, token, CONTENT)
        box(3.6, y, f"key {row}", KEY)
        arrow((2.0, y + 0.4), (3.6, y + 0.4), KEY)
        words(7.6, y + 0.4, f"score {row}")
        arrow((5.3, y + 0.4), (6.9, y + 0.4), KEY)
        words(10.1, y + 0.4, f"weight {weight:.1f}")
        arrow((8.3, y + 0.4), (9.2, y + 0.4))
        words(11.3, y + 0.4, "×")
        box(11.6, y, f"value {row}", VALUE)
        panel.plot([1.15 + 0.3 * (row == 2), 1.15 + 0.3 * (row == 2), 12.45], [y, y - 0.45, y - 0.45], color=VALUE)
        arrow((12.45, y - 0.47), (12.45, y), VALUE)
        arrow((13.3, y + 0.4), (14.2, 4.9 - 0.5 * row), VALUE, 12 * weight)
    box(3.6, 0.2, "query 2", QUERY)
    arrow((0.85, 2.0), (3.6, 0.7), QUERY)
    for row in range(3):
        arrow((5.3, 0.7), (7.3, 6.3 - 2.1 * row), QUERY)
    box(14.2, 4.0, "output 2", "black", width=1.6)
    for x, heading in (
        (1.15, "tokens"),
        (4.45, "what each offers"),
        (7.6, "query · key / √d"),
        (10.1, "softmax:\nsum 1"),
        (12.45, "what each\nhands over"),
        (15.0, "weighted sum"),
    ):
        panel.text(x, 7.9, heading, ha="center", va="center", color="black")
    panel.text(5.8, 0.4, "“bit” asks. Every token, itself included, has a key and a value.", va="center")
    return still(
        panel.figure,
        alt="Three tokens, the, dog, bit. An arrow leads from each to its key and another to its value. The query of bit "
        "meets each key and gives a score; the softmax turns the scores into weights of 0.1, 0.6 and 0.3; the output is "
        "the sum of the values, each times its weight.",
    )


def permutation(sentence: widgets.Text | None = None) -> Live:
    """A shuffled sentence on its way through a layer, and which of four things stay as they were."""
    w_query, w_key, _ = projections(WIDTH)
    figure = blank(5)
    panels, meshes = {}, {}
    for name, left, columns, colours in (
        ("words", 0.1, WIDTH, {"cmap": SIGNED, "vmin": -3, "vmax": 3}),
        ("weights", 0.405, ROOM, {"cmap": MAGNITUDE, "vmin": 0, "vmax": 0.5}),
        ("outputs", 0.71, WIDTH, {"cmap": SIGNED, "vmin": -1.8, "vmax": 1.8}),
    ):
        panel = panels[name] = figure.add_axes((left, 0.46, 0.275, 0.46), xlim=(0, columns))
        panel.set(xticks=[], yticks=[])
        meshes[name] = panel.pcolormesh([[0] * columns] * ROOM, **colours)  # faster than imshow
    panels["words"].set_title("vectors of the words")
    panels["weights"].set_title("attention weights")
    panels["outputs"].set_title("outputs")
    for name in ("words", "outputs"):
        panels[name].set_xlabel(f"{WIDTH} numbers each")
    rows = [panels["words"].text(-0.4, n + 0.5, "", ha="right", va="center") for n in range(ROOM)]
    below = panels["weights"].get_xaxis_transform()
    columns = [
        panels["weights"].text(n + 0.5, -0.02, "", ha="center", va="top", rotation=90, transform=below)
        for n in range(ROOM)
    ]

    names = ("what each word gets", "the last row", "the mean of all rows", "the mean, positions added")
    chart = figure.add_axes((0.26, 0.08, 0.64, 0.2), xlim=(0, 1.6), ylim=(3.6, -0.6))
    chart.set_yticks(range(4), names)
    chart.set_title("moved by the shuffle (share of its length)", loc="left")
    bars = chart.barh(range(4), 0, color=[GREY, QUERY, GREY, GREY], height=0.6)
    numbers = [chart.text(0, n, "", va="center") for n in range(4)]

    def update(sentence: str, shuffle: int) -> None:
        tokens = read(sentence, at_least=LEAST)
        order = shuffled(len(tokens), shuffle, keep_last=False)
        x = word_vectors(tokens, WIDTH)
        now, encoding = x[order], sinusoidal(torch.arange(len(x)), WIDTH, dtype=x.dtype)
        before, after = _layer(x), _layer(now)

        shown = {
            "words": now,
            "weights": attention_weights(now @ w_query, now @ w_key),
            "outputs": after,
        }
        for name, values in shown.items():
            whole = torch.full((ROOM, WIDTH if name != "weights" else ROOM), torch.nan)
            whole[: values.shape[0], : values.shape[1]] = values
            meshes[name].set_array(whole.numpy())
            panels[name].set_ylim(len(x), 0)
        panels["weights"].set_xlim(0, len(x))
        for n, (row, column) in enumerate(zip(rows, columns)):
            colour = QUERY if n == len(x) - 1 else "black"
            for label in (row, column):
                label.set(text=short(tokens[order[n]], 8) if n < len(x) else "", color=colour)

        moved = (
            _moved(before[order], after).max(),
            _moved(before[-1], after[-1]),
            _moved(before.mean(0), after.mean(0)),
            _moved(_layer(x + encoding).mean(0), _layer(now + encoding).mean(0)),
        )
        for bar, number, share in zip(bars, numbers, map(torch.Tensor.item, moved)):
            bar.set_width(share)
            number.set(x=min(share, 1.5) + 0.02, text=f"{share:.2f}")

    return Live(
        figure,
        update,
        moving=meshes
        | {f"row {n}": label for n, label in enumerate(rows)}
        | {f"column {n}": label for n, label in enumerate(columns)}
        | {f"bar {n}": bar for n, bar in enumerate(bars)}
        | {f"number {n}": number for n, number in enumerate(numbers)},
        controls={"sentence": sentence or sentence_box(), "shuffle": slider("shuffle", 0, SHUFFLES)},
        relayout=["sentence"],
        alt="Three maps with one row a word, in the order of the shuffle: the words' vectors, the attention weights with "
        "a column a word, and the outputs. Below, four bars: how far the shuffle has moved what each word gets, the last "
        "row, the mean of all rows, and that mean with positions added, each as a share of its length.",
    )


def layers_and_mask(sentence: widgets.Text | None = None) -> Live:
    """How far the exchange of two words before the last has travelled, token by token and layer by layer."""
    figure = blank(3.9)
    panel = figure.add_axes((0.12, 0.04, 0.86, 0.86), xlim=(0, 1), ylim=(-0.5, LAYERS + 0.6))
    bare(panel)
    panel.text(-0.01, 0, "the words", ha="right", va="center")
    for layer in range(1, LAYERS + 1):
        panel.text(-0.01, layer, f"layer {layer}", ha="right", va="center", color=GREY)
        panel.axhline(layer, color=GREY, linewidth=0.3, zorder=0)
    title = panel.set_title(" ", loc="left")
    (read_off,) = panel.plot([0, 0], [0.35, LAYERS + 0.5], color=QUERY, linewidth=28, alpha=0.1, zorder=0)
    words = [panel.text(0, 0, "", ha="center", va="center", fontsize=10, bbox=_card()) for _ in range(ROOM)]
    discs = panel.scatter([], [], zorder=2)
    cells = [(layer, n) for layer in range(1, LAYERS + 1) for n in range(ROOM)]
    numbers = {cell: panel.text(0, cell[0] - 0.42, "", ha="center", va="center") for cell in cells}

    def update(sentence: str, layers: int, mask: str) -> None:
        tokens = read(sentence, at_least=LEAST)
        order = exchanged(tokens)
        x = word_vectors(tokens, WIDTH)
        places = ((torch.arange(ROOM) + 0.5) / len(tokens)).tolist()
        for n, word in enumerate(words):
            colour, weight = (
                QUERY if n == len(x) - 1 else "black",
                "normal" if order[n : n + 1] == [n] else "bold",
            )
            text = short(tokens[order[n]], 8) if n < len(x) else ""
            word.set(x=places[n], text=text, color=colour, weight=weight)
        read_off.set_xdata([places[len(x) - 1]] * 2)

        shares = {}
        for layer in range(1, layers + 1):
            before, after = (residual_attention(rows, layer, causal=mask == "causal") for rows in (x, x[order]))
            shares |= {(layer, n): share for n, share in enumerate(_moved(before[order], after).tolist())}
        for (layer, n), number in numbers.items():
            share = shares.get((layer, n))
            colour = QUERY if n == len(x) - 1 else "black"
            number.set(x=places[n], text="" if share is None else f"{share:.2f}", color=colour)
        discs.set_offsets([(places[n], layer) for layer, n in shares])
        discs.set_sizes([400 * share if share > 1e-9 else 0 for share in shares.values()])
        discs.set_color([QUERY if n == len(x) - 1 else GREY for _, n in shares])
        swapped = " and ".join(f"“{short(tokens[n])}”" for n, place in enumerate(order) if n != place)
        title.set_text(f"{swapped} have changed places. How far has each word's state moved? (share of its length)")

    return Live(
        figure,
        update,
        moving={"title": title, "read off": read_off, "discs": discs}
        | {f"word {n}": word for n, word in enumerate(words)}
        | {f"number {layer}, {n}": number for (layer, n), number in numbers.items()},
        controls={
            "sentence": sentence or sentence_box(),
            "layers": slider("layers", 1, LAYERS),
            "mask": choice("mask", ["causal", "none"]),
        },
        alt="The words of the sentence in a row, two of them exchanged. Above each word, a disc for every layer, with a "
        "number: how far the word's state after that layer is from its state in the other sentence, relative to its "
        "length. The last word, which is read off, is blue.",
    )


def norms_by_position(causal: Tensor, bidirectional: Tensor) -> Live:
    """Length of the attention output against the position, both (T,), on logarithmic axes."""
    figure = canvas(8, 3.2)
    panel = figure.subplots()
    seen = range(1, len(causal) + 1)
    moving = {
        "causal": panel.loglog(seen, causal.numpy(), color="black", label="causal")[0],
        "bidirectional": panel.loglog(seen, bidirectional.numpy(), color=GREY, linestyle="--", label="without a mask")[
            0
        ],
    }
    panel.set_xlabel("tokens that a causal row sees, m + 1")
    panel.set_ylabel("length of the output")
    log_axis(panel.xaxis, [1, 4, 16, 64, 256])
    log_axis(panel.yaxis, [0.25, 0.5, 1, 2, 4])
    panel.legend()
    return Live(
        figure,
        lambda: None,
        moving=moving,
        controls={},
        alt="Length of the attention output against the position, both axes logarithmic: the causal line falls, "
        "the line without a mask is level.",
    )


def right_by_places(shares: Tensor) -> Live:
    """Share of right answers to "is a before b?" by the places of the two, (T, T), NaN where both are the same."""
    figure = canvas(8, 3.2)
    panel = figure.add_subplot()
    image = panel.imshow(shares.numpy(), cmap=MAGNITUDE, vmin=0, vmax=1, aspect="auto")
    panel.set(xlabel="place of b", ylabel="place of a")
    figure.colorbar(image, label="share right", ticks=[0, 0.5, 1])
    return still(
        figure,
        alt="Map with a row for each place of a and a column for each place of b: the share of right answers when a and "
        "b stand there.",
    )


def _card() -> dict:
    """What a word is written on, so that a full stop is seen, too."""
    return {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": GREY, "linewidth": 0.6}


def _layer(rows: Tensor) -> Tensor:
    """One layer of attention without a mask, (T, WIDTH) → the same."""
    w_query, w_key, w_value = projections(WIDTH)
    return attention(rows @ w_query, rows @ w_key, rows @ w_value)


def _moved(before: Tensor, after: Tensor) -> Tensor:
    """How far vectors have moved, as a share of their length, (…, d) → (…)."""
    return (after - before).norm(dim=-1) / before.norm(dim=-1)
