"""Detects prompt injection: a call that also appears in a tool result may not be the model's own."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.base import jsontext
from dragoman.text_tools.calls import Call
from dragoman.values.messages import Message, Text

MAX_RECENT_CHARS = 400_000
"""How much of the newest results is searched."""
MIN_CHARS = 8
"""Shorter arguments appear in many places by chance."""
_SPACE = re.compile(r"[\s\\]+")


class RecentResults:
    """The newest tool results of a request, without white space and backslashes, so that neither can hide a call."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._texts: list[tuple[str, str]] = []
        left = MAX_RECENT_CHARS
        for message in reversed(messages):
            for result in reversed(message.results):
                for part in result.content:
                    if isinstance(part, Text) and left > 0:
                        self._texts.append((result.name, squeeze(part.text[:left])))
                        left -= len(part.text)
            if left <= 0:
                break

    def find_echo(self, call: Call, text: str) -> str:
        """The tool whose result contains the call, or "". `text` is the call as the model wrote it."""
        if not self._texts:
            return ""
        whole, words = squeeze(text), _required_words(call)
        for tool, content in self._texts:
            if len(whole) >= MIN_CHARS and whole in content:
                return tool
            if words and all(word in content for word in words):
                return tool
        return ""


def squeeze(text: str) -> str:
    return _SPACE.sub("", text)


def _required_words(call: Call) -> list[str]:
    """What every spelling of the call contains: the tool, the parameters, the values. Empty if the values are too short to be telling."""
    values = [squeeze(value if isinstance(value, str) else jsontext.dumps(value)) for value in call.args.values()]
    if sum(map(len, values)) < MIN_CHARS:
        return []
    return [squeeze(call.name), *map(squeeze, call.args), *values]
