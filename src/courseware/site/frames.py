"""The pictures of a slider figure at its stops, packed so that a web page shows them without a kernel.

A picture is cut into tiles. Every tile that occurs is kept once, in one picture; each position of the controls has a
list of tiles. So what stands still, and what two positions have in common, costs nothing.
"""

import base64
import io
import itertools
import math
import zlib
from collections.abc import Container
from contextlib import suppress

import ipywidgets as widgets
import numpy as np
from matplotlib.text import Text
from PIL import Image

from courseware.notebooks import with_palette
from posenc.lesson.live import Live

STATES = 400  # positions of a figure's controls that a page shows, at most
FEW, MANY, MORE = 5, 25, 100  # stops of a slider: at least; so that it feels continuous; where there is room
TILE = 16  # pixels
COLUMNS = 64  # tiles in a row of their picture
TILES = 10_000  # of a figure, if its sliders can keep so few stops: some 400 kB
NUMBERED = 2**16  # tiles, at most: 16 bits
WHITE = 0xFFFFFFFF
GAP = 8  # pixels
LARGER = 0.7  # of a picture that is cut in two, the larger part's share at most


def frames(live: Live, states: int | None = None, **told: object) -> dict:
    """What a page needs to move a figure; the figure stays as it is.

    Args:
        live: the figure.
        states: the most positions of its controls, STATES unless given. A figure that has more than TILES tiles in
            them gets half as many, where its sliders can keep so few stops.
        told: of controls, by name, the value at which one stands that the page does without, or a list of the stops
            that it keeps, the present one among them. A slider that is locked to one that is kept moves along.

    Returns:
        a dict for JSON. Positions are numbered as itertools.product counts them, the last control fastest.

        size: width and height of the picture.
        cut: where a narrow screen may cut it in two, as `cut` gives it.
        start: the number of the position that the controls stand at now.
        controls: the name, kind, label and stops of each, in order.
        together: for each switch that locks sliders, its place among the controls and theirs.
        typed: the labels of the text boxes, which a page cannot follow.
        texts: what the moving texts of the picture say, each once.
        says: for each position, which of texts.
        tile, columns: how large a tile is, and how many stand in a row of atlas.
        atlas: the tiles, as WebP in base64.
        places: for each place of a picture and each position the number of the tile, 16 bits each, deflated, base64.

    Raises:
        ValueError: the controls have more positions than that, however few stops their sliders keep.
    """
    kept = {name: value for name, value in told.items() if isinstance(value, list)}
    fixed = {name: value for name, value in told.items() if name not in kept}
    before = {name: live.controls[name].value for name in live.controls}
    live.set(**fixed)
    try:
        return _packed(live, states or STATES, kept, fixed)
    finally:
        live.set(**before)


