"""Logs of earlier versions, read as if this version had written them: the one place that knows the old formats.

Entries did not always say who spoke: the program's own messages were recognised by their first words. Results did not say which files they
show: that is derived from the tool's name, its arguments and its headlines.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import msgspec

from dragoman.base import jsontext
from dragoman.values.messages import Message, Text, ToolCall
from dragoman.values.record import About, Configured, Entry, Said, Speaker, Started, ToolFinished, ToolStarted

_BEGINS: tuple[tuple[str, About], ...] = (
    ("This is Dragoman. We are setting up the context for our chat.", "environment"),
    ("This is Dragoman. Something in the context of our chat has changed:", "changed"),
    ("Your last answer was cut off at the output limit. None of its tool calls was run. ", "cut"),
    ("Your last answer held a tool call that could not be read (", "malformed"),
    ("A tool call in your last answer could not be read", "feedback"),
    ("Answer my question now, in a short sentence, from what the tools have returned. Do not call a tool.", "answer_now"),
    ("My question was: ", "answer_now"),
    ("You seem to be going in circles: ", "loop"),
)
"""How the program's messages used to begin."""


def upgrade(entries: Iterable[Entry]) -> list[Entry]:
    """The same entries, with the fields that earlier versions left out filled in."""
    upgrading = Upgrader()
    return [upgrading.take(entry) for entry in entries]


class Upgrader:
    """Takes the entries of one log in order. An entry of this version comes back unchanged."""

    def __init__(self) -> None:
        self._directory = ""
        self._calls: dict[str, ToolCall] = {}
        """Open calls of answers that an earlier version wrote."""
        self._edited: dict[str, str] = {}

    def take(self, entry: Entry) -> Entry:
        match entry:
            case Started(directories=directories) | Configured(directories=directories):
                self._directory = self._directory or "".join(directories[:1])
            case Said(by=""):
                return self._say(entry)
            case ToolStarted(call_id=call_id, arguments=arguments) if arguments:
                self._edited[call_id] = arguments
            case ToolFinished(result=result) if (call := self._calls.pop(result.call_id, None)) is not None and not result.is_error:
                return self._finish(entry, call)
            case _:
                pass
        return entry

    def _say(self, entry: Said) -> Said:
        message = entry.message
        if message.role == "assistant":
            self._calls = {call.id: call for call in message.calls}
            self._edited = {}
        by, about = _speaker_of(message)
        return msgspec.structs.replace(entry, by=by, about=about)

    def _finish(self, entry: ToolFinished, call: ToolCall) -> ToolFinished:
        args = jsontext.decode_object(self._edited.get(call.id) or call.arguments or "{}") or {}
        paths = [path] if isinstance(path := args.get("file_path"), str) else []
        match call.name:
            case "read_file":
                return msgspec.structs.replace(entry, saw=self._absolute(paths))
            case "read_many_files":
                return msgspec.structs.replace(entry, saw=self._absolute(_headlines(entry)))
            case "write_file":
                return msgspec.structs.replace(entry, wrote=self._absolute(paths))
            case _:
                return entry

    def _absolute(self, paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(os.path.realpath(os.path.join(self._directory, os.path.expanduser(path))) for path in paths)


def _speaker_of(message: Message) -> tuple[Speaker, About]:
    if message.role == "assistant":
        return "model", ""
    text = message.text
    about: About = next((about for begins, about in _BEGINS if text.startswith(begins)), "")
    return ("program" if about else "person"), about


def _headlines(entry: ToolFinished) -> Iterable[str]:
    for part in entry.result.content:
        for line in part.text.splitlines() if isinstance(part, Text) else ():
            if line.startswith("--- ") and line.endswith(" ---"):
                yield line[4:-4]
