"""What chapter 4 draws: a turned vector, two positions and their score, clocks, decay, low precision, trained losses."""

import math
from collections.abc import Callable, Mapping
from functools import partial

import ipywidgets as widgets
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba_array
from matplotlib.patches import Polygon, Rectangle
from torch import Tensor

from posenc.additive import sinusoidal
from posenc.attention import attention, attention_weights, causal_bias
from posenc.lesson import drawing as draw
from posenc.lesson.controls import choice, slider, switch
from posenc.lesson.drawing import drawing
from posenc.lesson.live import Live, canvas, still
from posenc.lesson.palette import (
    ADDED,
    CONTENT,
    GREY,
    KEY,
    MAGNITUDE,
    NONE,
    POSITION,
    QUERY,
    SIGNED,
    TURNED,
    VALUE,
)
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
    """A query at m and a key at n, turned on the left, added to in the middle, and the score of both ways up to m."""
    longest, places = 24, torch.arange(25)
    query, key = torch.tensor([[0.766, 0.643], [0.869, 0.233]], dtype=torch.float64)

    def turned(vector: Tensor, position: Tensor) -> Tensor:
        return rotate(vector.expand(*position.shape, 2), angles(position, 4, base=16.0)[..., 1:])

    def added(vector: Tensor, position: Tensor) -> Tensor:
        return vector + sinusoidal(position, 4, base=16.0, dtype=vector.dtype)[..., 2:]

    ways = {"turned": turned, "added": added}
    colours = {"turned": TURNED, "added": ADDED}
    figure = canvas(8, 3.5)
    figure.set_layout_engine("none")
    moving = {}
    titles = {"turned": "turned by their positions", "added": "with their positions added"}
    for column, (name, title) in enumerate(titles.items()):
        plane = figure.add_axes((0.01 + 0.285 * column, 0.24, 0.275, 0.275 * 8 / 3.5))
        _circle(plane, [1.3, 2.2][column])
        plane.set_title(title, color=colours[name])
        (moving[f"{name}, angle"],) = plane.plot([], [], color=GREY, linewidth=6, alpha=0.35)
        for role, vector, colour in (("query", query, QUERY), ("key", key, KEY)):
            x, y = vector.tolist()
            plane.plot([0, x], [0, y], color=colour, linewidth=1, alpha=0.6, linestyle="--")
            if name == "added":
                (moving[f"added, {role}'s position"],) = plane.plot([], [], color=colour, linewidth=1)
            (moving[f"{name}, {role}"],) = plane.plot(
                [], [], color=colour, linewidth=3, marker="o", markevery=[1]
            )
            moving[f"{name}, {role}'s name"] = plane.text(
                0, 0, role[0], color=colour, fontsize=11, weight="bold", ha="center", va="center"
            )
        moving[f"{name}, score"] = plane.text(
            0.5, -0.12, " ", transform=plane.transAxes, ha="center", fontsize=12, color=colours[name]
        )
    figure.text(0.01, 0.03, "q: query at m    k: key at n    dashed: without a position")

    panel = figure.add_axes((0.64, 0.15, 0.345, 0.72))
    panel.set(xlim=(-0.5, longest + 0.5), ylim=(-1.6, 5))
    panel.axhline(0, color=GREY, linewidth=0.5)
    panel.set_xlabel("query's position m")
    panel.set_ylabel("score q·k", labelpad=1)
    for name, style in (("turned", "-"), ("added", "--")):
        (moving[f"{name}, scores"],) = panel.plot(
            [], [], color=colours[name], marker=".", linestyle=style, label=name
        )
        (moving[f"{name}, now"],) = panel.plot([], [], "o", color=colours[name], markersize=9)
    panel.legend(*panel.get_legend_handles_labels(), loc="upper right", ncols=2)
    moving["readout"] = panel.set_title(" ")

    def update(m: int, n: int, lock: bool) -> None:
        others = places - (m - n) if lock else torch.full_like(places, n)
        shown = (others >= 0) & (others <= longest) & (places <= m)
        for name, place in ways.items():
            q, k = place(query, torch.tensor(m)), place(key, torch.tensor(n))
            scores = (place(query, places) * place(key, others)).sum(-1)
            for role, tip, start in (("query", q, query), ("key", k, key)):
                moving[f"{name}, {role}"].set_data([0, tip[0]], [0, tip[1]])
                moving[f"{name}, {role}'s name"].set_position((tip * (1 + 0.16 / tip.norm())).tolist())
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

    live = Live(
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
            "position": slider("position", 0, length, value=300, stops=[0, 6, 300, 4096]),
            "pair": slider("pair i", 0, head_dim // 2 - 1, value=20, stops=[0, 20, 63]),
            "power": slider(
                "base", 1.0, 6.0, unit="power of ten", value=4.0, step=0.5, stops=[1.0, 4.0, 6.0]
            ),
        },
        alt=f"Left, {head_dim // 2} clock hands, one a pair, at one position. Right, the wavelengths of the pairs on a "
        f"logarithmic axis, rising from 2π; those above the dashed line at T = {length} are squares: they never "
        "complete a turn.",
    )
    position = live.controls["position"]
    play = widgets.Play(min=0, max=length, value=position.value, interval=100, tooltip="let the hands turn")
    widgets.jslink((play, "value"), (position, "value"))
    live.view.children = (play, *live.view.children)
    return live


