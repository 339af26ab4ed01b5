"""What several test files need."""

import os
import subprocess
import sys

import pytest

from courseware import install


@pytest.fixture(scope="session")
def classroom_python():
    """The Python of .venv-classroom, made if need be."""
    subprocess.run([sys.executable, install.__file__, "classroom"], check=True)
    return os.path.join(install.CLASSROOM, "bin", "python")
