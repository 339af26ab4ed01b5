"""The index of a chapter's claims, their keys, and the numbers that prose may use."""

import pytest
from nbformat import v4

from courseware import index
from courseware.index import missing, numbers, stands, stored, with_index
from posenc.lesson.claims import bundle, make


def output(*claims):
    """What a cell shows that makes these claims."""
    return [v4.new_output("display_data", data=bundle(claims))]


def chapter():
    """Its second cell claims two sentences in turn, in a loop."""
    other = [
        v4.new_output("stream", text="✓ it is: 3 < 4\n"),
        v4.new_output("display_data", {"text/plain": "Figure: a"}),
    ]
    turns = [("each *one*", 0.6, "a|b"), ("so", 1, "a"), ("each *one*", 0.7, "c"), ("so", 2, "c")]
    cases = [make(sentence, value, above=0.5, case=case) for sentence, value, case in turns]
    two = output(make("one", 2.22e-16, below=1e-12), *cases, make("last", 3, equals=3))
    cells = [
        v4.new_markdown_cell("# 01 · A chapter"),
        v4.new_code_cell("1", outputs=other),
        v4.new_markdown_cell("Text\n## 2 Two `tokens` (A)\nText"),
        v4.new_code_cell("2", id="two", outputs=two),
        v4.new_markdown_cell("### Aside"),
        v4.new_code_cell("3", id="three", outputs=output(make("many", [1, 0.2], above=0.5, in_at_least=1))),
    ]
    return v4.new_notebook(cells=cells)


def test_a_key_is_the_cell_and_the_place_of_the_sentence():
    *of_two, last = [(one.cell, one.place, one.heading, one.claim.sentence) for one in stored(chapter())]
    sentences = {0: ["one"], 1: ["each *one*", "each *one*"], 2: ["so", "so"], 3: ["last"]}
    places = [("two", place, "2 Two `tokens` (A)", each) for place, found in sentences.items() for each in found]
    assert sorted(of_two) == places
    assert last == ("three", 0, "Aside", "many")


INDEX = """## All claims of this chapter

<details>
<summary>5, with what was measured</summary>

**[2 Two tokens (A)](#2-Two-tokens-%28A%29)**

- one: 2.2e-16 \\< 1e-12
- each \\*one\\*
  - a\\|b: 0.6 > 0.5
  - c: 0.7 > 0.5
- so
  - a: 1 > 0.5
  - c: 2 > 0.5
- last: 3 = 3

**[Aside](#Aside)**

- many: 1 0.2, 1 of 2 > 0.5 (at least 1)

</details>"""


def test_the_index_is_folded_and_by_section():
    made = with_index(chapter()).cells[-1]
    assert made.source == INDEX and made.metadata.tags == [index.TAG]


def test_the_index_takes_the_place_of_an_older_one_and_goes_with_the_claims():
    made = with_index(chapter())
    made.cells[-1].source = "old"
    made.cells[3].outputs = []
    assert [cell.id for cell in with_index(made).cells][-2:] == ["three", index.TAG]
    assert "1 0.2" in made.cells[-1].source and "one" not in made.cells[-1].source
    made.cells[-2].outputs = []
    assert [cell.id for cell in with_index(made).cells][-1] == "three"


TEXT = "At 64 tokens .29, `7`, [8](9.ipynb), section 4, sections 2 and 3, Exercise 4.1, $5$, 1,000, 4e-16, GPT-2, 2π, x1, 99 %."


def test_numbers_are_those_that_are_measured():
    assert numbers(TEXT) == ["64", ".29", "1,000", "4e-16", "99 %"]


ROUNDED = ".29 0.29 0.291 0.3 4e-16 4.4e-16 12,346 12346 99% 98.7% 6 100 29% 8"
OTHERS = ".28 0.292 1 5e-16 4e-15 7 98% 12345 101 30%"


@pytest.mark.parametrize("written", [*ROUNDED.split(), "98.7 %", *OTHERS.split()])
def test_a_number_may_be_rounded_and_another_one_is_seen(written):
    line = "100 of them: -0.2913 4.4e-16 12345.7 0.9871, 6 of 8 > 3"
    assert stands(written, line) == (written not in OTHERS.split())


def test_missing_numbers_are_named():
    claims = [make("64 tokens", 0.2913, below=1), make("shares", [0.99, 1], above=0.9)]
    assert missing("64 tokens move by .29, in 2 of 2 seeds; and by 0.31.", claims) == ["0.31"]
