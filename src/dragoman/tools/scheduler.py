"""CALLS → RESULTS. Each call is validated, allowed or refused, run and recorded; the reports come back in call order.

Calls that only read run side by side. One that does not is a barrier: it starts when every earlier call is finished, and no later
one starts before it is. `Scheduler.run` drives a batch from one place: whatever happens (an answer, an end, a cancel) stirs it, and
it then does everything that has become possible. So there are no locks, and what a call waits for can be read in `_advance`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from dragoman.base import jsontext
from dragoman.tools import results
from dragoman.tools.arguments import MAX_ARGUMENT_CHARS, read_arguments
from dragoman.tools.job import CallReport, Job
from dragoman.tools.output import Outputs
from dragoman.tools.registry import Registry
from dragoman.values.contracts import Allow, Decide, Deny, Intent, Ledger, Tool, ToolOutput
from dragoman.values.errors import ToolBroken
from dragoman.values.events import ToolCallConfirmation, ToolCallFinished, ToolCallUpdated, ToolState, TurnEvent
from dragoman.values.messages import ToolCall, ToolResult
from dragoman.values.parts import text_of
from dragoman.values.record import ToolOutcome

STOP_S = 0.8
"""How long a call that was cancelled may take to stop. One that takes longer is abandoned."""

__all__ = ["STOP_S", "CallReport", "Scheduler"]

_ENDS: dict[ToolOutcome, ToolState] = {"finished": "success", "failed": "error", "not_run": "error", "cancelled": "cancelled"}


class Scheduler:
    """Runs the calls of one answer at a time. Everything is called from the event loop's own thread.

    emit is told each step of each call, a result only once the ledger has synced it.
    """

    def __init__(
        self,
        registry: Registry,
        ledger: Ledger,
        decide: Decide,
        emit: Callable[[TurnEvent], None],
        *,
        outputs: Outputs | None = None,
        max_parallel: int = 8,
        max_calls: int = 100,
        max_argument_chars: int = MAX_ARGUMENT_CHARS,
    ) -> None:
        self.started: set[str] = set()
        """Ids of the calls of this batch, or else of the last, that began executing."""
        self._registry = registry
        self._ledger = ledger
        self._decide = decide
        self._emit = emit
        self._outputs = outputs
        self._max_parallel = max(1, max_parallel)
        self._max_calls = max_calls
        self._max_argument_chars = max_argument_chars
        self._jobs: list[Job] = []
        self._running = False
        self._stirred = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop
        self._broken: ToolBroken | None = None
        self._thread_id = 0

    async def run(self, calls: Sequence[ToolCall]) -> tuple[CallReport, ...]:
        """The report of each call, in call order. A failing call is a report too; ToolBroken is raised when all are closed.

        When cancelled, the calls that had ended are recorded and told; those still open are left to the caller.
        """
        if self._running:
            raise RuntimeError("a scheduler runs one batch at a time")
        self._running, self._broken, self._stirred = True, None, asyncio.Event()
        self._loop, self._thread_id = asyncio.get_running_loop(), threading.get_ident()
        self.started.clear()
        self._jobs = []
        try:
            self._jobs = self._taken_on(calls)
            await self._drive()
        except (Exception, asyncio.CancelledError):
            await self._cut_off()
            raise
        finally:
            self._running = False
        if self._broken is not None:
            raise self._broken
        return self.reports

    def cancel(self, call_id: str, reason: str = "") -> bool:
        """End one call and leave the others. False where no such call is open, or where it has just ended."""
        job = next((job for job in self._jobs if job.call.id == call_id and job.is_open), None) if self._running else None
        if job is None or job.stopping or job.has_run:
            return False
        self._stop(job, f"The user cancelled this call{': ' if reason else ''}{reason.rstrip('.')}.")
        return True

    @property
    def reports(self) -> tuple[CallReport, ...]:
        """Of the calls of this batch, or else of the last, that are closed."""
        return tuple(job.report for job in self._jobs if job.report is not None)

    @property
    def abandoned(self) -> frozenset[str]:
        """Ids of the calls of this batch, or else of the last, that did not stop when told to and may still be running."""
        return frozenset(job.call.id for job in self._jobs if job.is_abandoned)

    # --- driving a batch

    async def _drive(self) -> None:
        for job in self._jobs:
            self._validate(job)
        while any(job.report is None for job in self._jobs):
            self._stirred.clear()
            self._advance()
            ended = [job for job in self._jobs if job.output is not None and job.report is None]
            if ended:
                await self._close(ended)
            else:
                await self._stirred.wait()

    def _advance(self) -> None:
        """Everything that can happen now."""
        no_barrier_ahead = nothing_ahead = True
        executing = sum(job.state == "executing" and job.is_open for job in self._jobs)
        for job in self._jobs:
            if job.report is not None:
                continue
            if job.task is not None and job.task.done():
                self._take(job)
            if job.state == "validating" and job.is_open and no_barrier_ahead:
                self._judge(job)  # not sooner: what a person is shown must still be true when it runs
            if job.state == "scheduled" and job.is_open and (executing < self._max_parallel if job.read_only else nothing_ahead):
                self._start(job)
                executing += 1
            nothing_ahead = False
            no_barrier_ahead = no_barrier_ahead and job.read_only

    async def _close(self, jobs: Sequence[Job]) -> None:
        """Recorded, on disk, told: in this order."""
        for job in jobs:
            if job.output is not None:
                job.report = self._recorded(job, job.output)
        await self._ledger.sync()
        self._tell(jobs)

    def _stir(self, *_: object) -> None:
        self._stirred.set()

    # --- the way of one call

    def _taken_on(self, calls: Sequence[ToolCall]) -> list[Job]:
        jobs, seen = list[Job](), set[str]()
        for position, call in enumerate(calls):
            job = Job(call, self._registry.get(call.name))
            if call.id in seen:
                # Ids are made unique when an answer is read. Record and events know calls by them, so a twin has no result of its own.
                job.is_twin = True
                job.end(results.failed(f"not run: another call has the id {call.id!r} already", "duplicate_id"), "not_run")
            elif position >= self._max_calls:
                words = f"not run: at most {self._max_calls} calls are run at a time. Make the rest of them later"
                job.end(results.failed(words, "too_many_calls"), "not_run")
            seen.add(call.id)
            jobs.append(job)
        return jobs

    def _validate(self, job: Job) -> None:
        self._update(job, "validating")
        if not job.is_open:
            return
        if job.tool is None:
            near = self._registry.nearest(job.call.name)
            return job.end(results.unknown_tool(job.call.name, near, self._registry.names), "failed")
        self._read(job, job.tool, job.call.arguments)

    def _read(self, job: Job, tool: Tool, arguments: str) -> None:
        job.args, problem = read_arguments(tool.spec, arguments, self._max_argument_chars)
        if problem:
            job.end(results.failed(problem, "invalid_arguments"), "failed")

    def _judge(self, job: Job) -> None:
        intent = _intent(job)
        if intent is None:
            return
        try:
            answer = self._decide(job.call)
        except Exception as error:
            return _refuse(job, error)
        if isinstance(answer, Allow | Deny):
            return self._answer(job, answer)
        if not isinstance(answer, Awaitable):
            return _refuse(job, TypeError(f"the answer was {answer!r}"))
        self._update(job, "awaiting_approval")
        self._emit(ToolCallConfirmation(job.call, intent.preview or intent.title))
        self._watch(job, answer)

    def _answer(self, job: Job, answer: Allow | Deny) -> None:
        if isinstance(answer, Deny):
            return job.end(results.denied(answer.reason), "not_run")
        if answer.arguments and job.tool is not None:
            before = job.args
            self._read(job, job.tool, answer.arguments)
            if not job.is_open or jsontext.encode(job.args) != jsontext.encode(before):
                job.edited = answer.arguments
            if not job.is_open or (job.edited and _intent(job) is None):
                return
        self._update(job, "scheduled")

    def _start(self, job: Job) -> None:
        job.state = "executing"
        self._watch(job, self._execute(job))

    async def _execute(self, job: Job) -> ToolOutput:
        assert job.tool is not None
        if not job.read_only or job.edited:
            self._ledger.start_tool(job.call, job.edited)
            await self._ledger.sync()
        if job.stopping:
            raise asyncio.CancelledError  # a ledger that let no cancel through must not make it run after all
        self.started.add(job.call.id)
        self._update(job, "executing")
        job.began_s = time.monotonic()
        try:
            output = await job.tool.run(job.args, lambda text: self._show(job, text))
        except ToolBroken:
            raise
        except (Exception, SystemExit) as error:
            output = results.raised(error, job.call.name)
        finally:
            job.duration_ms = int((time.monotonic() - job.began_s) * 1000)
        return await results.fit_to_send(output, job.call.name, None if job.is_abandoned else self._outputs)

    def _take(self, job: Job) -> None:
        """What a person answered, or what the tool put out."""
        task, job.task = job.task, None
        assert task is not None
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ToolBroken) and job.state == "executing":
            return self._break(job, error)
        if job.stopping:
            return job.end_stopped(None if task.cancelled() or error is not None else task.result())
        if job.state == "awaiting_approval":
            if task.cancelled() or error is not None:
                return _refuse(job, error or RuntimeError("the question was withdrawn"))
            answer = task.result()
            return self._answer(job, answer) if isinstance(answer, Allow | Deny) else _refuse(job, TypeError(f"the answer was {answer!r}"))
        if task.cancelled():
            return job.end(results.failed(f"{job.call.name} failed: it was cancelled from within", "exception"), "failed")
        if error is not None:
            raise error  # not the tool's: it is the ledger's, or that of whoever is told
        job.end(task.result())

    def _show(self, job: Job, text: str) -> None:
        if threading.get_ident() != self._thread_id:
            return _from_thread(self._loop, self._show, job, text)
        if text and job.is_open and not job.is_abandoned:
            self._emit(ToolCallUpdated(job.call.id, "executing", jsontext.valid_unicode(str(text))))

    # --- how it ends

    def _recorded(self, job: Job, output: ToolOutput) -> CallReport:
        if job.edited:
            output = results.with_edit_told(output, job.edited)
        result = ToolResult(job.call.id, job.call.name, output.content, output.is_error)
        if not job.is_twin:
            self._ledger.finish_tool(result, job.outcome, output.display, output.extras)
        return CallReport(job.call, result, job.outcome, output, job.duration_ms)

    def _tell(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            report, job.is_told = job.report, True
            if report is None or job.is_twin:
                continue
            output, text = report.output, text_of(report.output.content)
            self._update(job, _ENDS[report.outcome])
            self._emit(
                ToolCallFinished(
                    job.call.id,
                    (report.result,),
                    display=output.display,
                    error=results.clipped(text, results.MAX_ERROR_CHARS) if output.is_error else "",
                    error_type=output.error_type,
                    output_file=output.output_file,
                    content_length=len(text),
                    changed=output.changed,
                )
            )

    def _stop(self, job: Job, why: str) -> None:
        job.stopping = why
        if job.task is None:
            job.end_stopped()
        else:
            job.task.cancel()
            job.timer = self._loop.call_later(STOP_S, self._abandon, job)
        self._stir()

    def _abandon(self, job: Job) -> None:
        if job.is_open and job.task is not None and not job.task.done():
            job.let_go()
            job.end_stopped()
            self._stir()

    def _break(self, job: Job, error: ToolBroken) -> None:
        self._broken = self._broken or error
        job.end(results.failed(f"{job.call.name} cannot work: {error}", "broken"), "failed")
        for other in self._jobs:
            if other.is_open and not other.stopping and not other.has_run:
                self._stop(other, f"This call was ended, because {job.call.name} cannot work.")

    async def _cut_off(self) -> None:
        """The run is over. End what is running, and keep what has come in; whatever goes wrong here, what cut us off goes out."""
        until_s = self._loop.time() + STOP_S
        for job in self._jobs:
            if job.task is not None and not job.task.done():
                job.stopping = job.stopping or "This call was ended together with the run."
                job.task.cancel()
        try:
            if running := [job.task for job in self._jobs if job.task is not None and not job.task.done()]:
                await asyncio.wait(running, timeout=STOP_S)
            for job in self._jobs:
                job.salvage()
                if job.output is not None and job.report is None:
                    job.report = self._recorded(job, job.output)
            untold = [job for job in self._jobs if job.report is not None and not job.is_told]
            if untold:
                await asyncio.wait_for(self._ledger.sync(), max(0.1, until_s - self._loop.time()))
                self._tell(untold)
        except (Exception, asyncio.CancelledError):
            pass
        finally:
            for job in self._jobs:
                job.let_go()

    # --- small things

    def _watch(self, job: Job, awaitable: Awaitable[Any]) -> None:
        job.task = asyncio.ensure_future(awaitable)
        job.task.add_done_callback(self._stir)

    def _update(self, job: Job, state: ToolState) -> None:
        job.state = state
        if not job.is_twin:
            self._emit(ToolCallUpdated(job.call.id, state))


def _intent(job: Job) -> Intent | None:
    """What the call would do; None where that cannot work, and the call has ended."""
    assert job.tool is not None
    try:
        intent = job.tool.intend(job.args)
    except Exception as error:
        job.end(results.raised(error, job.call.name), "failed")
        return None
    if intent.problem:
        job.end(results.failed(results.clipped(intent.problem, results.MAX_NOTE_CHARS), "impossible"), "failed")
        return None
    return intent


def _refuse(job: Job, error: BaseException) -> None:
    """Where no answer can be had, the answer is no."""
    told = results.raised(error, job.call.name)
    job.end(results.denied(f"whether it may run could not be decided ({type(error).__name__}: {error})", told.extras), "not_run")


def _from_thread(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: Any) -> None:
    try:
        loop.call_soon_threadsafe(function, *args)
    except RuntimeError:
        pass  # the loop is closed: nobody is left to be told
