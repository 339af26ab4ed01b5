"""The folders and processes of a run of the grader: gone at its end. A killed run's folders go at the next run's start;
its processes end with the sandbox that they are in."""

import fcntl
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PREFIX = "grading-"


@dataclass(frozen=True)
class Limits:
    """What one submission may take."""

    cell_seconds: int = 30  # of a processor
    seconds: int = 600  # by the clock
    gigabytes: float = 2.0
    processes: int = 100


@dataclass(frozen=True)
class Place:
    """Where one submission is graded."""

    course: Path  # nbgrader's folder: the submission and its gradebook; not for the kernel to see
    own: Path  # the kernel's folder: work with the submitted files, home, tmp and run
    user: int  # the kernel's user number, or 0 for the grader's own
    show: tuple[str, ...]  # what it must be able to read beside it, first the folder of the course's package
    isolated: bool  # behind bubblewrap


@contextmanager
def workplace() -> Iterator[Path]:
    """A new folder that is removed at the end. What killed runs have left goes before."""
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"new-{PREFIX}"))
    lock = os.open(folder, os.O_RDONLY)  # held by the graders that are forked, too, until the last has ended
    fcntl.flock(lock, fcntl.LOCK_EX)
    folder = folder.rename(folder.with_name(folder.name.removeprefix("new-")))  # locked before it can be swept
    try:
        yield folder
    finally:
        remove(folder)
        os.close(lock)


def sweep() -> None:
    """Remove the folders of runs that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):  # another user's
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails where the run goes on
                if os.fstat(lock).st_uid == os.geteuid():
                    remove(folder)
            finally:
                os.close(lock)


def remove(*folders: Path) -> None:
    """By the system's own command, which minds neither depth nor names."""
    subprocess.run(["rm", "-rf", "--", *folders], check=False)


def end_below(pid: int | None = None, seconds: float = 5) -> None:
    """End all processes below this one, or below the one with this number: one may start others while it is killed."""
    import psutil

    end = time.monotonic() + seconds
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        while time.monotonic() < end:
            alive = []
            for process in parent.children(recursive=True):
                with suppress(psutil.Error):  # it may just have ended
                    process.kill()
                    if process.status() != psutil.STATUS_ZOMBIE:
                        alive.append(process)
            if not alive:
                return
            time.sleep(0.01)
