"""A message with calls and results in it → the same message in nothing but words, for a model or server that knows no tools.

The rewriting of a message depends on that message alone, so it is done once, and what was rendered of it stays valid.
"""

from __future__ import annotations

from itertools import groupby

from dragoman.text_tools.call_note import is_ours, note_on
from dragoman.text_tools.calls import Call
from dragoman.text_tools.constrained import reply_of
from dragoman.text_tools.neutral import neutralise
from dragoman.text_tools.render import render_calls, render_response
from dragoman.values.messages import Blob, FileRef, Message, Part, Text, ToolCall, ToolResult
from dragoman.values.parts import NO_OUTPUT, text_of

OMITTED = "{count} characters of arguments"
MAX_SHOWN_ARGUMENT_CHARS = 4_000_000
"""More than a call that is recorded here can have, and several times what a tool is run with: only an imported session goes beyond it."""


def rewrite(message: Message, dialect: str, no_think: str = "", *, is_bound: bool = False) -> Message:
    """The same object where nothing is to be done. `no_think` is put to every prompt: see `TextOptions.no_think`.

    `is_bound`: the model is told to reply as `constrained` has it, so that is how it is shown to have replied.
    """
    if message.role == "assistant" and is_bound:
        return _replied(message)
    return _assistant(message, dialect) if message.role == "assistant" else _user(message, dialect, no_think)


# --- what the model said ------------------------------------------------------------------------------------------------------------


def _assistant(message: Message, dialect: str) -> Message:
    if not message.calls:
        return message
    parts: list[Part] = []
    for is_spoken, group in groupby(message.parts, _is_spoken):
        run = list(group)
        parts += [Text(_spoken(run, dialect))] if is_spoken else run
    return Message("assistant", tuple(parts))


def _replied(message: Message) -> Message:
    said = (part.text if isinstance(part, Text) else _readable(part) for part in message.parts if isinstance(part, Text | ToolCall))
    replies = Text("\n".join(reply_of(each) for each in said if each))
    return Message("assistant", (*(part for part in message.parts if not isinstance(part, Text | ToolCall)), replies))


def _is_spoken(part: Part) -> bool:
    return isinstance(part, ToolCall) or (isinstance(part, Text) and bool(part.text))


def _spoken(parts: list[Part], dialect: str) -> str:
    """Words and calls as one text: protocols put something of their own between two."""
    said = ""
    for is_call, group in groupby(parts, lambda part: isinstance(part, ToolCall)):
        run = list(group)
        if not is_call:
            said += text_of(run)
            continue
        calls = [part for part in run if isinstance(part, ToolCall)]
        written = _as_written(calls, dialect)
        if written is None:
            gap = "" if not said or said.endswith("\n") else "\n"
            written = gap + render_calls([_readable(call) for call in calls], dialect)
        said += written
    return said


def _as_written(calls: list[ToolCall], dialect: str) -> str | None:
    """The calls to the letter, where the model wrote them so in this dialect: the server's cache holds."""
    notes = [note_on(call) for call in calls]
    texts = [note.text for note in notes if note is not None and note.dialect == dialect and note.text is not None]
    return "".join(texts) if len(texts) == len(calls) else None


def _readable(call: ToolCall) -> Call:
    """Arguments that are no object, or too long to be repeated, are told of instead."""
    if len(call.arguments) > MAX_SHOWN_ARGUMENT_CHARS:
        return Call(call.name, {"_omitted": OMITTED.format(count=len(call.arguments))})
    args = call.args
    return Call(call.name, {"_arguments": call.arguments} if args is None else args)


# --- what it was told ---------------------------------------------------------------------------------------------------------------


def _user(message: Message, dialect: str, no_think: str) -> Message:
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    said = [_harmless(part) for part in message.parts if not isinstance(part, ToolResult)]
    if no_think:
        said = _not_thinking(said, no_think)
    if not results:
        is_same = all(one is other for one, other in zip(said, message.parts, strict=True))
        return message if is_same else Message("user", tuple(said))
    answers = Text("\n".join(_response(result, dialect) for result in results))
    media = [part for result in results for part in result.content if isinstance(part, Blob | FileRef)]
    return Message("user", (answers, *media, *said))


def _response(result: ToolResult, dialect: str) -> str:
    shown = [part.text if isinstance(part, Text) else f"[{part.mime} follows]" for part in result.content]
    text = "\n".join(piece for piece in shown if piece) or NO_OUTPUT
    if result.is_error and not text.lower().startswith("error"):
        text = f"Error: {text}"
    return render_response(result.name, neutralise(text), dialect)


def _harmless(part: Part) -> Part:
    """Text from outside in which nothing looks like a call."""
    if not isinstance(part, Text):
        return part
    if is_ours(part):
        return Text(part.text)
    text = neutralise(part.text)
    return part if text == part.text else Text(text, part.opaque)


def _not_thinking(said: list[Part], no_think: str) -> list[Part]:
    """The switch on a prompt: before it as the seed has it, behind it as Qwen's own is written."""
    texts = [place for place, part in enumerate(said) if isinstance(part, Text)]
    if not texts:
        return said
    is_before = no_think.startswith("<")
    place = texts[0] if is_before else texts[-1]
    part = said[place]
    assert isinstance(part, Text)
    text = f"{no_think}\n\n{part.text}" if is_before else f"{part.text}\n{no_think}"
    return [*said[:place], Text(text, part.opaque), *said[place + 1 :]]
