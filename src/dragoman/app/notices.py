"""Notices before the first run: one per faulty file, though its rules, hooks and servers are read separately."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from dragoman.base.words import Sentence, say

_PLACES = {
    "file_not_used": "place",
    "hooks.bad_file": "place",
    "mcp_servers.wrong_file": "where",
    "policy.other_not_json": "where",
    "config_unreadable": "path",
    "skills.problem": "where",
}
"""Sentences about a whole file, and the value that names it."""


def one_for_each_file(notices: Iterable[str]) -> tuple[str, ...]:
    """In their order. Of those about one file the first counts, and says that nothing of it is used."""
    kept: dict[str, str] = {}
    for number, notice in enumerate(notices):
        about = _about(notice)
        path = re.sub(r":\d+\Z", "", about[0]) if about is not None else ""
        if about is None or path not in kept:
            kept[path or f"{number}{os.sep}"] = notice
        elif (first := _about(kept[path])) is not None:
            kept[path] = say("file_not_used", place=first[0], reason=first[1])
    return tuple(kept.values())


def _about(notice: object) -> tuple[str, object] | None:
    """The place and the reason of a sentence about a whole file."""
    if not isinstance(notice, Sentence):
        return None
    if notice.key == "other_rules_problem":
        return _about(notice.values.get("problem"))
    name = _PLACES.get(notice.key)
    return (str(notice.values[name]), notice.values["reason"]) if name is not None else None
