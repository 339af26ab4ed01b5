"""Where the angles of pairs end beyond the trained length, with and without a method."""

import math
from collections.abc import Callable, Mapping

import torch
from matplotlib.patches import Circle, Wedge
from torch import Tensor

from posenc.chapters.longer_than_trained.configuration import Rotation, rotations
from posenc.chapters.longer_than_trained.published import CONFIGURATIONS
from posenc.lesson.controls import choice, slider, switch
from posenc.lesson.drawing import bare
from posenc.lesson.live import Live, canvas
from posenc.lesson.palette import GREY, SEEN, TURNED
from posenc.rotary import angles
from posenc.stretching import dynamic_ntk, interpolated, llama3, longrope, ntk, yarn

PALE = "#E5E5E5"
TURN = 2 * math.pi
ONE = torch.tensor(1)

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
        bare(panel)
        shown = min(360.0, math.degrees(speeds[pair] * (trained - 1)))
        panel.add_patch(Circle((0, 0), 1, facecolor="white", edgecolor=GREY, linewidth=0.8))
        panel.add_patch(Wedge((0, 0), 1, 0, shown, facecolor="#E6DDB8", edgecolor="none"))
        (moving[f"hand {place}"],) = panel.plot([], [], color=TURNED, linewidth=2.5, solid_capstyle="round")
        moving[f"name {place}"] = panel.set_title(" ")
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
            hand.set(color=NEW if lost[pair] else TURNED, linestyle="--" if lost[pair] else "-")
            name.set_text(f"pair {pair}: {turns:,.{0 if turns >= 10 else 2}f} turns")
        stand = f"{int(lost.sum())} of 64 hands stand where no training text took them"
        moving["readout"].set_text(f"The last of {length:,} tokens: {stand}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={"power": slider("tokens, 2 to the power", 9.0, 17.0, value=12.0, step=0.25, stops=range(9, 18))},
        alt="Eight of the 64 pairs of a head as clocks, from the fastest to the slowest. The angles that a training text of "
        "4,096 tokens shows are shaded: the whole dial for fast pairs, a sector for slow ones. A hand stands at the "
        "angle of the last token; it is dashed and red where training never showed it.",
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
    slow = slice(round_once - 1, None)
    ends.fill_between(pairs[slow] + 0.5, 1e-2, turns[slow], color=SEEN, linewidth=0)
    ends.plot(pairs, turns, color=GREY, linewidth=1, linestyle=":", label="end of the training texts")
    ends.axhline(1, color=GREY, linewidth=0.6)
    moving = {}
    (moving["end"],) = ends.plot([], [], "o", color=TURNED, markersize=3, label="end of the longer text")
    new = {"color": NEW, "markersize": 5, "label": "an angle that training never showed"}
    (moving["new"],) = ends.plot([], [], "x", **new)
    ends.legend(loc="lower left")
    slowed.set_yscale("log", base=2)
    slowed.set(xlim=(-1, 64), ylim=(1 / 48, 1.3), xlabel="pair i")
    slowed.set_ylabel("speed / trained speed", labelpad=0)
    slowed.set_yticks([1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32], ["1", "1/2", "1/4", "1/8", "1/16", "1/32"])
    slowed.minorticks_off()
    others = {name: slowed.plot([], [], color=PALE, linewidth=1.5)[0] for name in METHODS}
    moving |= {f"grey {name}": line for name, line in others.items()}
    (moving["speed"],) = slowed.plot([], [], "o-", color=TURNED, markersize=3, linewidth=1)
    moving["left"], moving["right"] = ends.set_title(" "), slowed.set_title(" ")

    def update(method: str, scale: int) -> None:
        for name, line in others.items():
            stretched = METHODS[name](ONE, head_dim, scale=float(scale), trained_length=trained)
            line.set_data(pairs, stretched / angles(ONE, head_dim))
        ratio = torch.as_tensor(others[method].get_ydata())
        there = turns * ratio * scale
        unseen = (turns < 1) & (there > turns * (1 + 1e-9))
        moving["end"].set_data(pairs[~unseen], there[~unseen])
        moving["new"].set_data(pairs[unseen], there[unseen])
        moving["speed"].set_data(pairs, ratio)
        new_angles = f"{int(unseen.sum())} pairs with new angles"
        moving["left"].set_text(f"{method}, {scale * trained:,} positions: {new_angles}")
        full = f"{int((ratio > 1 - 1e-9).sum())} pairs at full speed"
        moving["right"].set_text(f"{full}, the slowest at {ratio.min():.3f} of it")

    return Live(
        figure,
        update,
        moving=moving,
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
    panel.set(xlim=(-0.02, 1.02), ylim=(1e-5, 1e5), ylabel="turns")
    panel.set_xlabel("pair, from the fastest to the slowest of the head")
    panel.set_xticks([0, 1], ["pair 0", "the last pair"])
    panel.axhline(1, color=GREY, linewidth=0.8)
    panel.text(0.0, 1.15, "once round", color=GREY, fontsize=9)
    seen, known, new = (
        panel.plot([], [], mark, color=colour, markersize=size, label=label)[0]
        for mark, colour, size, label in (
            ("o", GREY, 3, "at the end of T₀ positions, before its method"),
            ("o", TURNED, 3, "at the end of this text"),
            ("x", NEW, 5, "the same, an angle that T₀ positions don't show"),
        )
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
    (round_,) = panel.plot([], [], "o", color=TURNED, markersize=3)
    round_.set_label("comes round within the training texts")
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
