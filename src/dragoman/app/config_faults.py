"""Turns msgspec's validation errors into sentences for the user: the key, what it should be, and the closest valid one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from dragoman.app.config_tables import ConfigFile, keys
from dragoman.base.text import closest, either
from dragoman.words import say, sentence_of

_AT = re.compile(r" - at `\$([^`]*)`\Z")
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_MISSING = re.compile(r"missing required field `([^`]*)`")
_TYPE_NAMES = {
    "int": "kind_int",
    "float": "kind_float",
    "str": "kind_str",
    "bool": "kind_bool",
    "array": "kind_array",
    "object": "kind_object",
    "null": "kind_null",
}


class ConfigFault(msgspec.Struct, frozen=True):
    """What is wrong with a configuration file: the key, and a sentence for the user."""

    path: list[str]
    """The key, as a path from the top level."""
    message: str


def explain(error: msgspec.ValidationError, table: type[msgspec.Struct]) -> ConfigFault:
    text = str(error)
    place = _AT.search(text)
    path = _path(place.group(1)) if place else []
    what = text[: place.start()] if place else text
    if unknown := _UNKNOWN.search(what):
        path.append(unknown.group(1))
        return ConfigFault(path, say("unknown_key", key=".".join(path), hint=_hint(path, table)))
    if missing := _MISSING.search(what):
        path.append(missing.group(1))
        choices = _choices(table, path)
        needed = say("missing_choice", key=path[-1], choices=", ".join(choices)) if choices else say("missing_key", key=path[-1])
        return ConfigFault(path[:-1], say("wrong_value", key=".".join(path[:-1]).removesuffix(".*"), what=needed))
    key = ".".join(path).removesuffix(".*")
    choices = _choices(table, path)
    if choices:
        return ConfigFault(path, say("wrong_choice", key=key, choices=", ".join(choices)))
    return ConfigFault(path, say("wrong_value", key=key, what=_value_problem(what)))


def _path(dotted: str) -> list[str]:
    """msgspec writes `[...]` for any key of a dict and `[0]` for an index of a list."""
    return [name for name in re.sub(r"\[\d+\]", "", dotted.replace("[...]", ".*")).split(".") if name]


def _value_problem(what: str) -> str:
    """msgspec writes `Expected `int`, got `str``, or `Expected `int` >= 1`; anything else stays as it is."""
    named = re.sub(r"`([a-z]+(?: \| [a-z]+)*)`", lambda match: _type_names(match.group(1)), what)
    if found := re.fullmatch(r"Expected (.+?)(?:, got (.+))?", named):
        expected, got = found.groups()
        return say("wrong_kind", expected=expected, got=got) if got else say("wrong_range", expected=expected)
    return named[:1].lower() + named[1:]


def _type_names(names: str) -> str:
    words = [say(_TYPE_NAMES[name]) if name in _TYPE_NAMES else name for name in names.split(" | ") if name != "null" or names == "null"]
    return either(words)


def _hint(path: list[str], table: type[msgspec.Struct]) -> str:

    known = list(keys(table))
    by_last = {key.rpartition(".")[2]: key for key in reversed(known)}
    if path[-1] in by_last:  # the right key in the wrong table
        return say("did_you_mean", name=by_last[path[-1]])
    close = closest(".".join(path), known) or [by_last[name] for name in closest(path[-1], by_last)]
    return say("did_you_mean", name=close[0]) if close else ""


def _choices(table: type[msgspec.Struct], path: list[str]) -> tuple[str, ...]:
    """The allowed values of a key, if it is a Literal."""
    kind: Any = table
    for name in path:
        kind = next((each for each in get_args(kind) if isinstance(each, type) and issubclass(each, msgspec.Struct)), kind)  # of a list
        hints = get_type_hints(kind) if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else {}
        kind = hints.get(name)
    for each in (kind, *get_args(kind)):
        if get_origin(each) is Literal:
            values = get_args(each)
            quotes = '"' if any(isinstance(value, int) for value in values) else ""  # `2` and `"2"` are not the same
            return tuple(f"{quotes}{value}{quotes}" if isinstance(value, str) else str(value) for value in values)
    return ()


def place_row_error(error: Exception, name: str, files: Sequence[ConfigFile]) -> str:
    """The error in a `[deployments.NAME]` table, with its file and line. Only the user's file may have one."""
    from dragoman.base.toml_lines import line_of

    file = files[0]
    message = sentence_of(error)
    cause = error.__cause__
    path = ["deployments", name]
    if isinstance(cause, msgspec.ValidationError):
        text = str(cause)
        if place := _AT.search(text):
            path += _path(place.group(1))
        if unknown := _UNKNOWN.search(text):
            path.append(unknown.group(1))
    line = line_of(file.text, path)
    return say("config_in", where=f"{file.path}:{line}" if line else file.path, problem=message)
