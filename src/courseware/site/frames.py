"""The pictures of a slider figure at its stops, packed so that a web page shows them without a kernel.

A picture is cut into tiles. Every tile that occurs is kept once, in one picture; each position of the controls has a
list of tiles. So what stands still, and what two positions have in common, costs nothing.
"""

import base64
import io
import itertools
import math
import zlib
from collections.abc import Container, Iterator
from contextlib import closing, suppress

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
WHITE = 0xFFFFFFFF
GAP = 8  # pixels
LARGER = 0.7  # of a picture that is cut in two, the larger part's share at most


def frames(live: Live, states: int | None = None, **told: object) -> dict:
    """The first of the `packings` of a figure, which stays as it is."""
    with closing(packings(live, states, **told)) as found:
        return next(found)


def packings(live: Live, states: int | None = None, **told: object) -> Iterator[dict]:
    """What a page needs to move a figure; then the same with half as many positions, as often as its sliders can.

    Args:
        live: the figure.
        states: the most positions of its controls in the first, STATES unless given. What has more than TILES tiles
            is left out, but for the last.
        told: of controls, by name, the value at which one stands that the page does without, or a list of the stops
            that it keeps, the present one among them. A slider that is locked to one that is kept moves along.

    Yields:
        dicts for JSON. Positions are numbered as itertools.product counts them, the last control fastest.

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
    before = {name: control.value for name, control in live.controls.items()}
    live.set(**fixed)
    try:
        *larger, least = stops(live, states or STATES, without=fixed)
        for values in larger:
            if packed := _packed(live, values | kept, fixed, TILES):
                yield packed
        yield _packed(live, least | kept, fixed, math.inf)
    finally:
        live.set(**before)


def _packed(live: Live, values: dict[str, list], fixed: dict[str, object], room: float) -> dict | None:
    """What `packings` yields, of controls with these stops; None where there are more tiles than there is room for."""
    start = {name: live.controls[name].value for name in values}
    locked = any(fixed.get(lock) for lock in live.together)
    if locked:  # a slider goes no further than those that move along
        values = {name: [v for v in found if _led(live, {name: v})[name] == v] for name, found in values.items()}
    positions = [dict(zip(values, each)) for each in itertools.product(*values.values())]
    number = positions.index(start)
    if locked:
        positions = [_led(live, position) for position in positions]
        live.set(**start)

    width, height = live.figure.canvas.get_width_height()
    rows, columns = -(-height // TILE), -(-width // TILE)
    picture = np.full((rows * TILE, columns * TILE), WHITE, np.uint32)
    drawn = np.zeros(width, bool)  # the columns in which some picture has more than paper
    tiles: dict[bytes, int] = {}
    texts: dict[str, int] = {}
    places, said = [], []
    for pixels in live.frames(positions):
        drawn |= inked(pixels)
        picture[:height, :width] = pixels.view(np.uint32)[..., 0]
        pieces = picture.reshape(rows, TILE, columns, TILE).swapaxes(1, 2).reshape(rows * columns, -1)
        places.append([tiles.setdefault(piece.tobytes(), len(tiles)) for piece in pieces])
        said.append(texts.setdefault(says(live), len(texts)))
        if len(tiles) > room:
            return None
    names = list(values)
    return {
        "size": [width, height],
        "cut": cut(drawn),
        "start": number,
        "controls": [_described(name, live.controls[name], options) for name, options in values.items()],
        "together": [
            [names.index(lock), [names.index(n) for n in sliders]]
            for lock, sliders in live.together.items()
            if {lock, *sliders} <= values.keys()
        ],
        "typed": [c.description for c in live.controls.values() if isinstance(c, widgets.Text)],
        "texts": list(texts),
        "says": said,
        "tile": TILE,
        "columns": COLUMNS,
        "atlas": base64.b64encode(_atlas(list(tiles))).decode(),
        "places": base64.b64encode(zlib.compress(np.array(places, "<u2").T.tobytes(), 9)).decode(),
    }


def stops(live: Live, states: int, *, without: Container[str] = ()) -> Iterator[dict[str, list]]:
    """The values that a page shows of every control but text boxes and `without`, in at most `states` combinations.

    Choices and switches keep all; a slider keeps the stops that it declares. Others keep FEW or all their values,
    then up to MANY, then up to MORE, the first slider first, as far as there is room. Sliders that can be locked keep
    as many as each other, at one distance, so that a step of one is a step of the others.

    Yields:
        these values; then those in at most half as many combinations, and so on, as long as the sliders can keep so
        few. No two that follow each other are the same.

    Raises:
        ValueError: the controls have more positions, however few stops their sliders keep.
    """
    controls = {name: c for name, c in live.controls.items() if not isinstance(c, widgets.Text) and name not in without}
    locked = [set(names) for names in live.together.values()]
    groups = [next((group & controls.keys() for group in locked if name in group), {name}) for name in controls]
    least = {name: _stops(control, FEW, live) for name, control in controls.items()}
    found = None
    while math.prod(map(len, least.values())) <= states:
        last, found = found, least
        for count, group in itertools.product((MANY, MORE), groups):
            tried = (
                found | {name: _stops(controls[name], most, live) for name in group}
                for most in range(count, FEW - 1, -1)
            )
            found = next(wider for wider in tried if math.prod(map(len, wider.values())) <= states)
        if found != last:
            yield found
        states //= 2
    if found is None:
        raise ValueError(f"more than {states} positions, however few stops the sliders keep: {', '.join(controls)}")


def _led(live: Live, position: dict) -> dict:
    """Where all controls stand once these stand here, or as near to it as a lock lets them."""
    with suppress(ValueError):
        live.set(**position)
    return {name: control.value for name, control in live.controls.items()}


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
        return described | {"kind": "switch", "stops": ["off", "on"]}
    if hasattr(control, "options"):
        return described | {"kind": "choice", "stops": [str(option) for option in options]}
    return described | {"kind": "slider", "stops": [f"{value:.9g}" for value in options]}


def _atlas(tiles: list[bytes]) -> bytes:
    rows = -(-len(tiles) // COLUMNS)
    paper = [b"\xff" * len(tiles[0])] * (rows * COLUMNS - len(tiles))
    pixels = np.frombuffer(b"".join(tiles + paper), np.uint8).reshape(rows, COLUMNS, TILE, TILE, 4)
    picture = pixels.swapaxes(1, 2).reshape(rows * TILE, -1, 4)
    file = io.BytesIO()
    with_palette(Image.fromarray(picture)).convert("RGB").save(file, "WEBP", lossless=True)
    return file.getvalue()
