"""Every claim of the chapters that train, again with other seeds: `make replicate SETS=16 CHAPTER=03 PACE=3 STEPS=4`.

A set is one run of a chapter whose cell tagged `parameters` says SEED = 1, 2, …; set 0 is what is stored. The runs are
tasks of Dask: of a cluster on this machine with one worker a processor, or of the scheduler that
DASK_SCHEDULER_ADDRESS names, whose workers have the course installed. What is done is kept in build/replication, so
the same command goes on after an interruption. The table is replication.csv beside this file: one row for each claim
under each pace and number of steps.
"""

import argparse
import csv
import functools
import hashlib
import itertools
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from courseware import notebooks
from courseware.code import code_of
from courseware.dependencies import tags
from courseware.index import Stored, stored

TABLE = Path(__file__).with_name("replication.csv")
DONE = notebooks.NOTEBOOKS.parent / "build" / "replication"


@dataclass(frozen=True)
class Row:
    """What became of one claim.

    Attributes:
        key: chapter, cell and place, and for a claim in a loop its case.
        pace, steps: what the learning rates and the numbers of steps were multiplied by.
        sets: how many sets were run, and in how many of them it held.
        smallest, largest: of its values, over all sets and seeds.
        bound: as the claim shows it.
        code: a name for the code that the claim came from.
    """

    key: str
    pace: str
    steps: str
    sets: int
    held: int
    smallest: str
    largest: str
    bound: str
    code: str

    @property
    def varies(self) -> bool:
        """Whether it could come out otherwise: its values differ from set to set, by more than rounding."""
        return self.smallest != self.largest and abs(float(self.largest)) > 1e-9


@functools.cache
def read_table(path: Path = TABLE) -> tuple[Row, ...]:
    """The rows of the table, or none where there is no table yet."""
    if not path.exists():
        return ()
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    return tuple(Row(**line | {name: int(line[name]) for name in ("sets", "held")}) for line in lines)


def write_table(rows: Iterable[Row], path: Path = TABLE) -> None:
    """The rows as a table, in the order of their keys."""
    lines = sorted(map(astuple, rows), key=lambda line: (line[0], float(line[1]), float(line[2])))
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([[field.name for field in fields(Row)], *lines])
    read_table.cache_clear()


def found_again(chapter: str, one: Stored, code: str) -> str:
    """What became of a claim with other seeds, as words; empty where the table does not know it.

    Other learning rates and numbers of steps are named where the claim failed under them.

    Args:
        chapter: its number, two digits.
        one: the claim.
        code: what `code_of` calls the code of its cell today; where the table's is another one, the words say so.
    """
    said = []
    for row in read_table():
        held = f"{row.held} of {row.sets}"
        since = "" if row.code == code else " before the code changed"
        if row.key != f"{chapter}/{_key(one)}":
            continue
        if (row.pace, row.steps) == ("1", "1"):
            again = f"held in {held} sets{since}, {row.smallest} to {row.largest}"
            if row.held == row.sets and not row.varies:
                again = f"{'the same' if row.smallest == row.largest else 'rounding'} in all {row.sets} sets{since}"
            said.insert(0, again)
        elif row.held < row.sets:
            said.append(f"with {_changed(row)} in {held}{since}")
    return "; ".join(said)


def overview() -> str:
    """How many claims that vary held in all their sets, under each pace and number of steps; empty without a table."""
    counts = []
    for changed, found in itertools.groupby(sorted(read_table(), key=_changed), _changed):
        if varying := [row for row in found if row.varies]:
            held = f"{sum(row.held == row.sets for row in varying)} of {len(varying)}"
            most = max(row.sets for row in varying)
            counts.append(f"with {changed or 'other seeds'} {held} held in all of {most} sets")
    return f"Of the measurements that differ from set to set, {'; '.join(counts)}." if counts else ""


def _changed(row: Row) -> str:
    """What is not as it is stored, but for the seeds."""
    times = {"learning rate": row.pace, "steps": row.steps}
    return " and ".join(f"{name} × {by}" for name, by in times.items() if by != "1")


def _key(one: Stored) -> str:
    return f"{one.cell}/{one.place}" + (f" {one.claim.case}" if one.claim.case else "")


def with_parameters(chapter: NotebookNode, **values: float) -> NotebookNode:
    """A copy in which the cell tagged `parameters` gives these values.

    Raises:
        ValueError: the chapter has no such cell, or the cell no such name.
    """
    changed = nbformat.from_dict(chapter)
    cell = next((cell for cell in changed.cells if "parameters" in tags(cell)), nbformat.v4.new_code_cell())
    for name, value in values.items():
        cell.source, found = re.subn(rf"^{name} = \S+", f"{name} = {value!r}", cell.source, flags=re.MULTILINE)
        if found != 1:
            raise ValueError(f"no cell tagged parameters gives {name} a value")
    return changed


