"""What chapter 2 draws: codes of positions, the clock behind a pair, similarities, and what a sum still holds."""

import math
from collections.abc import Mapping

import torch
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle
from torch import Tensor

from posenc.additive import Learned, binary, frequencies, sinusoidal
from posenc.geometry import cosines, nearest, off_diagonal
from posenc.live import BLUE, GREEN, GREY, ORANGE, SIGNED, Live, canvas, slider, switch


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
        whole.set_yticks([0.5, 16.5, 32.5, 48.5], ["0", "16", "32", "48"], fontsize=8)
        whole.set_title(name, fontsize=9, loc="left")
        moving[f"{name}, step"] = whole.set_title(" ", fontsize=9, loc="right")
        moving[f"{name}, row"] = whole.add_patch(
            Rectangle((0, 0), width, 1, fill=False, edgecolor="black", linewidth=1.5)
        )

        one = figure.add_axes((left, 0.12, 0.36, 0.25))
        one.set_xlim(0, width)
        one.set_ylim(-1.2, 1.2)
        one.set_xticks(
            [j + 0.5 for j in range(0, width, 3)], [str(j) for j in range(0, width, 3)], fontsize=8
        )
        one.set_yticks([-1, 0, 1], ["−1", "0", "1"], fontsize=8)
        one.axhline(0, color=GREY, linewidth=0.5)
        one.set_xlabel("dimension", fontsize=9)
        (moving[f"{name}, vector"],) = one.plot([], [], "o", markersize=5, color=BLUE)
        if not column:
            whole.set_ylabel("position", fontsize=9)
            one.set_ylabel("value", fontsize=9)
    bar = figure.colorbar(mesh, cax=figure.add_axes((0.89, 0.42, 0.02, 0.5)), label="value")
    bar.ax.tick_params(labelsize=8)

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
    clock.set_xlabel("cosine", fontsize=9)
    clock.set_ylabel("sine", fontsize=9)
    (hand,) = clock.plot([], [], color="black", linewidth=2, marker="o", markevery=[1])

    waves = figure.add_axes((0.37, 0.5, 0.6, 0.4))
    waves.set(xlim=(-2, length + 2), ylim=(-1.25, 1.25), yticks=[-1, 0, 1])
    waves.tick_params(labelsize=8)
    waves.set_xlabel("position", fontsize=9, labelpad=1)
    (sine,) = waves.plot([], [], color=BLUE, label="sine, dimension 2i")
    (cosine,) = waves.plot([], [], color=ORANGE, linestyle="--", label="cosine, dimension 2i + 1")
    (now,) = waves.plot([], [], "o", color="black", markersize=5)
    round_trip = waves.set_title(" ", fontsize=9, loc="left")
    figure.legend(*waves.get_legend_handles_labels(), loc=(0.55, 0.945), ncols=2, fontsize=8, frameon=False)

    lengths = figure.add_axes((0.1, 0.1, 0.87, 0.23))
    lengths.set_yscale("log")
    lengths.set(xlim=(-0.5, width // 2 - 0.5), ylim=(2, 2e6), xticks=pairs.tolist(), yticks=[10, 1e3, 1e5])
    lengths.minorticks_off()
    lengths.tick_params(labelsize=8)
    lengths.set_xlabel("pair i", fontsize=9, labelpad=1)
    lengths.set_ylabel("wavelength\n(positions)", fontsize=9)
    (all_pairs,) = lengths.plot([], [], "o", color=GREEN, markersize=4)
    (chosen,) = lengths.plot([], [], "o", color="black", markersize=9, fillstyle="none")
    longest = lengths.set_title(" ", fontsize=9, loc="left")
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
        longest.set_text(f"longest: {wavelength[-1]:,.0f}; dotted, 2π·base: {2 * math.pi * base:,.0f}")

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
            "power": slider("base", 1.0, 5.0, unit="power of ten", value=4.0, step=0.5),
            "position": slider("position", 0, length, value=8),
        },
        alt="A clock hand whose height is the sine and whose width is the cosine of one pair; the two waves of that "
        f"pair over {length} positions with the same values as dots; below, the wavelengths of all {width // 2} pairs "
        "on a logarithmic axis, a dotted line at 2π times the base above the longest.",
    )


