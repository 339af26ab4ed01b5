"""Set-up: each thing that can go wrong is provoked, and the files that describe the environment agree."""

import ast
import functools
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import tomllib
import zipfile
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from courseware import install

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture
def checkout(tmp_path):
    """What set-up reads, in a folder with a space in its name, and a machine without a network."""
    folder = tmp_path / "my course"
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "src/courseware/install.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "notebooks").mkdir()
    (folder / "notebooks" / "01_first.ipynb").touch()
    return folder


@pytest.fixture
def python(tmp_path):
    """This interpreter, in a folder with a space in its name."""
    return program(tmp_path / "my programs" / "python", f'exec "{sys.executable}" "$@"')


def program(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def installed(checkout):
    """The same after an install that ran to its end. Its python only prints how it was called."""
    program(checkout / ".venv" / "bin" / "python", 'echo "started: $*"')
    stamp(checkout, "developer")
    return checkout


def stamp(checkout, audience):
    script = "import sys; sys.path.insert(0, 'src/courseware'); import install; print(install.fingerprint())"
    fingerprint = subprocess.check_output([sys.executable, "-c", script], cwd=checkout, text=True)
    (checkout / ".venv" / "installed").write_text(f"{fingerprint.strip()} {audience}\n")


def run(checkout, *command, **environment):
    """(exit status, everything printed) of a command in the checkout, which never shows a traceback."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, cwd=checkout, env={**os.environ, **environment}, text=True, **streams)
    assert "Traceback" not in done.stdout
    return done.returncode, done.stdout


def set_up(checkout, *arguments, prelude="", **environment):
    """Run install.py; the prelude changes the interpreter that it finds itself in. No index is asked for torch."""
    script = f"import runpy, sys; sys.argv = ['install.py', *sys.argv[1:]]; {prelude}\n"
    script += "runpy.run_path('src/courseware/install.py', run_name='__main__')"
    gpu = program(checkout.parent / "gpu" / "nvidia-smi", "").parent
    environment.setdefault("PATH", f"{gpu}{os.pathsep}{os.environ['PATH']}")
    return run(checkout, sys.executable, "-c", script, *arguments, **environment)


# ---------------------------------------------------------- what can go wrong


def test_every_old_interpreter_can_read_the_script():
    ast.parse((ROOT / "src" / "courseware" / "install.py").read_text(), feature_version=(3, 6))


OLD = "sys.version_info = (3, 8, 18, 'final', 0)"


def test_python_is_too_old(checkout, tmp_path):
    status, printed = set_up(checkout, "lab", prelude=OLD, PATH=str(tmp_path / "bin"))
    assert status == 1 and not (checkout / ".venv").exists()
    assert "This is Python 3.8; the course needs 3.11 or newer, and there is none on the PATH. Install" in printed
    program(tmp_path / "bin" / "python3.11", "exit 127")  # a version manager's, for a version that it has not
    program(tmp_path / "bin" / "python3.12", "exit 0")
    status, printed = set_up(checkout, "lab", prelude=OLD, PATH=str(tmp_path / "bin"))
    assert status == 1 and printed.strip().endswith("You have one: run  make lab PYTHON=python3.12")


def test_there_is_no_python(checkout):
    status, printed = run(checkout, "make", "lab", "PYTHON=python3.99")
    assert status == 2
    assert "There is no python3.99 here. Install Python 3.11 or newer" in printed


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_there_is_no_venv_module(checkout, tmp_path, module):
    (tmp_path / f"{module}.py").write_text("raise ImportError('it is in another package')")
    status, printed = set_up(checkout, "lab", PYTHONPATH=str(tmp_path))
    assert status == 1 and "sudo apt install python3-venv" in printed
    assert not (checkout / ".venv").exists()


def test_pip_fails(installed):
    program(installed / ".venv" / "bin" / "python", "echo 'ERROR: no space' >&2; exit 1")
    (installed / "constraints.txt").write_text("")
    status, printed = set_up(installed, "lab")
    assert status == 1 and "ERROR: no space" in printed
    assert "its reason is above. Then run make again" in printed
    assert not (installed / ".venv" / "installed").exists(), "a half-finished install counts as finished"


def test_unknown_arguments(checkout):
    assert set_up(checkout, "lba") == (1, f"\n{install.__doc__}\n")


# ---------------------------------------------------- where torch comes from


@pytest.fixture
def index(tmp_path):
    """The address of a stand-in for two indexes on this machine: /any has torch 2.13.0, /cpu has 2.13.0+cpu too."""
    for folder, version in (("any", "2.13.0"), ("cpu", "2.13.0"), ("cpu", "2.13.0+cpu")):
        wheel = tmp_path / "index" / folder / "torch" / f"torch-{version}-py3-none-any.whl"
        wheel.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel, "w") as archive:
            about = f"torch-{version}.dist-info"
            archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
            archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{about}/RECORD", "")
    handler = functools.partial(SimpleHTTPRequestHandler, directory=tmp_path / "index")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def without_gpu(monkeypatch, index):
    """A Linux without nvidia-smi, the stand-in for the index, and patience for a busy machine."""
    monkeypatch.setattr(install.sys, "platform", "linux")
    monkeypatch.setattr(install.shutil, "which", lambda name: None)
    monkeypatch.setattr(install, "PATIENCE", 60)
    monkeypatch.setattr(install, "CPU_BUILDS", f"{index}/cpu")
    monkeypatch.setenv("no_proxy", "*")


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.slow
def test_pip_finds_the_build_that_suits_the_machine(index, without_gpu, monkeypatch, tmp_path, capfd, gpu):
    """A real pip, which only says what it would install."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{index}/any")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    if gpu:
        monkeypatch.setattr(install.shutil, "which", lambda name: f"/usr/bin/{name}")
    pip = program(tmp_path / "pip", f'exec "{sys.executable}" "$@" --dry-run --ignore-installed --no-deps')
    install.pip_install([*install.where_torch_is(), "torch"], str(pip))
    printed = capfd.readouterr().out
    assert f"Would install torch-2.13.0{'' if gpu else '+cpu'}\n" in printed and "not answer" not in printed


