"""The page of claims: it is what the chapters' claims make it, and it cannot be made from anything less."""

import pytest
from nbformat import v4

from courseware import notebooks, replicate, verdicts
from courseware.verdicts import ClaimError, page
from posenc.lesson.claims import bundle, make

SYMBOLS = "| symbol | meaning |\n|---|---|\n| d | size of a head |\n| T | number of tokens |"


# A chapter's cell is its id and its claims: what make() takes.
CELLS = {"x": [("it is small", 0.12345, {"below": 1})]}
LOOP = [("each is", value, {"below": 10_001, "case": name}) for name, value in {"a": 1000, "b": 10_000}.items()]


def chapter(symbols=SYMBOLS, **cells):
    made = [v4.new_markdown_cell(f"## 1 Two tokens\n{symbols}")]
    for id, claims in (cells or CELLS).items():
        shown = [make(sentence, value, **options) for sentence, value, options in claims]
        outputs = [v4.new_output("display_data", data=bundle(shown))]
        made.append(v4.new_code_cell("1", id=id, outputs=outputs))
    return v4.new_notebook(cells=made)


def one(verdict="holds", finding="It does.", decided=("01/x",)):
    claim = {"says": "It moves.", "verdict": verdict, "finding": finding}
    claim |= {"decided": list(decided)} if decided else {}
    sources = [{"title": "A note", "about": "About moving.", "claim": [claim]}]
    return {"verdicts": ["holds", "fails", "not testable here"], "source": sources}


def written(claims, **cells):
    return "\n".join(cell.source for cell in page({"01_a.ipynb": chapter(**cells)}, claims).cells)


@pytest.mark.slow
def test_the_stored_page_is_the_one_that_the_chapters_make():
    made = notebooks.normalise(page(verdicts.chapters(), verdicts.read_claims()))
    assert notebooks.text(made) == verdicts.PAGE.read_text(encoding="utf-8"), "run  make notebooks"


def test_an_entry_has_its_verdict_and_what_was_measured_whose_numbers_it_may_round():
    finding = "It moves by .12, or by 10,000."
    text = written(one(finding=finding, decided=["01/x", "01/y/1"]), **CELLS, y=[("other", 1, {"below": 2}), *LOOP])
    assert f"### 1 · It moves\n\n**Holds.** {finding}" in text
    assert "- [chapter 1, “1 Two tokens”](01_a.ipynb#cell-id=x): it is small: 0.123 \\< 1\n" in text
    assert "#cell-id=y): each is, a: 1000 \\< 10001, b: 10000 \\< 10001\n" in text
    assert "other: " not in text
    assert "| A note | 1 | 0 | 0 |" in text


def test_a_cell_may_decide_with_all_its_claims_and_their_words_orphan_nothing():
    text = written(one(decided=["01/y"]), y=[("this", 1, {"below": 2}), ("that", 3, {"above": 2})])
    assert "#cell-id=y): this: 1 \\< 2; that: 3 > 2\n" in text


def test_the_symbols_of_all_chapters_are_one_table_and_none_has_two_meanings():
    notebooks = {"01_a.ipynb": chapter(), "02_b.ipynb": chapter()}
    assert page(notebooks, one()).cells[-2].source.endswith("| T | number of tokens | 1, 2 |")
    notebooks["02_b.ipynb"] = chapter(symbols=SYMBOLS.replace("a head", "a token"))
    with pytest.raises(ClaimError, match="d means 'size of a head', and 'size of a token' in 02_b.ipynb"):
        page(notebooks, one())


def test_what_other_seeds_gave_stands_beside_the_claim(monkeypatch):
    row = replicate.Row("01/cell0/0", "1", "1", 16, 15, "0.83", "0.98", "> 0.5", "abc")
    monkeypatch.setattr(replicate, "read_table", lambda: (row,))
    stored = type("Stored", (), {"cell": "cell0", "place": 0, "claim": type("Claim", (), {"case": ""})})
    assert replicate.found_again("01", stored, "abc") == "held in 15 of 16 sets, 0.83 to 0.98"
    old = "held in 15 of 16 sets before the code changed, 0.83 to 0.98"
    assert replicate.found_again("01", stored, "abd") == old
    assert replicate.found_again("02", stored, "abc") == ""
    fails = replicate.Row("01/cell0/0", "0.333", "1", 4, 1, "0.1", "0.98", "> 0.5", "abc")
    holds = replicate.Row("01/cell0/0", "1", "4", 4, 4, "0.9", "0.98", "> 0.5", "abc")
    same = replicate.Row("01/cell0/1", "1", "1", 16, 16, "0.5", "0.5", "> 0.4", "abc")
    rounding = replicate.Row("01/cell0/2", "1", "1", 16, 16, "2.2e-16", "4.4e-16", "< 1e-12", "abc")
    monkeypatch.setattr(replicate, "read_table", lambda: (fails, row, holds, same, rounding))
    both = "held in 15 of 16 sets, 0.83 to 0.98; with learning rate × 0.333 in 1 of 4"
    assert replicate.found_again("01", stored, "abc") == both
    for place, again in ((1, "the same in all 16 sets"), (2, "rounding in all 16 sets")):
        stored.place = place
        assert replicate.found_again("01", stored, "abc") == again
    assert replicate.overview() == (
        "Of the measurements that differ from set to set, with other seeds 0 of 1 held in all of 16 sets; with learning rate "
        "× 0.333 0 of 1 held in all of 4 sets; with steps × 4 1 of 1 held in all of 4 sets."
    )


NUMBERS = {**CELLS, "y": [("0.13", 1, {"below": 3})]}
UNDECIDED = "either something decides it, or it is not testable here"


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        *((one(decided=["01/x", key]), f"no chapter has a claim {key}") for key in ["01/z", "01/x/1", "02/x/0"]),
        (one(finding="It is 0.13."), "0.13 stands in none of the deciding claims"),
        (one("perhaps"), "has the verdict 'perhaps'; there are: holds, fails"),
        (one(decided=()), UNDECIDED),
        (one("not testable here"), UNDECIDED),
    ],
)
def test_what_does_not_fit_together_is_refused(claim, said):
    with pytest.raises(ClaimError, match=said):
        written(claim, **NUMBERS)


def test_main_says_what_is_wrong_and_leaves_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(verdicts, "PAGE", tmp_path / "claims.ipynb")
    monkeypatch.setattr(verdicts, "chapters", lambda: {"01_a.ipynb": chapter()})
    monkeypatch.setattr(verdicts, "read_claims", lambda: one())
    assert verdicts.main() == 0
    before = verdicts.PAGE.read_text(encoding="utf-8")
    monkeypatch.setattr(verdicts, "read_claims", lambda: one("perhaps"))
    assert verdicts.main() == 1
    assert "claims.ipynb: 'It moves.' has the verdict" in capsys.readouterr().err
    assert verdicts.PAGE.read_text(encoding="utf-8") == before


def test_the_keys_are_printed(monkeypatch, capsys):
    monkeypatch.setattr(verdicts, "chapters", lambda: {"01_a.ipynb": chapter(**CELLS, y=LOOP)})
    assert verdicts.main(["keys"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "01/x/0  it is small: 0.123 < 1",
        "01/y/0  each is (a): 1000 < 10001",
        "01/y/0  each is (b): 10000 < 10001",
    ]
