"""Chapter 5's figures: where angles end beyond the trained length, and what that costs."""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from matplotlib.patches import Circle, Wedge
from torch import Tensor

from posenc.chapters.longer_than_trained.configuration import Rotation, rotations
from posenc.chapters.longer_than_trained.judging import MEASURED, ROWS
from posenc.chapters.longer_than_trained.published import CONFIGURATIONS
from posenc.lesson.controls import choice, slider, switch
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
    "none, 2 layers": ("black", "--"),
    "rotary, 2 layers": (TURNED, ":"),
    "hybrid, 2 layers": (TURNED, "-."),
}


NEW = "#B2182B"  # an angle that training never showed


def hands() -> Live:
    """Eight pairs of a head of 128 as clocks: the angles that 4,096 positions have shown, and the hand at the end."""
    head_dim, trained = 128, 4096
    figure = canvas(8, 4.3)
    moving = {}
    speeds = angles(ONE, head_dim)
    pairs = [0, 16, 32, 44, 48, 52, 57, 63]
    for place, (pair, panel) in enumerate(zip(pairs, figure.subplots(2, 4).flat)):
        panel.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal")
        panel.axis("off")
        for spine in panel.spines.values():
            spine.set_visible(False)
        shown = min(360.0, math.degrees(speeds[pair] * (trained - 1)))
        panel.add_patch(Circle((0, 0), 1, facecolor="white", edgecolor=GREY, linewidth=0.8))
        panel.add_patch(Wedge((0, 0), 1, 0, shown, facecolor="#E6DDB8", edgecolor="none"))
        (moving[f"hand {place}"],) = panel.plot([], [], color=TURNED, linewidth=2.5, solid_capstyle="round")
        moving[f"name {place}"] = panel.set_title(" ")
    figure.suptitle(" ")
    moving["readout"] = figure.suptitle(" ")
    seen = speeds * (trained - 1)

    def update(power: float) -> None:
        length = round(2**power)
        ends = speeds * (length - 1)
        lost = (seen < TURN) & (ends % TURN > seen * (1 + 1e-9))
        for place, pair in enumerate(pairs):
            angle, turns = ends[pair].item(), ends[pair].item() / TURN
            hand, name = moving[f"hand {place}"], moving[f"name {place}"]
            hand.set_data([0, 0.92 * math.cos(angle)], [0, 0.92 * math.sin(angle)])
            hand.set_color(NEW if lost[pair] else TURNED)
            hand.set_linestyle("--" if lost[pair] else "-")
            name.set_text(f"pair {pair}: {turns:,.{0 if turns >= 10 else 2}f} turns")
        moving["readout"].set_text(
            f"The last of {length:,} tokens: {int(lost.sum())} of 64 hands stand where no training text took them"
        )

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "power": slider("tokens, 2 to the power", 9.0, 17.0, value=12.0, step=0.25, stops=range(9, 18))
        },
        alt="Eight of the 64 pairs of a head as clocks, from the fastest to the slowest. The angles that a training text of "
        "4,096 tokens shows are shaded: the whole dial for fast pairs, a sector for slow ones. A hand stands at the "
        "angle of the last token; it is dashed and red where training never showed it.",
    )


