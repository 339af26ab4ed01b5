"""Execute and normalise, on small notebooks made here."""

import base64
import copy
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from nbformat import v4
from PIL import Image, PngImagePlugin

from courseware import keep, notebooks
from courseware.notebooks import BuildError, execute, normalise, text

ROOT = Path(__file__).resolve().parents[2]

GRADIENT = np.linspace(0, 1, 64 * 64).reshape(64, 64)


def notebook(*cells, **metadata):
    """A notebook of these cells; a string is a code cell."""
    made = [v4.new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells]
    return v4.new_notebook(cells=made, metadata=metadata)


def with_outputs(*outputs, source="pass", count=1):
    return notebook(v4.new_code_cell(source, outputs=list(outputs), execution_count=count))


def png(pixels, **options):
    file = io.BytesIO()
    Image.fromarray(np.uint8(255 * np.asarray(pixels))).save(file, "PNG", **options)
    return base64.b64encode(file.getvalue()).decode()


def display(data, **metadata):
    return v4.new_output("display_data", data=data, metadata=metadata)


def picture(encoded):
    return Image.open(io.BytesIO(base64.b64decode(encoded)))


def output_texts(executed):
    return [output.get("text", output.get("data")) for cell in executed.cells for output in cell.outputs]


# ---------------------------------------------------------------- execute


@pytest.mark.slow
def test_it_runs_in_the_steady_environment_and_the_given_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("EXTRA", "yes")
    monkeypatch.setenv("COLUMNS", "7")  # a terminal's
    source = "import os\nprint([os.environ[name] for name in NAMES], os.getcwd() == FOLDER)"
    source = source.replace("NAMES", str([*notebooks.STEADY, "EXTRA"])).replace("FOLDER", repr(str(tmp_path)))
    original = notebook(source, "1 + 1")
    executed = execute(original, folder=tmp_path)
    assert output_texts(executed)[0] == f"{[*notebooks.STEADY.values(), 'yes']} True\n"
    assert [cell.execution_count for cell in executed.cells] == [1, 2]
    assert not original.cells[0].outputs, "the notebook that was passed in has changed"


def test_makefile_and_build_use_the_same_environment():
    line = re.search("^steady := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    assert dict(pair.split("=") for pair in line.split()) == notebooks.STEADY


BUTTON = """
from ipywidgets import Button
button = Button()
button.on_click(lambda _: 1 / 0)
button.click()"""
OUTPUT = """
from ipywidgets import Output
with Output():
    1 / 0"""
LATE = """
import threading, time
kernel = get_ipython().kernel
content = {"ename": "ZeroDivisionError", "evalue": "division by zero", "traceback": []}
def late():
    time.sleep(0.05)
    kernel.session.send(kernel.iopub_socket, "error", content, parent={}, ident=b"error")
threading.Thread(target=late).start()"""
DIVISION = "ZeroDivisionError: division by zero"
HIDDEN = rf".* no cell shows.*{DIVISION}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["a = 1", v4.new_markdown_cell("text"), "1 / 0"], rf"cell \[2\] '1 / 0': {DIVISION}"),
        (["1", BUTTON, "1"], rf"cell \[[23]\]{HIDDEN}"),
        (["1", OUTPUT, "1"], rf"cell \[[23]\]{HIDDEN}"),
        (["1", LATE], f"after the last cell{HIDDEN}"),
        (["while True: pass"], r"cell \[1\] 'while True: pass': ran longer than 1 s"),
        (["import os; os._exit(1)"], r"cell \[1\] .*: the kernel died"),
    ],
    ids=["a cell", "a button's callback", "an Output widget", "after the last cell", "no end", "a dead kernel"],
)
def test_an_error_is_seen_and_named(tmp_path, monkeypatch, cells, said):
    monkeypatch.setattr(notebooks, "CELL_SECONDS", 1 if "while" in cells[0] else 60)
    with pytest.raises(BuildError, match=said) as caught:
        execute(notebook(*cells), folder=tmp_path)
    assert "ZeroDivisionError" in caught.value.traceback or cells[-1] != "1 / 0"


@pytest.mark.slow
def test_a_kernel_that_does_not_start_or_that_is_missing_is_named(tmp_path, monkeypatch):
    spec = tmp_path / "kernels" / "stillborn" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": ["false"], "display_name": "", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    for name, said in {"stillborn": "not start", "fortran": "no kernel 'fortran' here; the course uses py"}.items():
        with pytest.raises(BuildError, match=said):
            execute(notebook("1", kernelspec={"name": name, "display_name": ""}), folder=tmp_path)


