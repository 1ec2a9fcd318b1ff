"""Does a call stand, as it is, in what a tool returned? Then somebody other than the model may have written it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.base import jsontext
from dragoman.text_tools.calls import Call
from dragoman.values.messages import Message, Text

MAX_RECENT_CHARS = 400_000
"""So much of the newest results is looked through."""
MIN_CHARS = 8
"""Arguments shorter than this stand in many places by chance."""
_SPACE = re.compile(r"[\s\\]+")


class Untrusted:
    """The newest tool results of a request, squeezed: neither white space nor the escaping of quotes hides anything."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._texts: list[tuple[str, str]] = []
        left = MAX_RECENT_CHARS
        for message in reversed(messages):
            for result in reversed(message.results):
                for part in result.content:
                    if isinstance(part, Text) and left > 0:
                        self._texts.append((result.name, squeezed(part.text[:left])))
                        left -= len(part.text)
            if left <= 0:
                break

    def holds(self, call: Call, text: str) -> str:
        """The tool whose result holds the call, or nothing. `text` is the call as the model wrote it."""
        if not self._texts:
            return ""
        whole, words = squeezed(text), _words(call)
        for tool, content in self._texts:
            if len(whole) >= MIN_CHARS and whole in content:
                return tool
            if words and all(word in content for word in words):
                return tool
        return ""


def squeezed(text: str) -> str:
    return _SPACE.sub("", text)


def _words(call: Call) -> list[str]:
    """What any way of writing the call must hold: the tool, the parameters, the values. None where the values are too short to tell."""
    values = [squeezed(value if isinstance(value, str) else jsontext.dumps(value)) for value in call.args.values()]
    if sum(map(len, values)) < MIN_CHARS:
        return []
    return [squeezed(call.name), *map(squeezed, call.args), *values]