def run(text: str, folder: str, set_number: int, pace: float, steps: float) -> list[dict]:
    """Run a chapter once; its claims with their values, each a dict for JSON.

    Args:
        text: the notebook's file.
        folder: the kernel's working directory.
        set_number: the value of SEED.
        pace: times the learning rates.
        steps: times the steps; the limit of a cell grows with it.
    """
    chapter = with_parameters(nbformat.reads(text, 4), SEED=set_number, PACE=pace, STEPS=steps)
    os.environ["POSENC_REPLICATE"] = "1"
    os.environ.pop("MALLOC_TRIM_THRESHOLD_", None)  # Dask's; with it each step gives back its memory
    seconds = notebooks.CELL_SECONDS * max(1.0, steps)
    done = stored(notebooks.execute(chapter, folder=Path(folder), cell_seconds=seconds))
    claims = [(_key(one), one.claim) for one in done]
    return [{"key": key, "held": its.held, "values": its.values, "bound": its.required} for key, its in claims]


def rows(chapter: str, codes: dict[str, str], sets: list[list[dict]], pace: str, steps: str) -> Iterator[Row]:
    """The table's rows of one chapter from what its sets claimed."""
    claims: dict[str, list[dict]] = {}
    for one in itertools.chain(*sets):
        claims.setdefault(one["key"], []).append(one)
    for key, found in claims.items():
        values = [value for one in found for value in one["values"]]
        held, bound, code = sum(one["held"] for one in found), found[-1]["bound"], codes[key.partition("/")[0]]
        ends = f"{min(values):.3g}", f"{max(values):.3g}"
        yield Row(f"{chapter}/{key}", pace, steps, len(found), held, *ends, bound, code)


def cluster():
    """A client of Dask's scheduler: the one that is named in the environment, or one on this machine."""
    from distributed import Client

    here = {"n_workers": os.cpu_count(), "threads_per_worker": 1, "dashboard_address": None}
    address = os.environ.get("DASK_SCHEDULER_ADDRESS")
    return Client(address, **({} if address else here))


def main(arguments: list[str]) -> int:
    """Run what is not done yet, and write the table. Returns the exit status: 1 where a run failed."""
    parser = argparse.ArgumentParser(prog="make replicate", description=__doc__.partition("\n")[0])
    parser.add_argument("chapters", nargs="*", help="numbers; all that train unless given")
    parser.add_argument("--sets", type=int, default=16)
    parser.add_argument("--first", type=int, default=1, help="the first set")
    parser.add_argument("--pace", type=float, default=1.0)
    parser.add_argument("--steps", type=float, default=1.0)
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--folder", type=Path, default=notebooks.NOTEBOOKS, help="of the chapters")
    options = parser.parse_args(arguments)
    pace, steps = f"{options.pace:g}", f"{options.steps:g}"
    found = {path: notebooks.read(path) for path in notebooks.chapters(options.chapters, options.folder)}
    chapters = {path: one for path, one in found.items() if any("parameters" in tags(cell) for cell in one.cells)}
    if not chapters:
        print("No such chapter, or none that trains.", file=sys.stderr)
        return 1

    codes = {path: code_of(chapter) for path, chapter in chapters.items()}
    wanted = {}
    for path, chapter in chapters.items():
        name = hashlib.sha256(repr(sorted(codes[path].items())).encode()).hexdigest()[:12]
        for number in range(options.first, options.first + options.sets):
            file = DONE / f"{path.stem}-{name}-{number}-{pace}-{steps}.json"
            wanted[file] = (path, notebooks.text(chapter), number)
    to_do = {file: task for file, task in wanted.items() if not file.exists()}
    failed = _run_all(to_do, options.pace, options.steps)

    table = list(read_table(options.table))
    for path, chapter in chapters.items():
        done = [json.loads(file.read_text()) for file, task in wanted.items() if task[0] == path and file.exists()]
        number, cells = path.name[:2], {cell.id for cell in chapter.cells}
        again = list(rows(number, codes[path], done, pace, steps))
        # what was run again is new, and what the chapter claims no longer is gone
        old = [row for row in table if row.key[:2] == number]
        gone = {row for row in old if row.key.split("/")[1] not in cells}
        gone |= {row for row in old if again and (row.pace, row.steps) == (pace, steps)}
        table = [row for row in table if row not in gone] + again
        for row in again:
            if row.held < row.sets:
                values = f"{row.smallest} to {row.largest}, {row.bound}"
                print(f"{row.key}: held in {row.held} of {row.sets} sets, {values}")
    write_table(table, options.table)
    return 1 if failed else 0


def _run_all(tasks: dict[Path, tuple[Path, str, int]], pace: float, steps: float) -> int:
    """Run the tasks on the cluster, store each result as it comes, show how far it is; how many failed."""
    if not tasks:
        return 0
    from distributed import as_completed

    DONE.mkdir(parents=True, exist_ok=True)
    start, failed = time.monotonic(), 0
    with cluster() as client:
        futures = {
            client.submit(run, text, str(path.parent), number, pace, steps, pure=False, retries=2): file
            for file, (path, text, number) in tasks.items()
        }
        for count, future in enumerate(as_completed(futures), start=1):
            path, _, number = tasks[futures[future]]
            said = "done"
            if future.status == "finished":
                notebooks.write(futures[future], json.dumps(future.result()))
            else:
                failed += 1
                said = f"failed: {str(future.exception()).splitlines()[0]}"
            so_far = f"{count:4} of {len(tasks)}, {time.monotonic() - start:6.0f} s"
            print(f"{so_far}: {path.stem}, set {number} {said}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
