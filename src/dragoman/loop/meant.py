"""Aligns native calls with their tool's schema (other names, other types), as calls read from text are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.text_tools.align import AlignedCall, NameMapping, align
from dragoman.text_tools.answer_parts import call_arguments
from dragoman.text_tools.call_note import CallNote, attach_note, read_note
from dragoman.text_tools.toolset import Toolset
from dragoman.values.calls import MeantCall
from dragoman.values.messages import ToolCall, ToolSpec


def meant_call(call: ToolCall, args: Mapping[str, Any], specs: Sequence[ToolSpec], mapping: NameMapping) -> MeantCall | None:
    """The call with the names and types its tool declares; None if nothing needed to change, or if it is not clear what was meant."""
    note = read_note(call)
    before = tuple(repair for repair in note.repairs if "→" in repair) if note is not None else ()
    aligned = align(call.name, args, Toolset.of(specs), mapping=mapping)
    if not isinstance(aligned, AlignedCall) or aligned.problems or not aligned.repairs or not _is_named(call.name, aligned.name, mapping):
        return MeantCall(call, before) if before else None
    repairs = (*before, *aligned.repairs)
    kept = note or CallNote("")
    meant = msgspec.structs.replace(call, name=aligned.name, arguments=call_arguments(aligned.args))
    return MeantCall(attach_note(meant, msgspec.structs.replace(kept, text=None, repairs=(*kept.repairs, *aligned.repairs))), repairs)


def _is_named(written: str, meant: str, mapping: NameMapping) -> bool:
    """Whether the tool is the one that was called. A service that knows tools knows their names: only the user's table gives others."""
    return written == meant or mapping.get("", {}).get(written) == meant
