"""What a chapter's stored outputs claim: the folded index at its end, and the numbers that its prose may use.

A claim's key is the chapter's number, the id of its cell and its place among the sentences of that cell, counted from
0: 03/alignment/1. A reworded sentence keeps its key; the cases of a loop share one.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

from nbformat import NotebookNode, v4

from courseware.dependencies import tags
from posenc.lesson.claims import Claim, parse

TAG = "claims-index"


@dataclass(frozen=True)
class Stored:
    """A claim of a chapter and where it stands."""

    claim: Claim
    cell: str  # the id of its cell
    place: int  # of its sentence in that cell
    heading: str  # the nearest above


def stored(notebook: NotebookNode) -> Iterator[Stored]:
    """The claims in a notebook's outputs, in their order."""
    heading = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = ([heading] + re.findall(r"^##+ (?!Exercise )(.*)$", cell.source, re.MULTILINE))[-1]
            continue
        sentences: list[str] = []
        for output in cell.get("outputs", ()):
            for claim in map(parse, output.get("data", {}).get("text/plain", "").splitlines()):
                if claim:
                    if claim.sentence not in sentences:
                        sentences.append(claim.sentence)
                    yield Stored(claim, cell.id, sentences.index(claim.sentence), heading)


def words(claim: Claim, *, sentence: bool = True) -> str:
    """A claim's line without its sign and its invisible characters; without its sentence, the case and the numbers."""
    case = f" ({claim.case})" if claim.case else ""
    start = f"{claim.sentence}{case}: " if sentence else f"{claim.case}: " if claim.case else ""
    return f"{start}{claim.measured} {claim.required}"


# ------------------------------------------------------------------- index


def with_index(notebook: NotebookNode) -> NotebookNode:
    """The notebook, whose last cell is now the index of its claims if it has any."""
    notebook.cells = [cell for cell in notebook.cells if TAG not in tags(cell)]
    text = index(stored(notebook))
    if text:
        notebook.cells.append(v4.new_markdown_cell(text, id=TAG, metadata={"tags": [TAG]}))
    return notebook


def index(claims: Iterable[Stored]) -> str:
    """The index as markdown: folded, by section, the cases of a loop below their sentence. Empty without claims."""
    sections: dict[str, dict[tuple, list[Claim]]] = {}
    for one in claims:
        sections.setdefault(one.heading, {}).setdefault((one.cell, one.place), []).append(one.claim)
    if not sections:
        return ""
    count = sum(map(len, sections.values()))
    lines = ["## All claims of this chapter", "", "<details>", f"<summary>{count}, with what was measured</summary>"]
    for heading, sentences in sections.items():
        lines += ["", f"**[{_plain(heading)}](#{anchor(heading)})**", ""]
        for cases in sentences.values():
            looped = bool(cases[0].case)
            lines += [f"- {escaped(cases[0].sentence)}"] * looped
            lines += [f"{'  ' * looped}- {escaped(words(claim, sentence=not looped))}" for claim in cases]
    return "\n".join([*lines, "", "</details>"])


def anchor(heading: str) -> str:
    """What JupyterLab calls a heading in an address."""
    return quote(_plain(heading).replace(" ", "-"))


def _plain(heading: str) -> str:
    return re.sub(r"[`*]", "", heading.strip())


def escaped(line: str) -> str:
    """A line for markdown, where * _ ` $ | < and [ would mean something."""
    return re.sub(r"([*_`$|<\[\]\\])", r"\\\1", line)


# ----------------------------------------------------------------- numbers

_NUMBER = re.compile(r"(?<![\w.])(?<!\w[-−])(?:\d+(?:[,_]\d{3})*(?:\.\d+)?|\.\d+)(?:e[-−]?\d+)?(?:\s?%)?(?!\w)")
_PLACES = re.compile(r"\b(?:[Ss]ections?|[Cc]hapters?|[Ee]xercises?|§§?) ?\d[\d.]*(?:(?:, | and | to |–)\d[\d.]*)*")


def numbers(text: str) -> list[str]:
    """The numbers in a text as they are written, but for those in links, in code, in formulas and in names of places."""
    text = re.sub(r"\[[^\]]*\]\([^)]*\)|`[^`]*`|\$[^$]*\$", " ", text)
    return _NUMBER.findall(_PLACES.sub(" ", text))


def stands(written: str, line: str) -> bool:
    """Whether a number, perhaps rounded, stands in a line.

    Args:
        written: as `numbers` gives them: .29, 0.290, 4e-16, 29%, 10,000.
        line: a claim in words, as `words` gives it.
    """
    wanted, near = _number(written)
    for found in _NUMBER.findall(line):
        times = 100 if written.endswith("%") and not found.endswith("%") else 1
        if abs(times * _number(found)[0] - wanted) <= near:
            return True
    return False


def _number(written: str) -> tuple[float, float]:
    """A number, and how far from it another may be that rounds to it; integers below ten are taken exactly."""
    plain = re.sub(r"[,_% ]", "", written).replace("−", "-")
    mantissa, _, power = plain.partition("e")
    decimals = len(mantissa.partition(".")[2])
    if not decimals and not power and float(plain) < 10 and not written.endswith("%"):
        decimals = 2
    return float(plain), 0.5001 * 10.0 ** (int(power or 0) - decimals)


def missing(text: str, claims: Iterable[Claim]) -> list[str]:
    """The numbers of a text that stand in none of the claims."""
    lines = [words(claim) for claim in claims]
    return [written for written in numbers(text) if not any(stands(written, line) for line in lines)]
