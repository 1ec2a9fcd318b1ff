"""Background commands and terminals at every level of the sandbox, and their end with the agent, however that ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.policy.sandbox.sandbox import Sandbox
from policy.sandbox.sandboxes import sandbox_at
from policy.sandbox.test_process_death import COUNT, leave_in_every_way
from processes import alive, gone_within, marked_sleep, started_within
from tools.test_background import Shells

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
LEVELS = ("off", 1, 2, 3)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.tools.shell.GRACE_S", 0.5)


TESTS = Path(__file__).resolve().parent.parent.parent


@asynccontextmanager
async def shells_at(level: Any, folder: Path) -> AsyncIterator[Shells]:
    (folder / "work").mkdir(exist_ok=True)
    with sandbox_at(level, folder / "work") as sandbox:
        shells = Shells(folder, launch=lambda: sandbox)
        try:
            yield shells
        finally:
            await shells.commands.close()


@pytest.mark.parametrize("level", LEVELS)
def test_a_command_goes_on_inside_the_same_boundary(level: Any, tmp_path: Path) -> None:
    async def main() -> None:
        async with shells_at(level, tmp_path) as shells:
            outside = tmp_path / "outside"
            said = await shells.start(f"echo here; touch in.txt; touch {outside} 2>&1; while [ ! -e go ]; do sleep 0.01; done; echo end")
            assert (said["id"], said["status"]) == ("bg1", "running")
            assert said["output"].startswith("here\n")
            assert ("sandbox" in said) == (level != "off"), "it is told that its ports are its own"
            assert (tmp_path / "work" / "in.txt").exists()
            assert outside.exists() == (level == "off")
            (tmp_path / "work" / "go").touch()
            said = await shells.read("bg1", wait_s=10)
            assert said["output"] == "end\n"

    asyncio.run(main())


@pytest.mark.parametrize("level", LEVELS)
def test_stopping_and_closing_end_whatever_tries_to_stay(level: Any, tmp_path: Path) -> None:
    stopped, closed = marked_sleep(), marked_sleep()

    async def main() -> None:
        async with shells_at(level, tmp_path) as shells:
            await shells.start(leave_in_every_way(stopped))
            await shells.start(leave_in_every_way(closed))
            assert started_within(60, stopped, COUNT - 1)
            assert started_within(60, closed, COUNT - 1)
            assert (await shells.read("bg1", stop=True))["status"] == "stopped"
            assert gone_within(60, stopped)
            assert alive(closed)
        assert gone_within(60, closed)

    asyncio.run(main())


AGENT = """
import asyncio, sys, time
from pathlib import Path
from policy.sandbox.test_background import shells_at

async def main():
    level = sys.argv[1] if sys.argv[1] == "off" else int(sys.argv[1])
    async with shells_at(level, Path(sys.argv[2])) as shells:
        print((await shells.start(sys.argv[3], tty=sys.argv[4] == "tty"))["status"], flush=True)
        time.sleep(100)

asyncio.run(main())
"""


@pytest.mark.parametrize(("level", "tty"), [*((level, "") for level in LEVELS), ("off", "tty"), (1, "tty"), (2, "tty")])
def test_they_are_gone_when_the_agent_is_killed(level: Any, tty: str, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with sandbox_at(level, tmp_path / "work"):
        pass
    sleep = marked_sleep()
    words = [sys.executable, "-c", AGENT, str(level), str(tmp_path), leave_in_every_way(sleep), tty]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    agent = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"running\n"
        assert started_within(60, f"sleep{sleep[5:]}", COUNT - 1)
    finally:
        agent.send_signal(signal.SIGKILL)
        agent.communicate()
    assert gone_within(60, sleep)


# A terminal


@pytest.mark.parametrize("level", ["off", 1, 2])
def test_a_terminal_is_the_commands_own(level: Any, tmp_path: Path) -> None:
    async def main() -> None:
        async with shells_at(level, tmp_path) as shells:
            said = await shells.run(
                "test -t 0 && test -t 1 && test -t 2 && stty size </dev/tty && echo $TERM && echo to you >/dev/tty", tty=True
            )
            assert (said["stdout"], said["exitCode"]) == ("24 120\nxterm-256color\nto you\n", 0)
            said = await shells.run("ps -o tty= -p $$ 2>/dev/null; kill -USR1 $$; sleep 9", tty=True)
            assert said.get("signal") == "SIGUSR1" or said["exitCode"] == 138
            said = await shells.start("stty size; sleep 100", tty=True)
            assert (said["status"], said["output"]) == ("running", "24 120\n")
            assert (await shells.read("bg1", stop=True))["status"] == "stopped"

    asyncio.run(main())


def test_the_terminal_has_a_name_in_namespaces_of_our_own(tmp_path: Path) -> None:
    async def main() -> None:
        async with shells_at(1, tmp_path) as shells:
            assert (await shells.run("tty; ls /dev/pts", tty=True))["stdout"] == "/dev/pts/0\n0  ptmx\n"

    asyncio.run(main())


def test_landlock_alone_gives_no_terminal_and_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with shells_at(3, tmp_path) as shells:
            assert "gives no terminals: run it without tty" in (await shells.run("true", tty=True))["error"]
            intent = shells.run_shell.intend({"command": "true", "tty": True})
            assert "gives no terminals" in intent.problem, "nobody is asked about it"
            (tmp_path / "work" / "x").mkdir()
            with pytest.raises(OSError, match="no terminals"):
                await start_directly(shells.sandbox())

    async def start_directly(sandbox: Sandbox) -> None:
        await sandbox.start(["/bin/true"], directory="/", env={}, streams=(0, 1, 2), terminal=(24, 80))

    asyncio.run(main())
