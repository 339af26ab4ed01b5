"""Start the kernel that runs a submission behind bubblewrap: `python sandbox.py SETTINGS CONNECTION`, the first as JSON.

The grader stays outside. Inside there is nothing but what is named here: the system's programs and libraries, the
environment and the course's package, all read-only, and no network or other processes. Memory that no process would be
held to account for, keyrings and namespaces of its own are refused. All that the code can write is in memory and as
large as `disk` allows: the sockets of its kernel are made out here and handed in. Whatever was started ends with it.
Started as root, it is an ordinary user of its own besides.

Only the standard library, since it runs under the course's Python before anything else.
"""

import errno
import json
import os
import pathlib
import platform
import resource
import shutil
import socket
import struct
import subprocess
import sys

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/sys/devices/system/cpu")
SYSTEM += tuple(f"/etc/{name}" for name in ("alternatives", "fonts", "ld.so.cache", "localtime"))
EMPTY = ("/run", "/tmp", "/var/tmp")  # for what expects them
# Root becomes an ordinary user inside, since that user may not reach what root has to show; a user stays one.
SPACES = {
    True: ["--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"],
    False: ["--unshare-all", "--cap-drop", "ALL"],
}
# Not -m ipykernel_launcher, which a file of that name in the work folder would be.
LAUNCH = """
import sys
del sys.path[0]
import zmq
from ipykernel.kernelapp import launch_new_instance

def bind(socket, address, bind=zmq.Socket.bind):
    if address in SOCKETS:
        socket.setsockopt(zmq.USE_FD, SOCKETS[address])
    return bind(socket, address)

zmq.Socket.bind = bind
launch_new_instance()
"""
HOW = (
    "bubblewrap does not work here{}, and without it a submission could read and change what you can. Install it "
    "(Debian and Ubuntu: sudo apt install bubblewrap), or grade in a container that holds nothing else and say so: "
    "SANDBOX=none make grade …"
)


MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # what the kernel calls these processors
REFUSED = {  # the system calls that a submission may not make, and their numbers on each
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "unshare": (272, 97),
    "clone3": (435, 435),  # the C library then uses clone, which can be looked into
    "io_uring_setup": (425, 425),  # would make calls that nobody looks into
}
CLONE = (56, 220)
NEW_USER = 0x10000000  # the flag of clone for a user namespace


def call_filter(machine: str) -> bytes:
    """A program of seccomp's for these processors: what is refused answers that there is no such call."""

    def step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("HBBI", code, yes, no, value)

    load, equal, least, has_bit, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    column = [*MACHINES].index(machine)
    numbers = [call[column] for call in REFUSED.values()]
    program = [step(load, 4), step(equal, MACHINES[machine], 0, len(numbers) + 5), step(load, 0)]
    program += [step(least, 0x40000000, len(numbers) + 3)]  # the numbers of x32, a second way to the same calls
    program += [step(equal, number, len(numbers) - at + 2) for at, number in enumerate(numbers)]
    program += [step(equal, CLONE[column], 0, 3), step(load, 16), step(has_bit, NEW_USER, 0, 1)]
    return b"".join([*program, step(answer, 0x00050000 | errno.ENOSYS), step(answer, 0x7FFF0000)])


