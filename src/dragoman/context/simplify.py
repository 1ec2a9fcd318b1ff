"""Outdated command results in messages of another program, replaced by one line in a copy: the rule of `prune`, by itself."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from dragoman.base.clock import now_ms as clock_ms
from dragoman.context.prune import THE_RULE, prune_outdated
from dragoman.context.settings import PruneRule
from dragoman.context.view import PLACEHOLDER
from dragoman.values.errors import InputError, shown
from dragoman.values.messages import is_list
from dragoman.words import say

_log = logging.getLogger("dragoman.context")
_FIELDS = ("role", "timestamp", "messageStatus", "content")
_AHEAD_MS = 60_000
"""A result may be so much ahead of the clock: machines differ by less."""
_IN_MS = 1e11
"""Milliseconds since 1970, surely: as seconds, the year 5138."""
_APART = 100.0
"""Beside such a time, one so many times smaller is in seconds."""


def simplify_outdated_results(
    messages: Iterable[Mapping[str, Any]],
    now_ms: float | None = None,
    *,
    rule: PruneRule = THE_RULE,
    placeholder: str = PLACEHOLDER,
) -> list[dict[str, Any]]:
    """Replace outdated command results by one line, in a copy: `simplifyOutdatedTerminalResults` of the founding documents.

    A message is a dict with `role`, `content` and, where the role is `tool`, `timestamp` (milliseconds since 1970) and perhaps
    `messageStatus`. A tool's message is a command's if its content is a JSON object with `stdout`, `stderr` or `exitCode`. It is replaced
    if it is older than 15 minutes, not among the five newest of any tool, and no error: it does not begin with `Error:`, its status is not
    `error`, nothing was written to stderr, and the exit code, if there is one, is 0. Everything else about a message stays. One without a
    timestamp stays as it is, as does one from the future: a clock that went back makes nothing outdated.

    The messages given are never changed. `now_ms`: the clock, unless told. Lines of the log say how many were shortened, and
    that the clock went back. Raises
    InputError for what is no message, for results as other APIs write them, and where a time is a text or in seconds.
    """
    if isinstance(messages, Mapping) or not isinstance(messages, Iterable):
        raise InputError(say("context.not_messages", given=shown(messages)))
    if not isinstance(rule, PruneRule):
        raise InputError(
            say("loop.option_wrong", name="rule", expected=say("loop.option_kind", kind="dragoman.options.PruneRule"), given=shown(rule))
        )
    if not isinstance(placeholder, str):
        raise InputError(say("loop.option_wrong", name="placeholder", expected=say("loop.option_text"), given=shown(placeholder)))
    given, now = list(messages), _checked_now(now_ms)
    for place, message in enumerate(given):
        _require_message(message, place, now)

    if ahead := [place for place, message in enumerate(given) if _time_of(message) > now + _AHEAD_MS]:
        _log.warning("%s", say("context.clock_behind", count=len(ahead), place=ahead[0]))
    copies = [deepcopy(dict(message)) for message in given]
    outdated = prune_outdated([{name: message.get(name) for name in _FIELDS} for message in given], now, rule)
    shortened = [place for place in outdated if len(str(copies[place]["content"])) > len(placeholder)]
    for place in shortened:
        copies[place]["content"] = placeholder
    if shortened:
        _log.info("%s", say("context.log_simplified", count=len(shortened), messages=len(given)))
    return copies


def _checked_now(now_ms: float | None) -> float:
    if now_ms is None:
        return clock_ms()
    if isinstance(now_ms, bool) or not isinstance(now_ms, int | float) or not 0 <= now_ms < float("inf"):
        raise InputError(say("context.time_unusable", now=repr(now_ms)))
    return now_ms


def _require_message(message: object, place: int, now: float) -> None:
    if not isinstance(message, Mapping):
        raise InputError(say("context.not_a_message", place=place, given=shown(message)))
    if found := _result_elsewhere(message):
        raise InputError(say("context.foreign_result", place=place, found=found))
    at = message.get("timestamp")
    if message.get("role") == "tool" and isinstance(at, str):
        raise InputError(say("context.time_in_words", place=place, timestamp=repr(at)))
    if message.get("role") != "tool" or isinstance(at, bool) or not isinstance(at, int | float) or not 0 < at < float("inf"):
        return
    if max(at, now) > _IN_MS and max(at, now) > _APART * min(at, now):
        raise InputError(say("context.time_in_seconds", place=place, timestamp=float(at), now=float(now)))


def _result_elsewhere(message: Mapping[str, Any]) -> str:
    """In which words another API puts a tool's result into this message; empty: in none."""
    parts = [*_dicts(message.get("parts")), *_dicts(message.get("content"))]
    if any("functionResponse" in part or "function_response" in part for part in parts):
        return "functionResponse"
    if any(part.get("type") == "tool_result" for part in parts):
        return "tool_result"
    return "function_call_output" if message.get("type") == "function_call_output" else ""


def _time_of(message: Mapping[str, Any]) -> float:
    at = message.get("timestamp")
    return at if message.get("role") == "tool" and isinstance(at, int | float) else 0


def _dicts(items: Any) -> list[Mapping[str, Any]]:
    return [item for item in items if isinstance(item, Mapping)] if is_list(items) else []
