"""What all test files share."""

import os
import subprocess
import sys

import pytest
import torch
from hypothesis import settings

from courseware import install

# The first call of an operation takes long, and on a busy machine every one may.
settings.register_profile("course", deadline=None)
settings.load_profile("course")


@pytest.hookimpl(tryfirst=True)  # before the fixtures, those of a whole module too
def pytest_runtest_setup():
    """What a test draws without a seed of its own is the same whatever ran before it."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def classroom_python():
    """The Python of .venv-classroom, made if need be."""
    subprocess.run([sys.executable, install.__file__, "classroom"], check=True)
    return os.path.join(install.CLASSROOM, "bin", "python")
