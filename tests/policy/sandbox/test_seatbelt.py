"""macOS: which program is chosen, with which arguments, and what is believed of it. The real `sandbox-exec` was never run: in its place
stands a program that lets a command write where the profile allows it, by Landlock."""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.loop import commands, harness
from dragoman.loop.commands import CommandStarter
from dragoman.policy.sandbox.launcher import landlock
from dragoman.policy.sandbox.seatbelt import profile
from dragoman.policy.sandbox.seatbelt_sandbox import SeatbeltSandbox
from dragoman.tools.child_environment import child_environment
from dragoman.tools.process import Exit, run_process
from policy.sandbox.sandboxes import bash
from processes import gone_within, marked_sleep

HOLDS = """
import re, sys, os
sys.path.insert(0, {source!r})
from dragoman.policy.sandbox.launcher import landlock
assert sys.argv[1] == "-p"
allowed = re.findall(r'\\(allow file-write[*] \\(subpath "(.*)"\\)\\)', sys.argv[2])
rules = landlock.Ruleset(without_tcp=False)
rules.let_read(["/"])
rules.let_write([*allowed, "/dev"])
rules.restrict()
os.execv(sys.argv[3], sys.argv[3:])
"""
DOES_NOT_HOLD = "import os, sys\nos.execv(sys.argv[3], sys.argv[3:])\n"
SOURCE = str(Path(harness.__file__).parent.parent.parent)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "w"
    (folder / ".git" / "hooks").mkdir(parents=True)
    return folder


def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> str:
    script, program = tmp_path / "stand_in.py", tmp_path / "sandbox-exec"
    script.write_text(text.format(source=SOURCE))
    # Through a shell: a path with blanks cannot stand in the first line.
    program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-S", str(script)])} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(SeatbeltSandbox, "program", str(program))
    return str(program)


def run(sandbox: Any, command: str, directory: Path, timeout_s: float = 20) -> tuple[Exit, str]:
    return asyncio.run(bash(sandbox, command, directory, timeout_s=timeout_s))


def test_later_rules_of_the_profile_take_back_what_earlier_ones_allow() -> None:
    lines = profile(["/w"], ["/w/.git/hooks"], ["/Users/u/.ssh"], pinned=["/w/.git"]).splitlines()
    wanted = [
        "(deny default)",
        "(deny network*)",
        '(allow file-write* (subpath "/w"))',
        '(deny file-write-unlink (literal "/w/.git"))',
        '(deny file-write* (subpath "/w/.git/hooks"))',
        '(deny file-read* file-write* (subpath "/Users/u/.ssh"))',
    ]
    assert [line for line in lines if line in wanted] == wanted


@pytest.mark.skipif(landlock.version() < 3, reason="the stand-in needs Landlock")
def test_a_program_that_holds_is_used(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, HOLDS)
    sandbox = SeatbeltSandbox([str(workspace)])
    try:
        assert sandbox.detected.level == 4
        assert "sandbox-exec" in sandbox.detected.words
        ended, said = run(sandbox, f"touch a; echo > $TMPDIR/t && echo temporary; touch {tmp_path}/b; echo $PIP_RETRIES", workspace)
        assert said.startswith("temporary\n")
        assert "\n0\n" in said
        assert ((workspace / "a").exists(), (tmp_path / "b").exists(), ended.code) == (True, False, 0)
        assert f"{tmp_path}/b is read-only" in sandbox.explain(f"touch: {tmp_path}/b: Operation not permitted")
    finally:
        sandbox.close()


@pytest.mark.parametrize("text", [DOES_NOT_HOLD, "raise SystemExit(71)\n"])
def test_one_that_does_not_is_not_believed(text: str, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, text)
    sandbox = SeatbeltSandbox([str(workspace)])
    try:
        assert sandbox.detected.level == 0
        assert "did not confine" in sandbox.detected.words
        assert run(sandbox, "echo plain", workspace)[1] == "plain\n"
    finally:
        sandbox.close()


def test_what_a_command_started_ends_with_it(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, DOES_NOT_HOLD)
    sandbox = SeatbeltSandbox([str(workspace)], level="off")
    sleeping = marked_sleep()
    ended, _ = run(sandbox, f"{sleeping} & {sleeping}", workspace, timeout_s=0.5)
    assert ended.timed_out
    assert gone_within(60, sleeping)


def test_it_is_chosen_on_macos(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, DOES_NOT_HOLD)
    monkeypatch.setattr(commands.sys, "platform", "darwin")
    starter = CommandStarter([str(workspace)], True)
    try:
        assert isinstance(starter.sandbox, SeatbeltSandbox)
        assert not starter.is_sandbox

        async def main() -> Exit:
            return await run_process(
                ["/bin/sh", "-c", "exit 3"],
                directory=str(workspace),
                env=child_environment(),
                take_stdout=len,
                take_stderr=len,
                launch=starter,
            )

        assert asyncio.run(main()).code == 3
    finally:
        starter.close()
