"""Which command results are outdated: the rule alone. When it is applied is decided elsewhere (`decide`).

A result may be pruned if all of these hold: it came from the terminal tool, it is older than 15 minutes, it is not among the 5 newest
results of any tool, and it is not an error. Errors stay so that a mistake is not repeated; they do not use up one of the five places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from dragoman.base import jsontext
from dragoman.context.settings import PruneRule
from dragoman.values.errors import InputError
from dragoman.values.notes import ACTIVATE_SKILL, without_notes
from dragoman.values.record import CommandOutput
from dragoman.words import say

THE_RULE = PruneRule()
ANY_TOOL = "*"
_FIELDS = ("stdout", "stderr", "exitCode")
_NOT_A_RESULT = (str, bytes, int, float, list, tuple, type(None))


def prune_outdated(results: Iterable[Any], now_ms: float, rule: PruneRule = THE_RULE) -> list[int]:
    """The positions of the outdated results, ascending. Nothing is changed.

    A result is a mapping or an object with `tool`, `timestamp_ms`, `content`, `is_error` and `command`. A missing field counts as unknown:
    without a tool name the content shows whether a command wrote it; without a time a result stays and takes no place among the newest.
    `command` is what the record says of one (`CommandOutput`, or a mapping with stdout, stderr and exitCode); without it, the content is
    looked at. A mapping with `role` is a message instead: see `simplify_outdated_results`. Raises InputError for anything else.
    """
    times: list[float | None] = []
    kinds: list[Kind] = []
    for place, result in enumerate(results):
        if isinstance(result, Mapping) and "role" in result and "timestamp_ms" not in result:
            at, kind = _message_facts(result, rule)
        else:
            at, kind = _result_facts(result, rule, place)
        times.append(at)
        kinds.append(kind)
    return [position for position, _ in find_outdated(times, kinds, now_ms, rule)]


class Kind(NamedTuple):
    """The facts about a result that do not change."""

    may_go: bool
    """It came from one of the rule's tools."""
    error: bool


def kind_of(tool: object, content: object, is_error: bool, rule: PruneRule, recorded: object = None) -> Kind:
    """A given name decides; content is examined only if there is none. Content: text, or an already parsed object. `recorded`: what the
    record says of a command; then it decides whether that failed, whatever the model was told of it."""
    if tool == ACTIVATE_SKILL:  # what it says holds as long as the conversation
        return Kind(False, is_error)
    if isinstance(tool, str) and tool:
        names = _names(rule.tools)
        may_go, command = ANY_TOOL in names or tool.casefold() in names, _as_command(recorded)
        if rule.by_content and not may_go:
            command = command or _command_in(content)
            may_go = command is not None
    else:
        command = _as_command(recorded) or _command_in(content)
        may_go = bool(rule.tools) and (command is not None or ANY_TOOL in rule.tools)
    if is_error or (recorded is None and isinstance(content, str) and content.startswith("Error:")):
        return Kind(may_go, True)
    if not may_go:
        return Kind(False, False)
    return Kind(True, _has_failed(command if command is not None else _command_in(content), strict=rule.strict_stderr))


def _result_facts(result: object, rule: PruneRule, place: int) -> tuple[float | None, Kind]:
    if isinstance(result, _NOT_A_RESULT) or hasattr(result, "role"):
        raise InputError(say("context.not_a_result", place=place, kind=type(result).__name__))
    tool, content, is_error = (_field(result, name) for name in ("tool", "content", "is_error"))
    return _time(_field(result, "timestamp_ms")), kind_of(tool, content, bool(is_error), rule, _field(result, "command"))


def _message_facts(message: Mapping[str, Any], rule: PruneRule) -> tuple[float | None, Kind]:
    """Of a message with role, timestamp, messageStatus and content. What no tool said takes no place among the results."""
    if message.get("role") != "tool":
        return None, Kind(False, False)
    content, is_error = message.get("content"), message.get("messageStatus") == "error"
    return _time(message.get("timestamp")), kind_of(None, content, is_error, rule)


def find_outdated(times: Sequence[float | None], kinds: Sequence[Kind], now_ms: float, rule: PruneRule) -> list[tuple[int, float]]:
    """The positions of the outdated results, ascending, each with the first millisecond at which it was outdated: when it was older than
    the rule's age and enough newer results had come."""
    placed = _in_order(times, kinds)
    found: list[tuple[int, float]] = []
    for (at, position), (newer_at, _) in zip(placed, placed[max(rule.keep, 0) :], strict=False):
        if now_ms - at <= rule.age_ms:
            break
        if kinds[position].may_go:
            found.append((position, max(at + rule.age_ms + 1, newer_at)))
    found.sort()
    return found


def find_replaced(times: Sequence[float | None], kinds: Sequence[Kind], rule: PruneRule) -> list[tuple[int, float]]:
    """The positions of results that are not among the newest, whatever their tool and age, each with the time at which it ceased to be."""
    placed = _in_order(times, kinds)
    return [(position, newer_at) for (_, position), (newer_at, _) in zip(placed, placed[max(rule.keep, 0) :], strict=False)]


def _in_order(times: Sequence[float | None], kinds: Sequence[Kind]) -> list[tuple[float, int]]:
    """The results that have a time and are no errors, oldest first."""
    placed = [(at, position) for position, (at, kind) in enumerate(zip(times, kinds, strict=True)) if at is not None and not kind.error]
    placed.sort()  # of two at the same time the later one is newer
    return placed


def _as_command(recorded: object) -> Mapping[str, Any] | None:
    if isinstance(recorded, CommandOutput):
        return {"stdout": recorded.stdout, "stderr": recorded.stderr, "exitCode": recorded.exit_code}
    return recorded if isinstance(recorded, Mapping) else None


def _command_in(content: object) -> Mapping[str, Any] | None:
    """The result of a command, if the content is one. A file that merely contains the characters `"stdout":` is not."""
    if isinstance(content, Mapping):
        value: Mapping[str, Any] | None = content
    elif isinstance(content, str):
        own = without_notes(content)
        value = jsontext.decode_object(own) if own.lstrip(" \t\r\n").startswith("{") else None
    else:
        return None
    return value if value is not None and any(name in value for name in _FIELDS) else None


def _has_failed(command: Mapping[str, Any] | None, *, strict: bool) -> bool:
    if command is None:
        return False
    code = _exit_code(command.get("exitCode"))
    return bool(code) or (bool(command.get("stderr")) and (strict or code is None))


def _exit_code(value: object) -> float | None:
    """None if it is not known."""
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _time(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) and value == value else None


def _field(result: object, name: str) -> Any:
    return result.get(name) if isinstance(result, Mapping) else getattr(result, name, None)


@lru_cache(maxsize=16)
def _names(tools: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name.casefold() for name in tools)
