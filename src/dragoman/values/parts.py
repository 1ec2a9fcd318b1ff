"""Functions on messages and parts: convert to and from text, merge, check."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import groupby
from os import PathLike
from typing import Any

from dragoman.base import jsontext
from dragoman.values.errors import INSTEAD_OF_ROLE, InputError
from dragoman.values.messages import (
    PART_TYPES,
    Blob,
    Citation,
    Content,
    FileRef,
    Media,
    Message,
    Part,
    Response,
    Role,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    is_list,
)
from dragoman.words import say

INTERRUPTED = "interrupted, outcome unknown"
"""The result of a call whose real result was lost, for the model."""
_OWN_TYPES = frozenset({str, Message, *PART_TYPES})
NO_OUTPUT = "(no output)"
"""The result of a tool that returned nothing, for the model: some services reject an empty result."""


def text_of(parts: Iterable[Part | Blob | FileRef]) -> str:
    """The text parts, joined."""
    return "".join(part.text for part in parts if isinstance(part, Text))


def part_to_string(content: Content | Iterable[Content], *, verbose: bool = False) -> str:
    """The text of any content. With verbose, other parts are named instead of left out."""
    match content:
        case str():
            return content
        case Message(parts=parts):
            return "".join(part_to_string(part, verbose=verbose) for part in parts)
        case Text(text=text):
            return text
        case Thought(text=text):
            return f"[Thought: {text}]" if verbose else ""
        case ToolCall(name=name):
            return f"[Function Call: {name}]" if verbose else ""
        case ToolResult(name=name, content=inner):
            shown = "".join(part_to_string(part, verbose=True) for part in inner)
            return f"[Function Response: {name}] {shown}".rstrip() if verbose else ""
        case Blob(mime=mime, size=size):
            return f"[{mime}, {size} bytes]" if verbose else ""
        case FileRef(mime=mime, uri=uri):
            return f"[{mime}: {uri}]" if verbose else ""
        case Citation(uri=uri, title=title):
            return f"[Citation: {title or uri}]" if verbose else ""
        case _ if is_list(content):
            items: Iterable[Any] = content  # type: ignore[assignment]
            return "".join(part_to_string(item, verbose=verbose) for item in items)
        case _:
            return part_to_string(to_parts(content), verbose=verbose)


def request_text(messages: Iterable[Message | Mapping[str, Any]]) -> str:
    """All text of a conversation, joined, for logging a request."""
    return "".join(message.text for message in as_messages(messages))


def response_text(response: Response | Message) -> str:
    """The model's text, without its thinking."""
    return (response.message if isinstance(response, Response) else response).text


async def map_text_parts(content: Content | Iterable[Content], transform: Callable[[str], Awaitable[Sequence[Part]]]) -> tuple[Part, ...]:
    """Replace every text part by the parts that `transform` returns for it; other parts pass through, in order."""
    mapped: list[Part] = []
    for part in to_parts(content):
        if isinstance(part, Text) and part.text:
            mapped.extend(await transform(part.text))
        else:
            mapped.append(part)
    return tuple(mapped)


_MAIN_ARGUMENTS = ("file_path", "path", "pattern", "query", "url", "question", "paths")
"""Arguments that say what a call is about, the most telling first."""


def call_in_words(call: ToolCall, folder: str = "") -> str:
    """`read_file src/a.py`, `$ make test`. Neither truncated nor escaped. Paths inside `folder` are written as from there."""
    args = call.args
    if args is None:
        return f"{call.name} {call.arguments}"
    command = args.get("command")
    if isinstance(command, str):
        return f"$ {command}"
    if call.name == "task" and args.get("agent"):
        return f"task {args['agent']}: {args.get('description') or args.get('prompt') or ''}"
    found = [args[name] for name in _MAIN_ARGUMENTS if args.get(name)][:2]
    told = (", ".join(_from(folder, str(item)) for item in each) if isinstance(each, list) else _from(folder, str(each)) for each in found)
    return " ".join([call.name, *told])


def _from(folder: str, path: str) -> str:
    if not folder or not path.startswith(folder):
        return path
    inside = path[len(folder.rstrip("/")) :]
    return "." if inside in ("", "/") else inside[1:] if inside.startswith("/") else path


def append_to_last_text(parts: Sequence[Part], text: str, separator: str = "\n\n") -> tuple[Part, ...]:
    """Append to the last part if it is text, else add a new part."""
    if not text:
        return tuple(parts)
    if parts and isinstance(last := parts[-1], Text) and last.attached is None:
        return (*parts[:-1], Text(f"{last.text}{separator}{text}", last.opaque))
    return (*parts, Text(text))


def to_parts(content: Content | Iterable[Content]) -> tuple[Part, ...]:
    """A text, a part, or a list of these, as parts of a message: also a part as other APIs write it, bytes, and a file."""
    match content:
        case str():
            return (Text(jsontext.valid_unicode(content)),)
        case Message(parts=parts):
            return parts
        case Text() | Thought() | ToolCall() | ToolResult() | Blob() | FileRef() | Citation():
            return (content,)
        case Media() | bytes() | bytearray() | PathLike():
            from dragoman.values.media import read_media

            return (read_media(content),)
        case _ if is_list(content):
            return tuple(part for item in content for part in to_parts(item))
        case _:
            from dragoman.values.api_shapes import read_parts

            return read_parts(content)


def user(*content: Content) -> Message:
    """A message of the user, from texts, parts, and whatever else `to_parts` takes: an image as bytes, a file, a part of another API."""
    return Message("user", to_parts(content))


def assistant(*content: Content) -> Message:
    """A message of the model, from the same."""
    return Message("assistant", to_parts(content))


