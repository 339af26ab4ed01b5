"""What a reader has done is remembered in her own copy only, whatever becomes of the file."""

import contextlib
import json
import os
from pathlib import Path

import pytest
from nbformat import v4

from posenc.chapters.rotary_encoding import exercises, worked
from posenc.lesson import progress
from posenc.lesson.exercises import check, use

README = """
| chapter | the question | time |
|---|---|---|
| [01 One](notebooks/01_one.ipynb) | Is it one? | 60 min |
| [02 Two](notebooks/02_two.ipynb) | Are they two? | 100 min |
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The folder in which a notebook of the reader's copy runs, with chapters of two exercises and of one."""
    (tmp_path / "README.md").write_text(README)
    folder = tmp_path / "my"
    folder.mkdir()
    for file, names in (("01_one", ["turn", "shift"]), ("02_two", ["embed"])):
        cells = []
        for name in names:
            cells.append(v4.new_markdown_cell(f"### Exercise · {name} it · ●○○○○ · 5 min\nWhy.", id=f"exercise-{name}"))
            cells.append(v4.new_code_cell("", metadata={"ex": {"id": name, "points": 1}}))
        (folder / f"{file}.ipynb").write_text(json.dumps(v4.new_notebook(cells=cells)))
    (folder / progress.FILE).write_text("{}")
    monkeypatch.chdir(folder)
    return folder


OPEN = ["0 of 2", "0 of 1"]


def done(folder):
    """The cells of the last column."""
    rows = [line for line in progress.overview(folder).splitlines() if line.startswith("| [")]
    return [row.split(" | ")[-1].removesuffix(" |") for row in rows]


def last(folder):
    """The link to where the reader was."""
    first, *_ = progress.overview(folder).splitlines()
    return first.removeprefix("**Go on where you were:** ") if first.startswith("**") else ""


def test_the_list_of_chapters(own):
    assert progress.overview(own) == (
        "| chapter | the question | time | exercises |\n"
        "|---|---|---|---|\n"
        "| [01 One](01_one.ipynb) | Is it one? | 60\N{NO-BREAK SPACE}min | 0 of 2 |\n"
        "| [02 Two](02_two.ipynb) | Are they two? | 100\N{NO-BREAK SPACE}min | 0 of 1 |"
    )
    assert progress.contents().data == progress.overview(own)


def test_what_was_right_once_stays(own):
    progress.note("one", "turn", "✓")
    progress.note("two", "embed", "✗")
    assert done(own) == ["✓ 1 of 2", "0 of 1"]
    for name, sign in (("turn", "✗"), ("turn", "○"), ("shift", "✓")):
        progress.note("one", name, sign)
    assert done(own) == ["✓ 2 of 2", "0 of 1"]


def test_an_exercise_of_another_chapter_or_of_no_chapter_is_not_counted(own):
    progress.note("two", "turn", "✓")
    progress.note("one", "of old", "✓")
    assert done(own) == OPEN


def test_who_runs_a_whole_chapter_is_at_its_first_open_exercise_or_the_last_answer(own):
    assert last(own) == ""
    for chapter, name, sign, where in (
        ("one", "shift", "✗", "[01 One: Exercise · shift it](01_one.ipynb#cell-id=exercise-shift)"),
        ("two", "embed", "○", "embed it"),
        ("one", "turn", "○", "turn it"),
        ("one", "shift", "○", "turn it"),
        ("one", "turn", "✓", "turn it"),
        ("one", "shift", "○", "turn it"),
        ("two", "embed", "○", "embed it"),
    ):
        progress.note(chapter, name, sign)
        assert where in last(own)


def test_nothing_is_remembered_where_no_copy_is(own, tmp_path, monkeypatch):
    (own / progress.FILE).unlink()
    before = sorted(tmp_path.rglob("*"))
    progress.note("one", "turn", "✓")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("content", ["", "{", "3", "[]", '{"right": 3, "last": ""}', '{"right": [1]}', b"\xff"])
def test_a_broken_file_counts_as_empty_and_is_mended(own, content):
    (own / progress.FILE).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert done(own) == OPEN
    progress.note("one", "turn", "✓")
    assert done(own) == ["✓ 1 of 2", "0 of 1"]
    assert sorted(path.name for path in own.iterdir()) == ["01_one.ipynb", "02_two.ipynb", progress.FILE]


def test_a_file_that_cannot_be_written_stops_nothing(own, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError

    monkeypatch.setattr(Path, "write_text", refuse)
    progress.note("one", "turn", "✓")
    assert done(own) == OPEN
    (own / progress.FILE).unlink()
    (own / progress.FILE).mkdir()
    progress.note("one", "turn", "✓")
    assert done(own) == OPEN


def test_a_check_that_says_nothing_new_writes_nothing(own, monkeypatch):
    progress.note("one", "turn", "✓")
    monkeypatch.setattr(os, "replace", lambda *_: pytest.fail("written"))
    progress.note("one", "turn", "✓")
    progress.note("one", "shift", "○")


@pytest.mark.parametrize("content", [None, "", "[]", '{"cells": [{}]}'])
def test_a_chapter_that_is_gone_or_broken_stops_nothing(own, content):
    (own / "01_one.ipynb").unlink()
    if content is not None:
        (own / "01_one.ipynb").write_text(content)
    assert done(own) == ["0 of 0", "0 of 1"]


# ------------------------------------------------------------- what a check does


def turn(x, angle):
    """A right answer of the reader's own."""
    return worked.turn(x, angle)


@pytest.mark.parametrize("strict", [False, True])
def test_a_check_notes_its_chapter_and_its_sign_but_under_grading(strict, monkeypatch):
    monkeypatch.setattr("posenc.lesson.exercises.STRICT", strict)
    notes = []
    monkeypatch.setattr(progress, "note", lambda *note: notes.append(note))
    assert exercises.turn  # the chapter's checks are known once this is imported
    for answer in (turn, lambda x, angle: x, worked.turn):
        with contextlib.suppress(AssertionError):
            check("turn", answer)
        use("turn", answer)
    assert notes == [("rotary_encoding", "turn", sign) for sign in "✓✗○" if not strict]
