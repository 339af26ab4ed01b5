"""Start the kernel that runs a submission behind bubblewrap: `python sandbox.py SETTINGS CONNECTION`.

The grader stays outside. Inside there is a read-only system without network, without other processes, with empty
/run, /tmp, /var/tmp and /dev/shm and empty folders in place of the class's, the other submissions' and the user's
home. The folder that the code works in is in memory and as large as `disk` allows. Whatever was started ends with it.
Started as root, it is an ordinary user of its own besides.

Only the standard library, since it runs under the course's Python before anything else.
"""

import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys

EMPTY = ("/run", "/tmp", "/var/tmp")  # /dev is bubblewrap's own, and /dev/shm in it
# Root becomes an ordinary user inside, since that user may not reach what root has to show; a user stays one.
SPACES = {
    True: ["--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"],
    False: ["--unshare-all", "--cap-drop", "ALL"],
}
HOW = (
    "bubblewrap does not work here{}, and without it a submission could read and change what you can. Install it "
    "(Debian and Ubuntu: sudo apt install bubblewrap), or grade in a container that holds nothing else and say so: "
    "SANDBOX=none make grade …"
)


def bubblewrap(own: str, hide: list[str], keep: list[str], disk: int) -> list[str]:
    """The start of a command line that isolates what follows it.

    Args:
        own: the submission's folder: `work` and `home` are copied into memory, `run` is shared with the grader.
        hide: folders that are empty inside.
        keep: folders that are there all the same, read-only.
        disk: bytes that fit into the work folder, and as many into home and the folder for temporary files.
    """
    command = ["bwrap", *SPACES[os.geteuid() == 0], "--die-with-parent", "--new-session"]
    command += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    empty = dict.fromkeys([*filter(os.path.isdir, [*EMPTY, *hide])])
    for folder in [folder for folder in empty if folder != "/dev/shm" and os.path.realpath(folder) == folder]:
        command += ["--perms", "0755", "--size", "1000000", "--tmpfs", folder]
    for folder in [*keep, own]:  # folders on the way that bubblewrap makes by itself are root's alone
        for above in reversed(pathlib.Path(folder).parents):
            if any(str(above).startswith(f"{hidden}/") for hidden in empty):
                command += ["--perms", "0755", "--dir", str(above)]
    for folder in keep:
        command += ["--ro-bind", folder, folder]
    command += ["--perms", "0755", "--dir", own, "--ro-bind", own, f"{own}/given"]
    for folder in ("work", "home", "tmp"):
        command += ["--perms", "0777", "--size", str(disk), "--tmpfs", f"{own}/{folder}"]
    return [*command, "--bind", f"{own}/run", f"{own}/run", "--chdir", f"{own}/work"]


def missing() -> str:
    """Why bubblewrap cannot be had here and what to do; empty where it works."""
    if not shutil.which("bwrap"):
        return HOW.format(": it is not installed")
    probe = [
        "bwrap",
        *SPACES[os.geteuid() == 0],
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--tmpfs",
        "/tmp",
        "true",
    ]
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
        outer = bubblewrap(own, settings["hide"], settings["keep"], settings["disk"])
        command = [*outer, *user(settings["user"]), "sh", "-c", fill, own, *program]
    else:
        command = [*user(settings["user"]), "sh", "-c", 'cd "$0" && exec "$@"', f"{own}/work", *program]
    os.chdir("/")  # not where the grader keeps its copy
    folders = {"HOME": f"{own}/home", "TMPDIR": f"{own}/tmp"}
    os.execvpe(command[0], command, settings["environment"] | folders)


def main(settings: str, connection: str, *more: str) -> None:
    with open(settings) as file:
        wanted = json.load(file)
    become(wanted, [wanted["python"], "-m", "ipykernel_launcher", "-f", connection, *more])


if __name__ == "__main__":
    main(*sys.argv[1:])
