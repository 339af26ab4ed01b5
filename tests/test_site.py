"""The web pages: what they are made of, and in a browser without network what they show when a control moves."""

import base64
import io
import os
import re
import zlib
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import FLAGS, chromium
from nbformat import v4
from PIL import Image
from playwright.sync_api import BrowserContext, Locator, Page, sync_playwright

from courseware import frames, site
from courseware.build import read
from posenc.live import Live, canvas, choice, slider, switch, text

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
PAGES = ["index.html", *(f"{path.stem}.html" for path in sorted(NOTEBOOKS.glob("*.ipynb")))]

# Drawn anew, these show another picture than the notebook: the one of models that are not trained here, the other of
# what this machine measured.
OTHER_PICTURES = {"stripes", "yours"}

# ------------------------------------------------------------------ frames


def example(*, held: bool = False, **more) -> Live:
    """A dot at (x, y). While hold is on, y moves with x and stays under 9."""
    figure = canvas(1, 0.5)
    axes = figure.add_subplot(xlim=(-1, 12), ylim=(-1, 12))
    (dot,) = axes.plot([0], [0], "o")
    controls = {
        "x": slider("x", 0, 9),
        "y": slider("y", 0, 9, value=2),
        "hold": switch("hold x − y", held),
        **more,
    }
    before = {name: control.value for name, control in controls.items()}

    def update(x, y, hold, **_):
        if hold and before["hold"] and x != before["x"] and y == before["y"]:
            controls["y"].value = y = min(y + x - before["x"], 8)
        dot.set_data([x], [y])
        words.set_text(f"at {x}, {y}")
        before.update(x=x, y=y, hold=hold)

    words = axes.set_title(" ")
    return Live(figure, update, moving={"dot": dot, "words": words}, controls=controls, alt="A dot.")


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


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def differ(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two pictures show something else: palettes move no colour by more than 40 of 255."""
    return one.shape != other.shape or (abs(one.astype(int) - other) > 40).any(axis=-1).mean() > 1e-3


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(frames, "STATES", 60)


def test_the_frames_are_the_pictures_that_the_figure_draws(few):
    live = example(mode=choice("mode", ["one", "two"]))
    before = live.png()
    found = frames.frames(live)
    assert [len(control["stops"]) for control in found["controls"]] == [4, 3, 2, 2]
    assert live.png() == before
    assert not differ(picture(found, found["start"]), pixels(before))
    live.set(x=6, y=5, hold=True, mode="two")
    position = (2 * 3 + 1) * 4 + 3
    assert not differ(picture(found, position), pixels(live.png()))
    assert differ(picture(found, position), pixels(before))
    assert found["texts"][found["says"][position]] == "at 6, 5"
    assert found["controls"][2] | {"start": 0} == {
        "name": "hold",
        "label": "hold x − y",
        "kind": "switch",
        "stops": ["off", "on"],
        "start": 0,
    }


def test_what_holds_another_control_leads_where_the_figure_goes(few):
    found = frames.frames(example(held=True))
    counts = [len(control["stops"]) for control in found["controls"]]
    assert [control["stops"] for control in found["controls"][:2]] == [
        ["0", "2", "4", "6", "8"],
        ["0", "2", "4", "6", "8"],
    ]
    number = {state: n for n, state in enumerate(np.ndindex(*counts))}
    assert found["leads"][f"{number[0, 1, 1]},0,1"] == number[1, 2, 1]
    assert found["leads"][f"{number[2, 1, 1]},0,-1"] == number[1, 0, 1]
    assert found["leads"][f"{number[1, 0, 1]},0,-1"] == number[1, 0, 1], "y would leave its range"
    assert not any(key.startswith(f"{number[0, 1, 0]},") for key in found["leads"])
    assert frames.frames(example())["leads"] == {}


def test_sliders_with_more_values_lose_more(monkeypatch):
    live = example(z=slider("z", 1, 100, value=37), words=text("words"))
    monkeypatch.setattr(frames, "STATES", 10**6)
    assert [len(values) for values in frames.stops(live).values()] == [10, 10, 2, 100]
    monkeypatch.setattr(frames, "STATES", 300)
    found = frames.stops(live)
    assert 150 < np.prod([len(values) for values in found.values()]) <= 300
    assert 37 in found["z"] and len(found["z"]) > len(found["y"]) and len(set(np.diff(found["z"]))) == 1
    assert "words" not in found


def test_a_figure_with_too_many_options_is_refused(few):
    with pytest.raises(ValueError, match="more than 60 positions.*: x, y, hold, mode"):
        frames.frames(example(mode=choice("mode", range(61))))


# ------------------------------------------------------------------- pages


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("02_additive_encodings.ipynb", "02_additive_encodings.html"),
        ("notebooks/02_additive_encodings.ipynb#cell-id=1a2b", "02_additive_encodings.html#cell-id=1a2b"),
        ("../README.md", "index.html"),
        ("../README.md#Start", "index.html#Start"),
        ("#1-Count", "#1-Count"),
        ("https://example.org/a.ipynb", "https://example.org/a.ipynb"),
    ],
)
def test_links_lead_to_pages(url, expected):
    assert site.page_of(url) == expected


def test_markdown_needs_no_script():
    html = site.markdown("# 1 Sines & *more*\n\nFor $a^2$ see [there](x.ipynb).\n\n$$\\omega_i$$")
    assert '<h1 id="1-Sines-&amp;-more">1 Sines &amp; <em>more</em></h1>' in html
    assert '<a href="x.html">' in html
    assert html.count("<math") == 2 and "$" not in html and "<msup>" in html
    assert 'src="data:image/png;base64,' in site.markdown("![A picture.](README.png)")


def notebook(*cells):
    return v4.new_notebook(cells=[v4.new_markdown_cell("# A title\n\n## First\n\n## Second"), *cells])


def a_page(*cells, **more):
    return site.page(notebook(*cells), name="a.html", title="A title", pages=[], **{"figures": {}, **more})


def test_a_page_has_its_sections_and_its_solutions_folded():
    solution = v4.new_code_cell("def turn_solution(): pass", metadata={"tags": ["solution"]}, id="abc")
    html = a_page(solution, v4.new_code_cell("2 < 3", id="def"))
    assert html.startswith("<!DOCTYPE html>") and "<title>A title</title>" in html
    assert re.findall('<li><a href="(.*?)">', html) == ["#First", "#Second"]
    folded = re.search('<details class="solution">(.*?)</details>', html, re.DOTALL)[1]
    assert 'id="cell-id=abc"' in folded and "turn_solution" in folded
    assert 'id="cell-id=def"' not in folded and 'id="cell-id=def"' in html


def test_a_cell_that_moves_ends_in_the_name_of_a_figure_with_controls():
    outputs = [
        v4.new_output("execute_result", data={"text/plain": "Figure: A dot. Controls: x, 0 to 9, at 0."})
    ]
    assert site.moves(v4.new_code_cell("dots = dot()\ndots", outputs=outputs))
    assert not site.moves(v4.new_code_cell("dot()", outputs=outputs))
    assert not site.moves(v4.new_code_cell("dots"))
    assert not site.moves(v4.new_markdown_cell("dots"))


def test_a_figure_is_made_by_the_cells_that_it_needs():
    cells = [
        v4.new_code_cell("from posenc.live import Live, canvas"),
        v4.new_code_cell("raise ValueError('not needed')"),
        v4.new_code_cell(
            "def alt():\n    raise NotImplementedError", metadata={"tags": ["exercise"], "ex": {"id": "alt"}}
        ),
        v4.new_code_cell(
            'def alt_solution():\n    return "A blank."\n\n\nalt = use("alt", alt, alt_solution)',
            metadata={"tags": ["solution"]},
        ),
        v4.new_code_cell("blank = Live(canvas(), print, moving={}, controls={}, alt=alt())\nblank"),
    ]
    assert site.figure(v4.new_notebook(cells=cells), 4).alt == "A blank."


def test_a_text_box_stays_in_the_notebook(few):
    live = example(words=text("your words"))
    cell = v4.new_code_cell("live", id="abc")
    data, metadata = live._repr_mimebundle_()
    data = {kind: data[kind] for kind in ("image/png", "text/plain")}
    cell.outputs = [v4.new_output("execute_result", data=data, metadata=metadata)]
    html = a_page(cell, figures={"abc": frames.frames(live)})
    assert "In the notebook you can also type: your words." in html
    assert (
        html.count('type="range"') == 2 and html.count('type="checkbox"') == 1 and 'type="text"' not in html
    )


def test_a_page_over_the_limit_fails(tmp_path, monkeypatch, capsys):
    (tmp_path / "01_a.ipynb").write_text(site_text(notebook()))
    assert site.main(tmp_path, tmp_path / "site") == 0
    assert re.search(r"01_a.html +0\.0\d MB +0 pictures in 0 figures", capsys.readouterr().out)
    monkeypatch.setattr(site, "LIMIT", 1000)
    assert site.main(tmp_path, tmp_path / "site") == 1
    assert "More than 0.001 MB: index.html, 01_a.html" in capsys.readouterr().err


def site_text(cells):
    import nbformat

    return nbformat.writes(cells)
