"""Marks as a table, as a page of feedback and in nbgrader's gradebook."""

import csv
import json
import re
import subprocess

import assignment
import pytest

from classroom import marks
from classroom.marks import Result


def table(tmp_path, results, **options):
    marks.write_marks(tmp_path / "marks.csv", results, **options)
    with (tmp_path / "marks.csv").open(encoding="utf-8") as file:
        return [*csv.reader(file)]


def test_marks_as_a_table_without_formulas_and_codes_that_a_terminal_obeys(tmp_path):
    points = {"check_a": 2.0, "check_b": 3.0}
    notes = {"check_a": "half of it", "check_b": "E: \x1b[2J\x9b1m\r✓"}
    results = {
        "Zoë, B.": Result({"check_a": [1.0, 2.0], "check_b": [0.0, 3.0]}, notes, seconds=1.5),
        "=1+1": marks.failure(points, "it crashed"),
        "bob": marks.no_mark(points, "no kernel starts"),
    }
    header, *lines = table(tmp_path, results)
    assert header == ["student", "mark", "points", "a", "b", "seconds", "reason", "sandbox"]
    assert lines == [
        ["Zoë, B.", "1.0", "5.0", "1.0", "0.0", "1.5", r"a: half of it; b: E: \x1b[2J\x9b1m\r✓", "bubblewrap"],
        ["'=1+1", "0.0", "5.0", "0.0", "0.0", "0.0", "it crashed", "bubblewrap"],
        [
            "bob",
            "",
            "5.0",
            "",
            "",
            "0.0",
            "no mark, this is no fault of the submission: no kernel starts",
            "bubblewrap",
        ],
    ]
    header, line, *_ = table(tmp_path, results, isolated=False, status={"Zoë, B.": "late"})
    assert (header[-2:], line[-2:]) == (["status", "sandbox"], ["late", "none"])


def test_a_page_has_the_name_and_a_table_and_is_plain_text():
    shown = {"check_a": ["<script>alert(1)</script>", "AssertionError: at {d} = 32"]}
    graded = Result({"check_a": [1.0, 2.0], "check_b": [3.0, 3.0]}, {"check_a": "half & half"}, shown)
    page = marks.page("<b>Ann</b>", "04_x", graded)
    assert "<h1>&lt;b&gt;Ann&lt;/b&gt;</h1><p>04_x: 4 of 5 points" in page and "<title>&lt;b&gt;Ann" in page
    assert "<tr><td>a</td><td>1 of 2</td><td>half &amp; half</td></tr>" in page
    assert "<tr><td>b</td><td>3 of 3</td><td></td></tr>" in page
    assert "at {d} = 32" in page and not re.search(r"<script|<link|src=|url\(", page)
    assert "<p>04_x: – of 2 points. no mark" in marks.page("Bob", "04_x", marks.no_mark({"check_a": 2.0}, "no disk"))


BOOK = """
import json, sys
from pathlib import Path
from nbgrader.api import Gradebook
from classroom import grade, marks

folder = Path(sys.argv[1])
name, path = "01_permutation_invariance", folder / "gradebook.db"
template = grade.new_template(folder / "source" / name / f"{name}.ipynb", folder / "template")

def results():
    graded = {student: marks.Result({"check_a": [got, 2.0]}) for student, got in (("ann", 1.0), ("bob", 2.0))}
    return graded | {"cid": marks.no_mark({"check_a": 2.0}, "no disk")}

counts = [marks.write_gradebook(path, template, results())]
with Gradebook(f"sqlite:///{path}") as book:
    ann = book.find_submission_notebook(name, name, "ann")
    ann.grades[0].manual_score = 1.5
    book.find_submission_notebook(name, name, "bob").grades[0].extra_credit = 0.5
    {comment.name: comment for comment in ann.comments}["a"].manual_comment = "nearly"
    book.db.commit()
late = {"dan": marks.Result({"check_a": [2.0, 2.0]})}
counts.append(marks.write_gradebook(path, template, late))
again = results()
counts.append(marks.write_gradebook(path, template, again))
with Gradebook(f"sqlite:///{path}") as book:
    scores = {s.student.id: s.score for s in book.assignment_submissions(name)}
    notebooks = [book.find_submission_notebook(name, name, student) for student in scores]
    assert not any(each.needs_manual_grade for notebook in notebooks for each in notebook.grades)
print(json.dumps([counts, scores, again["ann"].marks, again["ann"].notes, again["bob"].marks]))
"""


@pytest.mark.slow
def test_points_and_comments_by_hand_survive(tmp_path, classroom_python):
    assignment.hand_out(tmp_path, "a")
    command = [classroom_python, "-W", "ignore", "-c", BOOK, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counts, scores, marks, notes, bobs = json.loads(done.stdout.splitlines()[-1])
    assert counts == [0, 3, 3]
    assert scores == {"ann": 1.5, "bob": 2.5, "dan": 2.0}
    assert marks == {"check_a": [1.5, 2.0]} and notes == {"check_a": "nearly"}
    assert bobs == {"check_a": [2.5, 2.0]}, "extra credit counts"
