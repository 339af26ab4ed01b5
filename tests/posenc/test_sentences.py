"""A learner types what a learner types: chapter 1's assertions hold for every sentence."""

from contextlib import nullcontext
from pathlib import Path

import nbformat
import pytest

from posenc.lesson import controls

CHAPTER = Path(__file__).parents[2] / "notebooks" / "01_permutation_invariance.ipynb"

pytestmark = pytest.mark.slow

SENTENCES = [
    "the man bit the dog",
    "to be or not to be, that is the question",
    "a b a.",  # three different tokens
    "buffalo buffalo buffalo police the",
    "¿Dónde está la biblioteca?",
    "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
]
TRAINING = {"training", "race-measured"}  # it takes long, and doesn't read the sentence
FIRST_AFTER = "rnn"  # from here on the laboratory trains, too


@pytest.mark.parametrize("sentence, refused", [*((each, None) for each in SENTENCES), ("ha ha ha", "this has 1")])
def test_the_chapter_holds_for(sentence, refused, monkeypatch):
    box = controls.sentence_box()
    box.value = sentence
    monkeypatch.setattr(controls, "sentence_box", lambda: box)
    space = {"__name__": "__main__"}
    cells = [cell for cell in nbformat.read(CHAPTER, as_version=4).cells if cell.cell_type == "code"]
    ids = [cell.id for cell in cells]
    assert TRAINING <= {*ids} and "train(" not in "".join(cell.source for cell in cells if cell.id not in TRAINING)
    with pytest.raises(ValueError, match=refused) if refused else nullcontext():
        for cell in cells[: ids.index(FIRST_AFTER)]:
            if cell.id not in TRAINING:
                exec(compile(cell.source, cell.id, "exec"), space)
