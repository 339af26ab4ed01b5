"""What chapter 4 draws: a turned vector, two positions and their score, clocks, decay, low precision, trained losses."""

import math
from collections.abc import Mapping

import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba_array
from matplotlib.patches import Polygon
from torch import Tensor

from posenc.additive import sinusoidal
from posenc.lesson.controls import choice, slider, switch
from posenc.lesson.live import Live, canvas, still
from posenc.lesson.palette import ADDED, GREY, KEY, NONE, POSITION, QUERY, SIGNED, TURNED
from posenc.rotary import angles, rotate

PALE = "#DDDDDD"
SLOW = "#A79ED6"  # a lighter TURNED, for pairs that never come round


def angle() -> Live:
    """A vector, its turned copy, and their dot product as the shadow of the copy on the vector."""
    vector = torch.tensor([1.0, 0.0], dtype=torch.float64)
    figure = canvas(8, 3.4)
    figure.set_layout_engine("none")
    plane = figure.add_axes((0.04, 0.08, 0.36, 0.8))
    _circle(plane)
    plane.set_title("the vector, its copy and the shadow")
    plane.plot([0, 1], [0, 0], color=QUERY, linewidth=2.5, marker="o", markevery=[1])
    plane.text(1.03, 0.08, "vector", color=QUERY)
    (copy,) = plane.plot([], [], color=KEY, linewidth=2.5, marker="o", markevery=[1])
    (drop,) = plane.plot([], [], color=GREY, linewidth=1, linestyle=":")
    (shadow,) = plane.plot([], [], color="black", linewidth=5, solid_capstyle="butt", alpha=0.7)

    panel = figure.add_axes((0.52, 0.17, 0.45, 0.71))
    panel.set(xlim=(-180, 180), ylim=(-1.15, 1.15), xticks=[-180, -90, 0, 90, 180], yticks=[-1, 0, 1])
    panel.axhline(0, color=GREY, linewidth=0.5)
    panel.set_xlabel("angle (degrees)")
    panel.set_ylabel("dot product")
    degrees = torch.arange(-180, 181, 2.0)
    panel.plot(degrees.numpy(), degrees.deg2rad().cos().numpy(), color=GREY)
    (now,) = panel.plot([], [], "o", color="black", markersize=7)
    readout = panel.set_title(" ")

    def update(degrees: int) -> None:
        radians = torch.tensor([math.radians(degrees)], dtype=torch.float64)
        x, y = rotate(vector, radians).tolist()
        copy.set_data([0, x], [0, y])
        drop.set_data([x, x], [y, 0])
        shadow.set_data([0, x], [0, 0])
        now.set_data([degrees], [x])
        readout.set_text(f"dot product {_signed(x)}, length of the copy {math.hypot(x, y):.2f}")

    return Live(
        figure,
        update,
        moving={"copy": copy, "drop": drop, "shadow": shadow, "now": now, "readout": readout},
        controls={"degrees": slider("angle", -180, 180, unit="degrees", value=60, step=5)},
        alt="Left, a vector of length 1, a copy of it turned by the angle, and the shadow of the copy on the vector. "
        "Right, the shadow's length, which is the dot product, against the angle: a cosine. The length of the copy "
        "stays 1.",
    )


def _signed(number: float) -> str:
    """Two digits after the point, with a true minus and no negative zero."""
    return f"{number:z.2f}".replace("-", "−")


def _circle(axes: Axes, limit: float = 1.25) -> None:
    """Square axes around a pale circle of radius 1."""
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal", xticks=[], yticks=[])
    around = torch.linspace(0, 2 * math.pi, 100)
    axes.plot(around.cos().numpy(), around.sin().numpy(), color=PALE, linewidth=1)