def aimed(back: int, head_dim: int) -> Tensor:
    """A query and a key that meet best `back` places apart, (2, head_dim)."""
    key = 20 * torch.ones(head_dim, dtype=torch.float64)
    return torch.stack([rotate(key, angles(torch.tensor(-back), head_dim)), key])


def looking_back(look_back: Callable[[int, int], Tensor] = aimed) -> Live:
    """The attention weights of a head whose query and key are the same for all tokens.

    Args:
        look_back: a number of places and d → a query and a key, (2, d).
    """
    length, head_dim = 24, 64
    everywhere = torch.arange(length)
    figure = canvas(8, 3.6)
    figure.set_layout_engine("none")
    whole = figure.add_axes((0.08, 0.14, 0.36, 0.75))
    whole.set(xlim=(-0.5, length - 0.5), ylim=(length - 0.5, -0.5), aspect="equal")
    whole.set_xlabel("key's position n")
    whole.set_ylabel("query's position m", labelpad=1)
    image = whole.imshow(torch.zeros(length, length).numpy(), cmap=MAGNITUDE, vmin=0, vmax=1)
    row = whole.add_patch(Rectangle((0, 0), 0, 1, fill=False, edgecolor=QUERY, linewidth=2))
    whole.set_title("weights")

    one = figure.add_axes((0.55, 0.14, 0.43, 0.75))
    one.set(xlim=(-0.5, length - 0.5), ylim=(-0.03, 1.05))
    one.set_xlabel("key's position n")
    one.set_ylabel("weight", labelpad=1)
    (bars,) = one.plot([], [], color=KEY, marker="o", markersize=4, drawstyle="steps-mid", linewidth=1)
    (asks,) = one.plot([], [], color=QUERY, linewidth=2)
    said = one.set_title(" ")

    def update(back: int, m: int, size: float) -> None:
        query, key = size * look_back(back, head_dim)
        q, k = (rotate(x.expand(length, -1), angles(everywhere, head_dim)) for x in (query, key))
        weights = attention_weights(q, k, bias=causal_bias(length, length))
        image.set_data(weights.numpy())
        row.set_bounds(-0.5, m - 0.5, length, 1)
        bars.set_data(everywhere[: m + 1].numpy(), weights[m, : m + 1].numpy())
        asks.set_data([m, m], [0, 1])
        best = weights[m].argmax().item()
        said.set_text(f"the query at {m} looks most at {best}, weight {weights[m, best]:.2f}")

    return Live(
        figure,
        update,
        moving={"weights": image, "row": row, "bars": bars, "asks": asks, "said": said},
        controls={
            "back": slider("places back", 0, 12, value=2),
            "m": slider("query's position m", 0, length - 1, value=14),
            "size": slider("length of q and k", 0.1, 1.0, unit="times", value=1.0, step=0.1),
        },
        alt="Left, the attention weights of 24 equal tokens, a row a query: one bright diagonal, as many places beside "
        "the main one as the slider says. Right, the row of one query.",
    )


