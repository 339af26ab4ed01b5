"""Every figure of every chapter: what stands still in it and what moves.

A figure that can be made without data has its picture in the chapter's notebook, as it starts, and is compared with
it pixel by pixel, through the palette that stored pictures get. One that shows measured data is made from made-up
data by a function of its name in the tests of the chapter's figures, and compared with the picture of its name beside
them. After a change that is meant, look at the new pictures and keep them: `make pictures`.
"""

import functools
import importlib
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from bench import figure_functions
from colours import confused
from ipywidgets import Text
from matplotlib import text
from matplotlib.colors import to_hex
from pictures import as_kept, example, load, same_or_where, shown
from PIL import Image, ImageSequence
from thorough import ALL

from courseware.keep import differ
from courseware.notebooks import NOTEBOOKS, read, with_palette
from posenc.lesson.controls import ends
from posenc.lesson.live import Live

HERE = Path(__file__).parent
FIGURES = figure_functions(needing=True)
# in rows, of which each has its name, so that no colour is needed to tell them apart
IN_ROWS = {"four_term_expansion.missed", "models_you_use.who_asks", "what_it_costs.timeline"}
NEEDING = FIGURES.keys() - figure_functions()


@functools.cache
def made_up(chapter: str) -> dict:
    """What makes the chapter's figures from made-up data, by the figure's name."""
    path = HERE / chapter / "test_figures.py"
    return vars(load(path)) if path.exists() else {}


def make(name: str) -> Live:
    chapter, _, function = name.partition(".")
    if function not in made_up(chapter) and name in NEEDING:
        pytest.fail(f"it needs data: let {function}() in {chapter}/test_figures.py make it from made-up data", False)
    return made_up(chapter).get(function, FIGURES[name])()


@functools.cache
def pictures(chapter: str) -> list[tuple[str, bytes]]:
    """The words and the picture of every figure that the chapter shows."""
    (path,) = NOTEBOOKS.glob(f"[0-9]*_{chapter}.ipynb")
    return shown(read(path))


def drawn_as_kept(name: str, live: Live) -> None:
    chapter, _, function = name.partition(".")
    if function in made_up(chapter):
        return as_kept(live.png(), HERE / chapter / f"{function}.png")
    stored = [picture for words, picture in pictures(chapter) if words == repr(live)]
    assert stored, f"no cell of the chapter shows it as it starts: {live!r}. If one does: make notebooks"
    where = [same_or_where(live.png(), picture) for picture in stored]
    assert None in where, f"{where[0]}. If that is meant: make pictures"


def small_text(live: Live) -> dict[str, float]:
    shown = [item for item in live.figure.findobj(text.Text) if item.get_text().strip() and item.get_visible()]
    return {item.get_text(): item.get_fontsize() for item in shown if item.get_fontsize() < 9}


def told_by_colour_alone(live: Live) -> list[str]:
    """Lines and dots of one panel that look alike to some readers; hairlines that are no curve don't count."""
    found = []
    for axes in live.figure.axes:
        curves = [line for line in axes.lines if line.get_marker() != "None" or line.get_linewidth() > 1]
        looks = {
            f"{number} {line.get_label()}": (
                to_hex(line.get_color()),
                (line.get_linestyle(), line.get_marker(), line.get_fillstyle()),
            )
            for number, line in enumerate(curves)
        }
        found += confused(looks)
    return found


def sweep(live: Live) -> None:
    """Take every control but the text boxes to both its ends and back."""
    for name, control in live.controls.items():
        if not isinstance(control, Text):
            start, before, pictures = control.value, live.png(), []
            for value in (*ends(control), start):
                live.set(**{name: value})
                pictures.append(live.png())
            assert {*pictures} != {before}, f"{name}: it moves nothing"
            where = same_or_where(pictures[-1], before)
            assert where is None, f"{name}: back there, the picture is another one: {where}"


def test_a_dead_control_and_a_picture_that_remembers_are_found():
    with pytest.raises(AssertionError, match="hold: it moves nothing"):
        sweep(example())
    live = example()
    live.update = lambda **_: live.artists["dot"].set_markersize(1 + live.artists["dot"].get_markersize())
    with pytest.raises(AssertionError, match="x: back there, the picture is another one"):
        sweep(live)


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.slow
def test_a_figure(name):
    """It leaves the learner's random numbers alone, is drawn as it is kept, can be read, and every control moves it
    and brings it back."""
    torch.manual_seed(1234)  # no figure's own
    before = torch.get_rng_state()
    live = make(name)
    live.png()
    assert torch.equal(torch.get_rng_state(), before)
    drawn_as_kept(name, live)
    assert not small_text(live)
    assert name in IN_ROWS or not told_by_colour_alone(live)
    sweep(live)


def places(live: Live) -> Iterator[dict]:
    """All controls at their low ends and at their high ends; with ALL=1, each of them alone there too."""
    moved = {name: ends(control) for name, control in live.controls.items() if not isinstance(control, Text)}
    for end in (0, 1) if moved else ():
        yield {name: both[end] for name, both in moved.items()}
        for name, both in moved.items() if ALL else ():
            yield {name: both[end]}


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES if ALL else figure_functions())
def test_a_moved_figure_is_the_one_that_starts_there(name):
    """What stood there before leaves nothing behind, and nothing that stands still moves."""
    live = make(name)
    live.png()
    start = {name: control.value for name, control in live.controls.items()}
    for values in places(live):
        for control, value in values.items():
            live.set(**{control: value})  # a limit of one may move another
        fresh = make(name)
        fresh.set(**{name: control.value for name, control in live.controls.items()})
        where = same_or_where(live.png(), fresh.png())
        assert where is None, f"{values}: {where}"
        live.set(**start)


@pytest.mark.slow
def test_the_readme_shows_what_chapter_4_draws():
    """Query and key go on together, three positions apart, and come back: a frame a position."""
    path, live = NOTEBOOKS.parent / "README.png", FIGURES["rotary_encoding.two_positions"]()
    live.set(m=3, n=0)
    live.set(lock=True)
    drawn = []
    for m in (*range(3, 25), *range(23, 3, -1)):
        live.set(m=m)
        drawn.append(Image.open(io.BytesIO(live.png())).convert("RGB"))
    if os.environ.get("KEEP_PICTURES"):
        colours = with_palette(drawn[21])  # all of both curves
        frames = [frame.quantize(palette=colours, dither=Image.Dither.NONE) for frame in drawn]
        times = [900 if number in (0, 21) else 140 for number in range(len(frames))]
        frames[0].save(path, save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=True)
    with Image.open(path) as kept:
        frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(kept)]
    same = [not differ(one, frame) for one, frame in zip(drawn, frames, strict=True)]
    assert all(same), "the README's picture is another one. If that is meant: make pictures"


def test_nothing_is_made_up_that_is_no_figure():
    for chapter in {name.partition(".")[0] for name in FIGURES}:
        folder, figures = HERE / chapter, importlib.import_module(f"posenc.chapters.{chapter}.figures")
        kept = {path.stem for path in folder.glob("*.png")}
        assert kept <= made_up(chapter).keys() & vars(figures).keys()
