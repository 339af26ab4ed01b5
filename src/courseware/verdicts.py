"""The page of claims: what the four sources say, each verdict, and the cell that decides.

    python -m courseware.verdicts    write notebooks/claims.ipynb

The claims stand in claims.toml. What decides them are assertions of the chapters, and `page` fails where one of
these is gone, was changed, or stands in several cells. The chapters' tables of symbols are merged at its end, and
a symbol has one meaning in all of them.
"""

import ast
import functools
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode, v4

from courseware import notebooks

CLAIMS = Path(__file__).with_name("claims.toml")
PAGE = notebooks.NOTEBOOKS / "claims.ipynb"

OPENING = """# Every claim, and its verdict
Four documents argue about positional encoding, and they do not agree. This page lists what they claim, {count} claims in our words, and what the chapters found. Each verdict links to the cells whose assertions decide it. Run them, change them, and see what it takes to make them fail.

A verdict speaks of what was measured: exact algebra where it is algebra, and otherwise models of this course's size and training."""
CLOSING = (
    """[Back to chapter 1](01_permutation_invariance.ipynb) · [Back to the list of chapters](../README.md)"""
)


class ClaimError(Exception):
    """Why the page cannot be written, in one line."""


def read_claims() -> dict:
    """The sources with their claims, and the names of the verdicts."""
    return tomllib.loads(CLAIMS.read_text(encoding="utf-8"))


def chapters() -> dict[str, NotebookNode]:
    """The stored chapters, file name → notebook."""
    return {path.name: notebooks.read(path) for path in sorted(notebooks.NOTEBOOKS.glob("[0-9]*.ipynb"))}


def page(notebooks: dict[str, NotebookNode], claims: dict) -> NotebookNode:
    """The page as a notebook of text.

    Args:
        notebooks: the chapters, as `chapters` gives them.
        claims: as `read_claims` gives them.

    Raises:
        ClaimError: a verdict is unknown, a claim has no assertion although its verdict says that it was tested,
            an assertion does not stand in one and only one cell, a number in a finding stands in none of the
            deciding cells, or a symbol has two meanings.
    """
    count = sum(len(source["claim"]) for source in claims["source"])
    texts = [OPENING.format(count=count) + "\n\n" + _overview(claims)]
    number = 0
    for source in claims["source"]:
        texts.append(f"## {source['title']}\n{source['about']}")
        for claim in source["claim"]:
            number += 1
            texts.append(_entry(number, claim, notebooks, claims["verdicts"]))
    texts.append(_symbols(notebooks))
    texts.append(CLOSING)
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


def _entry(number: int, claim: dict, notebooks: dict[str, NotebookNode], verdicts: list[str]) -> str:
    says, verdict, finding, decided = (
        claim["says"],
        claim["verdict"],
        claim["finding"],
        claim.get("decided", []),
    )
    if verdict not in verdicts:
        raise ClaimError(f"{says!r} has the verdict {verdict!r}; there are: {', '.join(verdicts)}")
    if bool(decided) == (verdict == "not testable here"):
        raise ClaimError(f"{says!r}: either an assertion decides it, or it is not testable here")
    places = [_place(notebooks, *reference) for reference in decided]
    known = {value for _, _, cell, _ in places for value, _ in _numbers("\n".join(_texts(cell)))}
    for value, digits in _numbers(finding):
        if decided and not any(round(other, digits) == value for other in known):
            raise ClaimError(f"{says!r}: {value:g} stands in none of the deciding cells")
    deciding: dict[str, list[str]] = {}
    for name, heading, cell, assertion in places:
        link = f"[chapter {int(name[:2])}, “{heading}”]({name}#cell-id={cell.id})"
        deciding.setdefault(link, []).append(f"`{assertion}`")
    links = [f"- {link}: {', '.join(assertions)}" for link, assertions in deciding.items()]
    title = f"### {number} · {says.rstrip('.')}"
    return "\n\n".join([title, f"**{verdict.capitalize()}.** {finding}", *filter(None, ["\n".join(links)])])


def _place(
    notebooks: dict[str, NotebookNode], chapter: str, *words: str
) -> tuple[str, str, NotebookNode, str]:
    """File name, nearest heading, cell and assertion of what decides a claim; words are as in claims.toml."""
    *words, assertion = words
    name = next(name for name in notebooks if name.startswith(chapter))
    heading, found = "", []
    for cell in notebooks[name].cells:
        if cell.cell_type == "markdown":
            heading = ([heading] + re.findall(r"^#+ (.*)$", cell.source, re.MULTILINE))[-1]
        elif assertion in _assertions(cell.source) and all(word in cell.source for word in words):
            found.append((name, heading, cell, assertion))
    if len(found) != 1:
        raise ClaimError(f"{len(found)} cells of chapter {chapter} assert {assertion}")
    return found[0]


@functools.cache
def _assertions(source: str) -> list[str]:
    tree = ast.parse(re.sub(r"^%.*$", "", source, flags=re.MULTILINE))
    return [ast.unparse(node.test) for node in ast.walk(tree) if isinstance(node, ast.Assert)]


def _texts(cell: NotebookNode) -> Iterator[str]:
    yield cell.source
    for output in cell.outputs:
        yield output.get("text", "")


def _numbers(text: str) -> Iterator[tuple[float, int]]:
    """The numbers in a text, 10,000 and 10_000 alike, each with how many decimals it has."""
    for found in re.findall(r"\d+(?:[,_]\d{3})*(?:\.\d+)?|\.\d+", text):
        yield float(re.sub("[,_]", "", found)), len(found.partition(".")[2])


def _symbols(notebooks: dict[str, NotebookNode]) -> str:
    meanings: dict[str, str] = {}
    where: dict[str, list[str]] = {}
    for name, notebook in notebooks.items():
        for symbol, meaning in _symbol_rows(notebook):
            if meanings.setdefault(symbol, meaning) != meaning:
                raise ClaimError(f"{symbol} means {meanings[symbol]!r}, and {meaning!r} in {name}")
            where.setdefault(symbol, []).append(str(int(name[:2])))
    rows = [f"| {symbol} | {meaning} | {', '.join(where[symbol])} |" for symbol, meaning in meanings.items()]
    return "\n".join(
        ["## Symbols of the whole course", "", "| symbol | meaning | chapters |", "|---|---|---|", *rows]
    )


def _symbol_rows(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for table in re.findall(
                r"^\| symbol \| meaning \|\n.*\n((?:\|.*\n?)+)", cell.source, re.MULTILINE
            ):
                for row in table.strip().splitlines():
                    symbol, meaning = (part.strip() for part in row.strip("|").split("|"))
                    yield symbol, meaning


def main() -> int:
    """Write the page from the stored chapters. Returns the exit status."""
    try:
        PAGE.write_text(
            notebooks.text(notebooks.normalise(page(chapters(), read_claims()))), encoding="utf-8"
        )
    except ClaimError as error:
        print(f"{PAGE.name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
