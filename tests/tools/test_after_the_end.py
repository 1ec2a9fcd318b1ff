"""How a command ended stands, whatever fails when it is looked at afterwards; only one that never ran was not started."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman.loop.commands import CommandStarter
from dragoman.tools.child_environment import child_environment
from dragoman.tools.output import Outputs
from dragoman.tools.process import NotStarted, run_process
from dragoman.tools.shell import RunShell
from dragoman.tools.workspace import Workspace
from dragoman.values.calls import ToolOutput
from dragoman.values.commands import Launched
from dragoman.values.messages import Text

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the launcher is for Linux")
FAULTS = (OSError(13, "Permission denied"), ValueError("embedded null byte"), AssertionError(), RuntimeError("closed"))


class Failing(CommandStarter):
    """Starts commands for real; whatever it is asked about them afterwards fails."""

    def __init__(self, folder: Path, fault: Exception, *, at_end: bool = False) -> None:
        super().__init__([str(folder)], False)
        self.fault = fault
        self.at_end = at_end

    def explain(self, output: str, **about: Any) -> str:
        raise self.fault

    def find_refused_write(self, output: str) -> str:
        raise self.fault

    async def find_new_ports(self) -> tuple[int, ...]:
        raise self.fault

    async def find_servers(self) -> tuple[int, ...]:
        raise self.fault

    async def start(self, argv: Sequence[str], *, env: Mapping[str, str], **options: Any) -> Launched:
        launched = await super().start(argv, env=env, **options)
        if self.at_end:
            end = launched.end

            async def ending(grace_s: float) -> bool:
                await end(grace_s)
                raise self.fault

            launched.end = ending  # type: ignore[method-assign]
        return launched


def call(folder: Path, launch: CommandStarter, **arguments: Any) -> ToolOutput:
    tool = RunShell(Workspace(folder), Outputs(str(folder / "outputs"), 10_000), launch=lambda: launch)
    return asyncio.run(tool.run(arguments, lambda text: None))


def text_of(output: ToolOutput) -> str:
    return "".join(part.text for part in output.content if isinstance(part, Text))


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
@pytest.mark.parametrize("at_end", [False, True])
def test_an_end_that_cannot_be_looked_at_is_an_end_all_the_same(fault: Exception, at_end: bool, tmp_path: Path) -> None:
    said = text_of(call(tmp_path, Failing(tmp_path, fault, at_end=at_end), command="echo ran >> made; echo printed; exit 3"))
    assert (tmp_path / "made").read_text() == "ran\n"
    assert "printed" in said
    assert "exit code 3" in said
    assert "could not be started" not in said
    assert ("could not be looked at" in said) == at_end


def test_only_what_never_ran_was_not_started(tmp_path: Path) -> None:
    missing = tmp_path / "gone"
    launch = CommandStarter([str(tmp_path)], False)

    async def start() -> None:
        await run_process(
            ["/nosuch/program"], directory=str(missing), env=child_environment(), take_stdout=len, take_stderr=len, launch=launch
        )

    with pytest.raises(NotStarted):
        asyncio.run(start())


def test_output_that_cannot_be_taken_is_no_failed_start(tmp_path: Path) -> None:
    def refuse(data: bytes) -> None:
        raise OSError(28, "No space left on device")

    async def start() -> None:
        await run_process(
            ["/bin/sh", "-c", "echo ran > made; echo printed"],
            directory=str(tmp_path),
            env=child_environment(),
            take_stdout=refuse,
            take_stderr=refuse,
            launch=CommandStarter([str(tmp_path)], False),
        )

    with pytest.raises(OSError, match="No space") as raised:
        asyncio.run(start())
    assert not isinstance(raised.value, NotStarted)
    assert (tmp_path / "made").read_text() == "ran\n"
