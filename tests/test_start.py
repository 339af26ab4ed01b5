"""The start page keeps to the rules of a notebook and leads to every chapter."""

import re

import test_notebooks as rules

from courseware import notebooks
from posenc.lesson import progress

PATH = notebooks.NOTEBOOKS / "start.ipynb"
CHAPTERS = [path.name for path in notebooks.chapters()]
OF_CHAPTERS = {rules.opening_cell, rules.in_bounds, rules.closing_cell}


def test_it_keeps_to_the_rules_of_a_chapter_but_for_its_lesson():
    assert rules.complaints_of([rule for rule in rules.RULES if rule not in OF_CHAPTERS], rules.read(PATH), PATH) == ""


def test_the_stored_list_is_that_of_the_chapters():
    """A chapter whose row in README.md or whose exercises changed: run  make notebooks."""
    (cell,) = rules.code(rules.read(PATH))
    stored = cell.outputs[0].data["text/markdown"]
    assert stored == progress.overview(notebooks.NOTEBOOKS)
    assert re.findall(r"^\| \[.*?\]\((.*?)\) .* \| 0 of [1-9]\d* \|$", stored, re.MULTILINE) == CHAPTERS


def test_what_people_search_for_leads_to_every_chapter():
    (search,) = (cell.source for cell in rules.read(PATH).cells if cell.id == "search")
    assert re.findall(r"^\| .{20,} \| \[chapter.\d\]\((.*?)\) \|$", search, re.MULTILINE) == CHAPTERS


def test_it_says_how_to_run_a_cell_and_all_cells():
    opening = rules.read(PATH).cells[0].source
    assert [words for words in ("Shift+Enter", "Run ▸ Run All Cells") if words not in opening] == []
