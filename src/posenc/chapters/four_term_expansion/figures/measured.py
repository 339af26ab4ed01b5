"""What training did to the four terms and to the subspaces, as the chapter measured it."""

from collections.abc import Mapping

import torch
from matplotlib.lines import Line2D
from torch import Tensor

from posenc.chapters.four_term_expansion.distances import fit_by_distance
from posenc.chapters.four_term_expansion.figures.terms import COLOURS, WIDTH
from posenc.geometry import principal_angles, random_span
from posenc.lesson.controls import choice, slider
from posenc.lesson.drawing import blank
from posenc.lesson.live import Live, canvas
from posenc.lesson.palette import CONTENT, GREY, POSITION, SIGNED


def wanted_by_places(own: Tensor, text: str) -> Live:
    """Position → content of trained models on one passage, and what is left of it with the mean place.

    Args:
        own: the term of every seed and head, (seeds, heads, T, T).
        text: the T characters of the passage.
    """
    seeds, heads, length, _ = own.shape
    level = own - own.mean(dim=-1, keepdim=True)  # a number for a row is nothing to the softmax
    maps = {
        "each query with its own place": level,
        "each query with the mean place": level.mean(dim=-2, keepdim=True).expand_as(level),
    }
    visible = torch.ones(length, length, dtype=torch.bool).tril()
    signs = [{" ": "␣", "\n": "↵"}.get(character, character) for character in text]
    figure = blank(3.9)
    moving = {}
    for column, name in enumerate(maps):
        axes = figure.add_axes((0.065 + 0.445 * column, 0.15, 0.425, 0.77))
        moving[name] = axes.pcolormesh([[0.0] * length] * length, cmap=SIGNED, vmin=-1, vmax=1)
        axes.set_ylim(length, 0)
        axes.set_xticks([n + 0.5 for n in range(length)], signs)
        axes.tick_params(length=0)
        axes.set_yticks([m + 0.5 for m in range(0, length, 10)], [str(m) for m in range(0, length, 10)])
        axes.set_xlabel("the character that is read (key)")
        axes.set_title(name, loc="left")
    figure.axes[0].set_ylabel("place that reads (query)")
    figure.axes[1].set_yticks([])
    bar = figure.colorbar(moving[name], cax=figure.add_axes((0.945, 0.15, 0.012, 0.77)), ticks=[-1, 0, 1])
    bar.set_label("beside the largest", labelpad=-4)

    def update(seed: int, head: int) -> None:
        largest = level[seed, head][visible].abs().max()
        for name, terms in maps.items():
            shown = (terms[seed, head] / largest).masked_fill(~visible, torch.nan)
            moving[name].set_array(shown.numpy())

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "seed": slider("seed", 0, seeds - 1, value=min(1, seeds - 1)),
            "head": slider("head", 0, heads - 1, value=min(2, heads - 1)),
        },
        alt="The position-with-content term of one head on a passage of help text, places down and characters across, as "
        "two triangular heat maps: with each query's own place, and with the mean place for all. The same vertical "
        "stripes in both mean that all places want the same characters.",
    )