def paper() -> Live:
    """A sheet glued to another one, and a sheet that is bent."""
    size = 10
    across, down = torch.meshgrid(
        torch.linspace(0, 1, size + 1), torch.linspace(0, 1, size + 1), indexing="xy"
    )
    word = torch.zeros(size, size)
    word[2:8, 3:7] = 1.0  # a letter O
    word[3:7, 4:6] = 0.0
    stripes = sinusoidal(torch.arange(3, 3 + size), size, base=4.0) / 2
    figure = canvas(8, 2.6)
    figure.set_layout_engine("none")

    def sheet(left: float, colours: Tensor, title: str, x: Tensor = across, y: Tensor = down) -> None:
        axes = figure.add_axes((left, 0.05, 0.15, 0.72))
        axes.pcolormesh(x.numpy(), y.numpy(), colours.numpy(), cmap=SIGNED, vmin=-1.5, vmax=1.5)
        edge = torch.stack([torch.cat([x[0], x[-1].flip(0)]), torch.cat([y[0], y[-1].flip(0)])], dim=1)
        axes.add_patch(Polygon(edge.numpy(), fill=False, edgecolor="black", linewidth=1))
        axes.set(xlim=(-0.05, 1.05), ylim=(1.3, -0.3))
        axes.set_axis_off()
        axes.set_title(title)

    sheet(0.02, word, "the word")
    sheet(0.2, stripes, "a position")
    sheet(0.38, word + stripes, "glued: word + position")
    sheet(0.63, word, "the word")
    bend = 0.25 * (1.5 * math.pi * across).sin()
    sheet(0.82, word, "bent by the position", x=across, y=down + bend)
    for x, sign in ((0.185, "+"), (0.365, "="), (0.8, "→")):
        figure.text(x, 0.4, sign, ha="center", va="center", fontsize=14)
    return still(
        figure,
        alt="Left, gluing: a sheet with a letter O and a striped sheet give a sheet on which both are mixed. Right, "
        "bending: the sheet with the letter keeps its colours and takes the shape of a wave.",
    )


def two_positions() -> Live:
    """A query at m and a key at n, turned on the left, added to in the middle, and the score of both ways."""
    longest, places = 24, torch.arange(25)
    query, key = torch.tensor([[0.766, 0.643], [0.869, 0.233]], dtype=torch.float64)

    def turned(vector: Tensor, position: Tensor) -> Tensor:
        return rotate(vector.expand(*position.shape, 2), angles(position, 4, base=16.0)[..., 1:])

    def added(vector: Tensor, position: Tensor) -> Tensor:
        return vector + sinusoidal(position, 4, base=16.0, dtype=vector.dtype)[..., 2:]

    ways = {"turned": turned, "added": added}
    figure = canvas(8, 3.5)
    figure.set_layout_engine("none")
    moving = {}
    titles = {"turned": "rotary: turn by the position", "added": "additive: add the position"}
    for column, (name, title) in enumerate(titles.items()):
        plane = figure.add_axes((0.01 + 0.285 * column, 0.24, 0.275, 0.275 * 8 / 3.5))
        _circle(plane, [1.2, 2.1][column])
        plane.set_title(title)
        (moving[f"{name}, angle"],) = plane.plot([], [], color=GREY, linewidth=6, alpha=0.35)
        for role, vector, colour in (("query", query, QUERY), ("key", key, KEY)):
            x, y = vector.tolist()
            plane.plot([0, x], [0, y], color=colour, linewidth=1, alpha=0.6, linestyle="--")
            if name == "added":
                (moving[f"added, {role}'s position"],) = plane.plot([], [], color=colour, linewidth=1)
            (moving[f"{name}, {role}"],) = plane.plot(
                [], [], color=colour, linewidth=3, marker="o", markevery=[1]
            )
        moving[f"{name}, score"] = plane.text(
            0.5, -0.12, " ", transform=plane.transAxes, ha="center", fontsize=12
        )
    figure.text(0.01, 0.03, "blue: query at m, red: key at n, dashed: both without a position")

    panel = figure.add_axes((0.64, 0.15, 0.345, 0.72))
    panel.set(xlim=(-0.5, longest + 0.5), ylim=(-1.6, 5))
    panel.axhline(0, color=GREY, linewidth=0.5)
    panel.set_xlabel("query's position m")
    panel.set_ylabel("score q·k", labelpad=1)
    for name, colour, style in (("turned", TURNED, "-"), ("added", ADDED, "--")):
        (moving[f"{name}, scores"],) = panel.plot(
            [], [], color=colour, marker=".", linestyle=style, label=name
        )
        (moving[f"{name}, now"],) = panel.plot([], [], "o", color=colour, markersize=9)
    panel.legend(*panel.get_legend_handles_labels(), loc="upper right", ncols=2)
    moving["readout"] = panel.set_title(" ")

    def update(m: int, n: int, lock: bool) -> None:
        others = places - (m - n) if lock else torch.full_like(places, n)
        shown = (others >= 0) & (others <= longest)
        for name, place in ways.items():
            q, k = place(query, torch.tensor(m)), place(key, torch.tensor(n))
            scores = (place(query, places) * place(key, others)).sum(-1)
            for role, tip, start in (("query", q, query), ("key", k, key)):
                moving[f"{name}, {role}"].set_data([0, tip[0]], [0, tip[1]])
                if name == "added":
                    moving[f"added, {role}'s position"].set_data([start[0], tip[0]], [start[1], tip[1]])
            moving[f"{name}, angle"].set_data(*_between(q, k).numpy())
            moving[f"{name}, score"].set_text(f"score {_signed(q @ k)}")
            moving[f"{name}, scores"].set_data(places[shown].numpy(), scores[shown].numpy())
            moving[f"{name}, now"].set_data([m], [(q @ k).item()])
        difference = str(m - n).replace("-", "−")
        moving["readout"].set_text(f"m − n = {difference}, " + ("kept" if lock else f"key stays at {n}"))

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "m": slider("m", 0, longest, unit="position", value=7),
            "n": slider("n", 0, longest, unit="position", value=4),
            "lock": switch("lock m − n", value=True),
        },
        together={"lock": ("m", "n")},
        alt="A query and a key as two arrows, turned by their positions in the first plane, with their positions added "
        "in the second, and the scores of both ways against the query's position m. While m − n is locked, the score "
        "of the turned arrows is a level line and that of the sums a wave; unlocked, both are waves.",
    )


