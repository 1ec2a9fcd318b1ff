"""What a tool says of its result, in the user's language.

Tools say it once, in English, and so it stands on the record. Here the sentences they are known to say are read and said anew; others, and
those of tools that are not ours, stay as they are.
"""

from __future__ import annotations

import re

from dragoman.words import say

_COUNT = r"(?P<count>[\d,]+\+?)"
_SENTENCES = {
    "results.lines": rf"{_COUNT} lines?",
    "results.some_lines": rf"{_COUNT} of (?P<total>\d+) lines?",
    "results.some_entries": rf"{_COUNT} of (?P<total>\d+) entr(?:y|ies)",
    "results.matches": rf"{_COUNT} match(?:es)? in (?P<files>[\d,]+\+?) files?",
    "results.files": rf"{_COUNT} files?",
    "results.files_read": rf"{_COUNT} files? read, (?P<failed>\d+) not",
    "results.entries": rf"{_COUNT} entr(?:y|ies)",
    "results.characters": rf"(?P<name>\S+): {_COUNT} characters?",
    "results.no_matches": "no matches",
    "results.no_files": "no files",
    "results.empty_file": "empty file",
    "results.empty_folder": "empty directory",
    "results.no_change": "no change",
    "results.no_output": r"\(no output\)",
    "results.no_answer": r"\(no answer\)",
    "results.no_tools": "0 tools",
    "results.exit_code": r"\(exit code (?P<code>\d+)\)",
    "results.ended_by": r"\(ended by (?P<name>\w+)\)",
    "results.ended_after": r"\(ended after (?P<seconds>[\d.e+]+) s\)",
    "results.last_lines": rf"… the last (?P<shown>\d+) of {_COUNT} lines",
    "results.background_running": r"(?P<id>bg\d+): running",
    "results.background_ended": r"(?P<id>bg\d+): ended",
    "results.background_ended_with": r"(?P<id>bg\d+): ended, exit code (?P<code>\d+)",
    "results.background_stopped": r"(?P<id>bg\d+): stopped.*",
    "results.background_timed_out": r"(?P<id>bg\d+): timed out.*",
    "results.background_failed": r"(?P<id>bg\d+): failed.*",
    "results.missing": r"(?P<name>\S.{0,199}?) does not exist\b.*",
    "results.unread": r"(?P<name>\S.{0,199}?) (?:has not been read yet|exists: read it with read_file)\b.*",
    "results.partly_read": r"(?P<name>\S.{0,199}?) was read only in part\b.*",
    "results.stale": r"(?P<name>\S.{0,199}?) changed since it was read\b.*",
    "results.exists": r"(?P<name>\S.{0,199}?) exists already\b.*",
    "results.not_in_file": r"(?:edit \d+ of \d+ failed.{0,80}: )?old_string was not found in (?P<name>\S.{0,199}?)(?:[;:,] .*)?",
    "results.outside": r"(?P<name>\S.{0,199}?) is outside the workspace\b.*",
    "results.bad_arguments": r"(?P<name>\S+) was not run, because its arguments do not fit:",
    "results.cancelled": r"The user cancelled this call\.",
    "results.cancelled_because": r"The user cancelled this call: (?P<reason>.*)\.",
    "results.ended_with_run": r"This call was ended together with the run\.",
}


def result_in_words(text: str) -> str:
    """One line of what a tool said, in the chosen language; for one that is not English (`call_lines.in_words`)."""
    if not text:
        return text
    for key, pattern in _SENTENCES.items():
        if found := re.fullmatch(pattern, text):
            return say(key, **found.groupdict())
    return text