def test_a_mac_takes_what_pip_finds(without_gpu, monkeypatch):
    monkeypatch.setattr(install.sys, "platform", "darwin")
    assert install.where_torch_is() == []


@pytest.mark.parametrize("trouble", ["it has no torch", "it never answers"])
@pytest.mark.slow
def test_an_index_that_does_not_answer_is_left_out(index, without_gpu, monkeypatch, capsys, trouble):
    monkeypatch.setattr(install, "CPU_BUILDS", f"{index}/nothing")
    over = threading.Event()
    if trouble == "it never answers":
        monkeypatch.setattr(install, "PATIENCE", 0.3)
        monkeypatch.setattr(install.urllib.request, "urlopen", lambda *_, timeout: over.wait())
    assert install.where_torch_is() == []
    over.set()
    printed = capsys.readouterr().out
    assert "does not answer" in printed and "5.2 GB" in printed


def test_what_is_installed_is_asked_there(installed, without_gpu, monkeypatch):
    """Learners and developers alike, and only when something is installed."""
    (installed / "constraints.txt").write_text("")
    asked = "install.where_torch_is = lambda: ['--extra-index-url', 'there']"
    prelude = f"sys.path.insert(0, 'src/courseware'); import install; {asked}; "
    prelude += "sys.exit(install.main(sys.argv[1:]))"
    assert "--extra-index-url there -e .[course" in set_up(installed, "dev", prelude=prelude)[1]
    assert "there" not in set_up(installed, "lab", prelude=prelude)[1]


# ----------------------------------------------- what is installed, and when


def test_the_second_call_installs_nothing_and_needs_no_new_python(installed, python):
    made = run(installed, "make", "lab", "PORT=8890", f"PYTHON={python}")
    assert made == (0, "started: -m courseware.lab 8890\n")
    assert set_up(installed, "lab", prelude=OLD) == (0, "started: -m courseware.lab\n")


def test_what_learners_have_is_not_enough_for_developers(installed):
    stamp(installed, "learner")
    assert "pip install" not in set_up(installed, "lab")[1]
    assert "pip install" in set_up(installed, "dev")[1]
    assert "pip install" not in set_up(installed, "lab")[1]
    assert "pip install" not in set_up(installed, "dev")[1]


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_change_installs_again_and_keeps_what_developers_have(installed, name):
    with (installed / name).open("a") as file:
        file.write("\n# changed\n")
    assert "-c constraints.txt -e .[course,dev,models,replicate]" in set_up(installed, "lab")[1]
    assert "pip install" not in set_up(installed, "dev")[1]


def test_learners_get_no_tools_of_developers(installed):
    stamp(installed, "learner")
    (installed / "constraints.txt").write_text("")
    assert re.search(r"-e \.\[course,models\]$", set_up(installed, "lab")[1], re.MULTILINE)
    extras = PROJECT["optional-dependencies"]
    names = {Requirement(each).name for each in [*PROJECT["dependencies"], *extras["course"], *extras["models"]]}
    assert not names & {"nbgrader", "playwright", "pytest", "nbval", "ruff"}


