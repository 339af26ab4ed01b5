"""Make .venv and open JupyterLab: `make lab` and `make test` begin here.

    python3 src/courseware/install.py lab [PORT]    what a learner needs, then JupyterLab on the reader's copy
    python3 src/courseware/install.py dev           what a developer needs
    python3 src/courseware/install.py classroom     what a learner needs, and nbgrader in .venv-classroom

It runs under whatever python3 a machine has, before anything is installed. So it imports only the standard
library and uses no syntax newer than Python 3.6: an old interpreter must get far enough to say that it is old.
"""

import glob
import hashlib
import os
import shutil
import subprocess
import sys
from contextlib import suppress

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "Scripts" if os.name == "nt" else "bin", "python")
STAMP = os.path.join(VENV, "installed")
CLASSROOM = os.path.join(ROOT, ".venv-classroom")

OLDEST = (3, 11)
LEARNER, DEVELOPER = "learner", "developer"

# What pip finds elsewhere for Linux brings CUDA. The builds of this index are the same without it.
CPU_BUILDS = "https://download.pytorch.org/whl/cpu"
PATIENCE = 5  # seconds until the index counts as out of reach, of which Python may take two to start


def fingerprint():
    """A hash of all that decides what is installed. A checkout that was moved counts as changed."""
    files = [contents(os.path.join(ROOT, name)) for name in ("pyproject.toml", "constraints.txt")]
    return hashlib.sha256("".join([ROOT] + files).encode()).hexdigest()


def contents(path):
    """The text of a file, empty where there is none."""
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def install(audience):
    """Bring .venv up to date; return at once where it is. The stamp says of what the last whole install was."""
    before = contents(STAMP).split() if os.path.exists(PYTHON) else []
    if DEVELOPER in before:
        audience = DEVELOPER
    wanted = [fingerprint(), audience]
    if before == wanted:
        return
    if before:
        os.remove(STAMP)
    else:
        make_venv()
    extras = "course,dev,models,replicate" if audience == DEVELOPER else "course,models"
    pip_install(where_torch_is() + ["-e", ".[" + extras + "]"])
    write(STAMP, " ".join(wanted))


def install_classroom():
    """Bring .venv-classroom up to date. It adds nbgrader to what .venv has, and .venv does not see it."""
    install(LEARNER)
    course = glob.glob(os.path.join(VENV, "lib", "python3*", "site-packages"))[0]
    wanted = fingerprint() + " " + course
    stamp = os.path.join(CLASSROOM, "installed")
    if contents(stamp) == wanted:
        return
    print("Making .venv-classroom with nbgrader. This takes half a minute, once.", flush=True)
    venv([PYTHON, "-m", "venv", "--clear", "--without-pip", CLASSROOM])
    own = glob.glob(os.path.join(CLASSROOM, "lib", "python3*", "site-packages"))[0]
    write(os.path.join(own, "course.pth"), course + "\n" + os.path.join(ROOT, "src") + "\n")
    pip_install(["posenc[classroom]"], os.path.join(CLASSROOM, "bin", "python"))  # only what .venv has not
    write(stamp, wanted)


def make_venv():
    """Make .venv from nothing: what an interrupted install left behind cannot be trusted."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST:
        sys.exit(
            f"\nThis is Python {version}; the course needs 3.11 or newer. Where there is none, install one from your "
            "system's packages or from python.org. Then run  make lab PYTHON=python3.12  with its name."
        )
    print(f"Making .venv with Python {version}, and installing. This takes a minute or more, once.", flush=True)
    venv([sys.executable, "-m", "venv", "--clear", VENV])


def venv(command):
    """Make a virtual environment by this command, whose last word is its folder, or end with what to do."""
    if subprocess.call(command) != 0:
        sys.exit(
            f"\nPython could not make the folder {os.path.basename(command[-1])}; its reason is above. Where it is that "
            "venv or ensurepip is missing, on Debian and Ubuntu  sudo apt install python3-venv  brings it. Then run "
            "make again."
        )


def where_torch_is():
    """Options for pip: without a GPU, torch comes from the index of builds without CUDA, where that can be reached."""
    if not sys.platform.startswith("linux") or shutil.which("nvidia-smi"):
        return []
    if answers(CPU_BUILDS + "/torch/"):
        return ["--extra-index-url", CPU_BUILDS]
    print(
        CPU_BUILDS + " does not answer, so torch comes from where pip finds it. "
        "If that is the build with CUDA, the course takes 5.2 GB of disk, not 1.5.",
        flush=True,
    )
    return []


def answers(address):
    """Whether a page is there within PATIENCE. In a process, since no timeout covers the look-up of a name."""
    ask = [sys.executable, "-c", "import sys, urllib.request; urllib.request.urlopen(sys.argv[1])", address]
    with suppress(subprocess.TimeoutExpired):
        return subprocess.call(ask, stderr=subprocess.DEVNULL, timeout=PATIENCE) == 0
    return False


def pip_install(arguments, python=PYTHON):
    """Install what was tested. pip shows its progress, and says what is wrong."""
    command = [python, "-m", "pip", "install", "--disable-pip-version-check", "-c", "constraints.txt"]
    if subprocess.call(command + arguments, cwd=ROOT) != 0:
        sys.exit("\npip could not install the packages; its reason is above. Then run make again.")


def main(command="", *port):
    if command not in ("lab", "dev", "classroom"):
        sys.exit(__doc__)
    try:
        if command == "classroom":
            install_classroom()
        else:
            install(DEVELOPER if command == "dev" else LEARNER)
    except KeyboardInterrupt:
        sys.exit("\nStopped before the end. Run make again and it starts over.")
    if command == "lab":
        os.chdir(ROOT)
        os.execv(PYTHON, [PYTHON, "-m", "courseware.lab"] + list(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
