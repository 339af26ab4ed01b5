"""What chapter 8 draws: what mistakes cost, which runs see them, matrices, bases, a cache's gap, and batches."""

import textwrap
from collections.abc import Mapping, Sequence

import torch
from matplotlib.collections import LineCollection
from torch import Tensor

from posenc.lesson.controls import choice, slider
from posenc.lesson.drawing import blank
from posenc.lesson.live import Live, canvas, still
from posenc.lesson.palette import ADDED, GREY, POSITION, SIGNED, TURNED
from posenc.probe import Convention, convention
from posenc.probe.agreement import QUIET
from posenc.tasks import CHARACTERS

LOUD = "#98001F"  # runs that disagree; no colour of the palette
PALE = "#EEEEEE"  # too little to matter
FLOOR = 1e-7  # where the bars of differences begin


def texts(written: Mapping[str, str], *, prompt: int) -> Live:
    """Texts under each other, in a typewriter's letters.

    Args:
        written: who wrote it → the text, the prompt in front.
        prompt: how many characters of each text were given.
    """
    figure = blank(1.0 * len(written))
    panel = figure.add_axes((0, 0, 1, 1))
    panel.set_axis_off()
    for row, (name, text) in enumerate(written.items()):
        top = 1 - (row + 0.1) / len(written)
        panel.text(0.02, top, name, weight="bold", va="top")
        marked = text[:prompt] + " ▸ " + text[prompt:]
        lines = textwrap.wrap(" ".join(marked.split()), 96)[:3]
        panel.text(0.02, top - 0.3 / len(written), "\n".join(lines), family="monospace", va="top")
    return still(figure, alt=f"What each wrote after the same {prompt} characters: {', '.join(written)}.")


def cost(losses: Mapping[str, Tensor]) -> Live:
    """What a mistake costs at each place.

    Args:
        losses: mistake → nats at each place, (T,); the first is the port without one.
    """
    right = next(iter(losses))
    length = len(losses[right])
    figure = canvas(8, 3.2)
    curve = figure.subplots()
    top = max(line[1:].max().item() for line in losses.values())
    curve.set(xlim=(0, length), ylim=(0, 1.1 * top), xlabel="characters read before", ylabel="loss (nats)")
    places = torch.arange(length).numpy()
    (wrong,) = curve.plot([], [], color=TURNED, linewidth=1.3, label="the port")
    curve.plot(places, losses[right].numpy(), color=GREY, linewidth=4, alpha=0.5, label="the model")
    (here,) = curve.plot([], [], color="black", linestyle=":", linewidth=1)
    curve.legend(loc="upper right")
    readout = curve.set_title(" ")

    def update(mistake: str, place: int) -> None:
        wrong.set_data(places, losses[mistake].numpy())
        here.set_data([place, place], [0, 1.1 * top])
        apart = "" if mistake == right else f", and {losses[mistake][place]:.2f} with the mistake"
        readout.set_text(f"after {place} characters: {losses[right][place]:.2f} nats{apart}")

    return Live(
        figure,
        update,
        moving={"wrong": wrong, "here": here, "readout": readout},
        controls={
            "mistake": choice("mistake", list(losses)),
            "place": slider("place", 0, length - 1, unit="characters", value=7, stops=[0, 7, 31, length - 1]),
        },
        alt="The loss against the number of characters that were read before, of the model and of a port with the "
        "chosen mistake.",
    )


def runs(differences: Mapping[str, Mapping[str, float]]) -> Live:
    """Which of the runs that must agree a mistake sets apart.

    Args:
        differences: mistake → run → the largest difference of a log-probability; the first is the port without one.
    """
    right = next(iter(differences))
    names = list(differences[right])
    figure = canvas(8, 2.7)
    bars = figure.subplots()
    bars.set_xscale("log")
    bars.set(
        xlim=(FLOOR, 100),
        ylim=(len(names) - 0.4, -0.6),
        xlabel="largest difference of a log-probability (nats)",
    )
    bars.set_yticks(range(len(names)), names)
    bars.axvline(QUIET, color="black", linestyle="--", linewidth=1)
    lines = LineCollection([], linewidths=8)
    bars.add_collection(lines)
    said = bars.set_title(" ")

    def update(mistake: str) -> None:
        sizes = [max(differences[mistake][run], FLOOR) for run in names]
        lines.set_segments([[(FLOOR, row), (size, row)] for row, size in enumerate(sizes)])
        lines.set_color([LOUD if size > QUIET else GREY for size in sizes])
        loud = [run for run, size in zip(names, sizes) if size > QUIET]
        said.set_text(f"{mistake}: {'these disagree: ' + ', '.join(loud) if loud else 'all agree'}")

    return Live(
        figure,
        update,
        moving={"bars": lines, "said": said},
        controls={"mistake": choice("mistake", list(differences))},
        alt="For each run that must agree with the plain one, the largest difference of a log-probability on a "
        "logarithmic axis; those beyond a dashed line disagree.",
    )


