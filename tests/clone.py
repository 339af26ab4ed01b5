"""A learner's way from a clone to the first moved slider, and a maintainer's to passed tests: part of `make bench`.

The last commit is cloned into a temporary folder, so what is not committed is not measured. pip takes what it has in
its cache.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from browser import chromium, lab
from hub import CHAPTER, ROOT, move_a_slider

TESTS_LIMIT = 15  # minutes, on two quiet processors


def installed_size(folder: Path) -> float:
    """What the files of a folder take on the disk, in GB."""
    return sum(512 * path.lstat().st_blocks for path in folder.rglob("*")) / 1e9


def main() -> None:
    if not chromium():
        sys.exit("no Chromium is installed: apt-get install chromium")
    with tempfile.TemporaryDirectory() as scratch:
        course, start = Path(scratch) / "course", time.time()
        subprocess.run(["git", "clone", "--quiet", ROOT, course], check=True)
        with lab(course, Path(scratch) / "home", make=True) as running:
            notebook = running.open(f"notebooks/{CHAPTER}")
            move_a_slider(notebook)
            moved = time.time()
        installed = (course / ".venv" / "installed").stat().st_mtime
        print(
            f"from a clone to the first moved slider: {moved - start:.0f} s, {installed - start:.0f} s of it installing"
        )
        print(f"installed: {installed_size(course / '.venv'):.2f} GB", flush=True)
        print("make test in that clone, which takes about as long as all its tests:", flush=True)
        start = time.time()
        red = subprocess.call(["make", "test"], cwd=course, stdout=subprocess.DEVNULL)
        minutes = (time.time() - start) / 60
        load = os.getloadavg()[0] / os.cpu_count()
        print(f"make test: {minutes:.1f} minutes, {load:.1f} tasks for each processor at the end")
        if red or minutes > TESTS_LIMIT:
            sys.exit(f"make test is to pass within {TESTS_LIMIT} minutes on two quiet processors")


if __name__ == "__main__":
    main()
