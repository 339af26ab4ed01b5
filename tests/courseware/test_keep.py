"""What is stored stays where it says the same."""

import base64
import copy
import functools
import io

import nbformat
import pytest
import torch
from nbformat import v4
from PIL import Image

from courseware import keep, notebooks
from courseware.code import fingerprint
from courseware.keep import differ, look_the_same, say_the_same
from posenc.lesson.claims import bundle, make
from posenc.lesson.live import canvas


@functools.cache
def drawn(*, up=0.0, markers=(), title="0.97 right", lines=1):
    """A curve, moved up by so many pixels."""
    figure = canvas()
    axes = figure.add_subplot(xlim=(0, 10), ylim=(0, 1), title=title)
    x = torch.linspace(0, 10, 200)
    pixel = 1 / (0.8 * figure.bbox.height)
    for _ in range(lines):
        axes.plot(x, 0.5 + 0.3 * torch.sin(x) + up * pixel, color="#0072B2")
    for place in markers:
        axes.plot([place], [0.1], "o", color="#D55E00", markersize=3)
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return Image.open(file).convert("RGB")


SMALL = drawn().crop((0, 0, 100, 100))


@pytest.mark.parametrize(
    ("one", "other", "news", "after_training"),
    [
        (drawn(), drawn(up=0.3), False, False),
        (drawn(), drawn(up=1), True, False),
        (drawn(), drawn(title="0.96 right"), True, False),
        (drawn(), drawn(lines=0), True, False),
        (drawn(), drawn(markers=(5,)), True, False),
        (drawn(markers=(5,)), drawn(markers=(5.1,)), True, False),
        (drawn(), SMALL, True, True),
    ],
    ids=["a hair", "a moved line", "a digit", "a line less", "a marker more", "a moved marker", "another size"],
)
def test_what_looks_different_is_news_and_after_a_training_only_another_size(one, other, news, after_training):
    assert differ(one, other) == news
    assert differ(one, other, trained=True) == after_training


def test_a_palette_is_no_news():
    assert keep.distances(drawn(), notebooks.with_palette(drawn()).convert("RGB")).max() < 5


# ------------------------------------------------------------------ outputs


def outputs(measured=0.5, bound=1, printed="one\n", **picture):
    claim = bundle([make("it is", measured, below=bound)])
    encoded = base64.b64encode(notebooks.png(drawn(**picture))).decode()
    figure = {"image/png": encoded, "text/plain": "Figure: a curve"}
    return [
        v4.new_output("stream", name="stdout", text=printed),
        v4.new_output("display_data", data=claim),
        v4.new_output("display_data", data=figure, metadata={"image/png": {"alt": "a curve"}}),
        v4.new_output("execute_result", data={"text/plain": "3"}, execution_count=1),
    ]


def test_other_digits_of_a_measurement_say_the_same_and_all_else_says_something_else():
    assert say_the_same(outputs(), outputs(measured=0.4, up=0.3))
    for change in ({"bound": 2}, {"printed": "two\n"}, {"up": 9}):
        assert not say_the_same(outputs(), outputs(**change))
    other = outputs()
    other[2].metadata["image/png"]["alt"] = "two curves"
    assert not say_the_same(outputs(), other)
    assert not say_the_same(outputs(), outputs()[:-1])
    assert not look_the_same(outputs(), outputs()[:2])


def chapter(*, tags=(), **change):
    cell = v4.new_code_cell("1", id="one", outputs=outputs(**change), execution_count=1, metadata={"tags": [*tags]})
    return v4.new_notebook(cells=[v4.new_markdown_cell("text", id="text"), cell])


def test_the_old_outputs_stay_by_cell_and_take_the_new_number():
    old, same, other = chapter(), chapter(measured=0.4), chapter(bound=2)
    same.cells[1].execution_count = 2
    kept = keep.keep(old, same).cells[1]
    assert kept.outputs[:3] == old.cells[1].outputs[:3]
    assert (kept.execution_count, kept.outputs[3].execution_count) == (2, 2)
    assert keep.keep(old, other) == other
    moved = copy.deepcopy(same)
    moved.cells[1].id = "another"
    assert keep.keep(old, moved) == moved


