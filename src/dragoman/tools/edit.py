"""The tools that change files: write_file and edit. The same code computes the preview for approval and the change itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.base.atomic import write_atomically
from dragoman.base.visible import escape_hidden
from dragoman.tools.description import load_description
from dragoman.tools.names import escape_name, truncate_path
from dragoman.tools.nearest import missing_refusal
from dragoman.tools.seen import WHOLE_FILE_BYTES, SeenFiles, state_of, version_of
from dragoman.tools.textfile import replacing_refusal
from dragoman.tools.worker import Stop, in_thread, never_stop
from dragoman.tools.workspace import ToolRefusal, Workspace
from dragoman.values.calls import Intent, Show, ToolOutput
from dragoman.values.messages import Text, ToolSpec

if TYPE_CHECKING:
    from dragoman.tools.planned_change import PlannedChange
    from dragoman.values.record import FileVersion

UNSEEN_NOTE = "the file also holds changes that you have not seen: read it again before edits that depend on them"
ATTEMPTS = 3
"""How often an edit is computed anew if the file is changed while it is written."""


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
        from dragoman.tools.planned_change import plan_creation, plan_rewrite, read_existing, require_valid  # not before a file is changed

        path = self._workspace.resolve(args["file_path"], writing=True)
        content: str = args["content"]
        require_valid(content, "content")
        old = read_existing(self._workspace, path, stop)
        shown = truncate_path(self._workspace.display_path(path))
        if old is None:
            return plan_creation(path, shown, content)
        if old.status.st_size:  # an empty file has nothing to lose
            if old.data is not None and (refused := replacing_refusal(shown, old.data)) is not None:
                raise refused
            if problem := self._seen.problem(path, old.state):
                raise ToolRefusal(f"{shown} {problem}", "stale" if self._seen.has(path) else "unread")
        return plan_rewrite(path, shown, old, content)


class Edit:
    def __init__(self, workspace: Workspace, seen: SeenFiles) -> None:
        self._workspace, self._seen = workspace, seen
        replaced = {
            "old_string": {"type": "string", "description": "The exact text to replace."},
            "new_string": {"type": "string", "description": "What takes its place."},
            "replace_all": {"type": "boolean", "description": "Replace every occurrence; false unless told."},
        }
        listed = {
            "type": "object",
            "properties": {name: {"type": each["type"]} for name, each in replaced.items()},
            "required": ["old_string", "new_string"],
        }
        properties = {
            "file_path": {"type": "string", "description": "Path of the file."},
            **replaced,
            "edits": {"type": "array", "items": listed, "description": "Several edits, in order; all or none."},
        }
        self.spec = ToolSpec.of(
            "edit",
            load_description("edit"),
            {"type": "object", "properties": properties, "required": ["file_path"], "additionalProperties": False},
            display_name="Edit file",
            kind="edit",
        )
        self._intent = PreparedIntent(lambda args, stop: _intend(self._workspace, "edit", args, self._plan, stop))

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return self._intent.intent(args)

    async def prepare_intent(self, args: Mapping[str, Any]) -> None:
        await self._intent.prepare(args)

    def tidy(self, args: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        from dragoman.tools.habits import tidy_edit  # only for arguments that do not fit

        return tidy_edit(args)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        return await _run(self._workspace, self._seen, args, self._plan)

    def _plan(self, args: Mapping[str, Any], stop: Stop) -> PlannedChange:
        from dragoman.tools.edit_list import apply_edits, edits_of  # not before a file is edited
        from dragoman.tools.planned_change import PlannedChange, encode, link_notes, plan_creation, plan_rewrite, read_existing, text_of

        path = self._workspace.resolve(args["file_path"], writing=True)
        edits = edits_of(args)
        old = read_existing(self._workspace, path, stop)
        shown = truncate_path(self._workspace.display_path(path))
        if not edits[0].old:
            if old is not None and old.status.st_size:
                raise ToolRefusal(f"{shown} exists already: give the text to replace as old_string, or use write_file", "exists")
            content = apply_edits(edits[0].new, edits[1:], shown, before=1).text
            return plan_creation(path, shown, content) if old is None else plan_rewrite(path, shown, old, content)
        if old is None:
            raise missing_refusal(self._workspace, path)
        before = text_of(old, shown)
        edited = apply_edits(before.text, edits, shown)
        return PlannedChange(path, shown, old, encode(before, edited.text, shown), edited.diff, (*edited.notes, *link_notes(old)))


# --- shared by both ------------------------------------------------------------------------------------------------------

Plan = Callable[[Mapping[str, Any], Stop], "PlannedChange"]
"""Computes a change without making it. Raises ToolRefusal."""


def _intend(workspace: Workspace, tool: str, args: Mapping[str, Any], plan: Plan, stop: Stop) -> Intent:
    try:
        change = plan(args, stop)
    except ToolRefusal as refused:
        return Intent(title=f"{tool} {_name_of(workspace, args)}", problem=refused.message)
    return Intent(title=f"{tool} {change.shown}", preview=_preview(change), writes=(change.path,))


async def _run(workspace: Workspace, seen: SeenFiles, args: Mapping[str, Any], plan: Plan, *, is_whole: bool = False) -> ToolOutput:
    """`is_whole`: the arguments contain the file's whole content."""

    context = copy_context()  # of the call at work, which threads do not have

    def change(stop: Stop) -> ToolOutput:
        planned = plan(args, stop)
        context.run(workspace.require_judged, planned.path, _preview(planned))
        output = _apply_change(workspace, seen, planned, stop, is_whole=is_whole)
        return msgspec.structs.replace(output, wrote=(planned.path,)) if is_whole else output

    def change_in_time(stop: Stop) -> ToolOutput:
        for _ in range(ATTEMPTS - 1):
            try:
                return change(stop)
            except ToolRefusal as refused:
                if is_whole or refused.error_type != "stale":
                    raise
        return change(stop)

    try:
        return await in_thread(change_in_time)
    except ToolRefusal as refused:
        return refused.output()


