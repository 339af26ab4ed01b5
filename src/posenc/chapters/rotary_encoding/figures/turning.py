"""What a turn does to a vector, to a score and in a layer."""

import math
from collections.abc import Callable
from functools import partial

import torch
from matplotlib.patches import Polygon, Rectangle
from torch import Tensor

from posenc.additive import sinusoidal
from posenc.attention import attention
from posenc.lesson import drawing as draw
from posenc.lesson.controls import choice, slider, switch
from posenc.lesson.drawing import bare, blank, dial, drawing, hand, signed
from posenc.lesson.live import Live, still
from posenc.lesson.palette import (
    ADDED,
    CONTENT,
    GREY,
    KEY,
    POSITION,
    QUERY,
    SIGNED,
    TURNED,
    VALUE,
)
from posenc.rotary import angles, rotate

PALE = "#DDDDDD"


def angle() -> Live:
    """A vector, its turned copy, and their dot product as the shadow of the copy on the vector."""
    vector = torch.tensor([1.0, 0.0], dtype=torch.float64)
    figure = blank(3.4)
    plane = figure.add_axes((0.04, 0.08, 0.36, 0.8))
    dial(plane, 1.25, PALE, 1).set_title("the vector, its copy and the shadow")
    hand(plane, QUERY, vector)
    plane.text(1.2, 0.08, "vector", color=QUERY, ha="right")
    moving = {"copy": hand(plane, KEY)}
    (moving["drop"],) = plane.plot([], [], color=GREY, linewidth=1, linestyle=":")
    (moving["shadow"],) = plane.plot([], [], color="black", linewidth=5, solid_capstyle="butt", alpha=0.7)

    panel = figure.add_axes((0.52, 0.17, 0.45, 0.71))
    panel.set(xlim=(-180, 180), ylim=(-1.15, 1.15), xticks=[-180, -90, 0, 90, 180], yticks=[-1, 0, 1])
    panel.axhline(0, color=GREY, linewidth=0.5)
    panel.set_xlabel("angle (degrees)")
    panel.set_ylabel("dot product")
    degrees = torch.arange(-180, 181, 2.0)
    panel.plot(degrees, degrees.deg2rad().cos(), color=GREY)
    (moving["now"],) = panel.plot([], [], "o", color="black", markersize=7)
    moving["readout"] = panel.set_title(" ")

    def update(degrees: int) -> None:
        radians = torch.tensor([math.radians(degrees)], dtype=torch.float64)
        x, y = rotate(vector, radians).tolist()
        moving["copy"].set_data([0, x], [0, y])
        moving["drop"].set_data([x, x], [y, 0])
        moving["shadow"].set_data([0, x], [0, 0])
        moving["now"].set_data([degrees], [x])
        moving["readout"].set_text(f"dot product {signed(x)}, length of the copy {math.hypot(x, y):.2f}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={"degrees": slider("angle", -180, 180, unit="degrees", value=60, step=5)},
        alt="Left, a vector of length 1, a copy of it turned by the angle, and the shadow of the copy on the vector. "
        "Right, the shadow's length, which is the dot product, against the angle: a cosine. The length of the copy "
        "stays 1.",
    )


