"""`dragoman --search QUERY`: one web search that no model asks for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dragoman.base import jsontext
from dragoman.cli.outcome import Outcome
from dragoman.loop.searching import WebSearchResult
from dragoman.loop.web import SEARCH_TOOL
from dragoman.values.events import TextDelta, ToolCallFinished, ToolCallRequested, TurnFinished
from dragoman.values.messages import FinishReason, ToolCall, tool_result
from dragoman.values.record import ToolOutcome

if TYPE_CHECKING:
    from dragoman.cli.reports import Report
    from dragoman.loop.agent import Agent


async def search_headless(agent: Agent, query: str, report: Report, *, as_text: bool) -> Outcome:
    """Search, and report it as a call that the program made."""
    began_s = time.monotonic()
    call = ToolCall("search_1", SEARCH_TOOL, jsontext.dumps({"query": query}))
    report.take(ToolCallRequested(call, client_initiated=True))
    try:
        found = await agent.search(query)
    except BaseException as error:
        report.take(_ended(call, error))
        raise
    report.take(_finished(call, found))
    if as_text:
        report.take(TextDelta(found.display))
        report.take(TurnFinished(FinishReason.STOP, found.usage))
    return Outcome(
        response=found.display if as_text else found.text,
        sources=found.sources,
        session_id=agent.session_id,
        not_saved=agent.not_saved,
        usage=found.usage,
        cost_usd=found.cost_usd,
        requests=found.requests,
        tool_calls=1,
        duration_ms=int((time.monotonic() - began_s) * 1000),
    )


def _finished(call: ToolCall, found: WebSearchResult) -> ToolCallFinished:
    result = tool_result(call, found.text)
    return ToolCallFinished(
        call.id, (result,), display=found.display, content_length=len(found.text), name=call.name, sources=found.sources
    )


def _ended(call: ToolCall, error: BaseException) -> ToolCallFinished:
    """How it ended without a result: every call that is told has an end."""
    words, kind = str(error) or type(error).__name__, type(error).__name__
    outcome: ToolOutcome = "failed" if isinstance(error, Exception) else "cancelled"
    result = tool_result(call, words, is_error=True)
    return ToolCallFinished(call.id, (result,), error=words, error_type=kind, outcome=outcome, name=call.name)
