"""Moodle's and Canvas's zips of submissions, and the way back: marks and feedback as the two take them.

What the zips are called inside, and what is read back, is written in their sources. In Moodle's mod/assign:
classes/downloader.php, feedback/file/importziplib.php and feedback/offline/importgradeslib.php. In Canvas:
lib/content_zipper.rb, lib/gradebook_importer.rb, and in app/models/abstract_assignment.rb what it infers from a name.
"""

import csv
import errno
import html
import io
import os
import re
import shutil
import stat
import tempfile
import time
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import nbformat

from classroom.marks import Result, as_text, feedback, page, plain
from classroom.release import ClassroomError
from classroom.submissions import BIGGEST, label, too_much
from courseware import notebooks

MOODLE = re.compile(r"(?P<name>[^_]+)_(?P<id>\d+)_assignsubmission_[a-z]+(?:_(?P<rest>.*))?", re.DOTALL)
CANVAS = re.compile(
    r"(?P<name>.+?)(?P<late>_late)?_(?P<id>\d+)_(?:(?P<file>\d+)_)?(?P<rest>.+)", re.DOTALL | re.IGNORECASE
)
WORKSHEET = ["Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade"]
WORKSHEET += ["Grade can be changed", "Last modified (submission)", "Last modified (grade)", "Feedback comments"]


class File(NamedTuple):
    """A file of a student in a zip."""

    path: list[str]  # within what the student handed in
    entry: zipfile.ZipInfo
    number: int  # Canvas's, greater for what came later; 0 from Moodle
    called: str  # in a Canvas zip


@dataclass
class Student:
    """Who handed something in, as the platform says, and what it was."""

    name: str
    id: str
    status: str = ""  # what the platform says of it, as "late"
    fault: str = ""  # of the student, who gets no points
    trouble: str = ""  # of the zip
    files: list[File] = field(default_factory=list)


@dataclass
class HandedIn:
    """What a zip of submissions held. The keys are the names of the folders that were made of it."""

    platform: str
    students: dict[str, Student] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)  # what was not taken
    worksheet: list[dict[str, str]] = field(default_factory=list)


