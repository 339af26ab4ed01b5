"""Marks and feedback for a folder of submissions: `make grade CHAPTER=04 FROM=folder`.

A submission is a notebook NAME.ipynb in the folder, or a folder NAME with the chapter's notebook and whatever it
imports. Each is graded in a process of its own, several at once, and leaves its result in
classroom/graded/04_name/results. Started again, only what is new or changed is graded. Trouble of the grader or the
machine gives no mark and leaves no result, so that the next run tries again. In the end there are

    classroom/graded/04_name/marks.csv      a line for each submission, with the reason where a mark is missing
    classroom/graded/04_name/feedback/      a page for each
    classroom/graded/04_name/gradebook.db   the same marks for nbgrader's own tools
"""

import argparse
import copy
import csv
import hashlib
import html
import json
import multiprocessing
import multiprocessing.connection
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from courseware import install, notebooks
from courseware.classroom import release, sandbox
from courseware.classroom.release import CLASSROOM, ROOT, ClassroomError

FIRST_USER = 50_000  # as root, submissions run under the user numbers from here on
BIGGEST = 20_000_000  # bytes of a submitted notebook or of the files beside it
MOST = 5_000  # files and folders, or cells
DEEPEST = 30  # folders in folders


@dataclass(frozen=True)
class Submission:
    """What a student handed in: the notebook if there is one, what lies beside it, and why it cannot be graded."""

    student: str
    notebook: Path | None
    beside: tuple[Path, ...] = ()
    fault: str = ""  # of the student
    trouble: str = ""  # of the machine

    def files(self) -> Iterator[tuple[str, Path]]:
        """(name, path) of the files that go with the notebook; a module of worked functions never does."""
        for path in self.beside if self.notebook else ():
            if path != self.notebook and path.is_relative_to(self.notebook.parent):
                inside = path.relative_to(self.notebook.parent)
                if release.WORKED not in {part.partition(".")[0] for part in inside.parts}:
                    yield str(inside), path

    def fingerprint(self) -> str:
        """Changes when anything in it changes."""
        digest = hashlib.sha256(self.fault.encode())
        for name, path in [("", self.notebook), *self.files()] if self.notebook else []:
            size = path.stat().st_size
            digest.update(os.fsencode(f"{name} {size} ") + (path.read_bytes() if size <= BIGGEST else b""))
        return digest.hexdigest()


def _regular(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)


def _label(path: Path) -> str:
    """A name that can be printed and written: file names may be in any encoding, and fill 255 bytes."""
    name = unicodedata.normalize("NFC", os.fsencode(path).decode(errors="backslashreplace"))
    return name.encode()[:240].decode(errors="ignore")


def _files(folder: Path) -> list[Path]:
    """The regular files below a folder; links and devices are left out. A ClassroomError says where there are too many, or too deep."""
    found, folders = [], [folder]
    for each in folders:  # grows
        if len(each.parts) > len(folder.parts) + DEEPEST:
            raise ClassroomError(f"its folders are nested more than {DEEPEST} deep")
        for entry in os.scandir(each):
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                found.append(Path(entry.path))
        if len(found) + len(folders) > MOST:
            raise ClassroomError(f"it has more than {MOST} files and folders")
    return sorted(found)


def _submission(student: str, path: Path, name: str) -> tuple[Submission, list[Path]]:
    """What lies at a path, and its notebooks from which the newest was taken."""
    if not path.is_dir():
        return Submission(student, path), [path]
    try:
        files = _files(path)
    except ClassroomError as error:
        return Submission(student, None, fault=str(error)), []
    except OSError as error:
        return Submission(student, None, trouble=f"{error.strerror}: {_label(Path(error.filename).name)}"), []
    inside = [p for p in files if p.suffix == ".ipynb" and ".ipynb_checkpoints" not in p.parts]
    inside = sorted([p for p in inside if p.stem == name] or inside, key=_age)
    return Submission(student, inside[-1] if inside else None, tuple(files)), inside


