"""One network for the commands of a session: servers in the background answer later commands, and nobody else."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from dragoman.policy.sandbox.sandbox import Sandbox
from policy.sandbox.sandboxes import bash, sandbox_at
from policy.sandbox.test_process_death import Workers
from processes import alive, below, gone_within, marked_sleep, parent, started_within

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
LEVELS = (1, 2)
NOBODY = 65534
TESTS = Path(__file__).resolve().parent.parent.parent
OWNERS = ("ours", "another user's") if os.getuid() == 0 else ("ours",)
PORT = 8123
SERVE = f"PATH=/usr/bin:/bin; echo 'hello from inside' > hello.txt; exec python3 -m http.server {PORT} --bind 127.0.0.1"
ASK = f"curl -sS --max-time 20 http://127.0.0.1:{PORT}/hello.txt"


@pytest.fixture(params=OWNERS)
def workspace(request: pytest.FixtureRequest) -> Iterator[Path]:
    """In a place that the other user may go to."""
    with tempfile.TemporaryDirectory(prefix="dragoman-test-", dir="/var/tmp") as folder:
        if request.param == "another user's":
            os.chown(folder, NOBODY, NOBODY)
        yield Path(folder)


@asynccontextmanager
async def in_background(sandbox: Sandbox, command: str, folder: Path, port: int = PORT) -> AsyncIterator[asyncio.Task[object]]:
    """A command that serves at a port, from when it does."""
    task: asyncio.Task[object] = asyncio.create_task(bash(sandbox, command, folder, timeout_s=600))
    try:
        async with asyncio.timeout(60):
            while port not in sandbox.listening_ports() and not task.done():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert not task.done(), task.result()
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("level", LEVELS)
def test_a_server_in_the_background_answers_later_commands(level: int, workspace: Path) -> None:
    async def main(sandbox: Sandbox) -> None:
        assert sandbox.listening_ports() == []
        async with in_background(sandbox, SERVE, workspace):
            assert sandbox.listening_ports() == [PORT]
            assert (await bash(sandbox, ASK, workspace))[1] == "hello from inside\n"
        assert sandbox.listening_ports() == [], "it has ended"
        assert (await bash(sandbox, ASK, workspace))[0].code != 0

    with sandbox_at(level, workspace) as sandbox:
        asyncio.run(main(sandbox))


@pytest.mark.parametrize("level", LEVELS)
def test_neither_the_host_nor_another_session_answers(level: int, tmp_path: Path) -> None:
    async def main(sandbox: Sandbox, other: Sandbox) -> None:
        with socket.create_server(("127.0.0.1", 0)) as ours:
            port = ours.getsockname()[1]
            async with in_background(other, SERVE, tmp_path):
                for where in (port, PORT):
                    ended, said = await bash(sandbox, f"exec 3<>/dev/tcp/127.0.0.1/{where}", tmp_path)
                    assert ended.code != 0
                    assert "refused" in said
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection(("127.0.0.1", PORT), timeout=60)

    with sandbox_at(level, tmp_path) as sandbox, sandbox_at(level, tmp_path) as other:
        asyncio.run(main(sandbox, other))


@pytest.mark.parametrize("level", LEVELS)
def test_a_command_sees_no_process_of_another(level: int, tmp_path: Path) -> None:
    """With the processes of one that writes it would have their files, by /proc/PID/root."""
    sleep = marked_sleep()

    async def main(sandbox: Sandbox) -> None:
        async with in_background(sandbox, f"{sleep} & {SERVE}", tmp_path):
            assert started_within(60, sleep)
            look = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; kill -9 -1; ls -d /proc/[0-9]*/root | wc -l; cat /proc/sysvipc/shm | wc -l"
            _, said = await bash(sandbox, look, tmp_path)
            assert "http.server" not in said
            assert sleep not in said
            assert len(alive(sleep)) == 1
            assert (await bash(sandbox, ASK, tmp_path))[1] == "hello from inside\n"

    with sandbox_at(level, tmp_path) as sandbox:
        asyncio.run(main(sandbox))


# What is left


def holder_of(sandbox: Sandbox, sleep: str) -> int:
    """The process above the supervisor of a command."""
    assert sandbox._launcher is not None
    launcher = sandbox._launcher._pid
    return next(pid for pid in below(launcher) if parent(pid) == launcher and set(alive(sleep)) & set(below(pid)))


@pytest.mark.parametrize("level", LEVELS)
def test_when_the_holder_is_killed_all_inside_ends_and_the_next_command_has_another(level: int, workspace: Path) -> None:
    sleep = marked_sleep()

    async def main(sandbox: Sandbox) -> None:
        async with in_background(sandbox, f"(setsid {sleep} &); {SERVE}", workspace) as server:
            os.kill(holder_of(sandbox, sleep), signal.SIGKILL)
            async with asyncio.timeout(60):
                await asyncio.wait([server])
            assert gone_within(60, sleep)
            assert (await bash(sandbox, f"{ASK} 2>&1; echo again", workspace))[1].endswith("again\n")
            assert sandbox.listening_ports() == []

    with sandbox_at(level, workspace) as sandbox:
        asyncio.run(main(sandbox))


@pytest.mark.parametrize("level", LEVELS)
def test_a_killed_launcher_takes_nothing_away_and_leaves_nothing(level: int, tmp_path: Path) -> None:
    sleep = marked_sleep()

    async def main(sandbox: Sandbox) -> None:
        async with in_background(sandbox, f"(setsid {sleep} &); {SERVE}", tmp_path):
            assert sandbox._launcher is not None
            left.append(holder_of(sandbox, sleep))
            os.kill(sandbox._launcher._pid, signal.SIGKILL)
            assert (await bash(sandbox, ASK, tmp_path))[1] == "hello from inside\n"

    left: list[int] = []
    with sandbox_at(level, tmp_path) as sandbox:
        asyncio.run(main(sandbox))
    assert gone_within(60, sleep)
    deadline = time.monotonic() + 60
    while any(map(is_alive, left)):
        assert time.monotonic() < deadline, "its holder ends with the session"
        time.sleep(0.01)


AGENT = """
import asyncio, sys
sys.path.insert(0, sys.argv[4])
from pathlib import Path
from policy.sandbox.sandboxes import bash, sandbox_at
async def main(sandbox):
    server = asyncio.create_task(bash(sandbox, sys.argv[3], Path(sys.argv[2])))
    await bash(sandbox, "true", Path(sys.argv[2]))
    while not sandbox.listening_ports():
        await asyncio.sleep(0.02)
    print(await sandbox.open_port(sandbox.listening_ports()[0]), flush=True)
    await server
