"""A decoded JSON value → the calls in it. Models put the name and the arguments under many keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from dragoman.text_tools import json_text

NAME_KEYS = ("name", "tool_name", "function_name", "tool", "function", "recipient_name", "action")
ARGS_KEYS = ("arguments", "parameters", "args", "params", "input", "kwargs", "action_input")
WRAPPER_KEYS = ("tool_call", "tool_calls", "function_call", "function_calls", "function")
OPENING_KEYS = frozenset((*NAME_KEYS, *ARGS_KEYS, *WRAPPER_KEYS, "id", "type", "tool_call_id", "index"))
"""An object without a marker is considered a call only if it begins with one of these keys."""
_BESIDE = frozenset(("id", "type", "tool_call_id", "index", "call_id", "reason", "explanation", "thought"))

ARGS_AS_STRING = "arguments written as a string"
NO_ARGS = "arguments missing"
MAX_CALLS_IN_VALUE = 200


class Named(msgspec.Struct, frozen=True):
    """A call before alignment."""

    name: str
    args: dict[str, Any]
    repairs: tuple[str, ...] = ()


def calls_in(
    value: Any, *, name_as_key: bool = False, is_bare: bool = False, is_tool: Callable[[str], bool] | None = None
) -> list[Named] | str:
    """The calls in a value, or the reason why there are none. `is_bare`: there is no marker, so the value must be exact. `is_tool`: an
    object whose keys are all tools' names holds a call of each."""
    found: list[Named] = []
    for item, is_wrapped in _items(value, 0):
        if len(found) >= MAX_CALLS_IN_VALUE:
            return "it holds too many calls"
        if is_tool is not None and isinstance(item, dict) and item and all(map(is_tool, item)):
            each = [_with_args(name, args) for name, args in item.items()]
            if faults := [fault for fault in each if isinstance(fault, str)]:
                return faults[0]
            found += [call for call in each if isinstance(call, Named)]
            continue
        read = _from_single_key(item) if name_as_key and not _has_name(item) else _from_object(item, is_bare=is_bare, is_wrapped=is_wrapped)
        if isinstance(read, str):
            return read
        found.append(read)
    return found or "it holds no call"


def _items(value: Any, depth: int, is_wrapped: bool = False) -> Iterator[tuple[Any, bool]]:
    """What may be a call, and whether a key around it says that it is one."""
    if isinstance(value, list):
        for item in value:
            yield from _items(item, depth, is_wrapped)
        return
    if isinstance(value, dict) and depth < 3:
        for key in WRAPPER_KEYS:
            inner = value.get(key)
            if isinstance(inner, (dict, list)) and not any(isinstance(value.get(name), str) for name in ("name", "tool_name")):
                yield from _items(inner, depth + 1, is_wrapped or key != "function")
                return
    yield value, is_wrapped


def _has_name(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("name"), str) and any(key in item for key in ARGS_KEYS)


def _from_object(item: Any, *, is_bare: bool, is_wrapped: bool = False) -> Named | str:
    if not isinstance(item, dict):
        return "it is no object with a name and arguments"
    name_key = next((key for key in NAME_KEYS if isinstance(item.get(key), str) and item[key]), None)
    if name_key is None:
        return "it names no tool"
    args_key = next((key for key in ARGS_KEYS if key in item and key != name_key), None)
    if is_bare and ((args_key is None and not is_wrapped) or any(key not in _BESIDE and key not in (name_key, args_key) for key in item)):
        return "it is an object like any other"
    if args_key is None:
        others = {key: each for key, each in item.items() if key != name_key and key not in _BESIDE}
        if others:
            return "it has no arguments"
        return Named(item[name_key], {}, (NO_ARGS,))
    return _with_args(item[name_key], item[args_key])


def _from_single_key(item: Any) -> Named | str:
    if not isinstance(item, dict) or len(item) != 1:
        return "it is no object with a tool's name as its key"
    ((name, args),) = item.items()
    return _with_args(name, args)


def _with_args(name: str, args: Any) -> Named | str:
    match args:
        case dict():
            return Named(name, args)
        case None:
            return Named(name, {}, (NO_ARGS,))
        case list() if not args:
            return Named(name, {}, (NO_ARGS,))
        case str():
            return _from_string(name, args)
        case _:
            return "its arguments are no object"


def _from_string(name: str, text: str) -> Named | str:
    if not text.strip():
        return Named(name, {}, (NO_ARGS,))
    try:
        value, repairs = json_text.loads(text)
    except json_text.NotReadable:
        return "its arguments are a string that is no JSON"
    if isinstance(value, dict):
        return Named(name, value, (ARGS_AS_STRING, *repairs))
    return "its arguments are no object"
