"""CALLS → RESULTS. Each call is validated, allowed or refused, run and recorded; the reports come back in call order.

Read-only calls run in parallel. Any other call is a barrier: it starts when every earlier call is finished, and no later one starts
before it is. One that edits files is not even judged before that: whether it can work depends on what was read before it.
A call that is put off (`Later`) ends the batch once nothing else can run; what it holds up is left open with it.
`Scheduler.run` drives a batch from one place: every event (an answer, an end, a cancel) wakes it, and it then does
everything that has become possible. So there are no locks, and what a call waits for can be read in `_advance`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Any

from dragoman.base import jsontext
from dragoman.tools import results
from dragoman.tools.arguments import MAX_ARGUMENT_CHARS, read_arguments
from dragoman.tools.job import CallReport, Job, call_at_work, call_in_loop, finished_event, intent_or_end, make_jobs, read_call, refuse
from dragoman.tools.output import Outputs
from dragoman.tools.registry import Registry
from dragoman.values.calls import Align, Allow, Around, Decide, Deny, Intent, Later, Ledger, ToolOutput
from dragoman.values.errors import ToolBroken
from dragoman.values.events import ToolCallConfirmation, ToolCallUpdated, ToolState, TurnEvent
from dragoman.values.messages import ToolCall, ToolResult
from dragoman.values.record import ToolOutcome, WaitsFor

STOP_S = 0.8
"""How long a cancelled call may take to stop. After that it is abandoned."""
CLOSING_S = 0.1
"""How long the disk may take to record results that arrived while a run was cancelled."""

__all__ = ["STOP_S", "CallReport", "Scheduler"]

_ENDS: dict[ToolOutcome, ToolState] = {"finished": "success", "cancelled": "cancelled", "refused": "refused"}
"""Any other outcome is the state `error`."""


class Scheduler:
    """Runs the calls of one answer at a time. All methods must be called in the event loop's thread.

    `emit` gets every state change of each call, and a result only after the ledger has synced it.
    """

    def __init__(
        self,
        registry: Registry,
        ledger: Ledger,
        decide: Decide,
        emit: Callable[[TurnEvent], None],
        *,
        align: Align | None = None,
        outputs: Outputs | None = None,
        max_parallel: int = 8,
        max_calls: int = 100,
        max_argument_chars: int = MAX_ARGUMENT_CHARS,
    ) -> None:
        self.started: set[str] = set()
        """Ids of the calls of the current or last batch that began executing."""
        self._registry = registry
        self._ledger = ledger
        self._decide = decide
        self._emit = emit
        self._align = align
        self._outputs = outputs
        self.before: Callable[[ToolCall], Awaitable[None]] | None = None
        """Awaited before a call is judged."""
        self.around: Around | None = None
        """Carries a call out; None: it is just run."""
        self.reword: Callable[[str], str] | None = None
        """What becomes of the words of a call that failed."""
        self._max_parallel = max(1, max_parallel)
        self._max_calls = max_calls
        self._max_argument_chars = max_argument_chars
        self._jobs: list[Job] = []
        self._running = self._goes_on = False
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop
        self._broken: ToolBroken | None = None
        self._thread_id = 0

    async def run(self, calls: Sequence[ToolCall], pending: Collection[str] | None = None) -> tuple[CallReport, ...]:
        """The report of each call, in call order. A failed call has a report too; ToolBroken is raised when all are closed.

        Calls that are put off, and those that they hold up, have none. `pending` is given where such a batch goes on: the ids of the
        calls that still wait.

        When cancelled, nothing is left running; `close_ended` then records and emits the calls that had ended, and those still open
        are left to the caller.
        """
        if self._running:
            raise RuntimeError("a scheduler runs one batch at a time")
        self._running, self._broken, self._woken = True, None, asyncio.Event()
        self._loop, self._thread_id = asyncio.get_running_loop(), threading.get_ident()
        self.started.clear()
        self._jobs = []
        try:
            self._jobs = make_jobs(calls, self._registry, self._max_calls, pending or ())
            self._goes_on = pending is not None
            await self._drive()
        except (Exception, asyncio.CancelledError):
            await self._stop_all()
            raise
        finally:
            self._running = False
        if self._broken is not None:
            raise self._broken
        return self.reports

    def cancel(self, call_id: str, reason: str = "") -> bool:
        """Cancel one call and leave the others. False if no such call is open, or if it has just ended."""
        job = next((job for job in self._jobs if job.call.id == call_id and job.is_open), None) if self._running else None
        if job is None or job.stopping or job.has_run:
            return False
        self._stop(job, f"The user cancelled this call{': ' if reason else ''}{reason.rstrip('.')}.")
        return True

    @property
    def reports(self) -> tuple[CallReport, ...]:
        """Reports of the closed calls of the current or last batch."""
        return tuple(job.report for job in self._jobs if job.report is not None)

    @property
    def abandoned(self) -> frozenset[str]:
        """Ids of the calls of the current or last batch that did not stop when cancelled and may still be running."""
        return frozenset(job.call.id for job in self._jobs if job.is_abandoned)

    # --- driving a batch

    async def _drive(self) -> None:
        for job in self._jobs:
            if not job.is_pending:
                self._validate(job)
        waiting = self._jobs
        while waiting := [job for job in waiting if job.report is None]:
            self._woken.clear()
            self._advance(waiting)
            ended = [job for job in waiting if job.output is not None]
            if ended:
                await self._close(ended)
            elif any(job.task is not None for job in waiting):
                await self._woken.wait()
            else:
                return await self._leave_open(waiting)

    def _advance(self, waiting: Sequence[Job]) -> None:
        """Do everything that is possible now."""
        for job in waiting:
            if job.task is not None and job.task.done():
                self._collect_result(job)
        no_barrier_ahead = nothing_ahead = nothing_held_up = none_at_work = True
        executing = sum(job.state == "executing" and job.is_open and not job.is_pending for job in waiting)
        for job in waiting:
            if job.is_to_be_judged and no_barrier_ahead and (none_at_work or not job.edits_files):
                self._find_intent(job)  # not earlier: what the user is shown must still be true when it runs
            may_start = nothing_held_up and executing < self._max_parallel if job.runs_beside else nothing_ahead
            if job.state == "scheduled" and job.is_open and may_start:
                self._start(job)
                executing += 1
            nothing_ahead = False
            none_at_work = none_at_work and not (nothing_held_up and job.is_open and not job.is_pending)
            nothing_held_up = nothing_held_up and job.runs_beside
            no_barrier_ahead = no_barrier_ahead and (job.runs_beside or job.is_pending)  # calls in a row are put off together

    async def _close(self, jobs: Sequence[Job]) -> None:
        """Record, sync to disk, then emit."""
        for job in jobs:
            if job.output is not None:
                job.report = self._record(job, job.output)
        await self._ledger.sync()
        self._emit_finished(jobs)

    async def _leave_open(self, waiting: Sequence[Job]) -> None:
        """Nothing can go on before somebody decides, or a result comes from outside."""
        await self._ledger.sync()
        for job in waiting:
            if job.is_pending:
                self._update(job, "pending")

    def _wake(self, *_: object) -> None:
        self._woken.set()

    # --- the stages of one call

    def _validate(self, job: Job) -> None:
        self._update(job, "validating")
        if job.is_open:
            read_call(job, self._registry, self._align, self._max_argument_chars)

    def _find_intent(self, job: Job) -> None:
        """Find out what it would do: in a task of its own if that takes long, as a diff of a large file or a hook does."""
        prepare = getattr(job.tool, "prepare_intent", None)
        if prepare is None and self.before is None:
            return self._judge(job)
        self._watch(job, self._prepare(job, prepare))

    async def _prepare(self, job: Job, prepare: Callable[[Any], Awaitable[None]] | None) -> None:
        if self.before is not None:
            await self.before(job.meant)
        if prepare is not None:
            await prepare(job.args)

    def _judge(self, job: Job) -> None:
        intent = intent_or_end(job)
        if intent is None:
            return
        try:
            answer = self._decide(job.meant)
        except Exception as error:
            return refuse(job, error)
        if isinstance(answer, Allow | Deny):
            return self._apply_decision(job, answer)
        if not isinstance(answer, Awaitable):
            return refuse(job, TypeError(f"the answer was {answer!r}"))
        self._update(job, "awaiting_approval")
        self._emit(ToolCallConfirmation(job.meant, intent.preview or intent.title))
        self._watch(job, answer)

    def _postpone(self, job: Job, waits_for: WaitsFor, shown: Intent | None) -> None:
        self._ledger.postpone_tool(job.call, waits_for, shown or job.intent, job.final_arguments, job.repairs)
        job.is_pending = True

    def _apply_decision(self, job: Job, answer: Allow | Deny) -> None:
        if isinstance(answer, Deny):
            return job.end(results.denied_output(answer.reason), "refused")
        if answer.arguments and job.tool is not None:
            before = job.args
            job.args, problem = read_arguments(job.tool.spec, answer.arguments, self._max_argument_chars)
            if problem:
                job.end(results.error_output(problem, "invalid_arguments"), "failed")
            if not job.is_open or jsontext.encode(job.args) != jsontext.encode(before):
                job.edited = answer.arguments
            if not job.is_open or (job.edited and intent_or_end(job) is None):
                return
        self._update(job, "scheduled")

    def _start(self, job: Job) -> None:
        job.state = "executing"
        self._watch(job, self._execute(job))

    async def _execute(self, job: Job) -> ToolOutput | Later:
        assert job.tool is not None
        only_reads = job.read_only and not job.final_arguments and not self._goes_on
        self._ledger.start_tool(job.meant, job.final_arguments, outside=bool(job.intent.outside), read_only=only_reads)
        if not only_reads:
            await self._ledger.sync()
        if job.stopping:
            raise asyncio.CancelledError  # the ledger may have swallowed the cancel: do not run it
        self.started.add(job.call.id)
        self._update(job, "executing")
        job.began_s = time.monotonic()
        if timeout_s := getattr(job.tool, "timeout_s", 0):
            job.timer = self._loop.call_later(timeout_s, self._time_out, job, timeout_s)
        show = partial(self._show, job)
        call_at_work.set((job.meant, show))  # of this task alone
        try:
            run = partial(job.tool.run, job.args, show)
            output = await (run() if self.around is None else self.around(job.meant, run))
        except ToolBroken:
            raise
        except Later as later:
            return later
        except (Exception, SystemExit) as error:
            output = results.exception_output(error, job.call.name)
        finally:
            job.duration_ms = int((time.monotonic() - job.began_s) * 1000)
            job.end_timeout()
        return await results.prepare_to_send(output, job.call.name, None if job.is_abandoned else self._outputs)

    def _collect_result(self, job: Job) -> None:
        """Collect the user's answer or the tool's output."""
        task, job.task = job.task, None
        assert task is not None
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ToolBroken) and job.state == "executing":
            return self._break(job, error)
        if job.stopping:
            return job.end_stopped(None if task.cancelled() or error is not None else task.result())
        if job.state == "validating":
            return self._judge(job)
        if job.state == "awaiting_approval":
            if task.cancelled() or error is not None:
                return refuse(job, error or RuntimeError("the question was withdrawn"))
            answer = task.result()
            if isinstance(answer, Later):
                return self._postpone(job, "decision", answer.intent)
            if isinstance(answer, Allow | Deny):
                return self._apply_decision(job, answer)
            return refuse(job, TypeError(f"the answer was {answer!r}"))
        if task.cancelled():
            return job.end(results.error_output(f"{job.call.name} failed: it was cancelled from within", "exception"), "failed")
        if error is not None:
            raise error  # not the tool's error but the ledger's or the event consumer's
        if isinstance(output := task.result(), Later):
            return self._postpone(job, "result", output.intent)
        job.end(output)

    def _show(self, job: Job, text: str, progress: str = "", done: float | None = None, total: float | None = None) -> None:
        if threading.get_ident() != self._thread_id:
            return call_in_loop(self._loop, self._show, job, text, progress, done, total)
        if (text or progress or done is not None) and job.is_open and not job.is_abandoned:
            text, progress = jsontext.valid_unicode(str(text)), jsontext.valid_unicode(str(progress))
            self._emit(ToolCallUpdated(job.call.id, "executing", text, progress, done, total))

    # --- ending

    def _record(self, job: Job, output: ToolOutput) -> CallReport:
        if job.edited:
            output = results.add_edit_note(output, job.edited)
        if job.repairs:
            output = results.add_repair_note(output, job.repairs)
        if output.is_error and self.reword is not None:
            output = results.reworded(output, self.reword)
        result = ToolResult(job.call.id, job.call.name, output.content, output.is_error)
        if not job.is_duplicate:
            results.finish_in(self._ledger, result, job.outcome, output, job.repairs)
        return CallReport(job.call, result, job.outcome, output, job.duration_ms)

    def _emit_finished(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            report, job.is_emitted = job.report, True
            if report is not None and not job.is_duplicate:
                self._update(job, _ENDS.get(report.outcome, "error"))
                outside = job.began_s is not None and bool(job.intent.outside)
                self._emit(finished_event(report, job.repairs, job.final_arguments, outside=outside))

    def _stop(self, job: Job, why: str) -> None:
        job.end_timeout()
        job.stopping = why
        if job.task is None:
            job.end_stopped()
        else:
            job.task.cancel()
            job.timer = self._loop.call_later(STOP_S, self._abandon, job)
        self._wake()

    def _time_out(self, job: Job, timeout_s: float) -> None:
        if job.is_open and not job.stopping and not job.has_run:
            job.is_timed_out = True
            self._stop(job, f"{job.call.name} was ended: it took longer than {timeout_s:g} s.")

    def _abandon(self, job: Job) -> None:
        if job.is_open and job.task is not None and not job.task.done():
            job.abandon()
            job.end_stopped()
            self._wake()

    def _break(self, job: Job, error: ToolBroken) -> None:
        self._broken = self._broken or error
        job.end(results.error_output(f"{job.call.name} cannot work: {error}", "broken"), "failed")
        for other in self._jobs:
            if other.is_open and not other.stopping and not other.has_run:
                self._stop(other, f"This call was ended, because {job.call.name} cannot work.")

    async def _stop_all(self) -> None:
        """The run is over: stop what is running, and keep what has arrived. Errors here never replace the original exception."""
        for job in self._jobs:
            if job.task is not None and not job.task.done():
                job.stopping = job.stopping or "This call was ended together with the run."
                job.task.cancel()
        try:
            if running := [job.task for job in self._jobs if job.task is not None and not job.task.done()]:
                await asyncio.wait(running, timeout=STOP_S)
        except asyncio.CancelledError:
            pass
        finally:
            for job in self._jobs:
                job.salvage()
                job.abandon()

    async def close_ended(self) -> None:
        """After a cancelled run: record and emit the calls that had ended. Takes bounded time and never raises."""
        for job in self._jobs:
            if job.output is not None and job.report is None:
                job.report = self._record(job, job.output)
        unemitted = [job for job in self._jobs if job.report is not None and not job.is_emitted]
        if not unemitted:
            return
        try:
            await asyncio.wait_for(self._ledger.sync(), CLOSING_S)
            self._emit_finished(unemitted)
        except (Exception, asyncio.CancelledError):
            pass

    # --- state and tasks

    def _watch(self, job: Job, awaitable: Awaitable[Any]) -> None:
        job.task = asyncio.ensure_future(awaitable)
        job.task.add_done_callback(self._wake)

    def _update(self, job: Job, state: ToolState) -> None:
        job.state = state
        if not job.is_duplicate:
            self._emit(ToolCallUpdated(job.call.id, state))
