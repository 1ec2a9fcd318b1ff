"""The tools that change files: write_file and edit. The same code computes the preview for approval and the change itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Any

import msgspec

from dragoman.base.atomic import write_atomically
from dragoman.base.visible import escape_hidden
from dragoman.tools.description import load_description
from dragoman.tools.diff import Diff, blocks_of_spans, diff_texts
from dragoman.tools.names import escape_name, format_size, truncate_path
from dragoman.tools.nearest import missing_refusal
from dragoman.tools.reading import read_whole
from dragoman.tools.seen import WHOLE_FILE_BYTES, SeenFiles, state_of, state_of_large
from dragoman.tools.textfile import TextFile, binary_refusal, decode, is_crlf, to_lf
from dragoman.tools.worker import Stop, in_thread, never_stop
from dragoman.tools.workspace import PathRefusal, ToolRefusal, Workspace
from dragoman.values.calls import Intent, Show, ToolOutput
from dragoman.values.messages import Text, ToolSpec


class ExistingFile(msgspec.Struct, frozen=True):
    """A file before the change."""

    status: os.stat_result
    state: str
    data: bytes | None
    """None if it is larger than WHOLE_FILE_BYTES."""


class PlannedChange(msgspec.Struct, frozen=True):
    """A computed change of a file, with its exact new content."""

    path: str
    shown: str
    old: ExistingFile | None
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
            load_description("write_file"),
            {"type": "object", "properties": properties, "required": ["file_path", "content"], "additionalProperties": False},
            display_name="Write file",
            kind="edit",
        )
        self._intent = PreparedIntent(lambda args, stop: _intend(self._workspace, "write_file", args, self._plan, stop))

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return self._intent.intent(args)

    async def prepare_intent(self, args: Mapping[str, Any]) -> None:
        await self._intent.prepare(args)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        return await _run(self._workspace, self._seen, args, self._plan, is_whole=True)

    def _plan(self, args: Mapping[str, Any], stop: Stop) -> PlannedChange:
        path = self._workspace.resolve(args["file_path"], writing=True)
        content: str = args["content"]
        _require_valid(content, "content")
        old = read_existing(self._workspace, path, stop)
        shown = truncate_path(self._workspace.display_path(path))
        if old is None:
            return plan_creation(path, shown, content)
        if old.status.st_size:  # an empty file has nothing to lose
            _require_seen(self._seen, path, shown, old)
        return _plan_rewrite(path, shown, old, content)


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
            load_description("edit"),
            {
                "type": "object",
                "properties": properties,
                "required": ["file_path", "old_string", "new_string"],
                "additionalProperties": False,
            },
            display_name="Edit file",
            kind="edit",
        )
        self._intent = PreparedIntent(lambda args, stop: _intend(self._workspace, "edit", args, self._plan, stop))

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return self._intent.intent(args)

    async def prepare_intent(self, args: Mapping[str, Any]) -> None:
        await self._intent.prepare(args)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        return await _run(self._workspace, self._seen, args, self._plan)

    def _plan(self, args: Mapping[str, Any], stop: Stop) -> PlannedChange:
        path = self._workspace.resolve(args["file_path"], writing=True)
        old_string: str = args["old_string"]
        new_string: str = args["new_string"]
        _require_valid(new_string, "new_string")
        old = read_existing(self._workspace, path, stop)
        shown = truncate_path(self._workspace.display_path(path))
        if not old_string:
            if old is not None:
                raise ToolRefusal(f"{shown} exists already: give the text to replace as old_string, or use write_file", "exists")
            return plan_creation(path, shown, new_string)
        if old is None:
            raise missing_refusal(self._workspace, path)
        before = _text_of(old, shown)
        _require_seen(self._seen, path, shown, old)
        from dragoman.tools.replace import replace_text  # not needed before a file is edited

        replaced = replace_text(before.text, old_string, new_string, replace_all=bool(args.get("replace_all")), shown=shown)
        data = _encode(before, replaced.text, shown)
        blocks = blocks_of_spans(replaced.shown_old, replaced.spans, replaced.by.count("\n"))
        diff = diff_texts(replaced.shown_old, replaced.shown_new, shown, coarse=blocks)
        notes = (f"{len(replaced.spans)} occurrences replaced",) if len(replaced.spans) > 1 else ()
        return PlannedChange(path, shown, old, data, diff, (*notes, *_link_notes(old)))


# --- shared by both ------------------------------------------------------------------------------------------------------

Plan = Callable[[Mapping[str, Any], Stop], PlannedChange]
"""Computes a change without making it. Raises ToolRefusal."""


def _intend(workspace: Workspace, tool: str, args: Mapping[str, Any], plan: Plan, stop: Stop) -> Intent:
    try:
        change = plan(args, stop)
    except ToolRefusal as refused:
        return Intent(title=f"{tool} {_name_of(workspace, args)}", problem=refused.message)
    preview = escape_hidden(f"{change.diff.text or change.diff.summary}{_in_brackets(change.notes)}")
    return Intent(title=f"{tool} {change.shown}", preview=preview, writes=(change.path,))


async def _run(workspace: Workspace, seen: SeenFiles, args: Mapping[str, Any], plan: Plan, *, is_whole: bool = False) -> ToolOutput:
    """`is_whole`: the arguments contain the file's whole content."""

    context = copy_context()  # of the call at work, which threads do not have

    def change(stop: Stop) -> ToolOutput:
        planned = plan(args, stop)
        context.run(workspace.require_judged, planned.path)
        output = _apply_change(workspace, seen, planned, stop)
        return msgspec.structs.replace(output, wrote=(planned.path,)) if is_whole else output

    try:
        return await in_thread(change)
    except ToolRefusal as refused:
        return refused.output()


