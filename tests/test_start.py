"""The start page keeps to the rules of a notebook and leads to every chapter."""

import functools
import re

import pytest
import test_notebooks as rules

from courseware import notebooks
from posenc.lesson import progress

PATH = notebooks.NOTEBOOKS / "start.ipynb"
CHAPTERS = [path.name for path in notebooks.chapters()]
RULES = [
    rules.links_resolve,
    rules.unique_ids,
    rules.known_tags,
    rules.no_magics,
    rules.executed_in_order,
    rules.quiet_outputs,
    rules.nothing_of_this_machine,
    rules.normal_form,
    rules.small_file,
]


@functools.cache
def page():
    return notebooks.read(PATH)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_rules_of_a_chapter(rule):
    complaints = rule(page(), PATH)
    assert not complaints, "\n".join(complaints)


def test_the_stored_list_is_that_of_the_chapters():
    """A chapter whose row in README.md or whose exercises changed: run  make notebooks."""
    (cell,) = (cell for cell in page().cells if cell.cell_type == "code")
    stored = cell.outputs[0].data["text/markdown"]
    assert stored == progress.overview(notebooks.NOTEBOOKS)
    assert re.findall(r"^\| \[.*?\]\((.*?)\) .* \| 0 of [1-9]\d* \|$", stored, re.MULTILINE) == CHAPTERS


def test_what_people_search_for_leads_to_every_chapter():
    (search,) = (cell.source for cell in page().cells if cell.id == "search")
    assert re.findall(r"^\| .{20,} \| \[chapter.\d\]\((.*?)\) \|$", search, re.MULTILINE) == CHAPTERS


def test_it_says_how_to_run_a_cell_and_all_cells():
    assert [words for words in ("Shift+Enter", "Run ▸ Run All Cells") if words not in page().cells[0].source] == []