def _age(path: Path) -> tuple[int, str]:
    """Sorts the newest last; equally new ones by name."""
    return path.stat().st_mtime_ns, str(path)


def find_submissions(folder: Path, name: str) -> tuple[list[Submission], list[str]]:
    """The submissions of a folder, and a line for each thing in it that is not graded.

    Of several notebooks of a student the newest is graded; in a folder, of those that have the assignment's name.

    Args:
        name: of the assignment, as in 04_rotary_encoding.
    """
    found: dict[str, list[tuple[Submission, list[Path]]]] = {}
    lines = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir() and not path.is_symlink() or path.suffix == ".ipynb" and _regular(path):
            student = _label(Path(path.name if path.is_dir() else path.stem))
            found.setdefault(student, []).append(_submission(student, path, name))
        else:
            lines.append(f"{_label(Path(path.name))} is neither a notebook nor a folder: not graded")
    chosen = []
    for student, several in found.items():
        several.sort(key=lambda each: _age(each[0].notebook) if each[0].notebook else (0, ""))
        chosen.append(several[-1][0])
        older = [path for _, notebooks in several for path in notebooks if path != chosen[-1].notebook]
        if older:
            names = ", ".join(_label(path.relative_to(folder)) for path in older)
            newest = _label(chosen[-1].notebook.relative_to(folder))
            lines.append(f"{student}: {newest} is the newest notebook and is graded; not graded: {names}")
    return chosen, lines


# ------------------------------------------------------------ one submission


def tidy(notebook: NotebookNode, released: NotebookNode) -> None:
    """Give each cell the role that it was released with, and no other metadata, whatever the submission says.

    Of a cell that was duplicated the last keeps its role, as it is the last that counts when all are run. A check
    that is missing is put at the end.
    """
    roles = {
        cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader
        for cell in released.cells
        if "nbgrader" in cell.metadata
    }
    for cell in reversed(notebook.cells):
        claimed = cell.metadata.get("nbgrader", {})
        role = roles.pop(claimed.get("grade_id"), None) if isinstance(claimed, dict) else None
        cell.metadata = nbformat.from_dict({"nbgrader": role} if role else {})
    for cell in released.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") in roles and cell.metadata.nbgrader.get("grade"):
            notebook.cells.append(copy.deepcopy(cell))


def lay_out(submission: Submission, base: Path, kernels: Path, number: int, template: Path):
    """The folders in which a submission is graded; the first is nbgrader's, the second the kernel's.

    Args:
        template: the notebook as it was released, in a folder with its name, beside the gradebook.

    Raises:
        ClassroomError: there is no notebook, it is none, or all of it is too big.
    """
    course, own, name = base / str(number), kernels / str(number), template.stem
    files = dict(submission.files())
    if submission.notebook is None:
        raise ClassroomError(submission.fault or f"there is no notebook {name}.ipynb in the folder")
    size = sum(path.stat().st_size for path in [submission.notebook, *files.values()])
    if size > BIGGEST:
        raise ClassroomError(f"it has {size // 1_000_000} MB; {BIGGEST // 1_000_000} are the most")
    content, released = submission.notebook.read_bytes(), nbformat.read(template, as_version=4)
    if content.count(b'"cell_type"') > MOST:
        raise ClassroomError(f"it has more than {MOST} cells")
    try:
        notebook = nbformat.reads(content.decode(), as_version=4)
        nbformat.validate(notebook)
        tidy(notebook, released)
    except Exception as error:  # noqa: BLE001  a file can be anything
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ClassroomError(f"it is not a notebook that can be read: {reason[0][:100]}") from None
    handed_in = course / "submitted" / "submission" / name / f"{name}.ipynb"
    handed_in.parent.mkdir(parents=True)
    shutil.copy(template.parents[2] / "gradebook.db", course)
    nbformat.write(notebook, handed_in)
    shutil.copytree(kernels / "home", own / "home")
    for folder in ("work", "tmp", "run", "given"):
        (own / folder).mkdir()
    for beside, path in files.items():
        (own / "work" / beside).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, own / "work" / beside)
    return course, own


