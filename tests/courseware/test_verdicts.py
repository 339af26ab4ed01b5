"""The page of claims: it is what the chapters' assertions make it, and it cannot be made from anything less."""

import copy
import re

import pytest
from nbformat import v4

from courseware import notebooks, verdicts
from courseware.verdicts import ClaimError, page

SYMBOLS = "| symbol | meaning |\n|---|---|\n| d | size of a head |\n| T | number of tokens |"


def chapter(*sources, symbols=SYMBOLS, printed=""):
    outputs = [v4.new_output("stream", name="stdout", text=printed)] if printed else []
    cells = [v4.new_code_cell(source, outputs=outputs) for source in sources]
    return v4.new_notebook(cells=[v4.new_markdown_cell(f"## 1 Two tokens\n{symbols}"), *cells])


def one(verdict="holds", finding="It does.", decided=(["01", "x < 1"],)):
    claim = {"says": "It moves.", "verdict": verdict, "finding": finding}
    claim |= {"decided": list(decided)} if decided else {}
    sources = [{"title": "A note", "about": "About moving.", "claim": [claim]}]
    return {"verdicts": ["holds", "fails", "not testable here"], "source": sources}


def written(claims, *sources, **options):
    return "\n".join(cell.source for cell in page({"01_a.ipynb": chapter(*sources, **options)}, claims).cells)


def test_the_stored_page_is_the_one_that_the_chapters_make():
    made = notebooks.normalise(page(verdicts.chapters(), verdicts.read_claims()))
    assert notebooks.text(made) == verdicts.PAGE.read_text(encoding="utf-8"), "run  make notebooks"


def test_every_link_leads_to_a_cell():
    ids = {name: {cell.id for cell in notebook.cells} for name, notebook in verdicts.chapters().items()}
    text = "\n".join(cell.source for cell in notebooks.read(verdicts.PAGE).cells)
    links = re.findall(r"\((\S+\.ipynb)#cell-id=(\w+)\)", text)
    assert len(links) > 50
    assert [link for link in links if link[1] not in ids[link[0]]] == []


def test_an_entry_has_its_verdict_and_its_assertions():
    text = written(one(decided=[["01", "x < 1"], ["01", "y > 2"]]), "assert x < 1\nassert y > 2")
    assert "### 1 · It moves\n\n**Holds.** It does." in text
    assert re.search(r"- \[chapter 1, “1 Two tokens”\]\(01_a\.ipynb#cell-id=\w+\): `x < 1`, `y > 2`\n", text)
    assert "| A note | 1 | 0 | 0 |" in text


def test_the_symbols_of_all_chapters_are_one_table():
    notebooks = {"01_a.ipynb": chapter("assert x < 1"), "02_b.ipynb": chapter("1")}
    assert page(notebooks, one()).cells[-2].source.endswith("| T | number of tokens | 1, 2 |")


@pytest.mark.parametrize("sources", [["assert x < 2"], ["x < 1"], ["assert x < 1", "assert x < 1 "]])
def test_an_assertion_must_stand_in_one_cell(sources):
    with pytest.raises(ClaimError, match=f"{2 * (len(sources) > 1)} cells of chapter 01 assert x < 1"):
        written(one(), *sources)


def test_words_tell_two_cells_apart():
    sources = "assert x < 1\nprint('here')", "assert x < 1"
    assert "`x < 1`" in written(one(decided=[["01", "here", "x < 1"]]), *sources)


@pytest.mark.parametrize("finding", ["It is 3.", "It is 0.12.", "It is 1,000.", "It is 10."])
def test_a_number_must_come_from_a_deciding_cell(finding):
    cell = "assert x < 1"
    with pytest.raises(ClaimError, match="stands in none of the deciding cells"):
        written(one(finding=finding), cell, "3, 0.12, 1000, 10")
    assert finding in written(one(finding=finding), f"{cell}\n3, 0.1234, 1_000, 1e1", printed="10")


def test_an_unknown_verdict_is_refused():
    with pytest.raises(ClaimError, match="has the verdict 'perhaps'; there are: holds, fails"):
        written(one("perhaps"), "assert x < 1")


@pytest.mark.parametrize("claim", [one(decided=()), one("not testable here")])
def test_what_is_tested_has_an_assertion_and_what_is_not_has_none(claim):
    with pytest.raises(ClaimError, match="either an assertion decides it, or it is not testable here"):
        written(claim, "assert x < 1")


def test_a_symbol_with_two_meanings_is_refused():
    second = chapter("1", symbols=SYMBOLS.replace("a head", "a token"))
    with pytest.raises(ClaimError, match="d means 'size of a head', and 'size of a token' in 02_b.ipynb"):
        page({"01_a.ipynb": chapter("assert x < 1"), "02_b.ipynb": second}, one())


def test_a_changed_assertion_of_a_chapter_is_seen():
    notebooks = copy.deepcopy(verdicts.chapters())
    cell = next(
        cell for cell in notebooks["01_permutation_invariance.ipynb"].cells if "ratio > 10" in cell.source
    )
    cell.source = cell.source.replace("ratio > 10", "ratio > 5")
    with pytest.raises(ClaimError, match="0 cells of chapter 01 assert ratio > 10"):
        page(notebooks, verdicts.read_claims())


def test_main_says_what_is_wrong_and_leaves_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(verdicts, "PAGE", tmp_path / "claims.ipynb")
    assert verdicts.main() == 0
    before = verdicts.PAGE.read_text(encoding="utf-8")
    monkeypatch.setattr(verdicts, "read_claims", lambda: one("perhaps"))
    assert verdicts.main() == 1
    assert "claims.ipynb: 'It moves.' has the verdict" in capsys.readouterr().err
    assert verdicts.PAGE.read_text(encoding="utf-8") == before
