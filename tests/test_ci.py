"""What a build machine installs before it runs the tests."""

import shutil
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[1] / ".ci" / "run"
INSTALL = "apt-get install -y --no-install-recommends"


@pytest.mark.parametrize(
    ("there", "user", "done"),
    [
        (["bwrap", "chromium"], 0, ["make test"]),
        (["bwrap", "chromium-browser"], 1000, ["make test"]),
        (["bwrap"], 0, ["apt-get update", f"{INSTALL} chromium", "make test"]),
        (["google-chrome"], 0, ["apt-get update", f"{INSTALL} bubblewrap", "make test"]),
        ([], 0, ["apt-get update", f"{INSTALL} bubblewrap chromium", "make test"]),
        (["google-chrome"], 1000, ["sudo apt-get update", f"sudo {INSTALL} bubblewrap", "make test"]),
    ],
)
def test_what_is_missing_is_installed(tmp_path, there, user, done):
    """In a PATH that holds nothing but stand-ins, which say how they were called."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(RUN, tmp_path / ".ci")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "dirname").symlink_to(shutil.which("dirname"))
    said = {name: f"echo {name} $*" for name in ("apt-get", "make", "sudo", *there)}
    for name, source in {**said, "id": f"echo {user}", "env": 'shift; "$@"'}.items():
        (programs / name).write_text(f"#!/bin/sh\n{source}\n")
        (programs / name).chmod(0o755)
    command = ["/bin/sh", tmp_path / ".ci" / "run"]
    ran = subprocess.run(command, env={"PATH": str(programs)}, capture_output=True, text=True, check=True)
    assert [line.replace("env DEBIAN_FRONTEND=noninteractive ", "") for line in ran.stdout.splitlines()] == done
