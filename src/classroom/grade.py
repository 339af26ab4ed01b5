"""Marks and feedback for a folder of submissions, or Moodle's or Canvas's zip: `make grade CHAPTER=04 FROM=folder`.

A submission is a notebook NAME.ipynb in the folder, or a folder NAME with the chapter's notebook and whatever it
imports. Each is graded in a process of its own, several at once, and leaves its result in
classroom/graded/04_name/results. Started again, only what is new or changed is graded. Trouble of the grader or the
machine gives no mark and leaves no result, so that the next run tries again. In the end there are

    classroom/graded/04_name/marks.csv      a line for each submission, with the reason where a mark is missing
    classroom/graded/04_name/feedback/      a page for each
    classroom/graded/04_name/gradebook.db   the same marks for nbgrader's own tools
    classroom/graded/04_name/moodle.csv     and moodle.zip, or canvas.csv and .zip: what the platform takes back
"""

import argparse
import compileall
import hashlib
import json
import multiprocessing
import multiprocessing.connection
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from classroom import platforms, release, sandbox, workplace
from classroom.marks import Result, as_text, failure, no_mark, page, write_gradebook, write_marks
from classroom.release import CLASSROOM, ROOT, ClassroomError
from classroom.submissions import MOST, Submission, find_submissions, too_much
from classroom.workplace import Limits, Place
from courseware import install, notebooks

READING = 300  # seconds of a processor for what reads a submission and writes its result, and bytes of memory
MEMORY = 2_000_000_000
FIRST_USER = 50_000  # as root, submissions run under the user numbers from here on


# ------------------------------------------------------------ one submission


def tidy(notebook: NotebookNode, released: NotebookNode) -> None:
    """Give each cell the role that it was released with, no other metadata and no outputs, whatever the submission says.

    Of a cell that was duplicated the last keeps its role, as it is the last that counts when all are run. A check
    that is missing is put at the end.
    """
    left = {cell.metadata.nbgrader.grade_id: cell for cell in released.cells if "nbgrader" in cell.metadata}
    for cell in reversed(notebook.cells):
        claimed = cell.metadata.get("nbgrader", {})
        its = left.pop(claimed.get("grade_id"), None) if isinstance(claimed, dict) else None
        cell.metadata = nbformat.from_dict({"nbgrader": its.metadata.nbgrader} if its else {})
        cell.pop("attachments", None)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    notebook.metadata = released.metadata
    notebook.cells += [cell for cell in left.values() if cell.metadata.nbgrader.get("grade")]


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
    if fault := too_much(size, 0, 0):
        raise ClassroomError(fault)
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


# --------------------------------------------------------------- all of them


