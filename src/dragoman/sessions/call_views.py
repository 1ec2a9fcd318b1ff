"""What a call did, as a person would look at it: a command with its output as text, an edit as a diff. Calls in, pieces of text out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from dragoman.base import jsontext
from dragoman.sessions.transcript import ToolCallStep
from dragoman.values.notes import without_notes
from dragoman.values.record import CommandOutput
from dragoman.words import say

_OLD = ("old_string", "old_str", "old_text", "oldText")
_NEW = ("new_string", "new_str", "new_text", "newText")
_WHOLE = ("content", "file_text")
_PATH = ("file_path", "path", "filePath", "absolute_path")
_PATCHES = ("patch", "input", "diff")
_COMMANDS = ("command", "cmd")


class CallView(msgspec.Struct, frozen=True):
    """One piece of a call."""

    kind: Literal["text", "diff", "error"]
    text: str


def views_of(step: ToolCallStep) -> list[CallView]:
    """What was asked for, then what came of it. Nothing is left out but what is said twice."""
    args = step.call.args or {}
    if (diff := _diff_of(step, args)) is not None:
        said = CallView("error" if step.outcome == "failed" else "text", step.output)
        return _non_empty([CallView("text", _first_of(args, _PATH)), CallView("diff", diff), said])
    asked = CallView("text", _command_of(args) or step.call.arguments)
    return _non_empty([asked, *_output_views(step)])


# --- commands


def _command_of(args: Mapping[str, Any]) -> str:
    """The command, if there is nothing else to know of the call."""
    command = next((args[name] for name in _COMMANDS if args.get(name)), None)
    if isinstance(command, list):
        command = " ".join(map(str, command))
    if not isinstance(command, str):
        return ""
    beside = "".join(f"\n# {name}: {_plain(value)}" for name, value in args.items() if name not in _COMMANDS and value not in (None, ""))
    return f"$ {command}{beside}"


def _output_views(step: ToolCallStep) -> list[CallView]:
    if step.command is not None and not step.command.background:
        return _command_views(_fields_of(step.command))
    output = step.output or step.display
    own = without_notes(output)
    result = jsontext.decode_object(own) if own.lstrip().startswith("{") else None
    if result is None:
        return [CallView("error" if step.outcome == "failed" else "text", output)]
    if "stdout" in result and "exitCode" in result:
        return _command_views(result)
    if isinstance(result.get("output"), str) and isinstance(result.get("metadata"), dict):  # Codex
        return [CallView("text", result["output"]), *_exit_views(result["metadata"].get("exit_code"))]
    return [CallView("text", output)]


def _fields_of(command: CommandOutput) -> dict[str, Any]:
    """As results of an earlier version say it, with the hosts by their names there."""
    fields: dict[str, Any] = msgspec.to_builtins(command)
    hosts = fields.pop("hosts", {})
    if late := hosts.pop("late", ()):
        fields["allowedLate"] = late
    return fields | ({"network": hosts} if any(hosts.values()) else {})


def _command_views(result: Mapping[str, Any]) -> list[CallView]:
    views = [CallView("text", _plain(result["stdout"])), CallView("error", _plain(result.get("stderr") or ""))]
    views += _exit_views(result["exitCode"])
    rest = {name: value for name, value in result.items() if name not in ("stdout", "stderr", "exitCode")}
    return [*views, *(CallView("error", f"{name}: {_plain(value)}") for name, value in rest.items())]


def _exit_views(code: object) -> list[CallView]:
    return [] if code in (0, None) else [CallView("error", say("sessions.exit_code", code=_plain(code)))]


# --- edits


def _diff_of(step: ToolCallStep, args: Mapping[str, Any]) -> str | None:
    """The diff that was shown when it ran; without one (an imported call, or one that did not run) the lines it was to change."""
    shown = step.display.partition("\n")[2]
    if shown.startswith("--- ") and "\n+++ " in shown:
        return shown
    for patch in (args[name] for name in _PATCHES if isinstance(args.get(name), str)):
        if patch.startswith(("*** Begin Patch", "--- ", "diff --git ")):
            return patch
    if isinstance(args.get("edits"), list):
        pairs = [pair for each in args["edits"] if isinstance(each, dict) and (pair := _pair_of(each)) is not None]
        return "\n".join(_diff_lines(*pair) for pair in pairs) if pairs and len(pairs) == len(args["edits"]) else None
    pair = _pair_of(args)
    return _diff_lines(*pair) if pair is not None and _first_of(args, _PATH) else None


def _pair_of(args: Mapping[str, Any]) -> tuple[str, str] | None:
    old, new = _text_of(args, _OLD), _text_of(args, _NEW)
    if old is not None and new is not None:
        return old, new
    whole = _text_of(args, _WHOLE)
    return None if whole is None else ("", whole)


def _diff_lines(old: str, new: str) -> str:
    """Lines that both begin or end with stay; what is between them goes and comes. Linear in the size of both."""
    before, after = _lines(old), _lines(new)
    start = end = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    last, new_last = len(before) - end, len(after) - end
    marked = [(" ", before[:start]), ("-", before[start:last]), ("+", after[start:new_last]), (" ", before[last:])]
    return "\n".join(f"{sign}{line}" for sign, lines in marked for line in lines)


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


# --- values


def _text_of(args: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((args[name] for name in names if isinstance(args.get(name), str)), None)


def _first_of(args: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return _text_of(args, names) or ""


def _plain(value: object) -> str:
    return value if isinstance(value, str) else jsontext.dumps(value)


def _non_empty(views: list[CallView]) -> list[CallView]:
    return [view for view in views if view.text.strip()]
