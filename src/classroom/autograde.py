"""Grade one submission with nbgrader, its code in a kernel behind a sandbox. Needs nbgrader, so `grade` forks into it."""

import functools
import json
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
import zmq.asyncio
from jupyter_client.kernelspec import KernelSpec
from nbformat.v4 import new_output
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.converters import Autograde
from nbgrader.preprocessors import Execute
from nbgrader.utils import is_grade, is_solution
from traitlets.config import Config

from classroom import sandbox, workplace
from classroom.marks import Result
from classroom.release import PART, configuration
from classroom.workplace import Limits, Place
from courseware.dependencies import needed_cells, untrained_cells
from courseware.install import VENV
from courseware.notebooks import STEADY

ROOM = 10_000_000  # bytes that stay free on the disk; with less nothing that fails is the student's fault
LONGEST = 10_000_000  # bytes of a message of the kernel; after a longer one its connection is closed
IDLE = 4  # times its processor time is how long a cell may take by the clock
STUDENT = "submission"  # to nbgrader every student is called this, each in a gradebook of its own


class Trouble(Exception):
    """The grader's or the machine's. It says nothing about the submission, so there is no mark."""


@dataclass
class Run:
    """What the runs of one submission know of each other, as nbgrader makes all that runs anew for each."""

    everything: bool = False  # all that stands above the last answer, but no training
    left_out: dict[int, str] = field(default_factory=dict)  # cells that ended the kernel, and the like, and why
    at: int | None = None  # the cell that runs; none before and after
    stuck: bool = False  # a cell ran longer than it may


def runs_needed(run: Run, limits: Limits, watch: "Watch", kernel: KernelSpec) -> type[Execute]:
    """What executes a submission: only what the answers need, and of what a cell puts out only that it raised."""

    class RunNeeded(Execute):
        def create_kernel_manager(self):
            manager, context = super().create_kernel_manager(), zmq.asyncio.Context()
            manager.kernel_spec_manager.get_kernel_spec = lambda kernel_name: kernel  # whatever the notebook names
            context.setsockopt(zmq.MAXMSGSIZE, LONGEST)
            context.setsockopt(zmq.RCVHWM, 10)  # messages that wait here; the others do in the kernel's own memory
            manager.client = functools.partial(manager.client, context=context)
            return manager

        def preprocess(self, nb, resources):
            graded = [number for number, cell in enumerate(nb.cells) if is_grade(cell) or is_solution(cell)]
            self.needed = needed_cells(nb.cells, graded)
            if run.everything:
                self.needed |= {number for number in untrained_cells(nb.cells) if number < max(graded)}
            done = super().preprocess(nb, resources)
            run.at = None
            return done

        def preprocess_cell(self, cell, resources, index):
            if index in run.left_out:
                cell.outputs = [new_output("error", ename="Ended", evalue=run.left_out[index], traceback=[])]
            elif index in self.needed:
                run.at = index
                self.start, run.stuck = (watch.used, time.monotonic()), False
                return super().preprocess_cell(cell, resources, index)
            return cell, resources

        async def _async_handle_timeout(self, timeout, cell=None):
            """Asked every second. What counts is processor time, so that a busy machine takes nobody's points."""
            used, since = self.start
            if watch.used - used < limits.cell_seconds and time.monotonic() - since < IDLE * limits.cell_seconds:
                return None
            run.stuck = True
            return await super()._async_handle_timeout(timeout, cell)

        def process_message(self, msg, cell, cell_index):
            """What is printed or shown is dropped. Whether the cell raised stands in the kernel's reply."""
            return super().process_message(msg, cell, cell_index) if msg["msg_type"] == "status" else None

    return RunNeeded