def dilution(weights: Tensor | None = None, lengths: Sequence[int] = (32, 256, 1024, 4096, 16_384)) -> Live:
    """The weight on one token, as more and more competitors stand at distances that training has shown.

    Args:
        weights: (lengths, seeds); made up unless given.
        lengths: of the texts.
    """
    if weights is None:
        weights = torch.linspace(1, 0.5, len(lengths))[:, None].expand(-1, 2)
    figure = canvas(8, 3.3)
    panel = figure.subplots()
    panel.set_xscale("log", base=2)
    panel.set(xlim=(lengths[0] * 0.8, lengths[-1] * 1.25), ylim=(0, 1.05), xlabel="tokens in the text")
    panel.set_ylabel("weight on the token three back")
    panel.set_xticks(lengths, [f"{length:,}" for length in lengths])
    panel.minorticks_off()
    lines = [
        panel.plot([], [], "o-", color=TURNED, alpha=0.6, linewidth=1.2, markersize=4)[0] for _ in weights.T
    ]
    readout = panel.set_title(" ")

    def update(place: int) -> None:
        for line, seed in zip(lines, weights.T.tolist()):
            line.set_data(lengths[: place + 1], seed[: place + 1])
        competitors = f"{lengths[place] - 1:,} competitors, all at trained distances"
        readout.set_text(f"{competitors}: weight {weights[place].mean():.2f}, the mean of the seeds")

    return Live(
        figure,
        update,
        moving={f"seed {n}": line for n, line in enumerate(lines)} | {"readout": readout},
        controls={"place": slider("length, short to long", 0, len(lengths) - 1)},
        alt="The weight of the better head on the token three back against the number of tokens in the text, one line a "
        "seed; every competitor stands at a distance that training has shown. The lines grow with the slider.",
    )


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
    short: Mapping[str, Mapping[str, Tensor]] | None = None,
    guessing: Mapping[str, float] | None = None,
) -> Live:
    """How often each encoding finds a fact: in a text as long as those of training, and further and further back.

    Args:
        found: task → encoding → share of right answers, (seeds, distances); made up unless given.
        distances: where the facts stood.
        trained: distances below this one stood in training texts.
        short: task → encoding → share in texts of the trained length, (seeds,).
        guessing: task → share that a guess finds.
    """
    if found is None:
        made_up = torch.linspace(1, 0.2, len(distances)).expand(2, -1)
        found = {"recall": {"rotary": made_up}, "the newest": {"none": made_up / 2}}
    short = short or {task: {name: share[:, 0] for name, share in row.items()} for task, row in found.items()}
    figure = canvas(8, 4.2)
    panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    moving, means, before = {}, {}, distances[0] / 1.9
    for panel, (task, curves) in zip(panels, found.items()):
        panel.set_xscale("log", base=2)
        panel.set(xlim=(before * 0.7, distances[-1] * 13), ylim=(0, 1.06), title=task)
        panel.set_xlabel("distance of the fact in a text of 256 tokens")
        panel.axvspan(distances[0] * 0.8, trained, color=SEEN, linewidth=0)
        close = {after for one, after in zip(distances, distances[1:]) if after < 1.6 * one}
        panel.set_xticks(
            [before, *distances], ["text\nof 32", *("" if each in close else str(each) for each in distances)]
        )
        panel.minorticks_off()
        if guessing:
            panel.axhline(guessing[task], color=GREY, linewidth=1, linestyle=":")
            panel.text(before * 0.75, guessing[task] + 0.015, "a guess", color=GREY, fontsize=9)
        for name, shares in curves.items():
            colour, line = STYLES[name]
            means[task, name] = shares.mean(0)
            panel.plot([before], [short[task][name].mean()], "o", color=colour, mfc="none", markersize=6)
            (moving[f"{task}, {name}"],) = panel.plot(
                [], [], color=colour, linestyle=line, marker="o", markersize=3.5, linewidth=1.8
            )
            moving[f"{task}, {name}, end"] = panel.text(0, 0, " ", color=colour, va="center", fontsize=9)
    panels[0].set_ylabel("share found, mean of the seeds")

    def update(place: int) -> None:
        for task, curves in found.items():
            ends = {name: means[task, name][place].item() for name in curves}
            for name, level in _apart(ends).items():
                mean = means[task, name][: place + 1].tolist()
                moving[f"{task}, {name}"].set_data(distances[: place + 1], mean)
                moving[f"{task}, {name}, end"].set_position((distances[place] * 1.15, level))
                moving[f"{task}, {name}, end"].set_text(f"{name} {mean[-1]:.2f}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={"place": slider("distance, near to far", 0, len(distances) - 1)},
        alt=f"Share of facts found against their distance, one panel a task ({' and '.join(found)}), one line an "
        f"encoding: {', '.join(dict.fromkeys(name for row in found.values() for name in row))}. Rings at the left are "
        f"the shares in texts of the trained length. Distances below {trained}, which stood in training texts, are "
        "shaded, and a dotted line marks what a guess finds. The lines grow with the slider, and their values stand at "
        "their ends.",
    )