def tool_result(call: ToolCall, *content: Content, is_error: bool = False) -> ToolResult:
    """The result of a call, from texts, images and files."""
    parts: Any = to_parts(content)
    return ToolResult(call.id, call.name, parts, is_error)


def prompt_message(content: Content | Iterable[Content]) -> Message:
    """What a person says, as one message. Raises InputError for a message in it that is not the user's, because its role would be lost,
    and for a call: only the model calls."""
    messages = to_messages(content)
    check_roles(messages)
    if any(message.role != "user" for message in messages):
        raise InputError(say("values.prompt_of_assistant"))
    if calls := [part.name for message in messages for part in message.parts if isinstance(part, ToolCall)]:
        raise InputError(say("values.prompt_of_calls", calls=", ".join(calls)))
    if len(messages) == 1:
        return messages[0]
    return Message("user", tuple(part for message in messages for part in message.parts))


def to_messages(content: Content | Iterable[Content], role: Role = "user") -> tuple[Message, ...]:
    """A str, a part, a message, or a list of them, as messages. Adjacent loose parts become one message.

    Dicts as the APIs of Gemini, OpenAI and Anthropic have them, and the objects of their SDKs, are read as what they are.
    """
    if isinstance(content, Message):
        return (content,)
    if isinstance(content, str | Text | Thought | ToolCall | ToolResult | Blob | FileRef | Citation):
        return (Message(role, to_parts(content)),)
    items: tuple[Any, ...] = tuple(content) if is_list(content) else (content,)  # type: ignore[arg-type]
    if not _OWN_TYPES.issuperset(map(type, items)):
        from dragoman.values.api_shapes import read_messages

        return read_messages(items, role)
    messages: list[Message] = []
    loose: list[Part] = []
    for item in items:
        if isinstance(item, Message):
            if loose:
                messages.append(Message(role, tuple(loose)))
                loose = []
            messages.append(item)
        else:
            loose.extend(to_parts(item))
    if loose:
        messages.append(Message(role, tuple(loose)))
    return tuple(messages)


def as_messages(given: Iterable[Message | Mapping[str, Any]]) -> Sequence[Message]:
    """A history as it is, or read with `to_messages` where it was written otherwise: as dicts of another API, or as one message alone."""
    if not is_list(given):
        return to_messages(given)  # type: ignore[arg-type]
    given = given if isinstance(given, Sequence) else tuple(given)
    return given if all(isinstance(each, Message) for each in given) else to_messages(given)  # type: ignore[return-value]


def check_roles(messages: Iterable[Message | Mapping[str, Any]], first: int = 0) -> None:
    """Raises InputError for a message with any other role than the user's or the assistant's. `first` is the position of the first one."""
    for position, message in enumerate(as_messages(messages), first):
        if message.role not in ("user", "assistant"):
            instead = say(INSTEAD_OF_ROLE.get(message.role, "values.role_of_user"))
            raise InputError(say("values.wrong_role", role=message.role, position=position, instead=instead))


def merge_assistant_text(messages: Iterable[Message | Mapping[str, Any]]) -> tuple[Message, ...]:
    """Merge adjacent text-only assistant messages. The given messages are not changed."""
    merged: list[Message] = []
    for message in as_messages(messages):
        if merged and _is_text_only(message) and _is_text_only(merged[-1]):
            merged[-1] = Message("assistant", merge_text(merged[-1].parts + message.parts))
        else:
            merged.append(message)
    return tuple(merged)


def merge_text(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Merge adjacent text parts, unless either has an opaque payload or is attached."""
    merged: list[Part] = []
    for is_plain, run in groupby(parts, lambda part: isinstance(part, Text) and part.opaque is None and part.attached is None):
        if is_plain:
            merged.append(Text(text_of(run)))
        else:
            merged.extend(run)
    return tuple(merged)


def says_something(message: Message) -> bool:
    """Whether anything is there that is not thinking and not white space."""
    return any(part.text.strip() if isinstance(part, Text) else not isinstance(part, Thought) for part in message.parts)


def is_valid(message: Message | Mapping[str, Any]) -> bool:
    """Whether an answer may be sent back: it has parts, and either a call or no empty text."""
    if not isinstance(message, Message):
        return bool(read := to_messages(message)) and all(map(is_valid, read))
    if not message.parts:
        return False
    if message.calls:
        return True
    return all(part.text != "" for part in message.parts if isinstance(part, Text))


def curated(messages: Iterable[Message | Mapping[str, Any]]) -> tuple[Message, ...]:
    """The valid part of a foreign history: user messages stay, a run of assistant messages is dropped if any of it is invalid."""
    kept: list[Message] = []
    run: list[Message] = []
    for message in as_messages(messages):
        if message.role == "assistant":
            run.append(message)
            continue
        kept += run if all(map(is_valid, run)) else ()
        run = []
        kept.append(message)
    return (*kept, *(run if all(map(is_valid, run)) else ()))


def used_call_ids(messages: Iterable[Message]) -> set[str]:
    answers = [message for message in messages if message.role == "assistant"]  # nobody else calls
    return {part.id for message in answers for part in message.parts if isinstance(part, ToolCall)}


_THOUGHT = re.compile(r"\*\*(.*?)\*\*", re.DOTALL)


def parse_thought(text: str) -> tuple[str, str]:
    """Part a thought that opens with a `**headline**` into its subject and its description (the documents' parseThought)."""
    match = _THOUGHT.search(text)
    if match is None:
        return "", text.strip()
    return match.group(1).strip(), (text[: match.start()] + text[match.end() :]).strip()


def _is_text_only(message: Message) -> bool:
    return message.role == "assistant" and bool(message.parts) and all(isinstance(part, Text) for part in message.parts)
