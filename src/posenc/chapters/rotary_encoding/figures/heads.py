"""All pairs of a head together: clocks, weights and scores against the distance."""

import math
from collections.abc import Callable

import ipywidgets as widgets
import torch
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba_array
from matplotlib.patches import Rectangle
from torch import Tensor

from posenc.attention import attention_weights, causal_bias
from posenc.chapters.rotary_encoding.figures.turning import PALE
from posenc.lesson.controls import slider
from posenc.lesson.drawing import blank
from posenc.lesson.live import Live, canvas
from posenc.lesson.palette import (
    CONTENT,
    GREY,
    KEY,
    MAGNITUDE,
    QUERY,
    TURNED,
)
from posenc.rotary import angles, rotate

SLOW = "#A79ED6"  # a lighter TURNED, for pairs that never come round


def clocks() -> Live:
    """The hands of all pairs at one position, and the wavelengths that they turn with."""
    head_dim, length = 128, 4096
    pairs = torch.arange(head_dim // 2)
    centres = torch.stack([pairs % 8, -(pairs // 8)], dim=1).double() * 2.4  # 8 by 8 clocks
    figure = blank(4)
    faces = figure.add_axes((0.02, 0.04, 0.42, 0.86))
    faces.set(xlim=(-1.6, 18.4), ylim=(-18.4, 1.6), aspect="equal", xticks=[], yticks=[])
    around = torch.linspace(0, 2 * math.pi, 40, dtype=torch.float64)
    circle = torch.stack([around.cos(), around.sin()], dim=1)
    rims = (centres[:, None] + circle).numpy()
    faces.add_collection(LineCollection(rims, colors=PALE, linewidths=0.8, zorder=1))
    moving = {"hands": faces.add_collection(LineCollection([], linewidths=1.8))}
    colours = to_rgba_array([TURNED, SLOW])
    (moving["chosen face"],) = faces.plot([], [], color="black", linewidth=1.2)
    moving["where"] = faces.set_title(" ")

    panel = figure.add_axes((0.55, 0.13, 0.43, 0.77))
    panel.set_yscale("log")
    panel.set(xlim=(-1, head_dim // 2), ylim=(3, 1e7), yticks=[10, 1e3, 1e5])
    panel.minorticks_off()
    panel.axhline(length, color=GREY, linestyle="--", linewidth=1)
    panel.text(0, length * 1.2, f"T = {length}", color=GREY)
    panel.set_xlabel("pair i")
    panel.set_ylabel("wavelength (positions)", labelpad=1)
    (moving["full"],) = panel.plot([], [], "o", color=TURNED, markersize=3)
    (moving["never"],) = panel.plot([], [], "s", color=SLOW, markersize=4)
    (moving["chosen"],) = panel.plot([], [], "o", color="black", markersize=10, fillstyle="none")
    moving["readout"] = panel.set_title(" ")

    def update(position: int, pair: int, power: float) -> None:
        base = 10**power
        at_m = angles(torch.tensor(position), head_dim, base=base)  # (pairs,)
        wavelength = 2 * math.pi / angles(torch.tensor(1), head_dim, base=base)
        unfinished = wavelength > length
        tips = centres + torch.stack([at_m.cos(), at_m.sin()], dim=1)
        moving["hands"].set_segments(torch.stack([centres, tips], dim=1).numpy())
        moving["hands"].set_color(colours[unfinished.long().numpy()])
        moving["chosen face"].set_data(*(centres[pair] + 1.15 * circle).T)
        moving["full"].set_data(pairs[~unfinished], wavelength[~unfinished])
        moving["never"].set_data(pairs[unfinished], wavelength[unfinished])
        moving["chosen"].set_data([pair], [wavelength[pair]])
        turns = at_m[pair] / (2 * math.pi)
        moving["where"].set_text(f"position {position}: pair {pair} has turned {turns:,.2f} times")
        moving["readout"].set_text(f"{unfinished.sum()} of {len(pairs)} never complete a turn (squares)")

    live = Live(
        figure,
        update,
        moving=moving,
        controls={
            "position": slider("position", 0, length, value=300, stops=[0, 6, 300, 4096]),
            "pair": slider("pair i", 0, head_dim // 2 - 1, value=20, stops=[0, 20, 63]),
            "power": slider("base", 1.0, 6.0, unit="power of ten", value=4.0, step=0.5, stops=[1, 4, 6]),
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
    figure = blank(3.6)
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
        bars.set_data(everywhere[: m + 1], weights[m, : m + 1])
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
    keys = {"a verb": (KEY, "o-"), "a name": (CONTENT, "s--")}
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
        for who, (colour, style) in keys.items():
            (moving[f"{way}, {who}"],) = panel.plot([], [], style, color=colour, markersize=4, label=who)
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
            said = dict.fromkeys(f"{at} back: {_leader(lead[at].item())}" for at in (verb, name))
            moving[f"{way}, said"].set_text(", ".join(said))
            for who in keys:
                moving[f"{way}, {who}"].set_data(distances, scores[way][who])

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


def out_of_step() -> Live:
    """One cosine for each pair, and their mean: the score of a query with its own turned copy."""
    head_dim, distances = 64, torch.linspace(0, 128, 4 * 128 + 1, dtype=torch.float64)
    speeds = angles(torch.tensor(1), head_dim)  # (pairs,)
    figure = blank(3.4)
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
        mean.set_data(distances, curves.mean(dim=1))
        peak.set_data([ahead], [1])
        pairs, score = f"pairs {low} to {high}", "the mean of their cosines"
        if low == high:
            pairs, score = f"pair {low} alone", "its cosine"
        ahead_by = f", the key turned by {ahead} in advance" if ahead else ""
        readout.set_text(f"{pairs}{ahead_by}: the score is {score}, the thick line")

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
