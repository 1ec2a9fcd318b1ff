"""Nothing of a command outlives its call, at any level and without a sandbox: after a timeout, a cancel, and the agent's death."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from dragoman.policy.sandbox.launching import shared_launcher
from dragoman.policy.sandbox.sandbox import Sandbox
from policy.sandbox.sandboxes import bash, sandbox_at
from processes import alive, gone_within, marked_sleep, parent, started_within

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
LEVELS = ("off", 1, 2, 3)
LONG = bool(os.environ.get("DRAGOMAN_LONG"))
TESTS = Path(__file__).resolve().parent.parent.parent


def leave_in_every_way(sleep: str) -> str:
    """A command that starts nine processes which try to stay, and then waits."""
    return f"""
trap '' TERM HUP
{sleep} &
setsid nohup {sleep} >/dev/null 2>&1 &
{sleep} & disown
(setsid env -i {sleep} &)
( ( (trap '' TERM HUP; exec {sleep}) & ) & )
setsid bash -c "trap '' TERM; {sleep} & wait" &
(env -i setsid setsid {sleep} >/dev/null 2>&1 </dev/null & disown)
{sleep} & stopped=$!
{sleep} &
sleep 0.2; kill -STOP $stopped; echo ready
wait
"""


COUNT = 9


@pytest.mark.parametrize("level", LEVELS)
def test_after_a_timeout(level: object, tmp_path: Path) -> None:
    sleep = marked_sleep()
    with sandbox_at(level, tmp_path) as sandbox:
        ended, _ = asyncio.run(bash(sandbox, leave_in_every_way(sleep), tmp_path, timeout_s=1))
    assert ended.timed_out
    assert not alive(sleep), "they are gone before the call returns"


@pytest.mark.parametrize("level", LEVELS)
def test_after_a_cancel(level: object, tmp_path: Path) -> None:
    sleep = marked_sleep()

    async def main(sandbox: Sandbox) -> None:
        ready = asyncio.Event()
        task = asyncio.create_task(bash(sandbox, leave_in_every_way(sleep), tmp_path, take=lambda data: ready.set()))
        await ready.wait()
        assert await asyncio.to_thread(started_within, 60, sleep, COUNT)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with sandbox_at(level, tmp_path) as sandbox:
        asyncio.run(main(sandbox))
    assert not alive(sleep), "which would sleep for long"


AGENT = """
import asyncio, sys
sys.path.insert(0, sys.argv[4])
from pathlib import Path
from policy.sandbox.sandboxes import bash, sandbox_at
level = sys.argv[1] if sys.argv[1] == "off" else int(sys.argv[1])
with sandbox_at(level, Path(sys.argv[2])) as sandbox:
    asyncio.run(bash(sandbox, sys.argv[3], Path(sys.argv[2]), take=lambda data: print("ready", flush=True)))
"""


@pytest.mark.parametrize("with_launcher", [False, True], ids=["agent", "agent and launcher"])
@pytest.mark.parametrize("level", LEVELS)
def test_after_the_agent_was_killed(level: object, with_launcher: bool, tmp_path: Path) -> None:
    sleep = marked_sleep()
    argv = [sys.executable, "-c", AGENT, str(level), str(tmp_path), leave_in_every_way(sleep), str(TESTS)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as agent:
        try:
            assert agent.stdout is not None
            assert agent.stdout.readline() == b"ready\n"
            assert started_within(60, sleep, COUNT)
            launchers = [pid for pid in alive("dragoman.policy.sandbox.launcher") if parent(pid) == agent.pid]
            assert len(launchers) == 1
        finally:
            agent.kill()
        if with_launcher:
            os.kill(launchers[0], signal.SIGKILL)
        agent.wait(60)
    assert gone_within(60, sleep)
    deadline = time.monotonic() + 60
    while launchers[0] in alive("dragoman.policy.sandbox.launcher"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


EMBEDDER = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from policy.sandbox.sandboxes import bash, sandbox_at
with sandbox_at("off", Path(sys.argv[1])) as sandbox:
    asyncio.run(bash(sandbox, "true", Path(sys.argv[1])))
    if not os.fork():
        sys.exit()  # it ends as a program does, and leaves alone what is its parent's
    os.wait()
    print(asyncio.run(bash(sandbox, "echo $PPID", Path(sys.argv[1])))[1].strip())
"""


