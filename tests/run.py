"""Every test, in three runs of pytest: `python tests/run.py` or `make test`; with ALL=1 the thorough ones too.

Each runs whatever became of the others. The browser's mostly wait, so they run beside the two others, and their words
follow theirs. The last line says how many passed and failed in all three.

Notebooks and tests are two runs since in a process in which nbval has run, nbclient may wait for ever for a kernel's
answer.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS")  # tests call make themselves
PARTS = {  # the last one runs beside the others
    "tests": [
        *("-n", "3", "--dist", "loadfile", "--no-loadscope-reorder", "--durations=20"),
        *("-m", "not browser", "tests"),
    ],
    "notebooks": [
        *("-p", "stored_pictures", "--nbval", "--nbval-current-env", "--nbval-cell-timeout", "1200"),
        *("--nbval-sanitize-with", "tests/sanitize.cfg", "-n", "2", "--dist", "loadfile", "notebooks"),
    ],
    "browser": ["--durations=10", "-m", "browser", "tests"],
}


def counted(report: Path, status: int) -> Counter:
    """What a run of pytest with this exit status has written of itself. One that did not come to its end failed."""
    try:
        suite = ElementTree.parse(report).find("testsuite").attrib
    except (OSError, ElementTree.ParseError):
        return Counter(failed=1)
    failed, skipped = int(suite["failures"]) + int(suite["errors"]), int(suite["skipped"])
    passed = int(suite["tests"]) - failed - skipped
    return Counter(passed=passed, failed=failed or int(status != 0), skipped=skipped)


def run(name: str, arguments: list[str], folder: Path, output=None) -> tuple[Counter, str]:
    """Run a part in this folder. Returns its counts, and how long it took."""
    with tempfile.TemporaryDirectory() as reports:
        report = Path(reports) / "report.xml"
        command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *arguments]
        path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
        environment = {k: v for k, v in os.environ.items() if k not in OF_MAKE} | {"PYTHONPATH": path}
        start = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
        _, ended, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(ended)
        minutes, busy = (time.monotonic() - start) / 60, (used.ru_utime + used.ru_stime) / 60
        line = f"{name}: {minutes:.1f} minutes, {busy:.1f} of a processor\n"
        return counted(report, process.returncode), line


def main(parts: dict[str, list[str]] = PARTS, folder: Path = HERE.parent) -> int:
    """Run the parts in this folder. Returns the exit status."""
    *first, (beside, arguments) = parts.items()
    total: Counter = Counter()
    with tempfile.TemporaryFile("w+") as words, ThreadPoolExecutor(1) as pool:
        last = pool.submit(run, beside, arguments, folder, words)
        for name, its in first:
            counts, line = run(name, its, folder)
            total += counts
            print(line, flush=True)
        counts, line = last.result()
        total += counts
        words.seek(0)
        print(words.read(), line, sep="\n")
    skipped = f", {total['skipped']} skipped" if total["skipped"] else ""
    print(f"{total['passed']} passed, {total['failed']} failed{skipped}")
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