def failure(marks: dict[str, float], reason: str) -> dict:
    """The result of a submission that could not be graded by what it is: no points."""
    return {"marks": {name: [0.0, points] for name, points in marks.items()}, "notes": {}, "reason": reason}


def no_mark(marks: dict[str, float], trouble: str) -> dict:
    """The result where the grader or the machine failed; it is not kept."""
    told = {"reason": f"no mark, this is no fault of the submission: {trouble}", "trouble": True}
    return failure(marks, "") | {"marks": {name: [None, points] for name, points in marks.items()}} | told


PAGE = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{student}</title>
<style>body {{ max-width: 60rem; margin: 2rem auto; font-family: sans-serif }} pre {{ background: #f4f4f4; padding: 1em;
overflow-x: auto }} td, th {{ text-align: left; vertical-align: top; padding: 0.2em 1em 0.2em 0 }}</style>
<h1>{student}</h1><p>{name}: {sum}. {reason}</p><table><tr><th>exercise</th><th>points</th><th>reason</th></tr>
{lines}</table>
{parts}</html>
"""


def page(student: str, name: str, result: dict) -> str:
    """The feedback: a table, and of each exercise that lost points the answer and the error. All of it is plain text."""
    lines, parts = [], []
    for exercise, (got, most) in result["marks"].items():
        words = [_exercise(exercise), f"{_number(got)} of {most:g}", result["notes"].get(exercise, "")]
        lines.append("".join(f"<td>{html.escape(word)}</td>" for word in words))
    for exercise, (answer, error) in result.get("shown", {}).items():
        parts.append(f"<h2>{html.escape(_exercise(exercise))}</h2>")
        parts += [f"<pre>{html.escape(text)}</pre>" for text in (answer, error) if text]
    total = f"{_number(mark(result))} of {sum(most for _, most in result['marks'].values()):g} points"
    words = {"student": student, "name": name, "sum": total, "reason": result["reason"]}
    escaped = {key: html.escape(word) for key, word in words.items()}
    rows = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return PAGE.format(**escaped, lines=rows, parts="\n".join(parts))


# --------------------------------------------------------------- all of them


def new_template(source: Path, folder: Path) -> Path:
    """The notebook as it is released, and in the folder a gradebook that knows it and nobody's marks."""
    inside = folder / "source" / source.stem / source.name
    inside.parent.mkdir(parents=True)
    shutil.copy(source, inside)
    release.generate(folder, source.stem)
    return folder / "release" / source.stem / source.name


def points(released: Path) -> dict[str, float]:
    """The points of each check."""
    roles = (cell.metadata.get("nbgrader", {}) for cell in nbformat.read(released, as_version=4).cells)
    return {role["grade_id"]: float(role["points"]) for role in roles if role.get("grade")}


