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
from dragoman.values.contracts import Intent, Show, ToolOutput, run_at_work
from dragoman.values.events import SubagentEvent, TurnEvent
from dragoman.values.messages import ToolSpec, user

if TYPE_CHECKING:
    from dragoman.loop.typed_answer import Wanted

MAX_TITLE_CHARS = 120
PROMPT = "What it shall do, with all it has to know: it sees nothing of this conversation."


class Template(msgspec.Struct, frozen=True):
    """What a called agent is made like. Its own conversation is not touched, so any number of calls may run at once."""

    harness: Harness
    wanted: Wanted | None = None
    checks: Sequence[Callable[[Any], Any]] = ()


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


async def run_subagent(template: Template, name: str, prompt: str) -> ToolOutput:
    """Have an agent like the template answer, inside the call and the run that the current task belongs to, if there are any.

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
    inner = _assemble(template.harness, caller, name, call_id)
    if outer is not None and template.harness.deps is None:
        inner.deps = outer.deps
    run = _make_run(inner, template, prompt)
    try:
        await _pass_events_on(run, _teller(outer, call_id, name))
    finally:
        if caller is not None:
            _charge(caller, inner, run, name, call_id)
        await _close(inner)
    return await _output_of(run, inner.session, name)


def _assemble(template: Harness, caller: Harness | None, name: str, call_id: str) -> Harness:
    session = _open_session(template, caller, call_id)
    try:
        inner = assemble_like(template, session, caller)
    except BaseException:
        session.close()
        raise
    inner.name = template.name or name
    inner.account = template.account
    if caller is not None:
        inner.depth_left = min(caller.depth_left - 1, template.limits.max_depth)
    purse = caller.session.purse if caller is not None else None
    accounts = [*(purse.accounts if purse is not None else ()), *([template.account] if template.account is not None else ())]
    if accounts:
        from dragoman.loop.charging import Purse

        session.purse = Purse(accounts, session.history)
    return inner


def _open_session(template: Harness, caller: Harness | None, call_id: str) -> Session:
    """Kept where the caller's is, and linked to its call; else in memory."""
    log = caller.session.log if caller is not None else None
    options = SessionOptions(log.store if log is not None else None)
    session, _ = open_session(options, template.workspace.root, template.own_model.provider.blobs)
    if session.log is not None and caller is not None:
        session.log.parent = (caller.session.id, call_id)
    return session


def _make_run(inner: Harness, template: Template, prompt: str) -> Run[Any]:
    if template.wanted is None and not template.checks:
        return Run(inner, user(prompt), RunOptions(deps=inner.deps))
    from dragoman.loop.typed_answer import TypedAnswer

    typed: TypedAnswer[Any] = TypedAnswer(inner, template.wanted, template.checks)
    return Run(inner, user(prompt), RunOptions(ask_for=typed.ask, deps=inner.deps), typed)


def _teller(outer: Run[Any] | None, call_id: str, name: str) -> Callable[[TurnEvent], None]:
    def tell(event: TurnEvent) -> None:
        if outer is not None:
            outer.tell(SubagentEvent(call_id, name, event))

    return tell


async def _pass_events_on(run: Run[Any], tell: Callable[[TurnEvent], None]) -> None:
    """Until the run is over. Where the caller is cancelled, so is the run, and what it told of its end is passed on too."""
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
    caller.models.know(inner.models)
    caller.inner_requests += run.result.requests
    for deployment, model, usage in inner.bill.paid(inner.session.history.entries):
        caller.session.history.spend(model, usage, name, deployment, call_id=call_id, session_id=inner.session.id)


async def _close(inner: Harness) -> None:
    await inner.stop_connecting()
    await inner.session.aclose()
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
    return msgspec.structs.replace(await to_output(result.output, name), changed=result.changed, extras=extras, hand_over=None)
