"""An autograder for Gradescope: `make gradescope CHAPTER=04` writes the zip that is uploaded there.

It follows https://gradescope-autograders.readthedocs.io/en/latest/specs/: Gradescope unpacks the zip into
/autograder/source and runs setup.sh once. For each student it puts what was handed in into /autograder/submission and
runs run_autograder, which grades as `make grade` does and writes /autograder/results/results.json. Each submission has
a container of its own there, and bubblewrap does not work in it, so that the sandbox is SANDBOX=none.
"""

import argparse
import json
import sys
import zipfile
from pathlib import Path

from classroom import grade, release
from classroom.marks import exercise_name
from classroom.release import CLASSROOM, ROOT, ClassroomError
from classroom.submissions import submission_at
from classroom.workplace import Limits, workplace
from courseware import notebooks

SETUP = """#!/usr/bin/env bash
# Gradescope runs this once, as root, when the autograder is built.
set -eu
cd "$(dirname "$0")"
export DEBIAN_FRONTEND=noninteractive PIP_NO_CACHE_DIR=1 UV_PYTHON_INSTALL_DIR=/opt/python
export PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
apt-get update
apt-get install -y --no-install-recommends python3-pip python3-venv
python=python3
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then  # Ubuntu 22.04 has 3.10
    python3 -m pip install uv
    python3 -m uv python install 3.12
    python=$(python3 -m uv python find 3.12)
fi
"$python" src/courseware/install.py classroom
chmod -R go= assignment src  # answers and hidden tests are not for what is graded, which has a copy of the course
"""

RUN = """#!/bin/sh
# Gradescope runs this for each submission.
cd "$(dirname "$0")"
SANDBOX=none exec source/.venv-classroom/bin/python -m classroom.gradescope --run "$PWD"
"""


def pack(path: Path, classroom: Path) -> Path:
    """Write the zip for a chapter: the teacher's notebook, what grades it, and the two scripts.

    The teacher's notebook is made from the chapter where there is none.
    """
    source = classroom / "source" / path.stem / path.name
    if not source.exists():
        release.assignment(path, classroom)
    target = classroom / "gradescope" / f"{path.stem}.zip"
    target.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, script in (("setup.sh", SETUP), ("run_autograder", RUN)):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100755 << 16
            archive.writestr(entry, script)
        archive.write(source, f"assignment/{path.name}")
        for name in ("pyproject.toml", "constraints.txt"):
            archive.write(ROOT / name, name)
        for file in sorted((ROOT / "src").rglob("*")):
            if file.is_file() and not any("__pycache__" in part or ".egg-info" in part for part in file.parts):
                archive.write(file, file.relative_to(ROOT))
    return target


def run(folder: Path) -> None:
    """Grade what lies in folder/submission by folder/source/assignment, and write folder/results/results.json.

    Raises:
        ClassroomError: the machine failed; then there is no mark, and Gradescope says so.
    """
    (source,) = (folder / "source" / "assignment").glob("*.ipynb")
    submission, _ = submission_at("submission", folder / "submission", source.stem)
    with workplace() as scratch:
        template = grade.new_template(source, scratch / "template")
        grader = grade.Grader(source, template, scratch / "graded", Limits())
        print(grade.kept_from(grader.isolated), flush=True)
        ((_, result),) = grader.grade([submission], workers=1)
    if result.mark is None:
        raise ClassroomError(result.reason)
    told = "Graded in a container of Gradescope's, without a sandbox inside (SANDBOX=none)."
    tests = [
        {"name": exercise_name(name), "score": got, "max_score": most, "output": result.notes.get(name, "")}
        for name, (got, most) in result.marks.items()
    ]
    results = {"output": f"{told} {result.reason}".strip(), "execution_time": result.seconds, "tests": tests}
    notebooks.write(folder / "results" / "results.json", json.dumps(results))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="make gradescope", description=__doc__.partition("\n")[0])
    parser.add_argument("chapter", nargs="?")
    parser.add_argument("--classroom", type=Path, default=CLASSROOM)
    parser.add_argument("--run", type=Path, metavar="/autograder", help="grade there, as in Gradescope's container")
    given = parser.parse_args(arguments)
    try:
        if given.run:
            run(given.run)
        else:
            target = pack(release.chapter(given.chapter), given.classroom.resolve())
            print(f"for Gradescope  {target}, with 1 CPU and 1.5 GB of memory or more")
    except (ClassroomError, notebooks.BuildError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
