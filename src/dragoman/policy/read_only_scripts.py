"""Scripts of sed and awk that only read and print: a strict grammar for each. Whatever is not on its lists asks.

sed runs commands (`e`, `s///e`) and writes files (`w`, `s///w`, `-i`); awk does both (`system`, `|`, `>`), and reads other files than
those it is given (`getline`, ARGV, `@include`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from dragoman.base.text import set_of


class Found(msgspec.Struct, frozen=True):
    """What a command would read."""

    paths: tuple[int, ...] = ()
    """Which of its words name files."""
    goes_deep: bool = False
    """It reads what lies in folders, and in their folders."""
    is_git: bool = False
    behind: tuple[int, ...] = ()
    """Options and their values that stand behind a file. On some systems, and with POSIXLY_CORRECT, options end there: then these name
    files too."""
    runs: tuple[str, ...] = ()
    """Programs that it starts, which only read as well."""


# --- sed


def _pattern(end: str) -> str:
    """A regular expression that ends at `end`. Programs disagree on whether a list in brackets may hold that: then it asks."""
    end = re.escape(end)
    return rf"(?:[^{end}\\\[\n;{{}}]|\\[^\n\w]|\\[sSwWbB1-9]|\[\^?\]?[^\]{end}\\\[\n;]*\])*"


def _substitution(end: str) -> str:
    """`s/…/…/` with flags that neither write nor run."""
    replacement = rf"(?:[^{re.escape(end)}\\\n]|\\[^\n\w]|\\[0-9nt])*"
    return rf"s{re.escape(end)}{_pattern(end)}{re.escape(end)}{replacement}{re.escape(end)}[gpiI0-9]*"


_ADDRESS = rf"(?:\d+|\$|/{_pattern('/')}/)"
_COMMAND = rf"(?:{_ADDRESS}(?:,(?:{_ADDRESS}|\+\d+))? ?)?!?(?:[pdq=]|{'|'.join(map(_substitution, '/|,#'))})"
# A blank belongs to one place only: with two, some scripts would take for ever to read.
_SED = re.compile(rf"{_COMMAND}(?: ?; ?{_COMMAND})* ?;?")
_SED_OPTIONS = re.compile(r"-[nErsuz]+")
_MAX_SCRIPT = 500


def find_sed_reads(words: Sequence[str]) -> Found | None:
    """Prints, deletes and substitutes lines on the way to its output."""
    at = 1
    while at < len(words) and _SED_OPTIONS.fullmatch(words[at]):
        at += 1
    at += words[at : at + 1] == ["-e"]
    is_clear = at < len(words) and len(words[at]) <= _MAX_SCRIPT and "\n" not in words[at] and _SED.fullmatch(words[at])
    if not is_clear or any(word.startswith("-") and word != "-" for word in words[at + 1 :]):
        return None
    return Found(tuple(range(at + 1, len(words))))


# --- awk

_AWK_CALLS = set_of("print printf if for while return length substr index split tolower toupper match sub gsub sprintf int sqrt log exp")
"""What may stand before a bracket: the functions that only compute, and the words of the language."""
_AWK_CALL = re.compile(r"([A-Za-z_]\w*)\s*\(")
_AWK_OTHER = re.compile(r"[|>@`]|getline|system|close|fflush|function|func\b|ARG[VC]|ENVIRON|SYMTAB|PROCINFO|FUNCTAB|TEXTDOMAIN|::")
"""What writes, runs, or reads anything but the files that are named."""


def find_awk_reads(words: Sequence[str]) -> Found | None:
    """Prints what it computes from the files it is given."""
    at = 1
    if at < len(words) and words[at].startswith("-F"):
        at += 2 if words[at] == "-F" else 1
    if at >= len(words) or words[at].startswith("-") or not _is_awk_plain(words[at]):
        return None
    if any(word.startswith("-") or "=" in word for word in words[at + 1 :]):  # an option, or an assignment and no file
        return None
    return Found(tuple(range(at + 1, len(words))))


def _is_awk_plain(script: str) -> bool:
    """Strings and regular expressions are looked at as well: to tell them from the rest would take awk's own grammar."""
    if len(script) > _MAX_SCRIPT or "\n" in script:
        return False
    script = script.replace(">=", " ") if "{" in script else script.replace(">", " ")  # without an action nothing is printed into a file
    is_plain = not _AWK_OTHER.search(script.replace("||", " ").replace("\\", ""))
    return is_plain and all(call[1] in _AWK_CALLS for call in _AWK_CALL.finditer(script))  # `name\(` is not a call