def similarity_by_offset() -> Live:
    """The dot products of all pairs of positions, and how they change with the offset."""
    length, width = 48, 128
    offsets = torch.arange(1 - length, length)
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
        axis.set_ticks([0.5, 16.5, 32.5], ["0", "16", "32"], fontsize=8)
    matrix.set_xlabel("position n", fontsize=9)
    matrix.set_ylabel("position m", fontsize=9)
    matrix.set_title("similarity of PE(m) and PE(n)", fontsize=9)
    (diagonal,) = matrix.plot([], [], color="black", linewidth=1.5)
    bar = figure.colorbar(mesh, cax=figure.add_axes((0.44, 0.14, 0.015, 0.74)))
    bar.ax.tick_params(labelsize=8)

    panel = figure.add_axes((0.61, 0.14, 0.37, 0.74))
    panel.set(xlim=(-length, length), ylim=(-0.4, 1.3))
    panel.axhline(0, color=GREY, linewidth=0.5)
    panel.tick_params(labelsize=8)
    panel.set_xlabel("offset m − n", fontsize=9)
    panel.set_ylabel("largest and smallest on the diagonal", fontsize=9)
    (largest,) = panel.plot([], [], color=BLUE)
    (smallest,) = panel.plot([], [], color=ORANGE, linestyle="--")
    (ends,) = panel.plot([], [], "o-", color="black", markersize=5)
    readout = panel.set_title(" ", fontsize=9)

    def update(offset: int, sines_only: bool) -> None:
        bottom, top = ranges[sines_only]
        mesh.set_array(grams[sines_only].numpy())
        start, end = max(0, offset), length + min(0, offset)  # of the positions m
        diagonal.set_data([start - offset, end - offset], [start, end])
        largest.set_data(offsets.numpy(), top.numpy())
        smallest.set_data(offsets.numpy(), bottom.numpy())
        chosen = offset + length - 1
        ends.set_data([offset, offset], [bottom[chosen], top[chosen]])
        readout.set_text(f"offset {offset}: from {bottom[chosen]:.2f} to {top[chosen]:.2f}")

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
            "offset": slider("offset", 1 - length, length - 1, unit="positions", value=11),
            "sines_only": switch("sines only"),
        },
        alt=f"Left, the similarities of {length} positions with each other as a heat map, the diagonal of one offset "
        "marked. Right, the largest and the smallest value on each diagonal against the offset: with sines and "
        "cosines one curve, the same to both sides, with sines alone two.",
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
    shown = 32
    figure = canvas(8, 3.7)
    figure.set_layout_engine("none")
    one = figure.add_axes((0.07, 0.15, 0.42, 0.74))
    one.set(xlim=(-1, shown), ylim=(-6, 6))
    one.tick_params(labelsize=8)
    one.axhline(0, color=GREY, linewidth=0.5)
    one.set_xlabel("dimension (ring: token, dot: sum, cross: after the matrix)", fontsize=9)
    one.set_title("token 0", fontsize=9, loc="left")
    one.plot(range(shown), tokens[0, :shown].numpy(), "o", markersize=8, color=GREY, fillstyle="none")
    (summed,) = one.plot([], [], "o", markersize=4, color=ORANGE)
    (restored,) = one.plot([], [], "x", markersize=5, color=BLUE)

    panel = figure.add_axes((0.58, 0.15, 0.4, 0.74))
    panel.set_xscale("log")
    panel.set(xlim=(0.07, 60), ylim=(-0.03, 1.08))
    panel.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    panel.minorticks_off()
    panel.tick_params(labelsize=8)
    lengths = [ratio * 2**power for power in powers]
    panel.plot(lengths, curves[1], color=BLUE, label="after the matrix")
    panel.plot(lengths, curves[0], color=ORANGE, linestyle="--", label="nearest token to the sum")
    panel.legend(loc="lower left", fontsize=8)
    panel.set_xlabel("length of the encoding / length of the token", fontsize=9)
    panel.set_ylabel("tokens found", fontsize=9)
    (now,) = panel.plot([], [], "o", color="black", markersize=6)
    readout = panel.set_title(" ", fontsize=9)

    def update(power: float, position: int) -> None:
        total = tokens[0] + 2**power * encodings[position]
        summed.set_data(range(shown), total[:shown].numpy())
        restored.set_data(range(shown), (total @ separate)[:shown].numpy())
        found = shares(2**power)
        now.set_data([ratio * 2**power] * 2, found)
        readout.set_text(f"ratio {ratio * 2**power:.2f}: {found[0]:.0%} of the sums, {found[1]:.0%} after")

    return Live(
        figure,
        update,
        moving={"sum": summed, "restored": restored, "now": now, "readout": readout},
        controls={
            "power": slider("amplitude", -3.0, 6.0, unit="power of two", value=0.0, step=0.25),
            "position": slider("position", 0, len(encodings) - 1, value=5),
        },
        alt="Left, one token's numbers as rings, the sum with an encoding as dots, and the sum after the matrix as "
        "crosses. Right, the share of tokens found against the length of the encoding: falling from all to few for "
        "the nearest token, level at all after the matrix.",
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
        panel = figure.add_axes((0.06 + 0.31 * column, 0.15, 0.26, 0.67))
        mesh = panel.pcolormesh(torch.zeros(length, length).numpy(), cmap=SIGNED, vmin=-1, vmax=1)
        panel.set_ylim(length, 0)
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_ticks([0.5, 10.5, 20.5, 30.5], ["0", "10", "20", "30"], fontsize=8)
        panel.set_xlabel("position n", fontsize=9)
        moving[name] = mesh
        moving[f"{name}, readout"] = panel.set_title(" ", fontsize=9)
        panel.text(0, 1.13, name, transform=panel.transAxes, fontsize=9)
        if not column:
            panel.set_ylabel("position m", fontsize=9)

    spread = figure.add_axes((0.74, 0.15, 0.24, 0.67))
    spread.set_xscale("log")
    spread.set_yscale("log")
    spread.set(xlim=(6, 1000), ylim=(0.02, 1))
    spread.set_xticks([8, 64, 768], ["8", "64", "768"])
    spread.set_yticks([0.036, 0.125, 0.35], ["0.036", "0.125", "0.35"])
    spread.minorticks_off()
    spread.tick_params(labelsize=8)
    spread.set_xlabel("d", fontsize=9)
    widths = [8, 768]
    spread.plot(widths, [width**-0.5 for width in widths], color=GREY, linestyle="--")
    spread.set_title("cosines in the table: spread\n(dot) and 1/√d (dashes)", fontsize=9)
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


def amplitude_curve() -> Live:
    """Axes for what models learn at several amplitudes, one line a seed; filled by `show_shares`."""
    figure = canvas(8, 3.2)
    panel = figure.subplots()
    panel.set_xscale("log")
    panel.set(xlim=(0.25, 36), ylim=(0, 1.05))
    panel.set_xticks([0.3, 1, 3, 10, 30], ["0.3", "1", "3", "10", "30"])
    panel.minorticks_off()
    panel.axhline(1 / 12, color=GREY, linestyle="--", linewidth=1)
    panel.set_xlabel("amplitude of the sinusoids (dashes: guessing)")
    panel.set_ylabel("share right")
    seeds = panel.add_collection(LineCollection([], colors=BLUE, alpha=0.6, linewidths=1.5))
    return Live(
        figure,
        lambda: None,
        moving={"seeds": seeds},
        controls={},
        alt="Share of right answers against the amplitude of the sinusoids, on a logarithmic axis, one line a seed: "
        "low at both ends, high in the middle.",
    )


def show_shares(live: Live, right: Mapping[float, Tensor]) -> None:
    """Let the lines of `amplitude_curve` reach the amplitudes measured so far; right: amplitude → (seeds,)."""
    amplitudes = list(right)
    shares = torch.stack(list(right.values())).T.tolist()
    live.artists["seeds"].set_segments([list(zip(amplitudes, seed)) for seed in shares])
    live.redraw()
