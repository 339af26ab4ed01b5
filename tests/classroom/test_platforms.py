"""Moodle's and Canvas's zips as they come, zips made to do harm, and what goes back."""

import csv
import errno
import io
import os
import stat
import zipfile
from types import SimpleNamespace

import nbformat
import pytest

from classroom import platforms, submissions
from classroom.marks import Result, failure, no_mark
from classroom.release import ClassroomError
from classroom.submissions import BIGGEST, DEEPEST, find_submissions

NAME = "04_rotary_encoding"
MOODLE = "Zoë Lee_71_assignsubmission_file_"
FOLDER = "Zoë Lee (71)"


def pack(path, files, **more):
    """A zip of these: name, or ZipInfo, → content."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content, **more)
    return path


def dated(name, year):
    return zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0))


def unpack(tmp_path, files):
    """What was found, and all that was written below tmp_path: path → content."""
    found = platforms.unpack(pack(tmp_path / "in" / "x.zip", files), tmp_path / "out" / "new")
    out = tmp_path / "out" / "new"
    return found, {str(p.relative_to(out)): p.read_text() for p in sorted(out.rglob("*")) if p.is_file()}


def wrong(found):
    """What is wrong with a student's part of a zip."""
    return {key: each.fault or each.trouble for key, each in found.students.items() if each.fault or each.trouble}


@pytest.fixture(autouse=True)
def _folder_for_the_zip(tmp_path):
    (tmp_path / "in").mkdir()
    yield
    assert {path.name for path in tmp_path.iterdir()} <= {"in", "out", "graded"}, "written elsewhere"


# --------------------------------------------------------------- what comes


COMES = {  # the files of a zip; what is written of them
    "Moodle's, since 3.1 with the underscore at the end, since 4.1 without": (
        {
            f"{MOODLE}/{NAME}.ipynb": f"{FOLDER}/{NAME}.ipynb",
            f"{MOODLE}/lib/helper.py": f"{FOLDER}/lib/helper.py",
            f"Bo_72_assignsubmission_file/{NAME}.ipynb": f"Bo (72)/{NAME}.ipynb",
            "Cy_73_assignsubmission_onlinetext/onlinetext.html": "Cy (73)/onlinetext.html",
            "notes.txt": None,
        },
        ["notes.txt is not named as Moodle does: not graded"],
    ),
    "Moodle's without folders": (
        {f"{MOODLE}{NAME}.ipynb": f"{FOLDER}/{NAME}.ipynb", f"{MOODLE}helper_71_b.py": f"{FOLDER}/helper_71_b.py"},
        [],
    ),
    "two students of one name": ({f"Bo_{n}_assignsubmission_file_/a.ipynb": f"Bo ({n})/a.ipynb" for n in (1, 2)}, []),
    "Canvas's, which makes no folders": (
        {
            f"leezo_71_501_{NAME}.ipynb": f"leezo (71)/{NAME}.ipynb",
            "leezo_71_502_my_helper.py": "leezo (71)/my_helper.py",
            f"bo_b_LATE_72_503_{NAME}-1.ipynb": f"bo_b (72)/{NAME}-1.ipynb",
            "cy_73_text.html": "cy (73)/text.html",
            f"di_74_504_x/{NAME}.ipynb": None,
        },
        [f"di_74_504_x/{NAME}.ipynb is not named as Canvas does: not graded"],
    ),
    "one that was unpacked and packed again on a Mac": (
        {
            f"class/leezo_71_501_{NAME}.ipynb": f"leezo (71)/{NAME}.ipynb",
            f"__MACOSX/class/._leezo_71_501_{NAME}.ipynb": None,
            "class/.DS_Store": None,
        },
        [],
    ),
}


@pytest.mark.parametrize(("zipped", "lines"), COMES.values(), ids=COMES)
def test_a_zip_is_unpacked_into_a_folder_for_each_student(tmp_path, zipped, lines):
    found, files = unpack(tmp_path, {name: name for name in zipped})
    assert files == {written: name for name, written in zipped.items() if written}
    assert [*found.students] == [*dict.fromkeys(name.partition("/")[0] for name in filter(None, zipped.values()))]
    assert [f"{each.name} ({each.id})" for each in found.students.values()] == [*found.students]
    assert found.lines == lines
    assert [key for key, student in found.students.items() if student.status] == [
        key for key in found.students if "bo_b" in key
    ]


