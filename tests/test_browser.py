"""A learner's session in a real browser: run all, move controls, type, make mistakes."""

import hashlib
import io
import re
import shutil
from pathlib import Path

import nbformat
import PIL.Image
import pytest
from browser import Control, Lab, Notebook, chromium, lab

from courseware.dependencies import without_training
from courseware.notebooks import read, text

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
CHAPTERS = sorted(path.name for path in NOTEBOOKS.glob("[0-9]*.ipynb"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(not chromium(), reason="no Chromium is installed: apt-get install chromium"),
]

SCRATCH = [
    """
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

        return Live(
            figure,
            update,
            moving={"matrix": image, "title": title},
            controls={
                "turn": slider("turn", 0, 23, unit="places"),
                "strength": slider("strength", 0, 1, value=1, step=0.1),
                "mask": choice("mask", ["none", "causal"]),
                "shown": switch("show the scores", value=True),
                "sentence": words,
            },
            alt="A matrix of scores.",
        )


    heat_map()
    """,
    """
    figure = canvas(8, 2)
    (line,) = figure.add_subplot(xlim=(0, 1), ylim=(0, 60)).plot([0, 1], [0, 0])
    Live(
        figure,
        lambda sentence: line.set_ydata([0, len(sentence)]),
        moving={"line": line},
        controls={"sentence": words},
        alt="The length of the sentence.",
    )
    """,
    """
    figure = canvas(8, 2)
    (curve,) = figure.add_subplot(xlim=(0, 1), ylim=(0, 1)).plot([0, 1], [0, 0])
    training = Live(figure, lambda: None, moving={"curve": curve}, controls={}, alt="A line that rises.")
    with training.watch():
        for step in range(11):
            curve.set_ydata([0, step / 10])
            training.redraw()
    """,
    """
    import hashlib

    print(hashlib.sha256(training.png()).hexdigest())
    """,
    """
    def double(x):
        raise NotImplementedError("your turn")
    """,
    """
    try:
        print("✓" if double(2) == 4 else "✗ double(2) is not 4")
    except NotImplementedError:
        print("○ not attempted")
    """,
    """
    def rolled():
        figure = canvas(8, 3)
        image = figure.add_subplot().imshow(scores, vmin=0, vmax=1)
        return Live(
            figure,
            lambda places: image.set_data(np.roll(scores, places, 1)),
            moving={"matrix": image},
            controls={"places": slider("places", 0, 60)},
            alt="The matrix, rolled.",
        )


    rolled()
    """,
    """
    from pathlib import Path

    import torch


    def compute(until):
        matrix = torch.rand(600, 600)
        while not Path(until).exists():
            matrix @ matrix


    compute(".")
    """,
    """
    import posenc.lesson.following

    print("follow the sentence:", len(posenc.lesson.following._followers[words]))
    """,
    """
    from posenc.lesson.claims import claim
    from posenc.lesson.guesses import predict

    guess = predict("Which is it?", ["small", "large"])
    """,
    """
    guess.compare("small", since={"large": "it was not weighed"})
    claim("a < b", 1, below=2)
    """,
]

KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
TURN = """
    from posenc.chapters.rotary_encoding import exercises, worked
    from posenc.lesson.exercises import check

    def turn(v, angle):
        return worked.turn(v, angle)

    check("turn", turn)
    """


@pytest.fixture(scope="module")
def jupyterlab(tmp_path_factory) -> Lab:
    folder = tmp_path_factory.mktemp("notebooks")
    for name in CHAPTERS:
        (folder / name).write_text(text(without_training(read(NOTEBOOKS / name))))
    shutil.copy(NOTEBOOKS / "claims.ipynb", folder)
    cells = [nbformat.v4.new_code_cell(dedented(source)) for source in SCRATCH]
    scratch = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})
    nbformat.write(scratch, folder / "scratch.ipynb")
    with lab(folder, tmp_path_factory.mktemp("home")) as running:
        yield running


def dedented(source: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in source.strip("\n").splitlines()).rstrip()


@pytest.fixture(scope="module")
def scratch(jupyterlab) -> Notebook:
    notebook = jupyterlab.open("scratch.ipynb")
    notebook.run_all()
    return notebook


def control(notebook: Notebook, figure: int, label: str) -> Control:
    return next(found for found in notebook.controls(figure) if found.label == label)


def move_every_control(notebook: Notebook) -> int:
    """Move every control of every figure with the keyboard, and back: the picture changes, and changes back. How many
    there are."""
    moved = 0
    for figure in range(len(notebook.figures)):
        for found in notebook.controls(figure):
            what = f"figure {figure}, {found.label}"
            before, value, pictures = notebook.picture(figure), found.value, []
            for _ in found.others():
                notebook.settle()
                pictures.append(notebook.picture(figure))
                assert found.focused(), f"{what}: lost the focus"
                assert notebook.alert(figure).count() == 0, f"{what}: {notebook.alert(figure).inner_text()}"
            notebook.settle()
            assert any(picture != before for picture in pictures), f"{what}: the picture stayed"
            assert found.value == value and notebook.picture(figure) == before, f"{what}: another one, back there"
            moved += 1
    return moved


