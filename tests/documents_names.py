"""The names that the lines of docs/reference/documents.md work with, made afresh for each line: no network, no key."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

import dragoman as dm
from dragoman.contracts import WrappingProvider
from dragoman.tools.web.search import WebSearch

FENCED = 'Let me look.\n\n```json\n{"tool_call": {"name": "read_file", "arguments": {"path": "a.txt"}}}\n```'
"""A call as document 000 has models write it."""
GROUNDING = {
    "groundingChunks": [{"web": {"uri": "https://example.org/rain", "title": "Rain"}}],
    "groundingSupports": [
        {"segment": {"startIndex": 0, "endIndex": 8, "text": "It rains"}, "groundingChunkIndices": [0], "confidenceScores": [0.9]}
    ],
}
NOW = 1_769_824_800_000
"""2026-01-31 02:00:00 UTC, the time of the mixed example of document 002."""
SUCCESS = '{"stdout": "done", "stderr": "", "exitCode": 0}' + " " * 60
FAILURE = '{"stdout": "", "stderr": "no such module", "exitCode": 1}'


def names(folder: Path, line: str = "store session") -> dict[str, Any]:
    """Those that the line works with; what is written to disk only where it asks for that."""
    call = dm.ToolCall("call-1", "read_file", '{"path": "a.txt"}')
    result = dm.tool_result(call, "alpha")
    messages = (
        dm.user("What does a.txt say?"),
        dm.assistant("Let me look.", call),
        dm.Message("user", (result,)),
        dm.assistant("It says alpha."),
    )
    read_file = dm.ToolSpec.of(
        "read_file", "Read a file", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    )
    request = dm.build_request("gemini-2.5-pro", messages, system="Be brief.", tools=[read_file])
    provider = scripted("text: Done.")
    store, session = stored_session(folder, messages) if "store" in line or "session" in line else (None, "")
    return {
        "dm": dm,
        "messages": messages,
        "call": call,
        "result": result,
        "request": request,
        "provider": provider,
        "folder": folder,
        "response": dm.Response(
            dm.assistant("It says alpha."), dm.FinishReason.STOP, "STOP", dm.Usage(output_tokens=4), "resp-1", "gemini-2.5-pro"
        ),
        "quiet": dm.build_request("gemini-2.5-pro", "Hi", settings=dm.Settings(thinking=dm.Thinking("off")), tools=[read_file]),
        "searching": dm.build_request("gemini-2.5-pro", "今天北京的天气怎么样？", settings=dm.Settings(0, 1, search=True)),
        "agent": dm.Agent(provider),
        "chat": dm.chat.Chat(provider),
        **connected(),
        "writer": scripted(f"text: {msgspec.json.encode(FENCED).decode()}"),
        "thinker": scripted(f"text: {msgspec.json.encode('<think>Hm.</think>Done.').decode()}"),
        "written": FENCED,
        "tides": tides,
        "shout": shout,
        "store": store,
        "session": session,
        "search_tool": WebSearch(unasked),
        "searcher": searcher(),
        "grounded": grounded(),
        "grounded_message": grounded_message(),
        "grounding": GROUNDING,
        "now": NOW,
        "commands": old_commands(),
        "mixed": mixed_results(),
        "conversation": [{"role": "tool", "content": SUCCESS, "timestamp": NOW - 20 * 60_000} for _ in range(7)],
    }


@cache
def connected() -> dict[str, dm.Connection]:
    """Models that lines only prepare requests for."""
    models = {
        "gemini": "gemini/gemini-2.5-pro",
        "gemini3": "gemini/gemini-3.8-flash",
        "openai": "openai/gpt-4.1",
        "anthropic": "anthropic/claude-sonnet-5-5",
    }
    return {name: dm.connect(model, key="sk-test") for name, model in models.items()}


def scripted(script: str) -> dm.testing.ScriptedProvider:
    """Gives this answer to every request."""
    return dm.testing.ScriptedProvider(f"script: end=repeat\n{script}")


@cache
def grounded() -> dm.Result:
    """A run whose answer names a source."""
    with dm.Agent(searcher()) as agent:
        return agent.run_sync("How is the weather?")


def searcher() -> dm.Provider:
    return Searcher(scripted("text: It rains."))


def grounded_message() -> dm.Message:
    account = dm.messages.Opaque("gemini", msgspec.json.encode(GROUNDING).decode())
    return dm.assistant("It rains.", dm.messages.Citation("https://example.org/rain", "Rain", "It rains", account))


class Searcher(WrappingProvider):
    """Answers as Gemini does that has searched."""

    async def stream(self, request: dm.Request) -> AsyncGenerator[dm.StreamEvent, None]:
        yield dm.ResponseFinished(dm.FinishReason.STOP, dm.Response(grounded_message(), dm.FinishReason.STOP))

    async def generate(self, request: dm.Request) -> dm.Response:
        return dm.Response(grounded_message(), dm.FinishReason.STOP)


async def unasked(query: str) -> Any:
    raise AssertionError("no line searches with it")


def tides(harbour: str) -> str:
    """When the tide is high today."""
    return f"{harbour}: 04:05 and 16:30"


async def shout(text: str) -> Sequence[dm.Text]:
    return [dm.Text(text.upper())]


def stored_session(folder: Path, messages: Sequence[dm.Message]) -> tuple[dm.stores.FileStore, str]:
    """A store with one session, which says these messages."""
    store = dm.stores.FileStore(folder / "sessions")
    if found := store.list(folder):  # the names are made anew
        return store, found[0].session_id
    history = dm.History()
    history.start("20260131-020000-1a2b3c4d", str(folder))
    for message in messages:
        if message.results:
            history.finish_tool(message.results[0])
        else:
            history.say(message)
    store.add(folder, history.entries)
    return store, store.list(folder)[0].session_id


def old_commands() -> list[dict[str, Any]]:
    """Seven results of commands, all 20 minutes old, the oldest first."""
    return [{"tool": "terminal-execute", "timestamp_ms": NOW - 20 * 60_000 + n, "content": SUCCESS} for n in range(7)]


def mixed_results() -> list[dict[str, Any]]:
    """The ten results of the mixed example, the newest first: what ran, how many minutes ago, and whether it failed."""
    said = ["read:5", "run:10", "run:15", "fail:20", "run:25", "run:30", "run:40", "run:70", "read:80", "fail:90"]
    rows = [(kind, int(minutes)) for kind, minutes in (each.split(":") for each in said)]
    tools = {"read": "filesystem-read", "run": "terminal-execute", "fail": "terminal-execute"}
    return [
        {"tool": tools[kind], "timestamp_ms": NOW - minutes * 60_000, "content": FAILURE if kind == "fail" else SUCCESS}
        for kind, minutes in rows
    ]
