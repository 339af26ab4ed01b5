"""The frames of a figure: put together again, they are what it draws, and its controls lead where it goes."""

import base64
import io
import math
import zlib

import numpy as np
import pytest
from pictures import at, example, pixels
from PIL import Image

from courseware.keep import differ
from courseware.site import frames
from posenc.lesson.controls import choice, slider, text
from posenc.lesson.live import Live, canvas

FEW = 150  # positions


def picture(found: dict, position: int) -> Image.Image:
    """The picture at this position, put together from its tiles."""
    tile, (width, height) = found["tile"], found["size"]
    atlas = np.asarray(Image.open(io.BytesIO(base64.b64decode(found["atlas"]))).convert("RGB"))
    places = np.frombuffer(zlib.decompress(base64.b64decode(found["places"])), "<u2")
    tiles = places.reshape(-1, len(found["says"]))[:, position].reshape(-(-height // tile), -1)
    rows = []
    for row in tiles:
        corners = [(n // found["columns"] * tile, n % found["columns"] * tile) for n in row]
        rows.append(np.hstack([atlas[y : y + tile, x : x + tile] for y, x in corners]))
    return Image.fromarray(np.vstack(rows)[:height, :width])


def test_the_frames_are_the_pictures_that_the_figure_draws():
    live = example(mode=choice("mode", ["one", "two"]))
    before = live.png()
    found = frames.frames(live, FEW)
    x, y, hold, mode = (control["stops"] for control in found["controls"])
    assert mode == ["one", "two"]
    assert found["controls"][2] == {"name": "hold", "label": "hold x − y", "kind": "switch", "stops": hold, "start": 0}
    assert live.png() == before
    assert not differ(picture(found, found["start"]), pixels(before))
    at(live, x=6, y=4, hold=True, mode="two")
    assert [live.controls[name].value for name in "xy"] == [6, 4]
    position = (x.index("6") * len(y) + y.index("4")) * 4 + 3
    assert not differ(picture(found, position), pixels(live.png()))
    assert differ(picture(found, position), pixels(before))
    assert found["texts"][found["says"][position]] == "at 6, 4"


def test_what_locks_sliders_is_named_and_they_step_together():
    found = frames.frames(example(held=True), FEW)
    assert found["together"] == [[2, [0, 1]]]
    x, y, _ = (control["stops"] for control in found["controls"])
    assert {*np.diff([int(value) for value in x + y])} <= {2, int(y[0]) - int(x[-1])}
    assert found["controls"][0]["stops"][found["controls"][0]["start"]] == "0" and "2" in y


def test_the_first_slider_gets_the_room():
    live = example(z=slider("z", 1, 100, value=37), words=text("words"))
    all_of_it = next(frames.stops(live, 10**6))
    assert [len(values) for values in all_of_it.values()] == [10, 10, 2, 100] and "words" not in all_of_it
    found, *fewer = frames.stops(live, 640)
    assert len(found["x"]) == len(found["y"]) == 5 and 12 <= len(found["z"]) <= 16
    assert {1, 37, 100} <= {*found["z"]}
    assert len({*np.diff(found["z"])[1:-1]}) == 1, "equal distances, but for those to the ends"
    counts = [math.prod(map(len, each.values())) for each in fewer]
    assert len(counts) == 2 and counts[0] <= 320 and counts[1] <= 160, "the sliders can keep no fewer"


def test_a_slider_keeps_the_stops_that_it_declares():
    live = example(z=slider("z", -2.0, 2.0, value=0.0, step=0.1, stops=[-1.7, 1.3]))
    assert next(frames.stops(live, FEW))["z"] == [-1.7, 0.0, 1.3]


def test_a_figure_of_too_many_tiles_keeps_fewer_stops(monkeypatch):
    figure = canvas(3, 2)
    (dot,) = figure.add_subplot(xlim=(-1, 100), ylim=(-1, 1)).plot([0], [0], "o")
    controls = {"x": slider("x", 0, 99)}
    live = Live(figure, lambda x: dot.set_xdata([x]), moving={"dot": dot}, controls=controls, alt="A dot.")
    whole = frames.frames(live)
    monkeypatch.setattr(frames, "TILES", 120)
    found = frames.frames(live)
    assert 5 <= len(found["says"]) <= len(whole["says"]) / 2
    assert found["controls"][0]["stops"][-1] == "99"
    assert not differ(picture(found, found["start"]), pixels(live.png()))
    monkeypatch.setattr(frames, "TILES", 1)
    assert len(frames.frames(live)["says"]) == 6, "the fewest that it can keep, whatever they take"


def test_a_figure_with_too_many_options_is_refused():
    live = example(mode=choice("mode", range(61)))
    for ask in (frames.packings, frames.stops):
        with pytest.raises(ValueError, match="more than 150 positions.*: x, y, hold, mode"):
            next(ask(live, FEW))


def test_a_page_does_without_a_control_that_is_fixed_and_a_locked_slider_moves_along():
    live = at(example(), x=6, y=4)
    found = frames.frames(live, FEW, hold=True, y=4)
    (control,) = found["controls"]
    assert control["name"] == "x" and found["together"] == []
    assert control["stops"][0] == "2", "where y has come to its end, x can go no further"
    said = {x: found["texts"][found["says"][stop]] for stop, x in enumerate(control["stops"])}
    assert said["6"] == "at 6, 4" and said["8"] == "at 8, 6"
    assert found["start"] == control["start"]
    assert [live.controls[name].value for name in ("x", "y", "hold")] == [6, 4, False], "and it is as it was"
    assert frames.frames(live, hold=True, y=4, x=[4, 6])["controls"][0]["stops"] == ["4", "6"]


def test_a_picture_is_cut_in_the_widest_gap_near_its_middle():
    drawn = np.ones(100, bool)
    assert frames.cut(drawn) is None
    drawn[5:30] = drawn[45:52] = False
    assert frames.cut(drawn) is None, "the one leaves nearly all on its right, the other is hardly a gap"
    drawn[60:70] = False
    assert frames.cut(drawn) == 65
    drawn[35:48] = False
    assert frames.cut(drawn) == 43
