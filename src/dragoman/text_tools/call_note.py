"""What is remembered of a call that was read out of text, and of words of ours about one. It rides along as an Opaque that no service is
ever sent."""

from __future__ import annotations

import msgspec

from dragoman.base import jsontext
from dragoman.text_tools.calls import Trust
from dragoman.values.messages import Message, Opaque, Part, Text, ToolCall
from dragoman.values.notes import FEEDBACK_BEGINS

TAG = "text_tools"
"""Stands where a deployment would: no deployment is called so."""
_FEEDBACK = Opaque(TAG, '"feedback"')
CUT = "cut within a tool call"
"""Stands in `Response.detail` where an answer came to the output limit while a call was being written."""


class CallNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a call was written, and what a person should know before it runs."""

    dialect: str
    text: str | None = None
    """To the letter, markers and the space around them included, so that it can be sent back as it was. Empty where the call before it
    holds the text of both; None where something was changed to read it."""
    repairs: tuple[str, ...] = ()
    """What was changed: to be shown where approval is asked."""
    trust: Trust = "negotiated"
    echo_of: str = ""
    """The tool in whose result the very same call stands: somebody else may have written it, so a person must confirm it."""


def noted(call: ToolCall, note: CallNote) -> ToolCall:
    return msgspec.structs.replace(call, opaque=Opaque(TAG, jsontext.dumps(note)))


def note_on(call: ToolCall) -> CallNote | None:
    """None for a call that the service itself made."""
    if call.opaque is None or call.opaque.provider != TAG:
        return None
    try:
        return msgspec.json.decode(call.opaque.json, type=CallNote)
    except msgspec.DecodeError:
        return None  # of a later version


# --- what the model is told of a call that could not be read


def feedback_message(text: str) -> Message:
    """The words as they are said: marked as ours, so that the call shown in them keeps its markers."""
    return Message("user", (Text(text, _FEEDBACK),))


def is_feedback(text: str) -> bool:
    return text.startswith(FEEDBACK_BEGINS)


def is_ours(part: Part) -> bool:
    return isinstance(part, Text) and part.opaque == _FEEDBACK
