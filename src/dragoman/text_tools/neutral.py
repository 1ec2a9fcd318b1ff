"""Text from outside, made harmless: what a tool returned or a file holds must not look like a call, a result or the end of one."""

from __future__ import annotations

import re
from functools import cache

from dragoman.text_tools.openers import BARE_ENDS, CHANNELS, ENDINGS, MESSAGE, NOISE, OPENERS, REASONING, RESPONSES

BREAK = "\u2060"
"""A word joiner: nothing to see, and no marker survives it."""


def neutralise(text: str) -> str:
    """The same text to the eye, without any marker. Text without markers comes back as the same object."""
    search = _markers()
    if search.search(text) is None:
        return text
    return search.sub(lambda match: match[1] + BREAK, text)


@cache
def _markers() -> re.Pattern[str]:
    """Matches the first character of each marker, so that markers within markers are found too."""
    closers = (marker.replace("<", "</", 1) for marker in RESPONSES if re.fullmatch(r"<\w+>", marker))
    fixed = {*OPENERS, *ENDINGS, *REASONING, *REASONING.values(), *BARE_ENDS, *CHANNELS, *NOISE, *RESPONSES, *closers, MESSAGE}
    fixed |= {"✿ARGS✿", "✿RETURN✿", "[AVAILABLE_TOOLS]", "[/TOOL_RESULTS]", "<|tool_call_argument_begin|>", "<｜tool▁sep｜>"}
    behind: dict[str, list[str]] = {}
    for marker in sorted(fixed, key=len, reverse=True):
        behind.setdefault(marker[0], []).append(re.escape(marker[1:]))
    behind.setdefault("{", []).append(r"\s*[\"']tool_calls?[\"']")
    # One character first, and only then what may follow it: so that prose is passed over at one look per character.
    firsts = "".join(map(re.escape, behind))
    rest = "|".join(rf"(?<={re.escape(first)})(?:{'|'.join(follows)})" for first, follows in behind.items())
    return re.compile(rf"([{firsts}])(?={rest})", re.DOTALL)