def _between(q: Tensor, k: Tensor) -> Tensor:
    """An arc at radius 0.4 from the direction of q to that of k, the short way, (2, points)."""
    start = torch.atan2(q[1], q[0])
    turn = torch.atan2(q[0] * k[1] - q[1] * k[0], q @ k)
    along = start + turn * torch.linspace(0, 1, 20, dtype=q.dtype)
    return 0.4 * torch.stack([along.cos(), along.sin()])


def clocks() -> Live:
    """The hands of all pairs at one position, and the wavelengths that they turn with."""
    head_dim, length = 128, 4096
    pairs = torch.arange(head_dim // 2)
    centres = torch.stack([pairs % 8, -(pairs // 8)], dim=1).double() * 2.4  # 8 by 8 clocks
    figure = canvas(8, 4)
    figure.set_layout_engine("none")
    faces = figure.add_axes((0.02, 0.04, 0.42, 0.86))
    faces.set(xlim=(-1.6, 18.4), ylim=(-18.4, 1.6), aspect="equal", xticks=[], yticks=[])
    around = torch.linspace(0, 2 * math.pi, 40, dtype=torch.float64)
    circle = torch.stack([around.cos(), around.sin()], dim=1)
    faces.add_collection(
        LineCollection((centres[:, None] + circle).numpy(), colors=PALE, linewidths=0.8, zorder=1)
    )
    hands = faces.add_collection(LineCollection([], linewidths=1.8))
    colours = to_rgba_array([TURNED, SLOW])
    (chosen_face,) = faces.plot([], [], color="black", linewidth=1.2)
    where = faces.set_title(" ")

    panel = figure.add_axes((0.55, 0.13, 0.43, 0.77))
    panel.set_yscale("log")
    panel.set(xlim=(-1, head_dim // 2), ylim=(3, 1e7), yticks=[10, 1e3, 1e5])
    panel.minorticks_off()
    panel.axhline(length, color=GREY, linestyle="--", linewidth=1)
    panel.text(0, length * 1.2, f"T = {length}", color=GREY)
    panel.set_xlabel("pair i")
    panel.set_ylabel("wavelength (positions)", labelpad=1)
    (full,) = panel.plot([], [], "o", color=TURNED, markersize=3)
    (never,) = panel.plot([], [], "s", color=SLOW, markersize=4)
    (chosen,) = panel.plot([], [], "o", color="black", markersize=10, fillstyle="none")
    readout = panel.set_title(" ")

    def update(position: int, pair: int, power: float) -> None:
        base = 10**power
        at_m = angles(torch.tensor(position), head_dim, base=base)  # (pairs,)
        wavelength = 2 * math.pi / angles(torch.tensor(1), head_dim, base=base)
        unfinished = wavelength > length
        tips = centres + torch.stack([at_m.cos(), at_m.sin()], dim=1)
        hands.set_segments(torch.stack([centres, tips], dim=1).numpy())
        hands.set_color(colours[unfinished.long().numpy()])
        chosen_face.set_data(*(centres[pair] + 1.15 * circle).T.numpy())
        full.set_data(pairs[~unfinished].numpy(), wavelength[~unfinished].numpy())
        never.set_data(pairs[unfinished].numpy(), wavelength[unfinished].numpy())
        chosen.set_data([pair], [wavelength[pair]])
        turns = (at_m[pair] / (2 * math.pi)).item()
        where.set_text(f"position {position}: pair {pair} has turned {turns:,.2f} times")
        readout.set_text(f"{unfinished.sum()} of {len(pairs)} never complete a turn (squares)")

    return Live(
        figure,
        update,
        moving={
            "hands": hands,
            "chosen face": chosen_face,
            "where": where,
            "full": full,
            "never": never,
            "chosen": chosen,
            "readout": readout,
        },
        controls={
            "position": slider("position", 0, length, value=300),
            "pair": slider("pair i", 0, head_dim // 2 - 1, value=20),
            "power": slider("base", 1.0, 6.0, unit="power of ten", value=4.0, step=0.5),
        },
        alt=f"Left, {head_dim // 2} clock hands, one a pair, at one position. Right, the wavelengths of the pairs on a "
        f"logarithmic axis, rising from 2π; those above the dashed line at T = {length} are squares: they never "
        "complete a turn.",
    )


def decay() -> Live:
    """How well turned queries and keys match, against the distance: aligned, aimed at an offset, and random."""
    head_dim, offsets = 128, torch.arange(1, 1025)
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(20, 2, head_dim, generator=generator, dtype=torch.float64)
    ones = torch.ones(head_dim, dtype=torch.float64)

    def cosines(query: Tensor, key: Tensor) -> Tensor:
        """Of the key and the query that stands `offset` positions after it, for every offset, (offsets,)."""
        later = rotate(query.expand(len(offsets), head_dim), angles(offsets, head_dim))
        return later @ key / (query.norm() * key.norm())

    def aimed_at(peak: int) -> Tensor:
        """A key that a query of ones matches best from `peak` positions after it."""
        return rotate(ones, angles(torch.tensor(peak), head_dim))

    figure = canvas(8, 3.5)
    figure.set_layout_engine("none")
    panel = figure.add_axes((0.08, 0.15, 0.9, 0.7))
    panel.set_xscale("log")
    panel.set(xlim=(0.95, 1100), ylim=(-0.5, 1.08))
    panel.set_xticks([1, 3, 10, 37, 100, 300, 1000], ["1", "3", "10", "37", "100", "300", "1000"])
    panel.minorticks_off()
    panel.axhline(0, color=GREY, linewidth=0.5)
    panel.set_xlabel("offset m − n (positions)")
    panel.set_ylabel("cosine of turned q and k")
    panel.plot(offsets.numpy(), cosines(ones, ones).numpy(), color=TURNED, label="aligned: k = q")
    (aimed,) = panel.plot([], [], color=TURNED, linestyle="--", label="aimed: k = R(peak) q")
    (random,) = panel.plot([], [], color=GREY, linestyle=":", label="random q and k")
    (now,) = panel.plot([], [], "o", color="black", markersize=6)
    figure.legend(*panel.get_legend_handles_labels(), loc=(0.09, 0.925), ncols=3, frameon=False)
    readout = panel.set_title(" ")
    aligned = cosines(ones, ones)

    def update(offset: int, peak: int, draw: int) -> None:
        curves = aligned, cosines(ones, aimed_at(peak)), cosines(*draws[draw])
        aimed.set_ydata(curves[1].numpy())
        random.set_ydata(curves[2].numpy())
        at = [curve[offset - 1].item() for curve in curves]
        now.set_data([offset] * 3, at)
        readout.set_text(
            f"offset {offset}: aligned {_signed(at[0])}, aimed {_signed(at[1])}, random {_signed(at[2])}"
        )

    for line in (aimed, random):
        line.set_data(offsets.numpy(), aligned.numpy())
    return Live(
        figure,
        update,
        moving={"aimed": aimed, "random": random, "now": now, "readout": readout},
        controls={
            "offset": slider("offset", 1, 1024, unit="positions", value=37),
            "peak": slider("peak", 1, 200, unit="positions", value=37),
            "draw": slider("random draw", 0, 19, value=0),
        },
        alt="The cosine of a turned query and a turned key against their offset, on a logarithmic axis. Aligned "
        "vectors start at 1 and come down in ripples to about a quarter. A key aimed at an offset peaks there. Random "
        "vectors stay near 0 everywhere.",
    )


def low_precision() -> Live:
    """Positions as a low-precision float holds them, and how far the fastest hand is off."""
    types = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
    length, around = 4096, torch.arange(-16, 17)
    figure = canvas(8, 3.8)
    figure.set_layout_engine("none")
    stairs = figure.add_axes((0.08, 0.14, 0.4, 0.73))
    stairs.set(xlim=(-17, 17), ylim=(-25, 25))
    stairs.plot([-17, 17], [-17, 17], color=GREY, linewidth=0.8)
    stairs.set_xlabel("true position, relative to the chosen")
    stairs.set_ylabel("position held, relative to the chosen", labelpad=1)
    (held,) = stairs.plot([], [], "o", color="black", markersize=4)
    count = stairs.set_title(" ")

    clock = figure.add_axes((0.51, 0.14, 0.25, 0.73))
    _circle(clock)
    (true_hand,) = clock.plot([], [], color=POSITION, linewidth=6, alpha=0.7)
    (held_hand,) = clock.plot([], [], color="black", linewidth=2, marker="o", markevery=[1])
    off = clock.set_title(" ")
    clock.set_xlabel("pair 0: true (wide), held")

    bars = figure.add_axes((0.855, 0.14, 0.115, 0.73))
    bars.set(xlim=(-0.6, 0.6), ylim=(0, length * 1.05), xticks=[], yticks=[0, 1024, 2048, 3072, 4096])
    bars.set_xlabel("distinct values")
    (bar,) = bars.plot([], [], color=GREY, linewidth=28, solid_capstyle="butt")
    distinct = bars.set_title(" ")
    everything = torch.arange(length)

    def update(dtype: str, position: int) -> None:
        def hold(positions: Tensor) -> Tensor:
            return positions.to(types[dtype]).long()

        values = hold(position + around)
        true, wrong = angles(torch.stack([torch.tensor(position), hold(torch.tensor(position))]), 2).flatten()
        held.set_data(around.numpy(), (values - position).numpy())
        count.set_text(f"{position} is held as {values[16]}")
        true_hand.set_data([0, true.cos()], [0, true.sin()])
        held_hand.set_data([0, wrong.cos()], [0, wrong.sin()])
        off.set_text(f"off by {(wrong - true).abs():.0f} rad")
        number = len(hold(everything).unique())
        bar.set_data([0, 0], [0, number])
        distinct.set_text(str(number))

    return Live(
        figure,
        update,
        moving={
            "held": held,
            "count": count,
            "true hand": true_hand,
            "held hand": held_hand,
            "off": off,
            "bar": bar,
            "distinct": distinct,
        },
        controls={
            "dtype": choice("dtype", list(types)),
            "position": slider("position", 16, length - 17, value=301),
        },
        alt="Left, positions around the chosen one against the values that a floating-point type holds: stairs for "
        "bfloat16 from 257 on, a straight line for float32. Middle, the hand of the fastest pair for the true and for "
        f"the held position. Right, how many distinct values the first {length} positions have.",
    )


def rounding_errors(positions: Tensor, errors: Mapping[str, Tensor]) -> Live:
    """Error of a score against the position of its query.

    Args:
        positions: of the queries, (M,).
        errors: what was rounded → mean error of the scores, (M,).
    """
    figure = canvas(8, 3)
    panel = figure.subplots()
    panel.set_yscale("log")
    panel.set(xlim=(0, positions[-1].item()), ylim=(1e-4, 2))
    panel.minorticks_off()
    styles = zip(errors.items(), (".", "x"), (TURNED, "black"))
    for (name, error), marker, colour in styles:
        seen = error > 0
        panel.plot(
            positions[seen].numpy(), error[seen].numpy(), marker, color=colour, markersize=4, label=name
        )
    panel.set_xlabel("position of the query")
    panel.set_ylabel("mean error of a score")
    panel.legend(loc="upper left")
    return still(
        figure,
        alt="Mean error of a score against the position of its query, on a logarithmic axis: about a thousandth with "
        "a rounded table anywhere; with rounded positions nothing up to 256, and beyond up to one.",
    )


def by_learning_rate(losses: Mapping[float, Mapping[float | str, Tensor]]) -> Live:
    """Every seed's loss as a dot, one panel a learning rate and one column an amplitude, the turned model last.

    Args:
        losses: learning rate → amplitude or "turned" → one loss a seed, (seeds,).
    """
    figure = canvas(8, 3)
    panels = figure.subplots(1, len(losses), sharey=True)
    for panel, (rate, rows) in zip(panels, losses.items()):
        for column, (name, seeds) in enumerate(rows.items()):
            colour = TURNED if name == "turned" else ADDED if name else NONE
            panel.plot(
                [column] * len(seeds),
                seeds.tolist(),
                "s" if name == "turned" else "o",
                color=colour,
                alpha=0.7,
            )
        panel.set_xticks(range(len(rows)), ["turned" if name == "turned" else f"{name:g}" for name in rows])
        panel.set(xlim=(-0.5, len(rows) - 0.5), ylim=(2, 2.7), title=f"learning rate {rate:g}")
        panel.grid(axis="y", color=PALE, linewidth=0.8)
    figure.supxlabel("amplitude of the added sinusoids, or turned")
    panels[0].set_ylabel("loss (nats a character)")
    return still(
        figure,
        alt="Loss of every seed in three panels, one a learning rate: without positions, with sinusoids added at "
        "three amplitudes, and turned. The turned models are lowest in each panel.",
    )
