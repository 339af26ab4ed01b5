"""What chapter 4 draws: a turned vector, two positions and their score, clocks, decay, low precision, stretching."""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba_array
from matplotlib.patches import Polygon
from torch import Tensor

from posenc.additive import sinusoidal
from posenc.live import BLUE, GREEN, GREY, ORANGE, PINK, SIGNED, Live, canvas, choice, slider, switch
from posenc.rotary import angles, interpolated, ntk, rotate

PALE = "#DDDDDD"
ENCODINGS = [BLUE, ORANGE, GREEN, PINK, "black"]  # one colour a series of dots


def angle() -> Live:
    """A vector, its turned copy, and their dot product as the shadow of the copy on the vector."""
    vector = torch.tensor([1.0, 0.0], dtype=torch.float64)
    figure = canvas(8, 3.4)
    figure.set_layout_engine("none")
    plane = figure.add_axes((0.04, 0.08, 0.36, 0.8))
    _circle(plane)
    plane.set_title("the vector, its copy and the shadow", fontsize=9)
    plane.plot([0, 1], [0, 0], color=BLUE, linewidth=2.5, marker="o", markevery=[1], label="vector")
    (copy,) = plane.plot([], [], color=ORANGE, linewidth=2.5, marker="o", markevery=[1])
    (drop,) = plane.plot([], [], color=GREY, linewidth=1, linestyle=":")
    (shadow,) = plane.plot([], [], color="black", linewidth=5, solid_capstyle="butt", alpha=0.7)

    panel = figure.add_axes((0.52, 0.17, 0.45, 0.71))
    panel.set(xlim=(-180, 180), ylim=(-1.15, 1.15), xticks=[-180, -90, 0, 90, 180], yticks=[-1, 0, 1])
    panel.tick_params(labelsize=8)
    panel.axhline(0, color=GREY, linewidth=0.5)
    panel.set_xlabel("angle (degrees)", fontsize=9)
    panel.set_ylabel("dot product", fontsize=9)
    degrees = torch.arange(-180, 181, 2.0)
    panel.plot(degrees.numpy(), degrees.deg2rad().cos().numpy(), color=GREY)
    (now,) = panel.plot([], [], "o", color="black", markersize=7)
    readout = panel.set_title(" ", fontsize=9)

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
        axes.set_title(title, fontsize=9)

    sheet(0.02, word, "the word")
    sheet(0.2, stripes, "a position")
    sheet(0.38, word + stripes, "glued: word + position")
    sheet(0.63, word, "the word")
    bend = 0.25 * (1.5 * math.pi * across).sin()
    sheet(0.82, word, "bent by the position", x=across, y=down + bend)
    for x, sign in ((0.185, "+"), (0.365, "="), (0.8, "→")):
        figure.text(x, 0.4, sign, ha="center", va="center", fontsize=14)
    return Live(
        figure,
        lambda: None,
        moving={},
        controls={},
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
        plane.set_title(title, fontsize=9)
        (moving[f"{name}, angle"],) = plane.plot([], [], color=GREY, linewidth=6, alpha=0.35)
        for role, vector, colour in (("query", query, BLUE), ("key", key, ORANGE)):
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
    figure.text(0.01, 0.03, "blue: query at m, orange: key at n, dashed: both without a position", fontsize=9)

    panel = figure.add_axes((0.64, 0.15, 0.345, 0.72))
    panel.set(xlim=(-0.5, longest + 0.5), ylim=(-1.6, 5))
    panel.tick_params(labelsize=8)
    panel.axhline(0, color=GREY, linewidth=0.5)
    panel.set_xlabel("query's position m", fontsize=9)
    panel.set_ylabel("score q·k", fontsize=9, labelpad=1)
    for name, colour, style in (("turned", GREEN, "-"), ("added", PINK, "--")):
        (moving[f"{name}, scores"],) = panel.plot(
            [], [], color=colour, marker=".", linestyle=style, label=name
        )
        (moving[f"{name}, now"],) = panel.plot([], [], "o", color=colour, markersize=9)
    panel.legend(*panel.get_legend_handles_labels(), loc="upper right", fontsize=8, ncols=2)
    moving["readout"] = panel.set_title(" ", fontsize=9)

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
    colours = to_rgba_array([BLUE, ORANGE])
    (chosen_face,) = faces.plot([], [], color="black", linewidth=1.2)
    where = faces.set_title(" ", fontsize=9)

    panel = figure.add_axes((0.55, 0.13, 0.43, 0.77))
    panel.set_yscale("log")
    panel.set(xlim=(-1, head_dim // 2), ylim=(3, 1e7), yticks=[10, 1e3, 1e5])
    panel.minorticks_off()
    panel.tick_params(labelsize=8)
    panel.axhline(length, color=GREY, linestyle="--", linewidth=1)
    panel.text(0, length * 1.2, f"T = {length}", fontsize=8, color=GREY)
    panel.set_xlabel("pair i", fontsize=9)
    panel.set_ylabel("wavelength (positions)", fontsize=9, labelpad=1)
    (full,) = panel.plot([], [], "o", color=BLUE, markersize=3)
    (never,) = panel.plot([], [], "s", color=ORANGE, markersize=3)
    (chosen,) = panel.plot([], [], "o", color="black", markersize=10, fillstyle="none")
    readout = panel.set_title(" ", fontsize=9)

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
        readout.set_text(f"{unfinished.sum()} of {len(pairs)} never complete a turn (orange)")

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
        f"logarithmic axis, rising from 2π; those above the dashed line at T = {length} are orange: they never "
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
    panel.tick_params(labelsize=8)
    panel.axhline(0, color=GREY, linewidth=0.5)
    panel.set_xlabel("offset m − n (positions)", fontsize=9)
    panel.set_ylabel("cosine of turned q and k", fontsize=9)
    panel.plot(offsets.numpy(), cosines(ones, ones).numpy(), color=BLUE, label="aligned: k = q")
    (aimed,) = panel.plot([], [], color=ORANGE, linestyle="--", label="aimed: k = R(peak) q")
    (random,) = panel.plot([], [], color=GREY, linestyle=":", label="random q and k")
    (now,) = panel.plot([], [], "o", color="black", markersize=6)
    figure.legend(*panel.get_legend_handles_labels(), loc=(0.09, 0.925), ncols=3, fontsize=8, frameon=False)
    readout = panel.set_title(" ", fontsize=9)
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
    stairs.tick_params(labelsize=8)
    stairs.plot([-17, 17], [-17, 17], color=GREY, linewidth=0.8)
    stairs.set_xlabel("true position, relative to the chosen", fontsize=9)
    stairs.set_ylabel("position held, relative to the chosen", fontsize=9, labelpad=1)
    (held,) = stairs.plot([], [], "o", color=ORANGE, markersize=4)
    count = stairs.set_title(" ", fontsize=9)

    clock = figure.add_axes((0.51, 0.14, 0.25, 0.73))
    _circle(clock)
    (true_hand,) = clock.plot([], [], color=BLUE, linewidth=5, alpha=0.5)
    (held_hand,) = clock.plot([], [], color=ORANGE, linewidth=2, marker="o", markevery=[1])
    off = clock.set_title(" ", fontsize=9)
    clock.set_xlabel("pair 0: true (wide), held (dot)", fontsize=9)

    bars = figure.add_axes((0.855, 0.14, 0.115, 0.73))
    bars.set(xlim=(-0.6, 0.6), ylim=(0, length * 1.05), xticks=[], yticks=[0, 1024, 2048, 3072, 4096])
    bars.tick_params(labelsize=8)
    bars.set_xlabel("distinct values", fontsize=9)
    (bar,) = bars.plot([], [], color=ORANGE, linewidth=28, solid_capstyle="butt")
    distinct = bars.set_title(" ", fontsize=9)
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


def stretching() -> Live:
    """Where interpolation and NTK put the angles of a longer text, against the range that was trained."""
    head_dim, trained, widest = 16, 64, 512
    pairs, positions = torch.arange(head_dim // 2), torch.arange(0, widest + 1, 8)
    speed = angles(torch.tensor(1), head_dim)
    ways: Mapping[str, tuple[Callable[..., Tensor], str, str]] = {
        "as trained": (lambda p, d, scale: angles(p, d), GREY, "-"),
        "NTK": (ntk, ORANGE, "-"),
        "PI": (interpolated, BLUE, "--"),
    }
    figure = canvas(8, 3.8)
    figure.set_layout_engine("none")
    lines = figure.add_axes((0.09, 0.14, 0.4, 0.71))
    lines.set(xlim=(0, widest), ylim=(0, widest))
    lines.axhspan(0, trained, color=GREEN, alpha=0.18, linewidth=0)
    lines.set_xlabel("position", fontsize=9)
    lines.set_ylabel("turned as at position", fontsize=9)
    slopes = figure.add_axes((0.58, 0.14, 0.4, 0.71))
    slopes.set_yscale("log", base=2)
    slopes.set(xlim=(-0.4, 7.4), ylim=(0.7, 10), xticks=pairs.tolist())
    slopes.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    slopes.minorticks_off()
    slopes.axhspan(0.7, 1, color=GREEN, alpha=0.18, linewidth=0)
    slopes.set_xlabel("pair i", fontsize=9)
    slopes.set_ylabel("angle at the end / largest trained", fontsize=9, labelpad=1)
    for panel in (lines, slopes):
        panel.tick_params(labelsize=8)
    moving = {}
    for name, (_, colour, style) in ways.items():
        (moving[f"{name}, line"],) = lines.plot(
            [], [], color=colour, linestyle=style, linewidth=2, label=name
        )
        (moving[f"{name}, ends"],) = slopes.plot(
            [], [], color=colour, linestyle=style, marker="o", markersize=4, label=name
        )
    figure.legend(*lines.get_legend_handles_labels(), loc=(0.32, 0.925), ncols=3, fontsize=8, frameon=False)
    (moving["end"],) = lines.plot([], [], color="black", linestyle=":", linewidth=1)
    moving["left"], moving["right"] = lines.set_title(" ", fontsize=9), slopes.set_title(" ", fontsize=9)
    (moving["chosen"],) = slopes.plot([], [], color="black", linestyle=":", linewidth=1)

    def update(scale: float, pair: int) -> None:
        end = torch.tensor(round(scale * trained))
        for name, (stretched, _, _) in ways.items():
            turned = stretched(positions, head_dim, scale=scale)[:, pair] / speed[pair]
            moving[f"{name}, line"].set_data(positions.numpy(), turned.numpy())
            ratio = stretched(end, head_dim, scale=scale) / angles(torch.tensor(trained), head_dim)
            moving[f"{name}, ends"].set_data(pairs.numpy(), ratio.numpy())
        moving["end"].set_data([end, end], [0, widest])
        moving["chosen"].set_data([pair, pair], [0.7, 10])
        moving["left"].set_text(f"pair {pair}; dotted, the end: {end}")
        moving["right"].set_text(f"s = {scale:g}; green, what was trained")

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "scale": slider("scale s", 1.0, 8.0, unit="times", value=4.0, step=0.5),
            "pair": slider("pair i", 0, head_dim // 2 - 1, value=4),
        },
        alt="Left, for one pair, the position whose trained angle it has, against the position: as trained the "
        "diagonal, with interpolation a flatter line that ends inside the trained range. Right, for every pair, the "
        "angle at the end of the longer text as a multiple of the largest trained one: s as trained, 1 with "
        "interpolation, and with NTK from s down to 1.",
    )


def shares_by_position(right: Mapping[str, Tensor], *, first: int, trained: int) -> Live:
    """Share of right answers against the position, one panel an encoding and one line a seed.

    Args:
        right: encoding → shares, (seeds, positions), drawn as means of eight positions.
        first: the position that the first share belongs to.
        trained: length of the training sequences, shaded.
    """
    figure = canvas(8, 2.5)
    panels = figure.subplots(1, len(right), sharey=True, squeeze=False)[0]
    for panel, (name, shares) in zip(panels, right.items()):
        panel.axvspan(0, trained, color=GREEN, alpha=0.18, linewidth=0)
        groups = shares.unfold(-1, 8, 8).mean(dim=-1)  # eight positions at a time
        centres = first + 8 * torch.arange(groups.shape[1]) + 3.5
        panel.plot(centres.numpy(), groups.T.numpy(), color=BLUE, alpha=0.6, linewidth=1.2)
        panel.set(xlim=(0, first + shares.shape[1]), ylim=(0, 1.05))
        panel.set_title(name, fontsize=9)
        panel.tick_params(labelsize=8)
    figure.supxlabel("position", fontsize=9)
    figure.supylabel("share right", fontsize=9)
    return Live(
        figure,
        lambda: None,
        moving={},
        controls={},
        alt=f"Share of right answers against the position, one panel an encoding: {', '.join(right)}. "
        f"The first {trained} positions, which were trained, are shaded.",
    )


def dots(
    values: Mapping[str, Sequence[Tensor]],
    *,
    series: Sequence[str],
    measure: str,
    limits: tuple[float, float],
) -> Live:
    """Every seed as a dot, one column a name, with several series beside each other.

    Args:
        values: name → for each series one number a seed, (seeds,).
        series: what the numbers beside each other are.
        measure: what is on the vertical axis.
        limits: of the vertical axis.
    """
    figure = canvas(8, 3)
    panel = figure.subplots()
    panel.set(xlim=(-0.5, len(values) - 0.5), ylim=limits)
    panel.set_xticks(range(len(values)), list(values), fontsize=9)
    panel.tick_params(axis="y", labelsize=8)
    panel.grid(axis="y", color=PALE, linewidth=0.8)
    panel.set_ylabel(measure, fontsize=9)
    for index, name in enumerate(series):
        shift = 0.22 * (index - (len(series) - 1) / 2)
        x = [column + shift for column, row in enumerate(values.values()) for _ in row[index]]
        y = [seed for row in values.values() for seed in row[index].tolist()]
        panel.plot(
            x, y, "os^D"[index], color=ENCODINGS[index], markersize=6, alpha=0.7, linestyle="none", label=name
        )
    if len(series) > 1:
        panel.legend(loc="upper left", fontsize=8, ncols=len(series))
    return Live(
        figure,
        lambda: None,
        moving={},
        controls={},
        alt=f"{measure}, one dot a seed: {', '.join(values)}; {', '.join(series)}.",
    )
