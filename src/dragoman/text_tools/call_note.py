"""Metadata on calls that were read out of text, and on our feedback messages. It is stored as an Opaque that is never sent to a
service."""

from __future__ import annotations

import msgspec

from dragoman.base import jsontext
from dragoman.text_tools.calls import Trust
from dragoman.values.messages import Message, Opaque, Part, Text, ToolCall

TAG = "text_tools"
"""Takes the place of a deployment name; no deployment is called this."""
_FEEDBACK = Opaque(TAG, '"feedback"')


class CallNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a call was written, and what the user should know before it runs."""

    dialect: str
    text: str | None = None
    """The original text with its markers and the space around them, so that it can be sent back verbatim. Empty if the text is in the
    note of the call before it; None if something was repaired to read it."""
    repairs: tuple[str, ...] = ()
    """What was changed; shown in the approval dialog."""
    trust: Trust = "negotiated"
    echo_of: str = ""
    """The tool whose result contains the same call: it may be a prompt injection, so the user must confirm it."""


def attach_note(call: ToolCall, note: CallNote) -> ToolCall:
    return msgspec.structs.replace(call, opaque=Opaque(TAG, jsontext.dumps(note)))


def read_note(call: ToolCall) -> CallNote | None:
    """The note on a call; None for a native call."""
    if call.opaque is None or call.opaque.provider != TAG:
        return None
    try:
        return msgspec.json.decode(call.opaque.json, type=CallNote)
    except msgspec.DecodeError:
        return None  # written by a later version


# --- feedback on calls that could not be read


def feedback_message(text: str) -> Message:
    """The feedback as a user message, tagged so that the markers of the example call in it are not neutralised."""
    return Message("user", (Text(text, _FEEDBACK),))


def is_feedback(part: Part) -> bool:
    return isinstance(part, Text) and part.opaque == _FEEDBACK
