"""What is under way in a conversation: a run of the agent, a command of the user's own, other work; and what waits for its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dragoman.loop.agent import Agent
from dragoman.loop.run import Run
from dragoman.tui.asking import Printer
from dragoman.tui.canvas import Canvas
from dragoman.tui.line import EMPTY, Line, Span, line, visible
from dragoman.tui.own_command import OwnCommand
from dragoman.tui.report import TICK_S, RunView
from dragoman.tui.status import SIGNS
from dragoman.tui.wrap import fit, spread
from dragoman.values.errors import DragomanError
from dragoman.values.messages import Attached, Content, Text
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.app.slash_commands import Invocation

ENDING_S = 1.5


class Turns:
    """One thing at a time. `on_ended` gets each run when it is over, `on_free` what waited: whether it was stopped, and the texts."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        canvas: Canvas,
        view: RunView,
        on_ended: Callable[[Run], None],
        on_free: Callable[[bool, list[str]], None],
    ) -> None:
        self._loop = loop
        self._canvas = canvas
        self._screen = Printer(canvas)
        self._view = view
        self._on_ended = on_ended
        self._on_free = on_free
        self._run: Run | None = None
        self._agent: Agent | None = None
        self._task: asyncio.Task[None] | None = None
        self._command: OwnCommand | None = None
        self._ran: list[OwnCommand] = []
        """The user's own commands whose output the model has not seen yet."""
        self._queue: list[str] = []
        self._ticker: asyncio.TimerHandle | None = None
        self.progress = ""
        """How far the work has come, if it is not a run."""
        self.is_stopping = False

    @property
    def is_busy(self) -> bool:
        return self._task is not None and not self._task.done()

    # --- what waits

    @property
    def unsaid(self) -> Sequence[str]:
        """What the model has not been given yet."""
        return self._run.unsaid if self._run is not None else ()

    @property
    def queued(self) -> Sequence[str]:
        """What is sent when the run is over."""
        return self._queue

    @property
    def waiting(self) -> int:
        return len(self.unsaid) + len(self._queue)

    @property
    def can_steer(self) -> bool:
        return self._run is not None and self._view.is_running and not self.is_stopping

    @property
    def placeholder(self) -> str:
        """Which words say what becomes of what is written now."""
        if not self.is_busy:
            return "conversation.placeholder"
        return "conversation.placeholder_running" if self.can_steer else "conversation.placeholder_waiting"

    def steer(self, text: str) -> None:
        if self._run is not None:
            agent = self._agent
            self._run.steer(text, None if agent is None else lambda said: self._expand_steer(agent, said))

    def queue(self, text: str) -> None:
        self._queue.append(text)

    def take_back(self) -> str:
        """The last that waits, which does not wait any more; empty if nothing does."""
        if self._queue:
            return self._queue.pop()
        unsaid = self._run.take_back() if self._run is not None else ()
        for text in unsaid[:-1]:
            self.steer(text)
        return unsaid[-1] if unsaid else ""

    # --- what is begun

    def ask(self, agent: Agent, prompt: str | None, invocation: Invocation | None = None) -> None:
        """A run; without a prompt from where the last one failed; with an invocation, what that stands for."""
        if invocation is not None:
            return self._begin(self._invoke(agent, invocation))
        self._view.begin()
        self._begin(self._run_prompt(agent, prompt))

    def run_own(self, command: str, folder: str) -> None:
        self._begin(self._run_own(OwnCommand(command, folder, self._canvas.request)))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Other work that takes a while; errors are shown."""
        self._begin(self._show_failure_of(work))

    def stop(self) -> None:
        """Cancels a run only once: a second cancel would interrupt the cleanup after the first. A command of the user's own that does not
        end is killed by the second."""
        if self.is_busy and self._command is not None:
            self.is_stopping = True
            return self._command.stop()
        if not self.is_busy or self.is_stopping:
            return None
        self.is_stopping = True
        if self._run is not None:
            self._run.cancel()
        elif self._task is not None and not self._view.is_running:
            self._task.cancel()
        return None

    @property
    def runs_own_command(self) -> bool:
        return self._command is not None

    def stop_call(self, call_id: str) -> bool:
        """End one call of the run; the others go on."""
        return self._run is not None and self._run.cancel_call(call_id)

    def leave_running(self, call_id: str) -> bool:
        """The command of that call goes on in the background."""
        return self._run is not None and self._run.leave_running(call_id)

    async def finished(self) -> None:
        """Returns when what is under way is over, and what follows from that is done."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def end(self) -> None:
        """Stop what is under way and wait for it: a run answers its open calls."""
        if self._ticker is not None:
            self._ticker.cancel()
        self._queue.clear()
        self.stop()
        if self._task is not None and not self._task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([self._task], timeout=ENDING_S)

    def live_lines(self, columns: int, most: int) -> list[Line]:
        lines = [*self._view.live_lines(most - 1), *(self._command.live_lines(columns) if self._command is not None else [])]
        activity = self._view.activity(columns) or self._progress_line(columns)
        return [*lines, activity] if activity else lines

    def _progress_line(self, columns: int) -> Line:
        if not self.progress or not self.is_busy:
            return EMPTY
        sign = SIGNS[int(self._loop.time() / TICK_S) % len(SIGNS)]
        left = (Span(f"{sign} ", "accent"), Span(visible(self.progress), "dim"))
        return fit(spread(left, line(say("tui.esc_stops"), "dim"), columns), columns)

    # --- at work

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self.is_stopping, self._run, self.progress = False, None, ""
        self._task = self._loop.create_task(work)
        self._task.add_done_callback(self._go_on)
        self._loop.call_soon(self._tick)

    async def _invoke(self, agent: Agent, invocation: Invocation) -> None:
        """Until the prompt is made, commands in it may run or be asked about: a stop ends that."""
        told = "".join(f"{each.for_model()}\n\n" for each in self._ran)
        try:
            run = await invocation.start(agent, lambda text: self._screen.message(text, "dim"), told)
        except DragomanError as error:
            self._screen.message(say("run_failed", message=error), "red")
            return
        self._ran.clear()
        self._view.begin()
        try:
            await self._run_prompt(agent, None, begun=run)
        finally:
            invocation.finish(agent)

    async def _expand(self, agent: Agent, prompt: str) -> list[Content]:
        """With what it names, behind what the user's own commands have put out since the last one."""
        told = await self._expand_names(agent, prompt, lambda text: self._screen.message(text, "dim"))
        before: list[Content] = [Text(f"{each.for_model()}\n\n", attached=Attached(f"! {each.command}")) for each in self._ran]
        self._ran.clear()
        return [*before, *([told] if isinstance(told, str) else told)]

    async def _expand_names(self, agent: Agent, text: str, on_attached: Callable[[str], None]) -> str | Sequence[Content]:
        servers: Any = agent.beside.get("mcp")
        if "@" not in text and (servers is None or not servers.names_something(text)):
            return text
        from dragoman.app.prompts import expand_prompt

        return await expand_prompt(agent, text, lambda problem: self._screen.message(problem, "yellow"), on_attached=on_attached)

    async def _expand_steer(self, agent: Agent, text: str) -> str | Sequence[Content]:
        try:
            return await self._expand_names(agent, text, lambda about: None)
        except DragomanError as error:
            self._screen.message(str(error), "yellow")
            return text

    async def _run_prompt(self, agent: Agent, prompt: str | None, *, begun: Run | None = None) -> None:
        self._agent = agent
        try:
            run = self._run = begun or agent.run(await self._expand(agent, prompt) if prompt is not None else None)
            if self.is_stopping:
                run.cancel()
            async with run:
                async for event in run:
                    self._view.take(event)
                    self._canvas.request()
            self._on_ended(run)
        except DragomanError as error:
            self._screen.message(say("run_failed", message=error), "red")
        except Exception as error:  # a fault of our own must not end the conversation in silence
            self._screen.message(say("run_failed", message=f"{type(error).__name__}: {error}"), "red")
        finally:
            self._view.is_running = False

    async def _run_own(self, own: OwnCommand) -> None:
        self._command = own
        try:
            await own.run()
        finally:
            self._command = None
        self._ran.append(own)
        self._view.calls.keep(f"! {own.command}", own.output)
        self._canvas.commit(own.lines(self._canvas.columns))
        self._canvas.part()

    async def _show_failure_of(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            self._screen.message(say("conversation.stopped"), "yellow")
            raise
        except DragomanError as error:
            self._screen.message(say("run_failed", message=error), "red")

    def _go_on(self, task: asyncio.Task[None]) -> None:
        if task is not self._task:
            return
        waiting = [*(self._run.take_back() if self._run is not None else ()), *self._queue]
        self._queue.clear()
        self._canvas.request()
        if waiting:
            self._on_free(self.is_stopping, waiting)

    def _tick(self) -> None:
        """Moves the sign of life."""
        self._ticker = None
        if self.is_busy:
            self._canvas.request()
            self._ticker = self._loop.call_later(TICK_S, self._tick)
