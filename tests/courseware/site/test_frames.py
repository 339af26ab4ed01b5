"""The frames of a figure: put together again, they are what it draws, and its controls lead where it goes."""

import base64
import io
import zlib

import numpy as np
import pytest
from pictures import differ, example, pixels
from PIL import Image

from courseware.site import frames
from posenc.live import choice, slider, text


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(frames, "STATES", 150)


def picture(found: dict, position: int) -> np.ndarray:
    """The picture at this position, put together from its tiles, (height, width, 3)."""
    tile, (width, height) = found["tile"], found["size"]
    atlas = np.asarray(Image.open(io.BytesIO(base64.b64decode(found["atlas"]))).convert("RGB"))
    places = np.frombuffer(zlib.decompress(base64.b64decode(found["places"])), "<u2")
    tiles = places.reshape(-1, len(found["says"]))[:, position].reshape(-(-height // tile), -1)
    rows = []
    for row in tiles:
        corners = [(n // found["columns"] * tile, n % found["columns"] * tile) for n in row]
        rows.append(np.hstack([atlas[y : y + tile, x : x + tile] for y, x in corners]))
    return np.vstack(rows)[:height, :width]


def test_the_frames_are_the_pictures_that_the_figure_draws():
    live = example(mode=choice("mode", ["one", "two"]))
    before = live.png()
    found = frames.frames(live)
    counts = [len(control["stops"]) for control in found["controls"]]
    assert counts[2:] == [2, 2]
    stop = [found["controls"][n]["stops"].index(value) for n, value in enumerate("64")]
    assert live.png() == before
    assert not differ(picture(found, found["start"]), pixels(before))
    live.set(x=6, y=4, hold=True, mode="two")
    position = (stop[0] * counts[1] + stop[1]) * 4 + 3
    assert not differ(picture(found, position), pixels(live.png()))
    assert differ(picture(found, position), pixels(before))
    assert found["texts"][found["says"][position]] == "at 6, 4"
    assert found["controls"][2] | {"start": 0} == {
        "name": "hold",
        "label": "hold x − y",
        "kind": "switch",
        "stops": ["off", "on"],
        "start": 0,
    }


def test_what_holds_another_control_leads_where_the_figure_goes():
    found = frames.frames(example(held=True))
    counts = [len(control["stops"]) for control in found["controls"]]
    assert [control["stops"] for control in found["controls"][:2]] == [
        ["0", "2", "4", "6", "8"],
        ["0", "2", "4", "6", "8"],
    ]
    number = {state: n for n, state in enumerate(np.ndindex(*counts))}
    assert found["leads"][f"{number[0, 1, 1]},0,1"] == number[1, 2, 1]
    assert found["leads"][f"{number[2, 1, 1]},0,-1"] == number[1, 0, 1]
    assert found["leads"][f"{number[0, 3, 1]},0,1"] == number[0, 3, 1], "y would go to 7, which is no stop"
    assert not any(key.startswith(f"{number[0, 1, 0]},") for key in found["leads"])
    assert frames.frames(example())["leads"] == {}


def test_sliders_with_more_values_lose_more(monkeypatch):
    live = example(z=slider("z", 1, 100, value=37), words=text("words"))
    monkeypatch.setattr(frames, "STATES", 10**6)
    assert [len(values) for values in frames.stops(live).values()] == [10, 10, 2, 100]
    monkeypatch.setattr(frames, "STATES", 700)
    found = frames.stops(live)
    assert 350 < np.prod([len(values) for values in found.values()]) <= 700
    assert 37 in found["z"] and len(found["z"]) > len(found["y"])
    assert len(set(np.diff(found["z"])[1:-1])) == 1, "equal distances, but for those to the ends"
    assert "words" not in found


def test_sliders_keep_their_ends_and_what_is_asked_for(monkeypatch):
    monkeypatch.setattr(frames, "STATES", 900)
    live = example(z=slider("z", -2.0, 2.0, value=0.0, step=0.1))
    found = frames.stops(live, {"z": {-1.7}, "x": (5,)})
    assert {-2.0, -1.7, 0.0, 2.0} < {*found["z"]} and len(found["z"]) < 20
    assert {0, 5, 9} < {*found["x"]} and {0, 2, 9} < {*found["y"]}
    held = frames.stops(example(held=True, z=slider("z", 0, 99)), {"x": {7}})
    assert all(len(set(np.diff(held[name]))) == 1 for name in "xyz"), "a step of x has to be one of y"


def test_a_figure_with_too_many_options_is_refused():
    live = example(mode=choice("mode", range(61)))
    for ask in (frames.frames, frames.stops):
        with pytest.raises(ValueError, match="more than 150 positions.*: x, y, hold, mode"):
            ask(live)
