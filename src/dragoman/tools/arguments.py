"""The model's arguments → a dict that fits the tool's schema, or an error message for the model."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from dragoman.base import jsontext
from dragoman.values.messages import ToolSpec

MAX_ARGUMENT_CHARS = 1_000_000
"""Enough for a file of a megabyte. The loop records twice as much before it rejects an answer as faulty."""
MAX_NAMED = 40
"""How many parameters are named in an error."""
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_EXACT = 2**53


def read_arguments(spec: ToolSpec, text: str, max_chars: int = MAX_ARGUMENT_CHARS) -> tuple[dict[str, Any], str]:
    """The decoded arguments, and what is wrong with them: empty if nothing.

    Whole numbers become int however they were written (in JSON, 3 and 3.0 are the same).
    """
    args, problem = decode_arguments(text, max_chars)
    problem = f"{spec.name} was not run: {problem}." if problem else check_arguments(spec, args)
    return ({}, problem) if problem else (args, "")


def check_arguments(spec: ToolSpec, args: dict[str, Any]) -> str:
    """Why decoded arguments do not fit the tool's schema, in words for the model; empty if they fit."""
    from dragoman.values.schema import problems

    schema = _schema(spec.parameters)
    found = problems(schema, args)
    if not found:
        return ""
    lines = [f"{spec.name} was not run, because its arguments do not fit:", *(f"- {each}" for each in found)]
    declared = schema.get("properties") if isinstance(schema, dict) else None
    if isinstance(declared, dict) and any(each.startswith("unknown field") and "the fields are" not in each for each in found):
        lines.append(f"Its parameters are: {', '.join(list(declared)[:MAX_NAMED])}.")
    return "\n".join(lines)


def decode_arguments(text: str, max_chars: int = MAX_ARGUMENT_CHARS) -> tuple[dict[str, Any], str]:
    """The arguments as an object, and why the text is not one; empty if it is."""
    text = text.strip() or "{}"
    if len(text) > max_chars:
        return {}, f"its arguments are {len(text):,} characters long, and at most {max_chars:,} are taken. Do it in smaller steps"
    if jsontext.is_too_deep(text.encode("utf-8", "replace")):
        return {}, f"its arguments are nested deeper than {jsontext.MAX_DEPTH} levels. Send a flatter object"
    try:
        value = jsontext.decode(jsontext.clean(text))
    except jsontext.NotJSON:
        from dragoman.tools.broken_json import describe_fault

        return {}, describe_fault(text)
    if not isinstance(value, dict):
        return {}, f"its arguments are not a JSON object but {text[:40]!r}. Send one JSON object with named fields"
    if _count_members(value) != _count_written_members(text):
        return {}, "its arguments hold the same field twice, and which was meant cannot be known. Send each field once"
    return _with_whole_numbers(value), ""


def name_parameters(spec: ToolSpec) -> str:
    """What the tool takes, for a model whose arguments could not be read: empty if that is not known."""
    schema = _schema(spec.parameters)
    declared = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(declared, dict) or not declared:
        return ""
    required = schema.get("required") or ()
    named = [f"{name} (required)" if name in required else name for name in list(declared)[:MAX_NAMED]]
    return f"\nThe parameters of {spec.name} are: {', '.join(named)}."


def _count_members(value: Any) -> int:
    """The number of fields of all objects in a value."""
    match value:
        case dict():
            return len(value) + sum(map(_count_members, value.values()))
        case list():
            return sum(map(_count_members, value))
        case _:
            return 0


def _count_written_members(text: str) -> int:
    """The number of fields in the text: one colon each, outside of strings. A decoder silently keeps only the last of duplicate fields."""
    return _STRING.sub("", text).count(":")


def _with_whole_numbers(value: Any) -> Any:
    match value:
        case float():
            return int(value) if value.is_integer() and abs(value) < _EXACT else value
        case dict():
            return {name: _with_whole_numbers(item) for name, item in value.items()}
        case list():
            return [_with_whole_numbers(item) for item in value]
        case _:
            return value


@lru_cache(maxsize=256)
def _schema(parameters: str) -> Any:
    """Decoded once per tool; never modified."""
    try:
        return jsontext.decode(parameters)
    except jsontext.NotJSON:
        return True  # accept everything: the tool must check itself
