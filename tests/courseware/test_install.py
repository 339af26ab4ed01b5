"""Set-up: each thing that can go wrong is provoked, and the files that describe the environment agree."""

import ast
import importlib.metadata
import itertools
import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from pictures import load

from courseware import install

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


class Checkout:
    """What set-up reads, in a folder with a space in its name. What it calls is written down, and not run.

    Attributes:
        calls: the commands, with paths from the checkout on.
        trouble: an exit status, or an error, by a word of the command that is to have it.
    """

    def __init__(self, folder):
        self.folder, self.calls, self.trouble = folder, [], {}
        for name in ("Makefile", "pyproject.toml", "constraints.txt", "src/courseware/install.py"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        self.script = load(folder / "src/courseware/install.py")
        self.script.where_torch_is = lambda: ["--extra-index-url", "there"]

    def call(self, command, cwd=None):
        self.calls.append(" ".join(command).replace(f"{self.folder}/", "").replace(sys.executable, "python"))
        assert "pip" not in command or cwd == str(self.folder)
        for error in (error for word, error in self.trouble.items() if word in command):
            if error == 1:
                return 1
            raise error
        if "venv" in command:
            shutil.rmtree(command[-1], ignore_errors=True)
            (Path(command[-1]) / "lib/python3.11/site-packages").mkdir(parents=True)
            program(Path(command[-1]) / "bin/python", 'echo "started: $*"')
        return 0

    def run(self, *arguments):
        """The commands that set-up calls; its last words are an error."""
        self.calls = []
        self.script.main(*arguments)
        return self.calls


def program(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    made = Checkout(tmp_path / "my course")
    monkeypatch.setattr(subprocess, "call", made.call)
    monkeypatch.setattr(os, "execv", lambda path, command: made.call(command))
    monkeypatch.chdir(tmp_path)
    return made


PIP = "-m pip install --disable-pip-version-check -c constraints.txt"
LEARNS = f".venv/bin/python {PIP} --extra-index-url there -e .[course,models]"
DEVELOPS = f".venv/bin/python {PIP} --extra-index-url there -e .[course,dev,models,replicate]"
VENV = "python -m venv --clear .venv"
LAB = ".venv/bin/python -m courseware.lab"


def make(folder, *arguments):
    """(exit status, everything printed) of make in a folder."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(["make", "--no-print-directory", *arguments], cwd=folder, **streams)
    return done.returncode, done.stdout


# ----------------------------------------------- what is installed, and when


def test_the_first_call_installs_and_the_second_needs_neither_that_nor_a_new_python(checkout, monkeypatch):
    assert checkout.run("lab", "8890") == [VENV, LEARNS, f"{LAB} 8890"]
    monkeypatch.setattr(sys, "version_info", (3, 8, 18))
    assert checkout.run("lab") == [LAB]


def test_what_learners_have_is_not_enough_for_developers_who_keep_what_they_have(checkout):
    assert checkout.run("lab") == [VENV, LEARNS, LAB]
    assert checkout.run("dev") == [DEVELOPS]
    assert checkout.run("lab") == [LAB] and checkout.run("dev") == []
    for name in ("pyproject.toml", "constraints.txt"):
        with (checkout.folder / name).open("a") as file:
            file.write("\n# changed\n")
        assert checkout.run("lab") == [DEVELOPS, LAB] and checkout.run("dev") == []


def test_the_classroom_gets_what_the_course_has_not(checkout):
    made = ".venv/bin/python -m venv --clear --without-pip .venv-classroom"
    _, _, venv, pip = checkout.run("classroom")
    assert (venv, pip) == (made, f".venv-classroom/bin/python {PIP} posenc[classroom]")
    inside = "lib/python3.11/site-packages"
    sees = (checkout.folder / ".venv-classroom" / inside / "course.pth").read_text().splitlines()
    assert sees == [str(checkout.folder / ".venv" / inside), str(checkout.folder / "src")]
    assert checkout.run("classroom") == []
    (checkout.folder / "constraints.txt").write_text("")
    assert checkout.run("classroom") == [LEARNS, made, pip]


@pytest.mark.parametrize("lost", ["installed", "bin/python", None])
def test_a_half_finished_install_and_a_change_that_fails_are_made_anew(checkout, lost):
    checkout.run("dev")
    if lost:
        (checkout.folder / ".venv" / lost).unlink()
    else:
        (checkout.folder / "constraints.txt").write_text("")
        checkout.trouble = {"pip": 1}
        with pytest.raises(SystemExit, match="its reason is above"):
            checkout.run("lab")
        checkout.trouble = {}
    assert checkout.run("lab") == [VENV, LEARNS, LAB]


# ---------------------------------------------------------- what can go wrong


def test_every_old_interpreter_can_read_the_script():
    ast.parse((ROOT / "src" / "courseware" / "install.py").read_text(), feature_version=(3, 6))


def test_python_is_too_old(checkout, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 8, 18))
    with pytest.raises(SystemExit, match=r"This is Python 3\.8\.18; the course needs 3\.11 or newer.*PYTHON=python3"):
        checkout.run("lab")
    assert not checkout.calls


@pytest.mark.parametrize(
    ("command", "word", "error", "said"),
    [
        ("lab", "venv", 1, "could not make the folder .venv; its reason is above. "),
        ("lab", "venv", 1, "sudo apt install python3-venv  brings it. Then run make again"),
        ("lab", "pip", 1, "could not install the packages; its reason is above. Then run make again"),
        ("dev", "pip", KeyboardInterrupt(), "Stopped before the end. Run make again and it starts over"),
        ("classroom", "--without-pip", 1, "could not make the folder .venv-classroom; its reason is above"),
        ("lba", "", 0, "install.py lab "),
    ],
)
def test_a_command_that_fails_ends_it_and_no_stamp_says_that_all_is_there(checkout, command, word, error, said):
    checkout.trouble = {word: error}
    with pytest.raises(SystemExit, match=re.escape(said)):
        checkout.run(command)
    assert (checkout.folder / ".venv/installed").exists() == (command == "classroom")


# ---------------------------------------------------- where torch comes from


@pytest.mark.parametrize(
    ("platform", "gpu", "page"),
    [
        ("linux", None, "200 OK"),
        ("linux", None, "404 Gone"),
        ("linux", None, ""),
        ("linux", "/usr/bin/nvidia-smi", None),
        ("darwin", None, None),
    ],
    ids=["it answers", "it is gone", "it hangs", "a GPU, so nobody asks", "a Mac, so nobody asks"],
)
def test_without_a_gpu_torch_comes_without_cuda_where_its_index_answers(monkeypatch, capsys, platform, gpu, page):
    def answer():
        visitor, _ = server.accept()
        assert visitor.recv(9999).startswith(b"GET /torch/")
        visitor.sendall(f"HTTP/1.0 {page}\r\n\r\n".encode())
        visitor.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        if page:
            threading.Thread(target=answer, daemon=True).start()
        there = f"http://127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("no_proxy", "*")
        monkeypatch.setattr(install, "CPU_BUILDS", there)
        monkeypatch.setattr(install, "PATIENCE", 600 if page else 0.5)
        monkeypatch.setattr(install.sys, "platform", platform)
        monkeypatch.setattr(install.shutil, "which", lambda name: gpu)
        assert install.where_torch_is() == ["--extra-index-url", there] * (page == "200 OK")
    said = capsys.readouterr().out
    assert ("does not answer" in said and "5.2 GB" in said) == (page in ("404 Gone", ""))


# ------------------------------------------------------ files that must agree


PINS = re.findall(r"^([\w.-]+)==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
PINNED = {canonicalize_name(name): version for name, version in PINS}
EXTRAS = PROJECT["optional-dependencies"]
OLDEST = ".".join(map(str, install.OLDEST))


def test_constraints_hold_a_tested_version_of_all():
    for requirement in map(Requirement, [*PROJECT["dependencies"], *itertools.chain(*EXTRAS.values())]):
        assert requirement.specifier, f"{requirement.name} needs a range"
        assert PINNED[canonicalize_name(requirement.name)] in requirement.specifier
    assert [version for version in PINNED.values() if "+" in version] == [], "a local version is on one machine only"


def test_constraints_run_on_the_oldest_python():
    """As far as a package is installed here: 3.11 means 3.11.0, and the 3.11.2 of Debian 12."""
    installed_in = [sysconfig.get_paths()["purelib"]]  # and not what setuptools brings for itself, once it is imported
    here = {canonicalize_name(each.name): each for each in importlib.metadata.distributions(path=installed_in)}
    assert "torch" in here
    for name in PINNED.keys() & here.keys():
        assert here[name].version.partition("+")[0] == PINNED[name], name
        assert f"{OLDEST}.0" in SpecifierSet(here[name].metadata.get("Requires-Python", "")), name


def test_the_environment_file_is_in_step():
    """Python and pip from conda, everything else from the two files that pip reads. Learners get no other tools."""
    lines = re.findall(r"^ +- (.*)$", (ROOT / "environment.yml").read_text(), re.MULTILINE)
    channel, python, *rest = lines
    name, _, version = python.partition("=")
    assert (channel, name) == ("conda-forge", "python") and version in SpecifierSet(PROJECT["requires-python"])
    index = f"--extra-index-url {install.CPU_BUILDS}"
    assert rest == ["pip", "pip:", index, "-c constraints.txt", "-e .[course,models]"]
    learners = {Requirement(each).name for each in PROJECT["dependencies"] + EXTRAS["course"] + EXTRAS["models"]}
    assert not learners & {"nbgrader", "playwright", "pytest", "nbval", "ruff"}


APT = "apt-get install -y --no-install-recommends"


@pytest.mark.parametrize(
    ("there", "user", "done"),
    [
        (["bwrap", "chromium"], 0, ["make test"]),
        (["bwrap", "chromium-browser"], 1000, ["make test"]),
        (["bwrap"], 0, ["apt-get update", f"{APT} chromium", "make test"]),
        ([], 0, ["apt-get update", f"{APT} bubblewrap chromium", "make test"]),
        (["google-chrome"], 1000, ["sudo apt-get update", f"sudo {APT} bubblewrap", "make test"]),
    ],
)
def test_a_build_machine_installs_what_is_missing(tmp_path, there, user, done):
    """In a PATH that holds nothing but stand-ins, which say how they were called."""
    script = tmp_path / ".ci" / "run"
    script.parent.mkdir()
    shutil.copy(ROOT / ".ci" / "run", script)
    programs = {name: f"echo {name} $*" for name in ("apt-get", "make", "sudo", *there)}
    programs |= {"id": f"echo {user}", "env": 'shift; "$@"', "dirname": f'exec {shutil.which("dirname")} "$@"'}
    for name, source in programs.items():
        program(tmp_path / "programs" / name, source)
    path = {"PATH": str(tmp_path / "programs")}
    ran = subprocess.run(["/bin/sh", script], env=path, capture_output=True, text=True, check=True)
    assert [line.replace("env DEBIAN_FRONTEND=noninteractive ", "") for line in ran.stdout.splitlines()] == done


def test_build_machines_install_as_everybody_does():
    """By make, so that torch comes from where it suits them."""
    for path in (ROOT / ".ci" / "run", *(ROOT / ".github" / "workflows").iterdir()):
        text = path.read_text()
        assert "make " in text or ".ci/run" in text
        assert "pip install" not in text


def test_one_oldest_python():
    assert PROJECT["requires-python"] == f">={OLDEST}"
    assert f'python-version: "{OLDEST}"' in (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    for file in ("Makefile", "src/courseware/install.py"):
        assert {*re.findall(r"(\d\.\d+) or newer", (ROOT / file).read_text())} == {OLDEST}


# ------------------------------------------------------------------ Makefile


def test_make_alone_lists_the_targets(checkout):
    status, printed = make(checkout.folder)
    assert status == 0 and all(len(line.split()) > 3 for line in printed.splitlines())
    targets = re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [line.split()[1] for line in printed.splitlines()] == targets


def test_make_hands_its_port_and_its_python_on_and_says_when_there_is_none(checkout, tmp_path):
    checkout.run("lab")
    python = program(tmp_path / "my programs" / "python", f'exec "{sys.executable}" "$@"')
    assert make(checkout.folder, "lab", "PORT=8890", f"PYTHON={python}") == (0, "started: -m courseware.lab 8890\n")
    status, printed = make(checkout.folder, "lab", "PYTHON=python3.99")
    assert status == 2 and "There is no python3.99 here. Install Python 3.11 or newer" in printed


def test_clean_leaves_what_git_keeps_the_marks_and_what_the_reader_wrote(checkout):
    inside = {"*.egg-info/": "src/posenc.egg-info", "__pycache__/": "src/courseware/__pycache__"}
    inside[".ipynb_checkpoints/"] = "notebooks/.ipynb_checkpoints"
    for name in ["notebooks", *(ROOT / ".gitignore").read_text().split()]:
        left = checkout.folder / inside.get(name, name.strip("/")) / "a"
        left.parent.mkdir(parents=True, exist_ok=True)
        left.touch()
    assert make(checkout.folder, "clean")[0] == 0
    kept = {str(path.relative_to(checkout.folder)) for path in checkout.folder.rglob("*") if path.is_file()}
    files = {"Makefile", "constraints.txt", "pyproject.toml", "src/courseware/install.py"}
    assert kept == {*files, "notebooks/a", "classroom/a", "my/a"}