def _apply_change(workspace: Workspace, seen: SeenFiles, change: PlannedChange, stop: Stop, *, is_whole: bool) -> ToolOutput:
    old = change.old
    if old is not None and old.data == change.data:
        if is_whole:
            seen.note(change.path, old.state)
        told = f"{change.shown} has exactly this content already: nothing was written"
        return ToolOutput((Text(told),), display="no change", files=_versions(change))
    stop()
    directory_path, name = os.path.split(change.path)
    with workspace.directory(directory_path, create=True) as directory, workspace.refusing(change.path):
        write_atomically(directory, name, change.data, old.status if old else None, stop)
    unseen = not is_whole and old is not None and seen.holds_unseen_changes(change.path, old.state)
    if is_whole or old is None or not old.data:
        seen.note(change.path, state_of(change.data))
    else:
        seen.note_edit(change.path, old.state, state_of(change.data))
    verb = "created" if old is None else "changed"
    notes = (*change.notes, UNSEEN_NOTE) if unseen else change.notes
    message = f"{verb} {change.shown} ({change.diff.summary} lines){_in_brackets(notes)}"
    display = escape_hidden(f"{change.diff.summary} {change.shown}\n{change.diff.text}".rstrip("\n"))
    return ToolOutput((Text(message),), display=display, changed=(change.path,), files=_versions(change))


def _versions(change: PlannedChange) -> tuple[FileVersion, ...]:
    """The file as it is left, unless it is too large to be compared later."""
    return (version_of(change.path, change.data),) if len(change.data) <= WHOLE_FILE_BYTES else ()


def _preview(change: PlannedChange) -> str:
    return escape_hidden(f"{change.diff.text or change.diff.summary}{_in_brackets(change.notes)}")


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
