"""Commands that go on in the background: they belong to the session, not to the call or the run that started them.

A thread of their own reads what they print: the program's event loop does not run while a person types, and an embedder may use several.
They end when they are stopped, when the session is closed, and when our process dies, however that happens.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError as FutureCancelled
from typing import Any, TypeVar

from dragoman.tools.job import call_in_loop
from dragoman.tools.output import CappedText, Outputs
from dragoman.tools.process import Exit, NotStarted, run_process
from dragoman.tools.streams import COLUMNS, ROWS
from dragoman.tools.terminal_text import TerminalText
from dragoman.tools.unread import UnreadOutput
from dragoman.values.commands import CommandState, Launch, Reach, StateOfCommand

MAX_RUNNING = 8
_MAX_ENDED = 32
"""How many that have ended are remembered, so that they can be read."""
BYTES_PER_S = 16e6
"""How fast their output is read: a flood in the background must not slow everything else."""
_TERMINAL_BYTES_PER_S = 1e6
_SETTLE_S = 0.1
"""After the first output, how long more is waited for."""
_CLOSING_S = 4.0
_ELSEWHERE_S = 0.3
"""How long the end of a command that runs in another loop is waited for."""
_T = TypeVar("_T")


class BackgroundCommand:
    """One command. Its output is read in the thread of all of them; everything else may be asked from any thread."""

    def __init__(self, id: str, command: str, outputs: Outputs, *, tty: bool) -> None:
        self.id = id
        self.command = command
        self.is_outside = False
        """Whether it runs outside the sandbox."""
        self.is_told = False
        """Whether the model knows that it has ended."""
        self.state: StateOfCommand = "running"
        self.exit: Exit | None = None
        self._began_s = time.monotonic()
        self._lock = threading.Lock()
        self._unread = UnreadOutput(outputs, TerminalText(ROWS, COLUMNS) if tty else None)
        self._changed = asyncio.Event()
        self._is_stopping = False
        self.fault: NotStarted | None = None
        """Why it could not be started."""
        self.empty_looks = 0
        """How often in a row it was looked at and had printed nothing new."""
        self._task: asyncio.Task[None] | None = None
        self._explain: Callable[[Exit, str], str] | None = None

    @property
    def is_running(self) -> bool:
        return self.state == "running"

    def explain_by(self, explain: Callable[[Exit, str], str] | None) -> None:
        """Set what says of a command that failed what stopped it, by its end and the last of what it printed."""
        self._explain = explain

    def explain(self, end: str) -> str:
        """What stopped it; empty where nothing did, or it runs."""
        return self._explain(self.exit, end) if self._explain is not None and self.exit is not None and self.exit.code else ""

    def describe(self) -> CommandState:
        code = self.exit.code if self.exit is not None else None
        return CommandState(self.id, self.command, self.state, code, time.monotonic() - self._began_s, self.is_outside)

    def take(self, whole_room: int, cut_room: int) -> CappedText:
        """What it has printed since this was last asked: see `UnreadOutput.take`."""
        with self._lock:
            return self._unread.take(whole_room, cut_room)

    @property
    def draws_full_screen(self) -> bool:
        return self._unread.draws_full_screen

    # --- in the thread of background commands

    async def start(self, run: Callable[[BackgroundCommand], Coroutine[Any, Any, Exit]]) -> None:
        self._task = asyncio.get_running_loop().create_task(self._follow(run(self)), context=contextvars.Context())

    async def _follow(self, running: Coroutine[Any, Any, Exit]) -> None:
        state: StateOfCommand = "ended"
        try:
            self.exit = await running
            state = "timed out" if self.exit.timed_out else "ended"
        except asyncio.CancelledError:
            state = "stopped"
        except Exception as error:
            state = "failed"
            self.fault = error if isinstance(error, NotStarted) else None
        with self._lock:
            self._unread.end()
            self.state = "stopped" if self._is_stopping else state
        self._changed.set()

    def take_output(self, data: bytes) -> None:
        with self._lock:
            self._unread.feed(data)
        self._changed.set()

    async def wait_for_news(self, seconds: float) -> None:
        """Wait until it prints something or ends; return at once if it has."""
        deadline = asyncio.get_running_loop().time() + seconds
        while self.is_running and self._unread.is_empty:
            self._changed.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._changed.wait()
            except TimeoutError:
                return
            await self.wait_for_end(min(_SETTLE_S, max(0.0, deadline - asyncio.get_running_loop().time())))

    async def stop(self) -> None:
        self._is_stopping = self.is_running
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def wait_for_end(self, seconds: float) -> None:
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task], timeout=seconds)


class BackgroundCommands:
    """All of a session. May be used from any thread and event loop."""

    def __init__(self, outputs: Outputs, used_ids: int = 0) -> None:
        """`used_ids`: how many the session has named before."""
        self._outputs = outputs
        self._last = used_ids
        self._commands: dict[str, BackgroundCommand] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._dropping: weakref.finalize[..., BackgroundCommands] | None = None
        self._lock = threading.Lock()
        self._pid = os.getpid()

    @property
    def running(self) -> int:
        return sum(command.is_running for command in tuple(self._commands.values()))

    def describe(self) -> tuple[CommandState, ...]:
        return tuple(command.describe() for command in tuple(self._commands.values()))

    def get(self, id: str) -> BackgroundCommand | None:
        return self._commands.get(id)

    async def start(
        self,
        argv: Sequence[str],
        command: str,
        *,
        directory: str,
        env: Mapping[str, str],
        launch: Launch | None,
        timeout_s: float | None,
        tty: bool,
        grace_s: float,
        reach: Reach = "workspace",
        explain: Callable[[Exit, str], str] | None = None,
    ) -> BackgroundCommand:
        """Start one, and wait `grace_s` for what it prints first or for its end. If cancelled meanwhile, it is ended. `explain`: see
        `BackgroundCommand.explain_by`. Raises NotStarted if it cannot be started."""
        started = self._add(command, tty=tty)
        started.explain_by(explain)
        started.is_outside = reach == "outside"

        def run(self: BackgroundCommand) -> Coroutine[Any, Any, Exit]:
            return run_process(
                argv,
                directory=directory,
                env=env,
                take_stdout=self.take_output,
                take_stderr=self.take_output,
                timeout_s=timeout_s,
                launch=launch,
                streams="tty" if tty else "merged",
                bytes_per_s=_TERMINAL_BYTES_PER_S if tty else BYTES_PER_S,
                reach=reach,
            )

        try:
            await self.do(started.start(run))
            await self.do(started.wait_for_end(grace_s))
        except BaseException:
            asyncio.run_coroutine_threadsafe(started.stop(), self._running_loop())
            del self._commands[started.id]  # the model never heard of it
            raise
        if started.fault is not None:
            del self._commands[started.id]
            raise started.fault
        return started

    async def adopt(self, running: asyncio.Task[Exit], command: str, *, tty: bool, printed: bytes) -> BackgroundCommand:
        """One that runs in the loop of whoever calls this, and goes on there: it is read and stopped as all others are. `printed` is what
        it has printed and nobody has read."""
        adopted, owner = self._add(command, tty=tty), asyncio.get_running_loop()

        async def follow(self: BackgroundCommand) -> Exit:
            self.take_output(printed)
            ended = asyncio.run_coroutine_threadsafe(_outcome(running), owner)
            try:
                return await asyncio.wrap_future(ended)
            except asyncio.CancelledError:
                await _cancel_elsewhere(running, owner)
                raise

        await self.do(adopted.start(follow))
        return adopted

    def pass_output(self, command: BackgroundCommand, data: bytes) -> None:
        """Output of one that was adopted. From any thread."""
        self._running_loop().call_soon_threadsafe(command.take_output, data)

    async def do(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do it in the thread of the commands, and wait for it."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._running_loop()))

    def stop_from_here(self, id: str) -> bool:
        """End one, for code that is not async. False: none of that name is running."""
        command = self._commands.get(id)
        if command is None or not command.is_running:
            return False
        try:
            asyncio.run_coroutine_threadsafe(command.stop(), self._running_loop()).result(timeout=_CLOSING_S)
        except (TimeoutError, FutureCancelled):
            pass
        return True

    def take_ended(self) -> list[BackgroundCommand]:
        """The commands that have ended and that the model was not told about yet. From now on they count as told."""
        ended = [command for command in tuple(self._commands.values()) if not command.is_running and not command.is_told]
        for command in ended:
            command.is_told = True
        return ended

    async def close(self) -> None:
        """End all of them, and the thread."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None or self._pid != os.getpid():
            return
        if self._dropping is not None:
            self._dropping.detach()
        ending = asyncio.run_coroutine_threadsafe(self._end_all(), loop)
        try:
            async with asyncio.timeout(_CLOSING_S):
                await asyncio.wrap_future(ending)
        except TimeoutError:
            pass
        finally:
            loop.call_soon_threadsafe(loop.stop)
            await asyncio.to_thread(thread.join, 1.0)

    async def _end_all(self) -> None:
        await asyncio.gather(*(command.stop() for command in tuple(self._commands.values())))

    def _add(self, command: str, *, tty: bool) -> BackgroundCommand:
        with self._lock:
            self._last += 1
            added = BackgroundCommand(f"bg{self._last}", command, self._outputs.fixed(), tty=tty)
            self._commands[added.id] = added
            ended = [each.id for each in self._commands.values() if not each.is_running]
            for id in ended[: len(ended) - _MAX_ENDED]:
                del self._commands[id]
        return added

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():  # a forked child has none of the threads
                self._pid = os.getpid()
                self._loop = contextvars.Context().run(asyncio.new_event_loop)  # it would hold the call that it is made in
                self._thread = threading.Thread(target=_run, args=(self._loop,), name="dragoman-background", daemon=True)
                self._thread.start()
                self._dropping = weakref.finalize(self, _end_loop, self._loop)
            return self._loop


async def _outcome(running: asyncio.Task[Exit]) -> Exit:
    await asyncio.wait([running])  # that nobody waits any more does not end it
    return running.result()


async def _cancel_elsewhere(running: asyncio.Task[Exit], owner: asyncio.AbstractEventLoop) -> None:
    """End what runs in another loop, and wait for it a moment: that loop may be busy with waiting for us."""
    ended = asyncio.Event()
    here = asyncio.get_running_loop()

    def cancel() -> None:
        running.add_done_callback(lambda _: call_in_loop(here, ended.set))
        running.cancel()

    call_in_loop(owner, cancel)
    try:
        async with asyncio.timeout(_ELSEWHERE_S):
            await ended.wait()
    except TimeoutError:
        pass


def _end_loop(loop: asyncio.AbstractEventLoop) -> None:
    """For a session that was dropped and not closed."""

    async def end() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=_CLOSING_S)
        loop.stop()

    try:
        loop.call_soon_threadsafe(lambda: loop.create_task(end()))
    except RuntimeError:  # it has ended
        pass


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    loop.close()
