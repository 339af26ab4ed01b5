"""What chapter 2 draws: where encodings act, codes of positions, the clock behind a pair, and what a sum still holds."""

import math
from collections.abc import Mapping
from functools import partial

import torch
from matplotlib.patches import Rectangle
from torch import Tensor

from posenc.additive import Learned, binary, frequencies, sinusoidal
from posenc.geometry import cosines, nearest, off_diagonal
from posenc.lesson import drawing as draw
from posenc.lesson.controls import slider, switch
from posenc.lesson.drawing import drawing
from posenc.lesson.live import Live, canvas, still
from posenc.lesson.palette import (
    ADDED,
    BIAS,
    CONTENT,
    GREY,
    KEY,
    MAGNITUDE,
    POSITION,
    QUERY,
    SIGNED,
    TURNED,
    VALUE,
)


def where_encodings_act() -> Live:
    """A layer of attention as a drawing, and the three places where a position can enter."""
    panel = drawing(3.9)
    box = partial(draw.box, panel, width=2.0, height=0.9)
    arrow = partial(draw.arrow, panel, width=1.2)

    box(0.2, 3.1, "token x", CONTENT)
    box(4.6, 5.0, "query", QUERY)
    box(4.6, 3.1, "key", KEY)
    box(4.6, 1.2, "value", VALUE)
    box(9.0, 4.05, "score q·k", "black", width=2.3)
    panel.text(12.5, 4.5, "softmax", ha="center", va="center", fontsize=10)
    box(13.7, 2.6, "output", "black", width=2.1)
    for y in (5.45, 3.55, 1.65):
        arrow((2.2, 3.55), (4.6, y))
    arrow((6.6, 5.45), (9.0, 4.7))
    arrow((6.6, 3.55), (9.0, 4.3))
    arrow((11.3, 4.5), (11.9, 4.5))
    arrow((13.1, 4.3), (14.2, 3.5))
    arrow((6.6, 1.65), (13.7, 2.9))
    for x, y, to, words, colour in (
        (0.3, 6.4, (1.2, 4.0), "1  add to the embedding", ADDED),
        (5.0, 6.9, (7.5, 5.25), "2  turn query and key", TURNED),
        (10.4, 6.4, (10.1, 4.95), "3  add to the score", BIAS),
    ):
        panel.text(x, y, words, color=colour, fontsize=11, weight="bold")
        start = x + 0.9 if colour != TURNED else x + 2.3
        arrow((start, y - 0.15), to, colour=colour)
    arrow((7.3, 6.75), (7.5, 3.6), colour=TURNED)
    for x, y, words, colour in (
        (0.3, 0.15, "integers, binary digits,\nsinusoids, learned tables:\nthis chapter", ADDED),
        (7.8, 6.2, "rotary:\nchapter 4", TURNED),
        (11.9, 5.3, "T5, ALiBi:\nchapters 4, 5", BIAS),
    ):
        panel.text(x, y, words, color=colour, va="bottom" if y < 6 else "center")
    return still(
        panel.figure,
        alt="A token gives a query, a key and a value; query and key give a score; the softmax of the scores weighs the "
        "values. A position can enter at three places: added to the embedding (integers, binary digits, sinusoids, "
        "learned tables; this chapter), as a turn of query and key (rotary; chapter 4), or added to the score (T5, "
        "ALiBi; chapters 4 and 5).",
    )