def test_the_classroom_gets_what_the_course_has_not(installed):
    """The stand-in for .venv's python makes no environment, so this one stands there with a python that prints."""
    for venv in (".venv", ".venv-classroom"):
        (installed / venv / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    program(installed / ".venv-classroom" / "bin" / "python", 'echo "classroom: $*"')
    status, printed = set_up(installed, "classroom")
    assert status == 0 and "started: -m venv --clear --without-pip" in printed
    wanted = r"classroom: -m pip install .*-c constraints.txt posenc\[classroom\]$"
    assert re.search(wanted, printed, re.MULTILINE)
    sees = installed / ".venv-classroom" / "lib" / "python3.11" / "site-packages" / "course.pth"
    course = installed / ".venv" / "lib" / "python3.11" / "site-packages"
    assert sees.read_text().splitlines() == [str(course), str(installed / "src")]
    assert set_up(installed, "classroom") == (0, ""), "a second call installs nothing"
    (installed / "constraints.txt").write_text("")
    assert "classroom: -m pip install" in set_up(installed, "classroom")[1]


@pytest.mark.parametrize("lost", ["installed", "bin/python"])
def test_a_half_finished_install_is_made_anew(installed, lost):
    (installed / ".venv" / lost).unlink()
    shows_what_it_calls = "import subprocess; subprocess.call = lambda command: print(*command) or 1"
    status, printed = set_up(installed, "lab", prelude=shows_what_it_calls)
    assert status == 1 and "-m venv --clear" in printed
    assert "Python could not make the folder .venv" in printed


def test_an_interrupted_change_is_made_anew(installed):
    program(installed / ".venv" / "bin" / "python", "kill -INT $PPID")
    (installed / "constraints.txt").write_text("")
    # a job behind ignores it
    in_front = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    status, printed = set_up(installed, "lab", prelude=in_front)
    assert status == 1 and "Stopped before the end. Run make again" in printed
    assert not (installed / ".venv" / "installed").exists()


# ------------------------------------------------------ files that must agree


def pinned():
    pins = re.findall(r"^([\w.-]+)==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


EXTRAS = PROJECT["optional-dependencies"].values()
REQUIREMENTS = [*PROJECT["dependencies"], *(requirement for extra in EXTRAS for requirement in extra)]


def test_constraints_hold_a_tested_version_of_all():
    for requirement in map(Requirement, REQUIREMENTS):
        version = pinned()[canonicalize_name(requirement.name)]
        assert requirement.specifier, f"{requirement.name} needs a range"
        assert version in requirement.specifier
        assert "+" not in version, "a local version is on one machine only"


def test_constraints_run_on_the_oldest_python():
    """As far as a package is installed here: 3.11 means 3.11.0, and the 3.11.2 of Debian 12."""
    installed_in = [sysconfig.get_paths()["purelib"]]  # and not what setuptools brings for itself, once it is imported
    here = {canonicalize_name(each.name): each for each in importlib.metadata.distributions(path=installed_in)}
    assert "torch" in here
    for name in pinned().keys() & here.keys():
        assert here[name].version.partition("+")[0] == pinned()[name], name
        needs = here[name].metadata.get("Requires-Python", "")
        assert f"{'.'.join(map(str, install.OLDEST))}.0" in SpecifierSet(needs), name


def test_the_environment_file_is_in_step():
    """Python and pip from conda, everything else from the two files that pip reads."""
    lines = re.findall(r"^ +- (.*)$", (ROOT / "environment.yml").read_text(), re.MULTILINE)
    channel, python, *rest = lines
    name, _, version = python.partition("=")
    assert (channel, name) == ("conda-forge", "python") and version in SpecifierSet(PROJECT["requires-python"])
    index = f"--extra-index-url {install.CPU_BUILDS}"
    assert rest == ["pip", "pip:", index, "-c constraints.txt", "-e .[course,models]"]


def test_build_machines_install_as_everybody_does():
    """By make, so that torch comes from where it suits them."""
    for path in (ROOT / ".ci" / "run", *(ROOT / ".github" / "workflows").iterdir()):
        text = path.read_text()
        assert "make " in text or ".ci/run" in text
        assert "pip install" not in text


def test_one_oldest_python():
    oldest = ".".join(map(str, install.OLDEST))
    assert PROJECT["requires-python"] == f">={oldest}"
    assert f'python-version: "{oldest}"' in (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    for file in ("Makefile", "src/courseware/install.py"):
        named = re.findall(r"(\d\.\d+) or newer", (ROOT / file).read_text())
        assert {*named} == {oldest}


# ------------------------------------------------------------------ Makefile


def targets():
    return re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_make_alone_lists_the_targets():
    status, printed = run(ROOT, "make", "--no-print-directory")
    assert status == 0
    assert [line.split()[1] for line in printed.splitlines()] == targets()
    assert all(len(line.split()) > 3 for line in printed.splitlines())


def test_every_target_can_be_made(installed):
    for target in targets():
        assert run(installed, "make", "-n", target)[0] == 0


def test_clean_leaves_what_git_keeps_the_marks_and_what_the_reader_wrote(installed):
    inside = {"*.egg-info/": "src/posenc.egg-info", "__pycache__/": "src/courseware/__pycache__"}
    inside[".ipynb_checkpoints/"] = "notebooks/.ipynb_checkpoints"
    for name in (ROOT / ".gitignore").read_text().split():
        left = installed / inside.get(name, name.strip("/")) / "a"
        left.parent.mkdir(exist_ok=True)
        left.touch()
    assert run(installed, "make", "clean")[0] == 0
    kept = sorted(str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file())
    files = ("Makefile", "constraints.txt", "pyproject.toml", "src/courseware/install.py")
    assert kept == sorted([*files, "notebooks/01_first.ipynb", "classroom/a", "my/a"])
