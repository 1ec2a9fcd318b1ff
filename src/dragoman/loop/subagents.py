"""Agents as tools: each call is a fresh conversation with a model of its own, whose events, usage and budgets belong to the caller's run.

`run_subagent` is the one way an agent is run inside another: `AgentTool` is a tool for one agent (`Agent.as_tool`); a tool that chooses
among several makes a `Template` of each and calls it too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.base import jsontext
from dragoman.base.text import one_line
from dragoman.loop.assembly import assemble_like
from dragoman.loop.harness import Harness
from dragoman.loop.options import RunOptions, SessionOptions
from dragoman.loop.run import Run
from dragoman.loop.session import Session, open_session
from dragoman.tools.job import call_at_work
from dragoman.tools.registry import check_name
from dragoman.tools.results import error_output
from dragoman.tools.returned import to_output
from dragoman.values.calls import Ask, Intent, Show, ToolOutput, run_at_work
from dragoman.values.events import NoticeGiven, SubagentEvent, TurnEvent
from dragoman.values.messages import Text, ToolSpec, user
from dragoman.values.record import FilesChanged
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.typed_answer import Wanted

MAX_TITLE_CHARS = 120
PROMPT = "What it shall do, with all it has to know: it sees nothing of this conversation."


class EndsEarly(msgspec.Struct, frozen=True):
    """When a called agent ends with what it has, though it is not done; 0: that does not end it."""

    max_turns: int = 0
    timeout_s: float = 0.0
    said_in: str = ""
    """The file that says so."""


class Template(msgspec.Struct, frozen=True):
    """What a called agent is made like. Its own conversation is not touched, so any number of calls may run at once."""

    harness: Harness
    wanted: Wanted | None = None
    checks: Sequence[Callable[[Any], Any]] = ()
    change: Callable[[Harness], None] | None = None
    """Makes the copy differ from the harness it was made like. May raise DragomanError: then nothing is run."""
    instructions: str = ""
    """Added to the system prompt."""
    ends: EndsEarly | None = None


class AgentTool:
    """An agent as a tool. Whether a call may run is decided inside, call by call, so nobody is asked about the whole."""

    decides_within = True

    def __init__(self, template: Template, name: str, description: str, *, runs_beside: bool = True) -> None:
        check_name(name)
        self._template = template
        self.runs_beside = runs_beside
        parameters = {"type": "object", "properties": {"prompt": {"type": "string", "description": PROMPT}}, "required": ["prompt"]}
        reads = all(spec.read_only for spec in template.harness.registry.specs)
        self.spec = ToolSpec.of(name, description, parameters, read_only=reads)

    def intend(self, args: Mapping[str, Any]) -> Intent:
        prompt = str(args.get("prompt", ""))
        return Intent(f"{self.spec.name}: {one_line(prompt, MAX_TITLE_CHARS)}", prompt)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        return await run_subagent(self._template, self.spec.name, str(args["prompt"]))


async def run_subagent(template: Template, name: str, prompt: str, on_made: Callable[[], None] = lambda: None) -> ToolOutput:
    """Have an agent like the template answer, inside the call and the run that the current task belongs to, if there are any. `on_made` is
    called when it stands, before it is asked.

    Returns what it answered: its text, or its value as JSON; where it failed, an error with what it had. When cancelled, it has ended
    when CancelledError goes on.
    """
    outer: Any = run_at_work.get()()
    call = call_at_work.get()
    caller, call_id = (outer._harness if outer is not None else None), call[0].id if call is not None else ""
    if caller is not None and caller.depth_left < 1:
        words = f"{name} was not called: agents call one another no deeper than this. Do without it"
        return error_output(words, "too_deep")
    if not prompt.strip():
        return error_output(f"{name} was not called: its prompt is empty", "invalid_arguments")
    inner = await _assemble(template, caller, name, call_id)
    on_made()
    if outer is not None and template.harness.deps is None:
        inner.deps = outer.deps
    run = _make_run(inner, template, await _with_words_of_hooks(caller, inner, name, prompt))
    timer = _Timer(run, template.ends)
    try:
        await _pass_events_on(run, _teller(outer, call_id, name))
        if caller is not None and caller.hooks is not None:
            from dragoman.values.hooks import SubagentEnd

            await caller.hooks.after_subagent(SubagentEnd(name, inner.session.id, run.result.text, run.result.error))
    finally:
        timer.stop()
        if caller is not None:
            _charge(caller, inner, run, name, call_id)
            if template.harness is caller:
                _take_changes(caller, inner, call_id)
        await _close(inner)
    if template.ends is not None and (why := timer.why or _why_by_turns(run, template.ends)):
        return _output_so_far(run, inner.session, name, why, outer)
    return await _output_of(run, inner.session, name)


class _Timer:
    """Ends a run when its time is over. `why` says so afterwards."""

    def __init__(self, run: Run[Any], ends: EndsEarly | None) -> None:
        self._run, self._ends, self.why = run, ends, ""
        self._handle = asyncio.get_running_loop().call_later(ends.timeout_s, self._end) if ends is not None and ends.timeout_s else None

    def _end(self) -> None:
        assert self._ends is not None
        self.why = say("subagents.out_of_time", minutes=f"{self._ends.timeout_s / 60:g}", where=self._ends.said_in)
        self._run.cancel()

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()


def _why_by_turns(run: Run[Any], ends: EndsEarly) -> str:
    if not ends.max_turns or run.result.error_type != "TurnLimit":
        return ""
    return say("subagents.out_of_turns", turns=ends.max_turns, where=ends.said_in)


def _output_so_far(run: Run[Any], session: Session, name: str, why: str, outer: Any) -> ToolOutput:
    """What it had said until its turns or its time were over, and that they were."""
    if outer is not None:
        outer.tell(NoticeGiven("subagent", say("subagents.ended_early", agent=name, reason=why)))
    said = [item.message.text for item in session.history.view.items if item.message.role == "assistant" and item.message.text.strip()]
    words = f"{said[-1]}\n\n" if said else ""
    text = f"{words}({name} was ended before it was done: {why}. This is what it had{'' if said else ': it had said nothing yet'}.)"
    extras = jsontext.dumps({"session_id": session.id})
    display, changed, sources = one_line(text, MAX_TITLE_CHARS), run.result.changed, run.result.sources
    return ToolOutput((Text(text),), display=display, changed=changed, extras=extras, sources=sources)


async def _assemble(template: Template, caller: Harness | None, name: str, call_id: str) -> Harness:
    made_like = template.harness
    session = _open_session(made_like, caller, call_id)
    try:
        inner = assemble_like(made_like, session, caller)
    except BaseException:
        session.close()
        raise
    inner.name = made_like.name or name
    inner.account = made_like.account if made_like is not caller else None  # else its budget is among the caller's
    if caller is not None:
        inner.called_by, inner.boundary.outer = caller, caller.boundary
        inner.further_secrets += caller.further_secrets
        inner.hooks = caller.hooks.beside(inner.hooks) if caller.hooks is not None else inner.hooks
        inner.depth_left = min(caller.depth_left - 1, made_like.limits.max_depth)
        inner.approvals.work_for(caller.approvals)
    if (ask := inner.approvals.ask) is not None:
        inner.approvals.ask = _asking_for(name, ask)
    purse = caller.session.purse if caller is not None else None
    accounts = [*(purse.accounts if purse is not None else ()), *([inner.account] if inner.account is not None else ())]
    if accounts:
        from dragoman.loop.charging import Purse

        session.purse = Purse(accounts, session.history)
    if template.change is not None:
        try:
            template.change(inner)
        except BaseException:
            await _close(inner)
            raise
    return inner


async def _with_words_of_hooks(caller: Harness | None, inner: Harness, name: str, prompt: str) -> str:
    if caller is None or caller.hooks is None:
        return prompt
    from dragoman.values.hooks import SubagentStart

    try:
        words = await caller.hooks.before_subagent(SubagentStart(name, inner.session.id, prompt))
    except BaseException:
        await _close(inner)
        raise
    return f"{prompt}\n\n{words}" if words else prompt


def _asking_for(name: str, ask: Ask) -> Ask:
    """The same person is asked, and the question says who wants it: `general › explore` where one called another."""
    return lambda call, intent: ask(call, msgspec.structs.replace(intent, asker=f"{name} › {intent.asker}" if intent.asker else name))


def _open_session(template: Harness, caller: Harness | None, call_id: str) -> Session:
    """Kept where the caller's is, and linked to its call; else in memory."""
    log = caller.session.log if caller is not None else None
    options = SessionOptions(log.store if log is not None else None)
    session, _ = open_session(options, template.workspace.root, template.own_model.provider.blobs, further=template.writable[1:])
    if session.log is not None and caller is not None:
        session.log.parent = (caller.session.id, call_id)
    return session


