"""How many submissions are graded in a minute: `make load CHAPTER=04`.

Submissions are made up from a chapter: all exercises solved, but in each submission others are blank or wrong.
They are graded with one worker and with two, and the peak memory is that of a submission's processes.
"""

import argparse
import copy
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from courseware import notebooks
from courseware.classroom import release
from courseware.classroom.autograde import Limits
from courseware.classroom.grade import Grader, find_submissions, new_template

FASTER = 1.6  # times, with two workers on two quiet processors


def made_up(released: NotebookNode, chapter: NotebookNode, seed: int) -> NotebookNode:
    """A submission in which about half of the exercises are right, and the others blank or wrong."""
    draw = random.Random(seed)
    notebook = copy.deepcopy(released)
    solved = {c.metadata.ex.id: c.source for c in notebooks.solve(chapter).cells if "ex" in c.metadata}
    for cell in notebook.cells:
        name = cell.metadata.get("ex", {}).get("id")
        answer = draw.choice(["right", "right", "blank", "wrong"]) if name else "blank"
        if answer == "right":
            cell.source = solved[name]
        elif answer == "wrong":
            cell.source = cell.source.replace(release.STUB, 'return "not this"')
    return notebook


def measure(template: Path, source: Path, folder: Path, workers: int) -> tuple[float, float]:
    """Submissions per minute, and the peak memory of one of them in GB."""
    submissions, _ = find_submissions(folder, source.stem)
    with tempfile.TemporaryDirectory() as graded:
        grader = Grader(source, template, Path(graded), [folder], Limits())
        start, peak = time.monotonic(), 0.0
        for number, (_, result) in enumerate(grader.grade(submissions, workers=workers), start=1):
            if result["reason"]:
                sys.exit(f"a submission was not graded: {result['reason']}")
            peak = max(peak, result["memory"] / 1e9)
            print(f"\r{workers} at once: {number} of {len(submissions)}", end="", flush=True)
        print("\r", end="")
        return 60 * len(submissions) / (time.monotonic() - start), peak


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="make load", description=__doc__.partition("\n")[0])
    parser.add_argument("chapter", nargs="?", default="04")
    parser.add_argument("--count", type=int, default=200)
    given = parser.parse_args(arguments)
    path = release.chapter(given.chapter)
    with tempfile.TemporaryDirectory() as scratch:
        classroom, folder = Path(scratch) / "classroom", Path(scratch) / "submissions"
        release.assignment(path, classroom)
        source = classroom / "source" / path.stem / path.name
        template = new_template(source, Path(scratch) / "template")
        released, chapter = nbformat.read(template, as_version=4), notebooks.read(path)
        folder.mkdir()
        for number in range(given.count):
            nbformat.write(made_up(released, chapter, number), folder / f"student {number:03}.ipynb")
        print(f"{given.count} submissions of {path.stem}, {os.cpu_count()} processors")
        rates = {}
        for workers in (1, 2):
            rates[workers], peak = measure(template, source, folder, workers)
            print(f"{workers} at once: {rates[workers]:5.1f} a minute, {peak:.2f} GB for the largest")
    ratio = rates[2] / rates[1]
    load = os.getloadavg()[0] / os.cpu_count()
    print(f"two workers are {ratio:.2f} times as fast as one; {load:.1f} tasks for each processor")
    if ratio < FASTER:
        sys.exit(f"on two quiet processors they should be {FASTER} times as fast")


if __name__ == "__main__":
    main(sys.argv[1:])