def this_key_there() -> Live:
    """Scores of two keys against their distance: with a number for each distance added, and turned."""
    head_dim, base, distances = 16, 20.0, torch.arange(13)
    query = torch.full((head_dim,), (2 / head_dim) ** 0.5, dtype=torch.float64)
    keys = {"a verb": (KEY, "-", "o"), "a name": (CONTENT, "--", "s")}
    bare = {"a verb": 1.0, "a name": 0.7}  # q·k without any position
    figure = canvas(8, 3.4)
    panels = figure.subplots(1, 2, sharey=True)
    ways = {"added": "a number for each distance, added to q·k", "turned": "q and k turned"}
    moving = {}
    for panel, (way, title) in zip(panels, ways.items()):
        panel.set(xlim=(distances[-1].item() + 0.5, -0.5), ylim=(-0.5, 2.6), title=title)
        panel.set_xlabel("distance m − n (places back)")
        moving[f"{way}, said"] = panel.text(0.5, 0.04, " ", transform=panel.transAxes, ha="center")
        moving[f"{way}, said"].set_in_layout(False)
        for who, (colour, style, marker) in keys.items():
            (moving[f"{way}, {who}"],) = panel.plot(
                [], [], color=colour, linestyle=style, marker=marker, markersize=4, label=who
            )
    panels[0].set_ylabel("score")
    panels[0].legend(*panels[0].get_legend_handles_labels(), loc="upper right", ncols=2)

    def update(verb: int, name: int) -> None:
        sought = {"a verb": verb, "a name": name}
        bias = sum((distances == place).double() for place in {verb, name})
        scores = {way: {} for way in ways}
        for who, place in sought.items():
            scores["added"][who] = bare[who] + bias
            key = rotate(query, angles(torch.tensor(place), head_dim, base=base))
            scores["turned"][who] = rotate(query.expand(13, -1), angles(distances, head_dim, base=base)) @ key
        for way in ways:
            lead = scores[way]["a verb"] - scores[way]["a name"]
            moving[f"{way}, said"].set_text(
                ", ".join(dict.fromkeys(f"{at} back: {_leader(lead[at].item())}" for at in (verb, name)))
            )
            for who in keys:
                moving[f"{way}, {who}"].set_data(distances.numpy(), scores[way][who].numpy())

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "verb": slider("verb sought", 0, 12, unit="places back", value=2),
            "name": slider("name sought", 0, 12, unit="places back", value=7),
        },
        alt="Scores of one query with two keys, a verb's and a name's, against the distance. Left, a number is added for "
        "each distance: both curves rise at the sought distances, and the verb's lies above the name's everywhere. "
        "Right, both are turned: each key has its peak at a distance of its own.",
    )


