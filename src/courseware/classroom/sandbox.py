"""Start the kernel that runs a submission, with less around it: `python sandbox.py SETTINGS CONNECTION`.

The grader stays outside. What is shut off depends on the system, and `layers` tells which of these work here:

- always: limits on memory and on the size of a file, a home and a temporary folder of its own, a clean environment;
- started as root: an ordinary user of its own;
- where the system lets its user make namespaces: no network, no sight of other processes, and empty folders in
  place of the class's, the other submissions' and the user's home.

Only the standard library and util-linux, since it runs under the course's Python before anything else.
"""

import json
import os
import resource
import shutil
import subprocess
import sys

NETWORK = ["unshare", "--mount", "--net"]
PROCESSES = ["--pid", "--fork", "--kill-child", "--mount-proc"]
NO_ROOT = ["--user", "--map-root-user"]  # what an ordinary user needs for the rest
LOCKED = [
    "unshare",
    "--user",
    "--mount",
    "--map-user=1000",
    "--map-group=1000",
]  # nothing can be unmounted again

# Arguments: the sandbox's own folder, how many folders to hide, those, how many to keep all the same, those, then
# the command. Kept folders are held open while the empty ones are put over what is above them. All but the own one
# become read-only.
MOUNTS = """
set -eu
hidden=$1; shift; i=0; hide=; keep=
while [ $i -lt $hidden ]; do hide="$hide
$1"; shift; i=$((i + 1)); done
kept=$1; shift; i=0
while [ $i -lt $kept ]; do keep="$keep
$1"; eval "exec $((i + 3))<\\"\\$1\\""; shift; i=$((i + 1)); done
IFS='
'
for folder in $hide; do
    [ ! -d "$folder" ] || mount -t tmpfs -o mode=755,size=1m,nr_inodes=1k none "$folder"
done
i=3
for folder in $keep; do
    mkdir -p "$folder"
    mount --no-canonicalize --bind /proc/self/fd/$i "$folder"
    [ "$folder" = "$0" ] || mount -o remount,bind,ro "$folder" || mount -o remount,bind,ro,nosuid,nodev "$folder"
    eval "exec $i<&-"; i=$((i + 1))
done
"""


def layers() -> list[str]:
    """The start of a command line that shuts off as much as this system allows; empty where it allows nothing."""
    user = [] if os.geteuid() == 0 else NO_ROOT
    probe = ["sh", "-c", 'mount -t tmpfs none /tmp && exec "$@"', "sh", *inner(0 if user else 65534), "true"]
    for outer in (NETWORK + user + PROCESSES, NETWORK + user):
        if shutil.which("unshare") and _runs([*outer, *probe]):
            return outer
    return []


def inner(user: int) -> list[str]:
    """The start of the command line inside the layers, which gives up the right to undo them."""
    if user == 0:
        return LOCKED
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs"]


def _runs(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def limit(memory: int, processes: int) -> None:
    """What the process and each of its children may take, in bytes, and how many its own user may have."""
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000_000, 100_000_000))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if processes:
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))


def give(folder: str, user: int) -> None:
    """Give a folder and all in it to a user."""
    for path, _, files in os.walk(folder):
        for name in [".", *files]:
            os.chown(os.path.join(path, name), user, user, follow_symlinks=False)


def become(settings: dict, program: list[str]) -> None:
    """Run a program in place of this one, in the sandbox that the settings describe."""
    own, user, outer = settings["own"], settings["user"], settings["layers"]
    limit(settings["memory"], 500 if user else 0)
    if user:
        give(own, user)
    command = ["sh", "-c", 'cd "$0" && exec "$@"', f"{own}/work", *program]
    if user or outer:
        command = inner(user) + command
    if outer:
        hide, keep = settings["hide"], settings["keep"]
        lists = [str(len(hide)), *hide, str(len(keep)), *keep]
        command = [*outer, "sh", "-c", MOUNTS + 'exec "$@"', own, *lists, *command]
    os.chdir("/")  # not where the grader keeps its copy
    folders = {"HOME": f"{own}/home", "TMPDIR": f"{own}/tmp"}
    os.execvpe(command[0], command, settings["environment"] | folders)


def main(settings: str, connection: str, *more: str) -> None:
    with open(settings) as file:
        wanted = json.load(file)
    become(wanted, [wanted["python"], "-m", "ipykernel_launcher", "-f", connection, *more])


if __name__ == "__main__":
    main(*sys.argv[1:])
