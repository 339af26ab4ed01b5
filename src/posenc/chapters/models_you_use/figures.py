"""What chapter 9 draws: scores of a text that moves on, four numbers taken apart, who asks what, clocks, padding."""

import copy
import math
from collections.abc import Callable, Mapping, Sequence

import matplotlib
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from torch import Tensor, nn

from posenc.chapters.models_you_use.checkpoints import (
    gpt2_terms,
    next_log_probabilities,
    small,
    without_scores,
)
from posenc.lesson.controls import choice, slider, switch
from posenc.lesson.drawing import bare, blank, signed
from posenc.lesson.live import Live, canvas, still
from posenc.lesson.palette import (
    ADDED,
    BIAS,
    CONTENT,
    GREY,
    MAGNITUDE,
    NONE,
    POSITION,
    SIGNED,
    SKY,
    TURNED,
    VALUE,
)
from posenc.probe import (
    Questions,
    energies,
    orthogonal_texts,
    questions,
    rotation,
    scores,
    some_tokens,
    tabulate,
)
from posenc.tasks import CHARACTERS, character_text
from posenc.terms import centre

SHARES = {  # what a share is called in a picture, and its colour
    "content_content": ("content → content", CONTENT),
    "content_position": ("content → position", SKY),
    "position_content": ("position → content", VALUE),
    "position_position": ("position → position", POSITION),
    "together": ("together", TURNED),
}
TURNING = ("Llama", "Qwen2", "GPT-NeoX", "GPT-J", "Falcon", "RoFormer", "Gemma 3", "Gemma 4", "SmolLM3")
TURNING += ("gpt-oss", "DeepSeek V3", "Qwen3-Next")
FAMILIES = dict.fromkeys(("GPT-2", "OPT", "BERT"), ADDED) | dict.fromkeys(TURNING, TURNED)
FAMILIES |= dict.fromkeys(("BLOOM", "MPT", "T5", "DeBERTa"), BIAS)
SIX = ("GPT-2", "BERT", "Llama", "Falcon", "BLOOM", "T5")
SENTENCE = "the dog bit the man"
PADDINGS = range(21)
AXES = ("time", "height", "width")


def moved_on(treat: Callable[[Tensor], Tensor] | None = None) -> Live:
    """The scores of one sentence in six models, while the sentence moves to later positions.

    Args:
        treat: what is done to the scores of a head, shape (T, T) with -inf at hidden keys, before they are drawn.
            Without it the sentence starts unmoved, since a prediction stands in front of that figure; with it, 12 on.
    """
    text = torch.tensor([CHARACTERS.index(character) for character in SENTENCE])
    length, furthest = len(text), 20
    seen: dict[str, list[Tensor]] = {}
    for name in SIX:
        model = small(name)
        stops = text.new_full((furthest,), CHARACTERS.index("."))
        moved = [torch.cat([stops[:far], text]) for far in range(furthest + 1)]
        heads = [scores(model, longer)[0, -length:, -length:] for longer in moved]
        seen[name] = [treat(head) if treat else head for head in heads]
    figure = canvas(8, 5.3)
    figure.get_layout_engine().set(hspace=0.06)
    moving: dict = {}
    for axes, name in zip(figure.subplots(2, 3).flat, SIX):
        finite = torch.stack(seen[name])
        finite = finite[finite.isfinite()]
        limits = {"vmin": finite.min().item(), "vmax": finite.max().item()}
        moving[name] = axes.pcolormesh([[0.0] * length] * length, cmap=MAGNITUDE, **limits)
        bare(axes).set(ylim=(length, 0), aspect="equal", title=name)
        moving[f"{name}, readout"] = axes.text(length / 2, length + 1.8, " ", ha="center", va="center")
    for axes in figure.axes[::3]:
        axes.set_ylabel("token that asks")

    def update(far: int) -> None:
        for name, heads in seen.items():
            now, first = heads[far], heads[0]
            moving[name].set_array(now.masked_fill(now.isinf(), torch.nan).numpy())
            visible = first.isfinite()
            change = (now - first)[visible].abs().max() / (first[visible].max() - first[visible].min())
            words = "unchanged" if change < 1e-4 else f"changed by up to {change:.0%}"
            moving[f"{name}, readout"].set_text(words)

    return Live(
        figure,
        update,
        moving=moving,
        controls={"far": slider("moved on by", 0, furthest, unit="positions", value=12 if treat else 0)},
        alt=f"Six heat maps, each the scores of one head of a model for the characters of “{SENTENCE}”: "
        + ", ".join(SIX)
        + ". Below each stands how much its scores have changed, in percent of their range.",
    )