def test_a_program_that_ends_leaves_nothing_open(tmp_path: Path) -> None:
    """Python's development mode would tell of it."""
    argv = [sys.executable, "-X", "dev", "-W", "error", "-c", EMBEDDER, str(tmp_path), str(TESTS)]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    said = [line for line in ended.stderr.splitlines() if not line.startswith("Executing <")]  # a busy machine: a step took long
    assert (ended.returncode, said) == (0, [])
    assert ended.stdout.strip().isdigit()


@pytest.mark.parametrize("level", ["off", 3])
def test_a_command_that_kills_its_supervisor_does_not_get_away(level: object, tmp_path: Path) -> None:
    sleep = marked_sleep()
    with sandbox_at(level, tmp_path) as sandbox:
        asyncio.run(bash(sandbox, f"(setsid {sleep} &); sleep 0.1; kill -9 $PPID; {sleep}", tmp_path, timeout_s=2))
        assert gone_within(60, sleep)


class Workers:
    """Threads that each run so many commands, one after the other, and compare what they say."""

    def __init__(self, sandbox: Sandbox, folder: Path, threads: int, turns: int) -> None:
        self.wrong: list[str] = []
        self.done: list[str] = []
        self._sandbox, self._folder, self._turns = sandbox, folder, turns
        self._threads = [threading.Thread(target=self._work, args=(number,), daemon=True) for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def join(self, within_s: float) -> None:
        deadline = time.monotonic() + within_s
        for thread in self._threads:
            thread.join(max(0, deadline - time.monotonic()))
        assert not [thread for thread in self._threads if thread.is_alive()], "none hangs"
        assert not self.wrong
        ran = (self._folder / "ran").read_text().splitlines()
        assert sorted(ran) == sorted(f"{number} {turn}" for number in range(len(self._threads)) for turn in range(self._turns)), "each once"

    def _work(self, number: int) -> None:
        try:
            asyncio.run(self._run_all(number))
        except BaseException as error:
            self.wrong.append(repr(error))

    async def _run_all(self, number: int) -> None:
        for turn in range(self._turns):
            ended, said = await bash(self._sandbox, f"echo {number} {turn} | tee -a ran", self._folder, timeout_s=60)
            self.done.append(said)
            if (ended.code, said) != (0, f"{number} {turn}\n"):
                self.wrong.append(f"{number} {turn}: {ended} {said}")


@pytest.mark.parametrize("level", LEVELS)
def test_many_starts_from_many_threads(level: object, tmp_path: Path) -> None:
    """With DRAGOMAN_LONG set, a thousand."""
    with sandbox_at(level, tmp_path) as sandbox:
        Workers(sandbox, tmp_path, threads=16, turns=63 if LONG else 4).join(600 if LONG else 60)


def running_launcher() -> int:
    """That of our own user; tests before may have left one of another user running."""
    return shared_launcher()._pid


def test_after_the_launcher_was_killed_there_is_another(tmp_path: Path) -> None:
    with sandbox_at("off", tmp_path) as sandbox:
        asyncio.run(bash(sandbox, "true", tmp_path))
        launcher = running_launcher()
        os.kill(launcher, signal.SIGKILL)
        while launcher in alive("dragoman.policy.sandbox.launcher"):
            time.sleep(0.01)
        ended, said = asyncio.run(bash(sandbox, "echo again", tmp_path))
    assert (ended.code, said) == (0, "again\n")


def test_an_order_that_a_killed_launcher_never_read_goes_to_the_next(tmp_path: Path) -> None:
    with sandbox_at("off", tmp_path) as sandbox:
        asyncio.run(bash(sandbox, "true", tmp_path))
        launcher = running_launcher()
        os.kill(launcher, signal.SIGSTOP)
        killer = threading.Timer(0.5, os.kill, (launcher, signal.SIGKILL))
        killer.start()
        ended, said = asyncio.run(bash(sandbox, "echo again", tmp_path))
        killer.join()
    assert (ended.code, said) == (0, "again\n")


def test_commands_of_many_threads_run_once_while_launchers_are_killed(tmp_path: Path) -> None:
    threads, turns, kills = 4, 20, 5
    with sandbox_at("off", tmp_path) as sandbox:
        workers = Workers(sandbox, tmp_path, threads, turns)
        for kill in range(1, kills + 1):
            while len(workers.done) < kill * threads * turns // (kills + 1) and not workers.wrong:
                time.sleep(0.001)
            with suppress(ProcessLookupError):  # one is just being replaced
                os.kill(running_launcher(), signal.SIGKILL)
        workers.join(60)
