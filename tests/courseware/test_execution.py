"""Execute and normalise, on small notebooks made here."""

import base64
import io
import json
import re
from pathlib import Path

import nbformat
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


@pytest.mark.slow
def test_an_updated_display_stores_its_last_picture(tmp_path):
    executed = execute(
        notebook(
            "from IPython.display import HTML, display\nhandle = display(HTML('first'), display_id=True)",
            "handle.update(HTML('second'))",
        ),
        folder=tmp_path,
    )
    assert [output["text/html"] for output in output_texts(executed)] == ["second"]


@pytest.mark.slow
def test_a_raising_cell_is_named(tmp_path):
    with pytest.raises(BuildError, match=r"cell \[2\] '1 / 0': ZeroDivisionError: division by zero") as caught:
        execute(notebook("a = 1", v4.new_markdown_cell("text"), "1 / 0"), folder=tmp_path)
    assert "ZeroDivisionError" in caught.value.traceback


HIDDEN = {
    "a button's callback": """
        from ipywidgets import Button
        button = Button()
        button.on_click(lambda _: 1 / 0)
        button.click()""",
    "interact": """
        from ipywidgets import interact
        _ = interact(lambda x: 1 / 0, x=(0, 3))""",
    "an Output widget": """
        from ipywidgets import Output
        with Output():
            1 / 0""",
    "a message that belongs to no cell": """
        kernel = get_ipython().kernel
        content = {"ename": "ZeroDivisionError", "evalue": "division by zero", "traceback": []}
        kernel.session.send(kernel.iopub_socket, "error", content, parent={}, ident=b"error")""",
    "a message after the last cell": """
        import threading, time
        kernel = get_ipython().kernel
        content = {"ename": "ZeroDivisionError", "evalue": "division by zero", "traceback": []}
        def late():
            time.sleep(0.05)
            kernel.session.send(kernel.iopub_socket, "error", content, parent={}, ident=b"error")
        threading.Thread(target=late).start()""",
}


@pytest.mark.slow
@pytest.mark.parametrize("way", HIDDEN)
def test_a_hidden_error_is_seen(tmp_path, way):
    source = re.sub("^ {8}", "", HIDDEN[way].strip("\n"), flags=re.MULTILINE)
    late = way == "a message after the last cell"
    cells = ["1", source] if late else ["1", source, "1"]
    where = "after the last cell" if late else r"cell \[[23]\]"
    with pytest.raises(BuildError, match=f"{where}.* no cell shows.*ZeroDivisionError: division by zero"):
        execute(notebook(*cells), folder=tmp_path)


@pytest.mark.slow
def test_a_cell_that_takes_too_long_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "CELL_SECONDS", 1)
    with pytest.raises(BuildError, match=r"cell \[1\] 'while True: pass': ran longer than 1 s"):
        execute(notebook("while True: pass"), folder=tmp_path)


@pytest.mark.slow
def test_a_kernel_that_dies_is_named(tmp_path):
    with pytest.raises(BuildError, match=r"cell \[1\] .*: the kernel died"):
        execute(notebook("import os; os._exit(1)"), folder=tmp_path)


@pytest.mark.slow
def test_a_kernel_that_does_not_start_is_named(tmp_path, monkeypatch):
    spec = tmp_path / "kernels" / "stillborn" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": ["false"], "display_name": "", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    with pytest.raises(BuildError, match="the kernel does not start"):
        execute(notebook("1", kernelspec={"name": "stillborn", "display_name": ""}), folder=tmp_path)


def test_a_missing_kernel_is_named(tmp_path):
    elsewhere = notebook("1", kernelspec={"name": "fortran", "display_name": "Fortran"})
    with pytest.raises(BuildError, match="no kernel 'fortran' here; the course uses python3"):
        execute(elsewhere, folder=tmp_path)


# -------------------------------------------------------------- normalise


