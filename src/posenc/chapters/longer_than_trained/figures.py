"""Chapter 5's figures: where angles end beyond the trained length, and what that costs."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from posenc.chapters.longer_than_trained.judging import MEASURED, ROWS
from posenc.lesson.controls import choice, slider
from posenc.lesson.live import Live, canvas, still
from posenc.lesson.palette import ADDED, BIAS, GREY, MAGNITUDE, NONE, SEEN, TURNED
from posenc.rotary import angles
from posenc.stretching import dynamic_ntk, interpolated, llama3, longrope, ntk, yarn

PALE = "#E5E5E5"
TURN = 2 * math.pi
ONE = torch.tensor(1)

# Colour and line of every encoding: a hue a family, a line a member.
STYLES = {
    "none": (NONE, "-"),
    "sinusoids": (ADDED, "-"),
    "rotary": (TURNED, "-"),
    "p-RoPE": (TURNED, "--"),
    "ALiBi": (BIAS, "-"),
    "T5": (BIAS, "--"),
    "none, 2 layers": (NONE, "--"),
    "rotary, 2 layers": (TURNED, ":"),
    "hybrid, 2 layers": (TURNED, "-."),
}


@dataclass(frozen=True)
class Model:
    """What a published configuration says of a model's rotation.

    Attributes:
        head_dim: how many dimensions of a head are turned.
        base: of the angles.
        trained: how many positions training has shown before any stretching.
        length: how many it is meant to read.
    """

    head_dim: int
    base: float
    trained: int
    length: int


MODELS = {
    "GPT-NeoX 20B": Model(24, 10_000.0, 2048, 2048),
    "Llama 2": Model(128, 10_000.0, 4096, 4096),
    "DeepSeek V3": Model(64, 10_000.0, 4096, 163_840),
    "Llama 3.1": Model(128, 500_000.0, 8192, 131_072),
    "Qwen 2.5": Model(128, 1_000_000.0, 32_768, 131_072),
    "Gemma 3 270M": Model(256, 1_000_000.0, 32_768, 32_768),
}


def shares_by_position(
    right: Mapping[str, Tensor] | None = None, *, first: int = 3, trained: int = 32
) -> Live:
    """Share of right answers against the position, one panel an encoding and one line a seed.

    Args:
        right: encoding → shares, (seeds, positions), drawn as means of eight positions; made up unless given.
        first: the position that the first share belongs to.
        trained: length of the training texts, shaded.
    """
    right = {"made up": torch.linspace(1, 0.2, 253).expand(2, -1)} if right is None else right
    figure = canvas(8, 2.5)
    panels = figure.subplots(1, len(right), sharey=True, squeeze=False)[0]
    for panel, (name, shares) in zip(panels, right.items()):
        colour, _ = STYLES.get(name, (TURNED, "-"))
        panel.axvspan(0, trained, color=SEEN, linewidth=0)
        groups = shares.unfold(-1, 8, 8).mean(dim=-1)  # eight positions at a time
        centres = first + 8 * torch.arange(groups.shape[1]) + 3.5
        panel.plot(centres.numpy(), groups.T.numpy(), color=colour, alpha=0.7, linewidth=1.2)
        panel.set(xlim=(0, first + shares.shape[1]), ylim=(0, 1.05), title=name)
    figure.supxlabel("position; shaded, the length of the training texts")
    figure.supylabel("share right")
    return still(
        figure,
        alt=f"Share of right answers against the position, one panel an encoding: {', '.join(right)}. "
        f"The first {trained} positions, which were trained, are shaded.",
    )


def dots(
    values: Mapping[str, Sequence[Tensor]] | None = None,
    *,
    series: Sequence[str] = ("made up",),
    measure: str = "share right",
    limits: tuple[float, float] = (0.0, 1.05),
) -> Live:
    """Every seed as a dot, one column a name, with several series beside each other.

    Args:
        values: name → for each series one number a seed, (seeds,); made up unless given.
        series: what the numbers beside each other are, one or two.
        measure: what is on the vertical axis.
        limits: of the vertical axis.
    """
    values = {"made up": [torch.tensor([0.4, 0.5])]} if values is None else values
    figure = canvas(8, 3)
    panel = figure.subplots()
    panel.set(xlim=(-0.5, len(values) - 0.5), ylim=limits, ylabel=measure)
    panel.set_xticks(range(len(values)), list(values))
    panel.grid(axis="y", color=PALE, linewidth=0.8)
    for index, name in enumerate(series):
        shift = 0.22 * (index - (len(series) - 1) / 2)
        x = [column + shift for column, row in enumerate(values.values()) for _ in row[index]]
        y = [seed for row in values.values() for seed in row[index].tolist()]
        filled = {"mfc": "none"} if index else {}  # two series at the most
        panel.plot(x, y, "os"[index], color=TURNED, **filled, markersize=6, alpha=0.7, label=name)
    if len(series) > 1:
        figure.legend(loc="outside upper right", ncols=len(series))
    return still(figure, alt=f"{measure}, one dot a seed: {', '.join(values)}; {', '.join(series)}.")


def needles(
    found: Mapping[str, Mapping[str, Tensor]] | None = None,
    distances: Sequence[int] = (8, 31, 240),
    *,
    trained: int = 32,
) -> Live:
    """How often each encoding finds a fact, against how far away it stands, for two tasks.

    Args:
        found: task → encoding → share of right answers, (seeds, distances); made up unless given.
        distances: where the facts stood.
        trained: distances below this one stood in training texts.
    """
    if found is None:
        made_up = torch.linspace(1, 0.2, len(distances)).expand(2, -1)
        found = {"recall": {"rotary": made_up}, "the newest": {"none": made_up / 2}}
    figure = canvas(8, 4.3)
    panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    moving, means = {}, {}
    for panel, (task, curves) in zip(panels, found.items()):
        panel.set_xscale("log", base=2)
        panel.set(
            xlim=(distances[0] * 0.85, distances[-1] * 1.2), ylim=(0, 1.04), xlabel="distance (positions)"
        )
        panel.axvspan(1, trained, color=SEEN, linewidth=0)
        panel.set_xticks(distances, [str(distance) for distance in distances])
        panel.minorticks_off()
        for name, shares in curves.items():
            colour, line = STYLES[name]
            means[task, name] = shares.mean(0)
            panel.plot(
                distances, means[task, name].numpy(), color=colour, linestyle=line, linewidth=1.8, label=name
            )
        (moving[f"{task}, here"],) = panel.plot([], [], color="black", linewidth=1, linestyle=":")
        (moving[f"{task}, means"],) = panel.plot([], [], "o", color="black", markersize=4)
        moving[f"{task}, readout"] = panel.set_title("\n\n\n ")
    panels[0].set_ylabel("share right, mean of the seeds")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(found["recall"])
    )

    def update(place: int) -> None:
        for task, curves in found.items():
            moving[f"{task}, here"].set_data([distances[place]] * 2, [0, 1.04])
            here = {name: means[task, name][place].item() for name in curves}
            moving[f"{task}, means"].set_data([distances[place]] * len(here), list(here.values()))
            parts = [f"{name} {share:.2f}" for name, share in here.items()]
            lines = [", ".join(parts[start : start + 3]) for start in range(0, len(parts), 3)]
            moving[f"{task}, readout"].set_text("\n".join([f"{task}, {distances[place]} back", *lines]))

    return Live(
        figure,
        update,
        moving=moving,
        controls={"place": slider("distance, near to far", 0, len(distances) - 1, value=len(distances) - 1)},
        alt=f"Share of facts found against their distance, one panel a task ({' and '.join(found)}), one line an "
        f"encoding: {', '.join(next(iter(found.values())))}. Distances below {trained}, which stood in training texts, "
        "are shaded. A dotted line marks the chosen distance, and the shares there stand above.",
    )


METHODS: Mapping[str, Callable[..., Tensor]] = {
    "as trained": lambda p, d, *, scale, trained_length: angles(p, d),
    "PI": lambda p, d, *, scale, trained_length: interpolated(p, d, scale=scale),
    "NTK": lambda p, d, *, scale, trained_length: ntk(p, d, scale=scale),
    "dynamic": lambda p, d, *, scale, trained_length: dynamic_ntk(
        p, d, scale=1, trained_length=trained_length, length=round(scale * trained_length)
    ),
    "YaRN": yarn,
    "llama3": llama3,
    "LongRoPE": lambda p, d, *, scale, trained_length: longrope(
        p,
        d,
        **dict.fromkeys(("short", "long"), _by_hand(d, scale, trained_length)),
        trained_length=trained_length,
        length=round(scale * trained_length),
    ),
}


def _by_hand(head_dim: int, scale: float, trained_length: int) -> list[float]:
    """A table for LongRoPE: scale for each pair that has not come round once in training, 1 for the others."""
    turns = trained_length * angles(ONE, head_dim) / TURN
    return torch.where(turns < 1, scale, 1.0).tolist()


def stretching() -> Live:
    """Where each method puts every pair's angle at the end of a longer text, beside what training has shown."""
    head_dim, trained = 128, 4096
    pairs = torch.arange(head_dim // 2)
    turns = trained * angles(ONE, head_dim) / TURN  # within the training texts
    round_once = int((turns >= 1).sum())
    figure = canvas(8, 3.9)
    ends, slowed = figure.subplots(1, 2)
    ends.set_yscale("log")
    ends.set(xlim=(-1, 64), ylim=(1e-2, 3e4), xlabel="pair i", ylabel="turns at the end of the text")
    ends.axvspan(-1, round_once - 0.5, color=SEEN, linewidth=0)
    ends.fill_between(
        pairs[round_once - 1 :] + 0.5, 1e-2, turns[round_once - 1 :], color=SEEN, linewidth=0, step=None
    )
    ends.plot(pairs, turns, color=GREY, linewidth=1, linestyle=":", label="end of the training texts")
    ends.axhline(1, color=GREY, linewidth=0.6)
    (end,) = ends.plot([], [], "o", color=TURNED, markersize=3, label="end of the longer text")
    (new,) = ends.plot(
        [], [], "x", color="#D55E00", markersize=5, label="an angle that training never showed"
    )
    ends.legend(loc="upper right")
    slowed.set_yscale("log", base=2)
    slowed.set(xlim=(-1, 64), ylim=(1 / 48, 1.3), xlabel="pair i")
    slowed.set_ylabel("speed / trained speed", labelpad=0)
    slowed.set_yticks([1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32], ["1", "1/2", "1/4", "1/8", "1/16", "1/32"])
    slowed.minorticks_off()
    (speed,) = slowed.plot([], [], "o-", color=TURNED, markersize=3, linewidth=1)
    left, right = ends.set_title(" "), slowed.set_title(" ")

    def update(method: str, scale: int) -> None:
        ratio = METHODS[method](ONE, head_dim, scale=float(scale), trained_length=trained) / angles(
            ONE, head_dim
        )
        there = turns * ratio * scale
        unseen = (turns < 1) & (there > turns * (1 + 1e-9))
        end.set_data(pairs[~unseen], there[~unseen])
        new.set_data(pairs[unseen], there[unseen])
        speed.set_data(pairs, ratio)
        left.set_text(f"{method}, {scale * trained:,} positions: {int(unseen.sum())} pairs with new angles")
        right.set_text(
            f"{int((ratio > 1 - 1e-9).sum())} pairs at full speed, the slowest at {ratio.min():.3f} of it"
        )

    return Live(
        figure,
        update,
        moving={"end": end, "new": new, "speed": speed, "left": left, "right": right},
        controls={
            "method": choice("method", list(METHODS)),
            "scale": slider("scale s", 1, 32, unit="times", value=8, stops=[1, 2, 4, 8, 16, 32]),
        },
        alt="A head of 128, base 10,000, trained on 4096 positions. Left, how often every pair has come round at the "
        "end of a text s times longer, on a logarithmic axis; what training has shown is shaded, and pairs that meet "
        "a new angle are crosses. Right, each pair's speed relative to training: 1 as trained, 1/s with PI, and in "
        "between with the other methods.",
    )


def models() -> Live:
    """For models that are in use, which pairs come round in training and in a longer text."""
    figure = canvas(8, 3.9)
    panel = figure.subplots()
    panel.set_yscale("log")
    panel.set(xlim=(-0.02, 1.02), ylim=(3, 2e7), xlabel="pair, from the fastest to the slowest of the head")
    panel.set_ylabel("wavelength (positions)")
    panel.set_xticks([0, 1], ["pair 0", "the last pair"])
    (seen,) = panel.plot([], [], "o", color=TURNED, markersize=3, label="came round in training")
    (late,) = panel.plot([], [], "x", color="#D55E00", markersize=5, label="comes round in this text only")
    (never,) = panel.plot([], [], "o", mfc="none", color=GREY, markersize=4, label="never comes round")
    (trained,) = panel.plot([], [], color=GREY, linewidth=6, alpha=0.4, label="training texts")
    (text,) = panel.plot([], [], color="black", linewidth=1.2, linestyle="--", label="this text")
    panel.legend(loc="upper left")
    readout = panel.set_title("\n ")

    def update(model: str, power: int) -> None:
        chosen, length = MODELS[model], 2**power
        wavelengths = TURN / angles(ONE, chosen.head_dim, base=chosen.base)
        x = torch.linspace(0, 1, len(wavelengths))
        met, rest = wavelengths <= chosen.trained, wavelengths > max(length, chosen.trained)
        for dots_, which in ((seen, met), (late, ~met & ~rest), (never, rest)):
            dots_.set_data(x[which], wavelengths[which])
        trained.set_data([-1, 2], [chosen.trained] * 2)
        text.set_data([-1, 2], [length] * 2)
        readout.set_text(
            f"{model}: {len(x)} pairs, base {chosen.base:,.0f}, trained on {chosen.trained:,}\n"
            f"in {length:,} positions {int((wavelengths > length).sum())} never complete a turn; "
            f"{int(met.sum())} met all their angles in training"
        )

    return Live(
        figure,
        update,
        moving={
            "seen": seen,
            "late": late,
            "never": never,
            "trained": trained,
            "text": text,
            "readout": readout,
        },
        controls={
            "model": choice("model", list(MODELS)),
            "power": slider("length, 2 to the power", 9, 20, value=17),
        },
        alt="The wavelength of every pair of a model's head on a logarithmic axis, from the fastest to the slowest, "
        "with lines at the trained length and at the length of a text: pairs that came round in training, pairs that "
        "come round in this text only, and pairs that never do.",
    )


def bases() -> Live:
    """Base and trained length → wavelengths, and the longest text in which no pair meets a new angle."""
    head_dim = 128
    pairs = torch.arange(head_dim // 2)
    figure = canvas(8, 3.8)
    panel = figure.subplots()
    panel.set_yscale("log")
    panel.set(xlim=(-1, 64), ylim=(3, 1e8), xlabel="pair i", ylabel="wavelength (positions)")
    seen = panel.fill_between([-1, 64], 3, 3, color=SEEN, linewidth=0)
    (round_,) = panel.plot(
        [], [], "o", color=TURNED, markersize=3, label="comes round within the training texts"
    )
    (slow,) = panel.plot(
        [], [], "x", color="#D55E00", markersize=5, label="does not: a longer text has new angles"
    )
    panel.legend(loc="upper left")
    readout = panel.set_title("\n ")

    def update(power: float, length: int) -> None:
        trained = 2**length
        wavelengths = TURN / angles(ONE, head_dim, base=10**power)
        met = wavelengths <= trained
        seen.set_verts([[(-1, 3), (64, 3), (64, trained), (-1, trained)]])
        round_.set_data(pairs[met], wavelengths[met])
        slow.set_data(pairs[~met], wavelengths[~met])
        longest = "any length" if met.all() else f"{trained:,} positions"
        turning = (trained / TURN) ** (head_dim / (head_dim - 2))
        readout.set_text(
            f"base {10**power:,.0f}, trained on {trained:,}: {int((~met).sum())} pairs never come round\n"
            f"no new angle up to {longest}; every pair comes round with a base up to {turning:,.0f}"
        )

    return Live(
        figure,
        update,
        moving={"seen": seen, "round": round_, "slow": slow, "readout": readout},
        controls={
            "power": slider("base, 10 to the power", 1.0, 7.0, value=4.0, step=0.5),
            "length": slider("trained, 2 to the power", 5, 17, value=12),
        },
        alt="The wavelengths of the 64 pairs of a head of 128 on a logarithmic axis, rising from 2π to almost 2π times "
        "the base. What fits into the training texts is shaded; pairs above it are crosses. The title says up to "
        "which length no pair meets a new angle.",
    )


def card(judged: Mapping[str, Mapping[str, float]] | None = None) -> Live:
    """The rows of some encodings beside those of the nine that are known.

    Args:
        judged: name → its row, as `posenc.judging.judge` returns it; made up unless given.
    """
    judged = {"made up": dict.fromkeys(ROWS, 0.5)} if judged is None else judged
    rows = {name: [row[column] for column in ROWS] for name, row in judged.items()} | {
        name: list(numbers) for name, numbers in MEASURED.items()
    }
    figure = canvas(8, 0.9 + 0.27 * len(rows))
    exact, shares = figure.subplots(1, 2, width_ratios=(2, 6))
    table = torch.tensor(list(rows.values()))
    for panel, columns in ((exact, slice(0, 2)), (shares, slice(2, None))):
        part = table[:, columns]
        picture = part if panel is shares else torch.zeros_like(part)
        image = panel.imshow(
            picture.numpy(), cmap=MAGNITUDE if panel is shares else "Greys", vmin=0, vmax=1, aspect="auto"
        )
        panel.set_xticks(range(part.shape[1]), [name.replace(" ", "\n", 1) for name in ROWS[columns]])
        panel.tick_params(length=0)
        panel.axhline(len(judged) - 0.5, color="#D55E00", linewidth=2)
        for (row, column), number in zip(
            torch.cartesian_prod(*map(torch.arange, part.shape)).tolist(), part.flatten()
        ):
            dark = panel is shares and number < 0.5
            shown = "∞" if math.isinf(number) else f"{number:.2f}"
            panel.text(column, row, shown, ha="center", va="center", color="white" if dark else "black")
    exact.set_yticks(range(len(rows)), list(rows))
    exact.set_title("change of the output")
    shares.set_yticks([])
    shares.set_title("share right")
    figure.colorbar(image, ax=shares, label="share right")
    return still(
        figure,
        alt=f"A card: rows for {', '.join(judged)} above those of nine known encodings, {', '.join(MEASURED)}; columns "
        f"{', '.join(ROWS)}.",
    )
