"""Messages in the shape of other APIs, read as our own: dicts as Gemini, OpenAI (Chat Completions, Responses) and Anthropic take and give
them, and the objects of their SDKs.

Loaded only where something is given that is not ours. Calls and results are paired as they are in those APIs: by id, and where there is
none, or only the name in its place, by name and order. What is not read is refused, with its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.values.api_parts import LISTS, Fields, is_part, read_part, result_content
from dragoman.values.errors import INSTEAD_OF_ROLE, InputError, shown
from dragoman.values.media import read_media
from dragoman.values.messages import (
    SAID,
    Blob,
    Citation,
    FileRef,
    Media,
    Message,
    Part,
    Role,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    is_list,
    unique_id,
)
from dragoman.words import say

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "model": "assistant", "tool": "user", "function": "user"}
_ITEMS = ("message", "function_call", "function_call_output", "reasoning")
"""The items of OpenAI Responses. Anthropic's answers are of the type `message` too, with their blocks as content."""
_OF_AN_ANSWER = ("id", "type", "model", "stop_reason", "stop_sequence", "stop_details", "usage", "status", "phase", "container",
                 "annotations", "audio", "reasoning_details", "context_management")  # fmt: skip
"""Beside a message in the object of a whole answer."""
_REQUESTS = ("contents", "messages", "input", "system_instruction", "systemInstruction", "candidates", "choices", "output")
"""What a dict has that is a whole request or answer."""


def is_foreign(item: object) -> bool:
    """Whether it is a dict, or the object of an SDK that can be written as one."""
    return isinstance(item, Mapping) or (not isinstance(item, type) and _dump_of(item) is not None)


def read_messages(items: Iterable[Any], role: Role) -> tuple[Message, ...]:
    """Messages, parts and dicts, as messages; adjacent loose parts become one message of `role`."""
    reader = _Reader(role)
    for position, item in enumerate(items):
        reader.take(item, say("values.api_message", position=position))
    return reader.close()


def read_parts(item: object) -> tuple[Part, ...]:
    """The parts of a dict that is a part, or of one that is a message."""
    return tuple(part for message in read_messages((item,), "assistant") for part in message.parts)


def _dump_of(item: object) -> Any:
    return next((dump for name in ("model_dump", "to_dict") if callable(dump := getattr(item, name, None))), None)


class _Call:
    """A call that waits for its result."""

    def __init__(self, given: str, call: ToolCall) -> None:
        self.given, self.call, self.is_answered = given, call, False


