"""Reading an answer that was bound to one call or words (values/bound_answer.py): whole, and while it streams. It is validated although
the service was given the schema."""

from __future__ import annotations

import re
from typing import Any

from dragoman.base import jsontext
from dragoman.text_tools.render import CallLike, dumps
from dragoman.values.bound_answer import ANSWER, REPLY

MAX_FRAME_CHARS = 200
"""Maximum length of the JSON before the answer text."""
_FRAME = re.compile(r'\s*\{\s*"reply"\s*:\s*\{\s*"answer"\s*:\s*"')
_STRING = re.compile(r'(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_HALF_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")


def render_reply(item: str | CallLike) -> str:
    """Text or a call as written under the grammar."""
    reply = {ANSWER: item} if isinstance(item, str) else {"name": item.name, "arguments": dict(item.args or {})}
    return dumps({REPLY: reply})


def read_constrained(text: str) -> str | tuple[str, dict[str, Any]] | None:
    """The text, or the name and arguments of the call; None if it is neither."""
    value = jsontext.decode_object(text.strip())
    match value.get(REPLY, value) if value is not None else None:
        case {"answer": str(words)}:
            return words
        case {"name": str(name), "arguments": dict(arguments)}:
            return name, arguments
        case _:
            return None


class PartialAnswer:
    """The text of an answer while it streams. `feed` returns what is new; nothing if the answer is a call."""

    def __init__(self) -> None:
        self.text = ""
        self._text = ""
        self.has_begun = self._is_over = False

    def feed(self, piece: str) -> str:
        if self._is_over:
            return ""
        self._text += piece
        if not self.has_begun:
            begun = _FRAME.match(self._text)
            if begun is None:
                self._is_over = len(self._text) > MAX_FRAME_CHARS
                return ""
            self.has_begun, self._text = True, self._text[begun.end() :]
        found = _STRING.match(self._text)
        raw = found.group() if found else ""
        if not self._text.startswith('"', len(raw)):
            raw = _HALF_PAIR.sub("", raw)
        self._text = self._text[len(raw) :]
        self._is_over = self._text.startswith('"')
        words = jsontext.valid_unicode(jsontext.decode(f'"{raw}"'))
        self.text += words
        return words


def words_so_far(text: str) -> str | None:
    """The text of a truncated answer; None if the answer was not text."""
    words = PartialAnswer()
    words.feed(text)
    return words.text if words.has_begun else None
