"""The pictures of a slider figure at its stops, packed so that a web page shows them without a kernel.

A picture is cut into tiles. Every tile that occurs is kept once, in one picture; each position of the controls has a
list of tiles. So what stands still, and what two positions have in common, costs nothing.
"""

import base64
import io
import itertools
import math
import zlib
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from unittest.mock import patch

import ipywidgets as widgets
import numpy as np
from matplotlib.text import Text
from PIL import Image

from courseware.notebooks import with_palette
from posenc.live import Live

STATES = 216  # positions of a figure's controls that a page shows, at most
TILE = 16  # pixels
COLUMNS = 64  # tiles in a row of their picture
WHITE = 0xFFFFFFFF


def frames(live: Live, asked: Mapping[str, Collection] = MappingProxyType({})) -> dict:
    """What a page needs to move a figure; the figure ends where it started.

    Args:
        live: the figure.
        asked: values that the sliders are to have among their stops, by name.

    Returns:
        a dict for JSON. Positions are numbered as itertools.product counts them, the last control fastest.

        size: width and height of the picture.
        start: the number of the position that the controls stand at now.
        controls: the name, kind, label and stops of each, in order.
        typed: the labels of the text boxes, which a page cannot follow.
        texts: what the moving texts of the picture say, each once.
        says: for each position, which of texts.
        leads: where a step of a control leads, unless it moves that control alone: "position,control,±1" to position.
        tile, columns: how large a tile is, and how many stand in a row of atlas.
        atlas: the tiles, as WebP in base64.
        places: for each place of a picture and each position the number of the tile, 16 bits each, deflated, base64.

    Raises:
        ValueError: the controls have more than STATES positions, however few stops their sliders keep.
    """
    live.png()  # the first one is drawn as a whole
    values = stops(live, asked)
    start = {name: live.controls[name].value for name in values}
    states = list(itertools.product(*values.values()))
    texts: dict[str, int] = {}
    said, tiles, places = [], {}, []
    with patch("posenc.live._png", return_value=b"."):  # a third of a move, and not needed here
        leads = dict(_leads(live, values))
        picture = np.full([-(-size // TILE) * TILE for size in _pixels(live).shape], WHITE, np.uint32)
        grid = picture.reshape(picture.shape[0] // TILE, TILE, -1, TILE)
        last, place = np.zeros_like(grid), np.zeros((len(grid), grid.shape[2]), "<u2")
        for state in states:
            live.set(**dict(zip(values, state)))
            height, width = _pixels(live).shape
            picture[:height, :width] = _pixels(live)
            for row, column in np.argwhere((grid != last).any(axis=(1, 3))):
                place[row, column] = tiles.setdefault(grid[row, :, column].tobytes(), len(tiles))
            last[:] = grid
            places.append(place.ravel().copy())
            said.append(texts.setdefault(says(live), len(texts)))
        live.set(**start)
    live.redraw()
    return {
        "size": [width, height],
        "start": states.index(tuple(start.values())),
        "controls": [_described(name, live.controls[name], options) for name, options in values.items()],
        "typed": [c.description for c in live.controls.values() if isinstance(c, widgets.Text)],
        "texts": list(texts),
        "says": said,
        "leads": leads,
        "tile": TILE,
        "columns": COLUMNS,
        "atlas": base64.b64encode(_atlas(list(tiles))).decode(),
        "places": base64.b64encode(zlib.compress(np.array(places).T.tobytes(), 9)).decode(),
    }


def stops(live: Live, asked: Mapping[str, Collection] = MappingProxyType({})) -> dict[str, list]:
    """The values of every control but the text boxes that a page shows, by name, in at most STATES combinations.

    Choices and switches keep all. Sliders keep values at equal distances, the one that they stand at among them, at
    least four; and both their ends and what is asked for. Where that is not all, those with more values lose more.
    In a figure whose controls hold each other all distances are equal, since a step of one has to be one of another.

    Args:
        live: the figure.
        asked: values that the sliders are to have among their stops, by name.

    Raises:
        ValueError: the controls have more than STATES positions, however few stops their sliders keep.
    """
    controls = {name: c for name, c in live.controls.items() if not isinstance(c, widgets.Text)}
    kept = {} if _hold(live) else {name: {*_ends(c), *asked.get(name, ())} for name, c in controls.items()}
    for share in np.arange(0, 1.01, 0.01):  # of count values a slider keeps every count ** share
        found = {name: _every(c, share, kept.get(name, ())) for name, c in controls.items()}
        if math.prod(map(len, found.values())) <= STATES:
            return found
    raise ValueError(
        f"more than {STATES} positions, however few stops the sliders keep: {', '.join(controls)}"
    )


def says(live: Live) -> str:
    """What the moving texts of the picture say."""
    texts = (artist.get_text() for artist in live.artists.values() if isinstance(artist, Text))
    return "; ".join(" ".join(text.split()) for text in texts if text.strip())


def _every(control: widgets.Widget, share: float, kept: Collection) -> list:
    if isinstance(control, widgets.Checkbox):
        return [False, True]
    if hasattr(control, "options"):
        return list(control.options)
    count = round((control.max - control.min) / control.step) + 1
    every = max(1, min(round(count**share), count // 4))
    first = round((control.value - control.min) / control.step) % every
    numbers = {*range(first, count, every), *(round((value - control.min) / control.step) for value in kept)}
    return [round(control.min + number * control.step, 9) for number in sorted(numbers)]


def _hold(live: Live) -> bool:
    """Whether a step of a slider moves another control too."""
    start = {name: control.value for name, control in live.controls.items()}
    sliders = {name: c for name, c in live.controls.items() if _ends(c)}
    with patch.object(live, "_draw"):
        for name, control in sliders.items():
            control.value += control.step if control.value < control.max else -control.step
            moved = {other for other, value in start.items() if live.controls[other].value != value}
            live.set(**start)
            if moved != {name}:
                return True
    return False


def _ends(control: widgets.Widget) -> tuple:
    return (control.min, control.max) if hasattr(control, "min") else ()


def _described(name: str, control: widgets.Widget, options: list) -> dict:
    described = {"name": name, "label": control.description, "start": options.index(control.value)}
    if isinstance(control, widgets.Checkbox):
        return {**described, "kind": "switch", "stops": ["off", "on"]}
    kind = "choice" if hasattr(control, "options") else "slider"
    texts = map(str, options) if kind == "choice" else (f"{value:.9g}" for value in options)
    return {**described, "kind": kind, "stops": list(texts)}


def _leads(live: Live, values: dict[str, list]) -> Iterator[tuple[str, int]]:
    """The steps that move another control too, or none, since another control does not let them.

    What makes controls hold each other is a switch that is on. A figure whose controls do not hold each other where it
    starts is not searched further.
    """
    states = list(itertools.product(*values.values()))
    number = {state: index for index, state in enumerate(states)}
    start = tuple(live.controls[name].value for name in values)

    def steps(state: tuple) -> Iterator[tuple[str, int]]:
        if not any(value is True for value in state):
            return
        for place, (name, options) in enumerate(values.items()):
            for step in (-1, 1):
                if not 0 <= (there := options.index(state[place]) + step) < len(options):
                    continue
                live.set(**dict(zip(values, state)))
                live.controls[name].value = options[there]
                reached = tuple(live.controls[name].value for name in values)
                if reached != (*state[:place], options[there], *state[place + 1 :]):
                    yield f"{number[state]},{place},{step}", number.get(reached, number[state])

    with patch.object(live, "_draw"):
        for state in states if _hold(live) else ():
            yield from steps(state)
        live.set(**dict(zip(values, start)))


def _pixels(live: Live) -> np.ndarray:
    """The picture as it stands, one number a pixel."""
    return np.asarray(live.figure.canvas.buffer_rgba()).view(np.uint32)[..., 0]


def _atlas(tiles: list[bytes]) -> bytes:
    pixels = np.frombuffer(b"".join(tiles), np.uint8).reshape(-1, TILE, TILE, 4)
    rows = -(-len(pixels) // COLUMNS)
    filled = np.full((rows * COLUMNS, TILE, TILE, 4), 255, np.uint8)
    filled[: len(pixels)] = pixels
    picture = filled.reshape(rows, COLUMNS, TILE, TILE, 4).swapaxes(1, 2).reshape(rows * TILE, -1, 4)
    file = io.BytesIO()
    with_palette(Image.fromarray(picture)).convert("RGB").save(file, "WEBP", lossless=True)
    return file.getvalue()