class _Reader:
    """Collects messages, and knows the calls made so far."""

    def __init__(self, role: Role) -> None:
        self._role: Role = role
        self._messages: list[Message] = []
        self._loose: list[Part] = []
        self._calls: list[_Call] = []
        self._taken: set[str] = set()
        self._joins = ""
        """What the last message was made of, if the next item of the same kind belongs to it: results, or items of one answer."""

    def take(self, item: Any, where: str) -> None:
        if isinstance(item, Message):
            self._end_loose()
            self._messages.append(item)  # the same object: what is known of it is kept by its identity
            self._joins = ""
            self._know(item.parts)
        elif isinstance(item, Mapping):
            self._take_dict(item, where)
        elif is_list(item):
            for each in item:
                self.take(each, where)
        elif isinstance(plain := _plain(item), Mapping):
            self._take_dict(plain, where)
        else:
            part = _own_part(plain)
            self._know((part,))
            self._loose.append(part)

    def close(self) -> tuple[Message, ...]:
        self._end_loose()
        return tuple(self._messages)

    def _take_dict(self, item: Mapping[Any, Any], where: str) -> None:
        fields = Fields(item, where)
        if "role" in fields:
            self._take_message(fields)
        elif fields.keys() and item.get("type") in _ITEMS:
            self._take_item(fields)
        elif "parts" in fields:
            self._add(self._role, self._read_all(fields.items("parts"), where, "assistant" if self._role == "assistant" else "user"))
            fields.close()
        elif item.get("type") == "function" and "function" in fields:
            self._add("assistant", [self._tool_call(fields)], joins="answer")
        elif "type" not in fields and (key := next((key for key in _REQUESTS if key in fields), "")):
            fields.refuse("values.api_request", key=key)
        elif is_part(item):
            self._loose.extend(self._read_all((item,), where, self._role))
        else:
            fields.refuse("values.api_unknown", keys=", ".join(fields.keys()) or "{}")

    # --- messages

    def _take_message(self, fields: Fields) -> None:
        given = fields.take("role")
        given = str(getattr(given, "value", given))
        role = _ROLES.get(given)
        if role is None:
            instead = say(INSTEAD_OF_ROLE.get(given, "values.role_of_user"))
            raise InputError(say("values.api_role", where=fields.where, role=given, instead=instead))
        if "parts" in fields:
            if "content" in fields:
                fields.refuse("values.api_two_kinds", one="parts", other="content")
            self._add(role, self._read_all(fields.items("parts"), fields.where, role))
            fields.close("role, parts")
        elif given in ("tool", "function"):
            self._take_result(fields)
        else:
            self._add(role, self._chat_parts(fields, role))

    def _chat_parts(self, fields: Fields, role: Role) -> list[Part]:
        parts: list[Part] = []
        if role == "assistant":
            thought = [fields.take(key) for key in ("reasoning_content", "reasoning")]
            parts += [Thought(text) for text in thought if isinstance(text, str) and text][:1]
        elif "tool_calls" in fields:
            fields.refuse("values.api_key_of", key="tool_calls", known="role, content")
        said = [key for key in ("content", "tool_calls", "function_call", "refusal") if key in fields]
        if not said and not parts:
            fields.refuse("values.api_missing", key="content")
        parts += self._read_content(fields.take("content"), fields, role)
        parts += [Text(fields.text("refusal"))] if "refusal" in fields else []
        for each in fields.items("tool_calls"):
            if not isinstance(each, Mapping):
                fields.refuse("values.api_type", key="tool_calls", expected=say("values.api_dict"), given=shown(each))
            parts.append(self._tool_call(Fields(each, f"{fields.where}, tool_calls")))
        if "function_call" in fields:
            inner = fields.inside("function_call")
            parts.append(self._called(ToolCall("", inner.text("name"), inner.json("arguments"))))
            inner.close("name, arguments")
        fields.drop(*_OF_AN_ANSWER)
        fields.close("role, content, tool_calls" if role == "assistant" else "role, content")
        return parts

    def _tool_call(self, fields: Fields) -> ToolCall:
        if (kind := fields.text("type", "function")) != "function":
            fields.refuse("values.api_kind", kind=kind)
        inner = fields.inside("function")
        call = ToolCall(fields.text("id", ""), inner.text("name"), inner.json("arguments"))
        inner.close("name, arguments")
        fields.drop("index", "extra_content")
        fields.close("id, type, function")
        return self._called(call)

    def _take_result(self, fields: Fields) -> None:
        """A message of the role `tool`: the result of one call. Several behind each other are one message of ours."""
        call_id, name = fields.text("tool_call_id", ""), fields.text("name", "")
        content = result_content(fields.take("content"), fields)
        fields.close("role, tool_call_id, content")
        if not call_id and not name:
            fields.refuse("values.api_missing", key="tool_call_id")
        self._add("user", [self._answered(ToolResult(call_id, name, content))], joins="results")

    def _take_item(self, fields: Fields) -> None:
        """An item of OpenAI Responses."""
        match fields.take("type"):
            case "function_call":
                call = ToolCall(fields.text("call_id"), fields.text("name"), fields.json("arguments"))
                fields.drop("id", "status", "caller", "namespace")
                self._add("assistant", [self._called(call)], joins="answer")
            case "function_call_output":
                result = ToolResult(fields.text("call_id"), "", result_content(fields.take("output"), fields))
                fields.drop("id", "status")
                self._add("user", [self._answered(result)], joins="results")
            case "reasoning":
                summary = "\n\n".join(
                    Fields(each, fields.where).text("text") for each in fields.items("summary") if isinstance(each, Mapping)
                )
                fields.drop("id", "status", "content", "encrypted_content")
                self._add("assistant", [Thought(summary)] if summary else [], joins="answer")
            case _:
                fields.refuse("values.api_missing", key="role")
        fields.close()

    # --- parts

    def _read_content(self, content: Any, fields: Fields, role: Role) -> list[Part]:
        if content is None:
            return []
        if isinstance(content, str):
            return [Text(content)] if content or role == "user" else []
        if not isinstance(content, LISTS):
            fields.refuse("values.api_type", key="content", expected=say("values.api_text_or_list"), given=shown(content))
        return self._read_all(content, fields.where, role)

    def _read_all(self, items: Iterable[Any], where: str, role: Role) -> list[Part]:
        parts: list[Part] = []
        for number, item in enumerate(items):
            place = say("values.api_part", where=where, part=number)
            given = _plain(item)
            for part in read_part(given, place) if isinstance(given, Mapping) else (_own_part(given),):
                if isinstance(part, ToolCall) and role == "user":
                    raise InputError(say("values.api_call_of_user", where=place))
                parts.append(self._noted(part))
        return parts

    def _noted(self, part: Part) -> Part:
        match part:
            case ToolCall():
                return self._called(part)
            case ToolResult():
                return self._answered(part)
            case _:
                return part

    # --- calls and their results

    def _called(self, call: ToolCall) -> ToolCall:
        """A call under an id of its own: several may have been given one, or none."""
        unique = unique_id(call.id, self._taken)
        self._taken.add(unique)
        named = call if unique == call.id else msgspec.structs.replace(call, id=unique)
        self._calls.append(_Call(call.id, named))
        return named

    def _answered(self, result: ToolResult) -> ToolResult:
        """A result with the id and the name of its call. Without an id, or with the name in its place: the first open call of that name."""
        open_calls = [each for each in self._calls if not each.is_answered]
        found = next((each for each in open_calls if result.call_id and each.given == result.call_id), None)
        if found is None and result.call_id in ("", result.name):
            found = next((each for each in open_calls if each.call.name == result.name), None)
        elif found is None and not result.name:  # Chat Completions with names in the place of ids
            found = next((each for each in open_calls if each.call.name == result.call_id), None)
        if found is None:
            return result if result.call_id else msgspec.structs.replace(result, call_id=result.name)
        found.is_answered = True
        return msgspec.structs.replace(result, call_id=found.call.id, name=found.call.name)

    def _know(self, parts: Iterable[Part]) -> None:
        """Calls and results that are our own already."""
        for part in parts:
            if isinstance(part, ToolCall):
                self._taken.add(part.id)
                self._calls.append(_Call(part.id, part))
            elif isinstance(part, ToolResult):
                for each in self._calls:
                    each.is_answered |= each.call.id == part.call_id

    # --- collecting

    def _add(self, role: Role, parts: Iterable[Part], joins: str = "") -> None:
        self._end_loose()
        made = tuple(parts)
        if joins and not made:
            return
        last = self._messages[-1] if self._messages else None
        if joins and joins == self._joins and last is not None and last.role == role:
            self._messages[-1] = Message(role, last.parts + made)
        else:
            self._messages.append(Message(role, made))
        self._joins = joins

    def _end_loose(self) -> None:
        if self._loose:
            self._messages.append(Message(self._role, tuple(self._loose)))
            self._loose.clear()
            self._joins = ""


def _plain(item: Any) -> Any:
    """What the object of an SDK says of itself; anything else as it is."""
    if isinstance(item, SAID):
        return item
    dump = None if isinstance(item, type) else _dump_of(item)
    return item if dump is None else dump()


def _own_part(item: Any) -> Part:
    match item:
        case str():
            return Text(jsontext.valid_unicode(item))
        case Text() | Thought() | ToolCall() | ToolResult() | Blob() | FileRef() | Citation():
            return item
        case Media() | bytes() | bytearray() | PathLike():
            return read_media(item)
        case _:
            raise InputError(say("values.not_content", given=shown(item)))
