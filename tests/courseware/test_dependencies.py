"""Which cells grading runs, and what is left of a chapter without its trainings."""

import pytest
from nbformat import v4

from courseware.dependencies import MAGIC, STAR, defined, needed_cells, tags, used, without_training
from courseware.notebooks import chapters, read


def needs(*sources):
    cells = [v4.new_code_cell(source) for source in sources]
    return sorted(needed_cells(cells, [len(cells) - 1]))


@pytest.mark.parametrize("pattern", [MAGIC, STAR])
def test_what_a_cell_begins_with_is_looked_for_in_one_line(pattern):
    """Where an indentation may go on over lines, each of 60,000 empty ones is followed to the end."""
    found = [match[0] for match in pattern.finditer("\n\n  %run a.py\n\n\n\t%run b.py\n" + "\n" * 60)]
    assert [text.strip(" \t")[:4] for text in found] == ["%run", "%run"]
    assert not any("\n" in text for text in found)


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (["import math", "slow()", "math.pi"], [0, 2]),
        (["import math as m", "from math import pi, e as n", "n"], [1, 2]),
        (["a = 1", "b = a", "slow = b", "def f():\n    return b", "check(f)"], [0, 1, 3, 4]),
        (["a = 1", "a = 2", "a"], [1, 2]),
        (["a = 1", "a += 1", "a"], [0, 1, 2]),
        (["a = {}", "a[1] = 2", "a[2] = 3", "b = {}", "b[1] = 0", "a"], [0, 1, 2, 5]),
        (["a = A()", "a.b.c[0] = 1", "a"], [0, 1, 2]),
        (["a = {}", "a.update(b=1)", "a"], [0, 1, 2]),
        (["a = []", "a[0].b.append(1)", "setattr(a, 'b', 1)", "f(*a)", "a"], [0, 1, 2, 3, 4]),
        (["import torch", "torch.set_default_dtype(torch.float64)", "torch.ones(1)"], [0, 1, 2]),
        (["a = []", "print(a)", "claim('so', a)", "a"], [0, 3]),
        (["import figures", "a = 1", "figures.bars(a)", "figures.lines(a)"], [0, 1, 3]),
        (["a = 1", "def f(a, a): pass", "def g():\n    a = 1\n    global a", "a"], [0, 3]),
        (["a = 1", "class A:\n    b = [c := d for d in a]", "a"], [0, 2]),
        (["x = 1", "y = " + "+".join(["x"] * 5000), "z = x" + ".a()" * 2000, "x"], [0, 3]),
        (["a = b = 1", "def f(a):\n    b = a\n    return b", "f"], [1, 2]),
        (["d = 8", "class Model:\n    width = d", "Model()"], [0, 1, 2]),
        (["n = 1", "f = lambda x, y=n: x", "f"], [0, 1, 2]),
        (["n = 1", "[n for n in range(3)]"], [1]),
        (["n = 1", "f = [x + n for x in range(3)]", "f"], [0, 1, 2]),
        (["for i in range(3):\n    last = i", "with open(last) as file:\n    text = file", "text"], [0, 1, 2]),
        (["if (n := 3) > 2:\n    pass", "n"], [0, 1]),
        (["while True: pass", "from helper import *", "f(1)"], [1, 2]),
        (["%run helper.py", "f(1)"], [0, 1]),
        (["%matplotlib inline\nimport math", "!ls", "math"], [0, 2]),
        (["def f(:", "f"], [1]),
        (["a = 1", "def f():\n    return a", 'f = use("f", f)', "f()"], [0, 1, 3]),
        (["def f(): pass", 'check("f", f)\nf = use("f", f)', "f()"], [0, 2]),
        (["use = 1", "def f(): pass", 'f = use("f", f, handed_out=True)'], [0, 1, 2]),
        (["f(1)", "a = 2", "def f(x):\n    return a"], [1, 2]),
        (["print(1)"], [0]),
    ],
)
def test_needed(sources, expected):
    assert needs(*sources) == expected


def test_prose_defines_nothing_and_a_name_comes_from_above():
    cells = [v4.new_markdown_cell("a = 1"), v4.new_raw_cell("a = 1"), v4.new_code_cell("a"), v4.new_code_cell("a = 1")]
    assert needed_cells(cells, [2]) == {2}


def test_names():
    assert defined("import a.b\nc, (d, *e) = 1, 2\nf: int = 3\ndef g(h): i = 1\n") == {"a", *"cdefg"}
    assert used("def f(x):\n    def g():\n        return x + y\n    return g\nz") == {"y", "z"}
    assert used("def f():\n    global n\n    n = m") == {"m"}


def test_what_cannot_be_read_does_no_harm():
    for source in ("(" * 5000, "\0", "é = ", "x = 1\n\tif"):
        assert defined(source) == used(source) == set()


def left(*sources):
    cells = [v4.new_markdown_cell("train(x)"), *map(v4.new_code_cell, sources)]
    whole = v4.new_notebook(cells=cells)
    prose, *short = [cell.source for cell in without_training(whole).cells]
    assert prose == "train(x)" and whole.cells == cells, "text stays, and the original is left alone"
    return short


IMPORTS, FIT = "from posenc.models import train", "def fit(x):\n    train(x)"


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ([IMPORTS, FIT, "fit(1)", "n = 2", "model = fit(2)", "print(model)", "print(n)"], [0, 3, 6]),
        (["x = train()", "x = 1", "print(x)"], [1, 2]),
        (["train(1)", IMPORTS, "train(2)"], [1]),
    ],
    ids=["a training goes with all that needs it", "what is defined again is good again", "train is not"],
)
def test_without_training(sources, expected):
    assert left(*sources) == [sources[number] for number in expected]


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_no_chapter_loses_an_exercise(path):
    kept = {cell.id for cell in without_training(read(path)).cells}
    asked = {cell.id for cell in read(path).cells if {"exercise", "check"} & {*tags(cell)}}
    assert asked and asked <= kept