class Watch(threading.Thread):
    """Ends all processes below this one when together they take too much; reason says what it was."""

    def __init__(self, limits: Limits, folder: Path):
        super().__init__(daemon=True)
        self.limits, self.folder, self.reason, self.late, self.full = limits, folder, "", False, False
        self.peak, self.used = 0, 0.0  # bytes, and seconds of the processors
        self.between = threading.Lock()  # held between two kernels, so that none is blamed for the one before

    def run(self) -> None:
        end, parent = time.monotonic() + self.limits.seconds, os.getppid()
        while True:
            time.sleep(0.1)
            if os.getppid() != parent:  # killed: end as well, and all that was started
                workplace.end_below()
                os._exit(1)
            self.late = time.monotonic() > end
            with self.between:
                self._look()

    def _look(self) -> None:
        processes = psutil.Process().children(recursive=True)
        self.used = sum(_each(processes, lambda process: sum(process.cpu_times()[:4])))  # with children that have ended
        memory = sum(_each(processes, lambda process: process.memory_info().rss))
        if memory > self.limits.gigabytes * 1e9:  # pages that several share count for each: look closer
            memory = sum(_each(processes, lambda process: process.memory_full_info().pss))
        self.peak = max(self.peak, memory)
        self.full |= shutil.disk_usage(self.folder).free < ROOM
        if self.full:
            self.reason = "the disk is full"
        elif memory > self.limits.gigabytes * 1e9:
            self.reason = f"it took more than {self.limits.gigabytes:g} GB of memory"
        elif len(processes) > self.limits.processes:
            self.reason = f"it started more than {self.limits.processes} processes"
        elif self.late:
            self.reason = f"it ran longer than {self.limits.seconds} s"
        else:
            return
        list(_each(processes, psutil.Process.kill))


def _each(processes: list[psutil.Process], ask: Callable[[psutil.Process], float]) -> Iterator[float]:
    """What each answers; one that has ended in the meantime is left out."""
    for process in processes:
        with suppress(psutil.Error):
            yield ask(process)


def autograde(place: Place, name: str, limits: Limits) -> Result:
    """Grade the submission that lies in place.course, in a process of its own; what is printed goes into a file.

    Where an answer raised it is run once more with all cells above the last answer but the trainings, and the
    better of the two runs counts. Where nbgrader fails or no kernel starts, Trouble is raised.
    """
    with (place.course / "log").open("w") as log:
        for stream in (1, 2):
            os.dup2(log.fileno(), stream)
    watch, run = Watch(limits, place.own), Run()
    execute = runs_needed(run, limits, watch, _kernel(place, limits))
    api = NbGraderAPI(config=_settings(place, limits, execute))
    watch.start()
    found, raised = _run(api, name, place, watch, run)
    if raised:
        run.everything = True
        with suppress(Trouble):
            again, _ = _run(api, name, place, watch, run)
            found = max(found, again, key=lambda result: result.mark)
    found.memory = watch.peak
    return found


def _run(api: NbGraderAPI, name: str, place: Place, watch: Watch, run: Run) -> tuple[Result, bool]:
    """Run and mark it, and say whether an answer raised.

    A cell that ends the kernel or cannot be interrupted is left out the next time. What breaks the kernel in another
    way may have come from outside once; the second time it is the submission's.
    """
    broken = 0
    while True:
        with watch.between:
            fresh(place.own / "run")
            run.at, run.stuck, watch.reason = None, False, ""
        done = api.autograde(name, STUDENT)
        if watch.full:
            raise Trouble(f"less than {ROOM // 1_000_000} MB were free in {tempfile.gettempdir()}")
        if done["success"] or watch.late:
            break
        log = f"{done.get('log')}{done.get('error')}"
        if run.at is None:
            lines = [line.strip() for line in log.splitlines() if "Error" in line and "Traceback" not in line]
            raise Trouble(lines[-1][:200] if lines else "nbgrader failed")
        died = re.search("Kernel died|DeadKernelError", log)
        if not (watch.reason or died or run.stuck):
            broken += 1
        if broken > 1:
            watch.reason = "its code broke the kernel in which it ran, twice"
            break
        stuck = f"it ran longer than {watch.limits.cell_seconds} s and could not be interrupted"
        lost = "its code broke the connection to its kernel, as does output of more than 10 MB at once"
        crashed = "its code ended or crashed the kernel"
        run.left_out[run.at] = watch.reason or (crashed if died else stuck if run.stuck else lost)
    found = Result({}, reason="" if done["success"] else watch.reason)
    with Gradebook(api.coursedir.db_url) as gradebook:
        for cell in gradebook.find_notebook(name, name).grade_cells:
            found.marks[cell.name] = [0.0, cell.max_score]
        if found.reason:
            return found, False
        for grade in gradebook.find_submission_notebook(name, name, STUDENT).grades:
            found.marks[grade.name][0] = grade.score
    marked = place.course / "autograded" / STUDENT / name / f"{name}.ipynb"
    return found, _tell(found, json.loads(marked.read_text(encoding="utf-8"))["cells"], place)


