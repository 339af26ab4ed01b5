"""The folders and processes of a run of the grader: gone at its end, and where it was killed, at the next run's start."""

import ctypes
import fcntl
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "grading-"
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h


@contextmanager
def workplace() -> Iterator[Path]:
    """A new folder that is removed at the end. What killed runs have left goes before."""
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"new-{PREFIX}"))
    lock = os.open(folder, os.O_RDONLY)  # held by the graders that are forked, too, until the last has ended
    fcntl.flock(lock, fcntl.LOCK_EX)
    folder = folder.rename(
        folder.with_name(folder.name.removeprefix("new-"))
    )  # locked before it can be swept
    try:
        yield folder
    finally:
        remove(folder)
        os.close(lock)


def sweep() -> None:
    """Remove the folders of runs that were killed, and end what still works in them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):  # another user's
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails where the run goes on
                if os.fstat(lock).st_uid == os.geteuid():
                    end_in(folder)
                    remove(folder)
            finally:
                os.close(lock)


def remove(*folders: Path) -> None:
    """By the system's own command, which minds neither depth nor names."""
    subprocess.run(["rm", "-rf", "--", *folders], check=False)


def adopt() -> None:
    """From now on what loses its parent below this process becomes its child, so that it can be found."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def end_below(pid: int | None = None) -> None:
    """End all processes below this one, or below the one with this number."""
    import psutil

    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        _end(lambda: parent.children(recursive=True))


def end_in(folder: Path) -> None:
    """End the processes that were started with a home below this folder."""
    import psutil

    def inside():
        for process in psutil.process_iter(["environ"]):
            if ((process.info["environ"] or {}).get("HOME") or "").startswith(f"{folder}/"):
                yield process

    _end(inside)


def _end(find, seconds: float = 5) -> None:
    """Kill what is found until nothing is: one may start others while it is killed."""
    import psutil

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        alive = []
        for process in find():
            with suppress(psutil.Error):  # it may just have ended
                process.kill()
                if process.status() != psutil.STATUS_ZOMBIE:
                    alive.append(process)
        if not alive:
            return
        time.sleep(0.01)