def position_codes() -> Live:
    """Every position's binary and sinusoidal code as heat maps, and one position's vectors."""
    length, width = 64, 16
    codes = {
        "binary": binary(torch.arange(length + 1), width),
        "sinusoidal": sinusoidal(torch.arange(length + 1), width),
    }
    figure = canvas(8, 4.6)
    figure.set_layout_engine("none")
    moving = {}
    for column, (name, code) in enumerate(codes.items()):
        left = 0.08 + 0.43 * column
        whole = figure.add_axes((left, 0.42, 0.36, 0.5))
        mesh = whole.pcolormesh(code[:length].numpy(), cmap=SIGNED, vmin=-1, vmax=1)
        whole.set_ylim(length, 0)
        whole.set_xticks([])
        whole.set_yticks([0.5, 16.5, 32.5, 48.5], ["0", "16", "32", "48"])
        whole.set_title(name, loc="left")
        moving[f"{name}, step"] = whole.set_title(" ", loc="right")
        moving[f"{name}, row"] = whole.add_patch(
            Rectangle((0, 0), width, 1, fill=False, edgecolor="black", linewidth=1.5)
        )

        one = figure.add_axes((left, 0.12, 0.36, 0.25))
        one.set_xlim(0, width)
        one.set_ylim(-1.2, 1.2)
        one.set_xticks([j + 0.5 for j in range(0, width, 3)], [str(j) for j in range(0, width, 3)])
        one.set_yticks([-1, 0, 1], ["−1", "0", "1"])
        one.axhline(0, color=GREY, linewidth=0.5)
        one.set_xlabel("dimension")
        (moving[f"{name}, vector"],) = one.plot([], [], "o", markersize=5, color=POSITION)
        if not column:
            whole.set_ylabel("position")
            one.set_ylabel("value")
    figure.colorbar(mesh, cax=figure.add_axes((0.89, 0.42, 0.02, 0.5)), label="value")

    def update(position: int) -> None:
        for name, code in codes.items():
            moving[f"{name}, row"].set_y(position)
            moving[f"{name}, vector"].set_data(torch.arange(width).numpy() + 0.5, code[position].numpy())
            step = (code[position + 1] - code[position]).norm()
            moving[f"{name}, step"].set_text(f"to the next: {step:.2f}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={"position": slider("position", 0, length - 1, value=7)},
        alt=f"Two heat maps, binary and sinusoidal, {length} positions down and {width} dimensions across, one row "
        "framed; below each the framed row as dots, above it the distance to the next position's vector.",
    )