def _apart(heights: Mapping[str, float], least: float = 0.065) -> dict[str, float]:
    """Heights for names that should stand at these heights and not on each other, from 0.03 to 1.02."""
    levels, above, below = {}, 1.02 + least, 0.03 - least
    for name in sorted(heights, key=heights.get, reverse=True):
        above = levels[name] = min(heights[name], above - least)
    for name in reversed(levels):
        below = levels[name] = max(levels[name], below + least)
    return levels


def worth(
    rows: Mapping[str, Sequence[Tensor]] | None = None, tuned: Mapping[str, Sequence[Tensor]] | None = None
) -> Live:
    """What each method finds far away and near by in a long text, and what it costs in a short one, a dot a seed.

    Args:
        rows: method → shares for recall far away, the newest far away, the newest near by, and the newest in short
            texts, each (seeds,); made up unless given.
        tuned: the same after a few steps of training; as `rows` unless given.
    """
    columns = (
        "recall\n240 back in 256",
        "the newest\n64 to 240 back",
        "the newest\n8 and 16 back",
        "the newest\nin texts of 32",
    )
    guesses = (1 / 12, 0.5, 0.5, 0.5)
    rows = {"made up": [torch.tensor([0.4, 0.5])] * 4} if rows is None else rows
    tuned = {name: [share / 2 for share in row] for name, row in rows.items()} if tuned is None else tuned
    names = list(rows)
    figure = canvas(8, 0.9 + 0.34 * len(names))
    panels = figure.subplots(1, 4, sharey=True)
    moving = {}
    for number, (panel, column) in enumerate(zip(panels, columns)):
        panel.set(xlim=(-0.04, 1.04), ylim=(len(names) - 0.5, -0.5), title=column)
        panel.set_yticks(range(len(names)), names)
        panel.set_xticks([0, 0.5, 1])
        panel.grid(axis="y", color=PALE, linewidth=0.8)
        panel.tick_params(length=0)
        panel.axvline(guesses[number], color=GREY, linewidth=1, linestyle=":")
        (moving[f"other {number}"],) = panel.plot([], [], "o", color=PALE, markersize=6)
        (moving[f"shown {number}"],) = panel.plot([], [], "o", color=TURNED, markersize=6, alpha=0.7)
    moving["readout"] = figure.supxlabel(" ")

    def update(steps: str) -> None:
        now, other = (rows, tuned) if steps == "untuned" else (tuned, rows)
        for number in range(4):
            for name, table in (("other", other), ("shown", now)):
                shares = [table[row][number] for row in names]
                moving[f"{name} {number}"].set_data(
                    torch.cat(shares),
                    torch.repeat_interleave(torch.arange(len(names)), torch.tensor([len(s) for s in shares])),
                )
        moving["readout"].set_text(f"share found, a dot a seed; dotted, a guess; {steps}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={"steps": choice("methods", ["untuned", "20 steps on long texts"])},
        alt=f"Share of facts found, one row a method ({', '.join(names)}), one dot a seed, in four panels: recall far away, "
        "the newest far away, the newest near by in a long text, and the newest in short texts. Dotted lines mark what a "
        "guess finds. The other choice stands behind in grey.",
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
    (new,) = ends.plot([], [], "x", color=NEW, markersize=5, label="an angle that training never showed")
    ends.legend(loc="lower left")
    slowed.set_yscale("log", base=2)
    slowed.set(xlim=(-1, 64), ylim=(1 / 48, 1.3), xlabel="pair i")
    slowed.set_ylabel("speed / trained speed", labelpad=0)
    slowed.set_yticks([1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32], ["1", "1/2", "1/4", "1/8", "1/16", "1/32"])
    slowed.minorticks_off()
    others = {name: slowed.plot([], [], color=PALE, linewidth=1.5)[0] for name in METHODS}
    (speed,) = slowed.plot([], [], "o-", color=TURNED, markersize=3, linewidth=1)
    left, right = ends.set_title(" "), slowed.set_title(" ")

    def update(method: str, scale: int) -> None:
        for name, line in others.items():
            stretched = METHODS[name](ONE, head_dim, scale=float(scale), trained_length=trained)
            line.set_data(pairs, stretched / angles(ONE, head_dim))
        ratio = torch.as_tensor(others[method].get_ydata())
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
        moving={f"grey {name}": line for name, line in others.items()}
        | {"end": end, "new": new, "speed": speed, "left": left, "right": right},
        controls={
            "method": choice("method", list(METHODS)),
            "scale": slider("scale s", 1, 32, unit="times", value=8, stops=[1, 2, 4, 8, 16, 32]),
        },
        alt="A head of 128, base 10,000, trained on 4096 positions. Left, how often every pair has come round at the "
        "end of a text s times longer, on a logarithmic axis; what training has shown is shaded, and pairs that meet "
        "a new angle are crosses. Right, each pair's speed relative to training: 1 as trained, 1/s with PI, and in "
        "between with the other methods, which stand behind in grey.",
    )