def _leader(lead: float) -> str:
    """Who leads, and by how much."""
    return f"{'verb' if lead > 0 else 'name'} ahead by {abs(lead):.1f}" if abs(lead) > 0.05 else "even"


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
    panel = drawing(3.3)
    panel.spines[:].set_visible(False)
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
    places = {"x": [(3.1, 3.25)], "qk": [(8.2, 5.1), (8.2, 3.65)], "v": [(8.2, 1.5)]}
    look = {"boxstyle": "circle,pad=0.25", "facecolor": TURNED, "edgecolor": "none"}
    turns = {
        (name, number): panel.text(
            *place, "↺", ha="center", va="center", color="white", fontsize=12, bbox=look
        )
        for name, each in places.items()
        for number, place in enumerate(each)
    }
    said = panel.text(8, 6.2, " ", ha="center", va="center", fontsize=11)

    def update(turned: str) -> None:
        for (name, _), mark in turns.items():
            mark.set_visible(name in ways[turned])
        distance = float(moved(**{f"turn_{name}": True for name in ways[turned]}))
        said.set_text(
            f"turned: {turned}. The text moves on by 1000 positions, and the output by {distance:.2f}"
        )

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
    pe = sinusoidal(places, head_dim, base=base, dtype=torch.float64).unflatten(
        -1, (-1, 2)
    )  # (p, pair, sin and cos)
    theta = angles(places, head_dim, base=base)  # (p, pair)
    figure = canvas(8, 3.2)
    figure.set_layout_engine("none")
    moving = {}
    around = torch.linspace(0, 2 * math.pi, 60, dtype=torch.float64)
    circle = torch.stack([around.cos(), around.sin()])
    for column, (title, centre, radius) in enumerate(
        (
            ("chapter 2: add a turned constant", word, 1.0),
            ("chapter 4: turn the query itself", 0 * word, query.norm()),
        )
    ):
        plane = figure.add_axes((0.01 + 0.3 * column, 0.1, 0.28, 0.28 * 8 / 3.2))
        plane.set(xlim=(-1.9, 1.9), ylim=(-1.9, 1.9), aspect="equal", xticks=[], yticks=[])
        plane.set_title(title)
        plane.plot(*(centre[:, None] + radius * circle).numpy(), color=PALE, linewidth=1)
        if not column:
            plane.plot([0, word[0]], [0, word[1]], color=CONTENT, linewidth=2.5, marker="o", markevery=[1])
            (moving["sum"],) = plane.plot([], [], color=ADDED, linewidth=1.5, linestyle="--")
            (moving["position"],) = plane.plot(
                [], [], color=POSITION, linewidth=2.5, marker="o", markevery=[1]
            )
            plane.text(0.03, 0.03, "word, position, dashed: their sum", transform=plane.transAxes)
        else:
            plane.plot([0, query[0]], [0, query[1]], color=QUERY, linewidth=1, linestyle="--")
            (moving["query"],) = plane.plot([], [], color=QUERY, linewidth=2.5, marker="o", markevery=[1])
            plane.text(0.03, 0.03, "dashed: the query at 0", transform=plane.transAxes)

    wave = figure.add_axes((0.67, 0.2, 0.315, 0.66))
    wave.set(xlim=(-1, longest + 1), ylim=(-1.25, 1.25), yticks=[-1, 0, 1])
    wave.set_xlabel("position p")
    wave.set_title("tip of the constant (dots), PE(p) (rings)")
    for name, colour in (("cosine", GREY), ("sine", POSITION)):
        (moving[f"{name}, wave"],) = wave.plot([], [], color=colour, linewidth=1, alpha=0.6)
        (moving[f"{name}, ring"],) = wave.plot([], [], "o", color=colour, markersize=11, fillstyle="none")
        (moving[f"{name}, dot"],) = wave.plot([], [], "o", color=colour, markersize=5)

    def update(p: int, pair: int) -> None:
        tip, turned = (rotate(vector, theta[p, [pair]]) for vector in (constant, query))
        end = word + tip
        moving["position"].set_data([word[0], end[0]], [word[1], end[1]])
        moving["sum"].set_data([0, end[0]], [0, end[1]])
        moving["query"].set_data([0, turned[0]], [0, turned[1]])
        for name, wave_of, of_pe, of_tip in (("cosine", torch.cos, 1, 0), ("sine", torch.sin, 0, 1)):
            moving[f"{name}, wave"].set_data(places.numpy(), wave_of(theta[:, pair]).numpy())
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