def _apply_change(workspace: Workspace, seen: SeenFiles, change: PlannedChange, stop: Stop) -> ToolOutput:
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
    message = f"{verb} {change.shown} ({change.diff.summary} lines){_in_brackets(change.notes)}"
    display = escape_hidden(f"{change.diff.summary} {change.shown}\n{change.diff.text}".rstrip("\n"))
    return ToolOutput((Text(message),), display=display, changed=(change.path,))


def _name_of(workspace: Workspace, args: Mapping[str, Any]) -> str:
    given = str(args.get("file_path", ""))
    try:
        return truncate_path(workspace.display_path(workspace.resolve(given)))
    except ToolRefusal:
        return truncate_path(escape_name(given))


def _in_brackets(notes: tuple[str, ...]) -> str:
    return f"\n[{'; '.join(notes)}]" if notes else ""


# --- what a change would do ----------------------------------------------------------------------------------------------

FindIntent = Callable[[Mapping[str, Any], Stop], Intent]


class PreparedIntent:
    """The intent of a tool's last call, computed in a thread: a diff of a large file takes seconds.

    It is asked for several times: by the rules, for the user, and before the file is saved.
    """

    def __init__(self, find: FindIntent) -> None:
        self._find = find
        self._last: tuple[dict[str, Any], Intent, tuple[object, ...]] | None = None

    async def prepare(self, args: Mapping[str, Any]) -> None:
        """Compute it without blocking the event loop."""
        intent = await in_thread(lambda stop: self._find(args, stop))
        self._last = (dict(args), intent, _states(intent.writes))

    def intent(self, args: Mapping[str, Any]) -> Intent:
        """Computed now, unless it was prepared and the file is still the same. A problem is reported once: it may be gone the next time."""
        last = self._last
        if last is not None and last[0] == args and _states(last[1].writes) == last[2]:
            self._last = None if last[1].problem else last
            return last[1]
        return self._find(args, never_stop)


def _states(paths: tuple[str, ...]) -> tuple[object, ...]:
    """What shows that a file has changed, cheaply."""
    states: list[object] = []
    for path in paths:
        try:
            found = os.lstat(path)
        except OSError:
            states.append(None)
            continue
        states.append((found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode))
    return tuple(states)


