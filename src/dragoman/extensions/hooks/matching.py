"""Which hooks match an event: by tool name, or by the event's own subject."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from dragoman.extensions.hooks.definitions import Hook
from dragoman.extensions.hooks.names import TOOL_EVENTS, Event, tool_names
from dragoman.values.patterns import is_match

_PLAIN = re.compile(r"[\w\s,|-]*\Z")
"""Names, and lists of names: each is compared whole."""


def fits(matcher: str, names: Sequence[str], *, whole: bool = True) -> bool:
    """Whether a matcher means one of these names. Empty and `*` mean all. Names and lists of names are compared whole, other matchers are
    searched for as regular expressions; without `whole`, names are too. One that could take long, or is none, means nothing."""
    matcher = matcher.strip()
    if matcher in ("", "*"):
        return True
    if whole and _PLAIN.match(matcher):
        return not {each.strip() for each in re.split(r"[|,]", matcher)}.isdisjoint(names)
    return any(is_match(matcher, name) or matcher == name for name in names)


def is_usable(matcher: str) -> bool:
    """Whether it can be searched for at all: as a regular expression that cannot take long."""
    return bool(_PLAIN.match(matcher)) or matcher.strip() == "*" or is_match(matcher, "x" * 64) is not None


def hooks_for(hooks: Sequence[Hook], event: Event, subject: str, holds: Callable[[Hook], bool] = lambda hook: True) -> list[Hook]:
    """Those of an event that fit its subject, the same command once. `holds` says whether the condition of one does."""
    names = tool_names(subject) if event in TOOL_EVENTS else (subject,)
    found: dict[tuple[object, ...], Hook] = {}
    for hook in hooks:
        if hook.event != event or (subject and not fits(hook.matcher, names, whole=hook.program != "gemini")):
            continue
        if not hook.condition or holds(hook):
            found.setdefault((hook.command, hook.args, hook.program, hook.project, hook.root, hook.url, hook.headers), hook)
    return list(found.values())