def test_metadata_keeps_only_what_the_course_uses():
    cell = v4.new_code_cell("a = 1  \n\n", execution_count=3)
    cell.metadata = nbformat.from_dict(
        {
            "execution": {"iopub.status.busy": "2020"},
            "tags": ["exercise"],
            "ex": {"id": "a", "points": 1},
            "scrolled": True,
            "jp-MarkdownHeadingCollapsed": True,
            "jupyter": {"source_hidden": True, "outputs_hidden": True},
        }
    )
    messy = notebook(cell, v4.new_markdown_cell("text", metadata={"tags": []}), widgets={"state": {}})
    normal = normalise(messy)
    assert normal.cells[0].metadata == {
        "tags": ["exercise"],
        "ex": {"id": "a", "points": 1},
        "jp-MarkdownHeadingCollapsed": True,
        "jupyter": {"source_hidden": True},
    }
    assert normal.cells[1].metadata == {}
    assert normal.cells[0].execution_count == 3
    assert normal.cells[0].source == "a = 1"
    assert set(normal.metadata) == {"kernelspec", "language_info"}
    assert normal.metadata.kernelspec.name == "python3"
    assert "widgets" in messy.metadata, "the notebook that was passed in has changed"
    assert messy.cells[0].source == "a = 1  \n\n", "the notebook that was passed in has changed"


def with_ids(*pairs):
    made = notebook(*(source for _, source in pairs))
    for cell, (id, _) in zip(made.cells, pairs):
        cell.id = id
        if not id:
            del cell["id"]
    return made


def ids(made):
    nbformat.validate(made)
    return [cell.id for cell in made.cells]


def test_cell_ids_stay_when_a_word_changes_or_a_cell_moves():
    assert ids(normalise(with_ids(("one", "a"), ("two", "b")))) == ["one", "two"]
    assert ids(normalise(with_ids(("two", "b, in other words"), ("one", "a")))) == ["two", "one"]


def test_a_cell_without_an_id_or_with_that_of_another_gets_one_of_its_own():
    made = normalise(with_ids((None, "a"), ("one", "b"), ("one", "c"), (None, "a")))
    first, one, third, last = ids(made)
    assert one == "one" and len({first, one, third, last}) == 4
    assert ids(normalise(made)) == ids(made)


def test_consecutive_prints_are_one_output():
    parts = [v4.new_output("stream", name="stdout", text=f"{word}\n") for word in ("a", "b", "c")]
    parts.insert(2, display({"text/plain": "between"}))
    assert output_texts(normalise(with_outputs(*parts))) == ["a\nb\n", {"text/plain": "between"}, "c\n"]


def test_a_widget_view_goes_and_its_picture_and_words_stay():
    view = {notebooks.WIDGET_VIEW: {"model_id": "1"}}
    words = {"image/png": png(GRADIENT), "text/plain": "Figure: a ramp"}
    normal = normalise(with_outputs(display(view | words, **{"image/png": {"alt": "a ramp"}}), display(view)))
    (output,) = normal.cells[0].outputs
    assert set(output.data) == {"image/png", "text/plain"}
    assert output.metadata["image/png"].alt == "a ramp"


def test_addresses_and_paths_of_the_machine_go():
    words = "<function f at 0x7f3a00>, /tmp/ipykernel_12/34.py:1, /home/me/.venv/lib/site-packages/torch/a.py"
    clean = "<function f at an address>, a cell:1, site-packages/torch/a.py"
    outputs = [
        v4.new_output("stream", name="stdout", text=words),
        display({"text/plain": words, "text/html": words}),
        v4.new_output("execute_result", data={"text/plain": words}, execution_count=7),
    ]
    normal = normalise(with_outputs(*outputs, count=7))
    everything = output_texts(normal)
    assert everything == [clean, {"text/plain": clean, "text/html": clean}, {"text/plain": clean}]


def test_nbval_is_told_to_overlook_the_same_things():
    config = (ROOT / "tests" / "sanitize.cfg").read_text()
    assert dict(re.findall(r"^regex: (.*)\nreplace: (.*)$", config, re.MULTILINE)) == notebooks.SCRUBBED | keep.MASKED


def test_the_number_of_a_result_is_that_of_its_cell():
    result = v4.new_output("execute_result", data={"text/plain": "1"}, execution_count=9)
    assert normalise(with_outputs(result, count=2)).cells[0].outputs[0].execution_count == 2


