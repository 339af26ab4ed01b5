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
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode

from courseware import notebooks
from courseware.index import TAG as INDEX

FOLDED = "jp-MarkdownHeadingCollapsed"  # how JupyterLab stores that the section of a heading is folded
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
    """What stands in a lesson or a laboratory.

    Attributes:
        words: of prose, outside of what is folded.
        lines: of code, in cells whose source is shown; empty ones aside.
        folded: lines of code in the other cells.
        ticks, tables: ✓ that are seen at once, and tables of claims, which show one each.
        claims, figures, predictions, exercises: how many there are.
        asked: minutes that the headings of the exercises say.
        before: lines of code above the first picture, or None without a picture.
        drought: the most lines of code, and the most ✓, between two pictures or exercises.
    """

    words: int = 0
    lines: int = 0
    folded: int = 0
    ticks: int = 0
    tables: int = 0
    claims: int = 0
    figures: int = 0
    predictions: int = 0
    exercises: int = 0
    asked: int = 0
    before: int | None = None
    drought: tuple[int, int] = (0, 0)
    _since: tuple[int, int] = field(default=(0, 0), repr=False)  # the last picture or exercise

    @property
    def minutes(self) -> float:
        """Of reading."""
        code = 5 * self.lines + 3 * self.ticks
        return (0.4 * self.words + code + 90 * self.figures + 30 * self.predictions) / 60

    def __str__(self) -> str:
        first = "" if self.before is None else f" (the first below {self.before} lines)"
        return (
            f"{self.minutes:3.0f} min of reading, {self.asked:3} of exercises: {self.words:5} words, "
            f"{self.lines:3} open lines, {self.folded:3} folded, {self.ticks:3} ✓, {self.claims:3} claims, "
            f"{self.tables:2} tables, {self.figures:2} figures{first}, {self.predictions} predictions, "
            f"{self.exercises} exercises; longest drought {self.drought[0]} lines, {self.drought[1]} ✓"
        )

    def read(self, text: str) -> None:
        """Count a cell of Markdown."""
        shown = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
        self.words += len(re.findall(r"\w+", shown))
        self.asked += sum(map(int, re.findall(r"^#+ Exercise.*?(\d+) min", text, re.MULTILINE)))

    def run(self, cell: NotebookNode) -> None:
        """Count a cell of code and what it shows."""
        written = sum(bool(line.strip()) for line in cell.source.splitlines())
        lines = 0 if is_folded(cell) else written
        shown = [output.get("data", {}) for output in cell.outputs]
        tables = sum(map(is_table, shown))
        texts = [
            output.get("text", "") + data.get("text/plain", "")
            for output, data in zip(cell.outputs, shown)
            if not is_table(data)
        ]
        ticks = tables + sum(len(re.findall(r"^✓ ", text, re.MULTILINE)) for text in texts)
        pictures = sum("image/png" in data for data in shown)
        exercise = "exercise" in cell.metadata.get("tags", ())
        if pictures and self.before is None:
            self.before = self.lines
        self._since = (0, 0) if pictures or exercise else (self._since[0] + lines, self._since[1] + ticks)
        self.drought = (max(self.drought[0], self._since[0]), max(self.drought[1], self._since[1]))
        self.lines += lines
        self.folded += written - lines
        self.ticks += ticks
        self.tables += tables
        self.claims += len(re.findall(r"\bclaim\(", cell.source))
        self.figures += pictures
        self.predictions += "predict(" in cell.source
        self.exercises += exercise


def tally(cells: Iterable[NotebookNode]) -> Tally:
    """What stands in these cells."""
    counted = Tally()
    for cell in cells:
        if cell.cell_type == "markdown":
            counted.read(cell.source)
        elif cell.cell_type == "code":
            counted.run(cell)
    return counted


def parts(notebook: NotebookNode) -> tuple[list[NotebookNode], list[NotebookNode]]:
    """The cells of the lesson, and those of the laboratory. Without a cell to take along all is lesson."""
    cells = [cell for cell in notebook.cells if INDEX not in cell.metadata.get("tags", ())]
    ends = [number for number, cell in enumerate(cells, 1) if "take-along" in cell.metadata.get("tags", ())]
    end = ends[0] if ends else len(cells)
    return cells[:end], cells[end:]


def is_lesson(notebook: NotebookNode) -> bool:
    """Whether the header of the chapter says how long its lesson is."""
    return "**Lesson**" in notebook.cells[0].source


def is_table(data: NotebookNode) -> bool:
    """Whether an output is a folded table of claims."""
    return "<details" in data.get("text/html", "") and "✓" in data.get("text/plain", "")


def is_folded(cell: NotebookNode) -> bool:
    """Whether a cell's code is shown only when it is asked for."""
    return bool(cell.metadata.get("jupyter", {}).get("source_hidden"))


def beyond(notebook: NotebookNode, number: str) -> list[str]:
    """Where the lesson of the chapter with this number, "03", is out of bounds or its header says something else."""
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
        folded = cell.cell_type == "code" and is_folded(cell)
        if folded and not re.search(MAY_BE_FOLDED, cell.source, re.MULTILINE):
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


def main(chapters: list[str], folder: Path = notebooks.NOTEBOOKS) -> int:
    """Print the tally of the chapters with these numbers, or of all. Returns the exit status."""
    for path in sorted(folder.glob("[0-9]*.ipynb")):
        if not chapters or path.name.startswith(tuple(chapters)):
            notebook = notebooks.read(path)
            for part, cells in zip(("lesson", "laboratory"), parts(notebook)):
                print(f"{path.name[:2]} {part:10} {tally(cells)}")
            for complaint in beyond(notebook, path.name[:2]) if is_lesson(notebook) else ():
                print(f"   {complaint}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
