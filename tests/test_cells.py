"""What a cell defines and reads, and what is left of a chapter without its trainings."""

from pathlib import Path

import pytest
from nbformat import v4

from courseware.build import read
from courseware.cells import names, without_training

CHAPTERS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize(
    "source, defined, read",
    [
        ("x = y + 1", {"x"}, {"y"}),
        ("import torch.nn as nn, math", {"nn", "math"}, set()),
        ("from a import b as c", {"c"}, set()),
        ("import torch.nn.functional", {"torch"}, set()),
        ("def f(a: Tensor = zero):\n    return g(a)", {"f"}, {"Tensor", "zero", "g", "a"}),
        ("class A(Base):\n    pass", {"A"}, {"Base"}),
        ("for i in rows:\n    print(i)", {"i"}, {"rows", "print", "i"}),
        ("with open(path) as file:\n    pass", {"file"}, {"open", "path"}),
        ("a, (b, *c) = z", {"a", "b", "c"}, {"z"}),
        ("model.layers[0] = layer", set(), {"model", "layer"}),
        ("(n := 3)", {"n"}, set()),
        ("", set(), set()),
    ],
)
def test_names(source, defined, read):
    assert names(source) == (defined, read)


def left(*sources):
    cells = [v4.new_code_cell(source) for source in sources]
    return [cell.source for cell in without_training(v4.new_notebook(cells=cells)).cells]


def test_a_training_goes_with_all_that_needs_it():
    helper = "def fit(x):\n    train(x)"
    chapter = [
        "from posenc.models import train",
        helper,
        "fit(1)",
        "loss = 2",
        "model = fit(2)",
        "print(model)",
        "print(loss)",
    ]
    assert left(*chapter) == [chapter[0], "loss = 2", "print(loss)"]


def test_a_name_that_is_defined_again_is_good_again():
    assert left("x = train()", "x = 1", "print(x)") == ["x = 1", "print(x)"]


def test_training_stays_out_where_it_is_imported_again():
    assert left("train(1)", "from posenc.models import train", "train(2)") == [
        "from posenc.models import train"
    ]


def test_text_stays_and_the_original_is_left_alone():
    notebook = v4.new_notebook(cells=[v4.new_markdown_cell("train(x)"), v4.new_code_cell("train(x)")])
    assert [cell.cell_type for cell in without_training(notebook).cells] == ["markdown"]
    assert len(notebook.cells) == 2


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_no_chapter_loses_an_exercise_or_a_slider(path):
    whole = read(path)
    short = {cell.source for cell in without_training(whole).cells}
    lost = [cell.source for cell in whole.cells if cell.source not in short]
    assert not [source for source in lost if ".sweep()" in source]
    assert not [
        cell.source
        for cell in whole.cells
        if set(cell.metadata.get("tags", [])) & {"exercise", "check", "solution"} and cell.source in lost
    ]
