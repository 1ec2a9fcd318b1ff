"""The tools that change files: write_file and edit. What a person approves is worked out by the same code that then does it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dragoman.base.atomic import write_atomically
from dragoman.base.visible import visible
from dragoman.tools.description import described
from dragoman.tools.diff import Diff, blocks_of_spans, diff_texts
from dragoman.tools.names import clipped, escaped, size_shown
from dragoman.tools.nearest import missing
from dragoman.tools.reading import read_whole
from dragoman.tools.replace import replace_text
from dragoman.tools.seen import WHOLE_FILE_BYTES, SeenFiles, state_of, state_of_large
from dragoman.tools.textfile import TextFile, binary_refusal, decode, folded, is_crlf
from dragoman.tools.worker import Stop, in_thread, never_stop
from dragoman.tools.workspace import PathRefused, Refused, Workspace
from dragoman.values.contracts import Intent, Show, ToolOutput
from dragoman.values.messages import Text, ToolSpec


class Existing(msgspec.Struct, frozen=True):
    """A file as it is before it is changed."""

    status: os.stat_result
    state: str
    data: bytes | None
    """None where it is larger than WHOLE_FILE_BYTES."""


class Change(msgspec.Struct, frozen=True):
    """What is to become of a file, worked out to the last byte."""

    path: str
    shown: str
    old: Existing | None
    data: bytes
    diff: Diff
    notes: tuple[str, ...] = ()


class WriteFile:
    def __init__(self, workspace: Workspace, seen: SeenFiles) -> None:
        self._workspace, self._seen = workspace, seen
        properties = {
            "file_path": {"type": "string", "description": "Path of the file."},
            "content": {"type": "string", "description": "The whole new content."},
        }
        self.spec = ToolSpec.of(
            "write_file",
            described("write_file"),
            {"type": "object", "properties": properties, "required": ["file_path", "content"]},
            display_name="Write file",
            kind="edit",
        )

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return _intend(self._workspace, "write_file", args, self._plan)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        return await _run(self._workspace, self._seen, args, self._plan)

    def _plan(self, args: Mapping[str, Any], stop: Stop) -> Change:
        path = self._workspace.resolve(args["file_path"], writing=True)
        content: str = args["content"]
        _require_valid(content, "content")
        old = read_existing(self._workspace, path, stop)
        shown = clipped(self._workspace.shown(path))
        if old is None:
            return creation(path, shown, content)
        if old.status.st_size:  # an empty file holds nothing that could be lost
            _require_seen(self._seen, path, shown, old)
        return _rewriting(path, shown, old, content)


class Edit:
    def __init__(self, workspace: Workspace, seen: SeenFiles) -> None:
        self._workspace, self._seen = workspace, seen
        properties = {
            "file_path": {"type": "string", "description": "Path of the file."},
            "old_string": {"type": "string", "description": "The exact text to replace."},
            "new_string": {"type": "string", "description": "What takes its place."},
            "replace_all": {"type": "boolean", "description": "Replace every occurrence; false unless told."},
        }
        self.spec = ToolSpec.of(
            "edit",
            described("edit"),
            {"type": "object", "properties": properties, "required": ["file_path", "old_string", "new_string"]},
            display_name="Edit file",
            kind="edit",
        )

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return _intend(self._workspace, "edit", args, self._plan)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        return await _run(self._workspace, self._seen, args, self._plan)

    def _plan(self, args: Mapping[str, Any], stop: Stop) -> Change:
        path = self._workspace.resolve(args["file_path"], writing=True)
        old_string: str = args["old_string"]
        new_string: str = args["new_string"]
        _require_valid(new_string, "new_string")
        old = read_existing(self._workspace, path, stop)
        shown = clipped(self._workspace.shown(path))
        if not old_string:
            if old is not None:
                raise Refused(f"{shown} exists already: give the text to replace as old_string, or use write_file", "exists")
            return creation(path, shown, new_string)
        if old is None:
            raise missing(self._workspace, path)
        before = _text_of(old, shown)
        _require_seen(self._seen, path, shown, old)
        replaced = replace_text(before.text, old_string, new_string, replace_all=bool(args.get("replace_all")), shown=shown)
        data = _encoded(before, replaced.text, shown)
        blocks = blocks_of_spans(replaced.shown_old, replaced.spans, replaced.by.count("\n"))
        diff = diff_texts(replaced.shown_old, replaced.shown_new, shown, coarse=blocks)
        notes = (f"{len(replaced.spans)} occurrences replaced",) if len(replaced.spans) > 1 else ()
        return Change(path, shown, old, data, diff, (*notes, *_link_notes(old)))


# --- what both do --------------------------------------------------------------------------------------------------------

Plan = Callable[[Mapping[str, Any], Stop], Change]
"""Works out a change and makes none. Raises Refused."""


def _intend(workspace: Workspace, tool: str, args: Mapping[str, Any], plan: Plan) -> Intent:
    try:
        change = plan(args, never_stop)
    except Refused as refused:
        return Intent(title=f"{tool} {_name_of(workspace, args)}", problem=refused.message)
    preview = visible(f"{change.diff.text or change.diff.summary}{_in_brackets(change.notes)}")
    return Intent(title=f"{tool} {change.shown}", preview=preview, writes=(change.path,))


async def _run(workspace: Workspace, seen: SeenFiles, args: Mapping[str, Any], plan: Plan) -> ToolOutput:
    try:
        return await in_thread(lambda stop: _carry_out(workspace, seen, plan(args, stop), stop))
    except Refused as refused:
        return refused.output()


def _carry_out(workspace: Workspace, seen: SeenFiles, change: Change, stop: Stop) -> ToolOutput:
    old = change.old
    if old is not None and old.data == change.data:
        seen.note(change.path, old.state)
        return ToolOutput((Text(f"{change.shown} has exactly this content already: nothing was written"),), display="no change")
    stop()
    directory_path, name = os.path.split(change.path)
    with workspace.directory(directory_path, create=True) as directory, workspace.refusing(change.path):
        write_atomically(directory, name, change.data, old.status if old else None, stop)
    seen.note(change.path, state_of(change.data))
    verb = "created" if old is None else "changed"
    told = f"{verb} {change.shown} ({change.diff.summary} lines){_in_brackets(change.notes)}"
    display = visible(f"{change.diff.summary} {change.shown}\n{change.diff.text}".rstrip("\n"))
    return ToolOutput((Text(told),), display=display, changed=(change.path,))


def _name_of(workspace: Workspace, args: Mapping[str, Any]) -> str:
    given = str(args.get("file_path", ""))
    try:
        return clipped(workspace.shown(workspace.resolve(given)))
    except Refused:
        return clipped(escaped(given))


def _in_brackets(notes: tuple[str, ...]) -> str:
    return f"\n[{'; '.join(notes)}]" if notes else ""


# --- working it out ------------------------------------------------------------------------------------------------------


def read_existing(workspace: Workspace, path: str, stop: Stop) -> Existing | None:
    """The file that is to be changed; None where there is none yet. Raises PathRefused for what cannot be written."""
    try:
        with workspace.open_file(path) as (descriptor, status):
            data = read_whole(descriptor, WHOLE_FILE_BYTES, stop) if status.st_size <= WHOLE_FILE_BYTES else None
        with workspace.directory(os.path.dirname(path)) as directory, workspace.refusing(path):
            is_writable = directory.is_writable(os.path.basename(path))
    except PathRefused as refused:
        if refused.error_type == "not_found":
            return None
        raise
    # Renaming would get around the protection, and the superuser is asked for no permission.
    if not is_writable or not status.st_mode & 0o222:
        shown = clipped(workspace.shown(path))
        raise PathRefused(f"{shown} is write-protected: leave it, or ask the user to change its permissions", "permission")
    return Existing(status, state_of_large(status) if data is None else state_of(data), data)


def creation(path: str, shown: str, content: str) -> Change:
    return Change(path, shown, None, content.encode(), diff_texts("", folded(content), shown, is_new=True))


def _rewriting(path: str, shown: str, old: Existing, content: str) -> Change:
    """A file's whole content replaced. What it was encoded in, and its line endings, it keeps."""
    notes = _link_notes(old)
    if old.data is None or (before := decode(old.data)) is None:
        what = "a large file" if old.data is None else "a binary file"
        note = f"replaces {what} of {size_shown(old.status.st_size)}"
        return Change(path, shown, old, content.encode(), diff_texts("", folded(content), shown), (*notes, note))
    text = content.replace("\n", "\r\n") if is_crlf(before.text) and "\r\n" not in content else content
    try:
        data = before.encode(text)
    except UnicodeEncodeError:
        notes = (*notes, f"was encoded in {before.encoding.codec}, is now UTF-8")
        data = text.encode()
    return Change(path, shown, old, data, _diff_of(before.text, text, shown), notes)


