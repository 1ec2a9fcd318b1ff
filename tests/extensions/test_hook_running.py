"""Running hooks: side by side, within their time, with bounded output, and with nothing left behind."""

from __future__ import annotations

import asyncio
import os
import resource
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.extensions.hooks.definitions import Hook
from dragoman.extensions.hooks.inputs import Occasion
from dragoman.extensions.hooks.running import HookRunner
from dragoman.tools.process import run_process
from dragoman.values.origin import Origin
from processes import gone_within, marked_sleep, started_within

STOP = Occasion("Stop", "s", directory="/", details={"stop_hook_active": False})


def hook(command: str, **fields: Any) -> Hook:
    return Hook("Stop", "Stop", command, Origin("claude", "user", "/f", 3), **fields)


def runner(*hooks: Hook) -> HookRunner:
    return HookRunner(hooks, run_process, lambda: dict(os.environ))


def run(*hooks: Hook) -> Any:
    async def scenario() -> Any:
        return await runner(*hooks).run(STOP)

    return asyncio.run(scenario())


def test_hooks_of_one_event_run_side_by_side(tmp_path: Path) -> None:
    """Each waits for all the others: one after another they would wait for ever."""
    meet = f"while [ $(ls {tmp_path} | wc -l) -lt 6 ]; do sleep 0.02; done"
    answer = run(*(hook(f"touch {tmp_path}/{number}; {meet}; echo {number} >&2; exit 2") for number in range(6)))
    assert answer.reason.split() == list("012345")


def test_a_hook_that_floods_is_read_and_dropped() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    python = shlex.quote(sys.executable)
    flood = f'{python} -c \'import sys\nfor _ in range(100): sys.stdout.write("x" * 1_000_000); sys.stderr.write("y" * 1_000_000)\''
    answer = run(hook(f"{flood}; exit 2"), hook(f"echo '{{'; {flood}"))
    assert answer.blocks
    assert len(answer.reason) <= 20_000
    assert "printed too much" in answer.warnings[0]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_a_hook_that_ignores_sigterm_and_forks_ends_with_its_time() -> None:
    mark = marked_sleep()
    answer = run(hook(f"trap '' TERM; setsid {mark} & nohup {mark} & {mark}", timeout_s=0.5))
    assert not answer.blocks
    assert "timed out" in answer.warnings[0]
    assert "/f:3" in answer.warnings[0]
    assert gone_within(60, mark)


def test_a_cancelled_hook_is_gone() -> None:
    mark = marked_sleep()

    async def scenario() -> None:
        task = asyncio.ensure_future(runner(hook(f"{mark} & {mark}")).run(STOP))
        assert await asyncio.to_thread(started_within, 60, mark, 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert gone_within(60, mark)


def test_a_hook_in_the_background_is_not_waited_for_and_ends_with_the_agent() -> None:
    mark = marked_sleep()

    async def scenario() -> None:
        running = runner(hook(mark, is_async=True))
        assert not (await asyncio.wait_for(running.run(STOP), 60)).blocks
        assert await asyncio.to_thread(started_within, 60, mark)
        await running.close()

    asyncio.run(scenario())
    assert gone_within(60, mark)


def test_what_cannot_be_started_is_a_warning() -> None:
    answer = run(hook("/nowhere/at/all", args=("x",)), hook("/nowhere/at/all"))
    assert len(answer.warnings) == 2
    assert not answer.blocks


def test_a_hook_that_does_not_read_its_input_is_fine() -> None:
    occasion = Occasion("Stop", "s", directory="/", details={"last_assistant_message": "x" * 1_000_000})

    async def scenario() -> Any:
        return await runner(hook("exec <&-; exit 2")).run(occasion)

    assert asyncio.run(scenario()).blocks
