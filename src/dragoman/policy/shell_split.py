"""Splits a command line that is too long to be parsed, by its signs alone: in time that grows with its length and no faster.

Quotes and here-documents are not heeded, so text may be taken for commands, and hardly any command for text. For rules that forbid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dragoman.base.text import set_of
from dragoman.policy.work import WorkDone

_CHARS_PER_UNIT = 8
_UNSEEN = re.compile(r"""\\\n|["'\\]""")
_REDIRECTION = re.compile(r"\d{0,2}(?:&>>?|>>?[|&]?|<<?-?(?![(<])|<<<|<[>&])[ \t]*[^\s;&|<>(){}`]*")
_ENDS = re.compile(r"[;&|\n(){}`<>]")
_BEFORE = set_of("if then elif else while until do case in for select function time ! coproc")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")


def split_commands(command: str, work: WorkDone) -> Iterator[tuple[str, ...]]:
    """What stands between the signs that end a command, as words without quotes. Raises TooMuchWork."""
    work.spend(1 + len(command) // _CHARS_PER_UNIT)
    text = _REDIRECTION.sub(" ", _UNSEEN.sub("", command))
    for part in _ENDS.split(text):
        words = part.split()
        begin = 0
        while begin < len(words) and (words[begin] in _BEFORE or _ASSIGNMENT.match(words[begin])):
            begin += 1
        work.spend(1 + len(words))
        if begin < len(words):
            yield tuple(words[begin:])
