"""Detects prompt injection: a call that also appears in a tool result may not be the model's own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from dragoman.text_tools.calls import Call
from dragoman.values.messages import Message, Text

MAX_RECENT_CHARS = 400_000
"""How much of the newest results is searched."""
MIN_CHARS = 8
"""Shorter arguments appear in many places by chance."""
MIN_WORD_CHARS = 4
MAX_COMPARED_CHARS = 300
MAX_CHANGED = 2
"""Letters of a short value that may differ; of a long one, one in ten."""
MAX_PLACES = 16
"""Places in a result at which a value is compared."""
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
        """The tool whose result contains the call, or "". `text` is the call as the model wrote it.

        What counts is what the call means: the tool and its values, in any order and notation, and with a letter changed here and there.
        """
        if not self._texts:
            return ""
        whole, words = squeeze(text), _telling_words(call)
        for tool, content in self._texts:
            if len(whole) >= MIN_CHARS and whole in content:
                return tool
            if words and all(_is_near(word, content) for word in words):
                return tool
        return ""


def squeeze(text: str) -> str:
    return _SPACE.sub("", text).casefold()


def _telling_words(call: Call) -> list[str]:
    """What every spelling of the call contains: the tool and the values. Empty if the values are too short to be telling."""
    values = [squeeze(leaf) for leaf in _leaves(call.args)]
    if sum(map(len, values)) < MIN_CHARS:
        return []
    return [squeeze(call.name), *(value[:MAX_COMPARED_CHARS] for value in values if len(value) >= MIN_WORD_CHARS)]


def _leaves(value: object) -> Iterator[str]:
    match value:
        case dict():
            for each in value.values():
                yield from _leaves(each)
        case list():
            for each in value:
                yield from _leaves(each)
        case str():
            yield value
        case bool() | None:
            return
        case _:
            yield str(value)


def _is_near(word: str, content: str) -> bool:
    """Whether the content has the word, or one that differs in few letters. Of such a one, a third is the same."""
    if word in content:
        return True
    third = len(word) // 3
    if third < 2:
        return False
    changed = max(MAX_CHANGED, len(word) // 10)
    for offset in (0, third, 2 * third):
        at = -1
        for _ in range(MAX_PLACES):
            at = content.find(word[offset : offset + third], at + 1)
            if at < 0:
                break
            start = max(at - offset - MAX_CHANGED, 0)
            same = SequenceMatcher(None, word, content[start : start + len(word) + 2 * MAX_CHANGED], autojunk=False).get_matching_blocks()
            if sum(block.size for block in same) >= len(word) - changed:
                return True
    return False
