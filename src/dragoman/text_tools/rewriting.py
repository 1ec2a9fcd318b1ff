"""Rewrites calls and results in a message as text, for a model or server without tools.

The result depends on that message alone, so it is computed once, and its rendered form stays valid (prompt cache).
"""

from __future__ import annotations

from itertools import groupby

from dragoman.text_tools.call_note import is_feedback, read_note
from dragoman.text_tools.calls import Call
from dragoman.text_tools.constrained import render_reply
from dragoman.text_tools.dialect_table import current_name
from dragoman.text_tools.neutral import neutralise
from dragoman.text_tools.no_think import add_words
from dragoman.text_tools.render import render_calls, render_response
from dragoman.values.messages import Blob, FileRef, Message, Part, Text, ToolCall, ToolResult
from dragoman.values.parts import NO_OUTPUT, text_of

OMITTED = "{count} characters of arguments"
MAX_SHOWN_ARGUMENT_CHARS = 4_000_000
"""More than a recorded call can have, and several times what a tool accepts: only imported sessions exceed it."""


def rewrite(message: Message, dialect: str, no_think: str = "", *, is_bound: bool = False) -> Message:
    """The message as text; the same object if nothing changes. `no_think` is added to every prompt: see `TextOptions.no_think`.

    `is_bound`: the model must reply in the form of `constrained`, so its past replies are shown in that form.
    """
    if message.role == "assistant" and is_bound:
        return _render_bound_reply(message)
    return _rewrite_assistant(message, dialect) if message.role == "assistant" else _rewrite_user(message, dialect, no_think)


# --- assistant messages ---------------------------------------------------------------------------------------------------------------


def _rewrite_assistant(message: Message, dialect: str) -> Message:
    if not message.calls:
        return message
    parts: list[Part] = []
    for is_spoken, group in groupby(message.parts, _is_text_or_call):
        run = list(group)
        parts += [Text(_render_text_and_calls(run, dialect))] if is_spoken else run
    return Message("assistant", tuple(parts))


def _render_bound_reply(message: Message) -> Message:
    items = (part.text if isinstance(part, Text) else _showable_call(part) for part in message.parts if isinstance(part, Text | ToolCall))
    replies = Text("\n".join(render_reply(each) for each in items if each))
    return Message("assistant", (*(part for part in message.parts if not isinstance(part, Text | ToolCall)), replies))


def _is_text_or_call(part: Part) -> bool:
    return isinstance(part, ToolCall) or (isinstance(part, Text) and bool(part.text))


def _render_text_and_calls(parts: list[Part], dialect: str) -> str:
    """Text and calls as one text part: protocols would insert something between two parts."""
    text, is_rendered = "", False
    for is_call, group in groupby(parts, lambda part: isinstance(part, ToolCall)):
        run = list(group)
        if not is_call:
            said = text_of(run)
            text += f"\n{said}" if is_rendered and not said.startswith("\n") and not text.endswith("\n") else said
            continue
        calls = [part for part in run if isinstance(part, ToolCall)]
        written = _original_text(calls, dialect)
        is_rendered = written is None
        if written is None:
            gap = "" if not text or text.endswith("\n") else "\n"
            written = gap + render_calls([_showable_call(call) for call in calls], dialect)
        text += written
    return text


def _original_text(calls: list[ToolCall], dialect: str) -> str | None:
    """The original text of the calls if the model wrote them in this dialect, so that the server's prompt cache stays valid."""
    notes = [read_note(call) for call in calls]
    texts = [note.text for note in notes if note is not None and current_name(note.dialect) == dialect and note.text is not None]
    return "".join(texts) if len(texts) == len(calls) else None


def _showable_call(call: ToolCall) -> Call:
    """The call, with a placeholder for arguments that are not an object or are too long to repeat."""
    if len(call.arguments) > MAX_SHOWN_ARGUMENT_CHARS:
        return Call(call.name, {"_omitted": OMITTED.format(count=len(call.arguments))})
    args = call.args
    return Call(call.name, {"_arguments": call.arguments} if args is None else args)


# --- user messages --------------------------------------------------------------------------------------------------------------------


def _rewrite_user(message: Message, dialect: str, no_think: str) -> Message:
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    parts = [_neutralise_part(part) for part in message.parts if not isinstance(part, ToolResult)]
    if no_think:
        parts = add_words(parts, no_think)
    if not results:
        is_same = all(one is other for one, other in zip(parts, message.parts, strict=True))
        return message if is_same else Message("user", tuple(parts))
    answers = Text("\n".join(_render_result(result, dialect) for result in results))
    media = [part for result in results for part in result.content if isinstance(part, Blob | FileRef)]
    return Message("user", (answers, *media, *parts))


def _render_result(result: ToolResult, dialect: str) -> str:
    shown = [part.text if isinstance(part, Text) else f"[{part.mime} follows]" for part in result.content]
    text = "\n".join(piece for piece in shown if piece) or NO_OUTPUT
    if result.is_error and not text.lower().startswith("error"):
        text = f"Error: {text}"
    return render_response(result.name, neutralise(text), dialect)


def _neutralise_part(part: Part) -> Part:
    """Escape markers in text, except in our own feedback."""
    if not isinstance(part, Text):
        return part
    if is_feedback(part):
        return Text(part.text)
    text = neutralise(part.text)
    return part if text == part.text else Text(text, part.opaque)