def paper() -> Live:
    """A sheet glued to another one, and a sheet that is bent."""
    size = 10
    across, down = torch.meshgrid([torch.linspace(0, 1, size + 1)] * 2, indexing="xy")
    word = torch.zeros(size, size)
    word[2:8, 3:7] = 1.0  # a letter O
    word[3:7, 4:6] = 0.0
    stripes = sinusoidal(torch.arange(3, 3 + size), size, base=4.0) / 2
    figure = blank(2.6)

    def sheet(left: float, colours: Tensor, title: str, x: Tensor = across, y: Tensor = down) -> None:
        axes = figure.add_axes((left, 0.05, 0.15, 0.72))
        axes.pcolormesh(x.numpy(), y.numpy(), colours.numpy(), cmap=SIGNED, vmin=-1.5, vmax=1.5)
        edge = torch.stack([torch.cat([each[0], each[-1].flip(0)]) for each in (x, y)], dim=1)
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
    """A query at m and a key at n, turned on the left, added to in the middle, and the score of both ways up to m."""
    longest, places = 24, torch.arange(25)
    query, key = torch.tensor([[0.766, 0.643], [0.869, 0.233]], dtype=torch.float64)

    def turned(vector: Tensor, position: Tensor) -> Tensor:
        return rotate(vector.expand(*position.shape, 2), angles(position, 4, base=16.0)[..., 1:])

    def added(vector: Tensor, position: Tensor) -> Tensor:
        return vector + sinusoidal(position, 4, base=16.0, dtype=vector.dtype)[..., 2:]

    ways = {"turned": (turned, 1.3), "added": (added, 2.2)}  # with how far each plane reaches
    looks = (
        ("turned", "turned by their positions", TURNED, "-"),
        ("added", "with their positions added", ADDED, "--"),
    )
    figure = blank(3.5)
    panel = figure.add_axes((0.64, 0.15, 0.345, 0.72))
    panel.set(xlim=(-0.5, longest + 0.5), ylim=(-1.6, 5))
    panel.axhline(0, color=GREY, linewidth=0.5)
    panel.set_xlabel("query's position m")
    panel.set_ylabel("score q·k", labelpad=1)
    moving = {}
    for column, (name, title, of_way, style) in enumerate(looks):
        plane = figure.add_axes((0.01 + 0.285 * column, 0.24, 0.275, 0.275 * 8 / 3.5))
        dial(plane, ways[name][1], PALE, 1).set_title(title, color=of_way)
        (moving[f"{name}, angle"],) = plane.plot([], [], color=GREY, linewidth=6, alpha=0.35)
        for role, vector, colour in (("query", query, QUERY), ("key", key, KEY)):
            hand(plane, colour, vector, linewidth=1, alpha=0.6, linestyle="--", marker="")
            if name == "added":
                (moving[f"added, {role}'s position"],) = plane.plot([], [], color=colour, linewidth=1)
            moving[f"{name}, {role}"] = hand(plane, colour, linewidth=3)
            letter = {"color": colour, "fontsize": 11, "weight": "bold", "ha": "center", "va": "center"}
            moving[f"{name}, {role}'s name"] = plane.text(0, 0, role[0], **letter)
        below = {"transform": plane.transAxes, "ha": "center", "fontsize": 12, "color": of_way}
        moving[f"{name}, score"] = plane.text(0.5, -0.12, " ", **below)
        (moving[f"{name}, scores"],) = panel.plot([], [], f".{style}", color=of_way, label=name)
        (moving[f"{name}, now"],) = panel.plot([], [], "o", color=of_way, markersize=9)
    figure.text(0.01, 0.03, "q: query at m    k: key at n    dashed: without a position")
    panel.legend(*panel.get_legend_handles_labels(), loc="upper right", ncols=2)
    moving["readout"] = panel.set_title(" ")

    def update(m: int, n: int, lock: bool) -> None:
        others = places - (m - n) if lock else torch.full_like(places, n)
        shown = (others >= 0) & (others <= longest) & (places <= m)
        for name, (place, limit) in ways.items():
            q, k = place(query, torch.tensor(m)), place(key, torch.tensor(n))
            scores = (place(query, places) * place(key, others)).sum(-1)
            for role, tip, start in (("query", q, query), ("key", k, key)):
                moving[f"{name}, {role}"].set_data([0, tip[0]], [0, tip[1]])
                moving[f"{name}, {role}'s name"].set_position((tip * (1 + 0.12 * limit / tip.norm())).tolist())
                if name == "added":
                    moving[f"added, {role}'s position"].set_data([start[0], tip[0]], [start[1], tip[1]])
            moving[f"{name}, angle"].set_data(*_between(q, k).numpy())
            moving[f"{name}, score"].set_text(f"score {signed(q @ k)}")
            moving[f"{name}, scores"].set_data(places[shown], scores[shown])
            moving[f"{name}, now"].set_data([m], [(q @ k).item()])
        said = "kept" if lock else f"key stays at {n}"
        moving["readout"].set_text(f"m − n = {signed(m - n, '.0f')}, {said}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "m": slider("m", 0, longest, unit="position", value=7),
            "n": slider("n", 0, longest, unit="position", value=4),
            "lock": switch("lock m − n"),
        },
        together={"lock": ("m", "n")},
        alt="A query and a key as two arrows, turned by their positions in the first plane, with their positions added "
        "in the second. A third panel draws the scores of both ways as far as the query's position m has come.",
    )