def unpack(path: Path, folder: Path) -> HandedIn:
    """Make a folder of submissions from Moodle's or Canvas's zip: for each student one, called "name (number)".

    A file keeps the time that the zip gives it. Canvas gives none, but numbers files in the order in which they came.

    Raises:
        ClassroomError: it is no zip that can be read, its names are neither Moodle's nor Canvas's, or it is too big.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            found = _sorted(archive, path)
            _extract(archive, folder, found)
    except (zipfile.BadZipFile, UnicodeDecodeError, zlib.error, NotImplementedError) as error:
        raise ClassroomError(f"{path} is no zip that can be read: {error}.") from None
    return found


def _sorted(archive: zipfile.ZipFile, path: Path) -> HandedIn:
    """Whose each file is: the first part of its path says it, as students choose the others."""
    entries = [(re.split(r"[/\\]", _name(entry)), entry) for entry in archive.infolist() if not entry.is_dir()]
    entries = [(parts, entry) for parts, entry in entries if "__MACOSX" not in parts]
    tops = {parts[0] if parts[1:] else "" for parts, _ in entries}
    if len(tops) == 1 and "" not in tops and "_assignsubmission_" not in str(tops):  # packed again, in a folder
        entries = [(parts[1:], entry) for parts, entry in entries]
    moodle = any(MOODLE.fullmatch(parts[0]) for parts, _ in entries)
    found = HandedIn("Moodle" if moodle else "Canvas")
    for parts, entry in entries:
        match = (MOODLE if moodle else CANVAS).fullmatch(parts[0])
        if match and (moodle or not parts[1:]):
            _take(found, match, parts, entry)
        elif not parts[-1].startswith("."):
            found.lines.append(f"{_shown(parts)} is not named as {found.platform} does: not graded")
    if not found.students:
        none = "holds no file that is named as Moodle or Canvas names submissions"
        raise ClassroomError(f"{path} {none}. Unpack it, and say FROM=folder.")
    if moodle:
        found.worksheet = _worksheet(path.parent, {student.id for student in found.students.values()})
        status = {_id(line): line.get("Status") or "" for line in found.worksheet}
        for student in found.students.values():
            student.status = status.get(student.id, "")
    return found


def _take(found: HandedIn, match: re.Match, parts: list[str], entry: zipfile.ZipInfo) -> None:
    """Note a file with its student, or that it is left out."""
    of = match.groupdict()
    name = re.sub(r"^\.", "_", label(Path(of["name"])).encode()[:150].decode(errors="ignore"))
    student = found.students.setdefault(f"{name} ({of['id']})", Student(of["name"], of["id"]))
    student.status = "late" if of.get("late") else student.status
    inside = [*filter(None, [of["rest"]]), *parts[1:]]
    if stat.S_ISLNK(entry.external_attr >> 16):
        found.lines.append(f"{_shown(parts)} is a link: left out")
    elif entry.flag_bits & 1:
        found.lines.append(f"{_shown(parts)} is encrypted: left out")
    elif not inside or {"", ".", ".."} & {*inside}:
        found.lines.append(f"{_shown(parts)} is no path inside its folder: left out")
    else:
        student.files.append(File(inside, entry, int(of.get("file") or 0), match[0]))


def _name(entry: zipfile.ZipInfo) -> str:
    """The name of an entry. Without the flag for UTF-8 it is that all the same, or else the old code page."""
    try:
        return entry.filename if entry.flag_bits & 0x800 else entry.filename.encode("cp437").decode()
    except UnicodeError:
        return entry.filename


def _shown(parts: list[str]) -> str:
    return label(Path("/".join(parts))).encode("ascii", errors="backslashreplace").decode()[:200]


def _extract(archive: zipfile.ZipFile, folder: Path, found: HandedIn) -> None:
    """Write the files of each student. zipfile reads no more than is declared, so a bomb is seen before."""
    folder.mkdir(parents=True)
    needed = 0
    for student in found.students.values():
        size = sum(file.entry.file_size for file in student.files)
        deepest = max((len(file.path) for file in student.files), default=0)
        student.fault = too_much(size, len(student.files), deepest)
        needed += 0 if student.fault else size
    if needed > shutil.disk_usage(folder).free:
        raise ClassroomError(f"Unpacked, the zip has {needed / 1e9:.1f} GB; {tempfile.gettempdir()} has less.")
    for key, student in found.students.items():
        (folder / key).mkdir()
        if not student.fault:
            _write(archive, folder / key, student, found.lines)


def _write(archive: zipfile.ZipFile, folder: Path, student: Student, lines: list[str]) -> None:
    numbered = []
    for rank, file in enumerate(sorted(student.files, key=lambda file: file.number)):
        path = folder.joinpath(*file.path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(file.entry) as source, path.open("xb") as target:
                shutil.copyfileobj(source, target)
            when = rank if file.number else time.mktime((*file.entry.date_time, 0, 0, -1))
            os.utime(path, (when, when))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise
            lines.append(f"{folder.name}: {_shown(file.path)} is left out: {error.strerror}")
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
            student.trouble = f"{_shown(file.path)} cannot be unpacked: {error}"
        else:
            if file.number and path.suffix != ".ipynb" and re.search(r"-\d+$", path.stem):
                numbered.append(path)
    # To Canvas helper.py is helper-1.py when it comes a second time; what imports it knows it as helper.
    for path in numbered:
        shutil.copyfile(path, path.with_stem(re.sub(r"-\d+$", "", path.stem)))


# ------------------------------------------------------------------ worksheet


def _worksheet(folder: Path, ids: set[str]) -> list[dict[str, str]]:
    """The lines of the newest worksheet in the folder that knows any of these; Moodle numbers each assignment's anew."""
    csv.field_size_limit(BIGGEST)  # a worksheet may hold whole texts
    tables = [path for path in folder.glob("*.csv") if path.stat().st_size <= BIGGEST]
    for path in sorted(tables, key=os.path.getmtime, reverse=True):
        try:
            with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
                lines = [*csv.DictReader(file)]
        except csv.Error:
            continue
        if lines and {"Identifier", "Grade"} <= lines[0].keys() and any(_id(line) in ids for line in lines):
            return lines
    return []


def _id(line: dict[str, str]) -> str:
    """123 from "Participant 123", the number that is also in the names of the zip."""
    return re.sub(r".*?(\d*)$", r"\1", line["Identifier"] or "", flags=re.DOTALL)


# ------------------------------------------------------------------- the way back