def models() -> Live:
    """For models that are in use: how far each pair has turned at the end of a text, and how far in training."""
    figure = canvas(8, 4)
    panel = figure.subplots()
    panel.set_yscale("log")
    panel.set(
        xlim=(-0.02, 1.02), ylim=(1e-3, 1e5), xlabel="pair, from the fastest to the slowest of the head"
    )
    panel.set_ylabel("turns")
    panel.set_xticks([0, 1], ["pair 0", "the last pair"])
    panel.axhline(1, color=GREY, linewidth=0.8)
    panel.text(0.0, 1.15, "once round", color=GREY, fontsize=9)
    (seen,) = panel.plot(
        [], [], "o", color=GREY, markersize=3, label="at the end of T₀ positions, before its method"
    )
    (known,) = panel.plot([], [], "o", color=TURNED, markersize=3, label="at the end of this text")
    (new,) = panel.plot(
        [], [], "x", color=NEW, markersize=5, label="the same, an angle that T₀ positions don't show"
    )
    panel.legend(loc="lower left")
    readout = panel.set_title("\n ")
    read: dict[str, Rotation] = {name: rotations(config)[0] for name, config in CONFIGURATIONS.items()}

    def update(model: str, own: bool, power: int) -> None:
        chosen, length = read[model], 2**power
        x = torch.linspace(0, 1, len(chosen.speeds))
        shown = chosen.trained_speeds * (chosen.before - 1) / TURN
        there = (chosen.speeds if own else chosen.trained_speeds) * (length - 1) / TURN
        lost = (shown < 1) & (there > shown * (1 + 1e-9))
        seen.set_data(x, shown)
        known.set_data(x[~lost], there[~lost])
        new.set_data(x[lost], there[lost])
        times = f"{chosen.method} ×{chosen.scale:g}" if own and chosen.scale != 1 else "angles as trained"
        readout.set_text(
            f"{model}: {len(x)} pairs, base {chosen.base:,.0f}, T₀ = {chosen.before:,}, {times}\n"
            f"a text of {length:,} tokens: {int(lost.sum())} pairs meet new angles"
        )

    return Live(
        figure,
        update,
        moving={"seen": seen, "known": known, "new": new, "readout": readout},
        controls={
            "model": choice("model", list(CONFIGURATIONS)),
            "own": switch("with the method of its configuration", value=True),
            "power": slider("length, 2 to the power", 9, 18, value=15),
        },
        alt="How often every pair of a model's head has turned, on a logarithmic axis, from the fastest to the slowest: at "
        "the end of the positions that its method counts from, and at the end of a text, with its own "
        "method or without. Crosses are pairs that meet an angle that those positions don't show.",
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
    (slow,) = panel.plot([], [], "x", color=NEW, markersize=5, label="does not: a longer text has new angles")
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
        panel.axhline(len(judged) - 0.5, color=NEW, linewidth=2)
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