def bubblewrap(own: str, show: list[str], disk: int) -> list[str]:
    """The start of a command line that isolates what follows it.

    Args:
        own: the submission's folder, seen as `given`: `work` and `home` are copied from there into memory.
        show: folders that are there as well, read-only.
        disk: bytes that fit into the work folder, and as many into home and the folders for temporary files.
    """
    command = ["bwrap", *SPACES[os.geteuid() == 0], "--die-with-parent", "--new-session"]
    command += ["--dev", "/dev", "--perms", "1777", "--size", str(disk), "--tmpfs", "/dev/shm"]
    command += ["--proc", "/proc"]
    links = [path for path in SYSTEM if os.path.islink(path) and path.count("/") == 1]
    there = [path for path in SYSTEM if os.path.exists(path) and path not in links]
    there += [path for path in show if not path.startswith("/usr/") and path != "/usr"]
    above = [str(folder) for path in [*there, own] for folder in reversed(pathlib.Path(path).parents[:-1])]
    for folder in dict.fromkeys([*above, *EMPTY, own]):  # those that bubblewrap makes by itself are root's alone
        command += ["--perms", "0755", "--dir", folder]
    for path in links:
        command += ["--symlink", os.readlink(path), path]
    for path in there:
        command += ["--ro-bind", path, path]
    command += ["--ro-bind", own, f"{own}/given"]
    for folder in ("work", "home", "tmp"):
        command += ["--perms", "0777", "--size", str(disk), "--tmpfs", f"{own}/{folder}"]
    return [*command, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", f"{own}/work"]


def missing() -> str:
    """Why bubblewrap cannot be had here and what to do; empty where it works."""
    if not shutil.which("bwrap"):
        return HOW.format(": it is not installed")
    if platform.machine() not in MACHINES:
        return HOW.format(f": the system calls of {platform.machine()} are not known to the course")
    probe = ["bwrap", *SPACES[os.geteuid() == 0], "--ro-bind", "/", "/", "--proc", "/proc", "--tmpfs", "/tmp", "true"]
    done = subprocess.run(probe, capture_output=True, text=True, check=False)
    return HOW.format(f" ({done.stderr.strip().splitlines()[-1]})") if done.returncode else ""


def user(number: int) -> list[str]:
    """The start of a command line that becomes this user, where root starts it; a user stays who they are."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", "--no-new-privs"]


def limit(memory: int) -> None:
    """What the process and each of its children may take of memory, in bytes; a file may have 100 MB."""
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000_000, 100_000_000))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, 2 * (resource.getrlimit(resource.RLIMIT_CPU)[1],))  # not the grader's


def give(folder: str, number: int) -> None:
    """Give a folder and all in it to a user."""
    for path, _, files in os.walk(folder):
        for name in [".", *files]:
            os.chown(os.path.join(path, name), number, number, follow_symlinks=False)


def become(settings: dict, program: list[str]) -> None:
    """Run a program in place of this one, in the sandbox that the settings describe."""
    own, isolated = settings["own"], settings["isolated"]
    limit(settings["memory"])
    if os.geteuid() == 0:
        give(own, settings["user"])
    if isolated:
        fill = 'cp -R "$0/given/work/." "$0/work"; cp -R "$0/given/home/." "$0/home"; exec "$@"'
        refused, write = os.pipe()
        os.write(write, call_filter(platform.machine()))
        os.close(write)
        os.set_inheritable(refused, True)
        outer = [*bubblewrap(own, settings["show"], settings["disk"]), "--seccomp", str(refused)]
        command = [*outer, *user(settings["user"]), "sh", "-c", fill, own, *program]
    else:
        command = [*user(settings["user"]), "sh", "-c", 'cd "$0" && exec "$@"', f"{own}/work", *program]
    os.chdir("/")  # not where the grader keeps its copy
    folders = {"HOME": f"{own}/home", "TMPDIR": f"{own}/tmp"}
    os.execvpe(command[0], command, settings["environment"] | folders)


def listening(connection: dict) -> dict[str, int]:
    """The sockets of a kernel, each with what it is bound to and its number in this process and those after it."""
    sockets = {}
    for name, number in connection.items():
        if name.endswith("_port"):
            address = f"{connection['ip']}-{number}"
            made = socket.socket(socket.AF_UNIX)
            made.bind(address)
            made.listen(100)
            os.set_inheritable(made.fileno(), True)
            sockets[f"ipc://{address}"] = made.detach()
    return sockets


def main(settings: str, connection: str, *more: str) -> None:
    wanted, sockets = json.loads(settings), {}
    if wanted["isolated"]:
        with open(connection) as file:
            sockets = listening(json.load(file))
        connection = connection.replace(wanted["own"], f"{wanted['own']}/given")
    launch = f"SOCKETS = {sockets}\n{LAUNCH}"
    become(wanted, [wanted["python"], "-c", launch, "-f", connection, *more])


if __name__ == "__main__":
    main(*sys.argv[1:])
