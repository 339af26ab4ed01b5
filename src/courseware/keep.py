"""A stored output is replaced only if it says something else, or if the code that it comes from changed.

So `make notebooks` on another machine leaves git clean: the last digits of a measurement, a measured time and the
curves of a training, which another processor's arithmetic leads elsewhere, are no news. `code.fingerprint` names the
code, and stands in the notebook's metadata.
"""

import base64
import copy
import io
import os
import re

import numpy as np
from nbformat import NotebookNode
from PIL import Image, ImageFilter

from courseware.dependencies import needed_cells, tags
from posenc.lesson.claims import MEASURED

MASKED = {MEASURED: "measured"}  # stored, and left out where outputs are compared
DECIMALS = {r"\d+\.\d+": "a number"}  # where they come from a training

# When two pictures look different. Blurred by 4 pixels of 144 to an inch, a line of 1.5 points that moves by a pixel
# differs by 12 of 255, a curve that is gone by 73, a marker of 3 points by 94, a last digit in a title by 15 to 34. A
# palette differs by 1 or 2, a line that moves by a third of a pixel by 4. Another version of matplotlib sets text
# elsewhere, by 25 to 80: then all pictures are kept anew.
BLUR = 4
VISIBLE = 8

TIMING = re.compile(r"\bmeasure\(|perf_counter")


def keep(old: NotebookNode, new: NotebookNode) -> NotebookNode:
    """The new notebook, with the old outputs in all cells whose outputs say the same; both in normal form.

    A cell that shows measured times, or that nbval may not compare, keeps its outputs. With KEEP_PICTURES=1 in the
    environment all others get their new pictures, and keep the words beside them.
    """
    before = {cell.id: cell for cell in old.cells if cell.get("outputs")}
    made = copy.deepcopy(new)
    for number, cell in enumerate(made.cells):
        stored = before.get(cell.id)
        if cell.cell_type != "code" or not stored:
            continue
        time_is_shown, from_training = timed(new.cells, number), trained(new.cells, number)
        if time_is_shown or say_the_same(stored.outputs, cell.outputs, trained=from_training):
            drawn, cell.outputs = cell.outputs, copy.deepcopy(stored.outputs)
            if os.environ.get("KEEP_PICTURES") and not time_is_shown:
                for output, again in zip(cell.outputs, drawn):
                    if _has_picture(output):
                        output.data["image/png"] = again.data["image/png"]
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = cell.execution_count
    return made


def say_the_same(one: list[NotebookNode], other: list[NotebookNode], *, trained: bool = False) -> bool:
    """Whether a reader learns the same from these outputs of a cell, which may come from a training."""
    said, before = ([words(output, trained=trained) for output in outputs] for outputs in (one, other))
    return said == before and look_the_same(one, other, trained=trained)


def look_the_same(one: list[NotebookNode], other: list[NotebookNode], *, trained: bool = False) -> bool:
    """Whether these outputs of a cell show as many pictures, and no two of them differ."""
    drawn, before = (list(map(_pixels, filter(_has_picture, outputs))) for outputs in (one, other))
    return len(drawn) == len(before) and not any(differ(a, b, trained=trained) for a, b in zip(drawn, before))


def words(output: NotebookNode, *, trained: bool = False) -> dict:
    """All of an output but the pixels of its pictures and the number of its cell, without what a claim measured.

    The words of a picture that a training led to are without its decimals too.
    """
    masks = MASKED | (DECIMALS if trained and _has_picture(output) else {})

    def masked(said: object) -> object:
        if isinstance(said, dict):
            pixels = {"image/png": ""} if isinstance(said.get("image/png"), str) else {}  # metadata have the same key
            return {key: masked(value) for key, value in (said | pixels).items()}
        if isinstance(said, list):
            return [masked(part) for part in said]
        for pattern, replacement in masks.items() if isinstance(said, str) else ():
            said = re.sub(pattern, replacement, said)
        return said

    return masked({**output, "execution_count": None})


def _has_picture(output: NotebookNode) -> bool:
    return "image/png" in output.get("data", ())


def _pixels(output: NotebookNode) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(output["data"]["image/png"]))).convert("RGB")


def trained(cells: list[NotebookNode], number: int) -> bool:
    """Whether what a cell shows may come from a training: whether it needs the cell of parameters."""
    return any("parameters" in tags(cells[needed]) for needed in needed_cells(cells, [number]))


def timed(cells: list[NotebookNode], number: int) -> bool:
    """Whether a measured time is among what a cell shows, or something else that nbval may not compare."""
    ignored = "nbval-ignore-output" in tags(cells[number])
    return ignored or any(TIMING.search(cells[needed].source) for needed in needed_cells(cells, [number]))


def differ(one: Image.Image, other: Image.Image, *, trained: bool = False) -> bool:
    """Whether two pictures look different, side by side at reading distance.

    Both are blurred, so that a line's place counts and not which pixels it fills. Where a training led to them, only
    their sizes are compared: what stands still in such a figure is seen by its chapter's tests, in made-up data.
    """
    return one.size != other.size or (not trained and bool((distances(one, other) > VISIBLE).any()))


def distances(one: Image.Image, other: Image.Image) -> np.ndarray:
    """For each pixel of two blurred pictures of one size the largest difference, of 255, in any channel."""
    blurred = [np.asarray(image.filter(ImageFilter.GaussianBlur(BLUR)), dtype=int) for image in (one, other)]
    return abs(blurred[0] - blurred[1]).max(axis=-1)