def two_by_two() -> Live:
    """Four scores, of two tokens at two positions, as a mean, a token's part, a position's part and a rest."""
    figure = blank(2.6)
    names = ("score", "mean", "which token", "which position", "together")
    colours = ("black", GREY, CONTENT, POSITION, TURNED)
    moving: dict = {}
    for panel, (name, colour) in enumerate(zip(names, colours)):
        axes = figure.add_axes((0.05 + 0.195 * panel, 0.3, 0.15, 0.46))
        moving[name] = axes.pcolormesh([[0.0, 0.0]] * 2, cmap=SIGNED, vmin=-6, vmax=6, edgecolor="white")
        bare(axes).set(xlim=(0, 2), ylim=(2, 0))
        axes.set_xticks([0.5, 1.5], ["at 0", "at 1"])
        axes.set_title(name, color=colour)
        axes.tick_params(length=0)
        if panel:
            axes.text(-0.3, 1, "=" if panel == 1 else "+", ha="center", va="center")
        for row in range(2):
            for column in range(2):
                number = axes.text(column + 0.5, row + 0.5, " ", ha="center", va="center")
                moving[f"{name} {row}{column}"] = number
            if not panel:
                axes.text(-0.15, row + 0.5, "ab"[row], ha="right", va="center")
        if panel > 1:
            moving[f"{name} share"] = axes.text(1, 2.85, " ", ha="center", va="center", color=colour)

    def update(last: float) -> None:
        score = torch.tensor([[5.0, 3.0], [2.0, last]])
        mean = score.mean()
        token, place = score.mean(1, keepdim=True) - mean, score.mean(0, keepdim=True) - mean
        parts = [score, mean, token, place, score - mean - token - place]
        parts = [part.expand(2, 2) for part in parts]
        whole = (score - mean).square().sum()
        for name, part in zip(names, parts):
            moving[name].set_array(part.numpy())
            for row in range(2):
                for column in range(2):
                    moving[f"{name} {row}{column}"].set_text(signed(part[row, column], ".3g"))
        for name, part in zip(names[2:], parts[2:]):
            moving[f"{name} share"].set_text(f"share {part.square().sum() / whole:.2f}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={"last": slider("score of b at 1", -2, 6, value=0, stops=(-2, 0, 2, 4, 6))},
        alt="Five small tables of two tokens by two positions: the scores, and what they are the sum of: their mean, a "
        "number for each token, a number for each position, and a rest. Below the last three stands the share of each.",
    )


def diagonals() -> Live:
    """BLOOM's scores of a text of one token, as they are and without each row's own; GPT-2's beside them."""
    length, figure = 24, canvas(8, 2.9)
    text = torch.full((length,), CHARACTERS.index("a"))
    bloom, gpt2 = (scores(small(name), text)[0] for name in ("BLOOM", "GPT-2"))
    panels = {
        "BLOOM, as it is": bloom,
        "BLOOM, less each row's own": bloom - bloom.diagonal()[:, None],
        "GPT-2, less each row's own": gpt2 - gpt2.diagonal()[:, None],
    }
    for axes, (name, seen) in zip(figure.subplots(1, 3, sharey=True), panels.items()):
        shown = seen.masked_fill(seen.isinf(), torch.nan)
        drawn = axes.pcolormesh(shown.numpy(), cmap=matplotlib.colormaps[MAGNITUDE])
        axes.set(xlabel="key position n", ylim=(length, 0), aspect="equal", title=name)
        bar = figure.colorbar(drawn, ax=axes, shrink=0.85)
        bar.locator = matplotlib.ticker.MaxNLocator(4)
    figure.axes[0].set_ylabel("query position m")
    return still(
        figure,
        alt="Three triangular heat maps of scores, query down and key across. BLOOM's own: upright stripes, each key "
        "its own value. Less the score at the query's own place: stripes along the diagonals. GPT-2's: neither.",
    )


