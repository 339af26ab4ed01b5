"""Angles between random vectors and subspaces, and what a small one costs."""

import math

import torch
from matplotlib.patches import Polygon
from torch import Tensor
from torch.nn.functional import normalize

from posenc.chapters.four_term_expansion.figures.terms import WIDTH
from posenc.geometry import principal_angles, random_span, spans_at
from posenc.lesson.controls import slider
from posenc.lesson.drawing import log_axis
from posenc.lesson.live import Live, canvas
from posenc.lesson.palette import CONTENT, GREY, POSITION
from posenc.terms import matrix_for


def random_cosines() -> Live:
    """How often random vectors have which cosine, against the width, and the spread against 1/√d."""
    pairs, widest = 1500, 1024
    generator = torch.Generator().manual_seed(5)
    first, second = torch.randn(2, pairs, widest, generator=generator)
    edges = torch.linspace(-1, 1, 121)
    widths = [8, 16, 32, 64, 128, 256, 384, 512, 768, 1024]

    def cosine(width: int) -> Tensor:
        return (normalize(first[:, :width], dim=-1) * normalize(second[:, :width], dim=-1)).sum(-1)

    figure = canvas(8, 3.3)
    histogram, panel = figure.subplots(1, 2, width_ratios=(2, 1))
    histogram.set(xlim=(-1, 1), ylim=(0, 0.25), xticks=[-1, -0.5, 0, 0.5, 1])
    histogram.set_xlabel("cosine of two random vectors")
    histogram.set_ylabel("share of the pairs")
    bars = histogram.stairs([0.0] * 120, edges.tolist(), fill=True, color="#b0b0b0", label="measured")
    dashed = {"color": "black", "linestyle": "--", "linewidth": 1.2}
    (expected,) = histogram.plot([], [], label="normal, spread 1/√d", **dashed)
    histogram.legend(loc="upper right", frameon=False)
    readout = histogram.set_title(" ", loc="left")

    log_axis(panel.xaxis, [8, 64, 384, 768])
    log_axis(panel.yaxis, [0.036, 0.051, 0.125, 0.354])
    panel.set(xlim=(6, 1500), ylim=(0.02, 0.6))
    panel.plot(widths, [width**-0.5 for width in widths], label="1/√d", **dashed)
    for width in (384, 768):
        panel.plot([width, width, 6], [0.02, width**-0.5, width**-0.5], color=GREY, linewidth=0.7)
    panel.set_xlabel("d (dimensions)")
    panel.set_ylabel("spread of the cosine")
    (spread,) = panel.plot([], [], "o", color="black", markersize=6, label="measured")
    panel.legend(loc="upper right", frameon=False)
    step = (edges[1] - edges[0]).item()
    fine = torch.linspace(-1, 1, 401)

    def update(width: int) -> None:
        values = cosine(width)
        bars.set_data(values.histc(120, -1, 1).numpy() / pairs)
        normal = math.sqrt(width / (2 * math.pi)) * torch.exp(-width * fine.square() / 2)
        expected.set_data(fine, step * normal)
        spread.set_data([width], [values.std().item()])
        readout.set_text(f"d = {width}: spread {values.std():.4f}, 1/√d = {width**-0.5:.4f}")

    return Live(
        figure,
        update,
        moving={"expected": expected, "bars": bars, "spread": spread, "readout": readout},
        controls={"width": slider("d", 8, widest, unit="dimensions", value=384, step=8)},
        alt=f"Left, a histogram of the cosines of {pairs} pairs of random vectors with a bell curve of spread 1/√d: "
        "narrower for larger d. Right, the spread against d on logarithmic axes, 384 and 768 marked.",
    )


