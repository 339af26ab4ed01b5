"""`make lab`: the reader's own copy, which loses nothing that was written into it, and JupyterLab on it."""

import json
import os

import pytest
from jupyter_server.serverapp import ServerApp
from jupyterlab.commands import get_app_dir
from jupyterlab_server.settings_utils import get_settings
from nbformat import v4

from courseware import lab
from posenc.lesson import progress

CHAPTER, OTHER = "01_first.ipynb", "02_second.ipynb"


@pytest.fixture
def course(tmp_path):
    """The notebooks of a course with two chapters and a start page."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    write(folder / CHAPTER, "def f(): ...", "f()")
    write(folder / OTHER, "1")
    stored = v4.new_output("execute_result", {"text/markdown": "as stored"})
    start = v4.new_notebook(cells=[v4.new_code_cell("contents()", outputs=[stored])])
    (folder / "start.ipynb").write_text(json.dumps(start))
    return folder


@pytest.fixture
def own(tmp_path, course):
    """The reader's copy after the first start."""
    assert lab.renew(course, tmp_path / "my") == []
    return tmp_path / "my"


def write(path, *sources):
    path.write_text(json.dumps(v4.new_notebook(cells=[v4.new_code_cell(source) for source in sources])))


def sources(path):
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]


def run(path):
    """Leave behind what running all cells in JupyterLab leaves, which lays an empty one at the end."""
    notebook = json.loads(path.read_text())
    notebook["metadata"]["kernelspec"] = {"name": "python3"}
    for number, cell in enumerate(notebook["cells"], start=1):
        cell |= {"execution_count": number, "source": cell["source"].splitlines(keepends=True)}
        cell["outputs"] = [v4.new_output("stream", text="ran")]
    notebook["cells"].append(v4.new_code_cell(""))
    path.write_text(json.dumps(notebook, indent=2))


# ------------------------------------------------------------------ the copy


def test_the_first_start_copies_everything(course, own):
    for path in course.iterdir():
        assert (own / path.name).read_bytes() == path.read_bytes()


def test_a_chapter_that_the_reader_has_not_changed_is_renewed(course, own):
    run(own / CHAPTER)
    write(course / CHAPTER, "def f(x): ...", "f(1)")
    assert lab.renew(course, own) == []
    assert sources(own / CHAPTER) == ["def f(x): ...", "f(1)"]


def test_where_nothing_is_new_outputs_stay(course, own):
    run(own / CHAPTER)
    before = (own / CHAPTER).read_bytes()
    run(course / CHAPTER)
    assert lab.renew(course, own) == []
    assert (own / CHAPTER).read_bytes() == before


def test_a_chapter_that_the_reader_has_changed_stays_and_the_new_one_lies_beside_it(course, own):
    write(own / CHAPTER, "mine")
    assert lab.renew(course, own) == [], "nothing is new"
    write(course / CHAPTER, "newer")
    (line,) = lab.renew(course, own)
    assert "my/01_first.ipynb holds what you wrote, so it stays" in line
    assert "my/01_first.new.ipynb lies beside it" in line
    assert lab.renew(course, own) == [], "it is said once"
    write(course / CHAPTER, "newest")
    lab.renew(course, own)
    names = (CHAPTER, "01_first.new.ipynb", "01_first.new.new.ipynb")
    assert [sources(own / name) for name in names] == [["mine"], ["newer"], ["newest"]], "none is overwritten"


def test_what_was_thrown_away_comes_back(course, own):
    (own / CHAPTER).unlink()
    lab.renew(course, own)
    assert (own / CHAPTER).read_bytes() == (course / CHAPTER).read_bytes()


