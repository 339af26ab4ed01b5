"""The pictures of a slider figure at its stops, packed so that a web page shows them without a kernel.

A picture is cut into tiles. Every tile that occurs is kept once, in one picture; each position of the controls has a
list of tiles. So what stands still, and what two positions have in common, costs nothing.
"""

import base64
import io
import itertools
import math
import zlib

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


def frames(live: Live, states: int | None = None) -> dict:
    """What a page needs to move a figure; the figure stays as it is.

    Args:
        live: the figure.
        states: the most positions of its controls, STATES unless given. A figure that has more than TILES tiles in
            them gets half as many, where its sliders can keep so few stops.

    Returns:
        a dict for JSON. Positions are numbered as itertools.product counts them, the last control fastest.

        size: width and height of the picture.
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
    most = states or STATES
    values, room = stops(live, most), TILES if _can_keep(live, most // 2) else NUMBERED
    names = list(values)
    start = [live.controls[name].value for name in values]
    positions = [dict(zip(values, position)) for position in itertools.product(*values.values())]
    texts: dict[str, int] = {}
    said, tiles, places = [], {}, []
    for pixels in live.frames(positions):
        height, width, _ = pixels.shape
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
        return frames(live, most // 2)
    return {
        "size": [width, height],
        "start": positions.index(dict(zip(values, start))),
        "controls": [_described(name, live.controls[name], options) for name, options in values.items()],
        "together": [
            [names.index(lock), [names.index(n) for n in locked]] for lock, locked in live.together.items()
        ],
        "typed": [c.description for c in live.controls.values() if isinstance(c, widgets.Text)],
        "texts": list(texts),
        "says": said,
        "tile": TILE,
        "columns": COLUMNS,
        "atlas": base64.b64encode(_atlas(list(tiles))).decode(),
        "places": base64.b64encode(zlib.compress(np.array(places).T.tobytes(), 9)).decode(),
    }


def stops(live: Live, states: int | None = None) -> dict[str, list]:
    """The values of every control but the text boxes that a page shows, by name, in at most `states` combinations.

    Choices and switches keep all; a slider keeps the stops that it declares. Others keep FEW or all their values,
    then up to MANY, then up to MORE, the first slider first, as far as there is room. Sliders that can be locked keep as many as each other,
    at one distance, so that a step of one is a step of the others.

    Raises:
        ValueError: the controls have more positions, however few stops their sliders keep.
    """
    states = states or STATES
    controls = {name: c for name, c in live.controls.items() if not isinstance(c, widgets.Text)}
    locked = [set(names) for names in live.together.values()]
    groups = [next((group for group in locked if name in group), {name}) for name in controls]
    found = {name: _stops(control, FEW, live) for name, control in controls.items()}
    for count in (FEW, MANY, MORE):
        for group in groups:
            for most in range(count, FEW - 1, -1):
                wider = found | {name: _stops(controls[name], most, live) for name in group}
                if math.prod(map(len, wider.values())) <= states:
                    found = wider
                    break
    if math.prod(map(len, found.values())) > states:
        raise ValueError(
            f"more than {states} positions, however few stops the sliders keep: {', '.join(controls)}"
        )
    return found


def _can_keep(live: Live, states: int) -> bool:
    try:
        return bool(stops(live, states))
    except ValueError:
        return False


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
