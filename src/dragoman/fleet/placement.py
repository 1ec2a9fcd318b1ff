"""Where attempts run. The supervisor knows no more of it than this: an order is carried out, and ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from dragoman.base.processes import COOKIE, end_processes, kill_group
from dragoman.fleet import files
from dragoman.fleet.ending import GRACE_S, HANGING_S, is_overdue, is_waiting
from dragoman.fleet.result import RESULT_FILE, TASK_FILE
from dragoman.fleet.task import Task
from dragoman.fleet.workspace import remove_place
from dragoman.words import say

LOG_FILE = "worker.log"
SOURCES = "sources"
"""The folder of fetched repositories, in that of the copies."""
LOOK_S = 1.0
"""How often it is looked whether a worker is overdue."""
MARGIN_S = 120.0
"""For copying the workspace and starting up: a worker that takes longer than everything it may do, and this, is stuck."""


def place_name(task: Task, attempt: int, epoch: int) -> str:
    """The folder of one start, in that of all copies."""
    return f"{task.folder}-{attempt}-{epoch}"


class AttemptOrder(msgspec.Struct, frozen=True):
    """One start of an attempt."""

    task: Task
    attempt: int
    epoch: int
    out: str
    """The folder of this epoch. It holds `task.json`, and has a `result.json` when the attempt has ended, unless the worker was lost."""

    @property
    def holder(self) -> str:
        """Its identity."""
        return f"{self.task.hash}.{self.attempt}.{self.epoch}"

    @property
    def has_result(self) -> bool:
        """Whether the worker left one."""
        return files.is_there(os.path.join(self.out, RESULT_FILE))

    @property
    def most_s(self) -> float:
        """How long a worker may live that never waits for the service's limits."""
        limits = self.task.limits
        return limits.seconds + limits.check_seconds * (bool(self.task.setup) + bool(self.task.check)) + MARGIN_S


class WorkerEnd(msgspec.Struct, frozen=True):
    """How a worker ended: as subprocess has it, a negative number names a signal."""

    code: int
    detail: str = ""
    """What is known beside the number, for a person."""
    is_place_lost: bool = False
    """Its machine was lost: how often that happens says nothing of the task."""


class Placement(Protocol):
    """A place where workers run."""

    workers: int
    """How many at once."""

    async def open(self) -> None:
        """Get ready. Raises InputError where that is not possible."""
        ...

    async def clear(self) -> None:
        """Remove what workers of an earlier supervisor left. Whatever they were at has its result by then: a check whose files vanish while
        it runs would be a wrong answer."""
        ...

    async def run(self, order: AttemptOrder) -> WorkerEnd:
        """Start a worker, and return when nothing of it is left. If this is cancelled, it is ended first: TERM, a grace, KILL.

        Raises OSError where it cannot be started."""
        ...

    async def aclose(self) -> None: ...


def work_command(order: AttemptOrder, flags: Sequence[str]) -> list[str]:
    """The worker's command line, behind the name of the program. `flags`: those of the whole fleet."""
    task = os.path.join(os.path.dirname(order.out), TASK_FILE)
    return ["fleet", "work", task, "--attempt", str(order.attempt), "--epoch", str(order.epoch), "--out", order.out, *flags]


class LocalPool:
    """Workers as processes of this machine, each in a session and process group of its own. Implements `Placement`."""

    def __init__(
        self,
        workers: int,
        scratch: str,
        flags: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        *,
        mark: str = "",
        program: Sequence[str] = (),
    ) -> None:
        """`scratch`: where workers make their copies. `mark` is in the environment of everything that is started here, so that it can be
        found. `program` replaces `dragoman`."""
        self._scratch = scratch
        self.workers = workers
        self._flags = tuple(flags)
        self._env = dict(os.environ if env is None else env)
        self._mark = mark
        self._program = tuple(program) or (sys.executable, "-m", "dragoman")

    async def open(self) -> None: ...

    async def clear(self) -> None:
        await asyncio.to_thread(self._remove_left)

    async def run(self, order: AttemptOrder) -> WorkerEnd:
        cookie = f"{self._mark}.{order.holder}"
        process = self._start(order, cookie)
        is_cut = True
        try:
            try:
                code = await self._follow(process, order)
                is_cut = code is None or code < 0 or not order.has_result
                return WorkerEnd(-signal.SIGKILL, say("fleet.stuck")) if code is None else WorkerEnd(code)
            except asyncio.CancelledError:
                is_cut = await self._stop(process)
                raise
        finally:
            if is_cut:
                kill_group(process.pid)
                await asyncio.to_thread(end_processes, process.pid, cookie)
                await _wait(process)
                await asyncio.to_thread(remove_place, self._scratch, place_name(order.task, order.attempt, order.epoch))

    async def aclose(self) -> None: ...

    def _remove_left(self) -> None:
        left = [name for name in os.listdir(self._scratch) if os.path.isdir(os.path.join(self._scratch, name)) and name != SOURCES]
        if left:
            end_processes(None, self._mark)
        for name in left:
            remove_place(self._scratch, name)

    def _start(self, order: AttemptOrder, cookie: str) -> subprocess.Popen[bytes]:
        env = {**self._env, COOKIE: f"{self._env.get(COOKIE, '')} {cookie}".strip()}
        log = files.open_to_append(os.path.join(order.out, LOG_FILE))
        try:
            return subprocess.Popen(
                [*self._program, *work_command(order, self._flags)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
                start_new_session=True,
            )
        finally:
            os.close(log)

    async def _follow(self, process: subprocess.Popen[bytes], order: AttemptOrder) -> int | None:
        """Its exit code; None where it should have ended by itself and has not, which one that was stopped does not."""
        lived_s, looked_s = 0.0, time.monotonic()
        while (code := await _wait(process, LOOK_S)) is None:
            now_s = time.monotonic()
            if not is_waiting(order.out):
                lived_s += now_s - looked_s
            looked_s = now_s
            if is_overdue(order.out) or lived_s > order.most_s * 4:
                return None
        return code

    async def _stop(self, process: subprocess.Popen[bytes]) -> bool:
        """Returns whether it has to be killed."""
        with suppress(ProcessLookupError):
            process.terminate()
        code = await _wait(process, GRACE_S + HANGING_S)
        return code is None or code < 0


async def _wait(process: subprocess.Popen[bytes], within_s: float | None = None) -> int | None:
    """Wait for a process without a thread of its own, where the system offers a descriptor for it. None: it runs on."""
    if (code := process.poll()) is not None:
        return code
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        return await asyncio.to_thread(_wait_in_thread, process, within_s)
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    timer = loop.call_later(within_s, over.set) if within_s is not None else None
    try:
        loop.add_reader(descriptor, over.set)
        await over.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        if timer is not None:
            timer.cancel()
    return process.poll()


def _wait_in_thread(process: subprocess.Popen[bytes], within_s: float | None) -> int | None:
    try:
        return process.wait(within_s)
    except subprocess.TimeoutExpired:
        return None