def angle_cost() -> Live:
    """What an angle between contents and positions costs: how large M must be, and how noise grows in the scores."""
    rank = 8
    angles = torch.arange(1, 91, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    wanted = torch.block_diag(*torch.randn(2, rank, rank, generator=generator, dtype=torch.float64))
    noise = torch.randn(2 * rank, WIDTH, generator=generator, dtype=torch.float64) / WIDTH**0.5  # of length 1
    cloud = torch.randn(2, 150, generator=generator, dtype=torch.float64) / 2**0.5
    bases = [spans_at(angle, rank, WIDTH, torch.Generator().manual_seed(1)) for angle in angles.tolist()]
    vectors = [torch.cat(pair) for pair in bases]
    matrices = [matrix_for(stack, wanted) for stack in vectors]
    norms = torch.stack([matrix.norm() for matrix in matrices]) / wanted.norm()
    # The error of noisy scores is a term linear in the noise and one that is quadratic.
    linear = [stack @ m @ noise.T + noise @ m @ stack.T for stack, m in zip(vectors, matrices)]
    square = [noise @ m @ noise.T for m in matrices]

    figure = canvas(8, 3.5)
    plane, panel = figure.subplots(1, 2, width_ratios=(1, 1.15))
    plane.set(xlim=(-0.6, 2.6), ylim=(-0.45, 1.55), xticks=[], yticks=[], aspect="equal")
    plane.set_title("a sum, and the content read off it", loc="left")
    plane.plot([-1, 3], [0, 0], color=CONTENT, linewidth=1.2)
    moving, arrow = {}, {"linewidth": 3, "solid_capstyle": "round"}
    tick = {"color": "black", "markersize": 9, "alpha": 0.5}
    (moving["line"],) = plane.plot([], [], color=POSITION, linewidth=1.2, linestyle=":")
    (moving["content"],) = plane.plot([], [], color=CONTENT, label="content", **arrow)
    (moving["position"],) = plane.plot([], [], color=POSITION, label="position", linestyle=(0, (3, 0.5)), **arrow)
    (moving["dots"],) = plane.plot([], [], ".", color="black", markersize=2.5, label="their sum, with noise")
    (moving["ticks"],) = plane.plot([], [], "|", label="content as it is read", **tick)
    plane.legend(loc="upper left", frameon=False, ncols=2, columnspacing=1, handlelength=1.4)

    log_axis(panel.xaxis, [1, 3, 10, 30, 90])
    log_axis(panel.yaxis, [1e-4, 1e-2, 1, 1e2, 1e4])
    panel.set(xlim=(1, 90), ylim=(1e-4, 1e4))
    panel.set_xlabel("angle between the subspaces (degrees)")
    panel.plot(angles, norms, color="black", label="size of M, as a multiple of that at 90°")
    (moving["error"],) = panel.plot([], [], "--", color="black", label="error of the scores, relative")
    (moving["now"],) = panel.plot([], [], "o", color="black", markersize=6, clip_on=False, in_layout=False)
    panel.legend(loc="upper right", frameon=False)
    moving["readout"] = panel.set_title(" ", loc="left")

    def update(angle: int, noise: float) -> None:
        level, turned = noise / 100, math.radians(angle)
        errors = torch.stack([(level * a + level**2 * b).norm() for a, b in zip(linear, square)])
        errors /= wanted.norm()
        moving["error"].set_data(angles, errors)
        size, wrong = norms[angle - 1].item(), errors[angle - 1].item()
        moving["now"].set_data([angle, angle], [size, wrong])
        moving["readout"].set_text(f"{angle}°: M × {size:,.{int(size < 100)}f}, error {wrong:.2g}")
        x, y = math.cos(turned), math.sin(turned)
        moving["line"].set_data([-3 * x, 1.1 * x], [-3 * y, 1.1 * y])  # no further: the legend stands above
        moving["content"].set_data([0, 1], [0, 0])
        moving["position"].set_data([0, x], [0, y])
        right, up = 1 + x + level * cloud[0], y + level * cloud[1]
        moving["dots"].set_data(right, up)
        moving["ticks"].set_data(right - up * x / y, [0] * len(right))  # along the position's line

    return Live(
        figure,
        update,
        moving=moving,
        controls={
            "angle": slider("angle", 1, 90, unit="degrees", value=30),
            "noise": slider("noise", 0.0, 10.0, unit="% of a vector", value=3.0, step=0.5),
        },
        alt="Left, a content and a position as two arrows with an angle between them, their sum as a cloud of noisy "
        "dots, and the content that is read off each dot along the position's direction: the smaller the angle, the "
        "wider these readings spread. Right, against the angle on logarithmic axes, the size of the M that keeps both "
        "apart, and the relative error of its scores: both grow as the angle falls.",
    )


def sheets() -> Live:
    """Two sheets of paper with two angles between them, and all the angles between random subspaces of 27 and 9 dimensions."""
    contents, positions, draws = 27, 9, 8
    widths = range(64, 769, 64)
    generator = torch.Generator().manual_seed(3)

    def between(width: int) -> Tensor:
        spans = ((random_span(rank, width, generator) for rank in (contents, positions)) for _ in range(draws))
        return torch.stack([principal_angles(*pair) for pair in spans]).mean(dim=0)

    angles = {width: between(width) for width in widths}
    figure = canvas(8, 3.1)
    drawn, panel = figure.subplots(1, 2, width_ratios=(1, 1.35))
    drawn.set(xlim=(-0.2, 4.3), ylim=(-1.15, 3.3), aspect="equal")
    drawn.axis("off")
    drawn.add_patch(Polygon([(0, 0), (2.4, 0.9), (4.2, 0.9), (1.8, 0)], facecolor=POSITION, alpha=0.45))
    drawn.add_patch(Polygon([(0.9, 0), (3.3, 0.9), (3.3, 3.1), (0.9, 2.2)], facecolor=CONTENT, alpha=0.45))
    drawn.add_patch(Polygon([(0.9, 0), (3.3, 0.9), (4.2, 0.9), (1.8, 0)], facecolor=POSITION, alpha=0.45))
    drawn.plot([0.9, 3.3], [0, 0.9], color="black", linewidth=2)
    thread = {"arrowstyle": "-", "color": GREY}
    drawn.annotate("along the fold: 0°", (2.1, 0.45), (1.2, -0.75), arrowprops=thread)
    drawn.plot([1.15, 1.15, 0.9], [0, 0.25, 0.25], color="black", linewidth=1)
    drawn.annotate("across it: 90°", (1.05, 0.25), (-0.2, 1.2), arrowprops=thread)
    drawn.text(1.15, 2.55, "words", color=CONTENT, rotation=20)
    drawn.text(3.0, 0.35, "places", color=POSITION)

    order = range(1, positions + 1)
    for values in angles.values():
        panel.plot(order, values, color="#dddddd", linewidth=1, zorder=0)
    panel.set(xlim=(0.5, positions + 0.5), ylim=(0, 95), yticks=[0, 30, 60, 90])
    panel.set_xticks(list(order))
    panel.axhline(90, color=GREY, linewidth=0.7, linestyle="--")
    panel.set_xlabel("angle number, the smallest first")
    panel.set_ylabel("degrees")
    (line,) = panel.plot([], [], "o-", color=GREY, markersize=4, linewidth=1)
    (first,) = panel.plot([], [], "o", color="black", markersize=7)
    readout = panel.set_title(" ", loc="left")

    def update(width: int) -> None:
        values = angles[width].tolist()
        line.set_data(list(order), values)
        first.set_data([1], values[:1])
        which = f"random subspaces of {contents} and {positions} in {width}"
        readout.set_text(f"{which}: {values[0]:.0f}° where nearest")

    return Live(
        figure,
        update,
        moving={"line": line, "first": first, "readout": readout},
        controls={"width": slider("d", widths[0], widths[-1], unit="dimensions", step=widths.step)},
        alt="Left, two sheets of paper that meet along a fold: along it the angle between them is 0, across it 90 degrees. "
        f"Right, the {positions} angles between two random subspaces of {contents} and {positions} dimensions, the smallest "
        "first: all grow towards 90 degrees as the space grows wider.",
    )