def position_maps(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> Live:
    """The position-with-position term of models, before and after training, without a number for each row.

    The number of a row is that of `fit_by_distance`, so that a term of the distance alone shows level stripes.

    Args:
        before: variant → its term, (seeds, heads, T, T); drawn for two variants, causal.
        after: the same after training.
    """
    seeds, heads, length, _ = next(iter(before.values())).shape
    visible = torch.ones(length, length, dtype=torch.bool).tril()
    figure = blank(2.75)
    moving = {}
    maps = {
        f"{name}, {when}": torch.stack([fit_by_distance(heads)[0] for heads in terms[name]])
        for name in before
        for when, terms in (("before", before), ("after", after))
    }
    for column, key in enumerate(maps):
        axes = figure.add_axes((0.065 + 0.218 * column + 0.012 * (column // 2), 0.16, 0.2, 0.66))
        moving[key] = axes.pcolormesh([[0.0] * length] * length, cmap=SIGNED, vmin=-1, vmax=1)
        axes.set_ylim(length, 0)
        ticks = range(0, length, 10)
        axes.set_xticks([n + 0.5 for n in ticks], ticks)
        axes.set_yticks([n + 0.5 for n in ticks], [""] * len(ticks) if column else ticks)
        axes.set_xlabel("key position n")
        axes.text(0, 1.13, key, transform=axes.transAxes)
        moving[f"{key}, readout"] = axes.text(0, 1.03, " ", transform=axes.transAxes)
        if not column:
            axes.set_ylabel("query position m")
    bar = figure.colorbar(moving[key], cax=figure.add_axes((0.945, 0.16, 0.012, 0.66)), ticks=[-1, 0, 1])
    bar.set_label("beside the largest", labelpad=-4)

    def update(seed: int, head: int) -> None:
        for key, terms in maps.items():
            seen = terms[seed, head]
            largest = seen.abs().max().item()
            moving[key].set_array((seen / largest).masked_fill(~visible, torch.nan).numpy())
            moving[f"{key}, readout"].set_text(f"largest {largest:.2f}")

    return Live(
        figure,
        update,
        moving=moving,
        controls={"seed": slider("seed", 0, seeds - 1), "head": slider("head", 0, heads - 1)},
        alt="The position-with-position term of one head as four triangular heat maps, each on its own scale: "
        f"{'; '.join(maps)}. Stripes along the diagonals mean that only the distance counts.",
    )


def subspaces(
    within: Mapping[str, Mapping[int, Tensor]],
    smallest: Mapping[str, Mapping[int, Tensor]],
    sizes: Mapping[str, Mapping[int, Tensor]],
) -> Live:
    """Where contents and positions of models lie, a dot a seed, beside random subspaces of the same sizes.

    Args:
        within: variant → steps → share of the contents' variance in the positions' subspace, (seeds, places), where
            the places are the embedding and what is behind each layer.
        smallest: the same for the smallest angle between the two, in degrees.
        sizes: the same for the dimensions of contents and positions, (seeds, places, 2).
    """
    steps = list(next(iter(within.values())))
    seeds, places = next(iter(within.values()))[steps[0]].shape
    titles = ["at the embedding", *(f"behind layer {layer}" for layer in range(places - 1))]
    figure = canvas(8, 6.8)
    grid = figure.subplots(3, places, sharey="row", sharex=True, squeeze=False)
    moving, dash = {}, {"color": GREY, "markersize": 20, "markeredgewidth": 2, "zorder": 1}
    for column, title in enumerate(titles):
        looks = {"contents": (0, CONTENT, "o"), "positions": (0, POSITION, "s")}
        looks |= {name: (row, "black", "o") for row, name in ((1, "within"), (2, "smallest"))}
        for name, (row, colour, marker) in looks.items():
            (moving[f"{name}, {title}"],) = grid[row, column].plot([], [], marker, color=colour, markersize=4)
        for row, name in ((1, "within"), (2, "smallest")):
            (moving[f"{name}, {title}, random"],) = grid[row, column].plot([], [], "_", **dash)
        for row, (low, high) in enumerate(((0, 67), (-0.02, 0.8), (0, 95))):
            grid[row, column].set(xlim=(-0.6, len(within) - 0.4), ylim=(low, high))
        grid[0, column].axhline(WIDTH, color=GREY, linewidth=0.7)
        grid[0, column].set_title(title)
        grid[2, column].set_xticks(range(len(within)), list(within), rotation=90)
    grid[0, 0].set_ylabel("dimensions that hold 95%")
    grid[1, 0].set_ylabel("contents' variance in\nthe positions' subspace")
    grid[2, 0].set_ylabel("smallest angle (degrees)")
    keys = [("contents", CONTENT, "o"), ("positions", POSITION, "s"), ("both together", "black", "o")]
    handles = [Line2D([], [], marker=m, ls="", color=c, markersize=4, label=name) for name, c, m in keys]
    handles.append(Line2D([], [], color=GREY, linewidth=2, label="random subspaces of these sizes"))
    figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False)
    expected: dict[tuple, float] = {}

    def random_angle(contents: int, positions: int) -> float:
        """The mean smallest angle of random subspaces, drawn once for each pair of sizes."""
        if (contents, positions) not in expected:
            generator = torch.Generator().manual_seed(0)
            pairs = [[random_span(r, WIDTH, generator) for r in (contents, positions)] for _ in range(12)]
            expected[contents, positions] = sum(principal_angles(*pair)[0].item() for pair in pairs) / 12
        return expected[contents, positions]

    def update(step: int) -> None:
        across = [x for place in range(len(within)) for x in _beside(place, seeds)]
        for column, title in enumerate(titles):
            seen = {name: sizes[name][step][:, column] for name in within}
            dots = {
                "contents": [size[:, 0] for size in seen.values()],
                "positions": [size[:, 1] for size in seen.values()],
                "within": [within[name][step][:, column] for name in within],
                "smallest": [smallest[name][step][:, column] for name in within],
            }
            for name, values in dots.items():
                moving[f"{name}, {title}"].set_data(across, torch.cat(values).tolist())
            usual = [size.double().mean(0).round().long().tolist() for size in seen.values()]
            lines = {
                "within": [positions / WIDTH for _, positions in usual],
                "smallest": [random_angle(*both) for both in usual],
            }
            for name, values in lines.items():
                moving[f"{name}, {title}, random"].set_data(range(len(within)), values)

    for step in steps:  # draw all random subspaces now, so that a move need not
        update(step)
    return Live(
        figure,
        update,
        moving=moving,
        controls={"step": choice("steps of training", sorted(steps, reverse=True))},
        alt=f"For {', '.join(within)}, a dot a seed: how many dimensions hold 95% of contents and of positions; the "
        "share of the contents' variance in the positions' subspace; and the smallest angle between the two, both "
        f"beside random subspaces of the same sizes. Columns: {', '.join(titles)}.",
    )


def missed(
    before: Mapping[str, Tensor],
    after: Mapping[str, Tensor],
    lost: Mapping[str, Mapping[str, Tensor]],
) -> Live:
    """What it costs models to lose a term, and how large its share was before training and after it, a dot a seed.

    Args:
        before: encoding → shares of the four terms, (seeds, 4), untrained.
        after: the same, trained.
        lost: encoding → what is taken out → added loss, (seeds,). The four terms stand first.
    """
    rows = list(next(iter(lost.values())))
    colours = [*COLOURS, *[GREY] * len(rows)]
    furthest = max(values.max().item() for removed in lost.values() for values in removed.values())
    figure = canvas(8, 0.9 + 0.42 * len(rows))
    cost, part = figure.subplots(1, 2, width_ratios=(1.5, 1), sharey=True)
    cost.set(xlim=(-0.04, 1.28 * furthest), ylim=(len(rows) - 0.5, -0.5))
    part.set_xlim(-0.03, 1.03)
    cost.set_yticks(range(len(rows)), rows)
    for label, colour in zip(cost.get_yticklabels(), colours):
        label.set_color(colour)
        label.set_weight("bold")
    cost.set_xlabel("added loss when it is taken out (nats a character)")
    part.set_xlabel("share: ○ untrained, ● trained")
    for axes in (cost, part):
        axes.axvline(0, color=GREY, linewidth=0.7)
        for row in range(len(rows)):
            axes.axhline(row, color="#eeeeee", linewidth=0.8, zorder=0)
    moving = {}
    for row, (name, colour) in enumerate(zip(rows, colours)):
        dots = {"marker": "o", "linestyle": "", "markersize": 5, "color": colour}
        (moving[f"{name}, lost"],) = cost.plot([], [], **dots)
        moving[f"{name}, mean"] = cost.text(0, row, " ", va="center")
        if row < 4:
            (moving[f"{name}, before"],) = part.plot([], [], **dots, markerfacecolor="none")
            (moving[f"{name}, after"],) = part.plot([], [], **dots)

    def update(encoding: str) -> None:
        for row, name in enumerate(rows):
            values = lost[encoding][name]
            moving[f"{name}, lost"].set_data(values.tolist(), _beside(row, len(values)))
            mean = round(values.mean().item(), 2)
            moving[f"{name}, mean"].set_text(f"{abs(mean) if mean == 0 else mean:.2f}")
            moving[f"{name}, mean"].set_x(values.max().item() + 0.05 * furthest)
            for when, shares_then in (("before", before), ("after", after)) if row < 4 else ():
                values = shares_then[encoding][:, row]
                moving[f"{name}, {when}"].set_data(values.tolist(), _beside(row, len(values)))

    return Live(
        figure,
        update,
        moving=moving,
        controls={"encoding": choice("encoding", list(lost))},
        alt="For one encoding at a time, a dot a seed. Left, the loss that is added when a part of the score is taken out "
        f"of layer 0, with the mean written beside it: {', '.join(rows)}. Right, the shares of the four terms before "
        "training and after it.",
    )


def _beside(row: int, seeds: int) -> list[float]:
    """Where the seeds of a row stand, a little apart."""
    return (row + (torch.linspace(-0.16, 0.16, seeds) if seeds > 1 else torch.zeros(1))).tolist()