def test_with_keep_pictures_the_pictures_are_new_and_the_words_stay(monkeypatch):
    old, new = chapter(), chapter(measured=0.4, up=0.3)
    drawn_before = old.cells[1].outputs[2].data["image/png"]
    monkeypatch.setenv("KEEP_PICTURES", "1")
    kept = keep.keep(old, new).cells[1].outputs
    assert kept[2].data["image/png"] == new.cells[1].outputs[2].data["image/png"] != drawn_before
    assert kept[:2] == old.cells[1].outputs[:2] and kept[3] == old.cells[1].outputs[3]
    timed = chapter(tags=["nbval-ignore-output"])
    assert keep.keep(timed, chapter(tags=["nbval-ignore-output"], up=0.3)) == timed


def test_what_needs_the_parameters_comes_from_a_training():
    sources = ["import torch", "SEED = 0", "x = 3", "losses = train(SEED)", "y = losses[0] + x", "show(x)"]
    cells = [v4.new_code_cell(source) for source in sources]
    cells[1].metadata["tags"] = ["parameters"]
    assert [keep.trained(cells, number) for number in range(6)] == [False, True, False, True, True, False]


def test_curves_and_numbers_of_a_figure_that_a_training_led_to_are_no_news():
    def made(seed="SEED", alt="0.97 right", bound=1, up=0):
        cell = v4.new_code_cell("SEED = 0", id="seed", metadata={"tags": ["parameters"]})
        shown = v4.new_code_cell(f"show({seed})", id="one", outputs=outputs(bound=bound, up=up), execution_count=1)
        shown.outputs[2].metadata["image/png"]["alt"] = shown.outputs[2].data["text/plain"] = f"Figure: {alt}"
        return v4.new_notebook(cells=[cell, shown])

    assert keep.keep(made(), made(up=60, alt="0.95 right")) == made()
    for other in ({"alt": "0.97 wrong"}, {"alt": "97 right"}, {"bound": 1.5}):
        assert keep.keep(made(), made(**other)) == made(**other)
    assert keep.keep(made("3"), made("3", alt="0.95 right")) == made("3", alt="0.95 right")


@pytest.mark.parametrize(
    ("first", "tags"),
    [("", ["nbval-ignore-output"]), ("times = measure(1)", []), ("times = perf_counter()", [])],
)
def test_a_measured_time_stays(first, tags):
    old, new = chapter(tags=tags), chapter(tags=tags, printed="two\n")
    for made in (old, new):
        made.cells[1].source = "times"
        made.cells.insert(1, v4.new_code_cell(first, id="times"))
    assert keep.keep(old, new).cells[2].outputs == old.cells[2].outputs


# -------------------------------------------------------------------- build


@pytest.mark.slow
def test_a_build_replaces_what_says_something_else_or_comes_from_other_code(tmp_path, monkeypatch):
    source = "import random\nfrom posenc.lesson.claims import claim\nclaim('it is', random.random() / 1e3, below=1)"
    path = tmp_path / "01_one.ipynb"
    path.write_text(notebooks.text(v4.new_notebook(cells=[v4.new_code_cell(source)])), encoding="utf-8")

    def built():
        notebooks.build(path)
        return path.read_text(encoding="utf-8")

    first = built()
    assert built() == first
    monkeypatch.setenv("FRESH", "1")
    fresh = built()
    assert fresh != first
    monkeypatch.delenv("FRESH")
    path.write_text(fresh.replace("below=1)", "below=1.0)"), encoding="utf-8")
    assert built() != fresh
    assert "claims-index" in fresh
    assert nbformat.reads(fresh, 4).metadata.posenc.code == fingerprint(nbformat.reads(fresh, 4))