def test_of_canvas_attempts_the_newest_counts_whatever_its_name(tmp_path):
    _, files = unpack(
        tmp_path,
        {
            f"leezo_71_777_{NAME}-2.ipynb": "third",
            f"leezo_71_600_{NAME}-10.ipynb": "second",
            f"leezo_71_501_{NAME}.ipynb": "first",
            "leezo_71_900_scratch.ipynb": "not the assignment",
            "leezo_71_502_helper.py": "old",
            "leezo_71_778_helper-1.py": "new",
        },
    )
    (chosen,), (line,) = find_submissions(tmp_path / "out" / "new", NAME)
    assert chosen.notebook.read_text() == "third"
    assert line == (
        f"leezo (71): leezo (71)/{NAME}-2.ipynb is the newest notebook and is graded; not graded: "
        f"leezo (71)/{NAME}.ipynb, leezo (71)/{NAME}-10.ipynb"
    )
    assert files["leezo (71)/helper.py"] == "new", "what the notebook imports has no number"


def test_of_moodles_files_the_newest_counts(tmp_path):
    unpack(tmp_path, {dated(f"{MOODLE}/{NAME}{n}.ipynb", y): n for n, y in (("", 2024), (" (2)", 2026), ("-1", 2025))})
    (chosen,), _ = find_submissions(tmp_path / "out" / "new", NAME)
    assert chosen.notebook.read_text() == " (2)"


# ------------------------------------------------------------- made to do harm


def test_a_bomb_costs_its_student_only_and_is_not_unpacked(tmp_path):
    files = {f"{MOODLE}/a.ipynb": bytes(BIGGEST + 1), "Bo_72_assignsubmission_file_/a.ipynb": "Bo's"}
    found, files = unpack(tmp_path, files)
    assert files == {"Bo (72)/a.ipynb": "Bo's"}
    assert wrong(found) == {FOLDER: "it has 20 MB; 20 are the most"}


def test_a_bomb_that_lies_about_its_size_is_cut_there(tmp_path):
    path = pack(tmp_path / "in" / "x.zip", {f"{MOODLE}/a.ipynb": bytes(BIGGEST + 1)})
    true, lie = ((BIGGEST + 1).to_bytes(4, "little"), (9).to_bytes(4, "little"))
    content = path.read_bytes()
    assert content.count(true) == 2, "in the entry and in the directory"
    path.write_bytes(content.replace(true, lie))
    found = platforms.unpack(path, tmp_path / "out")
    assert (tmp_path / "out" / FOLDER / "a.ipynb").stat().st_size <= 9
    student = found.students[FOLDER]
    assert "Bad CRC-32" in student.trouble and not student.fault


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_is_full_while_a_zip_is_unpacked_costs_nobody_a_file(tmp_path, monkeypatch, number):
    def fails(source, target):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(platforms.shutil, "copyfileobj", fails)
    with pytest.raises(OSError, match=os.strerror(number)):
        unpack(tmp_path, TWO)


def test_a_zip_that_is_larger_than_the_disk_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(platforms.shutil, "disk_usage", lambda folder: SimpleNamespace(free=3))
    with pytest.raises(ClassroomError, match="Unpacked, the zip has 0.0 GB; .* has less"):
        unpack(tmp_path, {f"{MOODLE}/a.ipynb": "1234"})


OUT = ["/etc/a.ipynb", "../a.ipynb", "../../out/a.ipynb", f"../{MOODLE}/a.ipynb", "C:\\a.ipynb", f"{MOODLE}//a.ipynb"]
OUT += [f"{MOODLE}/../../a.ipynb", f"{MOODLE}/../Bo (72)/{NAME}.ipynb", f"{MOODLE}\\..\\a.ipynb"]


@pytest.mark.parametrize("bad", OUT)
def test_no_path_leads_out(tmp_path, bad):
    found, files = unpack(tmp_path, {bad: "evil", f"Bo_72_assignsubmission_file_/{NAME}.ipynb": "Bo's"})
    assert files == {f"Bo (72)/{NAME}.ipynb": "Bo's"}
    assert (len(found.lines) == 1 and "a.ipynb" in found.lines[0]) or NAME in found.lines[0]


