"""What msgspec says of a wrong value, in words a person can act on: the key, what it should be, and the nearest right one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from dragoman.base.text import closest
from dragoman.base.words import say

if TYPE_CHECKING:
    from dragoman.app.config import ConfigFile

_AT = re.compile(r" - at `\$([^`]*)`\Z")
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_KINDS = {
    "int": "kind_int",
    "float": "kind_float",
    "str": "kind_str",
    "bool": "kind_bool",
    "array": "kind_array",
    "object": "kind_object",
    "null": "kind_null",
}


class Fault(msgspec.Struct, frozen=True):
    path: list[str]
    """The key, from the top."""
    message: str


def explain(error: msgspec.ValidationError, table: type[msgspec.Struct]) -> Fault:
    said = str(error)
    place = _AT.search(said)
    path = _path(place.group(1)) if place else []
    what = said[: place.start()] if place else said
    if unknown := _UNKNOWN.search(what):
        path.append(unknown.group(1))
        return Fault(path, say("unknown_key", key=".".join(path), hint=_nearest(path, table)))
    key = ".".join(path).removesuffix(".*")
    choices = _choices(table, path)
    if choices:
        return Fault(path, say("wrong_choice", key=key, choices=", ".join(choices)))
    return Fault(path, say("wrong_value", key=key, what=_in_words(what)))


def _path(dotted: str) -> list[str]:
    """msgspec writes `[...]` for any key of a dict and `[0]` for a place in a list."""
    return [name for name in re.sub(r"\[\d+\]", "", dotted.replace("[...]", ".*")).split(".") if name]


def _in_words(what: str) -> str:
    what = re.sub(r"`([a-z]+(?: \| [a-z]+)*)`", lambda match: _kinds(match.group(1)), what)
    return what[:1].lower() + what[1:]


def _kinds(names: str) -> str:
    words = [say(_KINDS[name]) if name in _KINDS else name for name in names.split(" | ") if name != "null" or names == "null"]
    return " or ".join(words)


def _nearest(path: list[str], table: type[msgspec.Struct]) -> str:
    from dragoman.app.config import keys

    known = list(keys(table))
    by_last = {key.rpartition(".")[2]: key for key in reversed(known)}
    if path[-1] in by_last:  # the right key in the wrong table
        return say("did_you_mean", name=by_last[path[-1]])
    close = closest(".".join(path), known) or [by_last[name] for name in closest(path[-1], by_last)]
    return say("did_you_mean", name=close[0]) if close else ""


def _choices(table: type[msgspec.Struct], path: list[str]) -> tuple[str, ...]:
    """What a key may be, where that is a list of words."""
    kind: Any = table
    for name in path:
        hints = get_type_hints(kind) if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else {}
        kind = hints.get(name)
    for each in (kind, *get_args(kind)):
        if get_origin(each) is Literal:
            return tuple(map(str, get_args(each)))
    return ()


def place_row_error(error: Exception, name: str, files: Sequence[ConfigFile]) -> str:
    """What is wrong with a `[deployments.NAME]` table, with its file and line. Only the user's file may have one."""
    from dragoman.app.toml_lines import line_of

    file = files[0]
    message = str(error).removeprefix(": ")
    cause = error.__cause__
    path = ["deployments", name]
    if isinstance(cause, msgspec.ValidationError):
        said = str(cause)
        if place := _AT.search(said):
            path += _path(place.group(1))
        if unknown := _UNKNOWN.search(said):
            path.append(unknown.group(1))
    line = line_of(file.text, path)
    return f"{file.path}:{line}: {message}" if line else f"{file.path}: {message}"
