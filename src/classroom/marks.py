"""The result of a submission, and marks as a table, as a page of feedback, and as a gradebook of nbgrader."""

import csv
import html
import io
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from classroom.submissions import visible
from courseware import notebooks


@dataclass
class Result:
    """What a submission got. The keys are the names of the cells that give marks."""

    marks: dict[str, list[float | None]]  # [mark, points]; no mark where the grader or the machine failed
    notes: dict[str, str] = field(default_factory=dict)  # why a mark is missing
    shown: dict[str, list[str]] = field(default_factory=dict)  # the answer and the error
    reason: str = ""  # why nothing was graded
    memory: int = 0  # the peak of its processes, in bytes
    seconds: float = 0.0

    @property
    def mark(self) -> float | None:
        """The sum, or none."""
        got = [got for got, _ in self.marks.values()]
        return None if None in got else sum(got)

    @property
    def most(self) -> float:
        return sum(points for _, points in self.marks.values())

    @property
    def why(self) -> str:
        """The reason, or for each exercise without its points what was wrong."""
        notes = (f"{exercise_name(name)}: {note}" for name, note in self.notes.items())
        return visible(self.reason or "; ".join(notes))


def failure(points: dict[str, float], reason: str) -> Result:
    """Of a submission that could not be graded by what it is: no points."""
    return Result({name: [0.0, most] for name, most in points.items()}, reason=reason)


def no_mark(points: dict[str, float], trouble: str) -> Result:
    """Where the grader or the machine failed; it is not kept."""
    reason = f"no mark, this is no fault of the submission: {trouble}"
    return Result({name: [None, most] for name, most in points.items()}, reason=reason)


def as_text(points: float | None) -> str:
    return "–" if points is None else f"{points:g}"


def exercise_name(grade_id: str) -> str:
    return grade_id.removeprefix("check_")


def plain(name: str) -> str:
    """A name that no spreadsheet takes for a formula."""
    return f"'{name}" if name[:1] in "=+-@\t\r" else name


def write_marks(path: Path, results: dict[str, Result], *, isolated: bool = True, status: dict[str, str] | None = None):
    """One line for each student, in the order given, as a whole or not at all.

    Args:
        isolated: whether there was a sandbox; the last column says it.
        status: what the platform from which it came says of a submission, as "late".
    """
    exercises = list(dict.fromkeys(name for result in results.values() for name in result.marks))
    out = io.StringIO()
    table = csv.writer(out)
    header = ["student", "mark", "points", *map(exercise_name, exercises), "seconds", "reason"]
    table.writerow([*header, *(["status"] if status else []), "sandbox"])
    for student, result in results.items():
        got = [result.marks[name][0] for name in exercises]
        line = [plain(student), result.mark, result.most, *got, result.seconds, result.why]
        table.writerow([*line, *([status.get(student, "")] if status else []), "bubblewrap" if isolated else "none"])
    notebooks.write(path, out.getvalue())


def write_gradebook(path: Path, template: Path, results: dict[str, Result]) -> int:
    """All marks in one gradebook of nbgrader, and in the results what counts there: points by hand too.

    It is made anew from one without marks, so that it fits the assignment; what stood in it of other students, and
    points, extra points and comments by hand, are taken over.

    Returns:
        how many points and comments were given by hand.
    """
    from nbgrader.api import Gradebook, MissingEntry

    name, new, by_hand = template.stem, template.with_name("gradebook.new"), 0
    empty = template.parents[2] / "gradebook.db"
    shutil.copyfile(empty, new)

    def parts(book: Gradebook, student: str, kind: str) -> dict:
        """cell → its grade, or its comment; none of a student who is not in the book"""
        with suppress(MissingEntry):
            return {part.name: part for part in getattr(book.find_submission_notebook(name, name, student), kind)}
        return {}

    marked = {student: result for student, result in results.items() if result.mark is not None}
    with (
        Gradebook(f"sqlite:///{path if path.exists() else empty}") as old,
        Gradebook(f"sqlite:///{new}") as book,
    ):
        for student in dict.fromkeys([*(each.student.id for each in old.assignment_submissions(name)), *marked]):
            book.add_student(student)
            book.add_submission(name, student)
            result, before = marked.get(student), parts(old, student, "grades")
            for cell, grade in parts(book, student, "grades").items():
                if cell in before:
                    grade.auto_score, grade.extra_credit = before[cell].auto_score, before[cell].extra_credit
                    grade.manual_score = before[cell].manual_score
                if result:
                    grade.auto_score = result.marks[cell][0]
                grade.needs_manual_grade = False
                by_hand += grade.manual_score is not None or bool(grade.extra_credit)
            before = parts(old, student, "comments")
            for cell, comment in parts(book, student, "comments").items():
                said = comment.manual_comment = before[cell].manual_comment if cell in before else None
                by_hand += said is not None
                if said and result:
                    check = f"check_{exercise_name(cell)}"
                    result.notes[check] = "; ".join(filter(None, [result.notes.get(check), said]))
        book.db.commit()
        for student, result in marked.items():
            for cell, grade in parts(book, student, "grades").items():
                result.marks[cell][0] = grade.score
    shutil.copyfile(new, path.with_suffix(".new"))  # first elsewhere: a database on a full disk fails at any line
    path.with_suffix(".new").replace(path)
    return by_hand


PAGE = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>body {{ max-width: 60rem; margin: 2rem auto; font-family: sans-serif }} pre {{ background: #f4f4f4; padding: 1em;
overflow-x: auto }} td, th {{ text-align: left; vertical-align: top; padding: 0.2em 1em 0.2em 0 }}</style>
{feedback}</html>
"""


def page(student: str, name: str, result: Result) -> str:
    """The feedback as a page. It loads nothing, and nothing that a student wrote is more than text."""
    return PAGE.format(title=html.escape(student), feedback=feedback(student, name, result))


def feedback(student: str, name: str, result: Result) -> str:
    """A table, and of each exercise that lost points the answer and the error, in HTML."""
    total = f"{as_text(result.mark)} of {result.most:g} points"
    parts = [f"<h1>{html.escape(student)}</h1><p>{html.escape(name)}: {total}. {html.escape(result.reason)}</p>"]
    parts += ["<table><tr><th>exercise</th><th>points</th><th>reason</th></tr>"]
    for exercise, (got, most) in result.marks.items():
        note = html.escape(result.notes.get(exercise, ""))
        words = [html.escape(exercise_name(exercise)), f"{as_text(got)} of {most:g}", note]
        parts.append("<tr>" + "".join(f"<td>{word}</td>" for word in words) + "</tr>")
    parts.append("</table>")
    for exercise, shown in result.shown.items():
        parts.append(f"<h2>{html.escape(exercise_name(exercise))}</h2>")
        parts += [f"<pre>{html.escape(part).replace('$', '&#36;')}</pre>" for part in shown if part]
    return "\n".join(parts)
