"""Holding a run: starting it, watching it, waiting for it, ending it. What it does is in run.py."""

from __future__ import annotations

import asyncio
import logging
import sys
import warnings
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias

from dragoman.loop.guard import LoopGuard
from dragoman.loop.result import Result, T
from dragoman.loop.watching import EventChain, EventWatcher, TimedWatcher, call_in, is_running_here
from dragoman.tools.shell import RunShell
from dragoman.values import tracing
from dragoman.values.contracts import BlobStore
from dragoman.values.events import PromptAccepted, TurnEvent
from dragoman.values.messages import Content, user
from dragoman.values.parts import prompt_message
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.harness import Harness
    from dragoman.loop.session import Worker

_log = logging.getLogger("dragoman.runs")
Expand: TypeAlias = Callable[[str], Awaitable[str | Sequence[Content]]]


class RunHandle(Coroutine[Any, Any, Result[T]], Generic[T]):
    """One task and its events. Iterate it for TurnEvents, await it for the Result, or both. It starts when first asked.

    Iterating does not raise for what goes wrong in the run: the last event tells it. Awaiting raises it. Any number may iterate, each gets
    all events. It is a coroutine to asyncio, so `asyncio.create_task` and `TaskGroup.create_task` take it.

    Whoever iterates it, awaits it or is inside its `async with` block holds it. When the last watcher leaves early and nobody else holds
    it, it is cancelled.
    """

    def __init__(self, harness: Harness, deps: Any = None) -> None:
        self.deps = deps
        """What the embedder's own tools work with, in this run."""
        self._harness = harness
        self._session = harness.session
        self.chain = EventChain()
        self._guard = LoopGuard(harness.limits.loop)
        self._asked = ""
        """What the user asked last."""
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self._unwanted = False
        """Cancelled, perhaps before its task took a step."""
        self._underway = False
        self._is_cancelling = False
        self._holders: set[object] = set()
        self._is_left = False
        """The last watcher has left it, and nobody has come back."""
        self._steers: list[tuple[str, Expand | None]] = []
        """What was said during the run and the model has not got yet."""
        self._awaited: Coroutine[Any, Any, Result[T]] | None = None
        self._is_forgotten = True
        """Nobody has begun it or called it off."""

    def __del__(self) -> None:
        """As a coroutine does: a forgotten `await` would pass unnoticed."""
        if self.__dict__.get("_is_forgotten") and not sys.is_finalizing():
            warnings.warn(say("loop.run_never_begun"), RuntimeWarning, stacklevel=2, source=self)

    if not TYPE_CHECKING:  # type checkers know what a run has

        def __getattr__(self, name):
            """Only called for what a run does not have: whoever wants the answer has forgotten to wait for it."""
            if name in Result.__struct_fields__:
                raise AttributeError(say("loop.run_not_awaited", name=name))
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    @abstractmethod
    def result(self) -> Result[T]:
        """How things stand; complete once the run has ended."""

    @property
    def session_id(self) -> str:
        return self._session.id

    @property
    def blobs(self) -> BlobStore:
        """Where the session keeps the bytes of images and files."""
        return self._session.blobs

    @abstractmethod
    def _prepare_start(self) -> None: ...

    @abstractmethod
    async def _drive(self) -> None:
        """The whole run. It emits None when it is over, however it went."""

    # --- steering it

    def steer(self, text: str, expand: Expand | None = None) -> None:
        """Say something while it works: the model reads it with its next request, after the calls that are under way. What comes too late
        for a request of this run stays in `unsaid`. From the loop's own thread. `expand`: makes of the text, when it is said, the text with
        what it names."""
        self._steers.append((text, expand))

    @property
    def unsaid(self) -> tuple[str, ...]:
        """What `steer` was given and the model has not got yet."""
        return tuple([text for text, _ in self._steers])

    def take_back(self) -> tuple[str, ...]:
        """What is unsaid, and now stays so."""
        unsaid = self.unsaid
        self._steers.clear()
        return unsaid

    async def _tell_unsaid(self) -> bool:
        """Whether the user said something meanwhile: it is on the record now, and part of the next request."""
        if not self._steers:
            return False
        history, steers = self._session.history, self._steers.copy()
        self._steers.clear()
        said = [(text, expand) for text, expand in steers if await self._admit(text)]
        for text, expand in said:
            history.say(user(text) if expand is None else prompt_message(await expand(text)))
        await history.sync()
        for text, _ in said:
            self._emit(PromptAccepted(self._session.id, text))
            self._asked = text
            self._guard.start_question()
        return bool(said)

    async def _admit(self, text: str) -> bool:
        """Whether hooks let it through."""
        hooks = self._harness.hooks
        return hooks is None or await hooks.admit(text)

    def leave_running(self, call_id: str) -> bool:
        """Let the command that a call waits for go on in the background: the call returns, and the model is given the command's id. False
        where no such command is under way, or none can be left. From the loop's own thread, which has to go on running."""
        tool = self._harness.registry.get("run_shell")
        return isinstance(tool, RunShell) and tool.leave_running(call_id)

    # --- ending it

    def cancel(self) -> None:
        """End it: within a second every open call is answered, and the next run can begin. Once is enough.

        May be called from any thread.
        """
        self._is_forgotten = False
        self._unwanted = True  # before anything is looked at: a run that starts in another thread just now sees it
        if self._task is None:
            return
        loop = self._task.get_loop()
        if is_running_here(loop):
            self._cancel_task()
        else:
            call_in(loop, self._cancel_task)

    def _cancel_task(self) -> None:
        if self._underway and not self._is_cancelling and self._task is not None:
            self._is_cancelling = True
            self._task.cancel()

    @property
    def is_unwanted(self) -> bool:
        """Cancelled, or left by everybody: it is about to end."""
        return self._unwanted or self._is_left

    async def finished(self) -> None:
        """Returns when it is over, however it went."""
        if self._task is None:
            return
        loop = self._task.get_loop()
        if not is_running_here(loop):
            if not self._task.done():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.finished(), loop))
            return
        try:
            await asyncio.shield(self._task)
        except asyncio.CancelledError:
            from dragoman.loop.ending import wait_through

            self.cancel()  # whoever waited for it was cancelled: so is the run
            await wait_through(self._task, 2)
            raise

    async def aclose(self) -> None:
        """End it, as `cancel` does, and return when it is over."""
        self.cancel()
        await self.finished()

    async def __aenter__(self) -> Self:
        self.join(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._holders.discard(self)
        await self.aclose()

    # --- watching it

    def __aiter__(self) -> EventWatcher:
        return EventWatcher(self)

    def timed(self) -> TimedWatcher:
        """The events, each with the time it was emitted at: `async for at_ms, event in run.timed()`. Milliseconds since 1970."""
        return TimedWatcher(EventWatcher(self))

    def join(self, token: object) -> None:
        """Hold it under this token, and start it if nobody has."""
        self._start()
        self._holders.add(token)
        self._is_left = False

    def leave(self, token: object) -> None:
        """A watcher holds it no longer. May be called from any thread."""
        if token not in self._holders:
            return
        self._holders.discard(token)
        task = self._task
        if self._holders or task is None or task.done():
            return
        self._is_left = True
        # In a moment, not now: whoever leaves the loop may go on to await the run.
        call_in(task.get_loop(), self._cancel_if_left)

    async def abandoned(self) -> None:
        """If nobody holds it any more, end it: returns when it is over."""
        if self._is_left:
            await self.aclose()

    def _cancel_if_left(self) -> None:
        if self._is_left:
            self.cancel()

    def tell(self, event: TurnEvent) -> None:
        """Something happened that those who watch this run should hear of. May be called from any thread."""
        if self._task is None or self._task.done():
            return
        loop = self._task.get_loop()
        if is_running_here(loop):
            self._emit(event)
        else:
            call_in(loop, lambda: self._emit(event))

    # --- awaiting it

    def __await__(self) -> Generator[Any, None, Result[T]]:
        return self._wait().__await__()

    def send(self, value: None, /) -> Any:
        """For asyncio, which drives it as a coroutine where it is made a task."""
        return self._as_coroutine().send(value)

    def throw(self, kind: Any, value: Any = None, traceback: TracebackType | None = None, /) -> Any:
        return self._as_coroutine().throw(kind if value is None else value)

    def close(self) -> None:
        self._is_forgotten = False
        if self._awaited is not None:
            self._awaited.close()

    def _as_coroutine(self) -> Coroutine[Any, Any, Result[T]]:
        self._is_forgotten = False
        if self._awaited is None:
            self._awaited = self._wait()
        return self._awaited

    async def _wait(self) -> Result[T]:
        token = object()
        self.join(token)
        try:
            await self.finished()
        finally:
            self._holders.discard(token)
        if self._error is not None:
            raise self._error
        return self.result

    def _start(self) -> None:
        self._is_forgotten = False
        if self._task is None:
            self._prepare_start()
            drive = self._drive() if tracing.active is None else tracing.active.drive(self)
            if _log.isEnabledFor(logging.INFO):
                from dragoman.loop.run_log import log_run

                drive = log_run(self, drive)
            self._task = asyncio.get_running_loop().create_task(self._watched(drive))

    def _watched(self, drive: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:
        """What carries the run out. Subclasses may wrap it."""
        return drive

    def _emit(self, event: TurnEvent | None) -> None:
        self.chain.add(event, len(self._session.history.entries))


def callers_of(run: RunHandle[Any]) -> list[Worker | None]:
    """The runs that this one works for, if its agent was called as a tool: the nearest first."""
    callers: list[Worker | None] = []
    caller = run._harness.called_by
    while caller is not None:
        callers.append(caller.session.work.current)
        caller = caller.called_by
    return callers
