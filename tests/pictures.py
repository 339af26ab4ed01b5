"""A figure to try things on, and what two pictures have in common."""

import base64
import importlib.util
import io
import os
from pathlib import Path
from types import ModuleType

import numpy as np
from nbformat import NotebookNode
from PIL import Image

from courseware import notebooks
from courseware.keep import VISIBLE, distances
from posenc.lesson.controls import slider, switch
from posenc.lesson.live import Live, canvas


def load(path: Path) -> ModuleType:
    """The module in a file, wherever that stands."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shown(notebook: NotebookNode) -> list[tuple[str, bytes]]:
    """The words and the picture of every figure that a notebook stores."""
    data = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ())]
    return [(d["text/plain"], base64.b64decode(d["image/png"])) for d in data if "image/png" in d]


def kept_as(png: bytes) -> bytes:
    """A picture with a palette, as small as a stored one."""
    return notebooks.png(notebooks.with_palette(Image.open(io.BytesIO(png))))


def as_kept(drawn: bytes, path: Path) -> None:
    """Fail where a drawn picture is not the one in that file. `make pictures` keeps the drawn one."""
    if os.environ.get("KEEP_PICTURES"):
        path.write_bytes(kept_as(drawn))
    assert path.exists(), "look at its picture, and keep it: make pictures"
    where = same_or_where(drawn, path.read_bytes())
    assert where is None, f"{where}. If that is meant: make pictures"


def same_or_where(drawn: bytes, stored: bytes) -> str | None:
    """None where two pictures look the same; else what differs, in words."""
    new, old = pixels(drawn), pixels(stored)
    if new.size != old.size:
        return f"the picture has {new.size} pixels, the stored one {old.size}"
    rows, columns = np.nonzero(distances(new, old) > VISIBLE)
    if not len(rows):
        return None
    return (
        f"it differs from the stored picture between ({columns.min()}, {rows.min()}) "
        f"and ({columns.max()}, {rows.max()}) of {old.size}"
    )


def example(*, held: bool = False, **more) -> Live:
    """A dot at (x, y). While hold is on, x and y go together."""
    figure = canvas(3, 2)
    axes = figure.add_subplot(xlim=(-1, 12), ylim=(-1, 12))
    (dot,) = axes.plot([0], [0], "o")
    controls = {
        "x": slider("x", 0, 9),
        "y": slider("y", 0, 9, value=2),
        "hold": switch("hold x − y", value=held),
        **more,
    }

    def update(x, y, hold, **_):
        dot.set_data([x], [y])
        words.set_text(f"at {x}, {y}")

    words = axes.set_title(" ")
    return Live(
        figure, update, moving={"dot": dot, "words": words}, controls=controls, alt="A dot.", together={"hold": "xy"}
    )


def at(live: Live, **values: object) -> Live:
    """A figure whose controls stand at these values, and the others where they start."""
    live.set(**values)
    return live


def pixels(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png)).convert("RGB")