def who_asks(found: Mapping[str, Questions]) -> Live:
    """The shares of each model's questions, and how far its places count for themselves.

    Args:
        found: name of the model → what `posenc.probe.questions` found.
    """
    figure = canvas(8, 1.1 + 0.25 * len(found))
    axes = figure.add_subplot()
    for row, asked in enumerate(found.values()):
        left = 0.0
        for share, (_, colour) in SHARES.items():
            width = asked.shares[share]
            axes.barh(row, width, left=left, color=colour, height=0.72)
            left += width
        drift = "none" if math.isnan(asked.drift) else f"{asked.drift:.2f}" if asked.drift > 1e-3 else "0"
        axes.text(1.015, row, drift, va="center")
    axes.text(1.015, -1.0, "drift", va="center")
    axes.set(xlim=(0, 1), ylim=(len(found) - 0.5, -1.4), xlabel="share of what the softmax sees")
    axes.set_yticks(range(len(found)), list(found))
    for row, name in enumerate(found):
        colour = FAMILIES.get(name, NONE)
        axes.plot([-0.006] * 2, [row - 0.36, row + 0.36], color=colour, linewidth=4, clip_on=False)
    axes.tick_params(axis="y", length=0, pad=8)
    patches = [matplotlib.patches.Patch(color=colour, label=name) for name, colour in SHARES.values()]
    figure.legend(handles=patches, loc="outside upper center", ncols=5, frameon=False, handlelength=1)
    return still(
        figure,
        alt="A bar a model, divided into what its scores depend on, with the drift beside it. "
        + "; ".join(f"{name}: {_in_words(asked)}" for name, asked in found.items()),
    )


def _in_words(asked: Questions) -> str:
    most = sorted(SHARES, key=lambda share: -asked.shares[share])[:2]
    return ", ".join(f"{SHARES[share][0]} {asked.shares[share]:.2f}" for share in most)


def two_answers(whole: Mapping[str, Sequence[float]], apart: Mapping[str, Sequence[float]]) -> Live:
    """Shares by the split and by the table of scores, with the constant in them and set apart.

    Args:
        whole: "split" and "table" → the shares of the four terms.
        apart: the same → the four, then the constant's with content and with position.
    """
    figure = canvas(8, 3.3)
    panels = figure.subplots(1, 2, sharey=True, width_ratios=(4, 6))
    names = [name.replace(" → ", " →\n") for name, _ in list(SHARES.values())[:4]]
    names += ["constant →\ncontent", "constant →\nposition"]
    for axes, shares, title in zip(panels, (whole, apart), ("the four terms", "the constant set apart")):
        for place, values in enumerate(zip(*shares.values())):
            axes.plot([place, place], values, color=GREY, linewidth=1)
        for (name, values), marker, face in zip(shares.items(), "os", ("black", "white")):
            label = {"split": "split of GPT-2's vectors", "table": "table of scores"}[name]
            axes.plot(values, marker, color="black", markerfacecolor=face, markersize=6, label=label)
        count = len(next(iter(shares.values())))
        axes.set(yscale="log", ylim=(3e-5, 1.5), xlim=(-0.5, count - 0.5), title=title)
        axes.set_xticks(range(count), names[:count])
        axes.tick_params(axis="x", labelsize=9)
    panels[0].set_ylabel("share")
    panels[0].legend(loc="lower left", frameon=False)
    return still(
        figure,
        alt="Two panels with a pair of dots for each term, on a logarithmic axis. Left, the split and the table of "
        "scores lie far apart where a position is asked for, most of all by a position; right, with the constant set "
        "apart, each pair lies close.",
    )


