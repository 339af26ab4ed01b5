"""A learner's session in a real browser: run all, move controls, type, make mistakes."""

import base64
import re
import shutil

import pytest
from browser import Control, Lab, Notebook, chromium, lab, server
from nbformat import NotebookNode, v4
from pictures import same_or_where

from courseware.dependencies import needed_cells, untrained_cells
from courseware.keep import timed
from courseware.notebooks import METADATA, NOTEBOOKS, chapters, read, text
from courseware.solutions import solved

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(not chromium(), reason="no Chromium is installed: apt-get install chromium"),
]

SCRATCH = """
import numpy as np
from posenc.lesson.controls import choice, slider, switch, text
from posenc.lesson.live import Live, canvas

words = text("sentence", value="the dog bit the man")
scores = np.random.default_rng(0).random((24, 24))


def heat_map():
    figure = canvas()
    axes = figure.add_subplot()
    image = axes.imshow(scores, vmin=0, vmax=1)
    title = axes.set_title(" ")

    def update(turn, strength, mask, shown, sentence):
        if turn == 3:
            raise ValueError("3 is <too> many")
        shown_scores = strength * np.roll(scores, turn, 0) * shown
        image.set_data(np.tril(shown_scores) if mask == "causal" else shown_scores)
        title.set_text(f"{sentence} · {turn} · {strength:.1f}")

    controls = {
        "turn": slider("turn", 0, 23, unit="places"),
        "strength": slider("strength", 0, 1, value=1, step=0.1),
        "mask": choice("mask", ["none", "causal"]),
        "shown": switch("show the scores", value=True),
        "sentence": words,
    }
    return Live(figure, update, moving={"matrix": image, "title": title}, controls=controls, alt="A matrix of scores.")


heat_map()
# %%
figure = canvas(8, 2)
(line,) = figure.add_subplot(xlim=(0, 1), ylim=(0, 60)).plot([0, 1], [0, 0])
Live(
    figure,
    lambda sentence: line.set_ydata([0, len(sentence)]),
    moving={"line": line},
    controls={"sentence": words},
    alt="The length of the sentence.",
)
# %%
from pathlib import Path

import torch


def compute(until):
    matrix = torch.rand(600, 600)
    while not Path(until).exists():
        matrix @ matrix


compute(".")
# %%
from posenc.lesson.claims import claim
from posenc.lesson.guesses import predict

guess = predict("Which is it?", ["small", "large"])
# %%
guess.compare("small", since={"large": "it was not weighed"})
claim("a < b", 1, below=2)
""".strip().split("\n# %%\n")


