"""Of which files the model has the content before its eyes. What it no longer sees it must read again before it changes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dragoman.base import jsontext
from dragoman.context.view import View
from dragoman.tools.workspace import Refused, Workspace
from dragoman.values.messages import Text, ToolCall
from dragoman.values.record import Entry, ToolStarted

_READ, _READ_MANY, _WRITE = "read_file", "read_many_files", "write_file"


def files_in_view(view: View, entries: Iterable[Entry], workspace: Workspace) -> set[str]:
    """Absolute real paths: read and not pruned since, or written whole."""
    edited = {entry.call_id: entry.arguments for entry in entries if isinstance(entry, ToolStarted)}
    outputs = {outcome.result.call_id: outcome.result for outcome in view.outcomes}
    found: set[str] = set()
    for call in _calls(view):
        result = outputs.get(call.id)
        if result is None or result.is_error or (call.name != _WRITE and call.id in view.pruned):
            continue
        text = "".join(part.text for part in result.content if isinstance(part, Text))
        for path in _named(call, edited.get(call.id) or call.arguments, text):
            try:
                found.add(workspace.resolve(path))
            except Refused:
                continue
    return found


def _calls(view: View) -> Iterator[ToolCall]:
    for item in view.items:
        for call in item.message.calls:
            if call.name in (_READ, _READ_MANY, _WRITE):
                yield call


def _named(call: ToolCall, arguments: str, output: str) -> Iterator[str]:
    args = jsontext.decode_object(arguments or "{}") or {}
    if isinstance(path := args.get("file_path"), str):
        yield path
    if call.name == _READ_MANY:  # what its patterns matched stands in the output, a headline each
        for line in output.splitlines():
            if line.startswith("--- ") and line.endswith(" ---"):
                yield line[4:-4]