class Grader:
    """Grades the submissions of one assignment, several at once, and remembers what is done.

    Args:
        source: the teacher's notebook.
        template: the notebook as released, below the folder of a gradebook without marks.
        graded: the folder of the results.
        hide: what the submissions must not see.
        limits: what one submission may take.
    """

    def __init__(self, source: Path, template: Path, graded: Path, hide: list[Path], limits):
        self.name, self.source, self.template = source.stem, source, template
        self.graded, self.limits, self.points = graded, limits, points(template)
        (graded / "results").mkdir(parents=True, exist_ok=True)
        self.hide = tuple(
            os.path.realpath(p) for p in [*hide, ROOT, tempfile.gettempdir(), Path.home(), "/dev/shm"]
        )
        self.isolated = os.environ.get("SANDBOX") != "none"
        if self.isolated and (problem := sandbox.missing()):
            raise ClassroomError(problem)

    def result(self, submission: Submission) -> Path:
        return self.graded / "results" / f"{submission.student}.json"

    def done(self, submission: Submission) -> dict | None:
        """The result of an earlier run, if neither the submission nor the assignment has changed since."""
        try:
            result = json.loads(self.result(submission).read_text())
            return result if result.get("of") == self._fingerprint(submission) else None
        except (OSError, ValueError):
            return None

    def _fingerprint(self, submission: Submission) -> str:
        return hashlib.sha256(self.source.read_bytes() + submission.fingerprint().encode()).hexdigest()

    def grade(self, submissions: list[Submission], *, workers: int) -> Iterator[tuple[Submission, dict]]:
        """Grade them; each with its result, as they end."""
        from courseware.classroom import autograde  # noqa: F401  once, before the forks

        fork = multiprocessing.get_context("fork")
        base, kernels = Path(tempfile.mkdtemp(prefix="grade-")), Path(tempfile.mkdtemp(prefix="run-"))
        kernels.chmod(0o711)
        (kernels / "home").mkdir()
        first_home = os.environ | {"HOME": str(kernels / "home")}
        fonts = [install.PYTHON, "-c", "import matplotlib.font_manager"]  # makes a cache, in half a second
        subprocess.run(fonts, env=first_home, check=False)
        running: dict = {}
        waiting = list(enumerate(submissions))
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    number, submission = waiting.pop(0)
                    process = fork.Process(target=self._one, args=(submission, base, kernels, number))
                    process.start()
                    running[process] = submission, time.monotonic(), number
                multiprocessing.connection.wait([process.sentinel for process in running], timeout=1)
                for process, (submission, start, number) in list(running.items()):
                    if process.is_alive() and time.monotonic() < start + self.limits.seconds + 60:
                        continue
                    _end(process)
                    del running[process]
                    try:
                        found = json.loads((base / f"{number}.json").read_text())
                    except (OSError, ValueError):
                        found = no_mark(self.points, "its grader died")
                    yield submission, self._keep(submission, found, start)
                    _remove(kernels / str(number), base / str(number))
        finally:
            for process in running:
                _end(process)
            _remove(base, kernels)

    def _one(self, submission: Submission, base: Path, kernels: Path, number: int) -> None:
        """In a process of its own: grade, and leave the result as JSON."""
        from courseware.classroom import autograde

        try:
            if submission.trouble:
                raise OSError(submission.trouble)
            course, own = lay_out(submission, base, kernels, number, self.template)
            found = autograde.run(self._place(autograde, course, own, number), self.name, self.limits)
        except ClassroomError as error:
            found = failure(self.points, str(error))
        except Exception as error:  # noqa: BLE001  whatever it is, the student has not done it
            found = no_mark(self.points, ascii(f"{type(error).__name__}: {error}")[1:-1][:300])
        notebooks.write(base / f"{number}.json", json.dumps(found))

    def _place(self, autograde, course: Path, own: Path, number: int):
        python = os.path.realpath(install.PYTHON)
        needs = [install.VENV, ROOT / "src" / "posenc", Path(python).parents[1]]
        below = [os.path.realpath(path) for path in needs]
        keep = [path for path in below if any(path.startswith(f"{folder}/") for folder in self.hide)]
        return autograde.Place(
            course=course,
            own=own,
            user=FIRST_USER + number if os.geteuid() == 0 else 0,
            hide=self.hide,
            keep=(str(own), *keep),
            isolated=self.isolated,
            python=os.path.join(os.path.realpath(install.VENV), "bin", "python"),
        )

    def _keep(self, submission: Submission, found: dict, start: float) -> dict:
        """Store a result, unless it says nothing about the submission."""
        found["seconds"] = round(time.monotonic() - start, 1)
        if "trouble" not in found:
            try:
                notebooks.write(
                    self.result(submission), json.dumps(found | {"of": self._fingerprint(submission)})
                )
            except OSError as error:
                return no_mark(self.points, str(error)) | {"seconds": found["seconds"]}
        return found


def _remove(*folders: Path) -> None:
    """By the system's own command, which minds neither depth nor names."""
    subprocess.run(["rm", "-rf", "--", *folders], check=False)


def _end(process: multiprocessing.Process) -> None:
    """End a process and all below it."""
    import psutil

    below = []
    with suppress(psutil.Error):
        below = psutil.Process(process.pid).children(recursive=True)
    for other in [*below, process]:
        with suppress(psutil.Error):  # it may just have ended
            other.kill()
    process.join()


