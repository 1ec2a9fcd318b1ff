"""Server tools as the model gets them: each under its own name, or all behind `search_tools` and `call_tool`.

Nothing of a server is loaded or started before one of its tools is called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.base import jsontext
from dragoman.base.text import clip
from dragoman.base.visible import escape_hidden, strip_hidden
from dragoman.mcp_client.configured import ConfiguredServer
from dragoman.mcp_client.contracts import McpTool
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.calls import Intent, Show, Tool, ToolOutput, run_at_work
from dragoman.values.messages import Blob, Text, ToolSpec

if TYPE_CHECKING:
    from dragoman.mcp_client.contracts import Progress
    from dragoman.mcp_client.running import ServerAtWork

MAX_DESCRIPTION_CHARS = 2_000
SEARCH, CALL = "search_tools", "call_tool"
MAX_FOUND = 8
_CUT = " […the description is longer and was cut here]"
_WORD = re.compile(r"[a-z0-9]+")

Report = Callable[[Show], "Progress"]
"""What tells the user how far a call has come."""
Find = Callable[[], "ServerAtWork"]


def spec_of(name: str, server: ConfiguredServer, tool: McpTool) -> ToolSpec:
    """The tool as the model gets it. Never `read_only`: a server cannot exempt its own tools from approval."""
    from dragoman.mcp_client.schemas import tame

    schema, lost = tame(tool.input_schema)
    words = strip_hidden(" ".join(filter(None, (tool.description.strip() or tool.title, lost))) or tool.name)
    return ToolSpec.of(
        name,
        jsontext.valid_unicode(words if len(words) <= MAX_DESCRIPTION_CHARS else f"{words[: MAX_DESCRIPTION_CHARS - len(_CUT)]}{_CUT}"),
        schema,
        display_name=clip(f"{server.name}: {tool.title or tool.name}", 60),
        kind="fetch" if server.host else "other",
    )


class ServerTool:
    """One tool of a server. `find` gives the server, which is made when it is called first."""

    def __init__(self, spec: ToolSpec, server: ConfiguredServer, tool: McpTool, find: Find, report: Report) -> None:
        self.spec = spec
        self.server = server
        self.tool = tool
        self._find = find
        self._report = report
        self.timeout_s = server.call_timeout_s
        self.runs_beside = tool.annotations.get("readOnlyHint") is True

    def intend(self, args: Mapping[str, Any]) -> Intent:
        arguments = jsontext.dumps(args)
        name = f"{self.server.name}: {self.tool.name}"
        title = clip(escape_hidden(f"{name} {arguments}", one_line=True), 100)
        if wrong := self._problems(args):
            return Intent(title, problem=f"{self.spec.name} was not run, because its arguments do not fit: {'; '.join(wrong)}")
        return Intent(title, escape_hidden(f"{name}\n{_indented(args)}"), scope=self.server.host)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        from dragoman.mcp_client.results import output_of
        from dragoman.mcp_client.running import ServerFailed

        told: list[str] = []
        try:
            result = await self._find().call(self.tool.name, args, self._report(show), told.append)
        except ServerFailed as failed:
            return ToolOutput((Text(str(failed)),), display=str(failed), is_error=True, error_type="server_failed")
        output = output_of(result, _keep)
        if not told:
            return output
        notes = "".join(f"[{each}]\n" for each in told)
        return msgspec.structs.replace(output, content=(Text(notes), *output.content), display=f"{notes}{output.display}")

    async def aclose(self) -> None:
        """Nothing: servers are ended together."""

    def _problems(self, args: Mapping[str, Any]) -> list[str]:
        from dragoman.mcp_client.schemas import problems_of

        return problems_of(self.tool.input_schema, args) if self.tool.input_schema else []


def _indented(args: Mapping[str, Any]) -> str:
    import json

    return json.dumps(args, indent=2, ensure_ascii=False)


def _keep(mime: str, data: bytes) -> Blob:
    run = run_at_work.get()()
    if run is None:
        return MemoryBlobs().put(mime, data)
    return run.blobs.put(mime, data)


class MissingTool:
    """A tool that is in the record but no longer offered: its definition is still sent, unchanged."""

    def __init__(self, spec: ToolSpec, why: str) -> None:
        self.spec = spec
        self._why = why

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return Intent(self.spec.name, problem=self._why)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        return ToolOutput((Text(self._why),), is_error=True, error_type="server_failed")


# --- many tools ----------------------------------------------------------------------------------------------------------------


class ToolIndex:
    """The tools of all servers, by name, for searching. It may grow; the definitions the model gets stay the same."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> None:
        self._tools.setdefault(tool.spec.name, tool)

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def find(self, name: str) -> Tool | None:
        """By the name that the model is given, or by the server's own where no two servers have it."""
        if name in self._tools:
            return self._tools[name]
        own = [tool for tool in self._tools.values() if isinstance(tool, ServerTool) and tool.tool.name == name]
        return own[0] if len(own) == 1 else None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def search(self, query: str, most: int = MAX_FOUND) -> list[Tool]:
        """The tools that match most of the words first; a match in the name counts three times."""
        words = set(_WORD.findall(query.lower()))
        scored = [(_score(words, tool.spec), -place, tool) for place, tool in enumerate(self._tools.values())]
        return [tool for score, _, tool in sorted(scored, key=lambda each: each[:2], reverse=True)[:most] if score or not words]


