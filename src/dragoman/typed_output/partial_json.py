"""JSON that has not arrived completely, as the value it is so far.

What a value begins with never changes when more of it comes: texts, lists and objects only grow. So a number or a word that may go on is
left out until it has ended, and so is a key without a value.
"""

from __future__ import annotations

import re
from typing import Any, Final

from dragoman.base import jsontext
from dragoman.typed_output.form import KIND, VALUE
from dragoman.typed_output.wire_form import KEY

NOTHING: Final = object()
"""There is no value yet; None is one."""
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*(?P<end>"?)|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_OPEN_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)(?:\\|\\u[0-9a-fA-F]{0,3}|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?)\Z")
"""An escape that may go on: also the first half of a pair of surrogates."""
_CLOSERS = {"{": "}", "[": "]"}
_PAIRS = ({KEY, VALUE}, {KIND, VALUE})


def complete(text: str) -> Any:
    """The value of the JSON so far, or NOTHING. A code fence may stand before it."""
    text = text.lstrip()
    if text.startswith("```"):
        text = text.partition("\n")[2].lstrip()
    whole = _close(text)
    try:
        return jsontext.decode(whole) if whole else NOTHING
    except jsontext.NotJSON:
        return NOTHING


def without_open_pair(value: Any) -> Any:
    """A value in a service's form without the object that it ends with, where that is a pair that has no value yet."""
    match value:
        case list() if value:
            last = without_open_pair(value[-1])
            return value[:-1] if last is NOTHING else [*value[:-1], last]
        case dict():
            if not value or any(value.keys() < pair for pair in _PAIRS):
                return NOTHING
            name = next(reversed(value))
            last = without_open_pair(value[name])
            return {key: each if key != name else last for key, each in value.items() if key != name or last is not NOTHING}
        case _:
            return value


def _close(text: str) -> str:
    """The text up to the last place where it can be closed, and closed there; empty if there is none."""
    closers: list[str] = []
    wants_key = False
    safe, closing = 0, ""
    for token in _TOKEN.finditer(text):
        word, is_key = token[0], wants_key
        if word in _CLOSERS:
            closers.append(_CLOSERS[word])
            wants_key = word == "{"
        elif word == ",":
            wants_key = bool(closers) and closers[-1] == "}"
            continue
        elif word == ":":
            wants_key = False
            continue
        elif word in ("}", "]"):
            if not closers or closers.pop() != word:
                return ""
            wants_key = False
        elif word[0] == '"':
            if not token["end"]:
                return (
                    "" if is_key and not safe else text[:safe] + closing if is_key else _end_text(text[: token.end()]) + _closing(closers)
                )
            if is_key:
                continue
        elif token.end() == len(text):
            break
        safe, closing = token.end(), _closing(closers)
        if not closers:
            break
    return text[:safe] + closing


def _closing(closers: list[str]) -> str:
    return "".join(reversed(closers))


def _end_text(text: str) -> str:
    return _OPEN_ESCAPE.sub(r"\1", text) + '"'
