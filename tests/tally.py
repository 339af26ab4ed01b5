"""What a reader meets in each chapter, and whether its lesson keeps within bounds: `make tally CHAPTER=03`.

The lesson ends with the cell tagged `take-along`; the rest, without the index of claims, is the laboratory. Reading is
counted at 150 words a minute, 5 s for an open line of code, 3 s for a ✓, a minute and a half for a figure, and half a
minute for a prediction. Exercises take as long as their headings say.

What is folded costs no time: words in `<details>`, and the code of cells whose source is hidden. A folded table of
claims is one line with one ✓. A drought is what stands between two pictures or exercises.
"""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from courseware import notebooks
from courseware.dependencies import tags
from courseware.index import TAG as INDEX

LEAST_EXERCISES = 3
DROUGHT = (20, 4)  # open lines of code and ✓ between two pictures or exercises of a lesson, at most
BOUNDS = {  # minutes of reading, ✓ lines and open lines of code that the lesson of each chapter has at most
    "01": (32, 8, 110),
    **dict.fromkeys(("02", "03", "04"), (40, 12, 150)),
    **dict.fromkeys(("05", "08"), (50, 14, 170)),
    **dict.fromkeys(("06", "07", "09"), (40, 10, 130)),
}
MAY_BE_FOLDED = r"^\s*(import|from) |\b\w*train\w*\(|\b(STEPS|PACE)\b|hook"  # and parameters, trainings


@dataclass
class Tally:
    """What stands in a lesson or a laboratory: words of prose, open lines of code, and how many of each.

    `asked` are the minutes that the headings of the exercises say, `drought` the most lines of code and the most ✓
    between two pictures or exercises.
    """

    words: int = 0
    lines: int = 0
    ticks: int = 0
    tables: int = 0
    figures: int = 0
    predictions: int = 0
    exercises: int = 0
    asked: int = 0
    drought: tuple[int, int] = (0, 0)

    @property
    def minutes(self) -> float:
        """Of reading."""
        code = 5 * self.lines + 3 * self.ticks
        return (0.4 * self.words + code + 90 * self.figures + 30 * self.predictions) / 60

    def __str__(self) -> str:
        return (
            f"{self.minutes:3.0f} min of reading, {self.asked:3} of exercises: {self.words:5} words, "
            f"{self.lines:3} open lines, {self.ticks:3} ✓, {self.tables:2} tables, {self.figures:2} figures, "
            f"{self.predictions} predictions, {self.exercises} exercises; "
            f"longest drought {self.drought[0]} lines, {self.drought[1]} ✓"
        )


def tally(cells: Iterable[NotebookNode]) -> Tally:
    """What stands in these cells."""
    counted, since = Tally(), (0, 0)  # the last picture or exercise
    for cell in cells:
        if cell.cell_type == "markdown":
            shown = re.sub(r"<details>.*?</details>", "", cell.source, flags=re.DOTALL)
            counted.words += len(re.findall(r"\w+", shown))
            counted.asked += sum(map(int, re.findall(r"^#+ Exercise.*?(\d+) min", cell.source, re.MULTILINE)))
            continue
        lines = 0 if is_folded(cell) else sum(bool(line.strip()) for line in cell.source.splitlines())
        data = [output.get("data", {}) for output in cell.outputs]
        tables = sum(map(is_table, data))
        texts = [output.get("text", "") for output in cell.outputs]
        texts += [each.get("text/plain", "") for each in data if not is_table(each)]
        ticks = tables + len(re.findall(r"^✓ ", "\n".join(texts), re.MULTILINE))
        pictures, exercise = sum("image/png" in each for each in data), "exercise" in tags(cell)
        since = (0, 0) if pictures or exercise else (since[0] + lines, since[1] + ticks)
        counted.drought = tuple(map(max, counted.drought, since))
        counted.lines += lines
        counted.ticks += ticks
        counted.tables += tables
        counted.figures += pictures
        counted.predictions += "predict(" in cell.source
        counted.exercises += exercise
    return counted


def parts(notebook: NotebookNode) -> tuple[list[NotebookNode], list[NotebookNode]]:
    """The cells of the lesson, and those of the laboratory. Without a cell to take along all is lesson."""
    cells = [cell for cell in notebook.cells if INDEX not in tags(cell)]
    end = next((number for number, cell in enumerate(cells, 1) if "take-along" in tags(cell)), len(cells))
    return cells[:end], cells[end:]


def is_table(data: NotebookNode) -> bool:
    """Whether an output is a folded table of claims."""
    return "<details" in data.get("text/html", "") and "✓" in data.get("text/plain", "")


def is_folded(cell: NotebookNode) -> bool:
    """Whether a cell's code is shown only when it is asked for."""
    return bool(cell.metadata.get("jupyter", {}).get("source_hidden"))


def beyond(notebook: NotebookNode, number: str) -> list[str]:
    """Where the lesson of the chapter with this number, "03", is out of bounds or its header says something else."""
    if number not in BOUNDS:
        return [f"chapter {number} has no bounds in tests/tally.py"]
    lesson, laboratory = parts(notebook)
    counted, more = tally(lesson), tally(laboratory)
    minutes, ticks, lines = BOUNDS[number]
    found = [
        f"{have} {what}; at most {most}"
        for have, what, most in (
            (round(counted.minutes), "minutes of reading", minutes),
            (counted.ticks, "✓", ticks),
            (counted.lines, "open lines of code", lines),
            (counted.drought[0], "open lines of code between two pictures or exercises", DROUGHT[0]),
            (counted.drought[1], "✓ between two pictures or exercises", DROUGHT[1]),
            (counted.tables, "folded tables", 0),
        )
        if have > most
    ]
    if counted.exercises < LEAST_EXERCISES:
        found.append(f"{counted.exercises} exercises; at least {LEAST_EXERCISES}")
    for cell in lesson:
        if is_folded(cell) and not re.search(MAY_BE_FOLDED, cell.source, re.MULTILINE):
            found.append(f"the code of {cell.id} is folded, and imports, sets, trains or hooks nothing")
    header = notebook.cells[0].source
    stated = re.search(r"\*\*Lesson\*\* (\d+) min of reading, (\d+) of exercises", header)
    further = re.search(r"\*\*Laboratory\*\* (\d+) min more", header)
    if not stated:
        return [*found, "the header does not say **Lesson** … min of reading, … of exercises"]
    for what, said, have, about in (
        ("reading", stated[1], counted.minutes, 1),
        ("exercises", stated[2], counted.asked, 0),
        ("laboratory", further[1] if further else 0, more.minutes + more.asked, 5),
    ):
        if abs(int(said) - have) > about:
            found.append(f"{what}: the header says {said} min, and {have:.0f} are counted")
    return found


def main(wanted: list[str], folder: Path = notebooks.NOTEBOOKS) -> int:
    """Print the tally of the chapters with these numbers, or of all. Returns the exit status."""
    for path in notebooks.chapters(wanted, folder):
        notebook = notebooks.read(path)
        for part, cells in zip(("lesson", "laboratory"), parts(notebook)):
            print(f"{path.name[:2]} {part:10} {tally(cells)}")
        for complaint in beyond(notebook, path.name[:2]):
            print(f"   {complaint}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