def test_links_and_encrypted_files_are_left_out(tmp_path):
    link = zipfile.ZipInfo(f"{MOODLE}/a.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = pack(tmp_path / "in" / "x.zip", {link: "/etc/passwd", f"{MOODLE}/b.ipynb": "b"})
    content = bytearray(path.read_bytes())
    content[content.rindex(b"PK\x01\x02") + 8] |= 1  # the flag of the last entry in the directory
    path.write_bytes(content)
    found = platforms.unpack(path, tmp_path / "out")
    assert [*(tmp_path / "out").rglob("*")] == [tmp_path / "out" / FOLDER], "so there is a line and a reason"
    its = "Zo\\xeb Lee_71_assignsubmission_file_"
    assert found.lines == [f"{its}/a.ipynb is a link: left out", f"{its}/b.ipynb is encrypted: left out"]


def test_names_in_any_encoding(tmp_path):
    """UTF-8 without its flag, an old code page, bytes that are neither, and what a terminal would obey."""
    names = ["Zoë_1_assignsubmission_file_/é.py".encode(), "Zoë_2_assignsubmission_file_/é.py".encode("cp437")]
    names += [b"Zo\xff\xfe_3_assignsubmission_file_/\xff.py", b"A\x1b[2J_4_assignsubmission_file_/a.py"]
    placeholders = {f"{n}{'x' * (len(name) - 1)}".encode(): name for n, name in enumerate(names)}
    path = pack(tmp_path / "in" / "x.zip", {each.decode(): "1" for each in placeholders})
    content = path.read_bytes()
    for placeholder, name in placeholders.items():
        content = content.replace(placeholder, name)
    path.write_bytes(content)
    found = platforms.unpack(path, tmp_path / "out")
    assert {"Zoë (1)", "Zoë (2)", "A\\x1b[2J (4)"} < {*found.students} and len(found.students) == 4
    assert len([*(tmp_path / "out").rglob("*.py")]) == 4 and not found.lines and not wrong(found)
    assert {each.student for each in find_submissions(tmp_path / "out", NAME)[0]} == {*found.students}


@pytest.mark.parametrize("name", [".hidden", "x" * 140, "ë" * 125, "a\nb", "..", " "])
def test_names_that_a_folder_cannot_have_as_they_are(tmp_path, name):
    found, _ = unpack(tmp_path, {f"{name}_7_assignsubmission_file_/a.ipynb": "1"})
    (submission,), lines = find_submissions(tmp_path / "out" / "new", NAME)
    assert [submission.student] == [*found.students] and submission.student.endswith(" (7)") and not lines


def test_files_in_each_others_way_cost_no_more_than_themselves(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(tmp_path / "in" / "x.zip", "w") as archive:
        for name, content in [("a.ipynb", "first"), ("a.ipynb", "second"), ("a.ipynb/b", ""), ("x" * 300, "")]:
            archive.writestr(f"{MOODLE}/{name}", content)
    found = platforms.unpack(tmp_path / "in" / "x.zip", tmp_path / "out")
    assert [path.read_text() for path in (tmp_path / "out" / FOLDER).iterdir()] == ["first"]
    assert [line.rpartition(": ")[2] for line in found.lines] == ["File exists", "File exists", "File name too long"]


def test_too_many_files_and_folders_too_deep(tmp_path, monkeypatch):
    monkeypatch.setattr(submissions, "MOST", 1)
    deep = "d/" * DEEPEST
    found, files = unpack(tmp_path, {f"{MOODLE}/a": "", f"{MOODLE}/b": "", f"Bo_72_assignsubmission_file_/{deep}a": ""})
    assert wrong(found) == {
        FOLDER: "it has more than 1 files and folders",
        "Bo (72)": f"its folders are nested more than {DEEPEST} deep",
    }
    assert files == {}


def test_another_students_name_in_a_path_gives_nobody_anything(tmp_path):
    """A student chooses the names of files and folders, so only the first part of a path says whose it is."""
    _, files = unpack(tmp_path, {f"{MOODLE}/Bo_72_assignsubmission_file_/a.ipynb": "x", f"{MOODLE}b": "y"})
    assert {path.partition("/")[0] for path in files} == {FOLDER}
    canvas = pack(tmp_path / "in" / "y.zip", {"leezo_71_501_bo_72_502_a.ipynb": "x"})
    assert [*platforms.unpack(canvas, tmp_path / "out" / "canvas").students] == ["leezo (71)"]


UNNAMED = "holds no file that is named as Moodle or Canvas"
REFUSED = {
    "of another kind": (["a/a.ipynb"], UNNAMED),
    "empty": ([], UNNAMED),
    "of a group": (["Default group_assignsubmission_file_/Bo_72_assignsubmission_file_/a.ipynb"], UNNAMED),
    "no zip": (None, "is no zip that can be read: File is not a zip file"),
    "with a name that is flagged as UTF-8 and is not": (
        [f"{MOODLE}/é.py"],
        "is no zip that can be read: 'utf-8' codec",
    ),
}


@pytest.mark.parametrize(("names", "words"), REFUSED.values(), ids=REFUSED)
def test_other_zips_are_refused(tmp_path, names, words):
    path = tmp_path / "in" / "x.zip"
    if names is None:
        path.write_text("My answers are in the mail.")
    else:
        path.write_bytes(pack(path, dict.fromkeys(names, "1")).read_bytes().replace("é".encode(), b"\xff\xff"))
    with pytest.raises(ClassroomError, match=words):
        platforms.unpack(path, tmp_path / "out")


@pytest.mark.parametrize("where", ["at its start", "in the midst", "a method that zipfile does not know"])
def test_a_damaged_entry_is_no_fault_of_the_student(tmp_path, where):
    name, text = f"{MOODLE}/a.ipynb".encode(), "".join(map(str, range(999)))
    path = pack(tmp_path / "in" / "x.zip", {name.decode(): text, "Bo_72_assignsubmission_file_/a": "1"})
    content = bytearray(path.read_bytes())
    first, last = content.index(name), content.rindex(name)  # in the entry and in the directory
    data = first + len(name)
    for at in {"at its start": [data], "in the midst": [data + 99]}.get(where, [first - 22, last - 36]):
        content[at] ^= 0x7F
    path.write_bytes(content)
    found = platforms.unpack(path, tmp_path / "out")
    assert [*wrong(found)] == [FOLDER] and "a.ipynb cannot be unpacked: " in found.students[FOLDER].trouble
    assert (tmp_path / "out" / "Bo (72)" / "a").read_text() == "1"


# ------------------------------------------------------------------ what goes back

HEADER = "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
HEADER += "Last modified (submission),Last modified (grade),Feedback comments"
SHEET = f"""\ufeff{HEADER}
Participant 71,Zoë Lee,zoe@example.org,"Submitted for grading - 3 hours late",,4.00,Yes,"Monday, 2 March 2026, 9:00 AM",-,
Participant 72,Bo,bo@example.org,Submitted for grading,,4.00,Yes,-,-,
Participant 99,Cy,cy@example.org,No submission,,4.00,Yes,-,-,"by hand, ""2""
lines"
"""
RIGHT = Result({"check_a": [1.5, 2.0], "check_b": [2.0, 2.0]}, {"check_a": "a < b, at $d$ = 2"})
RESULTS = {FOLDER: RIGHT, "Bo (72)": failure({"check_a": 2.0, "check_b": 2.0}, "=1+1")}
SAID = {"71": "3.5 of 4 points; a: a &lt; b, at $d$ = 2", "72": "0 of 4 points; =1+1"}
TWO = {f"{MOODLE}/{NAME}.ipynb": "1", f"Bo_72_assignsubmission_file_/{NAME}.ipynb": "2"}


def returned(tmp_path, files, results=RESULTS, sheets=()):
    """What goes back: (the table, the files of the zip, the printed lines)."""
    for number, sheet in enumerate(sheets):
        (tmp_path / "in" / f"{number}.csv").write_text(sheet, encoding="utf-8")
        os.utime(tmp_path / "in" / f"{number}.csv", (number, number))
    found, _ = unpack(tmp_path, files)
    graded = tmp_path / "graded"
    graded.mkdir()
    lines = platforms.write_back(found, graded, NAME, results)
    base = graded / found.platform.lower()
    assert lines[-1] == f"for {found.platform}: {base}.csv and {base}.zip"
    with zipfile.ZipFile(f"{base}.zip") as archive:
        contents = {name: archive.read(name).decode() for name in archive.namelist()}
    return [*csv.reader(io.StringIO(base.with_suffix(".csv").read_text()))], contents, lines[:-1]


def test_moodles_worksheet_is_filled_and_the_rest_of_it_stays(tmp_path):
    other = SHEET.replace("Participant ", "Participant 9")  # of another assignment, newer
    older = SHEET.replace("Zoë Lee", "Zoë")
    table, _, lines = returned(tmp_path, TWO, sheets=["a,b\n1,2\n", older, SHEET, other])
    before = [*csv.reader(io.StringIO(SHEET.removeprefix("\ufeff")))]
    for line in before[1:3]:
        number = line[0].split()[1]
        line[4], line[9] = {"71": "3.5", "72": "0"}[number], SAID[number]
    assert table == before
    assert lines == [f"late: {FOLDER}"]


def test_a_formula_in_what_students_choose_is_none_in_the_worksheet(tmp_path):
    sheet = SHEET.replace("Zoë Lee", "=cmd|' /C calc'!A0").replace("bo@", "+bo@").replace("Feedback", "City,Feedback")
    table, _, _ = returned(tmp_path, TWO, sheets=[sheet.replace("Yes,-,-,", "Yes,-,-,@home,")])
    assert table[1][1] == "'=cmd|' /C calc'!A0" and table[2][2] == "'+bo@example.org"
    assert table[2][9] == "'@home" and table[2][7] == "-", "what Moodle reads back stays"


def test_without_a_worksheet_moodles_columns_are_written(tmp_path):
    table, _, lines = returned(tmp_path, TWO)
    assert ",".join(table[0]) == HEADER
    assert table[1] == ["Participant 71", "Zoë Lee", "", "", "3.5", "4", "Yes", "-", "-", SAID["71"]]
    assert lines == ["beside the zip lies no worksheet of this assignment, so Moodle's other columns stay empty"]


def test_marks_fit_moodles_maximum_and_who_is_not_in_the_worksheet_is_named(tmp_path):
    sheet = SHEET.replace("4.00", "100.00").replace("Participant 72", "Participant 12")
    table, _, lines = returned(tmp_path, TWO, sheets=[sheet])
    assert [row[4] for row in table[1:]] == ["87.5", "", ""]
    assert lines[:2] == ["Moodle's maximum is 100, not 4: marks are scaled", "not in the worksheet: Bo (72)"]


def test_moodles_feedback_is_named_as_its_importer_reads_it(tmp_path):
    """The rule of importziplib.php: the first part of a path that splits at _ into name, number, assignsubmission, file."""
    _, contents, _ = returned(
        tmp_path, {f"Zoë Lee_71_assignsubmission_file/{NAME}.ipynb": "1", f"{MOODLE}b.py": ""} | TWO
    )
    assert [*contents] == [f"{MOODLE}/{NAME}.html", f"Bo_72_assignsubmission_file_/{NAME}.html"]
    for path in contents:
        _, number, kind, plugin, rest = path.partition("/")[0].split("_", 4)
        assert number.isdigit() and (kind, plugin, rest) == ("assignsubmission", "file", "")
    assert "3.5 of 4 points" in contents[f"{MOODLE}/{NAME}.html"]


CANVAS_TWO = {f"leezo_71_501_{NAME}.ipynb": "1", f"leezo_71_777_{NAME}-1.ipynb": "2", "bo_LATE_72_503_a.txt": ""}
CANVAS_RESULTS = {"leezo (71)": RIGHT, "bo (72)": RESULTS["Bo (72)"]}


def test_canvas_gradebook_and_feedback_as_a_notebook_under_the_name_that_canvas_gave(tmp_path):
    """The rule of infer_comment_context_from_filename: the first two parts between _ that are numbers."""
    table, contents, lines = returned(tmp_path, CANVAS_TWO, CANVAS_RESULTS)
    assert table == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", NAME],
        ["    Points Possible", "", "", "", "", "4"],
        ["leezo", "71", "", "", "", "3.5"],
        ["bo", "72", "", "", "", "0"],
    ]
    assert lines == ["no notebook came, so Canvas takes no feedback for bo (72)", "late: bo (72)"]
    ((name, text),) = contents.items()
    assert name == f"leezo_71_777_{NAME}-1.ipynb"
    assert [part for part in name.split("_") if part.isdigit()][:2] == ["71", "777"]
    (cell,) = nbformat.reads(text, 4).cells
    assert cell.cell_type == "markdown" and "3.5 of 4 points" in cell.source and "<style" not in cell.source
    assert "at $d$ = 2" in cell.source, "Jupyter sets the formula"


@pytest.mark.parametrize(("files", "results"), [(TWO, RESULTS), (CANVAS_TWO, CANVAS_RESULTS)], ids=["Moodle", "Canvas"])
def test_who_has_no_mark_gets_nothing_back(tmp_path, files, results):
    first, second = results
    trouble = no_mark({"check_a": 2.0, "check_b": 2.0}, "no disk")
    table, contents, _ = returned(tmp_path, files, {first: trouble, second: results[second]})
    assert not [row for row in table if "71" in row[0] + row[1]] and not [name for name in contents if "71" in name]