def _packed(live: Live, most: int, kept: dict[str, list], fixed: dict[str, object]) -> dict:
    values = stops(live, most, without=fixed) | kept
    room = TILES if _can_keep(live, most // 2, fixed) else NUMBERED
    names = list(values)
    start = [live.controls[name].value for name in values]
    if any(fixed.get(lock) for lock in live.together):
        values = {name: [v for v in found if _led(live, {name: v})[name] == v] for name, found in values.items()}
        positions = [_led(live, dict(zip(values, each))) for each in itertools.product(*values.values())]
        live.set(**dict(zip(values, start)))
    else:
        positions = [dict(zip(values, each)) for each in itertools.product(*values.values())]
    texts: dict[str, int] = {}
    said, tiles, places = [], {}, []
    drawn = None  # the columns in which some picture has more than paper
    for pixels in live.frames(positions):
        height, width, _ = pixels.shape
        drawn = inked(pixels) if drawn is None else drawn | inked(pixels)
        if not places:
            picture = np.full([-(-size // TILE) * TILE for size in (height, width)], WHITE, np.uint32)
            grid = picture.reshape(picture.shape[0] // TILE, TILE, -1, TILE)
            last, place = np.zeros_like(grid), np.zeros((len(grid), grid.shape[2]), int)
        picture[:height, :width] = pixels.view(np.uint32)[..., 0]
        for row, column in np.argwhere((grid != last).any(axis=(1, 3))):
            place[row, column] = tiles.setdefault(grid[row, :, column].tobytes(), len(tiles))
        if len(tiles) > room:
            break
        last[:] = grid
        places.append(place.ravel().astype("<u2"))
        said.append(texts.setdefault(says(live), len(texts)))
    if len(tiles) > room:
        return _packed(live, most // 2, kept, fixed)
    return {
        "size": [width, height],
        "cut": cut(drawn),
        "start": list(itertools.product(*values.values())).index(tuple(start)),
        "controls": [_described(name, live.controls[name], options) for name, options in values.items()],
        "together": [
            [names.index(lock), [names.index(n) for n in locked]]
            for lock, locked in live.together.items()
            if {lock, *locked} <= values.keys()
        ],
        "typed": [c.description for c in live.controls.values() if isinstance(c, widgets.Text)],
        "texts": list(texts),
        "says": said,
        "tile": TILE,
        "columns": COLUMNS,
        "atlas": base64.b64encode(_atlas(list(tiles))).decode(),
        "places": base64.b64encode(zlib.compress(np.array(places).T.tobytes(), 9)).decode(),
    }


def stops(live: Live, states: int | None = None, *, without: Container[str] = ()) -> dict[str, list]:
    """The values that a page shows of every control but text boxes and `without`, in at most `states` combinations.

    Choices and switches keep all; a slider keeps the stops that it declares. Others keep FEW or all their values,
    then up to MANY, then up to MORE, the first slider first, as far as there is room. Sliders that can be locked keep as many as each other,
    at one distance, so that a step of one is a step of the others.

    Raises:
        ValueError: the controls have more positions, however few stops their sliders keep.
    """
    states = states or STATES
    controls = {name: c for name, c in live.controls.items() if not isinstance(c, widgets.Text) and name not in without}
    locked = [set(names) for names in live.together.values()]
    groups = [next((group & controls.keys() for group in locked if name in group), {name}) for name in controls]
    found = {name: _stops(control, FEW, live) for name, control in controls.items()}
    for count in (FEW, MANY, MORE):
        for group in groups:
            for most in range(count, FEW - 1, -1):
                wider = found | {name: _stops(controls[name], most, live) for name in group}
                if math.prod(map(len, wider.values())) <= states:
                    found = wider
                    break
    if math.prod(map(len, found.values())) > states:
        raise ValueError(f"more than {states} positions, however few stops the sliders keep: {', '.join(controls)}")
    return found


def _led(live: Live, position: dict) -> dict:
    """Where all controls stand once these stand here, or as near to it as a lock lets them."""
    with suppress(ValueError):
        live.set(**position)
    return {name: control.value for name, control in live.controls.items()}


def _can_keep(live: Live, states: int, without: Container[str]) -> bool:
    try:
        return bool(stops(live, states, without=without))
    except ValueError:
        return False


def inked(pixels: np.ndarray) -> np.ndarray:
    """The columns of a picture, (height, width, 3 or 4), in which something is drawn: booleans, (width,)."""
    return (pixels[..., :3] != 255).any(axis=(0, 2))


def cut(drawn: np.ndarray) -> int | None:
    """The middle of the widest gap that leaves no part larger than LARGER; None if no such gap has GAP pixels.

    So a narrow screen can show the right part below the left one, at a size at which both can be read.
    """
    width = len(drawn)
    gaps = [(b - a, (int(a) + int(b) + 1) // 2) for a, b in itertools.pairwise(np.flatnonzero(drawn))]
    fit = [(gap, x) for gap, x in gaps if gap > GAP and max(x, width - x) <= LARGER * width]
    return max(fit)[1] if fit else None


def says(live: Live) -> str:
    """What the moving texts of the picture say."""
    texts = (artist.get_text() for artist in live.artists.values() if isinstance(artist, Text))
    return "; ".join(" ".join(text.split()) for text in texts if text.strip())


def _stops(control: widgets.Widget, most: int, live: Live) -> list:
    """The values of a control that a page keeps: of a slider about `most`, its ends and its start among them."""
    if isinstance(control, widgets.Checkbox):
        return [False, True]
    if hasattr(control, "options"):
        return list(control.options)
    if control.stops:
        return control.stops
    count = round((control.max - control.min) / control.step) + 1
    every = math.ceil((count - 1) / (most - 1))
    first = round((control.value - control.min) / control.step) % every
    numbers = {*range(first, count, every)}
    if not any(live.controls[name] is control for names in live.together.values() for name in names):
        numbers |= {0, count - 1}
    return [round(control.min + number * control.step, 9) for number in sorted(numbers)]


def _described(name: str, control: widgets.Widget, options: list) -> dict:
    described = {"name": name, "label": control.description, "start": options.index(control.value)}
    if isinstance(control, widgets.Checkbox):
        return {**described, "kind": "switch", "stops": ["off", "on"]}
    kind = "choice" if hasattr(control, "options") else "slider"
    texts = map(str, options) if kind == "choice" else (f"{value:.9g}" for value in options)
    return {**described, "kind": kind, "stops": list(texts)}


def _atlas(tiles: list[bytes]) -> bytes:
    pixels = np.frombuffer(b"".join(tiles), np.uint8).reshape(-1, TILE, TILE, 4)
    rows = -(-len(pixels) // COLUMNS)
    filled = np.full((rows * COLUMNS, TILE, TILE, 4), 255, np.uint8)
    filled[: len(pixels)] = pixels
    picture = filled.reshape(rows, COLUMNS, TILE, TILE, 4).swapaxes(1, 2).reshape(rows * TILE, -1, 4)
    file = io.BytesIO()
    with_palette(Image.fromarray(picture)).convert("RGB").save(file, "WEBP", lossless=True)
    return file.getvalue()
