"""What a reader has done: `check` notes it, and the start page shows it.

It is kept in `progress.json`, beside the notebooks and only where there is such a file: `make lab` lays one into the
reader's own copy, `my/`. So nothing is remembered of a run in `notebooks/`, of a test or of a submission.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from IPython.display import Markdown

FILE = "progress.json"
CHAPTER = re.compile(r"\| \[(.*?)\]\(notebooks/(\d\d_(\w+)\.ipynb)\) \| (.*) \| (.*?) \|")  # a row of README.md


def note(chapter: str, exercise: str, sign: str, folder: Path = Path()) -> None:
    """Remember what a check has said. A file that is broken or cannot be written is no reason to stop.

    Args:
        chapter: its folder's name in `posenc.chapters`.
        exercise: its name.
        sign: ✓, ✗, or ○ where it was not attempted.
        folder: in which the notebook runs.
    """
    if not (folder / FILE).exists():
        return
    before = right, last = _read(folder)
    here = f"{chapter}/{exercise}"
    if sign == "✓":
        right = right | {here}
    if sign != "○" or not last.startswith(f"{chapter}/"):  # who runs a whole chapter has not read all of it
        last = here
    if (right, last) != before:
        with suppress(OSError):
            new = folder / f".{FILE}.{os.getpid()}"
            new.write_text(json.dumps({"right": sorted(right), "last": last}), encoding="utf-8")
            os.replace(new, folder / FILE)


def _read(folder: Path) -> tuple[frozenset[str], str]:
    """The exercises that were right, and the one that was checked last."""
    try:
        stored = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return frozenset(map(str, stored["right"])), str(stored["last"])
    except (OSError, ValueError, KeyError, TypeError):
        return frozenset(), ""


def contents() -> Markdown:
    """The chapters, with what the reader has done of each; for the start page."""
    return Markdown(overview(Path()))


def overview(folder: Path) -> str:
    """README's table of chapters in Markdown, with the exercises that are done, and a link to the last one.

    Args:
        folder: of the notebooks, beside README.md.
    """
    right, last = _read(folder)
    lines = ["| chapter | the question | time | exercises |", "|---|---|---|---|"]
    for title, file, chapter, question, time in CHAPTER.findall(_text(folder.resolve().parent / "README.md")):
        asked = dict(_exercises(folder / file))
        time = re.sub(r"(?<=\d) (?=min)", "\N{NO-BREAK SPACE}", time)
        done = sum(f"{chapter}/{name}" in right for name in asked)
        lines.append(f"| [{title}]({file}) | {question} | {time} | {'✓ ' if done else ''}{done} of {len(asked)} |")
        for name, (heading, cell) in asked.items():
            if last == f"{chapter}/{name}":
                heading = re.sub(r" · [●○].*", "", heading)  # how hard it is and how long it takes
                lines.insert(0, f"**Go on where you were:** [{title}: {heading}]({file}#cell-id={cell})\n")
    return "\n".join(lines)


def _exercises(path: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """The exercises of a notebook: name, and the heading above it with its cell's id."""
    heading = "", ""
    try:
        for cell in json.loads(_text(path))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown" and (found := re.findall(r"^#+ (.*)$", source, re.MULTILINE)):
                heading = found[-1], cell.get("id", "")
            if "ex" in cell["metadata"]:
                yield cell["metadata"]["ex"]["id"], heading
    except (ValueError, KeyError, TypeError):  # a notebook that the reader has broken
        return


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
