"""Interprets how a hook ended: its exit code and output become an answer. Nothing is raised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from dragoman.base import jsontext
from dragoman.base.text import clip, one_line
from dragoman.base.visible import strip_hidden
from dragoman.extensions.hooks.names import BLOCKING_EVENTS, CONTEXT_EVENTS, Event
from dragoman.values.origin import Program
from dragoman.words import say

MAX_WORDS_CHARS = 20_000
"""Of what one hook may say to the model or the user."""
MAX_LINE_CHARS = 500
BLOCK = 2
"""The exit code that blocks."""
Permission = Literal["", "allow", "ask", "deny"]


class Answer(msgspec.Struct, frozen=True):
    """What hooks want. The words are theirs."""

    blocks: bool = False
    """What the event is about shall not happen; at a Stop: it shall go on."""
    reason: str = ""
    """Why, for the model."""
    permission: Permission = ""
    arguments: dict[str, Any] | None = None
    """Other arguments for the call; with gemini-cli's hooks those that differ."""
    context: str = ""
    """Further context for the model."""
    replacement: str | None = None
    """What the model is shown in the place of a result."""
    stops: bool = False
    """The run shall end."""
    stop_reason: str = ""
    messages: tuple[str, ...] = ()
    """For the user."""
    warnings: tuple[str, ...] = ()
    """How hooks failed, for the user."""


class HookEnd(msgspec.Struct, frozen=True):
    """How a hook's command ended."""

    code: int
    stdout: bytes = b""
    stderr: bytes = b""
    timed_out: bool = False
    is_cut: bool = False
    """Whether it printed more than was kept."""


def read_answer(event: Event, program: Program, ended: HookEnd) -> Answer:
    printed = jsontext.valid_unicode(ended.stdout.decode("utf-8", "replace")).strip()
    stdout, stderr = strip_hidden(printed), _text(ended.stderr)
    if ended.timed_out:
        return Answer(warnings=(say("hooks.timed_out"),))
    if ended.code == BLOCK:
        return _blocked(event, program, stderr or stdout)
    if ended.code:
        return _failed(ended.code, stderr or stdout)
    if not stdout:
        return Answer()
    if printed.startswith("{"):
        if ended.is_cut:
            return Answer(warnings=(say("hooks.too_long"),))
        data = jsontext.decode_object(printed)
        if data is not None and not jsontext.is_too_deep(ended.stdout):
            return _Reading(event, program, data).answer()
        if event not in CONTEXT_EVENTS:
            return Answer(warnings=(say("hooks.not_json"),))
    if program == "gemini":
        return Answer(messages=(clip(stdout, MAX_WORDS_CHARS),))
    return Answer(context=clip(stdout, MAX_WORDS_CHARS)) if event in CONTEXT_EVENTS else Answer()


def _failed(code: int, words: str) -> Answer:
    said = one_line(words, MAX_LINE_CHARS)
    return Answer(warnings=(say("hooks.failed", code=code, said=said) if said else say("hooks.failed_silently", code=code),))


def _blocked(event: Event, program: Program, words: str) -> Answer:
    words = clip(words, MAX_WORDS_CHARS)
    if event not in BLOCKING_EVENTS:
        return _failed(BLOCK, words)
    reason = words or str(say("hooks.no_reason"))
    permission: Permission = "deny" if event in ("PreToolUse", "PermissionRequest") else ""
    replacement = reason if program == "gemini" and event in ("PostToolUse", "PostToolUseFailure") else None
    return Answer(blocks=True, reason=reason, permission=permission, replacement=replacement)


def _text(data: bytes) -> str:
    return strip_hidden(jsontext.valid_unicode(data.decode("utf-8", "replace"))).strip()