def _between(q: Tensor, k: Tensor) -> Tensor:
    """An arc at radius 0.4 from the direction of q to that of k, the short way, (2, points)."""
    start = torch.atan2(q[1], q[0])
    turn = torch.atan2(q[0] * k[1] - q[1] * k[0], q @ k)
    along = start + turn * torch.linspace(0, 1, 20, dtype=q.dtype)
    return 0.4 * torch.stack([along.cos(), along.sin()])


def _moved(*, turn_x: bool = False, turn_qk: bool = False, turn_v: bool = False) -> Tensor:
    """How far the output of a head moves when its text moves on by 1000 positions."""
    head_dim, length = 64, 12
    draw = partial(torch.randn, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    tokens, weights = draw(length, head_dim), draw(3, head_dim, head_dim) / 8

    def output(start: int) -> Tensor:
        turn = partial(rotate, angles=angles(torch.arange(start, start + length), head_dim))
        q, k, v = (turn(tokens) if turn_x else tokens) @ weights
        q, k = (turn(q), turn(k)) if turn_qk else (q, k)
        return attention(q, k, turn(v) if turn_v else v)

    return (output(1000) - output(0)).abs().max()


def where_it_turns(moved: Callable[..., Tensor] = _moved) -> Live:
    """A layer of attention as a drawing, what is turned in it, and how far its output moves with the whole text.

    Args:
        moved: called with `turn_x`, `turn_qk` and `turn_v`, those that are true; how far the output moves when the
            text moves on by 1000 positions.
    """
    ways = {"nothing": (), "x": ("x",), "q, k and v": ("qk", "v"), "q and k": ("qk",)}
    panel = bare(drawing(3.3))
    box = partial(draw.box, panel, width=1.9, height=0.9)
    arrow = partial(draw.arrow, panel, width=1.2)
    box(0.3, 2.8, "token x", CONTENT)
    for y, name, colour in ((4.9, "query q", QUERY), (2.8, "key k", KEY), (0.7, "value v", VALUE)):
        box(5.0, y, name, colour)
        arrow((2.2, 3.25), (5.0, y + 0.45))
        arrow((6.9, y + 0.45), (10.4, {4.9: 4.5, 2.8: 4.1}.get(y, 2.3)) if y > 1 else (13.4, 2.4), colour)
    box(10.4, 3.85, "score", "black", width=1.6)
    arrow((12.0, 4.3), (13.6, 3.1))
    panel.text(13.2, 4.05, "softmax", ha="center", va="center")
    box(13.4, 2.2, "output", "black", width=1.9)
    places = {"x": [(2.5, 3.25)], "qk": [(8.2, 5.1), (8.2, 3.65)], "v": [(8.2, 1.5)]}
    disc = {"boxstyle": "circle,pad=0.25", "facecolor": TURNED, "edgecolor": "none"}
    look = {"ha": "center", "va": "center", "color": "white", "fontsize": 12, "bbox": disc}
    turns = {
        (name, number): panel.text(*place, "↺", **look)
        for name, each in places.items()
        for number, place in enumerate(each)
    }
    said = panel.text(8, 6.2, " ", ha="center", va="center", fontsize=11)

    def update(turned: str) -> None:
        for (name, _), mark in turns.items():
            mark.set_visible(name in ways[turned])
        distance = float(moved(**{f"turn_{name}": True for name in ways[turned]}))
        moved_by = f"The text moves on by 1000 positions, and the output by {distance:.2f}"
        said.set_text(f"turned: {turned}. {moved_by}")

    return Live(
        panel.figure,
        update,
        moving={f"turn of {name} {number}": mark for (name, number), mark in turns.items()} | {"said": said},
        controls={"turned": choice("turned", list(ways))},
        alt="A token x gives a query, a key and a value; query and key meet in the score, and its softmax weighs the "
        "values for the output. A sign of a turn stands on the arrows of what is turned, and above how far the output "
        "moves when the text moves on by 1000 positions.",
    )


def constant_turned() -> Live:
    """Chapter 2's position as a constant arrow, turned and added, beside a query that is turned itself."""
    head_dim, base, longest = 8, 100.0, 40
    places = torch.arange(longest + 1)
    word, query = torch.tensor([[0.75, 0.55], [0.9, 0.5]], dtype=torch.float64)
    constant = torch.tensor([1.0, 0.0], dtype=torch.float64)
    pe = sinusoidal(places, head_dim, base=base, dtype=torch.float64).unflatten(-1, (-1, 2))  # sin, cos last
    theta = angles(places, head_dim, base=base)  # (p, pair)
    figure = blank(3.2)
    moving = {}
    around = torch.linspace(0, 2 * math.pi, 60, dtype=torch.float64)
    circle = torch.stack([around.cos(), around.sin()])
    planes = (
        ("chapter 2: add a turned constant", word, 1.0),
        ("chapter 4: turn the query itself", 0 * word, query.norm()),
    )
    for column, (title, centre, radius) in enumerate(planes):
        plane = figure.add_axes((0.01 + 0.3 * column, 0.1, 0.28, 0.28 * 8 / 3.2))
        plane.set(xlim=(-1.9, 1.9), ylim=(-1.9, 1.9), aspect="equal", xticks=[], yticks=[], title=title)
        plane.plot(*(centre[:, None] + radius * circle).numpy(), color=PALE, linewidth=1)
        if not column:
            hand(plane, CONTENT, word)
            (moving["sum"],) = plane.plot([], [], color=ADDED, linewidth=1.5, linestyle="--")
            moving["position"] = hand(plane, POSITION, marker="s")
            plane.text(0.03, 0.03, "word, position, dashed: their sum", transform=plane.transAxes)
        else:
            hand(plane, QUERY, query, linewidth=1, linestyle="--", marker="")
            moving["query"] = hand(plane, QUERY)
            plane.text(0.03, 0.03, "dashed: the query at 0", transform=plane.transAxes)

    wave = figure.add_axes((0.67, 0.2, 0.315, 0.66))
    wave.set(xlim=(-1, longest + 1), ylim=(-1.25, 1.25), yticks=[-1, 0, 1])
    wave.set_xlabel("position p")
    wave.set_title("tip of the constant (dots), PE(p) (rings)")
    for name, colour, line, mark in (("cosine", GREY, "--", "o"), ("sine", POSITION, "-", "s")):
        (moving[f"{name}, wave"],) = wave.plot([], [], line, color=colour, linewidth=1, alpha=0.6)
        (moving[f"{name}, ring"],) = wave.plot([], [], mark, color=colour, markersize=11, fillstyle="none")
        (moving[f"{name}, dot"],) = wave.plot([], [], mark, color=colour, markersize=5)

    def update(p: int, pair: int) -> None:
        tip, turned = (rotate(vector, theta[p, [pair]]) for vector in (constant, query))
        end = word + tip
        moving["position"].set_data([word[0], end[0]], [word[1], end[1]])
        moving["sum"].set_data([0, end[0]], [0, end[1]])
        moving["query"].set_data([0, turned[0]], [0, turned[1]])
        for name, wave_of, of_pe, of_tip in (("cosine", torch.cos, 1, 0), ("sine", torch.sin, 0, 1)):
            moving[f"{name}, wave"].set_data(places, wave_of(theta[:, pair]))
            moving[f"{name}, ring"].set_data([p], [pe[p, pair, of_pe]])
            moving[f"{name}, dot"].set_data([p], [tip[of_tip]])

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "p": slider("position p", 0, longest, value=0),
            "pair": slider("pair i", 0, head_dim // 2 - 1, value=1),
        },
        alt="Left, a word as an arrow that stays, and at its tip a constant arrow that is turned by the position; their "
        "sum ends on a circle around the word. Middle, a query that is turned by the position itself. Right, the two "
        "coordinates of the constant's tip against the position: they lie in the rings of the sinusoids of chapter 2.",
    )