# -------------------------------------------------------------- normalise


def test_metadata_keeps_only_what_the_course_uses():
    used = {"tags": ["exercise"], "ex": {"id": "a", "points": 1}, notebooks.FOLDED: True}
    others = {"execution": {"iopub.status.busy": "2020"}, "scrolled": True}
    folded = {"jupyter": {"source_hidden": True, "outputs_hidden": True}}
    cell = v4.new_code_cell("a = 1  \n\n", execution_count=3, metadata=used | others | folded)
    messy = notebook(cell, v4.new_markdown_cell("text", metadata={"tags": []}), widgets={"state": {}})
    before = copy.deepcopy(messy)
    normal = normalise(messy)
    assert [cell.metadata for cell in normal.cells] == [used | {"jupyter": {"source_hidden": True}}, {}]
    assert (normal.cells[0].execution_count, normal.cells[0].source) == (3, "a = 1")
    assert set(normal.metadata) == {"kernelspec", "language_info"} and normal.metadata.kernelspec.name == "python3"
    assert messy == before, "the notebook that was passed in has changed"


@pytest.mark.filterwarnings("error")  # nbformat warns where it had to mend them
@pytest.mark.parametrize(
    ("before", "after"),
    [(["one", "two"], ["one", "two"]), (["two", "one"], ["two", "one"]), ([None, "one", "one", None], ["one"])],
)
def test_an_id_stays_and_a_cell_without_one_or_with_that_of_another_gets_its_own(before, after):
    made = notebook(*["a"] * len(before))
    for cell, id in zip(made.cells, before):
        cell.id = id
        if not id:
            del cell["id"]
    normal = normalise(made)
    ids = [cell.id for cell in normal.cells]
    assert [id for id in ids if id in after] == after and len({*ids}) == len(before)
    assert normalise(normal) == normal


MACHINE = "<function f at 0x7f3a00>, /tmp/ipykernel_12/34.py:1, /home/me/.venv/lib/site-packages/torch/a.py"
CLEAN = "<function f at an address>, a cell:1, site-packages/torch/a.py"


def test_of_outputs_stays_what_is_the_same_in_every_run():
    """Consecutive prints become one, views of widgets go, and so do addresses and paths; a result has its cell's number."""
    prints = [v4.new_output("stream", name="stdout", text=f"{word}\n") for word in ("a", MACHINE, "c")]
    view, words = {notebooks.WIDGET_VIEW: {"model_id": "1"}}, {"text/plain": MACHINE, "text/html": MACHINE}
    result = v4.new_output("execute_result", data={"text/plain": MACHINE}, execution_count=7)
    shown = display(view | words, **{"image/png": {"alt": "a ramp"}})
    normal = normalise(with_outputs(*prints[:2], shown, display(view), prints[2], result, count=2))
    clean = [f"a\n{CLEAN}\n", {"text/plain": CLEAN, "text/html": CLEAN}, "c\n", {"text/plain": CLEAN}]
    assert output_texts(normal) == clean
    assert normal.cells[0].outputs[1].metadata["image/png"].alt == "a ramp"
    assert normal.cells[0].outputs[3].execution_count == 2


def test_nbval_is_told_to_overlook_the_same_things():
    config = (ROOT / "tests" / "sanitize.cfg").read_text()
    assert dict(re.findall(r"^regex: (.*)\nreplace: (.*)$", config, re.MULTILINE)) == notebooks.SCRUBBED | keep.MASKED


def normal(encoded):
    made = normalise(with_outputs(display({"image/png": encoded})))
    return made.cells[0].outputs[0].data["image/png"]


def saved_again(encoded, **options):
    file = io.BytesIO()
    picture(encoded).save(file, "PNG", **options)
    return base64.b64encode(file.getvalue()).decode()


NOISE = np.random.default_rng(0).random((64, 64, 4))
CHUNKS = PngImagePlugin.PngInfo()
CHUNKS.add_text("Software", "drawn by version 1.2.3")


def test_a_picture_has_a_palette_where_that_is_smaller():
    before = png(NOISE[..., :3])
    after = normal(before)
    assert picture(after).mode == "P" and len(after) < 0.8 * len(before)
    assert picture(normal(png(np.zeros((1, 1, 3))))).mode == "RGB"