def controls_of(cell: NotebookNode) -> int:
    """How many controls stand below the pictures that it stores."""
    said = [output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", ())]
    return sum(len(each.partition(" Controls: ")[2].split("; ")) for each in said if " Controls: " in each)


def sliders() -> tuple[list[NotebookNode], int]:
    """All chapters' cells that show controls, with those that they need, and how many controls that is. Trainings and
    measured times are left out."""
    found, count = [], 0
    for path in chapters():
        cells = solved(read(path)).cells
        showing = [n for n in untrained_cells(cells) if controls_of(cells[n]) and not timed(cells, n)]
        found += [v4.new_code_cell(cells[n].source) for n in sorted(needed_cells(cells, showing))]
        count += sum(controls_of(cells[n]) for n in showing)
    return found, count


@pytest.fixture(scope="module")
def jupyterlab(tmp_path_factory) -> Lab:
    folder = tmp_path_factory.mktemp("notebooks")
    for path in [*chapters(), NOTEBOOKS / "claims.ipynb"]:
        shutil.copy(path, folder)
    scratch = [v4.new_code_cell(source) for source in SCRATCH]
    for name, cells in {"scratch": scratch, "sliders": sliders()[0]}.items():
        (folder / f"{name}.ipynb").write_text(text(v4.new_notebook(cells=cells, metadata=METADATA)))
    with lab(folder, tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture(scope="module")
def scratch(jupyterlab) -> Notebook:
    notebook = jupyterlab.open("scratch.ipynb")
    notebook.run_all()
    return notebook


def control(notebook: Notebook, figure: int, label: str) -> Control:
    return next(found for found in notebook.controls(figure) if found.label == label)


def test_all_cells_run_and_show_their_figures(scratch):
    assert scratch.errors() == []
    assert len(scratch.figures) == 2
    for figure in scratch.figures:
        assert figure.locator("> img").bounding_box()["width"] == 800


def test_pictures_controls_handles_and_readouts_have_names_in_one_column(scratch):
    for words in ("A matrix of scores.", "The length of the sentence."):
        assert scratch.page.get_by_role("img", name=words, exact=True).count() == 1
    controls = scratch.controls(0)
    assert [found.label for found in controls] == ["turn (places)", "strength", "mask", "show the scores", "sentence"]
    boxes = [found.box.locator("label").first.bounding_box() for found in controls]
    assert len({round(box["x"] + box["width"]) for box in boxes}) == 1
    assert scratch.page.get_by_role("textbox", name="sentence").count() == 2
    handle = scratch.figures[0].get_by_role("slider", name="turn (places)", exact=True)
    handle.wait_for()
    assert handle.get_attribute("aria-valuenow")
    assert scratch.figures[0].locator('.widget-readout[aria-label="turn (places), value"]').count() == 1


def test_a_sentence_typed_once_moves_both_figures(scratch):
    before = scratch.picture(0), scratch.picture(1)
    control(scratch, 1, "sentence").write("so long a sentence that it cannot be missed")
    assert all(scratch.new_picture(figure, before[figure]) for figure in (0, 1))
    assert control(scratch, 0, "sentence").value == control(scratch, 1, "sentence").value


def test_an_error_is_red_and_goes_away(scratch):
    turn = control(scratch, 0, "turn (places)")
    turn.focus()
    turn.press("Home", "ArrowRight", "ArrowRight")
    scratch.settle()
    before = scratch.picture(0)
    turn.press("ArrowRight")
    alert = scratch.alert(0)
    alert.wait_for()
    assert alert.inner_text() == "3 is <too> many"
    red, green, blue = alert.evaluate("e => getComputedStyle(e).color.match(/\\d+/g).map(Number)")[:3]
    assert red > 180 and max(green, blue) < 100
    assert turn.focused()
    assert scratch.picture(0) == before
    turn.press("ArrowRight")
    alert.wait_for(state="detached")
    assert scratch.new_picture(0, before)


def test_no_press_is_missed_and_equal_values_have_equal_pictures(scratch):
    strength, pictures = control(scratch, 0, "strength"), {}
    strength.focus()
    for key in ["Home"] + ["ArrowRight"] * 8 + ["ArrowLeft"] * 8:
        strength.press(key)
        scratch.settle()
        picture = scratch.picture(0)
        assert pictures.setdefault(strength.value, picture) == picture, f"another picture at {strength.value}"
    assert len(pictures) == len(set(pictures.values())) == 9
    strength.press(*["ArrowRight"] * 9, *["ArrowLeft"] * 8)  # all at once
    scratch.settle()
    assert (strength.value, scratch.picture(0)) == ("0.1", pictures["0.1"])


def test_a_slider_that_was_never_touched_answers_while_a_cell_runs(scratch, jupyterlab):
    scratch.run("def heat_map")  # so its sliders were last spoken to by this cell
    before = scratch.picture(0)
    _, done = scratch.start('compute(".")', 'compute("stop")')
    strength = control(scratch, 0, "strength")
    strength.focus()
    strength.press("ArrowLeft")
    assert scratch.new_picture(0, before)
    assert not scratch.page.evaluate(done)
    (jupyterlab.folder / "stop").touch()
    scratch.page.wait_for_function(done)


def test_a_guess_is_made_with_the_keyboard_compared_and_kept(scratch):
    page = scratch.page
    for word in ("import claim", "guess.compare"):
        scratch.run(word)
    answer = page.get_by_role("status").filter(has_text="Measured: ")
    assert answer.inner_text().split() == "Which is it? Measured: small.".split()
    page.get_by_role("button", name="○ large").focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="● large").wait_for()
    answer.filter(has_text="You said: large. Measured: small.").wait_for()
    answer.filter(has_text="large: it was not weighed").wait_for()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    answer.filter(has_text="You said: small. Measured: small.").wait_for()
    page.get_by_role("button", name="○ large").wait_for()
    scratch.run("import claim")
    page.get_by_role("button", name="● small").wait_for()
    page.get_by_role("img", name="holds").wait_for()
    assert page.get_by_role("img", name="holds").locator("..").inner_text() == "✓ a < b: 1 < 2"


# The chapters


@pytest.fixture(scope="module")
def figures(jupyterlab) -> Notebook:
    notebook = jupyterlab.open("sliders.ipynb")
    notebook.run_all()
    yield notebook
    notebook.close()


@pytest.fixture(scope="module")
def controls(figures) -> list[tuple[int, Control]]:
    """Each with the number of its figure."""
    return [(figure, found) for figure in range(len(figures.figures)) for found in figures.controls(figure)]


def test_the_chapters_cells_run_and_no_label_is_cut_off(figures, controls):
    assert figures.errors() == []
    labels = [label for _, found in controls for label in found.box.locator("label, button").all()]
    cut = "label => label.scrollWidth > label.clientWidth && label.textContent"
    assert [text for label in labels if (text := label.evaluate(cut))] == []


def test_every_control_moves_its_picture_from_the_keyboard_and_back(figures, controls):
    assert len(controls) == sliders()[1]
    for figure, found in controls:
        what = f"figure {figure}, {found.label}"
        for steps in (1, 9):  # of a slider; one may be too small to be seen
            seen = [(found.value, figures.picture(figure))]
            for value in found.there_and_back(steps):
                figures.settle()
                seen.append((value, figures.picture(figure)))
                assert found.focused(), f"{what}: lost the focus"
                assert figures.alert(figure).count() == 0, f"{what}: {figures.alert(figure).inner_text()}"
            (start, before), (_, there), (end, after) = seen
            if there != before:
                break
        assert there != before, f"{what}: the picture stayed"
        where = same_or_where(base64.b64decode(after), base64.b64decode(before))
        assert (end, where) == (start, None), f"{what}: another one, back there: {where}"


def test_a_claim_leads_to_the_cell_that_decides_it(jupyterlab):
    claims = jupyterlab.open("claims.ipynb")
    link = claims.page.locator("li a[href*='/files/'][href*='cell-id=']").first  # JupyterLab has seen to it
    wanted = link.get_attribute("href").partition("#cell-id=")[2]
    link.click()
    active = "window.jupyterapp.shell.currentWidget.content.activeCell?.model"
    claims.page.wait_for_function(f"{active}?.id === '{wanted}'")
    assert "claim(" in claims.page.evaluate(f"{active}.sharedModel.source")
    claims.close()


def test_make_lab_opens_a_page_that_knows_what_was_done(jupyterlab, tmp_path):
    """With the table of contents and without a question about news; a check in the reader's copy is counted."""
    course = tmp_path / "course"
    (course / "notebooks").mkdir(parents=True)
    shutil.copy(NOTEBOOKS.parent / "README.md", course)
    shutil.copy(NOTEBOOKS / "start.ipynb", course / "notebooks")
    imported = """from posenc.chapters.permutation_invariance import exercises
from posenc.lesson.exercises import check"""
    stub = "def unpermute(layer, x, p):\n    "
    cells = [
        v4.new_markdown_cell("# 01 · A chapter\n### Exercise 1.1 · Bring it back · ●●○○○ · 5 min"),
        v4.new_code_cell(imported),
        v4.new_code_cell(f"{stub}raise NotImplementedError", metadata={"ex": {"id": "unpermute", "points": 1}}),
        v4.new_code_cell('check("unpermute", unpermute)'),
    ]
    name = "01_permutation_invariance.ipynb"
    (course / "notebooks" / name).write_text(text(v4.new_notebook(cells=cells, metadata=METADATA)))
    with server(course, tmp_path / "home", course=True) as (url, token):
        running = Lab(course, url, token, jupyterlab.browser)
        page = running.browser.new_page()
        page.goto(f"{url}/?token={token}")
        start = Notebook(page)
        assert page.url.endswith("/lab/tree/my/start.ipynb")
        page.locator(".jp-TableOfContents").get_by_text("What you would search for").wait_for()
        page.locator("td", has_text=re.compile("^0 of 1$")).wait_for()
        chapter = running.open(f"my/{name}")
        chapter.run("import check")
        chapter.run("def unpermute(", f"{stub}return layer(x[p])[p]")
        assert "wrong for a 3-cycle" in chapter.run("check(")
        chapter.run("def unpermute(", f"{stub}return layer(x[p])[p.argsort()]")
        assert chapter.run("check(").startswith("✓")
        chapter.close()
        start.start("contents()")
        page.locator("td", has_text=re.compile("^✓ 1 of 1$")).wait_for()
        page.get_by_role("link", name="Exercise 1.1 · Bring it back").click()
        page.get_by_role("heading", name="Exercise 1.1").wait_for()
        assert page.get_by_text("official Jupyter news").count() == 0
    assert sorted(path.name for path in (course / "notebooks").iterdir()) == [name, "start.ipynb"]
