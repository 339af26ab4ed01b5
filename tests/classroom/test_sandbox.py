"""The sandbox in which submissions run: what a program in it can see and take, started as root and as a user."""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from classroom import sandbox

SPY = """
import ctypes, json, os, socket
def reads(path):
    try:
        return open(path).read()
    except OSError as error:
        return type(error).__name__
def fills(size):
    try:
        return len(bytearray(size))
    except MemoryError:
        return 0
def writes(path, size=1):
    try:
        with open(path, "wb") as file:
            return file.write(bytes(size)) == size
    except OSError:
        return False
secret, kept, own = PATHS
def seen(top):
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if f"{os.path.join(folder, name)}/" not in KNOWN]
        yield from (os.path.join(folder, name) for name in [*folders, *files])
def answers(number, *arguments):  # what a system call of this number gives, and what is wrong
    given = ctypes.CDLL(None, use_errno=True).syscall(number, *arguments)
    return [given >= 0, os.strerror(ctypes.get_errno()) if given < 0 else ""]
def filled(folder):
    done = 0
    try:
        while done < 40:
            with open(f"{folder}/{done}", "wb") as file:
                file.write(bytes(10_000_000))
            done += 1
    except OSError:
        pass
    return done
print(json.dumps({
    "user": os.getuid(),
    "work": os.getcwd(),
    "environment": dict(os.environ),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "processes": len([name for name in os.listdir("/proc") if name.isdigit()]),
    "secret": reads(secret),
    "kept": reads(kept),
    "sockets": [[path, *os.listdir(path)] for path in ("/run", "/var/tmp", "/tmp", "/dev/shm")],
    "unmounts": os.system(f"umount {os.path.dirname(secret)} 2>/dev/null"),
    "still secret": reads(secret),
    "writes kept": writes(kept + "more"),
    "writes own": writes(own + "/work/a"),
    "on disk": [path for path in (own + "/run", own + "/given/run", own + "/given/tmp") if writes(path + "/a")],
    "writes much": writes(own + "/work/b", 200_000_000),
    "memory": fills(100_000_000) > 0,
    "much memory": fills(2_000_000_000) > 0,
    "mounts": os.system("mount -t tmpfs none /mnt 2>/dev/null"),
    "leaves": [path for path in LEAVES if ISOLATED and writes(path)],
    "fills": filled(own + "/work"),
    "fills shm": filled("/dev/shm") if ISOLATED else 0,
    "beside": [path for path in seen("/") if not os.path.isdir(path) or os.path.islink(path)] if ISOLATED else [],
    "calls": {name: answers(*call) for name, call in CALLS.items()},
}))
"""

# What holds nothing of the class or the teacher: the system, its devices and processes, Python, and what is its own.
KNOWN = [f"{folder}/" for folder in ("/usr", "/lib", "/proc", "/dev", "/sys/devices/system/cpu", "/etc/alternatives")]
KNOWN += ["/lib32/", "/lib64/", "/bin/", "/sbin/", "/libx32/", "/etc/fonts/"]
# A keyring's content, the user's own keyring, memory that no process holds, a new user namespace in three ways, and
# calls that are made elsewhere.
MACHINES = {  # of these processors
    "x86_64": {"keyring": [250, 11, -3, 0, 0], "keyring made": [248, b"keyring", b"a", 0, 0, -1]}
    | {"asked": [249, b"user", b"a", 0, -3], "memory": [319, b"a", 0], "unshare": [272, 0x10000000]}
    | {"clone": [56, 0x10000011, 0, 0, 0, 0], "clone3": [435, 0, 0]}
    | {"shared": [29, 0, 100_000, 0o600], "queue": [68, 0, 0o600], "io_uring": [425, 1, b"0" * 120]},
    "aarch64": {"keyring": [219, 11, -3, 0, 0], "keyring made": [217, b"keyring", b"a", 0, 0, -1]}
    | {"asked": [218, b"user", b"a", 0, -3], "memory": [279, b"a", 0], "unshare": [97, 0x10000000]}
    | {"clone": [220, 0x10000011, 0, 0, 0, 0], "clone3": [435, 0, 0]}
    | {"shared": [194, 0, 100_000, 0o600], "queue": [186, 0, 0o600], "io_uring": [425, 1, b"0" * 120]},
}
CALLS = MACHINES.get(platform.machine(), {})

RUN = "import json, sys; from classroom import sandbox; sandbox.become(json.loads(sys.argv[1]), sys.argv[2:])"
SOURCES = str(Path(sandbox.__file__).parents[1])


