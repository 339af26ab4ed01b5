"""A container as those in which teachers grade without a sandbox: this system, read-only, with a /tmp of its own."""

import os
from pathlib import Path

from courseware import install


def container(*, room: int = 2_000_000_000) -> list[str]:
    """The start of a command line that runs what follows in it, as the same user.

    Args:
        room: bytes that fit into /tmp.
    """
    start = ["bwrap", "--die-with-parent", "--dev", "/dev", "--proc", "/proc"]
    start += ["--perms", "1777", "--size", str(room), "--tmpfs", "/tmp"]
    for path in map(Path, ("/usr", "/etc", "/bin", "/sbin", "/lib", "/lib64")):
        if path.is_symlink():
            start += ["--symlink", os.readlink(path), str(path)]
        elif path.exists():
            start += ["--ro-bind", str(path), str(path)]
    library = next(Path(install.VENV).glob("lib/python3*/site-packages"))
    more = [line for path in library.glob("*.pth") for line in path.read_text().splitlines()]
    python = Path(os.path.realpath(install.PYTHON)).parents[1]
    for path in [python, Path(install.ROOT), *map(Path, filter(os.path.isdir, more))]:
        for above in reversed(path.parents[:-1]):  # for every user: submissions run as one of their own
            start += ["--perms", "0755", "--dir", str(above)]
        start += ["--ro-bind", str(path), str(path)]
    return start