class TestPictures:
    def normal(self, encoded):
        made = normalise(with_outputs(display({"image/png": encoded})))
        return made.cells[0].outputs[0].data["image/png"]

    def test_a_palette_where_that_is_smaller(self):
        colours = np.random.default_rng(0).random((64, 64, 3))
        before, after = png(colours), self.normal(png(colours))
        assert picture(after).mode == "P"
        assert len(after) < 0.8 * len(before)

    def test_no_palette_where_that_is_larger(self):
        dot = np.zeros((1, 1, 3))
        assert picture(self.normal(png(dot))).mode == "RGB"

    def test_colours_stay_what_they_are(self):
        """A diverging map, a sequential one and a rare dot: median cut to 64 colours is off by 70 here."""
        from matplotlib import colormaps

        values = np.random.default_rng(0).random((24, 24)).repeat(4, 0).repeat(4, 1)
        colours = np.concatenate([colormaps[name](values)[..., :3] for name in ("RdBu", "viridis", "Greys")], 1)
        colours[5, 5] = (0, 1, 0)
        before = np.asarray(picture(png(colours))).astype(int)
        after = np.asarray(picture(self.normal(png(colours))).convert("RGB")).astype(int)
        assert picture(self.normal(png(colours))).mode == "P"
        assert abs(after - before).max() <= 24

    def test_few_colours_are_exact(self):
        colours = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])[np.arange(4096).reshape(64, 64) % 4]
        after = picture(self.normal(png(colours)))
        assert (np.asarray(after.convert("RGB")) == 255 * colours).all()

    def test_transparency_stays(self):
        colours = np.random.default_rng(0).random((64, 64, 4))
        after = np.asarray(picture(self.normal(png(colours))).convert("RGBA"))
        assert (after == np.uint8(255 * colours)).all()

    def test_text_chunks_go(self):
        chunks = PngImagePlugin.PngInfo()
        chunks.add_text("Software", "drawn by version 1.2.3")
        after = self.normal(png(np.stack([GRADIENT] * 3, axis=-1), pnginfo=chunks, dpi=(72, 72)))
        assert not picture(after).info

    def test_what_is_in_normal_form_keeps_its_bytes(self):
        """Another version of a compression library would write other ones."""
        normal = self.normal(png(np.random.default_rng(0).random((64, 64, 3))))
        file = io.BytesIO()
        picture(normal).save(file, "PNG", compress_level=0)
        other = base64.b64encode(file.getvalue()).decode()
        assert other != normal
        assert self.normal(other) == other

    def test_a_palette_with_text_chunks_is_not_in_normal_form(self):
        normal = self.normal(png(np.random.default_rng(0).random((64, 64, 3))))
        chunks = PngImagePlugin.PngInfo()
        chunks.add_text("Software", "drawn by version 1.2.3")
        file = io.BytesIO()
        picture(normal).save(file, "PNG", pnginfo=chunks)
        assert picture(normal).mode == "P"
        assert self.normal(base64.b64encode(file.getvalue()).decode()) == normal


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
    good, bad = (
        write(tmp_path, "02_good", notebook("1")),
        write(tmp_path, "01_bad", notebook("print(1)", "1 / 0")),
    )
    before = bad.read_bytes()
    assert notebooks.main([], tmp_path) == 1
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-1] == "01_bad: cell [2] '1 / 0': ZeroDivisionError: division by zero"
    assert re.search(r"^01_bad +failed$", printed.out, re.MULTILINE)
    assert bad.read_bytes() == before
    assert notebooks.read(good).cells[0].execution_count == 1, "the other chapter was not built"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.slow
def test_an_interrupted_write_leaves_the_file(tmp_path, monkeypatch):
    path = write(tmp_path, "01_one", notebook("1"))
    before = path.read_bytes()
    monkeypatch.setattr(notebooks.os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        notebooks.main([], tmp_path)
    assert path.read_bytes() == before


BROKEN = {
    "not JSON": "{ <<<<<<< HEAD",
    "not a notebook": '{"cells": 3}',
    "an output of no known type": text(notebook("1")).replace('"outputs": []', '"outputs": [{"output_type": "x"}]'),
    "a list": "[]",
    "not text": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("way", BROKEN)
def test_a_broken_file_is_named_and_left(tmp_path, capsys, way):
    path, content = tmp_path / "01_broken.ipynb", BROKEN[way]
    content = content if isinstance(content, bytes) else content.encode()
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
