"""Marks and feedback for a folder of submissions: `make grade CHAPTER=04 FROM=folder`.

A submission is a notebook NAME.ipynb in the folder, or a folder NAME with the chapter's notebook and whatever it
imports. Each is graded in a process of its own, several at once, and leaves its result in
classroom/graded/04_name/results. Started again, only what is new or changed is graded. In the end there are

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


@dataclass(frozen=True)
class Submission:
    """What a student handed in: the notebook if there is one, and the folder if it came in one."""

    student: str
    notebook: Path | None
    folder: Path | None = None

    def files(self) -> Iterator[tuple[str, Path]]:
        """(name, path) of the regular files beside the notebook; links and devices are left out."""
        for path in sorted(self.folder.rglob("*")) if self.folder and self.notebook else ():
            if _regular(path) and path != self.notebook and path.is_relative_to(self.notebook.parent):
                yield str(path.relative_to(self.notebook.parent)), path

    def fingerprint(self) -> str:
        """Changes when anything in it changes."""
        digest = hashlib.sha256()
        for name, path in [("", self.notebook), *self.files()] if self.notebook else []:
            digest.update(f"{name} {path.stat().st_size} ".encode() + path.read_bytes())
        return digest.hexdigest()


def _regular(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)


def find_submissions(folder: Path, name: str) -> tuple[list[Submission], list[str]]:
    """The submissions of a folder, and the names of what else lies there.

    Args:
        name: of the assignment, as in 04_rotary_encoding. A folder may hold several notebooks; then it is the one
            of this name.
    """
    found, others = [], []
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir() and not path.is_symlink():
            inside = [
                p
                for p in sorted(path.rglob("*.ipynb"))
                if _regular(p) and ".ipynb_checkpoints" not in p.parts
            ]
            named = [p for p in inside if p.stem == name]
            notebook = (named or (inside if len(inside) == 1 else []) or [None])[0]
            found.append(Submission(path.name, notebook, path))
        elif path.suffix == ".ipynb" and _regular(path):
            found.append(Submission(path.stem, path))
        else:
            others.append(path.name)
    return found, others


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
        ClassroomError: there is no notebook, it cannot be read, or all of it is too big.
    """
    course, own, name = base / str(number), kernels / str(number), template.stem
    files = dict(submission.files())
    size = sum(path.stat().st_size for path in [submission.notebook, *files.values()] if path)
    if submission.notebook is None:
        raise ClassroomError(f"there is no notebook {name}.ipynb in the folder")
    if size > BIGGEST:
        raise ClassroomError(f"it has {size // 1_000_000} MB; {BIGGEST // 1_000_000} are the most")
    try:
        notebook = nbformat.reads(submission.notebook.read_text(encoding="utf-8"), as_version=4)
        nbformat.validate(notebook)
        tidy(notebook, nbformat.read(template, as_version=4))
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
    """The result of a submission that was not graded."""
    return {"marks": {name: [0.0, points] for name, points in marks.items()}, "notes": {}, "reason": reason}