# -------------------------------------------------------------------- marks


def mark(result: dict) -> float | None:
    """The sum of the points, or none where the grader had trouble."""
    return None if "trouble" in result else sum(got for got, _ in result["marks"].values())


def _number(points: float | None) -> str:
    return "–" if points is None else f"{points:g}"


def why(result: dict) -> str:
    """The reason, or for each exercise without its points what was wrong."""
    return result["reason"] or "; ".join(
        f"{_exercise(name)}: {note}" for name, note in result["notes"].items()
    )


def _exercise(grade_id: str) -> str:
    return grade_id.removeprefix("check_")


def _plain(name: str) -> str:
    """A name that no spreadsheet takes for a formula."""
    return f"'{name}" if name[:1] in "=+-@\t\r" else name


def write_marks(path: Path, results: dict[str, dict], *, isolated: bool = True) -> None:
    """One line for each student, in the order given; the last column says where there was no sandbox."""
    exercises = list(dict.fromkeys(name for result in results.values() for name in result["marks"]))
    with path.open("w", newline="", encoding="utf-8") as file:
        table, sandbox_word = csv.writer(file), "bubblewrap" if isolated else "none"
        table.writerow(
            ["student", "mark", "points", *map(_exercise, exercises), "seconds", "reason", "sandbox"]
        )
        for student, result in results.items():
            got = [result["marks"][name][0] for name in exercises]
            points = sum(most for _, most in result["marks"].values())
            table.writerow(
                [_plain(student), mark(result), points, *got, result["seconds"], why(result), sandbox_word]
            )


def write_gradebook(path: Path, template: Path, results: dict[str, dict]) -> int:
    """All marks in one gradebook of nbgrader, and in the results the points that a teacher gave by hand.

    It is made anew from one without marks, so that it fits the assignment; what stood in it of other students, and
    points, extra points and comments by hand, are taken over.

    Returns:
        how many points and comments were given by hand.
    """
    from nbgrader.api import Gradebook

    name, new, by_hand = template.stem, path.with_suffix(".new"), 0
    shutil.copyfile(template.parents[2] / "gradebook.db", new)

    def grades_and_comments(book, student: str):
        notebook = book.find_submission_notebook(name, name, student)
        return [{part.name: part for part in parts} for parts in (notebook.grades, notebook.comments)]

    with Gradebook(f"sqlite:///{new}") as book:
        before = {}
        if path.exists():
            with Gradebook(f"sqlite:///{path}") as old:
                for submission in old.assignment_submissions(name):
                    grades, comments = grades_and_comments(old, submission.student.id)
                    kept = {key: (g.auto_score, g.manual_score, g.extra_credit) for key, g in grades.items()}
                    said = {key: comment.manual_comment for key, comment in comments.items()}
                    before[submission.student.id] = kept, said
        marked = [student for student, result in results.items() if "trouble" not in result]
        for student in dict.fromkeys([*before, *marked]):
            book.add_student(student)
            book.add_submission(name, student)
            (scores, said), marks = before.get(student, ({}, {})), results.get(student, {}).get("marks", {})
            grades, comments = grades_and_comments(book, student)
            for key, grade in grades.items():
                auto, grade.manual_score, extra = scores.get(key, (None, None, None))
                grade.auto_score, grade.extra_credit = (
                    marks[key][0] if student in marked else auto,
                    extra or 0.0,
                )
                grade.needs_manual_grade = False
                if grade.manual_score is not None or extra:
                    by_hand += 1
                    if student in marked:
                        hand = grade.auto_score if grade.manual_score is None else grade.manual_score
                        marks[key][0] = hand + (extra or 0.0)
            for key in comments.keys() & said.keys():
                comments[key].manual_comment = said[key]
                by_hand += said[key] is not None
                if said[key] and student in marked:
                    check, notes = f"check_{_exercise(key)}", results[student]["notes"]
                    notes[check] = "; ".join(filter(None, [notes.get(check), said[key]]))
        book.db.commit()
    new.replace(path)
    return by_hand


