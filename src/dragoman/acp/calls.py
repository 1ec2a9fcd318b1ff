"""A call as the client shows it: made of its block alone, so that a call is the same whether it is watched or loaded."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.acp.diffs import read_diff
from dragoman.acp.outgoing import ContentPart, Kind, Location, NewToolCall, Part, Status, TextBlock, ToolCallUpdate
from dragoman.base import jsontext
from dragoman.conversation.command_result import clean_output
from dragoman.conversation.types import ViewEvent
from dragoman.words import say

MOST_CHARS = 30_000
"""Of what a call has put out, its beginning and its end. The record has all of it."""
LIVE_CHARS = 8_000
"""Of a command at work: each update tells all of it anew."""
INNER_LINES = 20
MOST_LINE = 2**32 - 1
"""Of a place: more is no number to the protocol."""
KINDS: Mapping[str, Kind] = {
    "read_file": "read",
    "read_many_files": "read",
    "list_directory": "read",
    "shell_output": "read",
    "edit": "edit",
    "write_file": "edit",
    "save_memory": "edit",
    "glob": "search",
    "grep": "search",
    "web_search": "search",
    "run_shell": "execute",
    "web_fetch": "fetch",
    "task": "think",
    "todo": "think",
}
_STATUS: Mapping[str, Status] = {"waiting": "pending", "running": "in_progress", "done": "completed"}
_PATHS = ("file_path", "path", "directory")


def kind_of(name: str) -> Kind:
    return KINDS.get(name, "other")


class ShownCall:
    """One call, as far as the client knows it. `change` takes an event, `news` gives the update that tells what is new since."""

    def __init__(self, id: str, directory: str) -> None:
        self._id = id
        self._directory = directory
        self._title = ""
        self._state = ""
        self._data: dict[str, Any] = {}
        self._live = ""
        """What it has put out so far."""
        self._inner: list[str] = []
        """What a subagent in it has done."""
        self._told: ToolCallUpdate | None = None

    def news(self) -> NewToolCall | ToolCallUpdate | None:
        now = self._as_told()
        before, self._told = self._told, now
        if before is None:
            return NewToolCall(
                self._id,
                now.title or "",
                now.name or "",
                now.kind or "other",
                now.status or "pending",
                now.content or (),
                now.locations or (),
                now.raw_input,
                now.raw_output,
            )
        fields = ("title", "name", "kind", "status", "content", "locations", "raw_input", "raw_output")
        changed = {name: getattr(now, name) for name in fields if getattr(now, name) != getattr(before, name)}
        return ToolCallUpdate(self._id, **changed) if changed else None

    def add_inner(self, line: str) -> None:
        """A call of a subagent in it has ended."""
        self._inner = [*self._inner, line][-INNER_LINES:]

    @property
    def has_ended(self) -> bool:
        return self._state not in ("", "waiting", "running")

    def change(self, event: ViewEvent) -> None:
        if not event.append:
            self._title, self._state, self._data = event.text, event.state, dict(event.data)
            self._live += self._data.pop("output_so_far", "")
            return
        self._title += event.text
        self._state = event.state or self._state
        if event.passing and "call_id" not in event.data:
            self._live = (self._live + event.data.get("output", ""))[-4 * LIVE_CHARS :]
            self._data |= {key: value for key, value in event.data.items() if key in ("progress", "inner")}
        else:
            self._data |= event.data

    # --- what is told

    def _as_told(self) -> ToolCallUpdate:
        data, name = self._data, self._data.get("name", "")
        args = jsontext.decode_object(data.get("arguments") or "{}")
        content, places = self._content(name)
        raw = args if args is not None else data.get("arguments")
        return ToolCallUpdate(
            self._id,
            self._title,
            name,
            kind_of(name),
            self._status(),
            content,
            tuple(places or self._locations(args or {})),
            raw,
            self._raw_output(),
        )

    def _status(self) -> Status:
        if self._state == "done" and self._data.get("exit_code"):
            return "failed"
        return _STATUS.get(self._state, "failed")

    def _raw_output(self) -> dict[str, Any] | None:
        if self._data.get("exit_code") is None:
            return None
        command = self._data.get("command") or {}
        return {"exitCode": self._data["exit_code"], "timedOut": bool(command.get("timed_out"))}

    def _content(self, name: str) -> tuple[tuple[Part, ...], list[Location]]:
        data = self._data
        if not self.has_ended:
            return self._live_content(), []
        if self._state == "done" and kind_of(name) == "edit" and (changed := data.get("changed")):
            parts, places = read_diff(data.get("display") or "", changed[0])
            if parts:
                return tuple(parts), places
        if name == "run_shell" and (command := data.get("command")) is not None:
            said = clean_output(f"{command.get('stdout', '')}{command.get('stderr', '')}").strip("\n")
            notes = [say("results.exit_code", code=data["exit_code"])] if data.get("exit_code") else []
            notes += [data["result"]] if self._state != "done" else []
            return texts(fenced(said), *notes, *(data.get("notes") or ())), []
        output = data.get("output") or ""
        if self._state != "done":
            result = data.get("result") or ""
            return texts("" if output.startswith(result) else result, output), []
        if kind_of(name) == "edit":
            return texts(data.get("display") or output), []
        return texts(fenced(output) if name in KINDS and kind_of(name) != "think" else output), []

    def _live_content(self) -> tuple[Part, ...]:
        inner = self._data.get("inner") or {}
        lines = [*self._inner, *filter(None, (inner.get("now"), inner.get("counts")))]
        live = clean_output(self._live)[-LIVE_CHARS:]
        return texts(fenced(live.strip("\n")), "\n".join(lines), self._data.get("progress") or "")

    def _locations(self, args: Mapping[str, Any]) -> list[Location]:
        named = list(self._data.get("changed") or ())
        if not named:
            several = args.get("paths")
            given = [*map(args.get, _PATHS), *(several if isinstance(several, list) else ())]
            named = [path for path in given if isinstance(path, str) and path]
        offset = args.get("offset")
        line = offset if isinstance(offset, int) and 0 < offset <= MOST_LINE else None
        paths = dict.fromkeys(os.path.join(self._directory, _expanded(path)) for path in named)
        return [Location(path, line) for path in paths]


def _expanded(path: str) -> str:
    try:
        return os.path.expanduser(path)
    except ValueError:  # a NUL in the name of a person
        return path


def texts(*written: str) -> tuple[Part, ...]:
    """A part for each that says something."""
    return tuple(ContentPart(TextBlock(str(text))) for text in written if text.strip())


def fenced(text: str) -> str:
    """As a client that reads Markdown shows it letter by letter."""
    text = text.strip("\n")
    if not text.strip():
        return ""
    if len(text) > MOST_CHARS:
        text = f"{text[: MOST_CHARS // 2]}\n[…]\n{text[-MOST_CHARS // 2 :]}"
    longest = max((len(run) for run in _backticks(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _backticks(text: str) -> Sequence[str]:
    return re.findall(r"`{3,}", text)