def clock_and_waves() -> Live:
    """One pair as a clock hand and as its two waves, and the wavelengths of all pairs."""
    width, length = 32, 100
    pairs = torch.arange(width // 2)
    steps = torch.linspace(0, length, 401)
    figure = canvas(8, 4.1)
    figure.set_layout_engine("none")

    clock = figure.add_axes((0.05, 0.5, 0.22, 0.4))
    clock.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), aspect="equal", xticks=[], yticks=[])
    circle = torch.linspace(0, 2 * math.pi, 100)
    clock.plot(circle.cos().numpy(), circle.sin().numpy(), color=GREY, linewidth=0.8)
    clock.set_xlabel("cosine")
    clock.set_ylabel("sine")
    (hand,) = clock.plot([], [], color="black", linewidth=2, marker="o", markevery=[1])

    waves = figure.add_axes((0.37, 0.5, 0.6, 0.4))
    waves.set(xlim=(-2, length + 2), ylim=(-1.25, 1.25), yticks=[-1, 0, 1])
    waves.set_xlabel("position", labelpad=1)
    (sine,) = waves.plot([], [], color=POSITION, label="sine, dimension 2i")
    (cosine,) = waves.plot([], [], color="black", linestyle="--", label="cosine, dimension 2i + 1")
    (now,) = waves.plot([], [], "o", color="black", markersize=5)
    round_trip = waves.set_title(" ", loc="left")
    figure.legend(*waves.get_legend_handles_labels(), loc=(0.5, 0.945), ncols=2, frameon=False)

    lengths = figure.add_axes((0.1, 0.1, 0.87, 0.23))
    lengths.set_yscale("log")
    lengths.set(xlim=(-0.5, width // 2 - 0.5), ylim=(2, 2e6), xticks=pairs.tolist(), yticks=[10, 1e3, 1e5])
    lengths.minorticks_off()
    lengths.set_xlabel("pair i", labelpad=1)
    lengths.set_ylabel("wavelength\n(positions)")
    (all_pairs,) = lengths.plot([], [], "o", color=POSITION, markersize=4)
    (chosen,) = lengths.plot([], [], "o", color="black", markersize=9, fillstyle="none")
    longest = lengths.set_title(" ", loc="left")
    (ceiling,) = lengths.plot([], [], color=GREY, linestyle=":", linewidth=1)

    def update(pair: int, power: float, position: int) -> None:
        base = 10**power
        wavelength = 2 * math.pi / frequencies(width, base=base)
        angle = 2 * math.pi * steps / wavelength[pair]
        s, c = sinusoidal(torch.tensor(position), width, base=base)[2 * pair : 2 * pair + 2].tolist()
        hand.set_data([0, c], [0, s])
        sine.set_data(steps.numpy(), angle.sin().numpy())
        cosine.set_data(steps.numpy(), angle.cos().numpy())
        now.set_data([position, position], [s, c])
        round_trip.set_text(f"once round: {wavelength[pair]:,.1f} positions")
        all_pairs.set_data(pairs.numpy(), wavelength.numpy())
        chosen.set_data([pair], [wavelength[pair]])
        ceiling.set_data([-0.5, width / 2 - 0.5], [2 * math.pi * base] * 2)
        longest.set_text(
            f"base {base:,.0f}; longest: {wavelength[-1]:,.0f}; dotted, 2π·base: {2 * math.pi * base:,.0f}"
        )

    return Live(
        figure,
        update,
        moving={
            "hand": hand,
            "sine": sine,
            "cosine": cosine,
            "now": now,
            "once round": round_trip,
            "wavelengths": all_pairs,
            "chosen": chosen,
            "ceiling": ceiling,
            "longest": longest,
        },
        controls={
            "pair": slider("pair i", 0, width // 2 - 1, value=2),
            "power": slider("base, 10 to the power", 1.0, 5.0, value=4.0, step=0.5),
            "position": slider("position", 0, length, value=8),
        },
        alt="A clock hand whose height is the sine and whose width is the cosine of one pair; the two waves of that "
        f"pair over {length} positions with the same values as dots; below, the wavelengths of all {width // 2} pairs "
        "on a logarithmic axis, a dotted line at 2π times the base above the longest.",
    )


def similarity_by_offset() -> Live:
    """The dot products of all pairs of positions, and how they change with the offset."""
    length, width = 48, 128
    offsets = torch.arange(length)  # at negative ones any such matrix has the same numbers
    codes = sinusoidal(torch.arange(length), width, dtype=torch.float64)
    grams = {False: codes @ codes.T / (width / 2), True: codes[:, 0::2] @ codes[:, 0::2].T / (width / 4)}
    ranges = {
        sines_only: torch.stack([torch.stack(gram.diagonal(-k).aminmax()) for k in offsets], dim=1)
        for sines_only, gram in grams.items()
    }  # smallest and largest entry of each diagonal, (2, offsets)
    figure = canvas(8, 3.6)
    figure.set_layout_engine("none")

    matrix = figure.add_axes((0.07, 0.14, 0.36, 0.74))
    mesh = matrix.pcolormesh(grams[False].numpy(), cmap=SIGNED, vmin=-1, vmax=1)
    matrix.set(xlim=(0, length), ylim=(length, 0))
    for axis in (matrix.xaxis, matrix.yaxis):
        axis.set_ticks([0.5, 16.5, 32.5], ["0", "16", "32"])
    matrix.set_xlabel("position n")
    matrix.set_ylabel("position m")
    matrix.set_title("similarity of PE(m) and PE(n)")
    (diagonal,) = matrix.plot([], [], color="black", linewidth=1.5)
    figure.colorbar(mesh, cax=figure.add_axes((0.44, 0.14, 0.015, 0.74)))

    panel = figure.add_axes((0.61, 0.14, 0.37, 0.74))
    panel.set(xlim=(-1, length), ylim=(-0.4, 1.3))
    panel.axhline(0, color=GREY, linewidth=0.5)
    panel.set_xlabel("offset m − n")
    panel.set_ylabel("similarity")
    (largest,) = panel.plot([], [], color=POSITION, label="largest on the diagonal")
    (smallest,) = panel.plot([], [], color="black", linestyle="--", label="smallest on the diagonal")
    panel.legend(loc="upper right")
    (ends,) = panel.plot([], [], "o-", color="black", markersize=5)
    readout = panel.set_title(" ")

    def update(offset: int, sines_only: bool) -> None:
        bottom, top = ranges[sines_only]
        mesh.set_array(grams[sines_only].numpy())
        diagonal.set_data([0, length - offset], [offset, length])
        largest.set_data(offsets.numpy(), top.numpy())
        smallest.set_data(offsets.numpy(), bottom.numpy())
        ends.set_data([offset, offset], [bottom[offset], top[offset]])
        readout.set_text(f"offset {offset}: from {bottom[offset]:.2f} to {top[offset]:.2f}")

    return Live(
        figure,
        update,
        moving={
            "matrix": mesh,
            "diagonal": diagonal,
            "largest": largest,
            "smallest": smallest,
            "ends": ends,
            "readout": readout,
        },
        controls={
            "offset": slider("offset m − n", 0, length - 1, unit="positions", value=11),
            "sines_only": switch("sines only"),
        },
        alt=f"Left, the similarities of {length} positions with each other as a heat map, the diagonal of one offset "
        "marked. Right, the largest and the smallest value on each diagonal against the offset: with sines and "
        "cosines one curve, with sines alone two.",
    )


def tokens_and_positions() -> tuple[Tensor, Tensor]:
    """Forty token vectors of variance 1 and 24 encodings, both 64 wide, float64: 40 + 24 = 64."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randn(40, 64, generator=generator, dtype=torch.float64)
    return tokens, sinusoidal(torch.arange(24), 64, dtype=torch.float64)


def amplitude(separate: Tensor | None = None) -> Live:
    """What is left of a token when an encoding of any length is added.

    Args:
        separate: the matrix that takes a sum to its token, (64, 64); solved for here if it is not given.
    """
    tokens, encodings = tokens_and_positions()
    if separate is None:
        both = torch.cat([tokens, encodings])
        separate = torch.linalg.pinv(both)[:, : len(tokens)] @ tokens
    ratio = (encodings.norm(dim=-1).mean() / tokens.norm(dim=-1).mean()).item()  # at amplitude 1
    names = torch.arange(len(tokens))[:, None]

    def shares(amplitude: float) -> list[float]:
        """Of the sums whose token is found, straight and after the matrix."""
        sums = tokens[:, None] + amplitude * encodings  # (V, L, d)
        return [(nearest(v, tokens) == names).double().mean().item() for v in (sums, sums @ separate)]

    powers = torch.arange(-3, 6.01, 0.25).tolist()
    curves = list(zip(*(shares(2**power) for power in powers)))
    shown = tokens.shape[1]
    figure = canvas(8, 3.7)
    figure.set_layout_engine("none")
    one = figure.add_axes((0.07, 0.15, 0.42, 0.74))
    one.set(xlim=(-1, shown), ylim=(-6, 6))
    one.axhline(0, color=GREY, linewidth=0.5)
    one.set_xlabel("dimension (ring: token, dot: sum, cross: after the matrix)")
    one.set_title("token 0", loc="left")
    one.plot(range(shown), tokens[0, :shown].numpy(), "o", markersize=6, color=CONTENT, fillstyle="none")
    (summed,) = one.plot([], [], "o", markersize=3, color=ADDED)
    (restored,) = one.plot([], [], "x", markersize=5, color=POSITION)

    panel = figure.add_axes((0.58, 0.15, 0.4, 0.74))
    panel.set_xscale("log")
    panel.set(xlim=(0.07, 60), ylim=(-0.03, 1.08))
    panel.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    panel.minorticks_off()
    lengths = [ratio * 2**power for power in powers]
    (after,) = panel.plot([], [], color="black", label="after the matrix")
    (before,) = panel.plot([], [], color=ADDED, linestyle="--", label="nearest token to the sum")
    panel.legend(loc="lower left")
    panel.set_xlabel("length of the encoding / length of the token")
    panel.set_ylabel("tokens found")
    (now,) = panel.plot([], [], "o", color="black", markersize=6)
    readout = panel.set_title(" ")

    def update(power: float, position: int) -> None:
        total = tokens[0] + 2**power * encodings[position]
        summed.set_data(range(shown), total[:shown].numpy())
        restored.set_data(range(shown), (total @ separate)[:shown].numpy())
        found = shares(2**power)
        reached = sum(other <= power for other in powers)  # the curves grow up to the slider
        after.set_data(lengths[:reached], curves[1][:reached])
        before.set_data(lengths[:reached], curves[0][:reached])
        now.set_data([ratio * 2**power] * 2, found)
        readout.set_text(f"amplitude {2**power:.3g}: found {found[0]:.0%}, {found[1]:.0%} after the matrix")

    return Live(
        figure,
        update,
        moving={
            "sum": summed,
            "restored": restored,
            "before": before,
            "after": after,
            "now": now,
            "readout": readout,
        },
        controls={
            "power": slider("amplitude, 2 to the power", -3.0, 6.0, value=0.0, step=0.25),
            "position": slider("position", 0, len(encodings) - 1, value=5),
        },
        alt="Left, one token's numbers as rings, the sum with an encoding as dots, and the sum after the matrix as "
        "crosses. Right, the share of tokens found against the length of the encoding, up to the chosen amplitude: it "
        "falls from all to few for the nearest token, and stays at all after the matrix.",
    )


def sinusoid_and_table() -> Live:
    """Similarities of sinusoids and of the rows of an untrained table, both of the same width."""
    length, widest = 32, 768
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        table = Learned(length, widest)(torch.arange(length))
    figure = canvas(8, 3.3)
    figure.set_layout_engine("none")
    moving = {}
    for column, name in enumerate(("sinusoidal", "learned, untrained")):
        panel = figure.add_axes((0.06 + 0.29 * column, 0.15, 0.245, 0.67))
        mesh = panel.pcolormesh(torch.zeros(length, length).numpy(), cmap=SIGNED, vmin=-1, vmax=1)
        panel.set_ylim(length, 0)
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_ticks([0.5, 10.5, 20.5, 30.5], ["0", "10", "20", "30"])
        panel.set_xlabel("position n")
        moving[name] = mesh
        moving[f"{name}, readout"] = panel.set_title(" ")
        panel.text(0, 1.13, name, transform=panel.transAxes)
        if not column:
            panel.set_ylabel("position m")

    bar = figure.colorbar(mesh, cax=figure.add_axes((0.605, 0.15, 0.013, 0.67)), ticks=[-1, 0, 1])
    bar.ax.set_title("cosine")
    spread = figure.add_axes((0.76, 0.15, 0.22, 0.67))
    spread.set_xscale("log")
    spread.set_yscale("log")
    spread.set(xlim=(6, 1000), ylim=(0.02, 1))
    spread.set_xticks([8, 64, 768], ["8", "64", "768"])
    spread.set_yticks([0.036, 0.125, 0.35], ["0.036", "0.125", "0.35"])
    spread.minorticks_off()
    spread.set_xlabel("d")
    widths = [8, 768]
    spread.plot(widths, [width**-0.5 for width in widths], color=GREY, linestyle="--")
    spread.set_title("spread of the cosines in the\ntable (dot), 1/√d (dashes)")
    (moving["spread"],) = spread.plot([], [], "o", color="black")

    def update(width: int) -> None:
        codes = {
            "sinusoidal": sinusoidal(torch.arange(length), width),
            "learned, untrained": table[:, :width],
        }
        for name, code in codes.items():
            gram = cosines(code)
            others = off_diagonal(gram)
            moving[name].set_array(gram.numpy())
            moving[f"{name}, readout"].set_text(f"mean {others.mean():z.2f}, spread {others.std():.2f}")
        moving["spread"].set_data([width], [others.std()])

    return Live(
        figure,
        update,
        moving=moving,
        controls={"width": slider("d", 8, widest, unit="dimensions", value=64, step=8)},
        alt=f"The cosines between {length} positions as heat maps: sinusoids have bands along the diagonal, an "
        "untrained table has noise off the diagonal. Right, the spread of that noise falls like 1/√d.",
    )


AMPLITUDES, RATES = (0.3, 1, 3, 10, 30), (1 / 3, 1, 3)  # rates times that of the chapter's other trainings


def amplitude_map() -> Live:
    """An empty map of what models learn at several amplitudes and learning rates; filled by `show_shares`."""
    figure = canvas(8, 3.2)
    panel = figure.subplots()
    mesh = panel.pcolormesh(
        torch.full((len(RATES), len(AMPLITUDES)), torch.nan).numpy(), cmap=MAGNITUDE, vmin=0, vmax=1
    )
    panel.set_xticks([n + 0.5 for n in range(len(AMPLITUDES))], [f"{a:g}" for a in AMPLITUDES])
    panel.set_yticks([n + 0.5 for n in range(len(RATES))], ["÷ 3", "× 1", "× 3"])
    panel.set_xlabel("amplitude of the sinusoids")
    panel.set_ylabel("learning rate")
    figure.colorbar(mesh, label="share right, mean of the seeds")
    cells = {
        (rate, amplitude): panel.text(column + 0.5, row + 0.5, "", ha="center", va="center")
        for row, rate in enumerate(RATES)
        for column, amplitude in enumerate(AMPLITUDES)
    }
    return Live(
        figure,
        lambda: None,
        moving={"map": mesh}
        | {f"{rate:.2g}, {amplitude:g}": text for (rate, amplitude), text in cells.items()},
        controls={},
        alt="Heat map, five amplitudes across and three learning rates up: the share of right answers. High in the "
        "middle, and the higher the learning rate the further to the right; low at the left and right ends.",
    )


def show_shares(live: Live, right: Mapping[tuple[float, float], Tensor]) -> None:
    """Fill the cells of `amplitude_map` that are measured so far; right: (rate, amplitude) → one share per seed."""
    shares = torch.full((len(RATES), len(AMPLITUDES)), torch.nan)
    for (rate, amplitude), seeds in right.items():
        mean = seeds.mean().item()
        shares[RATES.index(rate), AMPLITUDES.index(amplitude)] = mean
        words = live.artists[f"{rate:.2g}, {amplitude:g}"]
        words.set_text(f"{mean:.2f}\n{seeds.min():.2f} to {seeds.max():.2f}")
        words.set_color("black" if mean > 0.5 else "white")
    live.artists["map"].set_array(shares.numpy())
    live.redraw()
