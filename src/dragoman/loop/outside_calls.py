"""Calls that are made for a prompt before its run begins, as by commands in files: hooks, rules and the user decide about them as about
the model's own, and nothing that they return shows a key of ours."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from dragoman.base import jsontext
from dragoman.tools.job import call_at_work
from dragoman.tools.results import prepare_to_send
from dragoman.values.calls import Allow, Deny, Later, Tool
from dragoman.values.messages import ToolCall

if TYPE_CHECKING:
    from dragoman.loop.harness import Harness
    from dragoman.values.calls import ToolOutput


async def decide_outside(harness: Harness, call: ToolCall) -> Allow | Deny | Later:
    decide, hooks = harness.approvals.decide, harness.hooks
    if hooks is not None:
        decide = hooks.decide(harness.approvals, decide)
        if hooks.before is not None:
            await hooks.before(call)
    decided = decide(call)
    return await decided if isinstance(decided, Awaitable) else decided


async def run_outside(harness: Harness, tool: Tool, call: ToolCall) -> ToolOutput:
    """What an allowed call returns, without our keys."""

    async def go() -> ToolOutput:
        def show(text: str, *more: object) -> None: ...

        at_work = call_at_work.set((call, show))  # so that a command reaches no further than was decided
        try:
            return await tool.run(jsontext.decode_object(call.arguments) or {}, show)
        finally:
            call_at_work.reset(at_work)

    around = harness.hooks.around if harness.hooks is not None else None
    output = await go() if around is None else await around(call, go)
    return await prepare_to_send(output, call.name, harness.outputs)
