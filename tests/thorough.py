"""What proves more and takes long: `make test ALL=1` runs it."""

import os

import pytest

ALL = os.environ.get("ALL") == "1"
thorough = pytest.mark.skipif(not ALL, reason="make test ALL=1 runs it")
