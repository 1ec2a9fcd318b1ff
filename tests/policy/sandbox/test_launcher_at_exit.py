"""What is left of launchers when the program ends."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="launchers are for Linux")

PROGRAM = """
import atexit
atexit.register(lambda: print("closed" if launcher._orders is None else "open"))  # registered first, so it is called last
from dragoman.policy.sandbox.launching import shared_launcher
launcher = shared_launcher()
launcher._opened()
"""


def test_its_socket_is_closed_when_the_program_ends() -> None:
    """Otherwise Python tells of it where it is asked to (`-X dev`)."""
    run = subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "closed\n", "")
