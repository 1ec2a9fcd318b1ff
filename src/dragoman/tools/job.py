"""The state of one tool call, from validation to its report."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextvars import ContextVar
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.tools import results
from dragoman.tools.arguments import check_arguments, decode_arguments, name_parameters, read_arguments
from dragoman.tools.registry import Registry
from dragoman.values.calls import Align, Intent, Later, MeantCall, Tool, ToolOutput
from dragoman.values.events import ToolCallFinished, ToolState
from dragoman.values.messages import ToolCall, ToolResult
from dragoman.values.parts import text_of
from dragoman.values.record import ToolOutcome

ShowMore = Callable[..., None]
"""The Show of a call. Beside the text it takes progress: `show("", "reading page 3", 3, 10)`."""
call_at_work: ContextVar[tuple[ToolCall, ShowMore] | None] = ContextVar("call_at_work", default=None)
"""The call that the current task carries out, as it was meant, and what shows its output. A tuple: nothing else is made for a call."""


class CallReport(msgspec.Struct, frozen=True):
    """How one call ended."""

    call: ToolCall
    result: ToolResult
    outcome: ToolOutcome
    output: ToolOutput
    duration_ms: int = 0
    """How long it ran; 0 if it did not."""


def finished_event(report: CallReport, repairs: tuple[str, ...], arguments: str, *, outside: bool = False) -> ToolCallFinished:
    output, text = report.output, text_of(report.output.content)
    return ToolCallFinished(
        report.call.id,
        (report.result,),
        display=output.display,
        error=results.truncate(text, results.MAX_ERROR_CHARS) if output.is_error else "",
        error_type=output.error_type,
        output_file=output.output_file,
        content_length=len(text),
        changed=output.changed,
        outcome=report.outcome,
        repairs=repairs,
        name=report.call.name,
        outside=outside,
        command=output.command,
        sources=output.sources,
        arguments=arguments,
    )


class Job:
    """One call being processed."""

    def __init__(self, call: ToolCall, tool: Tool | None) -> None:
        self.call = call
        self.tool = tool
        self.meant = call
        """The call as it is judged and run: `call`, unless the model wrote other names than the tool has."""
        self.repairs: tuple[str, ...] = ()
        self.is_duplicate = False
        self.is_pending = False
        """It waits for a decision or a result that comes later."""
        self.state: ToolState = "validating"
        self.args: dict[str, Any] = {}
        self.intent = Intent()
        """What it would do with these arguments."""
        self.edited = ""
        """The arguments as JSON text, if the user changed them."""
        self.task: asyncio.Future[Any] | None = None
        """The pending approval, or the running tool."""
        self.began_s: float | None = None
        self.duration_ms = 0
        self.stopping = ""
        """Why it is being stopped; empty if it is not."""
        self.is_timed_out = False
        self.timer: asyncio.TimerHandle | None = None
        self.is_abandoned = False
        self.output: ToolOutput | None = None
        self.outcome: ToolOutcome = "finished"
        self.report: CallReport | None = None
        """Set once the ledger has recorded it."""
        self.is_emitted = False

    @property
    def read_only(self) -> bool:
        return self.tool is None or self.tool.spec.read_only

    @property
    def runs_beside(self) -> bool:
        """Whether it waits for no other call, and none waits for it."""
        return self.read_only or getattr(self.tool, "runs_beside", False)

    @property
    def is_to_be_judged(self) -> bool:
        return self.state == "validating" and self.is_open and not self.is_pending and self.task is None

    @property
    def edits_files(self) -> bool:
        """Whether it can only be judged once what was called before it has ended."""
        return self.tool is not None and self.tool.spec.kind == "edit" and not self.runs_beside

    @property
    def final_arguments(self) -> str:
        """The arguments it runs with, as JSON text, if they are not those the model wrote."""
        return self.edited or (self.meant.arguments if self.repairs and self.meant is not self.call else "")

    @property
    def is_open(self) -> bool:
        return self.output is None

    @property
    def has_run(self) -> bool:
        """Whether the tool has ended and its result was not collected yet."""
        return self.state == "executing" and self.task is not None and self.task.done()

    def end(self, output: ToolOutput, outcome: ToolOutcome | None = None) -> None:
        self.output = output
        self.outcome = outcome or ("failed" if output.is_error else "finished")
        if self.timer is not None:
            self.timer.cancel()

    def end_timeout(self) -> None:
        """Stop the timeout: the call has returned or is being stopped. The timer that waits for it to stop goes on."""
        if self.timer is not None and not self.stopping:
            self.timer.cancel()

    def end_stopped(self, returned: ToolOutput | Later | None = None) -> None:
        began = self.began_s is not None
        returned = None if isinstance(returned, Later) else returned
        words = results.stopped_output(
            self.stopping, began=began, read_only=self.read_only, abandoned=self.is_abandoned, returned=returned if began else None
        )
        if self.is_timed_out:
            return self.end(msgspec.structs.replace(words, error_type="timeout"), "failed")
        self.end(words, "cancelled")

    def salvage(self) -> None:
        """Keep an output that arrived while the run was being stopped."""
        task = self.task
        if not self.is_open or not self.has_run or task is None or task.cancelled() or task.exception():
            return
        if self.stopping:
            self.end_stopped(task.result())
        elif not isinstance(task.result(), Later):
            self.end(task.result())

    def abandon(self) -> None:
        """Stop waiting for it. If it keeps running, it is referenced until it ends, and its output is ignored."""
        task, self.task = self.task, None
        if self.timer is not None:
            self.timer.cancel()
        if task is None:
            return
        if task.done():
            return _forget(task)
        self.is_abandoned = True
        _abandoned.add(task)
        task.add_done_callback(_forget)


def make_jobs(calls: Sequence[ToolCall], registry: Registry, max_calls: int, pending: Collection[str]) -> list[Job]:
    """A job for each call; those that will not be run have ended."""
    jobs, seen = list[Job](), set[str]()
    for position, call in enumerate(calls):
        job = Job(call, registry.get(call.name))
        if call.id in seen:
            # Ids are made unique when an answer is read. Record and events identify calls by id, so a duplicate gets no result.
            job.is_duplicate = True
            job.end(results.error_output(f"not run: another call has the id {call.id!r} already", "duplicate_id"), "not_run")
        elif position >= max_calls:
            words = f"not run: at most {max_calls} calls are run at a time. Make the rest of them later"
            job.end(results.error_output(words, "too_many_calls"), "not_run")
        else:
            job.is_pending = call.id in pending
        seen.add(call.id)
        jobs.append(job)
    return jobs


def read_call(job: Job, registry: Registry, align: Align | None, max_chars: int) -> None:
    """Find the tool and its arguments. A call that does not fit is taken as it was meant, if that is clear; else it has ended."""
    call = job.call
    args, fault = decode_arguments(call.arguments, max_chars)
    if fault and len(call.arguments) <= max_chars:
        call, args, fault = _mend_call(job, fault)
    if not fault:
        call, args = _tidy_call(job, registry, call, args)
    problem = _problem(job, args, fault)
    is_fit = job.tool is not None and not problem
    meant = align(call, args, registry.specs) if align is not None and not fault and (not is_fit or call.opaque is not None) else None
    if meant is not None and _take_meant(job, registry.get(meant.call.name), meant):
        return
    if is_fit:
        job.args = args
    elif job.tool is None:
        job.end(results.unknown_tool_output(call.name, registry.nearest(call.name), registry.names), "failed")
    else:
        job.end(results.error_output(problem, "invalid_arguments"), "failed")


def _problem(job: Job, args: dict[str, Any], fault: str) -> str:
    if job.tool is None:
        return fault
    return f"{job.call.name} was not run: {fault}.{name_parameters(job.tool.spec)}" if fault else check_arguments(job.tool.spec, args)


def _mend_call(job: Job, fault: str) -> tuple[ToolCall, dict[str, Any], str]:
    """The call with its arguments mended, where they are not JSON but only one reading is possible; else as it is, with its fault."""
    from dragoman.tools.broken_json import mend_arguments

    mended = mend_arguments(job.call.arguments)
    if mended is None:
        return job.call, {}, fault
    args, problem = decode_arguments(mended[0])
    if problem:
        return job.call, {}, fault
    job.meant = msgspec.structs.replace(job.call, arguments=mended[0])
    job.repairs = mended[1]
    return job.meant, args, ""


def _tidy_call(job: Job, registry: Registry, call: ToolCall, args: dict[str, Any]) -> tuple[ToolCall, dict[str, Any]]:
    """The call with what models write out of habit put right (see habits.py), or made through the tool that makes such calls."""
    name = call.name
    if job.tool is None:
        job.tool, tidied, repairs = registry.carry(call.name, args)
        name = job.tool.spec.name if job.tool is not None else call.name
    elif (tidy := getattr(job.tool, "tidy", None)) is not None and check_arguments(job.tool.spec, args):
        tidied, repairs = tidy(args)
    else:
        return call, args
    if not repairs:
        return call, args
    job.meant = msgspec.structs.replace(call, name=name, arguments=jsontext.dumps(tidied))
    job.repairs = (*job.repairs, *repairs)
    return job.meant, tidied


def _take_meant(job: Job, tool: Tool | None, meant: MeantCall) -> bool:
    if tool is None:
        return False
    args, problem = read_arguments(tool.spec, meant.call.arguments)
    if problem:
        return False
    job.tool, job.meant, job.args, job.repairs = tool, meant.call, args, (*job.repairs, *meant.repairs)
    return True


def intent_or_end(job: Job) -> Intent | None:
    """What the call would do; None where that cannot work, and the call has ended."""
    assert job.tool is not None
    try:
        intent = job.tool.intend(job.args)
    except Exception as error:
        job.end(results.exception_output(error, job.call.name), "failed")
        return None
    if intent.problem:
        job.end(results.error_output(results.truncate(intent.problem, results.MAX_NOTE_CHARS), "impossible"), "failed")
        return None
    job.intent = intent
    return intent


def refuse(job: Job, error: BaseException) -> None:
    """If no answer can be obtained, it counts as no."""
    failure = results.exception_output(error, job.call.name)
    job.end(results.denied_output(f"whether it may run could not be decided ({type(error).__name__}: {error})", failure.extras), "refused")


def call_in_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: Any) -> None:
    try:
        loop.call_soon_threadsafe(function, *args)
    except RuntimeError:
        pass  # the loop is closed: no one is listening


_abandoned: set[asyncio.Future[Any]] = set()


def _forget(task: asyncio.Future[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not log it as never retrieved
