"""A figure to try things on, and what two pictures have in common."""

import io

import numpy as np
from PIL import Image

from posenc.live import Live, canvas, slider, switch


def example(*, held: bool = False, **more) -> Live:
    """A dot at (x, y). While hold is on, y moves with x up to 7."""
    figure = canvas(3, 2)
    axes = figure.add_subplot(xlim=(-1, 12), ylim=(-1, 12))
    (dot,) = axes.plot([0], [0], "o")
    controls = {
        "x": slider("x", 0, 9),
        "y": slider("y", 0, 9, value=2),
        "hold": switch("hold x − y", value=held),
        **more,
    }
    before = {name: control.value for name, control in controls.items()}

    def update(x, y, hold, **_):
        if hold and before["hold"] and x != before["x"] and y == before["y"]:
            controls["y"].value = y = min(y + x - before["x"], 7)
        dot.set_data([x], [y])
        words.set_text(f"at {x}, {y}")
        before.update(x=x, y=y, hold=hold)

    words = axes.set_title(" ")
    return Live(figure, update, moving={"dot": dot, "words": words}, controls=controls, alt="A dot.")


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def differ(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two pictures show something else: palettes move no colour by more than 40 of 255."""
    return one.shape != other.shape or (abs(one.astype(int) - other) > 40).any(axis=-1).mean() > 1e-3