# The machinery, in a notebook of its own


def test_all_cells_run_and_show_their_figures(scratch):
    assert scratch.errors() == []
    assert len(scratch.figures) == 4
    for figure in scratch.figures:
        assert figure.locator("> img").bounding_box()["width"] == 800


def test_pictures_and_controls_have_names(scratch):
    for words in ("A matrix of scores.", "The length of the sentence.", "A line that rises."):
        assert scratch.page.get_by_role("img", name=words, exact=True).count() == 1
    labels = [found.label for found in scratch.controls(0)]
    assert labels == ["turn (places)", "strength", "mask", "show the scores", "sentence"]
    assert scratch.page.get_by_role("textbox", name="sentence").count() == 2


def test_slider_handles_and_readouts_have_names(scratch):
    handle = scratch.figures[0].get_by_role("slider", name="turn (places)", exact=True)
    handle.wait_for()
    assert handle.get_attribute("aria-valuenow")
    assert scratch.figures[0].locator('.widget-readout[aria-label="turn (places), value"]').count() == 1


def test_labels_stand_in_one_column(scratch):
    labels = [found.box.locator("label").first.bounding_box() for found in scratch.controls(0)]
    assert len({round(label["x"] + label["width"]) for label in labels}) == 1


def test_every_control_moves_its_picture_from_the_keyboard(scratch):
    assert move_every_control(scratch) == 7


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


def test_the_last_frame_of_a_training_stays(scratch):
    in_the_kernel = scratch.run("hexdigest").strip()
    assert hashlib.sha256(scratch.picture(2)).hexdigest() == in_the_kernel


def test_an_exercise_is_answered_wrongly_and_rightly(scratch):
    assert scratch.run("try:") == "○ not attempted\n"
    scratch.run("def double", "def double(x):\n    return x + x + 1")
    assert scratch.run("try:") == "✗ double(2) is not 4\n"
    scratch.run("def double", "def double(x):\n    return 2 * x")
    assert scratch.run("try:") == "✓\n"


def test_no_press_is_missed_and_equal_values_have_equal_pictures(scratch):
    places, pictures = control(scratch, 3, "places"), {}
    places.focus()
    for key in ["ArrowRight"] * 20 + ["ArrowLeft"] * 20:
        places.press(key)
        scratch.settle()
        picture = scratch.picture(3)
        assert pictures.setdefault(places.value, picture) == picture, f"another picture at {places.value}"
    assert len(pictures) == len(set(pictures.values())) == 21


def test_a_slider_that_was_never_touched_answers_while_a_cell_runs(scratch, jupyterlab):
    scratch.run("def rolled")  # so its slider was last spoken to by this cell
    before = scratch.picture(3)
    _, done = scratch.start('compute(".")', 'compute("stop")')
    places = control(scratch, 3, "places")
    places.focus()
    places.press("ArrowRight")
    assert scratch.new_picture(3, before)
    assert not scratch.page.evaluate(done)
    (jupyterlab.folder / "stop").touch()
    scratch.page.wait_for_function(done)


def test_a_move_costs_after_20_reruns_what_it_cost_first(scratch):
    for _ in range(20):
        scratch.run("The length of the sentence.")
    assert scratch.run("posenc.lesson.following._followers") == "follow the sentence: 2\n"


def test_a_burst_of_keys_ends_at_the_last_value(scratch):
    strength = control(scratch, 0, "strength")
    strength.focus()
    strength.press("Home", "ArrowRight")
    scratch.settle()
    expected = scratch.picture(0)
    strength.press(*["ArrowRight"] * 9, *["ArrowLeft"] * 9)
    scratch.settle()
    assert strength.value == "0.1"
    assert scratch.picture(0) == expected


@pytest.mark.parametrize("theme, dark", [("Light", False), ("Dark", True)])
def test_screenshots_in_both_themes(jupyterlab, tmp_path, theme, dark):
    notebook = jupyterlab.open("scratch.ipynb", theme)
    notebook.screenshot(tmp_path / "page.png", 1920)
    picture = PIL.Image.open(io.BytesIO((tmp_path / "page.png").read_bytes())).convert("L")
    assert picture.width == 1920
    assert (picture.resize((1, 1)).getpixel((0, 0)) < 100) == dark
    notebook.close()


# The chapters


@pytest.fixture(scope="module", params=CHAPTERS)
def chapter(jupyterlab, request) -> Notebook:
    notebook = jupyterlab.open(request.param)
    notebook.run_all()
    notebook.unfold()
    yield notebook
    notebook.close()


def test_there_are_chapters():
    assert CHAPTERS, f"no notebook in {NOTEBOOKS}"


def test_a_chapter_runs_without_an_error(chapter):
    assert chapter.errors() == []


def test_no_label_of_a_chapter_is_cut_off(chapter):
    controls = [control for figure in range(len(chapter.figures)) for control in chapter.controls(figure)]
    labels = [label for control in controls for label in control.box.locator("label, button").all()]
    cut = "label => label.scrollWidth > label.clientWidth && label.textContent"
    assert [text for label in labels if (text := label.evaluate(cut))] == []


