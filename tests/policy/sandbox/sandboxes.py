"""Running commands in a sandbox, for tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.policy.sandbox.sandbox import Sandbox
from dragoman.tools.child_environment import child_environment
from dragoman.tools.process import Exit, run_process
from dragoman.values.commands import Reach
from system_parts import IS_BUILD_MACHINE, require_program

LEVELS = (1, 2, 3)


@contextmanager
def sandbox_at(level: Any, workspace: Path, **options: Any) -> Iterator[Sandbox]:
    """A sandbox of this level. Where it does not work the test is skipped, on a build machine it fails."""
    if level == 2:
        require_program("bwrap")
    sandbox = Sandbox([str(workspace)], level=level, **options)
    try:
        if level != "off" and sandbox.detected.level != level:
            pytest.fail(sandbox.detected.words) if IS_BUILD_MACHINE else pytest.skip(sandbox.detected.words)
        yield sandbox
    finally:
        sandbox.close()


async def bash(
    sandbox: Sandbox,
    command: str,
    directory: Path,
    *,
    timeout_s: float = 20,
    take: Callable[[bytes], object] = len,
    reach: Reach = "workspace",
    env: Mapping[str, str] | None = None,
) -> tuple[Exit, str]:
    """How it ended, and all it said."""
    said = bytearray()

    def hear(data: bytes) -> None:
        said.extend(data)
        take(data)

    ended = await run_process(
        ["/bin/bash", "-c", command],
        directory=os.fspath(directory),
        env={**child_environment(), **(env or {})},
        take_stdout=hear,
        take_stderr=hear,
        timeout_s=timeout_s,
        launch=sandbox,
        reach=reach,
    )
    return ended, said.decode()
