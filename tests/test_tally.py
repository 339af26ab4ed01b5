"""What a reader meets is counted, and a lesson that is too long, too dense or misnamed is found."""

import pytest
import tally
from nbformat import v4
from tally import Tally, beyond

from courseware import notebooks
from posenc.lesson.claims import bundle, make

HEADER = "# 01 · A\n**Lesson** {} min of reading, {} of exercises · **Laboratory** {} min more"
PICTURE = v4.new_output("display_data", data={"image/png": "", "text/plain": "Figure: a dot."})


def claimed(count):
    data = bundle([make("it is", 1, below=2, case=str(number)) for number in range(count)])
    return v4.new_output("display_data", data=data)


def code(lines=1, *outputs, source="x = 1", **metadata):
    return v4.new_code_cell("\n\n".join([source] * lines), outputs=list(outputs), metadata=metadata)


def folded(source="x = 1"):
    return code(1, source=source, jupyter={"source_hidden": True})


def exercise(minutes=5):
    heading = v4.new_markdown_cell(f"### Exercise 1.1 · Turn · ●○○○○ · {minutes} min")
    return [heading, code(2, source="# stub", tags=["exercise"])]


def text(words, **metadata):
    return v4.new_markdown_cell("word " * words, metadata=metadata)


def chapter(*cells, read=1, asked=15, more=0, laboratory=()):
    """A lesson of these cells and three exercises, which is within all bounds where nothing is added."""
    header = v4.new_markdown_cell(HEADER.format(read, asked, more))
    asking = [cell for _ in range(3) for cell in exercise()]
    end = text(0, tags=["take-along"])
    return v4.new_notebook(cells=[header, *asking, *cells, end, *laboratory])


PRINTED = v4.new_output("stream", text="✓ turn\nno ✓\n")
DETAILS = "one two\n\n<details>\n<summary>three</summary>\n\nfour\n\n</details>\n\nfive"


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([v4.new_markdown_cell(DETAILS), text(7)], Tally(words=10)),
        ([code(3), folded()], Tally(lines=3, drought=(3, 0))),
        ([code(1, claimed(2), PRINTED, PICTURE)], Tally(lines=1, ticks=3, figures=1)),
        ([code(1, claimed(3), PICTURE)], Tally(lines=1, ticks=1, tables=1, figures=1)),
        ([folded('guess = predict("Which?", "ab")')], Tally(predictions=1)),
        ([*exercise(5), *exercise(20)], Tally(words=12, lines=4, exercises=2, asked=25)),
        (
            [code(3, claimed(1)), code(9, PICTURE), code(4), code(2, claimed(2)), *exercise()[1:], code(5)],
            Tally(lines=25, ticks=3, figures=1, exercises=1, drought=(6, 2)),
        ),
    ],
)
def test_what_a_reader_meets_is_counted(cells, expected):
    assert tally.tally(cells) == expected


def test_minutes_of_reading():
    assert Tally(words=150, lines=12, ticks=20, figures=2, predictions=4).minutes == pytest.approx(8)


def test_a_lesson_within_bounds_is_left_in_peace_and_ends_with_what_is_to_be_taken_along():
    sources = ["import math", "from a import b", "SEED = 0\nSTEPS = 1.0", "kept = train_ways(x)", "hook(m)"]
    laboratory = [text(1500), *exercise(20), code(40, claimed(9)), text(900, tags=["claims-index"])]
    assert beyond(chapter(*map(folded, sources), more=34, laboratory=laboratory), "01") == []


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (chapter(text(6000), read=41), "41 minutes of reading; at most 32"),
        (chapter(*[code(1, claimed(2)), code(1, PICTURE)] * 5, read=10), "10 ✓; at most 8"),
        (chapter(*[code(15), code(5, PICTURE)] * 6, read=20), "126 open lines of code; at most 110"),
        (chapter(code(21), read=4), "21 open lines of code between two pictures or exercises; at most 20"),
        (chapter(*[code(1, claimed(2))] * 3), "6 ✓ between two pictures or exercises; at most 4"),
        (chapter(code(1, claimed(3))), "1 folded tables; at most 0"),
        (v4.new_notebook(cells=chapter().cells[:5]), "2 exercises; at least 3"),
        (chapter(folded()), "folded, and imports, sets, trains or hooks nothing"),
        (chapter(read=9), "reading: the header says 9 min, and 1 are counted"),
        (chapter(asked=20), "exercises: the header says 20 min, and 15 are counted"),
        (chapter(laboratory=[text(1500)]), "laboratory: the header says 0 min, and 10 are counted"),
        (v4.new_notebook(cells=[text(1), *chapter().cells[1:]]), "the header does not say **Lesson**"),
    ],
)
def test_what_is_beyond_the_bounds_is_named(made, said):
    assert said in "\n".join(beyond(made, "01"))


def test_a_chapter_without_bounds_is_named_and_no_bounds_are_of_a_chapter_that_is_gone():
    assert beyond(chapter(), "99") == ["chapter 99 has no bounds in tests/tally.py"]
    assert tally.BOUNDS.keys() <= {path.name[:2] for path in notebooks.chapters()}


def test_the_command_prints_a_line_for_each_part_and_what_is_beyond(tmp_path, capsys):
    for name, made in {"01_a": chapter(asked=20), "02_b": chapter()}.items():
        (tmp_path / f"{name}.ipynb").write_text(notebooks.text(made), encoding="utf-8")
    assert tally.main([], tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:13].split() for line in lines] == [
        *(["01", "lesson"], ["01", "laboratory"], ["exercises:"]),
        *(["02", "lesson"], ["02", "laboratory"]),
    ]
    assert "3 exercises; longest drought" in lines[0]
    tally.main(["02"], tmp_path)
    assert len(capsys.readouterr().out.splitlines()) == 2
