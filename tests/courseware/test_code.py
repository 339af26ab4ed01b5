"""A name of code changes with the code and with nothing else."""

import pytest
from nbformat import v4

from courseware import code
from courseware.code import fingerprint


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package posenc with a module that imports others, in three ways."""
    files = {
        "__init__.py": "",
        "one.py": "from posenc.two import two\nfrom . import three\n",
        "two.py": '"""Two."""\n\ntwo = 2\n',
        "three.py": "import posenc.inner.four\n",
        "inner/__init__.py": "",
        "inner/four.py": 'def four():\n    """Four."""\n    from ..five import five\n    return "# no comment" + five\n',
        "five.py": "five = '5'\n",
        "lonely.py": "",
        "lesson/__init__.py": "",
        "lesson/palette.py": "KEY = 'red'",
        "chapters/__init__.py": "",
        "chapters/a/__init__.py": "",
        "chapters/a/exercises.py": "from posenc.lesson import palette\nmessage = 'what e meets'",
        "chapters/a/worked.py": "def answer(): return 7",
    }
    for name, source in files.items():
        (tmp_path / "posenc" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "posenc" / name).write_text(source)
    monkeypatch.setattr(code, "PACKAGE", tmp_path / "posenc")
    return tmp_path / "posenc"


def importing(*sources):
    return v4.new_notebook(cells=[v4.new_markdown_cell("text"), *map(v4.new_code_cell, sources)])


CODE = [
    "%matplotlib inline\nimport torch\nfrom posenc.one import one\nfrom posenc.chapters.a import exercises",
    "one  # a comment",
    "?one",
]


IMPORTED = ["__init__", "one", "two", "three", "inner/__init__", "inner/four", "five", "chapters/a/worked"]
SAYS = '# four\n\ndef four():\n    from ..five import five  # why\n\n    return "# no comment" + five\n'


@pytest.mark.parametrize(
    ("name", "become", "same"),
    [
        *((name, lambda source: source + "\nsix = 6\n", False) for name in IMPORTED),
        ("inner/four", lambda source: source.replace("# no comment", "# a comment"), False),
        ("inner/four", lambda source: SAYS, True),
        ("lonely", lambda source: "lonely = 1", True),
        ("two", lambda source: '"""Another word."""\ntwo = 2\n', True),
        ("lesson/palette", lambda source: source.replace("red", "blue"), True),
        ("chapters/a/exercises", lambda source: source.replace("e meets", "x meets"), True),
    ],
)
def test_the_name_changes_with_imported_code_and_stays_with_what_only_says_something(package, name, become, same):
    before = fingerprint(importing(*CODE))
    path = package / f"{name}.py"
    path.write_text(become(path.read_text()))
    assert (fingerprint(importing(*CODE)) == before) == same


def test_a_folder_that_is_no_package_is_named(package):
    (package / "inner/__init__.py").unlink()
    with pytest.raises(FileNotFoundError, match="inner has no __init__.py: make an empty one"):
        code.imported_files(["import posenc"])


def test_the_name_changes_with_a_cell_and_not_with_its_comments_or_with_prose(package):
    before = fingerprint(importing(*CODE))
    other = importing(CODE[0], "one # another", CODE[2])
    other.cells[0].source = "other words"
    assert fingerprint(other) == before
    assert fingerprint(importing(CODE[0], "one + 1", CODE[2])) != before
    assert fingerprint(importing(*reversed(CODE))) != before
    assert fingerprint(importing("'a'.join(one)")) != fingerprint(importing("'b'.join(one)"))  # no docstring