class _Reading:
    """Reads one JSON answer. What has the wrong type is left out, and said in one warning."""

    def __init__(self, event: Event, program: Program, data: Mapping[str, Any]) -> None:
        self._event = event
        self._program = program
        self._data = data
        own = data.get("hookSpecificOutput")
        self._own: Mapping[str, Any] = own if isinstance(own, Mapping) else {}
        self._odd: list[str] = [] if own is None or isinstance(own, Mapping) else ["hookSpecificOutput"]

    def answer(self) -> Answer:
        stops = self._data.get("continue") is False
        decision, reason = self._of(self._data, "decision"), self._of(self._data, "reason")
        blocks = decision in ("block", "deny")
        permission: Permission = "deny" if blocks and self._event in ("PreToolUse", "PermissionRequest") else ""
        if decision in ("approve", "allow") and self._event == "PreToolUse" and self._program != "gemini":
            permission = "allow"
        arguments: dict[str, Any] | None = None
        if self._event == "PreToolUse":
            permission, reason = self._permission(permission, reason)
            arguments = self._object(self._own, "tool_input" if self._program == "gemini" else "updatedInput")
        elif self._event == "PermissionRequest":
            permission, reason, arguments, interrupts = self._behaviour(permission, reason)
            stops = stops or interrupts
        blocks = (blocks or permission == "deny") and self._event in BLOCKING_EVENTS
        message = self._of(self._data, "systemMessage")
        return Answer(
            blocks=blocks,
            reason=reason or (str(say("hooks.no_reason")) if blocks else ""),
            permission=permission,
            arguments=arguments,
            context=self._of(self._own, "additionalContext"),
            replacement=self._replacement(blocks, reason),
            stops=stops,
            stop_reason=self._of(self._data, "stopReason") or (reason if stops else ""),
            messages=(message,) if message else (),
            warnings=(say("hooks.odd_fields", names=", ".join(self._odd)),) if self._odd else (),
        )

    def _permission(self, permission: Permission, reason: str) -> tuple[Permission, str]:
        given = self._of(self._own, "permissionDecision")
        if given == "allow" or given == "ask" or given == "deny":
            permission = given
        elif given:
            self._odd.append("permissionDecision")
        return permission, self._of(self._own, "permissionDecisionReason") or reason

    def _behaviour(self, permission: Permission, reason: str) -> tuple[Permission, str, dict[str, Any] | None, bool]:
        """The answer to a permission request, in the form of Claude Code and Codex: an object with the behaviour."""
        decision = self._object(self._own, "decision") or {}
        given = self._of(decision, "behavior")
        if given == "allow" or given == "deny":
            permission = given
        elif given:
            self._odd.append("behavior")
        interrupts = given == "deny" and decision.get("interrupt") is True
        return permission, self._of(decision, "message") or reason, self._object(decision, "updatedInput"), interrupts

    def _replacement(self, blocks: bool, reason: str) -> str | None:
        if self._event not in ("PostToolUse", "PostToolUseFailure"):
            return None
        given = self._own.get("updatedMCPToolOutput", self._own.get("updatedToolOutput"))
        if given is not None:
            return clip(given if isinstance(given, str) else jsontext.dumps(given), MAX_WORDS_CHARS)
        return reason or str(say("hooks.no_reason")) if blocks and self._program == "gemini" else None

    def _of(self, data: Mapping[str, Any], key: str) -> str:
        value = data.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            self._odd.append(key)
            return ""
        return clip(strip_hidden(value), MAX_WORDS_CHARS)

    def _object(self, data: Mapping[str, Any], key: str) -> dict[str, Any] | None:
        value = data.get(key)
        if value is not None and not isinstance(value, dict):
            self._odd.append(key)
        return value if isinstance(value, dict) else None


def join_answers(answers: Sequence[Answer]) -> Answer:
    """What several hooks want together: the strictest decision with its reasons, the last arguments, all messages."""
    ranks: dict[Permission, int] = {"": 0, "allow": 1, "ask": 2, "deny": 3}
    permission: Permission = ""
    for answer in answers:
        permission = answer.permission if ranks[answer.permission] > ranks[permission] else permission
    deciding = [answer for answer in answers if answer.blocks or (permission and answer.permission == permission)]
    arguments: dict[str, Any] | None = None
    for answer in answers:
        arguments = answer.arguments if answer.arguments is not None else arguments
    replacements = [answer.replacement for answer in answers if answer.replacement is not None]
    return Answer(
        blocks=any(answer.blocks for answer in answers),
        reason=_joined([answer.reason for answer in deciding]),
        permission=permission,
        arguments=arguments,
        context=_joined([answer.context for answer in answers]),
        replacement=_joined(replacements) if replacements else None,
        stops=any(answer.stops for answer in answers),
        stop_reason=_joined([answer.stop_reason for answer in answers if answer.stops]),
        messages=tuple(each for answer in answers for each in answer.messages),
        warnings=tuple(each for answer in answers for each in answer.warnings),
    )


def _joined(texts: Sequence[str]) -> str:
    return "\n\n".join(dict.fromkeys(text for text in texts if text))