# --- computing a change --------------------------------------------------------------------------------------------------


def read_existing(workspace: Workspace, path: str, stop: Stop) -> ExistingFile | None:
    """The file to be changed; None if it does not exist yet. Raises PathRefusal if it cannot be written."""
    try:
        with workspace.open_file(path) as (descriptor, status):
            data = read_whole(descriptor, WHOLE_FILE_BYTES, stop) if status.st_size <= WHOLE_FILE_BYTES else None
        with workspace.directory(os.path.dirname(path)) as directory, workspace.refusing(path):
            is_writable = directory.is_writable(os.path.basename(path))
    except PathRefusal as refused:
        if refused.error_type == "not_found":
            return None
        raise
    # Replacing by rename would bypass the write protection, and root passes every permission check.
    if not is_writable or not status.st_mode & 0o222:
        shown = truncate_path(workspace.display_path(path))
        raise PathRefusal(f"{shown} is write-protected: leave it, or ask the user to change its permissions", "permission")
    return ExistingFile(status, state_of_large(status) if data is None else state_of(data), data)


def plan_creation(path: str, shown: str, content: str) -> PlannedChange:
    return PlannedChange(path, shown, None, content.encode(), diff_texts("", to_lf(content), shown, is_new=True))


def _plan_rewrite(path: str, shown: str, old: ExistingFile, content: str) -> PlannedChange:
    """Replace a file's whole content, keeping its encoding and line endings."""
    notes = _link_notes(old)
    if old.data is None or (before := decode(old.data)) is None:
        what = "a large file" if old.data is None else "a binary file"
        note = f"replaces {what} of {format_size(old.status.st_size)}"
        return PlannedChange(path, shown, old, content.encode(), diff_texts("", to_lf(content), shown), (*notes, note))
    text = content.replace("\n", "\r\n") if is_crlf(before.text) and "\r\n" not in content else content
    try:
        data = before.encode(text)
    except UnicodeEncodeError:
        notes = (*notes, f"was encoded in {before.encoding.codec}, is now UTF-8")
        data = text.encode()
    return PlannedChange(path, shown, old, data, _diff_ignoring_line_ends(before.text, text, shown), notes)


def _diff_ignoring_line_ends(old: str, new: str, shown: str) -> Diff:
    """The diff without line endings, unless nothing else changes."""
    if to_lf(old) == to_lf(new):
        return diff_texts(old, new, shown)
    return diff_texts(to_lf(old), to_lf(new), shown)


def _text_of(old: ExistingFile, shown: str) -> TextFile:
    if old.data is None:
        raise ToolRefusal(f"{shown} is too large to edit ({format_size(old.status.st_size)}): use run_shell (sed)", "too_large")
    text = decode(old.data)
    if text is None:
        raise binary_refusal(shown, old.data, len(old.data))
    return text


def _encode(before: TextFile, text: str, shown: str) -> bytes:
    try:
        return before.encode(text)
    except UnicodeEncodeError as error:
        odd, codec = text[error.start], before.encoding.codec
        message = f"{shown} is encoded in {codec}, which has no {odd!r}: write it another way, or convert the file first"
        raise ToolRefusal(message, "encoding") from error


def _link_notes(old: ExistingFile) -> tuple[str, ...]:
    links = old.status.st_nlink
    return (f"it had {links} hard links: the other names keep the old content",) if links > 1 else ()


def _require_seen(seen: SeenFiles, path: str, shown: str, old: ExistingFile) -> None:
    if problem := seen.problem(path, old.state):
        raise ToolRefusal(f"{shown} {problem}", "stale" if seen.has(path) else "unread")


def _require_valid(text: str, argument: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ToolRefusal(
            f"{argument} holds half a surrogate pair at character {error.start}: write the character itself", "invalid"
        ) from error