def test_every_control_of_a_chapter_moves_its_picture(chapter):
    moved = move_every_control(chapter)
    assert moved == sum(len(chapter.controls(figure)) for figure in range(len(chapter.figures)))


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


def test_a_claim_leads_to_the_cell_that_decides_it(jupyterlab):
    here = {f"{name}#cell-id={cell.id}" for name in CHAPTERS for cell in read(jupyterlab.folder / name).cells}
    claims = jupyterlab.open("claims.ipynb")
    links = claims.page.locator("li a[href*='cell-id=']")
    links.first.wait_for()
    ends = [re.sub(r".*/|\?[^#]*", "", link.get_attribute("href")) for link in links.all()]
    number = next(number for number, end in enumerate(ends) if end in here)  # of the trainings none is here
    link, wanted = links.nth(number), ends[number].partition("#cell-id=")[2]
    link.click()
    active = "window.jupyterapp.shell.currentWidget.content.activeCell?.model"
    claims.page.wait_for_function(f"{active}?.id === '{wanted}'")
    assert "claim(" in claims.page.evaluate(f"{active}.sharedModel.source")
    claims.close()


first = pytest.mark.parametrize("chapter", ["01_permutation_invariance.ipynb"], indirect=True)


@first
def test_chapter_1_reads_the_learners_own_sentence(chapter):
    shared = [n for n in range(len(chapter.figures)) if "sentence" in {c.label for c in chapter.controls(n)}]
    before = {figure: chapter.picture(figure) for figure in shared}
    control(chapter, shared[0], "sentence").write("a cat sat on the mat")
    assert len(shared) > 2 and all(chapter.new_picture(figure, old) for figure, old in before.items())
    shown = chapter.run("tokens = read(", "tokens = read(sentence.value, at_least=3)\nprint(tokens)")
    assert shown == "['a', 'cat', 'sat', 'on', 'the', 'mat']\n"


@first
def test_chapter_1_says_in_red_under_the_box_what_is_wrong_with_a_sentence(chapter):
    figure = next(n for n in range(len(chapter.figures)) if len(chapter.controls(n)) > 1)
    box = control(chapter, figure, "sentence")
    box.write(" ")
    alert = chapter.alert(figure)
    alert.wait_for()
    assert "type a sentence" in alert.inner_text()
    assert 0 < alert.bounding_box()["y"] - box.box.bounding_box()["y"] < 60
    box.write("the dog bit the man.")
    alert.wait_for(state="detached")


@first
def test_chapter_1_names_a_mistake_and_takes_a_right_answer(chapter):
    stub = "def unpermute(layer, x, p):\n    return layer(x[p])"
    chapter.run("def unpermute(", f"{stub}[p]")
    assert "wrong for a 3-cycle" in chapter.run('check("unpermute"')
    chapter.run("def unpermute(", f"{stub}[p.argsort()]")
    verdict = chapter.run('check("unpermute"')
    assert verdict.startswith("✓") and verdict.count("\n") == 1


def test_make_lab_opens_a_page_that_knows_what_was_done(tmp_path):
    """With the table of contents and without a question about news; a check in the reader's copy is counted."""
    course = tmp_path / "course"
    (course / "notebooks").mkdir(parents=True)
    shutil.copy(NOTEBOOKS.parent / "README.md", course)
    shutil.copy(NOTEBOOKS / "start.ipynb", course / "notebooks")
    cells = [
        nbformat.v4.new_markdown_cell("# 04 · A chapter\n### Exercise 4.1 · Turn a vector · ●○○○○ · 5 min"),
        nbformat.v4.new_code_cell(dedented(TURN), metadata={"ex": {"id": "turn", "points": 1}}),
    ]
    chapter = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})
    nbformat.write(chapter, course / "notebooks" / "04_rotary_encoding.ipynb")
    (tmp_path / "home").mkdir()
    with lab(course, tmp_path / "home", course=True) as running:
        page = running.browser.new_page()
        page.goto(f"{running.url}/?token={running.token}")
        start = Notebook(page)
        assert page.url.endswith("/lab/tree/my/start.ipynb")
        page.locator(".jp-TableOfContents").get_by_text("What you would search for").wait_for()
        page.locator("td", has_text=re.compile("^0 of 1$")).wait_for()
        chapter = running.open("my/04_rotary_encoding.ipynb")
        assert chapter.run("check(").startswith("✓")
        chapter.close()
        start.start("contents()")
        page.locator("td", has_text=re.compile("^✓ 1 of 1$")).wait_for()
        page.get_by_role("link", name="Exercise 4.1 · Turn a vector").click()
        page.get_by_role("heading", name="Exercise 4.1").wait_for()
        assert page.get_by_text("official Jupyter news").count() == 0
    assert sorted(path.name for path in (course / "notebooks").iterdir()) == [
        "04_rotary_encoding.ipynb",
        "start.ipynb",
    ]
