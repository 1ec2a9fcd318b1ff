"""Commands as real processes: their output, their end, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.base import processes as module
from dragoman.base.processes import COOKIE, end_processes
from dragoman.tools.child_environment import child_environment, find_program
from dragoman.tools.process import Exit, NotStarted, run_process
from processes import alive, children, gone_within, marked_sleep, none_left, parent, started_within

LONG = bool(os.environ.get("DRAGOMAN_LONG"))
"""Read here: the environment of a test holds nothing of ours."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


async def bash(
    command: str,
    take_stdout: Callable[[bytes], object] = len,
    take_stderr: Callable[[bytes], object] = len,
    timeout_s: float | None = 20,
    env: dict[str, str] | None = None,
) -> Exit:
    environment = child_environment() if env is None else env
    return await run_process(
        ["/bin/bash", "-c", command],
        directory="/",
        env=environment,
        take_stdout=take_stdout,
        take_stderr=take_stderr,
        timeout_s=timeout_s,
    )


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No process of ours outlives its test: neither alive nor as a zombie."""
    before = set(children())
    yield
    assert none_left(before)


# What a command says


def test_both_outputs_and_the_exit_code_come_back() -> None:
    out, err = bytearray(), bytearray()
    ended = asyncio.run(bash("echo out; echo err >&2; exit 3", out.extend, err.extend))
    assert (bytes(out), bytes(err), ended) == (b"out\n", b"err\n", Exit(3))


def test_a_signal_is_named() -> None:
    assert asyncio.run(bash("kill -SEGV $$")) == Exit(128 + 11, "SIGSEGV")


def test_there_is_no_input_and_no_terminal() -> None:
    out = bytearray()
    asyncio.run(bash("cat; tty; exec 3</dev/tty || echo none", out.extend))
    assert out == b"not a tty\nnone\n"


def test_all_output_is_read_though_the_command_has_ended() -> None:
    out = bytearray()
    asyncio.run(bash("head -c 3000000 /dev/zero", out.extend))
    assert len(out) == 3_000_000


def test_a_slow_reader_slows_the_command() -> None:
    """What is not taken is not read: the command waits, and nothing piles up."""
    sizes: list[int] = []

    def slowly(data: bytes) -> None:
        sizes.append(len(data))
        time.sleep(0.02)

    asyncio.run(bash("head -c 1000000 /dev/zero", slowly))
    assert sum(sizes) == 1_000_000
    assert max(sizes) <= 262_144


def test_a_program_that_is_not_there_raises_and_leaves_nothing() -> None:
    with pytest.raises(NotStarted):
        asyncio.run(
            run_process(["/no/such/program"], directory="/", env={}, take_stdout=len, take_stderr=len),
        )


def test_a_taker_that_raises_ends_the_command_and_is_heard() -> None:
    sleep = marked_sleep()

    def refuse(data: bytes) -> None:
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        asyncio.run(bash(f"echo x; {sleep}", refuse))
    assert not alive(sleep)


# How it ends. DO03: after timeout, cancel or our death no process of the call is alive within 3 s; no zombies; held pipes block nobody


def leaving(sleep: str) -> dict[str, str]:
    return {
        "in the background": f"{sleep} & echo ready; wait",
        "setsid nohup": f"(setsid nohup {sleep} &); echo ready; {sleep}",
        "disowned": f"{sleep} & disown; echo ready; {sleep}",
        "deaf to SIGTERM": f"trap '' TERM; (trap '' TERM; {sleep}) & echo ready; while :; do {sleep}; done",
        "setsid and deaf": f"setsid bash -c \"trap '' TERM; while :; do {sleep}; done\" & echo ready; wait",
        # Stopped before it has become the sleep, it could not be told from another bash.
        "stopped": f"{sleep} & until read -r name < /proc/$!/comm && [ $name = sleep ]; do :; done; kill -STOP $!; echo ready; wait",
        "many": f"for i in $(seq 30); do setsid {sleep} & {sleep} & done; echo ready; wait",
    }


WAYS = [*leaving("")]


@pytest.mark.parametrize("way", WAYS)
def test_after_a_timeout_nobody_is_left(way: str) -> None:
    sleep = marked_sleep()
    ended = asyncio.run(asyncio.wait_for(bash(leaving(sleep)[way], timeout_s=0.5), 60))
    assert ended.timed_out
    assert gone_within(60, sleep)


@pytest.mark.parametrize("way", WAYS)
def test_after_a_cancel_nobody_is_left(way: str) -> None:
    sleep = marked_sleep()

    async def main() -> None:
        ready = asyncio.Event()
        task = asyncio.create_task(bash(leaving(sleep)[way], lambda data: ready.set()))
        await ready.wait()
        assert await asyncio.to_thread(started_within, 60, sleep)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(main(), 120))
    assert gone_within(60, sleep)


AGENT = """
import asyncio, sys
from dragoman.tools.child_environment import child_environment
from dragoman.tools.process import run_process
asyncio.run(run_process(["/bin/bash", "-c", sys.argv[1]], directory="/", env=child_environment(),
                        take_stdout=lambda data: print("ready", flush=True), take_stderr=len))