def _diff_of(old: str, new: str, shown: str) -> Diff:
    """With line endings left out, unless they are all that changes."""
    if folded(old) == folded(new):
        return diff_texts(old, new, shown)
    return diff_texts(folded(old), folded(new), shown)


def _text_of(old: Existing, shown: str) -> TextFile:
    if old.data is None:
        raise Refused(f"{shown} is too large to edit ({size_shown(old.status.st_size)}): use run_shell (sed)", "too_large")
    text = decode(old.data)
    if text is None:
        raise binary_refusal(shown, old.data, len(old.data))
    return text


def _encoded(before: TextFile, text: str, shown: str) -> bytes:
    try:
        return before.encode(text)
    except UnicodeEncodeError as error:
        odd, codec = text[error.start], before.encoding.codec
        message = f"{shown} is encoded in {codec}, which has no {odd!r}: write it another way, or convert the file first"
        raise Refused(message, "encoding") from error


def _link_notes(old: Existing) -> tuple[str, ...]:
    links = old.status.st_nlink
    return (f"it had {links} hard links: the other names keep the old content",) if links > 1 else ()


def _require_seen(seen: SeenFiles, path: str, shown: str, old: Existing) -> None:
    if problem := seen.problem(path, old.state):
        raise Refused(f"{shown} {problem}", "stale" if seen.has(path) else "unread")


def _require_valid(text: str, argument: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Refused(
            f"{argument} holds half a surrogate pair at character {error.start}: write the character itself", "invalid"
        ) from error
