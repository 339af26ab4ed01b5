"""Every test, in three runs of pytest: `python tests/run.py` or `make test`; with ALL=1 the thorough ones too.

Each runs whatever became of the ones before. The last line says how many passed and failed in all three.

They are three since beside a browser nothing else of ours should run, and since in a process in which nbval has run,
nbclient may wait for ever for a kernel's answer.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS")  # tests call make themselves
PARTS = {
    "tests": ["-n", "3", "--dist", "loadfile", "--no-loadscope-reorder", "-m", "not browser", "tests"],
    "browser": ["-m", "browser", "tests"],
    "notebooks": [
        *("-p", "stored_pictures", "--nbval", "--nbval-current-env", "--nbval-cell-timeout", "1200"),
        *("--nbval-sanitize-with", "tests/sanitize.cfg", "-n", "2", "--dist", "loadfile", "notebooks"),
    ],
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


def main(parts: dict[str, list[str]] = PARTS, folder: Path = HERE.parent) -> int:
    """Run the parts in this folder. Returns the exit status."""
    total: Counter = Counter()
    for name, arguments in parts.items():
        with tempfile.TemporaryDirectory() as reports:
            report = Path(reports) / "report.xml"
            command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *arguments]
            path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
            environment = {k: v for k, v in os.environ.items() if k not in OF_MAKE} | {"PYTHONPATH": path}
            start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
            status = subprocess.call(command, cwd=folder, env=environment)
            after, minutes = resource.getrusage(resource.RUSAGE_CHILDREN), (time.monotonic() - start) / 60
            busy = (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) / 60
            print(f"{name}: {minutes:.1f} minutes, {busy:.1f} of a processor\n", flush=True)
            total += counted(report, status)
    skipped = f", {total['skipped']} skipped" if total["skipped"] else ""
    print(f"{total['passed']} passed, {total['failed']} failed{skipped}")
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