"""


@pytest.mark.parametrize("way", WAYS)
def test_after_our_death_nobody_is_left(way: str) -> None:
    sleep = marked_sleep()
    with agent_running(leaving(sleep)[way]) as agent:
        assert started_within(60, sleep)
        agent.send_signal(signal.SIGKILL)
        assert agent.wait(60) == -signal.SIGKILL
    assert gone_within(60, sleep)


@contextmanager
def agent_running(command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs a command for us, once the command has said something."""
    with subprocess.Popen([sys.executable, "-c", AGENT, command], stdout=subprocess.PIPE) as agent:
        try:
            assert agent.stdout is not None
            assert agent.stdout.readline() == b"ready\n"
            yield agent
        finally:
            agent.kill()


def test_the_watcher_itself_ends_with_the_call() -> None:
    watching: list[int] = []
    asyncio.run(
        bash("echo x; sleep 0.1", lambda data: watching.extend(pid for pid in alive("dragoman-watcher") if parent(pid) == os.getpid()))
    )
    assert len(watching) == 1
    assert not set(watching) & set(alive("dragoman-watcher"))


def test_the_watcher_ends_when_we_die() -> None:
    with agent_running(f"echo ready; {marked_sleep()}") as agent:
        watchers = [pid for pid in alive("dragoman-watcher") if parent(pid) == agent.pid]
        assert len(watchers) == 1
        agent.kill()
        agent.wait(60)
    deadline = time.monotonic() + 60
    while set(watchers) & set(alive("dragoman-watcher")):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_one_call_does_not_end_another() -> None:
    sleep = marked_sleep()

    async def main() -> None:
        ready = asyncio.Event()
        other = asyncio.create_task(bash(f"(setsid {sleep} &); echo ready; {sleep}", lambda data: ready.set()))
        await ready.wait()
        assert await asyncio.to_thread(started_within, 60, sleep, 2)
        await bash("sleep 300 & true")
        await bash("sleep 300", timeout_s=0.1)
        assert len(alive(sleep)) == 2
        other.cancel()
        await asyncio.wait([other])

    asyncio.run(main())
    assert not alive(sleep)


def test_what_stays_in_the_background_neither_blocks_nor_stays() -> None:
    sleep = marked_sleep()
    out = bytearray()
    ended = asyncio.run(asyncio.wait_for(bash(f"{sleep} & (setsid nohup {sleep} &); echo done", out.extend), 60))
    assert (bytes(out), ended) == (b"done\n", Exit(0))
    assert not alive(sleep)


def test_time_to_clean_up_is_given() -> None:
    out = bytearray()
    ended = asyncio.run(bash("trap 'echo cleaned; exit 7' TERM; echo x; while :; do sleep 0.01; done", out.extend, timeout_s=0.3))
    assert out.endswith(b"cleaned\n")
    assert ended == Exit(7, timed_out=True)


def test_a_second_cancel_does_not_disturb_the_end() -> None:
    sleep = marked_sleep()

    async def main() -> None:
        ready = asyncio.Event()
        task = asyncio.create_task(bash(f"trap '' TERM; echo x; while :; do {sleep}; done", lambda data: ready.set()))
        await ready.wait()
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.02)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert not alive(sleep)


def test_a_cancel_while_it_starts_leaves_nothing() -> None:
    sleep = marked_sleep()

    async def main() -> None:
        for steps in range(6):
            task = asyncio.create_task(bash(f"(setsid {sleep} &); {sleep}"))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()

    asyncio.run(main())
    assert gone_within(60, sleep)


