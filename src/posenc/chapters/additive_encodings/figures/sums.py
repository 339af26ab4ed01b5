"""What a sum still holds of its token, and what models learn at which amplitude."""

from collections.abc import Mapping

import torch
from torch import Tensor

from posenc.additive import sinusoidal
from posenc.geometry import nearest
from posenc.lesson.controls import choice
from posenc.lesson.drawing import blank, log_axis
from posenc.lesson.live import Live, canvas
from posenc.lesson.palette import (
    ADDED,
    CONTENT,
    GREY,
    MAGNITUDE,
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

    powers = torch.arange(-2, 6.01, 0.25).tolist()
    curves = list(zip(*(shares(2**power) for power in powers)))
    shown, position = 12, 5
    figure = blank(3.4)
    one = figure.add_axes((0.05, 0.14, 0.42, 0.74))
    one.set(xlim=(-0.6, shown - 0.4), ylim=(-5, 5), xticks=range(shown))
    one.axhline(0, color=GREY, linewidth=0.5)
    one.set_xlabel("dimension")
    one.set_title(f"token 0 at position {position}: its first {shown} of 64 numbers", loc="left")
    dash = {"color": CONTENT, "markersize": 16, "markeredgewidth": 2.5}
    one.plot(range(shown), tokens[0, :shown], "_", label="token", **dash)
    moving = {}
    (moving["sum"],) = one.plot([], [], "o", markersize=5, color=ADDED, label="sum")
    (moving["restored"],) = one.plot([], [], "x", markersize=6, color="black", label="sum after the matrix")
    one.legend(loc="lower left", ncols=3, frameon=False, columnspacing=1, handletextpad=0.2)

    panel = figure.add_axes((0.57, 0.14, 0.41, 0.74))
    log_axis(panel.xaxis, [0.2, 1, 5, 20, 50])
    panel.set(xlim=(0.15, 70), ylim=(-0.03, 1.12))
    lengths = [ratio * 2**power for power in powers]
    (moving["after"],) = panel.plot([], [], color="0.75", linewidth=6, solid_capstyle="round")
    (moving["before"],) = panel.plot([], [], color=ADDED, linestyle="--", linewidth=2)
    panel.text(0.17, 1.06, "grey: after the matrix; dashes: nearest to the sum", va="center")
    panel.set_xlabel("length of the encoding / length of the token")
    panel.set_ylabel("tokens found")
    (moving["now"],) = panel.plot([], [], "o", color="black", markersize=6)
    moving["readout"] = panel.set_title(" ", loc="left")

    def update(amplitude: float) -> None:
        total = tokens[0] + amplitude * encodings[position]
        moving["sum"].set_data(range(shown), total[:shown])
        moving["restored"].set_data(range(shown), (total @ separate)[:shown])
        found = shares(amplitude)
        reached = sum(2**power <= amplitude for power in powers)  # the curves grow up to the slider
        for name, curve in zip(("before", "after"), curves):
            moving[name].set_data(lengths[:reached], curve[:reached])
        moving["now"].set_data([ratio * amplitude] * 2, found)
        moving["readout"].set_text(f"found {found[0]:.0%}, and {found[1]:.0%} after the matrix")

    return Live(
        figure,
        update,
        moving=moving,
        controls={"amplitude": choice("amplitude", [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64])},
        alt="Left, twelve of a token's numbers as dashes, the sum with an encoding as dots, and the sum after the matrix "
        "as crosses. Right, the share of tokens found against the length of the encoding, up to the chosen amplitude, "
        "for the nearest token to the sum and after the matrix.",
    )


AMPLITUDES, RATES = (0.3, 1, 3, 10, 30), (1 / 3, 1, 3)  # rates times that of the chapter's other trainings


def amplitude_map() -> Live:
    """An empty map of what models learn at several amplitudes and learning rates; filled by `show_shares`."""
    figure = canvas(8, 3.2)
    panel = figure.subplots()
    empty = torch.full((len(RATES), len(AMPLITUDES)), torch.nan)
    mesh = panel.pcolormesh(empty.numpy(), cmap=MAGNITUDE, vmin=0, vmax=1)
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
        moving={"map": mesh} | {f"{rate:.2g}, {amplitude:g}": text for (rate, amplitude), text in cells.items()},
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
