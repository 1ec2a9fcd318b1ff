"""The edits of one call, applied in order: all of them or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.tools.diff import Diff, TracedText, diff_texts
from dragoman.tools.planned_change import diff_ignoring_line_ends, require_valid
from dragoman.tools.replace import replace_text
from dragoman.tools.workspace import ToolRefusal

ALIKE_NOTE = "old_string has other quotes or spaces than the file, whose own stay where the text stays"


class OneEdit(msgspec.Struct, frozen=True):
    old: str
    new: str
    replace_all: bool = False


class EditedText(msgspec.Struct, frozen=True):
    text: str
    diff: Diff
    notes: tuple[str, ...]


def edits_of(args: Mapping[str, Any]) -> list[OneEdit]:
    """The edits that a call asks for, in its short form or as a list. Raises ToolRefusal."""
    listed = [OneEdit(each["old_string"], each["new_string"], bool(each.get("replace_all"))) for each in args.get("edits") or ()]
    missing = [name for name in ("old_string", "new_string") if name not in args]
    if listed:
        single = args.get("old_string", ""), args.get("new_string", "")
        if any(single) and single != (listed[0].old, listed[0].new):
            raise ToolRefusal("edit was not run: give either old_string and new_string or edits, not both", "invalid")
    elif missing:
        raise ToolRefusal(f"edit was not run: {' and '.join(missing)} must be given, or edits", "invalid")
    else:
        listed = [OneEdit(args["old_string"], args["new_string"], bool(args.get("replace_all")))]
    for number, each in enumerate(listed):
        require_valid(each.new, "new_string")
        if number and not each.old:
            raise ToolRefusal(f"edit {number + 1} of {len(listed)}: old_string is empty; nothing was written", "invalid")
    return listed


def apply_edits(text: str, edits: Sequence[OneEdit], shown: str, *, before: int = 0) -> EditedText:
    """Each edit is applied to what the one before it made of the text. Raises ToolRefusal, which names the edit that failed.

    `before`: how many edits of the call came before these.
    """
    traced: TracedText | None = None
    original, now, notes, count = text, text, list[str](), before + len(edits)
    is_about_line_ends = False
    shown_old = shown_new = ""
    for number, edit in enumerate(edits, before + 1):
        try:
            replaced = replace_text(now, edit.old, edit.new, replace_all=edit.replace_all, shown=shown)
        except ToolRefusal as refused:
            if count == 1:
                raise
            after = " after the edits before it" if number > 1 else ""
            message = f"edit {number} of {count} failed{after}, so none was made: {refused.message}"
            raise ToolRefusal(message, refused.error_type) from refused
        if traced is None:
            traced, shown_old = TracedText(replaced.shown_old), replaced.shown_old
        traced.replace(replaced.spans, len(replaced.by))
        is_about_line_ends = is_about_line_ends or replaced.is_about_line_ends
        now, shown_new = replaced.text, replaced.shown_new
        which = f"edit {number}: " if count > 1 else ""
        if len(replaced.spans) > 1:
            notes.append(f"{which}{len(replaced.spans)} occurrences replaced")
        if replaced.is_alike:
            notes.append(f"{which}{ALIKE_NOTE}")
    if traced is None or (is_about_line_ends and len(edits) > 1):
        return EditedText(now, diff_ignoring_line_ends(original, now, shown), tuple(notes))
    return EditedText(now, diff_texts(shown_old, shown_new, shown, coarse=traced.blocks(shown_new)), tuple(notes))