def write_back(found: HandedIn, graded: Path, name: str, results: dict[str, Result]) -> list[str]:
    """Write moodle.csv and moodle.zip, or canvas.csv and canvas.zip, for those who have a mark; lines for the teacher."""
    marked = {key: result for key, result in results.items() if result.mark is not None}
    table, lines = (_moodle if found.platform == "Moodle" else _canvas)(found, name, marked)
    out, base = io.StringIO(), graded / found.platform.lower()
    csv.writer(out).writerows(table)
    notebooks.write(base.with_suffix(".csv"), out.getvalue())
    with zipfile.ZipFile(base.with_suffix(".new"), "w", zipfile.ZIP_DEFLATED) as archive:
        for key, result in marked.items():
            student = found.students[key]
            if found.platform == "Moodle":
                archive.writestr(
                    f"{student.name}_{student.id}_assignsubmission_file_/{name}.html", page(key, name, result)
                )
            elif called := _newest_notebook(student):
                archive.writestr(called, _as_notebook(feedback(key, name, result)))
    base.with_suffix(".new").replace(base.with_suffix(".zip"))
    late = [key for key, each in found.students.items() if re.search(r"(?i)\blate\b", each.status)]
    lines += [f"late: {', '.join(late)}"] if late else []
    return [*lines, f"for {found.platform}: {base}.csv and {base}.zip"]


def _told(result: Result) -> str:
    return "; ".join(filter(None, [f"{as_text(result.mark)} of {result.most:g} points", result.why]))


def _moodle(found: HandedIn, name: str, marked: dict[str, Result]) -> tuple[list[list[str]], list[str]]:
    """The worksheet with marks and comments; without one, a worksheet of those who handed in."""
    rows, lines, scaled = found.worksheet, [], set()
    by_id = {found.students[key].id: key for key in marked}
    if not rows:
        lines.append("beside the zip lies no worksheet of this assignment, so Moodle's other columns stay empty")
        for key, result in marked.items():
            known = {"Identifier": f"Participant {found.students[key].id}", "Full name": found.students[key].name}
            known |= {"Maximum Grade": f"{result.most:g}", "Grade can be changed": "Yes"}
            rows.append(dict.fromkeys(WORKSHEET, "") | dict.fromkeys(WORKSHEET[7:9], "-") | known)
    for row in rows:
        if key := by_id.pop(_id(row), None):
            most = marked[key].most
            scale = _float(row.get("Maximum Grade"), most) / most if most else 1
            if scale != 1:
                scaled.add(f"Moodle's maximum is {scale * most:g}, not {most:g}: marks are scaled")
            row["Grade"] = f"{round(marked[key].mark * scale, 2):g}"
            if "Feedback comments" in row:
                row["Feedback comments"] = html.escape(plain(_told(marked[key])), quote=False)
    lines += scaled
    lines += [f"not in the worksheet: {', '.join(by_id.values())}"] if by_id else []
    header = [column for column in rows[0] if column] if rows else WORKSHEET
    safe = [column for column in header if column not in WORKSHEET or column in ("Full name", "Email address")]
    for row in rows:  # what students choose
        row |= {column: plain(row[column]) for column in safe if row[column]}
    return [header, *([row[column] or "" for column in header] for row in rows)], lines


def _float(text: str | None, otherwise: float) -> float:
    try:
        return float(text or otherwise)
    except ValueError:
        return otherwise


def _canvas(found: HandedIn, name: str, marked: dict[str, Result]) -> tuple[list[list[str]], list[str]]:
    """A gradebook with one assignment. Canvas knows a student by the ID, and asks which assignment it is."""
    most = max((result.most for result in marked.values()), default=0)
    table = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", name]]
    table += [["    Points Possible", "", "", "", "", f"{most:g}"]]
    students = {key: found.students[key] for key in marked}
    for key, student in students.items():
        table.append([plain(student.name), student.id, "", "", "", as_text(marked[key].mark)])
    without = [key for key, student in students.items() if not _newest_notebook(student)]
    lines = [f"no notebook came, so Canvas takes no feedback for {', '.join(without)}"] if without else []
    return table, lines


def _newest_notebook(student: Student) -> str:
    """Its name in Canvas's zip, which is the name under which Canvas takes feedback; empty if there is none."""
    files = [file for file in student.files if file.called.endswith(".ipynb") and file.number]
    return max(files, key=lambda file: file.number).called if files else ""


def _as_notebook(text: str) -> str:
    """Feedback as a notebook: Canvas shows what comes back under the name of what was handed in."""
    return nbformat.writes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)]))