def table_scale(model: nn.Module) -> Live:
    """GPT-2 with its table of positions made fainter or louder: four panels of its scores, and the shares.

    Args:
        model: a GPT-2 whose tokens are the course's characters. It is not changed.
    """
    model = copy.deepcopy(model)
    table = getattr(model, "transformer", model).wpe.weight
    usual = table.detach().clone()
    text = torch.tensor([[CHARACTERS.index(character) for character in SENTENCE]])
    tokens = some_tokens(model, 11)
    drawn, length = orthogonal_texts(11), len(SENTENCE)
    visible = torch.ones(length, length, dtype=torch.bool).tril()
    kept: dict[float, tuple] = {}

    def measured(power: float) -> tuple[list[Tensor], Tensor, Tensor]:
        """The panels, the split's shares and those of the table of scores."""
        if power not in kept:
            with torch.no_grad():
                table.copy_(usual * 10**power)
            panels = [centre(term[0, 0], visible) for term in gpt2_terms(model, text)]
            split = torch.tensor(
                [sum(energies(tabulate(term, drawn)).values()) for term in gpt2_terms(model, tokens[drawn])]
            )
            asked = questions(model, tokens=tokens).shares
            kept[power] = panels, split / split.sum(), torch.tensor([asked[share] for share in SHARES])
        return kept[power]

    powers = [step / 4 for step in range(-8, 5)]
    limit = max(panel.abs().max().item() for panel in measured(0.0)[0])
    figure = canvas(8, 4.1)
    grid = figure.add_gridspec(2, 3, width_ratios=(1, 1, 1.6))
    moving: dict = {}
    cells = [figure.add_subplot(grid[row, column]) for row in range(2) for column in range(2)]
    for axes, (share, (name, _)) in zip(cells, SHARES.items()):
        moving[share] = axes.pcolormesh([[0.0] * length] * length, cmap=SIGNED, vmin=-limit, vmax=limit)
        bare(axes).set(ylim=(length, 0), aspect="equal", title=name)
    cells[0].set_ylabel("query")
    cells[2].set(ylabel="query", xlabel="key")
    cells[3].set_xlabel("key")
    figure.colorbar(moving["content_content"], ax=cells, shrink=0.7, label="score, less its row's mean")
    axes = figure.add_subplot(grid[:, 2])
    names, colours = zip(*SHARES.values())
    bars = axes.bar(range(5), [0.0] * 5, color=colours, width=0.7)
    moving |= {f"bar {index}": bar for index, bar in enumerate(bars)}
    (moving["split"],) = axes.plot([], [], "o", color="black", markersize=5)
    axes.set(ylim=(0, 1.02), ylabel="share", title="bars: table of scores · dots: split")
    axes.set_xticks(range(5), [name.replace(" → ", " →\n") for name in names], rotation=90)

    def update(power: float) -> None:
        panels, split, asked = measured(power)
        for share, panel in zip(SHARES, panels):
            moving[share].set_array(panel.masked_fill(~visible, torch.nan).numpy())
        for bar, value in zip(bars, asked.tolist()):
            bar.set_height(value)
        moving["split"].set_data(range(4), split.tolist())

    for power in powers:
        measured(power)
    return Live(
        figure,
        update,
        moving=moving,
        controls={"power": slider("table times", -2.0, 1.0, unit="power of ten", value=0.0, step=0.25)},
        alt="Left, four triangular heat maps of the terms of GPT-2's first layer for “the dog bit the man”, character "
        "by character. Right, the shares of five questions as bars, found from outside, and as dots, from its vectors.",
    )


def clocks() -> Live:
    """The rotations that were read in Gemma 3 and 4, layer by layer, and in Qwen2-VL, axis by axis, as hands of clocks."""
    length = 64
    gemmas, qwen = {name: small(name) for name in ("Gemma 3", "Gemma 4")}, small("Qwen2-VL")
    layers = {
        name: [rotation(gemma, layer=layer, length=length) for layer in range(gemma.config.num_hidden_layers)]
        for name, gemma in gemmas.items()
    }
    counts, still_there = torch.arange(length), torch.zeros(length, dtype=torch.long)
    along = [torch.stack([counts if one == axis else still_there for one in AXES]) for axis in AXES]
    axes_of_qwen = {name: rotation(qwen, positions=positions) for name, positions in zip(AXES, along)}
    figure = canvas(8, 3.5)
    moving: dict = {}
    for row, axes in zip(("Gemma", "Qwen2-VL"), figure.subplots(2, 1)):
        _dials(axes, 8)
        moving[row] = axes.add_collection(LineCollection([], linewidths=3, capstyle="round"))
        moving[f"{row}, readout"] = axes.text(-1.2, 1.75, " ", va="center")
        for pair in range(8):
            moving[f"{row}, {pair}"] = axes.text(2.6 * pair, -1.75, " ", ha="center", va="center")

    def show(row: str, found, position: int, words: str) -> None:
        angles = dict(zip(found.pairs[:, 0].tolist(), found.angles[position].tolist()))
        speeds = dict(zip(found.pairs[:, 0].tolist(), found.speeds.tolist()))
        hands = [
            [(2.6 * pair, 0), (2.6 * pair + math.cos(angles.get(pair, 0)), math.sin(angles.get(pair, 0)))]
            for pair in range(8)
        ]
        moving[row].set_segments(hands)
        moving[row].set_color([TURNED if pair in angles else "#BBBBBB" for pair in range(8)])
        for pair in range(8):
            turn = _short(2 * math.pi / speeds[pair]) if pair in speeds else "still"
            moving[f"{row}, {pair}"].set_text(turn)
        moving[f"{row}, readout"].set_text(words)

    def update(model: str, layer: int, axis: str, position: int) -> None:
        show("Gemma", layers[model][layer], position, f"{model}, layer {layer}, position {position}")
        show("Qwen2-VL", axes_of_qwen[axis], position, f"Qwen2-VL, position {position} along {axis}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "model": choice("above", tuple(gemmas)),
            "layer": slider("layer", 0, 5),
            "axis": choice("axis of Qwen2-VL", AXES),
            "position": slider("position", 0, length - 1, value=5, stops=(1, 5, 20)),
        },
        alt="Two rows of eight clocks, one a pair of dimensions, with the positions that a full turn takes below each. "
        "Above, a layer of Gemma 3 or of Gemma 4; below, Qwen2-VL along one of its three axes. A clock that does not "
        "move is grey.",
    )