def test_colours_stay_what_they_are():
    """A diverging map, a sequential one and a rare dot: median cut to 64 colours is off by 70 here."""
    from matplotlib import colormaps

    values = np.random.default_rng(0).random((24, 24)).repeat(4, 0).repeat(4, 1)
    colours = np.concatenate([colormaps[name](values)[..., :3] for name in ("RdBu", "viridis", "Greys")], 1)
    colours[5, 5] = (0, 1, 0)
    before, after = picture(png(colours)), picture(normal(png(colours)))
    assert after.mode == "P"
    assert abs(np.asarray(after.convert("RGB"), int) - np.asarray(before)).max() <= 24
    few = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])[np.arange(4096).reshape(64, 64) % 4]
    assert (np.asarray(picture(normal(png(few))).convert("RGB")) == 255 * few).all()
    assert (np.asarray(picture(normal(png(NOISE))).convert("RGBA")) == np.uint8(255 * NOISE)).all(), "transparency"


def test_text_chunks_go_and_what_is_in_normal_form_keeps_its_bytes():
    """Another version of a compression library would write other ones."""
    assert not picture(normal(png(np.stack([GRADIENT] * 3, axis=-1), pnginfo=CHUNKS, dpi=(72, 72)))).info
    made = normal(png(NOISE[..., :3]))
    other = saved_again(made, compress_level=0)
    assert normal(other) == other != made
    assert normal(saved_again(made, pnginfo=CHUNKS)) == made


# ------------------------------------------------------------------ build


def write(folder, name, made):
    path = folder / f"{name}.ipynb"
    path.write_text(text(made), encoding="utf-8")
    return path


@pytest.mark.slow
def test_two_runs_leave_the_same_bytes(tmp_path, capsys):
    sources = [
        "%matplotlib inline\nimport matplotlib.pyplot as plt\nfrom ipywidgets import IntSlider",
        "for i in range(3): print(i, flush=True)",
        "plt.plot([1, 3, 2]); plt.title('ä');",
        "object()",
        "IntSlider(3)",
    ]
    path = write(tmp_path, "01_one", notebook(v4.new_markdown_cell("# 01"), *sources))
    assert notebooks.main(["01"], tmp_path) == 0
    first = path.read_bytes()
    assert re.fullmatch(r"01_one +6 cells +\d+\.\d s\n", capsys.readouterr().out)
    assert first.endswith(b"\n")
    assert b"\xc3\xa4" in first, "letters beyond ASCII are stored as themselves"
    assert b"image/png" in first
    assert notebooks.main([], tmp_path) == 0
    assert path.read_bytes() == first
    stored = notebooks.read(path)
    assert text(normalise(stored)).encode() == first
    assert [file.name for file in tmp_path.iterdir()] == ["01_one.ipynb"]


@pytest.mark.slow
def test_a_failure_names_chapter_and_cell_and_leaves_the_file(tmp_path, capsys):
    good, bad = write(tmp_path, "02_good", notebook("1")), write(tmp_path, "01_bad", notebook("print(1)", "1 / 0"))
    before = bad.read_bytes()
    assert notebooks.main([], tmp_path) == 1
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-1] == "01_bad: cell [2] '1 / 0': ZeroDivisionError: division by zero"
    assert re.search(r"^01_bad +failed$", printed.out, re.MULTILINE)
    assert bad.read_bytes() == before
    assert notebooks.read(good).cells[0].execution_count == 1, "the other chapter was not built"
    assert len(list(tmp_path.iterdir())) == 2


def test_an_interrupted_write_leaves_the_file(tmp_path, monkeypatch):
    path = write(tmp_path, "01_one", notebook("1"))
    before = path.read_bytes()
    monkeypatch.setattr(notebooks.os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        notebooks.write(path, "another")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [
        b"{ <<<<<<< HEAD",
        b'{"cells": 3}',
        text(notebook("1")).replace('"outputs": []', '"outputs": [{"output_type": "x"}]').encode(),
        b"[]",
        b"\xff\xfe\x00",
    ],
)
def test_a_broken_file_is_named_and_left(tmp_path, capsys, content):
    path = tmp_path / "01_broken.ipynb"
    path.write_bytes(content)
    with pytest.raises(BuildError, match="not a notebook"):
        notebooks.read(path)
    assert notebooks.main([], tmp_path) == 1
    assert capsys.readouterr().err.strip().startswith("01_broken: is not a notebook that can be read: ")
    assert path.read_bytes() == content


def test_an_unknown_chapter_is_named(tmp_path, capsys):
    write(tmp_path, "01_one", notebook("1"))
    assert notebooks.main(["01", "07"], tmp_path) == 1
    assert "No such chapter: 07. There are: 01_one." in capsys.readouterr().err