_PORTS = {  # what stands beside the rotation that the weights know
    "interleaved": {"layout": "interleaved"},
    "clockwise": {"direction": -1},
    "half of the head": {"rotary_dim": 8},
    "base 100": {"base": 100.0},
    "offset 2": {"offset": 2},
    "table of neighbours": None,
}


def _mixed_table(x: Tensor, positions: Tensor) -> Tensor:
    """The turn of halves with the angles of neighbours."""
    speeds = 10_000 ** (-torch.arange(0, x.shape[-1], 2).double() / x.shape[-1])
    theta = (positions[:, None] * speeds).repeat_interleave(2, dim=-1).to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return x * theta.cos() + torch.cat([-second, first], dim=-1) * theta.sin()


def matrices() -> Live:
    """R(p) of the rotation that the weights know, of a port's, and the port's name."""
    size = 16
    right = Convention(size)
    ports = {name: Convention(size, **changes).rotate if changes else _mixed_table for name, changes in _PORTS.items()}
    names = {name: repr(convention(rotate, size)) for name, rotate in ports.items()}
    units = torch.eye(size)[:, None, None]  # (B, H, T, d)
    figure = canvas(8, 4.4)
    panels = figure.subplots(1, 2)
    images = []
    for panel, title in zip(panels, ("the model's R(p)", "the port's R(p)")):
        images.append(panel.imshow(torch.zeros(size, size).numpy(), cmap=SIGNED, vmin=-1, vmax=1))
        panel.set(xlabel="dimension before", xticks=range(0, size, 2), yticks=range(0, size, 2), title=title)
    panels[0].set_ylabel("dimension after")
    figure.colorbar(images[0], ax=panels, shrink=0.8, label="entry of R(p)")
    read = figure.supxlabel(" \n ", x=0.02, ha="left")

    def update(port: str, position: int) -> None:
        for image, rotate in zip(images, (right.rotate, ports[port])):
            image.set_data(rotate(units, torch.tensor([position]))[:, 0, 0].T.numpy())
        lines = textwrap.wrap(names[port].split("; probed")[0], 118)
        read.set_text("\n".join([*lines, " "][:2]))  # always two, so that the maps stand still

    return Live(
        figure,
        update,
        moving={"right": images[0], "port": images[1], "read": read},
        controls={
            "port": choice("port", list(_PORTS)),
            "position": slider("position p", 0, 40, value=3, stops=[0, 1, 3, 10, 40]),
        },
        alt="Two maps of 16 by 16 numbers, the matrix by which position p turns a head: of the model, whose pairs are "
        "dimensions 8 apart, and of a port. Below, what the probe calls the port's rotation.",
    )


def bases(powers: Tensor, losses: Mapping[int, Tensor], *, trained: float = 4.0, head_dim: int = 16) -> Live:
    """The loss with other bases at two contexts, and how far the pairs are off at the end of each.

    Args:
        powers: the bases' powers of ten, ascending, evenly spaced.
        losses: context → nats with each base, the same length as powers.
        trained: the power of the base that the weights know.
        head_dim: size of a head.
    """
    figure = canvas(8, 3.4)
    curve, pairs_off = figure.subplots(1, 2, width_ratios=[1.25, 1])
    low = min(line.min().item() for line in losses.values())
    high = max(line.max().item() for line in losses.values())
    room = 0.08 * (high - low)
    curve.set(xlim=(float(powers[0]), float(powers[-1])), ylim=(low - room, high + 2 * room))
    curve.set(xlabel="base, as a power of ten", ylabel="loss (nats)")
    curve.axvline(trained, color=GREY, linestyle=":", linewidth=1.2)
    pair = torch.arange(head_dim // 2)
    pairs_off.set_yscale("log")
    pairs_off.set(xlim=(-0.5, len(pair) - 0.5), ylim=(1e-4, 300), xlabel="pair i", ylabel="off by (radians)")
    pairs_off.axhspan(1e-4, 0.1, color=PALE)
    moving = {"readout": curve.set_title(" "), "off": pairs_off.set_title(" ")}
    for (context, line), colour, style in zip(losses.items(), (ADDED, TURNED), ("--", "-")):
        label = f"{context} characters"
        curve.plot(powers.numpy(), line.numpy(), color=colour, linestyle=style, linewidth=1.8, label=label)
        (moving[f"{context}, here"],) = curve.plot([], [], "o", color=colour, clip_on=False, in_layout=False)
        (moving[f"{context}, pairs"],) = pairs_off.plot([], [], "o", linestyle=style, color=colour, markersize=4)
    curve.legend(loc="upper center")

    def update(power: float) -> None:
        index = int((powers - power).abs().argmin())
        exponent = -2 * pair.double() / head_dim
        off = (10 ** (power * exponent) - 10 ** (trained * exponent)).abs()
        for context, line in losses.items():
            moving[f"{context}, here"].set_data([power], [line[index].item()])
            moving[f"{context}, pairs"].set_data(pair.numpy(), (context * off).clamp(min=1e-4).numpy())
        shown = ", ".join(f"{line[index]:.2f} with {context}" for context, line in losses.items())
        moving["readout"].set_text(f"base {10**power:,.0f}: {shown}")
        large = sum((context * off > 0.1).sum().item() for context in list(losses)[:1])
        moving["off"].set_text(f"{large} of {len(pair)} pairs are off by more than 0.1 after {min(losses)}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "power": slider(
                "base, power of ten",
                float(powers[0]),
                float(powers[-1]),
                value=trained + 7 * float(powers[1] - powers[0]),
                step=float(powers[1] - powers[0]),
            )
        },
        alt="Left, the loss against the base of the port's rotation, one curve a context; a dotted line marks the base "
        "of the training. Right, by how many radians each pair is off at the end of each context, on a logarithmic "
        "axis; less than 0.1 is shaded.",
    )