def kept_from(isolated: bool) -> str:
    """What the submissions are kept from, in a sentence for the teacher."""
    user = "a user of their own each" if os.geteuid() == 0 else "your user"
    if isolated:
        return f"Submissions run behind bubblewrap, as {user}: no network, and none of the class's files or yours."
    return f"SANDBOX=none: submissions run as {user}, HAVE the network and can read and change what that user can."


def _count(word: str) -> int:
    if not word.isdigit() or int(word) < 1:
        raise argparse.ArgumentTypeError(
            f"JOBS is the number of submissions graded at once, 1 or more, not {word}"
        )
    return int(word)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="make grade", description=__doc__.partition("\n")[0])
    parser.add_argument("chapter")
    parser.add_argument("folder")
    parser.add_argument("--classroom", type=Path, default=CLASSROOM)
    parser.add_argument("--workers", type=_count, default=os.cpu_count())
    parser.add_argument("--cell-seconds", type=int, default=30)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    given = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            grade(given, Path(scratch))
    except (ClassroomError, notebooks.BuildError, OSError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("\nStopped. The same command again goes on from here.")


def grade(given: argparse.Namespace, scratch: Path) -> None:
    """Grade what is left, and write the marks of all."""
    from tqdm import tqdm

    from courseware.classroom.autograde import Limits

    path = release.chapter(given.chapter)
    folder = Path(given.folder).resolve()
    if not given.folder or not folder.is_dir():
        raise ClassroomError(f"FROM is the folder of the submissions; there is no folder {given.folder!r}.")
    classroom = given.classroom.resolve()
    source = classroom / "source" / path.stem / path.name
    if not source.exists():
        release.assignment(path, classroom)
    submissions, lines = find_submissions(folder, path.stem)
    if not submissions:
        raise ClassroomError(f"{given.folder} holds no submission: neither a notebook nor a folder.")
    limits = Limits(cell_seconds=given.cell_seconds, seconds=given.seconds, gigabytes=given.gigabytes)
    graded = classroom / "graded" / path.stem
    template = new_template(source, scratch)
    grader = Grader(source, template, graded, [classroom, folder], limits)
    print(kept_from(grader.isolated))
    results = {submission.student: grader.done(submission) for submission in submissions}
    left = [submission for submission in submissions if results[submission.student] is None]
    if len(left) < len(submissions):
        print(
            f"{len(submissions) - len(left)} of {len(submissions)} were graded before and have not changed."
        )
    bar = tqdm(total=len(submissions), initial=len(submissions) - len(left), unit="submission")
    with bar, closing(grader.grade(left, workers=given.workers)) as results_as_they_come:
        for submission, result in results_as_they_come:  # closed, it ends what is still running
            results[submission.student] = result
            line = f"{submission.student:30} {_number(mark(result)):>5}  {result['seconds']:6.1f} s  {result['reason']}"
            tqdm.write(line.rstrip())
            bar.update()
    by_hand = write_gradebook(graded / "gradebook.db", template, results)
    write_marks(graded / "marks.csv", results, isolated=grader.isolated)
    (graded / "feedback").mkdir(exist_ok=True)
    for student, result in results.items():
        notebooks.write(graded / "feedback" / f"{student}.html", page(student, path.stem, result))
    for line in lines:
        print(line)
    if by_hand:
        print(f"{by_hand} points or comments given by hand in the gradebook were kept")
    print(f"marks     {graded / 'marks.csv'}\nfeedback  {graded / 'feedback'}")
    unmarked = [student for student, result in results.items() if "trouble" in result]
    if unmarked:
        raise ClassroomError(
            f"{len(unmarked)} have no mark, and it is not their fault (marks.csv says why): {', '.join(unmarked[:10])}"
            f"{' …' if len(unmarked) > 10 else ''}. The same command tries them again."
        )


if __name__ == "__main__":
    main(sys.argv[1:])