def two_layouts() -> Live:
    """Which dimensions of a head of eight are turned together, interleaved and half-split."""
    head_dim = 8
    panel = bare(drawing(3.2))
    panel.set(xlim=(-2.6, 8.4), ylim=(-0.7, 6))
    words = partial(panel.text, ha="center", va="center")
    rows = {"interleaved": 4.0, "half-split": 0.9}
    letters = {"interleaved": "abcdefgh", "half-split": "acegbdfh"}
    for layout, y in rows.items():
        panel.text(-2.5, y + 0.35, layout, va="center", fontsize=11, weight="bold")
        for column, letter in enumerate(letters[layout]):
            panel.add_patch(Rectangle((column + 0.08, y), 0.84, 0.7, facecolor="white", edgecolor=GREY))
            words(column + 0.5, y + 0.35, letter, fontsize=11)
            words(column + 0.5, y + 0.9 if layout == "interleaved" else y - 0.2, str(column), color=GREY)
            if layout == "half-split":
                above = letters["interleaved"].index(letter)
                panel.plot([above + 0.5, column + 0.5], [3.95, 1.65], color=PALE, linewidth=1)
    moving = {"said": words(4, 5.75, " ", fontsize=10)}
    look = {"facecolor": TURNED, "alpha": 0.3, "edgecolor": TURNED, "linewidth": 2.5}
    for layout in rows:
        for part in (0, 1):
            moving[f"{layout}, box {part}"] = panel.add_patch(Rectangle((0, 0), 0.84, 0.7, **look))
        (moving[f"{layout}, arc"],) = panel.plot([], [], color=TURNED, linewidth=2)
    for part in (0, 1):
        (moving[f"way {part}"],) = panel.plot([], [], color=TURNED, linewidth=2)
    half_circle = torch.linspace(0, math.pi, 30)

    def update(pair: int) -> None:
        places = {"interleaved": (2 * pair, 2 * pair + 1), "half-split": (pair, pair + head_dim // 2)}
        for (layout, y), edge, height in zip(rows.items(), (5.15, 0.5), (0.25, -0.6)):
            low, high = places[layout]
            for part, column in enumerate((low, high)):
                moving[f"{layout}, box {part}"].set_xy((column + 0.08, y))
            across = (low + high + 1) / 2 + (high - low) / 2 * half_circle.cos()
            moving[f"{layout}, arc"].set_data(across, edge + height * half_circle.sin())
        for part in (0, 1):
            moving[f"way {part}"].set_data([columns[part] + 0.5 for columns in places.values()], [3.95, 1.65])
        (a, b), (c, d) = places.values()
        moving["said"].set_text(f"pair {pair}: dimensions {a} and {b} interleaved, {c} and {d} half-split")

    return Live(
        panel.figure,
        update,
        moving=moving,
        controls={"pair": slider("pair i", 0, head_dim // 2 - 1, value=1)},
        alt="Two rows of eight boxes, a to h. Interleaved, an arc joins neighbours: the dimensions 2i and 2i + 1. "
        "Half-split, the same letters stand in another order, and the arc joins dimension i with i + 4.",
    )
