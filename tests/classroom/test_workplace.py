"""What a run of the grader leaves behind: nothing, also where a submission starts a daemon, the grader is killed with
SIGKILL, or the disk is full."""

import fcntl
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import assignment
import nbformat
import psutil
import pytest
from container import container
from thorough import thorough

from classroom import workplace

NAME, RIGHT = assignment.NAME, assignment.RIGHT["a"]
DAEMON = """import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", '''
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, ["python", "-c", "import time; time.sleep(7200)", "MARK".replace("-", " ")])
''']).wait()
def a():
    while True:
        pass"""
FILLER = """def a():
    import itertools, time
    for number in itertools.count():
        with open(f"full {number}", "wb") as file:
            for _ in range(50):
                file.write(bytes(1_000_000))"""

HERE = ["/here", "--chdir", "/here", "--setenv", "SANDBOX", "none"]


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The folder for temporary files of this process and those that it starts; short, as the names of sockets are."""
    folder = Path(tempfile.mkdtemp(prefix="t"))
    folder.chmod(0o1777)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    workplace.remove(folder)


@pytest.fixture
def course(tmp_path):
    """A teacher's folder, and a function that hands in answers: name → source."""
    assignment.hand_out(tmp_path / "classroom", "a")
    (tmp_path / "in").mkdir()

    def hand_in(**answers):
        for name, answer in answers.items():
            nbformat.write(assignment.notebook(a=answer), tmp_path / "in" / f"{name}.ipynb")

    return hand_in


def grade(python, classroom="classroom", limits=("--seconds", "1200", "--cell-seconds", "1200")):
    return [python, "-m", "classroom.grade", "1", "in", "--classroom", classroom, "--workers", "2", *limits]


def marks(classroom):
    return {student: line["mark"] for student, line in assignment.table(classroom).items()}


def daemon(mark):
    """An answer that leaves a daemon; only the daemon's command line has the mark, not those of its parents."""
    return DAEMON.replace("MARK", mark.replace(" ", "-"))