with sandbox_at(int(sys.argv[1]), Path(sys.argv[2])) as sandbox:
    asyncio.run(main(sandbox))
"""


@pytest.mark.parametrize("level", LEVELS)
def test_when_the_agent_is_killed_nothing_is_left_of_its_session(level: int, workspace: Path) -> None:
    sleep = marked_sleep()
    argv = [sys.executable, "-c", AGENT, str(level), str(workspace), f"(setsid {sleep} &); {SERVE}", str(TESTS)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as agent:
        try:
            assert agent.stdout is not None
            address = agent.stdout.readline().strip().removeprefix("http://").split(":")[0]
            socket.create_connection((address, PORT), timeout=60).close()
            assert started_within(60, sleep)
            started = below(agent.pid)
            assert len(started) >= 5, "launcher, holder, supervisor, server, sleep"
        finally:
            agent.kill()
        agent.wait(60)
    deadline = time.monotonic() + 60
    while any(map(is_alive, started)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address, PORT), timeout=60)


def is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


# Side by side


def test_two_hundred_starts_and_as_many_looks_over_one_holder(tmp_path: Path) -> None:
    with sandbox_at(1, tmp_path, gate_port=1) as sandbox:
        is_over, looked = threading.Event(), list[list[int]]()

        def look() -> None:
            while not is_over.is_set():
                looked.append(sandbox.listening_ports())
                time.sleep(0.01)

        looking = threading.Thread(target=look, daemon=True)
        looking.start()
        holder = sandbox._holder
        assert holder is not None
        before = holder._orders
        Workers(sandbox, tmp_path, threads=8, turns=25).join(600)
        is_over.set()
        looking.join(60)
        assert not looking.is_alive()
        assert holder._orders is before, "one holder for all of them"
        assert looked
        assert not any(map(len, looked)), "gates are nobody's servers"


# Within another session


@pytest.mark.parametrize("level", LEVELS)
def test_whoever_is_called_by_a_session_shares_its_network_and_leaves_it_in_place(level: int, tmp_path: Path) -> None:
    async def main(outer: Sandbox, inner: Sandbox) -> None:
        async with in_background(outer, SERVE, tmp_path):
            assert (await bash(inner, ASK, tmp_path))[1] == "hello from inside\n"
            inner.close()
            assert (await bash(outer, ASK, tmp_path))[1] == "hello from inside\n"

    with sandbox_at(level, tmp_path) as outer, sandbox_at(level, tmp_path, within=lambda: outer) as inner:
        asyncio.run(main(outer, inner))


def test_another_level_has_a_network_of_its_own(tmp_path: Path) -> None:
    async def main(outer: Sandbox, inner: Sandbox) -> None:
        async with in_background(outer, SERVE, tmp_path):
            assert (await bash(inner, ASK, tmp_path))[0].code != 0
            assert (await bash(outer, ASK, tmp_path))[1] == "hello from inside\n"

    with sandbox_at(1, tmp_path) as outer, sandbox_at(2, tmp_path, within=lambda: outer) as inner:
        asyncio.run(main(outer, inner))
