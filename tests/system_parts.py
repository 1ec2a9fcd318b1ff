"""Programs of the system that a test drives: shells, for example."""

from __future__ import annotations

import os
import shutil

import pytest

IS_BUILD_MACHINE = bool(os.environ.get("CI"))


def require_program(name: str) -> str:
    """Its path. Without it the test is skipped and says how to get it; on a build machine it fails, so that nobody believes it ran."""
    if path := shutil.which(name):
        return path
    reason = f"{name} is not installed: make system-parts"
    if IS_BUILD_MACHINE:
        pytest.fail(reason)
    pytest.skip(reason)
