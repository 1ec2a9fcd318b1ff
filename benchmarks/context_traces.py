"""Real sessions for the context benchmark, read in place from the folder `traces` of other programs' data: nothing of them is copied.

pi and Claude Code are read as `dragoman sessions import` reads them; Cline and SWE-agent have readers here. SWE-agent wrote down neither
time nor usage: a call is taken to be made every 20 seconds, its result 10 seconds later, and sizes are estimates.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks.corpora import CORPORA
from dragoman.context.trace import TracedCall, trace_calls
from dragoman.context.view import View
from dragoman.foreign.sessions import import_session
from dragoman.loop.history import History
from dragoman.values.messages import FinishReason, Message, Response, Text, ToolCall, ToolResult, assistant, user
from dragoman.values.record import Entry
from dragoman.values.usage import Usage

FOLDER = CORPORA / "traces"
CLAUDE_SCALE = 1.2
"""Tokens Claude makes of one of our raw estimate, measured on the sessions that report usage."""


class Trace(NamedTuple):
    name: str
    entries: tuple[Entry, ...]
    has_usage: bool

    def calls(self, *, by_clock: bool = False) -> tuple[TracedCall, ...]:
        return trace_calls(self.entries, prior=CLAUDE_SCALE, by_clock=by_clock)

    def view(self) -> View:
        view = View()
        for entry in self.entries:
            view.feed(entry)
        return view


def traces() -> list[Trace]:
    """All there are; none where the folder is not beside the checkout."""
    return list(_read())


def _read() -> Iterator[Trace]:
    for path in sorted(FOLDER.glob("pi-mono/*.jsonl")):
        yield Trace("pi", import_session(path).entries, has_usage=True)
    for path in sorted(FOLDER.glob("claude-code/*.jsonl")):
        yield Trace(f"claude-code {path.stem[:4]}", import_session(path).entries, has_usage=True)
    for path in sorted(FOLDER.glob("cline/*.json")):
        yield Trace("cline", _cline(json.loads(path.read_text(encoding="utf-8"))), has_usage=True)
    for path in sorted(FOLDER.glob("swe-agent/*.traj")):
        yield Trace(f"swe-agent {path.stem.partition('-')[0]}", _swe_agent(json.loads(path.read_text(encoding="utf-8"))), has_usage=False)


class _Clock:
    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def __call__(self) -> int:
        return self.ms


def _cline(session: dict[str, Any]) -> tuple[Entry, ...]:
    """Anthropic blocks, with the time of each message and the usage of each answer. A day later another model answered once: left out."""
    clock = _Clock()
    history = History(now_ms=clock)
    history.configure("", session.get("system_prompt", ""))
    open_calls: dict[str, ToolCall] = {}
    for message in session["messages"]:
        clock.ms = message["ts"]
        blocks = message["content"]
        text = tuple(Text(block.get("text") or json.dumps(block)) for block in blocks if block["type"] in ("text", "file"))
        if message["role"] == "assistant":
            calls = [ToolCall(block["id"], block["name"], json.dumps(block["input"])) for block in blocks if block["type"] == "tool_use"]
            open_calls = {call.id: call for call in calls}
            model = message["modelInfo"]["id"]
            if history.view.model not in ("", model):
                break
            if not history.view.model:
                history.change_model(model, "cline")
            history.answer(_answer(Message("assistant", (*text, *calls)), _cline_usage(message["metrics"])))
            continue
        for block in blocks:
            if block["type"] == "tool_result":
                call = open_calls[block["tool_use_id"]]
                content = block["content"] if isinstance(block["content"], str) else json.dumps(block["content"])
                history.finish_tool(ToolResult(call.id, call.name, (Text(content),), is_error=bool(block.get("is_error"))))
        if text:
            history.say(Message("user", text))
    return tuple(history.entries)


def _cline_usage(metrics: dict[str, Any]) -> Usage:
    return Usage.from_total(metrics["inputTokens"], cache_read=metrics["cacheReadTokens"], output=metrics["outputTokens"])


def _swe_agent(session: dict[str, Any]) -> tuple[Entry, ...]:
    """Actions and observations. Where an action was written as text it is taken for a call of bash."""
    clock = _Clock()
    history = History(now_ms=clock)
    system = "\n".join(message["content"] for message in session["history"] if message["role"] == "system")
    history.configure("claude", system, deployment="swe-agent")
    call: ToolCall | None = None
    for number, message in enumerate(session["history"]):
        match message["role"]:
            case "assistant":
                written = (message.get("tool_calls") or [{"function": {"name": "bash", "arguments": json.dumps(message["action"])}}])[0]
                call = ToolCall(f"call_{number}", written["function"]["name"], written["function"]["arguments"])
                clock.ms += 10_000
                history.answer(_answer(assistant(message["content"], call), None))
            case "user" | "tool" if call is not None:
                clock.ms += 10_000
                history.finish_tool(ToolResult(call.id, call.name, (Text(message["content"]),)))
            case "user":
                history.say(user(message["content"]))
            case _:
                pass
    return tuple(history.entries)


def _answer(message: Message, usage: Usage | None) -> Response:
    return Response(message, FinishReason.TOOL_CALLS if message.calls else FinishReason.STOP, usage=usage)
