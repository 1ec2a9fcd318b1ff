"""Programs of the system that a test drives: shells, for example."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from dragoman.policy.sandbox.sandbox import Sandbox

IS_BUILD_MACHINE = bool(os.environ.get("CI"))


def require_program(name: str) -> str:
    """Its path. Without it the test is skipped and says how to get it; on a build machine it fails, so that nobody believes it ran."""
    if path := shutil.which(name):
        return path
    reason = f"{name} is not installed: make system-parts"
    if IS_BUILD_MACHINE:
        pytest.fail(reason)
    pytest.skip(reason)


def require_read_only(workspace: Path) -> None:
    """Skip the test where commands cannot run with the workspace read-only; on a build machine it fails."""
    sandbox = Sandbox([str(workspace)])
    try:
        if not sandbox.has_read_only:
            pytest.fail(sandbox.detected.words) if IS_BUILD_MACHINE else pytest.skip(sandbox.detected.words)
    finally:
        sandbox.close()