def plain_page(student: str, reason: str) -> str:
    """The feedback on a submission that was not graded."""
    words = [html.escape(word) for word in (student, reason)]
    return (
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{words[0]}</title>'
        f"<h1>{words[0]}: 0 points</h1><p>This submission was not graded: {words[1]}.</p></html>\n"
    )


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
        for folder in ("results", "feedback"):
            (graded / folder).mkdir(parents=True, exist_ok=True)
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
        except (OSError, ValueError):
            return None
        return result if result.get("of") == self._fingerprint(submission) else None

    def _fingerprint(self, submission: Submission) -> str:
        return hashlib.sha256(self.source.read_bytes() + submission.fingerprint().encode()).hexdigest()

    def grade(self, submissions: list[Submission], *, workers: int) -> Iterator[tuple[Submission, dict]]:
        """Grade them; each with its result, as they end."""
        from courseware.classroom import autograde

        fork = multiprocessing.get_context("fork")
        base, kernels = Path(tempfile.mkdtemp(prefix="grade-")), Path(tempfile.mkdtemp(prefix="run-"))
        kernels.chmod(0o711)
        first_home = os.environ | {"HOME": str(kernels / "home")}
        fonts = [install.PYTHON, "-c", "import matplotlib.font_manager"]  # makes a cache, in half a second
        subprocess.run(fonts, env=first_home, check=True)
        running: dict = {}
        waiting = list(enumerate(submissions))
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    number, submission = waiting.pop(0)
                    start, result = time.monotonic(), base / f"{number}.json"
                    try:
                        course, own = lay_out(submission, base, kernels, number, self.template)
                    except ClassroomError as error:
                        yield (
                            submission,
                            self._keep(submission, failure(self.points, str(error)), start, None),
                        )
                        continue
                    place = self._place(autograde, course, own, number)
                    arguments = (place, self.name, self.limits, result)
                    process = fork.Process(target=autograde.run, args=arguments)
                    process.start()
                    running[process] = submission, start, course, own, result
                multiprocessing.connection.wait([process.sentinel for process in running], timeout=1)
                for process, (submission, start, course, own, result) in list(running.items()):
                    if process.is_alive() and time.monotonic() < start + self.limits.seconds + 60:
                        continue
                    _end(process)
                    del running[process]
                    found = failure(self.points, "its grader died")
                    if result.exists():
                        found = json.loads(result.read_text())
                    if "broken" in found:
                        raise ClassroomError(found["broken"])
                    yield submission, self._keep(submission, found, start, course)
                    shutil.rmtree(own, ignore_errors=True)
                    shutil.rmtree(course, ignore_errors=True)
        finally:
            for process in running:
                _end(process)
            shutil.rmtree(base, ignore_errors=True)
            shutil.rmtree(kernels, ignore_errors=True)

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

    def _keep(self, submission: Submission, found: dict, start: float, course: Path | None) -> dict:
        """Store a result, and the feedback before it."""
        page = self.graded / "feedback" / f"{submission.student}.html"
        if found["reason"]:
            page.write_text(plain_page(submission.student, found["reason"]), encoding="utf-8")
        else:
            shutil.copyfile(course / "feedback" / "submission" / self.name / f"{self.name}.html", page)
        found |= {"of": self._fingerprint(submission), "seconds": round(time.monotonic() - start, 1)}
        notebooks.write(self.result(submission), json.dumps(found))
        return found


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


def mark(result: dict) -> float:
    return sum(got for got, _ in result["marks"].values())


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
        table.writerow(["student", "mark", "points", *map(_exercise, exercises), "seconds", "reason", "sandbox"])
        for student, result in results.items():
            got = [result["marks"][name][0] for name in exercises]
            points = sum(most for _, most in result["marks"].values())
            table.writerow([_plain(student), mark(result), points, *got, result["seconds"], why(result), sandbox_word])


def write_gradebook(path: Path, template: Path, results: dict[str, dict]) -> None:
    """All marks in one gradebook of nbgrader, made anew from one without marks."""
    from nbgrader.api import Gradebook

    name = template.stem
    shutil.copyfile(template.parents[2] / "gradebook.db", path)
    with Gradebook(f"sqlite:///{path}") as gradebook:
        for student, result in results.items():
            gradebook.add_student(student)
            gradebook.add_submission(name, student)
            for grade in gradebook.find_submission_notebook(name, name, student).grades:
                grade.auto_score, grade.needs_manual_grade = result["marks"][grade.name][0], False
        gradebook.db.commit()


def kept_from(isolated: bool) -> str:
    """What the submissions are kept from, in a sentence for the teacher."""
    user = "a user of their own each" if os.geteuid() == 0 else "your user"
    if isolated:
        return f"Submissions run behind bubblewrap, as {user}: no network, and none of the class's files or yours."
    return f"SANDBOX=none: submissions run as {user}, HAVE the network and can read and change what that user can."


def _count(word: str) -> int:
    if not word.isdigit() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"JOBS is the number of submissions graded at once, 1 or more, not {word}")
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
    except (ClassroomError, notebooks.BuildError) as error:
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
    submissions, others = find_submissions(folder, path.stem)
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
            line = (
                f"{submission.student:30} {mark(result):5g}  {result['seconds']:6.1f} s  {result['reason']}"
            )
            tqdm.write(line.rstrip())
            bar.update()
    write_marks(graded / "marks.csv", results, isolated=grader.isolated)
    write_gradebook(graded / "gradebook.db", template, results)
    for other in others:
        print(f"{other} is neither a notebook nor a folder: not graded")
    print(f"marks     {graded / 'marks.csv'}\nfeedback  {graded / 'feedback'}")


if __name__ == "__main__":
    main(sys.argv[1:])
