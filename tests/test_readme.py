"""Every command in README, TEACHING and CONTRIBUTING: make starts what it should, the others name what exists, and a test runs them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from courseware import notebooks
from courseware.replicate import read_table

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = "\n".join(
    (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "TEACHING.md", "CONTRIBUTING.md")
)

# What make starts, with the Python of which environment, and the tests that run the same for real.
MAKE = {
    "make": ("", "courseware/test_install.py: test_make_alone_lists_the_targets"),
    "make lab": ("install.py lab", "courseware/test_install.py: test_the_second_call_installs_nothing"),
    "make assignment CHAPTER=04": (
        ".venv-classroom -m classroom.release 04",
        "classroom/test_release.py: released",
    ),
    "make assignment CHAPTER=04 WORKED=1": (
        ".venv-classroom -m classroom.release 04 --worked",
        "classroom/test_release.py: "
        "test_worked_functions_and_fewer_hints_are_handed_out_on_purpose_and_only_then",
    ),
    "make assignment CHAPTER=04 HINTS=1": (
        ".venv-classroom -m classroom.release 04 --hints 1",
        "classroom/test_release.py: "
        "test_worked_functions_and_fewer_hints_are_handed_out_on_purpose_and_only_then",
    ),
    "make grade CHAPTER=04 FROM=folder-of-what-came-back": (
        ".venv-classroom -m classroom.grade 04 folder-of-what-came-back",
        "classroom/test_grade.py: graded",
    ),
    "SANDBOX=none make grade CHAPTER=04 FROM=folder-of-what-came-back": (
        ".venv-classroom -m classroom.grade 04 folder-of-what-came-back",
        "classroom/test_marks.py: test_names_are_no_formulas_and_a_missing_sandbox_is_noted",
    ),
    "make grade CHAPTER=04 FROM=what-came-back.zip": (
        ".venv-classroom -m classroom.grade 04 what-came-back.zip",
        "classroom/test_grade.py: test_moodles_zip_is_graded_and_its_worksheet_filled",
    ),
    "make gradescope CHAPTER=04": (
        ".venv-classroom -m classroom.gradescope 04",
        "classroom/test_gradescope.py: test_gradescope_gives_the_marks_that_make_grade_gives",
    ),
    "make check": (".venv -m pytest -n 2 -m not slow tests", "test_readme.py: test_make_starts_it"),
    "make test": (".venv -m pytest -m browser tests", "test_readme.py: test_make_starts_it"),
    "make notebooks CHAPTER=01": (
        ".venv -m courseware.notebooks 01 start",
        "courseware/test_execution.py: test_two_runs_leave_the_same_bytes",
    ),
    "make bench": (
        ".venv tests/bench.py",
        "test_bench.py: test_moves_are_measured_in_a_kernel",
    ),
    "FRESH=1 make notebooks": (
        ".venv -m courseware.notebooks",
        "courseware/test_execution.py: test_two_runs_leave_the_same_bytes",
    ),
    "make replicate": (
        ".venv -m courseware.replicate",
        "courseware/test_replicate.py: test_a_claim_that_holds_in_half_of_the_sets_is_reported",
    ),
    "make replicate SETS=16": (
        ".venv -m courseware.replicate --sets 16",
        "courseware/test_replicate.py: test_a_claim_that_holds_in_half_of_the_sets_is_reported",
    ),
    "DASK_SCHEDULER_ADDRESS=tcp://host:8786 make replicate": (
        ".venv -m courseware.replicate",
        "courseware/test_replicate.py: test_an_address_in_the_environment_is_used",
    ),
    "make site": (
        ".venv -m courseware.site.pages",
        "courseware/site/test_pages.py: test_a_page_over_the_limit_fails",
    ),
    "make load": (".venv-classroom tests/bench.py grading", "test_readme.py: test_load_is_measured"),
}

# A file that the others read, or an ingredient of ours that they name, and the words that must stand in it.
OTHERS = {
    "JOBS=4": ("Makefile", "--workers $(JOBS)"),
    "POSENC_STRICT=1": ("src/posenc/lesson/exercises.py", 'os.environ.get("POSENC_STRICT") == "1"'),
    "conda env create -f environment.yml": ("environment.yml", "  - conda-forge\n"),
    "conda activate posenc": ("environment.yml", "name: posenc\n"),
    "CHAPTER=03": ("Makefile", "courseware.replicate $(CHAPTER)"),
    "PACE=3": ("Makefile", "--pace $(PACE)"),
    "STEPS=4": ("Makefile", "--steps $(STEPS)"),
    ".venv\\Scripts\\activate": ("README.md", "On Windows"),
    "python -m venv .venv": ("src/courseware/install.py", '"-m", "venv"'),
    "pip install -c constraints.txt -e .[course,models]": ("pyproject.toml", "\nmodels = ["),
    "KEEP_PICTURES=1 python -m pytest tests/posenc/chapters/test_pictures.py": (
        "tests/posenc/chapters/test_pictures.py",
        "KEEP_PICTURES=1 python -m pytest tests/posenc/chapters/test_pictures.py",
    ),
    "python -m courseware.lab": ("src/courseware/install.py", '"-m", "courseware.lab"]'),
    'sudo -E /opt/tljh/user/bin/pip install --extra-index-url https://download.pytorch.org/whl/cpu -c constraints.txt ".[course,models]"': (
        "src/courseware/install.py",
        'CPU_BUILDS = "https://download.pytorch.org/whl/cpu"',
    ),
    "sudo tljh-config set limits.memory 2G": ("TEACHING.md", "singleuser.memory.limit: 2G"),
    "sudo tljh-config reload": ("TEACHING.md", "sudo tljh-config set "),
    "jupyter-repo2docker --no-run --image-name NAME .": ("environment.yml", "      - -e .[course,models]\n"),
    "SANDBOX=none": ("src/classroom/grade.py", 'os.environ.get("SANDBOX") != "none"'),
    "sudo apt install chromium": (".ci/run", "--no-install-recommends bubblewrap chromium "),
    "sudo apt install bubblewrap": (".ci/run", "--no-install-recommends bubblewrap chromium "),
}


# The sentences in TEACHING.md on what is protected and what is not, by their beginnings, and the tests that hold them.
PROTECTED = {
    "The first line": "grade: test_the_first_line_says_what_submissions_are_kept_from",
    "A submission runs in a kernel": "sandbox: test_limits_hold_without_isolation",
    "The process that gives": "grade: test_everyone_gets_the_expected_mark",
    "It runs behind": "sandbox: test_bubblewrap_hides_what_is_to_be_hidden",
    "Its work folder": "sandbox: test_bubblewrap_hides_what_is_to_be_hidden",
    "What it started ends": "workplace: test_nothing_is_left_of_a_grader_that_was_killed",
    "Where bubblewrap does not": "sandbox: test_where_bubblewrap_is_missing_or_fails_it_is_said_how_to_get_it",
    "In a container": "workplace: test_a_daemon_ends_with_its_submission_where_there_is_no_sandbox",
    "Then a submission has": "marks: test_names_are_no_formulas_and_a_missing_sandbox_is_noted",
    "What it started still": "workplace: test_a_daemon_ends_with_its_submission_where_there_is_no_sandbox",
    "Started as root": "sandbox: test_limits_hold_without_isolation",
    "Otherwise it runs": "sandbox: test_limits_hold_without_isolation",
    "With `SANDBOX=none` root": "grade: test_without_a_sandbox_root_refuses_where_its_users_cannot_reach_the_course",
    "A grader that was": "workplace: test_nothing_is_left_of_a_grader_that_was_killed",
    "The next `make grade`": "workplace: test_nothing_is_left_of_a_grader_that_was_killed",
    "With less than 10 MB": "workplace: test_a_disk_filler_costs_nobody_a_mark",
    "A mark that is stored": "workplace: test_a_full_disk_loses_no_mark_and_the_next_run_goes_on",
    "A page of feedback loads": "marks: test_a_formula_brings_no_tag_and_no_address",
    "A hidden test is sent": "grade: test_the_reason_of_a_missing_mark_is_told",
    "Code that is written": "grade: test_the_reason_of_a_missing_mark_is_told",
    "Marks show what": "grade: test_everyone_gets_the_expected_mark",
    "The solutions are": "release: test_the_worked_functions_are_a_module_that_passes_every_check",
    "A submission is graded": "grade: test_the_reason_of_a_missing_mark_is_told",
}


def commands(text):
    """The lines of the fenced blocks, and what stands in code within a line and starts like a command."""
    fenced = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    starts = r"([A-Z_]+=\S+$|([A-Z_]+=\S+ )?(make|conda|jupyter|sudo|pip|python3?|npm|git|nbgrader|docker)\b)"
    lines = "".join(fenced).splitlines() + [code for code in inline if re.match(starts, code)]
    return dict.fromkeys(line.partition("#")[0].strip() for line in lines)


def test_every_command_is_known():
    found, known = set(commands(DOCUMENTS)), {*MAKE, *OTHERS}
    named = {command for command in found if any(each.startswith(f"{command} ") for each in MAKE)}
    assert found - named <= known
    assert known <= found, "and what the README says no longer is not here"


def test_a_new_command_is_seen():
    text = "Run `make lab` or `X=1 make fly`.\n```sh\nmake bread  # twice\n```\n`pip install x`, `PIP`, `a_file`."
    assert [*commands(text)] == ["make bread", "make lab", "X=1 make fly", "pip install x"]


@pytest.mark.parametrize("command", MAKE)
def test_make_starts_it(command, tmp_path):
    """In a folder where the Pythons of the environments and the installer only say how they were called."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in (".venv", ".venv-classroom"):
        program = tmp_path / name / "bin" / "python"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\necho "{name} $*"\n')
        program.chmod(0o755)
    installer = tmp_path / "src" / "courseware" / "install.py"
    installer.parent.mkdir(parents=True)
    installer.write_text("import sys\nprint('install.py', *sys.argv[1:])\n")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
    }
    environment["PYTHON"] = sys.executable
    done = subprocess.run(
        command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    started, runs = MAKE[command]
    assert started in done.stdout.splitlines() or not started
    for module in re.findall(r"-m (courseware[.\w]+)", done.stdout):
        assert (ROOT / "src" / f"{module.replace('.', '/')}.py").exists()
    file, _, name = runs.partition(": ")
    assert f"def {name}(" in (ROOT / "tests" / file).read_text()


@pytest.mark.parametrize("command", OTHERS)
def test_it_names_what_exists(command):
    file, words = OTHERS[command]
    assert words in (ROOT / file).read_text()
    for word in command.split()[1:]:
        assert (ROOT / word).exists() or not re.fullmatch(r"\w+\.(yml|txt)|notebooks|\.", word)


def test_the_table_of_chapters_says_what_the_chapters_say():
    rows = re.findall(r"^\| \[(.*?)\]\((notebooks/\d.*?)\) \| .*\? \| (\d+) min \|$", README, re.MULTILINE)
    openings = {
        path: notebooks.read(path).cells[0].source
        for path in sorted(notebooks.NOTEBOOKS.glob("[0-9]*.ipynb"))
    }
    said = [
        (title.replace(" · ", " "), f"notebooks/{path.name}", minutes)
        for path, opening in openings.items()
        for title, minutes in re.findall(r"^# (.*)\n(?:.*\n)*?.*\*\*Time\*\* (\d+) min", opening)
    ]
    assert rows == said and len(said) == len(openings)


@pytest.mark.slow
def test_load_is_measured(classroom_python):
    """With one submission, which says nothing of two at once; so the verdict of the command may be either."""
    command = [classroom_python, "tests/bench.py", "grading", "--chapter", "01", "--count", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    measured = r"^(\d) at once: +\d+\.\d a minute, \d\.\d\d GB for the largest$"
    assert re.findall(measured, done.stdout, re.MULTILINE) == ["1", "2"], done.stderr
    assert done.returncode == 0 or "BEYOND THE LIMIT" in done.stdout


def test_every_sentence_on_what_is_protected_has_its_test():
    teaching = (ROOT / "TEACHING.md").read_text(encoding="utf-8")
    section = re.search(r"^## What is protected.*?$(.*?)^## ", teaching, re.MULTILINE | re.DOTALL)[1]
    sentences = re.split(r"(?<=\.)\s+(?:- )?", section.strip().replace("\n- ", "\n"))
    known = {start: [s for s in sentences if s.startswith(start)] for start in PROTECTED}
    assert all(len(found) == 1 for found in known.values()), {k: v for k, v in known.items() if len(v) != 1}
    assert {s for s in sentences if s} == {found[0] for found in known.values()}
    for test in PROTECTED.values():
        file, _, name = test.partition(": ")
        assert f"def {name}(" in (ROOT / "tests/classroom" / f"test_{file}.py").read_text()


def test_what_it_says_of_other_seeds_is_in_the_table():
    rows = [row for row in read_table() if (row.pace, row.steps) == ("1", "1")]
    held = sum(row.held == row.sets for row in rows)
    said = f"Of {len(rows)} measurements in chapters that train, {held} held in all of 16 other sets of seeds"
    assert f"{said}, and the rest in at least {min(row.held for row in rows)}." in README
    assert {row.sets for row in rows} == {16}