def out_of_step() -> Live:
    """One cosine for each pair, and their mean: the score of a query with its own turned copy."""
    head_dim, distances = 64, torch.linspace(0, 128, 4 * 128 + 1, dtype=torch.float64)
    speeds = angles(torch.tensor(1), head_dim)  # (pairs,)
    figure = canvas(8, 3.4)
    figure.set_layout_engine("none")
    panel = figure.add_axes((0.08, 0.15, 0.9, 0.72))
    panel.set(xlim=(0, distances[-1].item()), ylim=(-1.1, 1.1), yticks=[-1, 0, 1])
    panel.axhline(0, color=GREY, linewidth=0.5)
    panel.set_xlabel("distance m − n (positions)")
    panel.set_ylabel("cosine")
    cosines = panel.add_collection(LineCollection([], colors=SLOW, linewidths=1))
    (mean,) = panel.plot([], [], color=TURNED, linewidth=3)
    (peak,) = panel.plot([], [], "o", color=TURNED, markersize=8)
    readout = panel.set_title(" ")

    def update(first: int, last: int, ahead: int) -> None:
        low, high = sorted((first, last))
        curves = ((distances[:, None] - ahead) * speeds[low : high + 1]).cos()  # (distances, pairs)
        some = torch.linspace(0, high - low, min(5, high - low + 1)).round().long()
        cosines.set_segments([torch.stack([distances, curve], dim=1).numpy() for curve in curves.T[some]])
        mean.set_data(distances.numpy(), curves.mean(dim=1).numpy())
        peak.set_data([ahead], [1])
        pairs = f"pairs {low} to {high}" if low < high else f"pair {low} alone"
        ahead_by = f", the key turned by {ahead} in advance" if ahead else ""
        readout.set_text(f"{pairs}{ahead_by}: the score is the mean of their cosines, the thick line")

    return Live(
        figure,
        update,
        moving={"cosines": cosines, "mean": mean, "peak": peak, "readout": readout},
        controls={
            "first": slider("from pair", 0, 31, value=0, stops=[0, 16, 31]),
            "last": slider("to pair", 0, 31, value=31, stops=[0, 31]),
            "ahead": slider("key turned by", 0, 64, unit="positions", value=0, stops=[0, 64]),
        },
        alt="Thin cosines against the distance, up to five of those of the pairs, and as a thick line the mean over all "
        "chosen pairs. Over all pairs the mean falls, as the cosines get out of step.",
    )


def two_layouts() -> Live:
    """Which dimensions of a head of eight are turned together, interleaved and half-split."""
    head_dim = 8
    panel = drawing(3.2)
    panel.set(xlim=(-2.6, 8.4), ylim=(-0.7, 6))
    panel.spines[:].set_visible(False)
    rows = {"interleaved": 4.0, "half-split": 0.9}
    letters = {"interleaved": "abcdefgh", "half-split": "acegbdfh"}
    for layout, y in rows.items():
        panel.text(-2.5, y + 0.35, layout, va="center", fontsize=11, weight="bold")
        for column, letter in enumerate(letters[layout]):
            panel.add_patch(Rectangle((column + 0.08, y), 0.84, 0.7, facecolor="white", edgecolor=GREY))
            panel.text(column + 0.5, y + 0.35, letter, ha="center", va="center", fontsize=11)
            number = y + 0.9 if layout == "interleaved" else y - 0.2
            panel.text(column + 0.5, number, str(column), ha="center", va="center", color=GREY)
            if layout == "half-split":
                above = letters["interleaved"].index(letter)
                panel.plot([above + 0.5, column + 0.5], [3.95, 1.65], color=PALE, linewidth=1)
    moving = {"said": panel.text(4, 5.75, " ", ha="center", va="center", fontsize=10)}
    for layout in rows:
        for part in (0, 1):
            moving[f"{layout}, box {part}"] = panel.add_patch(
                Rectangle((0, 0), 0.84, 0.7, facecolor=TURNED, alpha=0.3, edgecolor=TURNED, linewidth=2.5)
            )
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
            moving[f"{layout}, arc"].set_data(across.numpy(), (edge + height * half_circle.sin()).numpy())
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