def gap(lengths: Sequence[int], chances: Mapping[str, Tensor], names: Mapping[str, str], *, text: int = 0) -> Live:
    """The next character after a prompt, read as a whole and decoded with a cache.

    Args:
        lengths: of the prompts, ascending, evenly spaced.
        chances: mistake → log-probability of every character after each prompt, (prompts, texts, characters); the
            first is the port without one.
        names: of characters that cannot be seen.
        text: the one whose probabilities are shown.
    """
    right, *mistakes = chances
    gaps = {name: (chances[name] - chances[right]).abs().amax(dim=-1) for name in mistakes}  # (prompts, texts)
    figure = canvas(8, 3.4)
    curve, bars = figure.subplots(1, 2, width_ratios=[1.25, 1])
    top = max(line[:, text].max().item() for line in gaps.values())
    curve.set(xlim=(lengths[0], lengths[-1]), ylim=(0, 1.2 * top))
    curve.set(xlabel="length of the prompt (characters)", ylabel="gap (nats)")
    (mean,) = curve.plot([], [], color=TURNED, linewidth=2, label=f"mean of {gaps[mistakes[0]].shape[1]} texts")
    (one,) = curve.plot([], [], color=TURNED, linewidth=1, alpha=0.35, label="one text")
    (here,) = curve.plot([], [], "o", color="black", clip_on=False, in_layout=False)
    curve.legend(loc="upper left", ncols=2)
    shown = 6
    bars.set(xlim=(0, 1), ylim=(shown + 0.8, -0.6), xlabel="probability", yticks=[])
    both = {
        "right": (LineCollection([], linewidths=8, colors=GREY), -0.17, "the whole text at once"),
        "wrong": (LineCollection([], linewidths=8, colors=TURNED), 0.17, "decoded with the cache"),
    }
    for artist, _, name in both.values():
        bars.add_collection(artist)
        bars.plot([], [], color=artist.get_color()[0], linewidth=8, label=name)
    bars.legend(loc="lower right")
    labels = [bars.text(-0.02, row, " ", ha="right", va="center", family="monospace") for row in range(shown)]
    readout = bars.set_title(" ")

    def update(mistake: str, prompt: int) -> None:
        index = min(range(len(lengths)), key=lambda i: abs(lengths[i] - prompt))
        mean.set_data(list(lengths), gaps[mistake].mean(dim=1).numpy())
        one.set_data(list(lengths), gaps[mistake][:, text].numpy())
        here.set_data([lengths[index]], [gaps[mistake][index, text].item()])
        likely = chances[right][index, text].topk(shown).indices.tolist()
        for row, code in enumerate(likely):
            labels[row].set_text(names.get(CHARACTERS[code], CHARACTERS[code]))
        for name, (artist, shift, _) in zip((right, mistake), both.values()):
            found = chances[name][index, text, likely].exp().tolist()
            artist.set_segments([[(0, row + shift), (x, row + shift)] for row, x in enumerate(found)])
        readout.set_text(f"after {lengths[index]} characters: gap {gaps[mistake][index, text]:.2f}")

    moving = {name: artist for name, (artist, _, _) in both.items()}
    moving |= {f"label {row}": label for row, label in enumerate(labels)}
    return Live(
        figure,
        update,
        moving=moving | {"mean": mean, "one": one, "here": here, "readout": readout},
        controls={
            "mistake": choice("mistake", mistakes),
            "prompt": slider(
                "prompt",
                int(lengths[0]),
                int(lengths[-1]),
                unit="characters",
                value=int(lengths[len(lengths) // 2]),
                step=int(lengths[1] - lengths[0]),
            ),
        },
        alt="Left, the largest difference of a log-probability that decoding with the cache makes, against the length "
        "of the prompt: the mean of the texts, and one of them faint. Right, the probabilities of the likeliest next "
        "characters of that one, with the whole text at once and decoded with the cache.",
    )


_LONG, _SHORT = "the cat sat on it", "a dog ran"  # the rows of a padded batch


def padding() -> Live:
    """Two rows of different lengths, padded on the left: which position each token gets, and how far two stand apart."""
    figure = blank(2.6)
    panel = figure.add_axes((0, 0, 1, 1), xlim=(0, 9.2), ylim=(2.45, -0.55))
    panel.set_axis_off()
    panel.spines[:].set_visible(False)
    words, short = _LONG.split() + ["."], _SHORT.split() + ["."]
    width = len(words)
    squares, numbers = [], []
    for row in range(2):
        for column in range(width):
            squares.append(
                panel.text(
                    column + 0.8,
                    row,
                    " ",
                    ha="center",
                    va="center",
                    family="monospace",
                    bbox={"boxstyle": "square"},
                )
            )
            numbers.append(panel.text(column + 0.8, row + 0.42, " ", ha="center", va="center", color=POSITION))
    panel.text(7.0, 0, "the long text", va="center")
    panel.text(7.0, 1, "the short text", va="center")
    panel.text(7.0, 0.42, "positions", va="center", color=POSITION)
    said = panel.text(0.5, 2.15, " ", va="center")

    def update(counted: str, length: int) -> None:
        pad = width - length
        rows = [words, ["pad"] * pad + short[len(short) - length :]]
        for row, tokens in enumerate(rows):
            for column, word in enumerate(tokens):
                own = row == 0 or column >= pad
                place = column if row == 0 or counted == _COUNTED[0] else max(column - pad, 0)
                square, number = squares[row * width + column], numbers[row * width + column]
                square.set_text(f"{word:^3}")
                square.set_color("black" if own else GREY)
                square.get_bbox_patch().set(facecolor="white" if own else PALE, edgecolor="black" if own else GREY)
                number.set_text(str(place))
                number.set_alpha(1.0 if own else 0.35)
        first, last = ((0, length - 1), (pad, width - 1))[counted == _COUNTED[0]]
        said.set_text(f"short text: its last token at {last}, its first at {first}, so they are {last - first} apart")

    return Live(
        figure,
        update,
        moving={f"square {i}": square for i, square in enumerate(squares)}
        | {f"number {i}": number for i, number in enumerate(numbers)}
        | {"said": said},
        controls={
            "counted": choice("positions", _COUNTED),
            "length": slider("short text", 2, 4, value=4, unit="tokens"),
        },
        alt="A batch of two rows of tokens, the short one filled up on the left with padding, and below each token its "
        "position: as the columns are numbered, or counted from the first real token of each row.",
    )


_COUNTED = ("the columns'", "each row's own")


def packing(costs: Mapping[tuple[str, str], Tensor]) -> Live:
    """What the second of two packed texts costs more than alone.

    Args:
        costs: (model, way to pack) → nats a character.
    """
    models, ways = (list(dict.fromkeys(names)) for names in zip(*costs))
    figure = canvas(8, 2.7)
    panel = figure.subplots()
    for index, (model, colour) in enumerate(zip(models, (TURNED, ADDED))):
        rows = [row + 0.36 * (index - (len(models) - 1) / 2) for row in range(len(ways))]
        sizes = [float(costs[model, way]) for way in ways]
        panel.barh(rows, sizes, height=0.34, color=colour, label=model)
        for row, size in zip(rows, sizes):
            panel.text(max(size, 0) + 0.01, row, f"{size:.3f}", va="center")
    top = max(map(float, costs.values()))
    panel.set(xlim=(min(0, *map(float, costs.values())), 1.12 * top), ylim=(len(ways) - 0.5, -0.5))
    panel.set_yticks(range(len(ways)), [f"{way}" for way in ways])
    panel.set_xlabel("more than alone (nats a character)")
    if len(models) > 1:
        panel.legend(loc="lower right")
    return still(
        figure,
        alt="Bars: how much more the second of two packed texts costs than it costs alone, for "
        f"{' and '.join(models)}, packed in these ways: {'; '.join(ways)}.",
    )
