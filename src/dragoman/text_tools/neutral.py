"""Escapes markers in untrusted text: tool results and file contents must not look like a call, a result or the end of one."""

from __future__ import annotations

import re
from functools import cache

from dragoman.text_tools.openers import BARE_ENDS, CHANNELS, ENDINGS, MESSAGE, NOISE, OPENERS, REASONING, RESPONSES

BREAK = "\u2060"
"""A word joiner: invisible, and it breaks any marker."""


def neutralise(text: str) -> str:
    """Text that looks the same but contains no marker. Text without markers is returned as the same object."""
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
    # Match the first character first, then what may follow it, so that prose costs one check per character.
    firsts = "".join(map(re.escape, behind))
    rest = "|".join(rf"(?<={re.escape(first)})(?:{'|'.join(follows)})" for first, follows in behind.items())
    return re.compile(rf"([{firsts}])(?={rest})", re.DOTALL)
