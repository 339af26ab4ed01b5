"""The page of claims: what the four sources say, each verdict, and the cell that decides.

    python -m courseware.verdicts         write notebooks/claims.ipynb
    python -m courseware.verdicts keys    print what the chapters claim, with the keys of claims.toml

The claims of the sources stand in claims.toml. What decides them are claims of the chapters, named by the chapter's
number, the id of a cell and, for one of several there, its place among them: 03/alignment/1. `page` fails where one
is gone. A reworded sentence keeps its key. The chapters' tables of symbols are merged at its end, and a symbol has
one meaning in all of them.
"""

import itertools
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from nbformat import NotebookNode, v4

from courseware import notebooks
from courseware.code import code_of
from courseware.index import Stored, escaped, missing, stored, words
from courseware.replicate import found_again, overview

CLAIMS = Path(__file__).with_name("claims.toml")
PAGE = notebooks.NOTEBOOKS / "claims.ipynb"

OPENING = """# Every claim, and its verdict
Four documents argue about positional encoding, and they do not agree. This page lists what they claim, {count} claims in our words, and what the chapters found. Each verdict links to the cells that decide it, with what they measured. Change one, and see what it takes to make it fail.

A verdict speaks of what was measured: exact algebra where it is algebra, and otherwise models of this course's size and training. In brackets stands in how many other sets of seeds a claim held, or that they change nothing, and where it failed under other learning rates or more steps. {replicated}"""
CLOSING = "[Back to chapter 1](01_permutation_invariance.ipynb) · [Back to the list of chapters](../README.md)"


Known = dict[str, list[tuple[str, Stored, str]]]  # by each key, what it names: file, claim, and the name of its code


class ClaimError(Exception):
    """Why the page cannot be written, in one line."""


def read_claims() -> dict:
    """The sources with their claims, and the names of the verdicts."""
    return tomllib.loads(CLAIMS.read_text(encoding="utf-8"))


def chapters() -> dict[str, NotebookNode]:
    """The stored chapters, file name → notebook."""
    return {path.name: notebooks.read(path) for path in notebooks.chapters()}


def page(notebooks: dict[str, NotebookNode], claims: dict) -> NotebookNode:
    """The page as a notebook of text.

    Args:
        notebooks: the chapters, as `chapters` gives them.
        claims: as `read_claims` gives them.

    Raises:
        ClaimError: a verdict is unknown, nothing decides a claim although its verdict says that it was tested, what
            decides it is gone, a number in a finding stands in none of the deciding claims, or a symbol has two
            meanings.
    """
    known: Known = {}
    for name, notebook in notebooks.items():
        codes = code_of(notebook)
        for one in stored(notebook):
            key = f"{name[:2]}/{one.cell}"
            for named in (key, f"{key}/{one.place}"):
                known.setdefault(named, []).append((name, one, codes.get(one.cell, "")))
    count = sum(len(source["claim"]) for source in claims["source"])
    texts = [OPENING.format(count=count, replicated=overview()) + "\n\n" + _overview(claims)]
    numbers = itertools.count(1)
    for source in claims["source"]:
        texts.append(f"## {source['title']}\n{source['about']}")
        texts += [_entry(next(numbers), claim, known, claims["verdicts"]) for claim in source["claim"]]
    texts += [_symbols(notebooks), CLOSING]
    return v4.new_notebook(cells=[v4.new_markdown_cell(text, id=_id(text)) for text in texts])


def _id(text: str) -> str:
    """A cell's name, from the words of its first line, without the number of a claim."""
    words = re.findall(r"[a-z]+", text.splitlines()[0].lower())
    return "-".join(words)[:64].strip("-")


def _overview(claims: dict) -> str:
    verdicts = claims["verdicts"]
    rows = [["source", *verdicts], ["---"] * (1 + len(verdicts))]
    for source in claims["source"]:
        found = Counter(claim["verdict"] for claim in source["claim"])
        rows.append([source["title"], *(str(found[verdict]) for verdict in verdicts)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _entry(number: int, claim: dict, known: Known, verdicts: list[str]) -> str:
    says, verdict, finding = (claim[name] for name in ("says", "verdict", "finding"))
    decided = claim.get("decided", [])
    if verdict not in verdicts:
        raise ClaimError(f"{says!r} has the verdict {verdict!r}; there are: {', '.join(verdicts)}")
    if bool(decided) == (verdict == "not testable here"):
        raise ClaimError(f"{says!r}: either something decides it, or it is not testable here")
    if gone := [key for key in decided if key not in known]:
        raise ClaimError(f"no chapter has a claim {gone[0]}")
    deciding = [each for key in decided for each in known[key]]
    unknown = missing(finding, [one.claim for _, one, _ in deciding])
    if decided and unknown:
        raise ClaimError(f"{says!r}: {unknown[0]} stands in none of the deciding claims")
    measured: dict[str, dict[str, list[str]]] = {}
    for name, one, code in deciding:
        link = f"[chapter {int(name[:2])}, “{one.heading}”]({name}#cell-id={one.cell})"
        start = escaped(one.claim.sentence) + (", " if one.claim.case else ": ")
        again = found_again(name[:2], one, code)
        line = escaped(words(one.claim, sentence=False)) + (f" ({again})" if again else "")
        measured.setdefault(link, {}).setdefault(start, []).append(line)
    text = f"### {number} · {says.rstrip('.')}\n\n**{verdict.capitalize()}.** {finding}\n"
    for link, claims in measured.items():
        text += f"\n- {link}: {'; '.join(start + ', '.join(lines) for start, lines in claims.items())}"
    return text.rstrip()


def _symbols(notebooks: dict[str, NotebookNode]) -> str:
    meanings: dict[str, str] = {}
    where: dict[str, list[str]] = {}
    table = re.compile(r"^\| symbol \| meaning \|\n.*\n((?:\|.*\n?)+)", re.MULTILINE)
    for name, notebook in notebooks.items():
        prose = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        for row in "".join(table.findall(prose)).splitlines():
            symbol, meaning = (part.strip() for part in row.strip("|").split("|"))
            if meanings.setdefault(symbol, meaning) != meaning:
                raise ClaimError(f"{symbol} means {meanings[symbol]!r}, and {meaning!r} in {name}")
            where.setdefault(symbol, []).append(str(int(name[:2])))
    rows = [f"| {symbol} | {meaning} | {', '.join(where[symbol])} |" for symbol, meaning in meanings.items()]
    return "\n".join(["## Symbols of the whole course", "", "| symbol | meaning | chapters |", "|---|---|---|", *rows])


def main(arguments: Sequence[str] = ()) -> int:
    """Write the page from the stored chapters, or print the keys. Returns the exit status."""
    if list(arguments) == ["keys"]:
        for name, notebook in chapters().items():
            for one in stored(notebook):
                print(f"{name[:2]}/{one.cell}/{one.place}  {words(one.claim)}")
        return 0
    try:
        made = notebooks.normalise(page(chapters(), read_claims()))
        PAGE.write_text(notebooks.text(made), encoding="utf-8")
    except ClaimError as error:
        print(f"{PAGE.name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