def fresh(run: Path) -> None:
    """An empty folder for the next kernel, and no process of the last: what either left may be anything."""
    workplace.end_below(seconds=60)
    run.rename(run.with_name(f"run-{time.monotonic_ns()}"))
    run.mkdir()


def _settings(place: Place, limits: Limits, execute: type[Execute]) -> Config:
    """nbgrader's settings, under which `execute` runs the cells, in a kernel that listens on files: it may have no network."""
    settings = configuration(place.course)
    steps = [execute if step is Execute else step for step in Autograde().autograde_preprocessors]
    settings.Autograde.autograde_preprocessors = steps
    settings.RunNeeded.timeout = 1
    settings.RunNeeded.iopub_timeout = 10
    told = f"it ran longer than {limits.cell_seconds} s"
    settings.RunNeeded.error_on_timeout = {"ename": "CellTimeoutError", "evalue": told, "traceback": [""]}
    settings.ConnectionFileMixin.transport = "ipc"
    settings.ConnectionFileMixin.connection_file = str(place.own / "run" / "kernel.json")
    return settings


def _kernel(place: Place, limits: Limits) -> KernelSpec:
    """How a kernel is started: behind the sandbox."""
    environment = STEADY | {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"PYTHONPATH": place.show[0], "POSENC_STRICT": "1"}
    memory, python = int(limits.gigabytes * 1e9), os.path.join(os.path.realpath(VENV), "bin", "python")
    wanted = asdict(place) | {"disk": memory // 10, "memory": memory, "python": python, "environment": environment}
    command = [python, "-I", "-S", sandbox.__file__, json.dumps(wanted, default=str), "{connection_file}"]
    return KernelSpec(argv=command, interrupt_mode="message")


def _tell(found: Result, cells: list[dict], place: Place) -> bool:
    """Note for each check that failed why, and what was answered. Returns whether an answer raised."""
    answers, raised = {}, False
    for cell in cells:
        role = cell["metadata"].get("nbgrader", {})
        errors = [output for output in cell.get("outputs", ()) if output["output_type"] == "error"]
        name = role.get("grade_id", "").removeprefix("check_").removeprefix(PART)
        if role.get("solution"):
            answers[name] = "".join(cell["source"]), errors
        elif role.get("grade") and errors:
            source, earlier = answers.get(name, ("", []))
            error = earlier[-1] if earlier and errors[-1]["ename"] == "NameError" else errors[-1]
            told = ": ".join(filter(None, [error["ename"], error["evalue"].strip()]))
            judged = error["ename"] in ("AssertionError", "Ended", "CellTimeoutError")
            part = role["grade_id"].startswith(PART)  # whose exercise tells whether it raised, or is not attempted
            raised |= not part and (not judged or ": it raised " in told)
            trace = _plain("\n".join(error["traceback"]), place)[-10_000:]
            if part and error["ename"] == "NotImplementedError":
                told = "not attempted yet"
            if told == "not attempted yet" or told.startswith(f"AssertionError: {name}: "):
                trace = ""  # of the check's own lines; the reason is all that it says
            found.shown[role["grade_id"]] = [source[:20_000], trace]
            first = _plain(error["evalue"] if judged and error["evalue"] else told, place).strip().partition("\n")[0]
            found.notes[role["grade_id"]] = first.removeprefix(f"{name}: ")[:200]
    return raised


def _plain(text: str, place: Place) -> str:
    """Without colours, the grader's folders and the lines that mark hidden tests."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"^.*### (BEGIN|END) HIDDEN TESTS\n?", "", text, flags=re.MULTILINE)
    for folder in (f"{place.own}/work", *place.show):
        text = text.replace(f"{folder}/", "")
    return text