def _score(words: set[str], spec: ToolSpec) -> int:
    name, text = spec.name.lower(), spec.description.lower()
    return sum(3 * (word in name) + (word in text) for word in words)


class SearchTools:
    """Finds tools of servers by words, where there are too many to list."""

    def __init__(self, spec: ToolSpec, index: ToolIndex) -> None:
        self.spec = spec
        self._index = index

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return Intent(clip(escape_hidden(f"search tools: {args.get('query', '')}", one_line=True), 100))

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        found = self._index.search(str(args.get("query", "")))
        if not found:
            some = ", ".join(self._index.names[:20])
            return ToolOutput((Text(f"No tool fits. There are {len(self._index.names)}, such as: {some}."),), display="0 tools")
        rows = [f"{tool.spec.name}\n{tool.spec.description}\narguments: {tool.spec.parameters}" for tool in found]
        return ToolOutput((Text("\n\n".join(rows)),), display=", ".join(tool.spec.name for tool in found))


class CallTool:
    """Calls a tool that was found. It is judged, shown and remembered as that tool."""

    def __init__(self, spec: ToolSpec, index: ToolIndex) -> None:
        self.spec = spec
        self._index = index

    @property
    def carried(self) -> tuple[str, ...]:
        return self._index.names

    def carry(self, name: str, args: Mapping[str, Any]) -> dict[str, Any] | None:
        tool = self._index.find(name)
        return None if tool is None else {"name": tool.spec.name, "arguments": dict(args)}

    def stands_for(self, args: Mapping[str, Any]) -> tuple[Tool, Mapping[str, Any]]:
        tool = self._index.get(str(args.get("name", "")))
        return (self, args) if tool is None else (tool, _inner(args))

    def intend(self, args: Mapping[str, Any]) -> Intent:
        name = str(args.get("name", ""))
        tool = self._index.get(name)
        if tool is None:
            return Intent(f"{CALL} {clip(name, 60)}", problem=f"there is no tool called {clip(name, 80)!r}: find its name with {SEARCH}")
        return tool.intend(_inner(args))

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        tool = self._index.get(str(args.get("name", "")))
        assert tool is not None  # `intend` has said so
        return await tool.run(_inner(args), show)


def _inner(args: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = args.get("arguments")
    if isinstance(inner, str):  # some models write them as text
        inner = jsontext.decode_object(inner)
    return inner if isinstance(inner, dict) else {}


def search_spec(counts: Mapping[str, int]) -> ToolSpec:
    """With how many tools each server has at the moment; a session keeps the text it began with."""
    servers = ", ".join(f"{name} ({count})" for name, count in counts.items())
    return ToolSpec.of(
        SEARCH,
        f"Find tools of connected servers by words. Returns their names, what they do and their arguments; then use {CALL}. "
        f"Servers and how many tools each has: {clip(servers, 1_500)}.",
        {
            "type": "object",
            "properties": {"query": {"type": "string", "description": "Words for what the tool should do, or its server's name."}},
            "required": ["query"],
            "additionalProperties": False,
        },
        display_name="Search tools",
        read_only=True,
    )


def call_spec() -> ToolSpec:
    return ToolSpec.of(
        CALL,
        f"Call a tool that {SEARCH} has found.",
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": f"The tool's name as {SEARCH} gives it."},
                "arguments": {"type": "object", "description": "Its arguments.", "additionalProperties": True},
            },
            "required": ["name"],
            "additionalProperties": False,
        },
        display_name="Call tool",
    )