@pytest.mark.parametrize("record", [None, "", "[]", "3", '{"01_first.ipynb": 3}'])
def test_without_its_memory_it_overwrites_nothing(course, own, record):
    write(own / CHAPTER, "mine")
    write(course / OTHER, "2")
    if record is None:
        (own / lab.COPIED).unlink()
    else:
        (own / lab.COPIED).write_text(record)
    assert len(lab.renew(course, own)) == 2
    assert sources(own / CHAPTER) == ["mine"]
    assert sources(own / OTHER) == ["1"]
    assert lab.renew(course, own) == []


@pytest.mark.parametrize("content", ["", "[]", '{"cells": 3}', '{"cells": [{}]}'])
def test_a_notebook_that_cannot_be_read_is_the_readers_and_stops_nothing(course, own, content):
    for name in (CHAPTER, "start.ipynb"):
        (own / name).write_text(content)
        write(course / name, "new")
    assert len(lab.renew(course, own)) == 2
    lab.welcome(own)
    assert (own / CHAPTER).read_text() == content


# ------------------------------------------------------------ the start page


def test_the_start_page_is_computed_when_it_is_opened_and_what_was_done_and_how_it_was_left_stay(own, monkeypatch):
    monkeypatch.setattr(progress, "overview", lambda folder: f"of {folder.name}")
    start = lab.welcome(own)
    assert start == own / "start.ipynb"
    (cell,) = json.loads(start.read_text())["cells"]
    assert cell["outputs"][0]["data"]["text/markdown"] == "of my"
    (layout,) = (own / lab.WORKSPACES).iterdir()
    for path in (own / progress.FILE, layout):
        path.write_text('{"as": "left"}')
    lab.welcome(own)
    assert (own / progress.FILE).read_text() == layout.read_text() == '{"as": "left"}'


# ---------------------------------------------------------------- JupyterLab


@pytest.fixture
def launched(tmp_path, course, monkeypatch):
    """Call it with these arguments; what JupyterLab is started with, and in which environment."""

    def launch(*arguments, environment=""):
        started = []
        monkeypatch.setenv("JUPYTER_CONFIG_PATH", environment)
        monkeypatch.setattr(lab.LabApp, "launch_instance", started.append)
        lab.main([*arguments], tmp_path)
        return started[0], os.environ["JUPYTER_CONFIG_PATH"].split(os.pathsep)

    return launch


def test_it_opens_the_readers_copy_for_this_machine_only_and_says_what_stays(launched, own, course, tmp_path, capsys):
    write(own / CHAPTER, "mine")
    write(course / CHAPTER, "new")
    options, _ = launched()
    assert "holds what you wrote" in capsys.readouterr().out
    assert f"--ServerApp.root_dir={tmp_path}" in options
    assert "--LabApp.default_url=/lab/tree/my/start.ipynb" in options
    assert "--ip=127.0.0.1" in options
    assert not any("token" in option for option in options), "JupyterLab's own is on unless it is told otherwise"


def test_jupyterlab_has_the_options_and_a_port_of_ones_own_is_that_or_none(launched):
    classes = {"ServerApp": ServerApp, "LabApp": lab.LabApp}
    options, _ = launched("8890")
    assert options[-2:] == ["--port=8890", "--ServerApp.port_retries=0"]
    for option in options:
        name, dot, trait = option.removeprefix("--").partition("=")[0].partition(".")
        assert not dot or trait in classes[name].class_traits(config=True)
    assert not any("--port" in option for option in launched()[0]), "the next free one, and JupyterLab says so"


def test_no_pop_up_asks_about_news_and_a_readers_settings_win(launched, tmp_path, monkeypatch):
    _, path = launched(environment="hers")
    assert path == [str(lab.DEFAULTS), "hers"]
    name = "@jupyterlab/apputils-extension:notification"
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", path[0])
    settings, _ = get_settings(f"{get_app_dir()}/settings", f"{get_app_dir()}/schemas", str(tmp_path), name)
    kind = settings["schema"]["properties"]["fetchNews"]
    assert kind["default"] == "false"
    assert "false" in [one["const"] for one in kind["oneOf"]]
    assert settings["settings"] == {}
