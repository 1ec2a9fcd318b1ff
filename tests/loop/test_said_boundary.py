"""What the user says of the boundary in a conversation holds for the session, and for agents that are called in it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Literal

import pytest

from dragoman import Agent, ApprovalOptions, ToolOptions
from dragoman.loop.commands import CommandStarter
from dragoman.loop.session import SaidBoundary
from dragoman.options import Sandboxing
from dragoman.testing import ScriptedProvider
from dragoman.tools.child_environment import child_environment
from dragoman.tools.process import run_process
from dragoman.values.errors import SandboxError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")


def run(starter: CommandStarter, command: str, folder: Path, **env: str) -> str:
    said = bytearray()
    running = run_process(
        ["/bin/bash", "-c", command],
        directory=str(folder),
        env={**child_environment(), **env},
        take_stdout=said.extend,
        take_stderr=said.extend,
        timeout_s=60,
        launch=starter,
    )
    asyncio.run(running)
    return said.decode()


def test_turned_off_commands_run_outside_and_turned_on_inside_again(tmp_path: Path) -> None:
    said, outside = SaidBoundary(Sandboxing()), tmp_path / "outside.txt"
    (tmp_path / "work").mkdir()
    starter = CommandStarter([str(tmp_path / "work")], Sandboxing(), said=said)
    try:
        if not starter.is_sandbox:
            pytest.skip(starter.words)
        for is_off in (True, False):
            said.is_turned_off = is_off
            assert starter.is_sandbox is not is_off
            known = starter.known_sandbox
            assert known is not None
            assert (known.level == 0) is is_off
            run(starter, f"echo x > {outside}", tmp_path / "work")
            assert outside.exists() is is_off
            outside.unlink(missing_ok=True)
    finally:
        starter.close()


def test_what_is_turned_off_for_an_agent_is_off_for_those_that_it_calls() -> None:
    outer, inner = SaidBoundary(Sandboxing(level="external")), SaidBoundary(Sandboxing())
    inner.outer = outer
    assert (inner.is_off, inner.for_record, outer.for_record) == (False, "", "external")
    outer.is_turned_off = True
    assert (inner.is_off, inner.for_record, outer.for_record) == (True, "off", "off")


def test_where_a_container_is_the_boundary_commands_get_the_short_list_and_its_own_caches(tmp_path: Path) -> None:
    starter = CommandStarter([str(tmp_path)], Sandboxing(level="external", environment=["CHOSEN"]))
    try:
        assert starter.is_sandbox
        assert not starter.shares_network
        assert starter.writable == ("/",)
        given = {"CHOSEN": "1", "NOT_CHOSEN": "1", "CARGO_HOME": "/opt/cargo", "TMPDIR": str(tmp_path), "MAVEN_OPTS": "-Dpassword=x"}
        seen = dict(line.partition("=")[::2] for line in run(starter, "env", tmp_path, **given).splitlines())
        assert {name: seen.get(name) for name in given} == {**given, "NOT_CHOSEN": None, "MAVEN_OPTS": None}
    finally:
        starter.close()


def test_the_mode_auto_needs_a_boundary_and_takes_one_that_is_named(tmp_path: Path) -> None:
    def make(level: Literal["external", "off"]) -> Agent:
        tools = ToolOptions(builtin=True, sandbox=Sandboxing(level=level))
        return Agent(ScriptedProvider("text: Hi."), workspace=str(tmp_path), tools=tools, approval=ApprovalOptions("auto"))

    assert make("external").approvals.mode == "auto"
    with pytest.raises(SandboxError, match="if a container or VM is the boundary"):
        make("off")
    assert str(make("external").approvals.sandbox).startswith("external")
