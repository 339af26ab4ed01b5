"""What lies in a folder of submissions: a notebook for each student, or a folder with one and what it imports."""

import hashlib
import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from classroom.release import HANDED_OUT, ClassroomError

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
        """(name, path) of the files that go with the notebook; worked functions and a copy of the course never do."""
        for path in self.beside if self.notebook else ():
            if path != self.notebook and path.is_relative_to(self.notebook.parent):
                inside = path.relative_to(self.notebook.parent)
                if not {HANDED_OUT, "posenc"} & {part.partition(".")[0] for part in inside.parts}:
                    yield str(inside), path

    def fingerprint(self) -> str:
        """Changes when anything in it changes."""
        digest = hashlib.sha256(self.fault.encode())
        for name, path in [("", self.notebook), *self.files()] if self.notebook else []:
            size = path.stat().st_size
            digest.update(os.fsencode(f"{name} {size} ") + (path.read_bytes() if size <= BIGGEST else b""))
        return digest.hexdigest()


def visible(text: str) -> str:
    """The text with control characters spelled out: a terminal would obey them."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda found: ascii(found[0])[1:-1], text)


def label(path: Path) -> str:
    """A name that can be printed and written: file names may be in any encoding, and fill 255 bytes."""
    name = visible(unicodedata.normalize("NFC", os.fsencode(path).decode(errors="backslashreplace")))
    return name.encode()[:240].decode(errors="ignore")


def too_much(size: int, files: int, depth: int) -> str:
    """What a submission of so many bytes and files, in folders so deep, has too much of; empty where it has not."""
    if size > BIGGEST:
        return f"it has {size // 1_000_000} MB; {BIGGEST // 1_000_000} are the most"
    if files > MOST:
        return f"it has more than {MOST} files and folders"
    return f"its folders are nested more than {DEEPEST} deep" if depth > DEEPEST else ""


def _files(folder: Path) -> list[Path]:
    """The regular files below a folder, without links and devices; a ClassroomError where it is too many, or too deep."""
    found, folders = [], [folder]
    for each in folders:  # grows
        if fault := too_much(0, 0, len(each.parts) - len(folder.parts)):
            raise ClassroomError(fault)
        for entry in os.scandir(each):
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                found.append(Path(entry.path))
        if fault := too_much(0, len(found) + len(folders), 0):
            raise ClassroomError(fault)
    return sorted(found)


def submission_at(student: str, path: Path, name: str) -> tuple[Submission, list[Path]]:
    """What lies at a path, and its notebooks from which the newest was taken."""
    if not path.is_dir():
        return Submission(student, path), [path]
    try:
        files = _files(path)
    except ClassroomError as error:
        return Submission(student, None, fault=str(error)), []
    except OSError as error:
        return Submission(student, None, trouble=f"{error.strerror}: {label(Path(error.filename).name)}"), []
    inside = [p for p in files if p.suffix == ".ipynb" and ".ipynb_checkpoints" not in p.parts]
    called = re.compile(re.escape(name) + r"(-\d+| ?\(\d+\))?")  # again from Canvas or a browser it has a number
    inside = sorted([p for p in inside if called.fullmatch(p.stem)] or inside, key=_age)
    return Submission(student, inside[-1] if inside else None, tuple(files)), inside


def _age(path: Path) -> tuple[int, str]:
    """Sorts the newest last; equally new ones by name."""
    return path.stat().st_mtime_ns, str(path)


def find_submissions(folder: Path, name: str) -> tuple[list[Submission], list[str]]:
    """The submissions of a folder, and a line for each thing in it that is not graded.

    Of several notebooks of a student the newest is graded; in a folder, of those that have the assignment's name, a
    number after it aside.
    """
    found: dict[str, list[tuple[Submission, list[Path]]]] = {}
    lines = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if not path.is_symlink() and (path.is_dir() or path.is_file() and path.suffix == ".ipynb"):
            student = label(Path(path.name if path.is_dir() else path.stem))
            found.setdefault(student, []).append(submission_at(student, path, name))
        else:
            lines.append(f"{label(Path(path.name))} is neither a notebook nor a folder: not graded")
    chosen = []
    for student, several in found.items():
        several.sort(key=lambda each: _age(each[0].notebook) if each[0].notebook else (0, ""))
        chosen.append(several[-1][0])
        older = [path for _, notebooks in several for path in notebooks if path != chosen[-1].notebook]
        if older:
            names = ", ".join(label(path.relative_to(folder)) for path in older)
            newest = label(chosen[-1].notebook.relative_to(folder))
            lines.append(f"{student}: {newest} is the newest notebook and is graded; not graded: {names}")
    return chosen, lines