def _make_run(inner: Harness, template: Template, prompt: str) -> Run[Any]:
    if template.wanted is None and not template.checks:
        return Run(inner, user(prompt), RunOptions(instructions=template.instructions, deps=inner.deps))
    from dragoman.loop.typed_answer import TypedAnswer

    typed: TypedAnswer[Any] = TypedAnswer(inner, template.wanted, template.checks)
    options = RunOptions(instructions=template.instructions, ask_for=typed.ask, deps=inner.deps)
    return Run(inner, user(prompt), options, typed)


def _teller(outer: Run[Any] | None, call_id: str, name: str) -> Callable[[TurnEvent], None]:
    def tell(event: TurnEvent) -> None:
        if outer is not None:
            outer.tell(SubagentEvent(call_id, name, event))

    return tell


async def _pass_events_on(run: Run[Any], tell: Callable[[TurnEvent], None]) -> None:
    """Pass events on until the run is over. If the caller is cancelled, cancel the run and pass on its last events too."""
    events = aiter(run)
    try:
        async for event in events:
            tell(event)
    except asyncio.CancelledError:
        run.cancel()
        await run.finished()
        async for event in events:
            tell(event)
        raise


def _charge(caller: Harness, inner: Harness, run: Run[Any], name: str, call_id: str) -> None:
    """What the inner run took stands in the caller's record, request by request: so its total and its cost are complete."""
    caller.models.learn_from(inner.models)
    caller.inner_requests += run.result.requests
    for deployment, model, usage in inner.bill.paid(inner.session.history.entries):
        caller.session.history.spend(model, usage, name, deployment, call_id=call_id, session_id=inner.session.id)