def alive(mark):
    """The processes whose command line holds this."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if mark in " ".join(process.info["cmdline"] or ()) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


def until(true, seconds=600):
    end = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


# ------------------------------------------------------------------------ the parts


def test_a_folder_is_there_for_as_long_as_it_is_used(temporary):
    with workplace.workplace() as first, workplace.workplace() as second:
        assert first.is_dir() and second.is_dir(), "the second has not swept the first"
        assert {path.name for path in temporary.iterdir()} == {first.name, second.name}
    assert not list(temporary.iterdir())


def test_what_a_killed_run_has_left_is_swept_but_nothing_in_use_nor_another_users(temporary, tmp_path, monkeypatch):
    left, other = temporary / "grading-left", temporary / "grading-link"
    (left / "run" / "0").mkdir(parents=True)
    other.symlink_to(tmp_path)
    lock = os.open(left, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    workplace.sweep()
    assert left.exists(), "in use"
    os.close(lock)
    with monkeypatch.context() as user:
        user.setattr(workplace.os, "geteuid", lambda: os.getuid() + 1)
        workplace.sweep()
    assert left.exists(), "another user's"
    workplace.sweep()
    assert not left.exists() and tmp_path.exists()


# ------------------------------------------------------------- with real submissions


@pytest.mark.slow
@pytest.mark.parametrize("who", ["the grader", pytest.param("all graders at once", marks=thorough)])
def test_nothing_is_left_of_a_grader_that_was_killed(course, classroom_python, tmp_path, temporary, who, request):
    mark = f"killed {os.getpid()} {who}"
    course(eve=daemon(mark), bob=RIGHT)
    twice = '"$@"; until [ -e go ]; do sleep 0.1; done; exec "$@"'
    output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    runs = subprocess.Popen(["sh", "-c", twice, "sh", *grade(classroom_python)], cwd=tmp_path, **output)
    request.addfinalizer(lambda: [os.kill(pid, signal.SIGKILL) for pid in [*alive(mark), *alive(str(tmp_path))]])
    assert until(lambda: alive(mark)), "the daemon was not started"
    below = psutil.Process(runs.pid).children(recursive=True)
    graders = [p for p in below if "classroom.grade" in (p.as_dict(["cmdline"])["cmdline"] or ())]
    graders = [p for p in graders if p.name().startswith("python")]
    assert len(graders) >= 2
    main = min(graders, key=lambda p: p.create_time())
    for process in [main] if who == "the grader" else [main, *graders]:
        os.kill(process.pid, signal.SIGKILL)
    assert until(lambda: not alive(mark)), "the daemon goes on"
    assert [path for path in temporary.iterdir() if path.name.startswith("grading-")]
    (tmp_path / "in" / "eve.ipynb").unlink()
    (tmp_path / "go").touch()
    _, errors = runs.communicate()
    assert runs.returncode == 0, errors
    assert marks(tmp_path / "classroom") == {"bob": "2.0"}
    assert not list(temporary.iterdir())


@pytest.mark.slow
def test_a_disk_filler_costs_nobody_a_mark(course, classroom_python, tmp_path):
    """Without a sandbox a submission can fill the disk; a small /tmp stands for it."""
    course(bob=RIGHT, eve=FILLER)
    start = [*container(room=150_000_000), "--bind", tmp_path, *HERE]
    done = subprocess.run([*start, *grade(classroom_python)], capture_output=True, text=True, check=False)
    got = marks(tmp_path / "classroom")
    assert done.returncode == 1 and "no mark, and it is not their fault" in done.stderr, done.stdout + done.stderr
    assert got["eve"] == "" and got["bob"] in ("2.0", "")
    assert "eve" not in {path.stem for path in (tmp_path / "classroom" / "graded" / NAME / "results").iterdir()}


FULL = """
set -u
python="$0"; spare="$1"
run() { "$python" -m classroom.grade 1 in --classroom /class --workers 1 2>&1; echo "status $?"; }
cp -R classroom/source /class/
mv in/zoe.ipynb .
run
mv zoe.ipynb in
size=$(cat /class/graded/*/gradebook.db | wc -c)
[ "$spare" = 0 ] || dd if=/dev/zero of=/class/spare bs=4096 count=$((size / 4096 - spare)) 2>/dev/null
dd if=/dev/zero of=/class/filler bs=4096 2>/dev/null
rm -f /class/spare
run
echo "kept $(cat /class/graded/*/marks.csv | cut -d, -f1,2 | tr '\\r\\n' '  ')"
rm /class/filler
run
cp -R /class/graded .
"""


@pytest.mark.slow
@pytest.mark.parametrize("spare", [pytest.param("0", marks=thorough), "3"])
def test_a_full_disk_loses_no_mark_and_the_next_run_goes_on(course, classroom_python, tmp_path, spare):
    """With 3 blocks to spare there is room for a result and none for the gradebook; with 0 for neither."""
    course(bob=RIGHT, zoe=RIGHT)
    start = [*container(), "--bind", tmp_path, *HERE]
    start += ["--perms", "0755", "--size", "4000000", "--tmpfs", "/class", "sh", "-c", FULL, classroom_python, spare]
    done = subprocess.run(start, capture_output=True, text=True, check=False)
    _, second, third, _ = done.stdout.split("status ")
    assert second.startswith("0") and third.startswith("1"), done.stdout + done.stderr
    assert "No space left on device" in second, second
    assert "Traceback" not in done.stdout
    assert "kept student,mark bob,2.0" in third
    assert f"{1 if spare == '0' else 2} of 2 were graded before and have not changed" in third
    assert done.stdout.rstrip().endswith("status 0")
    assert marks(tmp_path) == {"bob": "2.0", "zoe": "2.0"}
    zoe = json.loads((tmp_path / "graded" / NAME / "results" / "zoe.json").read_text())
    assert zoe["marks"] == {"check_a": [2.0, 2.0]}