def test_a_loop_that_ends_while_it_starts_is_not_held_up() -> None:
    """asyncio.run cancels every task it finds, also those that we keep from being cancelled."""
    sleep = marked_sleep()

    async def main(steps: int) -> None:
        task = asyncio.create_task(bash(f"(setsid {sleep} &); {sleep}"))
        for _ in range(steps):
            await asyncio.sleep(0)
        assert not task.done()

    for steps in range(10):
        thread = threading.Thread(target=lambda steps=steps: asyncio.run(main(steps)), daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive(), steps
    assert gone_within(60, sleep)


def test_it_works_off_the_main_thread() -> None:
    """`run_sync` drives its loop in a thread of its own."""
    ended: list[Exit] = []
    thread = threading.Thread(target=lambda: ended.append(asyncio.run(bash("exit 4"))))
    thread.start()
    thread.join(60)
    assert ended == [Exit(4)]


def test_nothing_stays_open() -> None:
    asyncio.run(bash("true"))

    async def many() -> None:
        for command in ("true", "echo x; echo y >&2", "sleep 9 &", "exec 2>&-; true"):
            await bash(command)
        with pytest.raises(NotStarted):
            await run_process(["/no/such"], directory="/", env={}, take_stdout=len, take_stderr=len)

    before = len(os.listdir("/proc/self/fd"))
    asyncio.run(many())
    assert len(os.listdir("/proc/self/fd")) == before


def test_dead_processes_that_nobody_collects_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some containers have no init that collects orphans. Here the dead one is our own child, and we do not collect it."""
    monkeypatch.setattr(module, "GRACE_S", 600.0)
    dead = subprocess.Popen(["true"], start_new_session=True)
    try:
        os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
        ending = threading.Thread(target=end_processes, args=(dead.pid, ""), daemon=True)
        ending.start()
        ending.join(60)
        assert not ending.is_alive()
    finally:
        dead.wait()


# What it is given


def test_secrets_stay_out_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """SE01: provider keys and *KEY*, *TOKEN*, *SECRET*, *PASSWORD* are not in child environments, unless the user listed them."""
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "MY_DB_PASSWORD", "GOOGLE_APPLICATION_CREDENTIALS", "my_token"):
        monkeypatch.setenv(name, "hidden-value")
    monkeypatch.setenv("HARMLESS", "plain-value")
    out = bytearray()
    asyncio.run(bash("env; cat /proc/self/environ /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n' | grep -a ^XX", out.extend))
    assert b"hidden-value" not in out
    assert b"HARMLESS=plain-value" in out
    assert child_environment({"MY_TOKEN": "chosen"})["MY_TOKEN"] == "chosen"


def test_nothing_pages_and_nothing_paints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("PAGER", "less")
    monkeypatch.setenv("TERM", "xterm-256color")
    env = child_environment()
    assert (env["PAGER"], env["GIT_PAGER"], env["TERM"]) == ("cat", "cat", "dumb")
    assert "FORCE_COLOR" not in env


def test_a_call_within_a_call_is_known_to_both() -> None:
    out = bytearray()
    asyncio.run(bash(f"echo ${COOKIE}", out.extend, env={**child_environment(), COOKIE: "outer"}))
    outer, inner = out.decode().split()
    assert outer == "outer"
    assert len(inner) == 32


# Programs


def program(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_a_program_never_comes_from_the_folder_being_worked_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SB08's lesson for every program we look up: PATH=.:… and a fake one in the workspace."""
    work, elsewhere = tmp_path / "work", tmp_path / "bin"
    program(work / "rg")
    real = program(elsewhere / "rg")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "rg").symlink_to(work / "rg")
    monkeypatch.chdir(work)
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", str(work), str(tmp_path / "links"), str(tmp_path / "none"), str(elsewhere)]))
    assert find_program("rg", outside=str(work)) == real
    monkeypatch.setenv("PATH", os.pathsep.join([".", str(work)]))
    assert find_program("rg", outside=str(work)) == ""


def test_a_twin_of_the_folder_is_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = program(tmp_path / "work-tools" / "rg")
    monkeypatch.setenv("PATH", str(tmp_path / "work-tools"))
    assert find_program("rg", outside=str(tmp_path / "work")) == real


def test_what_cannot_be_run_is_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rg").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_program("rg", outside="/nowhere") == ""


# Much output

MEASURED = """
import asyncio, sys
from dragoman.tools.output import Outputs
from dragoman.tools.child_environment import child_environment
from dragoman.tools.command_text import CommandStream
from dragoman.tools.process import run_process

def peak_kb():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

async def run(megabytes):
    outputs = Outputs(sys.argv[1])
    stdout, stderr = CommandStream(outputs, "stdout"), CommandStream(outputs, "stderr")
    command = f"yes 'a line of output, as long as lines are' | head -c {megabytes}M | tee /dev/stderr"
    argv, env = ["/bin/bash", "-c", command], child_environment()
    await run_process(argv, directory="/", env=env, take_stdout=stdout.feed, take_stderr=stderr.feed)
    for stream in (stdout, stderr):
        stream.end()
        assert stream.chars == megabytes * 1024 * 1024
        assert len(stream.cut(8_000).text) < 9_000

asyncio.run(run(1))
before = peak_kb()
asyncio.run(run(int(sys.argv[2])))
print(peak_kb() - before)
"""


def test_much_output_costs_little_memory(tmp_path: Path) -> None:
    """300 MB on each of both outputs; 5 GB in all with DRAGOMAN_LONG=1."""
    megabytes = 2560 if LONG else 300
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path), str(megabytes)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 40_000
    assert all(path.stat().st_size <= 100_000_000 for path in tmp_path.iterdir())
