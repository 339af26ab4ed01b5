"""Grade one submission with nbgrader, its code in a kernel behind a sandbox. Needs nbgrader, so `grade` forks into it."""

import json
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from nbformat.v4 import new_markdown_cell
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.converters import Autograde
from nbgrader.preprocessors import Execute
from nbgrader.utils import is_grade, is_solution
from traitlets.config import Config

from courseware import notebooks
from courseware.classroom import sandbox
from courseware.install import VENV
from courseware.dependencies import needed_cells
from courseware.classroom.release import configuration

STUDENT = "submission"  # to nbgrader every student is called this, each in a gradebook of its own


@dataclass(frozen=True)
class Limits:
    """What one submission may take."""

    cell_seconds: int = 30
    seconds: int = 300
    gigabytes: float = 2.0
    processes: int = 100


@dataclass(frozen=True)
class Place:
    """Where one submission is graded."""

    course: Path  # nbgrader's folder: the submission, its gradebook, its feedback; not for the kernel to see
    own: Path  # the kernel's folder: work with the submitted files, home, tmp and run
    user: int  # the kernel's user number, or 0 for the grader's own
    hide: tuple[str, ...]
    keep: tuple[str, ...]
    isolated: bool  # behind bubblewrap
    python: str


class Broken(Exception):
    """Nothing can be graded here, whatever is submitted."""


class RunNeeded(Execute):
    """Runs only what the answers need, and lets a word on stderr, such as a warning, cost nothing."""

    def preprocess(self, nb, resources):
        nb.cells.insert(0, new_markdown_cell("*The cells that no answer needs were not run.*"))
        graded = [number for number, cell in enumerate(nb.cells) if is_grade(cell) or is_solution(cell)]
        self.needed = needed_cells(nb.cells, graded)
        return super().preprocess(nb, resources)

    def preprocess_cell(self, cell, resources, index):
        return super().preprocess_cell(cell, resources, index) if index in self.needed else (cell, resources)

    def on_cell_executed(self, **kwargs):
        super().on_cell_executed(**kwargs)
        cell = kwargs["cell"]
        cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]


class Watch(threading.Thread):
    """Ends all processes below this one when together they take too much; reason says what it was."""

    def __init__(self, limits: Limits):
        super().__init__(daemon=True)
        self.limits, self.reason, self.done, self.peak = limits, "", threading.Event(), 0

    def run(self) -> None:
        end = time.monotonic() + self.limits.seconds
        while not self.done.wait(0.1):
            processes = psutil.Process().children(recursive=True)
            memory = sum(map(_memory, processes))
            if memory > self.limits.gigabytes * 1e9:  # pages that several share count for each: look closer
                memory = sum(map(_own_memory, processes))
            self.peak = max(self.peak, memory)
            if memory > self.limits.gigabytes * 1e9:
                self.reason = f"it took more than {self.limits.gigabytes:g} GB of memory"
            elif len(processes) > self.limits.processes:
                self.reason = f"it started more than {self.limits.processes} processes"
            elif time.monotonic() > end:
                self.reason = f"it ran longer than {self.limits.seconds} s"
            if self.reason:
                for process in processes:
                    _kill(process)


def _memory(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.Error:
        return 0


def _own_memory(process: psutil.Process) -> int:
    """Of a page that several processes share, its share."""
    try:
        return process.memory_full_info().pss
    except psutil.Error:
        return 0


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.Error:
        pass


def autograde(place: Place, name: str, limits: Limits) -> dict:
    """Grade the submission that lies in place.course, and write its feedback there.

    Returns:
        "marks", exercise → [mark, points]; "notes", exercise → why it has no mark; "reason", why nothing was
        graded, or "". "memory" is the peak of its processes in bytes.
    """
    api = NbGraderAPI(config=_settings(place, limits))
    watch = Watch(limits)
    watch.start()
    done = api.autograde(name, STUDENT)
    watch.done.set()
    reason = "" if done["success"] else watch.reason or _reason(f"{done.get('log')}{done.get('error')}")
    if not reason:
        done = api.generate_feedback(name, STUDENT)
        if not done["success"]:
            raise Broken(f"nbgrader could not write the feedback: {done.get('log')}{done.get('error')}")
    with Gradebook(api.coursedir.db_url) as gradebook:
        cells = gradebook.find_notebook(name, name).grade_cells
        marks = {cell.name: [0.0, cell.max_score] for cell in cells}
        if not reason:
            for grade in gradebook.find_submission_notebook(name, name, STUDENT).grades:
                marks[grade.name][0] = grade.score
    notes = {} if reason else dict(_notes(place.course / "autograded" / STUDENT / name / f"{name}.ipynb"))
    return {"marks": marks, "notes": notes, "reason": reason, "memory": watch.peak}


def _settings(place: Place, limits: Limits) -> Config:
    """nbgrader's settings, and the kernel behind the sandbox instead of the plain one."""
    kernel = {
        "own": str(place.own),
        "user": place.user,
        "hide": place.hide,
        "keep": place.keep,
        "isolated": place.isolated,
        "disk": int(limits.gigabytes * 1e8),
        "python": place.python,
        "memory": int(limits.gigabytes * 1e9),
        "environment": {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "POSENC_STRICT": "1",
        },
    }
    wanted = place.course / "sandbox.json"
    wanted.write_text(json.dumps(kernel))
    argv = [place.python, "-I", "-S", sandbox.__file__, str(wanted), "{connection_file}"]
    spec = place.course / "data" / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    words = {"display_name": "Python 3", "language": "python", "interrupt_mode": "message"}
    spec.write_text(json.dumps(words | {"argv": argv}))
    os.environ["JUPYTER_PATH"] = f"{place.course / 'data'}:{VENV}/share/jupyter"  # and the pages' templates
    settings = configuration(place.course)
    settings.ClearOutput.enabled = True
    steps = [RunNeeded if step is Execute else step for step in Autograde().autograde_preprocessors]
    settings.Autograde.autograde_preprocessors = steps
    settings.RunNeeded.timeout = limits.cell_seconds
    settings.ConnectionFileMixin.transport = "ipc"  # files, since the kernel may have no network
    settings.ConnectionFileMixin.connection_file = str(place.own / "run" / "kernel.json")
    return settings


def _reason(log: str) -> str:
    """Why nbgrader gave up, from what it logged."""
    if "Kernel died before replying" in log:
        raise Broken("no kernel starts in the sandbox")
    if "Kernel died" in log or "DeadKernelError" in log:
        return "its code ended or crashed the kernel"
    lines = [line.strip() for line in log.splitlines() if "Error" in line and "Traceback" not in line]
    return f"nbgrader could not grade it: {lines[-1] if lines else 'see its log'}"[:200]


def _notes(path: Path):
    """(check, first line of the error) of each that failed."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        role = cell["metadata"].get("nbgrader", {})
        for output in cell.get("outputs", ()) if role.get("grade") else ():
            if output["output_type"] == "error":
                first = output["evalue"].strip().partition("\n")[0][:200] or output["ename"]
                yield role["grade_id"], first.removeprefix(f"{role['grade_id'].removeprefix('check_')}: ")


def run(place: Place, name: str, limits: Limits, result: Path) -> None:
    """In a process of its own: grade, and leave the result as JSON. What is printed goes into a file."""
    with (place.course / "log").open("w") as log:
        for stream in (1, 2):
            os.dup2(log.fileno(), stream)
    try:
        found = autograde(place, name, limits)
    except Broken as error:
        found = {"broken": f"{error}: {(place.course / 'log').read_text()[-1000:]}"}
    notebooks.write(result, json.dumps(found))
