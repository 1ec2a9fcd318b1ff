"""Notices before the first run: one per faulty file, though its rules, hooks and servers are read separately."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from dragoman.words import Sentence, say

_PLACES = {
    "file_not_used": "place",
    "link_leads_out": "link",
    "hooks.bad_file": "place",
    "mcp_servers.wrong_file": "where",
    "policy.other_not_json": "where",
    "config_unreadable": "path",
    "skills.problem": "where",
}
"""Sentences about a whole file, and the value that names it."""


_SEVERAL = {"mcp_servers.wrong_entry": "mcp_servers.several_wrong", "mcp_servers.not_approved_unasked": "mcp_servers.several_unasked"}
"""Sentences about one server of a file, and the one about many."""
MANY = 3


def one_for_each_file(notices: Iterable[str]) -> tuple[str, ...]:
    """In their order. Of several notices about one whole file the first is kept: it says that nothing of it is used. The same notice about
    many servers of a file is given once."""
    return tuple(_together(_first_of_each_file(notices)))


def _together(notices: list[str]) -> list[str]:
    groups: dict[tuple[str, str], list[Sentence]] = {}
    for notice in notices:
        if isinstance(notice, Sentence) and notice.key in _SEVERAL:
            groups.setdefault((notice.key, _without_line(notice.values["where"])), []).append(notice)
    said: dict[int, str] = {}
    for (key, path), group in groups.items():
        if len(group) >= MANY:
            names = ", ".join(_named(each) for each in group)
            said |= {id(each): "" for each in group} | {id(group[0]): say(_SEVERAL[key], path=path, count=len(group), names=names)}
    return [told for notice in notices if (told := said.get(id(notice), notice))]


def _named(notice: Sentence) -> str:
    name, reason = str(notice.values["name"]), notice.values.get("reason")
    return f"{name} ({reason})" if reason else name


def _without_line(place: object) -> str:
    return re.sub(r":\d+\Z", "", str(place))


def _first_of_each_file(notices: Iterable[str]) -> list[str]:
    kept: dict[str, str] = {}
    for number, notice in enumerate(notices):
        about = _about(notice)
        path = _without_line(about[0]) if about is not None else ""
        if about is None or path not in kept:
            kept[path or f"{number}{os.sep}"] = notice
        elif (first := _about(kept[path])) is not None and first[1]:
            kept[path] = say("file_not_used", place=first[0], reason=first[1])
    return list(kept.values())


def _about(notice: object) -> tuple[str, object] | None:
    """The place and the reason of a sentence about a whole file."""
    if not isinstance(notice, Sentence):
        return None
    if notice.key == "other_rules_problem":
        return _about(notice.values.get("problem"))
    name = _PLACES.get(notice.key)
    return (str(notice.values[name]), notice.values.get("reason", "")) if name is not None else None  # a link says it all by itself