def _dials(axes: Axes, count: int) -> None:
    turn = torch.linspace(0, 2 * math.pi, 61)
    for place in range(count):
        axes.plot(2.6 * place + turn.cos().numpy(), turn.sin().numpy(), color=GREY, linewidth=0.8)
    axes.set(xlim=(-1.3, 2.6 * count + 1.6), ylim=(-2.1, 2.1), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.text(2.6 * count - 1.1, -1.75, "positions a turn", va="center")


def _short(number: float) -> str:
    return f"{number:.1f}" if number < 10 else f"{number:,.0f}" if number < 9999 else f"{number / 1000:,.0f}k"


def left_padding(models: Mapping[str, nn.Module]) -> Live:
    """By how much padding in front of a text moves what three models expect of each character.

    Args:
        models: three by name, which predict the course's characters: GPT-2, OPT and Llama.
    """
    text, count, length = character_text(held_out=True), 8, 44
    starts = torch.linspace(0, len(text) - length - 1, count).long()[:, None]
    passages, following = (text[starts + shift + torch.arange(length)] for shift in (0, 1))
    changes: dict[tuple[str, bool], list[Tensor]] = {}  # of all log-probabilities, for each padding
    for name, model in models.items():
        for silent in (False, True):
            asked = without_scores(model) if silent else model
            given = [next_log_probabilities(asked, passages, padding=padding) for padding in PADDINGS]
            changes[name, silent] = [each - given[0] for each in given]
    came = {key: [each.gather(-1, following[..., None])[..., 0] for each in change] for key, change in changes.items()}
    limit = 1.1 * max(each.abs().max().item() for change in came.values() for each in change)
    figure = canvas(8, 3.1)
    moving = {}
    for axes, name in zip(figure.subplots(1, len(models), sharey=True), models):
        axes.axhline(0, color=GREY, linewidth=0.8)
        for passage in range(1, count):
            (moving[f"{name}, {passage}"],) = axes.plot([], [], color=GREY, linewidth=0.8, alpha=0.5)
        (moving[f"{name}, 0"],) = axes.plot([], [], color=FAMILIES.get(name, NONE), linewidth=1.6)
        moving[f"{name}, readout"] = axes.text(0.03, 0.04, " \n ", transform=axes.transAxes)
        axes.set(xlim=(0, length - 1), ylim=(-1.35 * limit, limit), xlabel="place in the text")
        moving[f"{name}, title"] = axes.set_title(" ")
    figure.axes[0].set_ylabel("change of the log-probability\nof what came (nats)")

    def update(padding: int, silent: bool) -> None:
        for name in models:
            moving[f"{name}, title"].set_text(f"{name}, all scores 0" if silent else name)
            now = came[name, silent][padding]
            for passage in range(count):
                moving[f"{name}, {passage}"].set_data(range(length), now[passage].tolist())
            change = changes[name, silent][padding].abs().max()
            largest = f"{change:.2f}" if change > 0.005 else "below 0.01"
            moving[f"{name}, readout"].set_text(f"largest change {largest}\nloss {-now.mean():+z.3f}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "padding": slider("padding", 0, PADDINGS[-1], unit="tokens", stops=(0, 1, 8, 20)),
            "silent": switch("all scores set to 0"),
        },
        alt="By how much padding changes the log-probability of each next character of eight texts, for "
        + ", ".join(models)
        + ". Below stand the largest change of any log-probability in these texts and the change of the loss.",
    )