def copy_course(folder: Path) -> None:
    """The package as a submission finds it: without the worked solutions, in source and compiled, open to all users."""
    leave = shutil.ignore_patterns("worked.*")  # with their times, so that what is compiled already stays so
    shutil.copytree(ROOT / "src" / "posenc", folder / "posenc", ignore=leave)
    compileall.compile_dir(folder, quiet=2)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


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
        limits: what one submission may take.
    """

    def __init__(self, source: Path, template: Path, graded: Path, limits: Limits):
        self.name, self.source, self.template = source.stem, source, template
        self.graded, self.limits, self.points = graded, limits, points(template)
        (graded / "results").mkdir(parents=True, exist_ok=True)
        self.isolated = os.environ.get("SANDBOX") != "none"
        if self.isolated and (problem := sandbox.missing()):
            raise ClassroomError(problem)
        closed = [] if self.isolated or os.geteuid() != 0 else _closed(*self._needs())
        if closed:
            raise ClassroomError(
                f"With SANDBOX=none, root runs each submission as a user of its own, and {closed[0]} is closed to them. "
                f"Open it (chmod o+x {closed[0]}), or grade as an ordinary user."
            )

    def _needs(self) -> list[str]:
        """What a submission must be able to read, beside its copy of the course: the environment and Python.

        Python may be installed under several names; of its folder only programs and libraries are needed.
        """
        homes = (os.path.realpath(install.PYTHON), f"{sys.base_prefix}/bin/python")
        python = [str(Path(home).parents[1] / part) for home in homes for part in ("bin", "lib", "lib64")]
        return [*dict.fromkeys([os.path.realpath(install.VENV), *filter(os.path.isdir, python)])]

    def result(self, submission: Submission) -> Path:
        return self.graded / "results" / f"{submission.student}.json"

    def done(self, submission: Submission) -> Result | None:
        """The result of an earlier run, if neither the submission nor the assignment has changed since."""
        try:
            stored = json.loads(self.result(submission).read_text())
            return Result(**stored) if stored.pop("of") == self._fingerprint(submission) else None
        except (OSError, ValueError, LookupError, TypeError):  # none, half of one, or one of an older course
            return None

    def _fingerprint(self, submission: Submission) -> str:
        return hashlib.sha256(self.source.read_bytes() + submission.fingerprint().encode()).hexdigest()

    def grade(self, submissions: list[Submission], *, workers: int) -> Iterator[tuple[Submission, Result]]:
        """Grade them; each with its result, as they end."""
        from classroom import autograde  # noqa: F401  once, before the forks

        with workplace.workplace() as folder:
            base, kernels = folder / "base", folder / "run"
            folder.chmod(0o711)
            base.mkdir(mode=0o700)
            (kernels / "home").mkdir(parents=True)
            kernels.chmod(0o711)
            copy_course(kernels / "course")
            first_home = os.environ | {"HOME": str(kernels / "home")}
            fonts = [install.PYTHON, "-c", "import matplotlib.font_manager"]  # makes a cache, in half a second
            subprocess.run(fonts, env=first_home, check=False)
            yield from self._grade(submissions, base, kernels, workers)

    def _grade(self, submissions: list[Submission], base: Path, kernels: Path, workers: int):
        fork = multiprocessing.get_context("fork")
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
                        found = Result(**json.loads((base / f"{number}.json").read_text()))
                    except (OSError, ValueError):
                        if process.exitcode == -signal.SIGXCPU:
                            found = failure(self.points, f"reading it takes more than {READING} s of a processor")
                        else:
                            found = no_mark(self.points, "its grader died")
                    yield submission, self._keep(submission, found, start)
                    workplace.remove(kernels / str(number), base / str(number))
        finally:
            for process in running:
                _end(process)

    def _one(self, submission: Submission, base: Path, kernels: Path, number: int) -> None:
        """In a process of its own: grade, and leave the result as JSON."""
        from classroom import autograde

        for what, most in ((resource.RLIMIT_CPU, READING), (resource.RLIMIT_DATA, MEMORY)):
            resource.setrlimit(what, (most, resource.getrlimit(what)[1]))
        try:
            if submission.trouble:
                raise OSError(submission.trouble)
            course, own = lay_out(submission, base, kernels, number, self.template)
            found = autograde.autograde(self._place(course, own, number), self.name, self.limits)
        except ClassroomError as error:
            found = failure(self.points, str(error))
        except Exception as error:  # noqa: BLE001  whatever it is, the student has not done it
            found = no_mark(self.points, ascii(f"{type(error).__name__}: {error}")[1:-1][:300])
        notebooks.write(base / f"{number}.json", json.dumps(asdict(found)))

    def _place(self, course: Path, own: Path, number: int) -> Place:
        user = FIRST_USER + number if os.geteuid() == 0 else 0
        return Place(course, own, user, (str(own.with_name("course")), *self._needs()), self.isolated)

    def _keep(self, submission: Submission, found: Result, start: float) -> Result:
        """Store a result, unless it says nothing about the submission."""
        found.seconds = round(time.monotonic() - start, 1)
        if found.mark is not None:
            try:
                stored = asdict(found) | {"of": self._fingerprint(submission)}
                notebooks.write(self.result(submission), json.dumps(stored))
            except OSError as error:
                return replace(no_mark(self.points, str(error)), seconds=found.seconds)
        return found


def _closed(*paths: str) -> list[Path]:
    """The folders on the way to these that not every user may enter."""
    folders = dict.fromkeys(folder for path in paths for folder in [*reversed(Path(path).parents), Path(path)])
    return [folder for folder in folders if not folder.stat().st_mode & stat.S_IXOTH]


def _end(process: multiprocessing.Process) -> None:
    """End a grader and all that it started; what its sandbox holds ends with the sandbox."""
    if process.is_alive():
        os.kill(process.pid, signal.SIGSTOP)  # it starts no more
        workplace.end_below(process.pid)
        process.kill()
    process.join()


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
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    given = parser.parse_args(arguments)
    try:
        with workplace.workplace() as scratch:
            grade(given, scratch)
    except (ClassroomError, notebooks.BuildError, OSError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("\nStopped. The same command again goes on from here.")


def grade(given: argparse.Namespace, scratch: Path) -> None:
    """Grade what is left, and write the marks of all."""
    path, classroom = release.chapter(given.chapter), given.classroom.resolve()
    source = classroom / "source" / path.stem / path.name
    submissions, handed_in, lines = _handed_in(given.folder, path.stem, scratch / "unpacked")
    if not source.exists():
        release.assignment(path, classroom)
    limits = Limits(cell_seconds=given.cell_seconds, seconds=given.seconds, gigabytes=given.gigabytes)
    template = new_template(source, scratch / "template")
    grader = Grader(source, template, classroom / "graded" / path.stem, limits)
    print(kept_from(grader.isolated))
    results = _results(grader, submissions, given.workers)
    _write(grader, results, handed_in, lines)
    unmarked = [student for student, result in results.items() if result.mark is None]
    if unmarked:
        raise ClassroomError(
            f"{len(unmarked)} have no mark, and it is not their fault (marks.csv says why): {', '.join(unmarked[:10])}"
            f"{' …' if len(unmarked) > 10 else ''}. The same command tries them again."
        )


def _handed_in(given: str, name: str, unpacked: Path):
    """The submissions of a folder or zip, what the platform says of them, and lines on what is not graded."""
    folder, handed_in = Path(given).resolve(), None
    if not given or not folder.exists():
        raise ClassroomError(
            f"FROM is the folder of the submissions, or Moodle's or Canvas's zip; there is no {given!r}."
        )
    if folder.is_file():
        handed_in, folder = platforms.unpack(folder, unpacked), unpacked
    submissions, lines = find_submissions(folder, name)
    if handed_in:
        lines = [*handed_in.lines, *lines]
        submissions = [_as_unpacked(each, handed_in.students[each.student]) for each in submissions]
    if not submissions:
        raise ClassroomError(f"{given} holds no submission: neither a notebook nor a folder.")
    return submissions, handed_in, lines


def _results(grader: Grader, submissions: list[Submission], workers: int) -> dict[str, Result]:
    """student → result, of an earlier run or a new one."""
    from tqdm import tqdm

    results = {submission.student: grader.done(submission) for submission in submissions}
    left = [submission for submission in submissions if results[submission.student] is None]
    done = len(submissions) - len(left)
    if done:
        print(f"{done} of {len(submissions)} were graded before and have not changed.")
    bar = tqdm(total=len(submissions), initial=done, unit="submission")
    with bar, closing(grader.grade(left, workers=workers)) as as_they_come:  # closed, it ends what is still running
        for submission, result in as_they_come:
            results[submission.student] = result
            line = f"{submission.student:30} {as_text(result.mark):>5}  {result.seconds:6.1f} s  {result.reason}"
            tqdm.write(line.rstrip())
            bar.update()
    return results


def _write(grader: Grader, results: dict[str, Result], handed_in: platforms.HandedIn | None, lines: list[str]):
    """The marks of all as a gradebook, a table, pages, and as the platform takes them; and print the lines."""
    graded, name = grader.graded, grader.name
    by_hand = write_gradebook(graded / "gradebook.db", grader.template, results)
    status = {key: student.status for key, student in handed_in.students.items()} if handed_in else {}
    write_marks(graded / "marks.csv", results, isolated=grader.isolated, status=status)
    (graded / "feedback").mkdir(exist_ok=True)
    for student, result in results.items():
        notebooks.write(graded / "feedback" / f"{student}.html", page(student, name, result))
    if handed_in:
        lines = [*lines, *platforms.write_back(handed_in, graded, name, results)]
    if by_hand:
        lines = [*lines, f"{by_hand} points or comments given by hand in the gradebook were kept"]
    print(*lines, f"marks     {graded / 'marks.csv'}", f"feedback  {graded / 'feedback'}", sep="\n")


def _as_unpacked(submission: Submission, student: platforms.Student) -> Submission:
    """With what is wrong with the zip's part of it."""
    wrong = student.fault or student.trouble
    return replace(submission, notebook=None, fault=student.fault, trouble=student.trouble) if wrong else submission


if __name__ == "__main__":
    main(sys.argv[1:])
