"""Ctrl-C to the real program: once cancels cleanly within a second, twice leaves at once; `result` is the last line all the same."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from dragoman.testing.mock.server import MockServer
from loopback_http import serving, silent
from processes import alive, gone_within, marked_sleep
from scenarios.harness import QUICK, Desk, Ended, Started, assert_valid, finished, until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")
STREAM = ("--output-format", "stream-json")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk.at(tmp_path, "anthropic")


async def interrupted(started: Started, number: signal.Signals = signal.SIGINT, *, times: int = 1) -> Ended:
    """Send the signal, and wait for the end. Left alone, it would go on for longer than that."""
    for _ in range(times):
        with suppress(ProcessLookupError):  # it is quicker than the fingers
            os.kill(started.process.pid, number)  # `send_signal` looks first whether it has ended, and keeps the exit code from asyncio
        await asyncio.sleep(0.02 if times > 1 else 0)
    return await finished(started)


async def waiting(desk: Desk, script: str, ready: Callable[[Started, MockServer], Awaitable[object]], **options: object) -> Ended:
    """A run on that script, interrupted when it is ready for it."""
    async with desk.server(script) as service:
        desk.url = service.url
        async with desk.started(*STREAM, **options) as started:  # type: ignore[arg-type]
            await ready(started, service)
            ended = await interrupted(started)
        assert_valid(service.requests)
    return ended


def cancelled(ended: Ended, code: int = 130) -> None:
    assert ended.code == code, ended.err
    assert (ended.result["status"], ended.result["exit_code"]) == ("cancelled", code)
    assert ended.err == "" or ended.err.startswith("dragoman: ran without asking, because you saved an approval")


def test_while_connecting(desk: Desk) -> None:
    """To a listener that never answers."""

    async def go() -> None:
        async with serving(silent) as server:
            desk.url = server.url
            async with desk.started(*STREAM) as started:
                await asyncio.wait_for(server.asked.wait(), 60)
                cancelled(await interrupted(started))

    asyncio.run(go())


@pytest.mark.parametrize("protocol", ["gemini", "openai_responses"])
def test_in_the_middle_of_an_answer(tmp_path: Path, protocol: str) -> None:
    """PV02: the whole time."""
    desk = Desk.at(tmp_path, protocol)
    ended = asyncio.run(waiting(desk, "text: Half\nstall", lambda started, _: started.line_with("Half")))
    cancelled(ended)
    assert ended.result["response"] == "", "half an answer is none"


def test_while_waiting_to_try_again(desk: Desk) -> None:
    """PV03: the countdown is cancellable."""
    ended = asyncio.run(
        waiting(desk, "error: 429 retry_after=300", lambda started, _: started.line_with('"retry"'), config="[retry]\ndeadline_s = 1000\n")
    )
    cancelled(ended)


def test_while_waiting_for_standard_input(desk: Desk) -> None:
    async def go() -> None:
        desk.url = "http://127.0.0.1:9"
        async with desk.started(*STREAM, prompt=None, stdin=b"") as started:
            assert started.process.stderr is not None
            line = await asyncio.wait_for(started.process.stderr.readline(), 60)
            assert b"standard input" in line
            os.kill(started.process.pid, signal.SIGINT)
            await asyncio.wait_for(started.process.wait(), 60)  # not yet at the end of its input
            cancelled(await finished(started))

    asyncio.run(go())


# --- while a command runs ---------------------------------------------------------------------------------------------------------


def allow(desk: Desk, command: str) -> str:
    """The user has allowed this command for good; so it runs, though nobody can be asked. Returns the call for it."""
    folder = desk.home / "dragoman" / "data"
    folder.mkdir(parents=True)
    grant = {"folder": str(desk.workspace.resolve()), "key": f"run_shell {command}"}
    (folder / "grants.jsonl").write_text(json.dumps(grant) + "\n")
    return f"call: run_shell {json.dumps({'command': command})}"


async def ended_too(sleep: str) -> None:
    """By the name of the sleep: in the sandbox processes have numbers of their own."""
    assert await asyncio.to_thread(gone_within, 60, sleep), "the command outlived the program"


def test_a_command_is_ended_with_everything_it_started(desk: Desk) -> None:
    sleep = marked_sleep()
    call = allow(desk, f"{sleep} & wait")

    async def go() -> None:
        cancelled(await waiting(desk, f"{call}\n---\ntext: never", lambda *_: until(lambda: bool(alive(sleep)))))
        await ended_too(sleep)

    asyncio.run(go())


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_command_that_will_not_end_does_not_hold_us_up(desk: Desk, times: int) -> None:
    """The second Ctrl-C leaves at once; `result` is still the last line, and the command does not outlive us."""
    sleep = marked_sleep()
    call = allow(desk, f"trap '' TERM INT HUP; while true; do {sleep}; done")

    async def go() -> None:
        async with desk.server(f"{call}\n---\ntext: never") as service:
            desk.url = service.url
            async with desk.started(*STREAM) as started:
                await until(lambda: bool(alive(sleep)))
                ended = await interrupted(started, times=times)
        assert ended.code == 130
        assert ended.result["status"] == "cancelled"
        await ended_too(sleep)

    asyncio.run(go())


# --- other ways to be ended -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_other_signals_end_it_as_cleanly(desk: Desk, number: signal.Signals, code: int) -> None:
    async def go() -> None:
        async with desk.server("text: Half\nstall") as service:
            desk.url = service.url
            async with desk.started(*STREAM) as started:
                await started.line_with("Half")
                cancelled(await interrupted(started, number), code)

    asyncio.run(go())


def test_a_reader_that_leaves_ends_the_run(desk: Desk) -> None:
    """As in `dragoman … | head -1`."""

    async def go() -> None:
        script = "\n".join(["text: A line.", "wait: 0.05"] * 100)
        async with desk.server(script) as service:
            desk.url = service.url
            async with desk.started(*STREAM) as started:
                await started.line_with("A line.")
                assert started.process.stdout is not None
                started.process.stdout._transport.close()  # type: ignore[attr-defined]
                async with asyncio.timeout(60):
                    code = await started.process.wait()
                assert code == 141
                assert started.process.stderr is not None
                assert await started.process.stderr.read() == b""
            await until(lambda: service.requests[0].outcome == "the client went away")

    asyncio.run(go())


def test_the_next_run_is_none_the_worse(desk: Desk) -> None:
    ended = asyncio.run(waiting(desk, "text: Half\nstall", lambda started, _: started.line_with("Half")))
    cancelled(ended)
    assert desk.run("text: Whole.", config=QUICK).out == "Whole.\n"