@pytest.fixture
def place():
    """A folder that every user may enter, with a secret in one part and the sandbox's own in another."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    for name in ("hidden/kept", "own/work", "own/home", "own/tmp", "own/run", "own/given"):
        (folder / name).mkdir(parents=True)
    (folder / "hidden" / "secret").write_text("the marks")
    (folder / "hidden" / "kept" / "text").write_text("the course")
    (folder / "hidden" / "kept").chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def spy(place, isolated, *, started_by):
    """What the program in the sandbox reports, started by the user with this number."""
    root = started_by == 0 and os.geteuid() == 0
    settings = {
        "own": str(place / "own"),
        "user": 51_234 if root else 0,
        "show": [str(place / "hidden" / "kept")],
        "isolated": isolated,
        "disk": 150_000_000,
        "memory": 1_000_000_000,
        "environment": {"PATH": os.defpath},
    }
    paths = [str(place / "hidden" / "secret"), str(place / "hidden" / "kept" / "text"), str(place / "own")]
    leaves = [f"{folder}/{place.name}" for folder in ("/run", "/var/tmp", "/dev", "/etc", "/usr", "")]
    known = [*KNOWN, f"{place}/own/", f"{place}/hidden/kept/"]
    names = {"PATHS": paths, "ISOLATED": isolated, "LEAVES": leaves, "KNOWN": known, "CALLS": CALLS if isolated else {}}
    told = "\n".join(f"{name} = {value!r}" for name, value in names.items())
    program = ["/usr/bin/python3", "-I", "-c", told + SPY]
    other = started_by != os.geteuid()
    user = {"user": started_by, "group": started_by, "extra_groups": []} if other else {}
    if other:
        subprocess.run(["chown", "-R", str(started_by), place / "own"], check=True)
    interpreter = "/usr/bin/python3" if other else sys.executable
    command = [interpreter, "-c", RUN, json.dumps(settings), *program]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCES, "SECRET": "a key"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **user)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(params=["this user", "another"])
def starter(request):
    """Who starts the sandbox; where the tests run as root, an ordinary user too."""
    if request.param == "this user":
        return os.geteuid()
    if os.geteuid() != 0:
        pytest.skip("only root can start it as another")
    if not Path("/usr/bin/python3").exists():
        pytest.skip("no Python that every user can run")
    return 51_235


@pytest.mark.slow
def test_limits_hold_without_isolation(place, starter):
    seen = spy(place, False, started_by=starter)
    assert seen["work"] == str(place / "own" / "work")
    assert seen["environment"].keys() - {"LC_CTYPE"} == {"PATH", "HOME", "TMPDIR", "PWD", "OLDPWD"}
    assert seen["environment"]["HOME"] == str(place / "own" / "home")
    assert (seen["memory"], seen["much memory"]) == (True, False)
    assert (seen["writes own"], seen["writes much"]) == (True, False)
    assert seen["user"] == (51_234 if starter == os.geteuid() == 0 else starter)
    assert seen["user"] != 0
    assert seen["secret"] == "the marks", "so the test below sees what the isolation does"


def test_bubblewrap_hides_what_is_to_be_hidden(place, starter):
    (place / "own" / "work" / "beside.txt").write_text("handed in")
    seen = spy(place, True, started_by=starter)
    assert seen["interfaces"] == ["lo"]
    assert seen["secret"] == seen["still secret"] == "FileNotFoundError"
    assert seen["unmounts"] != 0 and seen["mounts"] != 0
    assert seen["kept"] == "the course"
    assert (seen["writes own"], seen["writes kept"]) == (True, False)
    assert not seen["much memory"]
    assert seen["user"] not in (0,)
    assert seen["processes"] <= 4
    assert seen["sockets"] == [["/run"], ["/var/tmp"], ["/tmp", place.name], ["/dev/shm"]]
    assert seen["leaves"] == [] and seen["on disk"] == [], "all that it writes is in memory, with a size"
    assert 1 <= seen["fills"] < 16 and 1 <= seen["fills shm"] < 16, "each takes 150 MB"
    assert [path.name for path in (place / "own" / "work").iterdir()] == ["beside.txt"], "nothing is left behind"
    system = {"/etc/ld.so.cache", "/etc/localtime", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
    assert {*seen["beside"]} <= system and "/etc/ld.so.cache" in seen["beside"], "nothing else is seen"
    assert seen["calls"] == {name: [False, "Function not implemented"] for name in CALLS}


def test_where_bubblewrap_is_missing_or_fails_it_is_said_how_to_get_it(monkeypatch):
    assert sandbox.missing() == ""
    with monkeypatch.context() as other:
        other.setattr(sandbox.platform, "machine", lambda: "z80")
        assert "the system calls of z80 are not known" in sandbox.missing()
    monkeypatch.setattr(sandbox, "SPACES", {True: ["--no-such-option"], False: ["--no-such-option"]})
    assert "does not work here (bwrap: Unknown option" in sandbox.missing()
    monkeypatch.setenv("PATH", "")
    assert "it is not installed" in sandbox.missing() and "sudo apt install bubblewrap" in sandbox.missing()
