"""Tests of recordings are skipped where there are none. They are not part of the project, so that is no failure, not even with `CI` set."""

from __future__ import annotations

from pathlib import Path

import pytest

from outside_folders import NO_RECORDINGS, RECORDINGS
from recorded.exchanges import are_there


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder of recordings."""
    if not are_there():
        pytest.skip(NO_RECORDINGS)
    return RECORDINGS