def _take_changes(caller: Harness, inner: Harness, call_id: str) -> None:
    """What one that works for the caller in the same folders did to files stands in the caller's record too: undoing its run undoes it."""
    entries = inner.session.history.entries
    if caller.session.log is None or not any(isinstance(entry, FilesChanged) for entry in entries):
        return
    from dragoman.sessions.undo import file_changes

    for change in file_changes(entries):
        caller.session.history.change_files(call_id, change.files, unsure=change.unsure)


async def _close(inner: Harness) -> None:
    await inner.stop_connecting()
    await inner.session.aclose()
    if inner.commands is not None:
        inner.commands.close()
    await inner.models.aclose()


async def _output_of(run: Run[Any], session: Session, name: str) -> ToolOutput:
    result, extras = run.result, jsontext.dumps({"session_id": session.id})
    if result.is_pending:
        waiting = ", ".join(call.name for call in result.pending)
        return error_output(f"{name} could not go on: {waiting} waits for a decision, and a called agent cannot wait", "pending", extras)
    if result.error:
        had = f"\n\nIts last words before that:\n{result.text}" if result.text else ""
        failed = error_output(f"{name} failed: {result.error_type}: {result.error}{had}", "agent_failed", extras)
        return msgspec.structs.replace(failed, changed=result.changed)
    output = await to_output(result.output, name)
    return msgspec.structs.replace(output, changed=result.changed, extras=extras, hand_over=None, sources=result.sources)
