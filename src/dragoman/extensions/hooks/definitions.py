"""Reads which hooks a file defines: one shape for all programs, with their own event names and units of time."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.base import jsontext
from dragoman.extensions import located_json
from dragoman.extensions.hooks.names import Event, events_of
from dragoman.extensions.sources import ProgramFolder
from dragoman.values.origin import Origin, Program
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.extensions.plugins import Plugin

MAX_TIMEOUT_S = 3_600.0
DEFAULT_TIMEOUT_S: dict[str, float] = {"claude": 600.0, "codex": 600.0}
USUAL_TIMEOUT_S = 60.0
SESSION_END_S = 1.5
"""How long a hook at the end of a session may take that names no time: the user waits for it."""
FILES: dict[Program, tuple[str, ...]] = {
    "claude": ("settings.json", "settings.local.json"),
    "codex": ("hooks.json", "config.toml"),
    "gemini": ("settings.json",),
}
"""Where programs define hooks, in their folders. Ours are in the configuration."""
LineOf = Callable[[str, int, int | None], int]
"""The line of an event's n-th group (-1: of the event), or of a hook in it by its number; 0: not known."""


class Hook(msgspec.Struct, frozen=True):
    """One command for one event, or one URL that the event is posted to."""

    event: Event
    named: str
    """The event as its file calls it."""
    command: str
    origin: Origin
    matcher: str = ""
    args: tuple[str, ...] | None = None
    """Where there are any, the command is a program that is started with them; else a line for the shell."""
    timeout_s: float = USUAL_TIMEOUT_S
    project: str = ""
    """The project's folder that it comes with; empty for the user's own."""
    is_async: bool = False
    name: str = ""
    root: str = ""
    """The folder of the plugin that it comes with."""
    speaks: Program | None = None
    """Whose names for events and tools it uses, where that is not the program whose file it is."""
    condition: str = ""
    """`if`: a rule as Claude Code writes it, that a call has to fit besides the matcher."""
    url: str = ""
    """Where the input is posted to, in the place of a command."""
    headers: tuple[tuple[str, str], ...] = ()
    env_vars: tuple[str, ...] = ()
    """Variables whose values may stand in the headers."""

    @property
    def program(self) -> Program:
        return self.speaks or self.origin.program

    @property
    def line(self) -> str:
        """What is run, in one line."""
        if self.url:
            return " ".join((f"POST {self.url}", *(f"${name}" for name in self.env_vars)))
        return " ".join((self.command, *(self.args or ())))

    @property
    def when(self) -> str:
        """What it is about, for lists."""
        return f"{self.matcher or '*'} if {self.condition}" if self.condition else self.matcher or "*"

    @property
    def further(self) -> list[object]:
        """What only some hooks have, of all that decides what is run and when."""
        return [self.condition, self.url, self.headers, self.env_vars] if self.condition or self.url else []

    @property
    def id(self) -> str:
        """Short, and the same for as long as the same is run at the same event."""
        parts = [self.named, self.matcher, self.command, *(self.args if self.args is not None else ("\0",)), self.project, self.program]
        parts += [self.root] if self.root else []
        parts += [jsontext.dumps(self.further)] if self.further else []
        return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:8]


class FoundHooks(msgspec.Struct, frozen=True):
    """The hooks that files define."""

    hooks: tuple[Hook, ...] = ()
    notices: tuple[str, ...] = ()
    """One for each file with something that is not run."""


def files_in(folder: ProgramFolder) -> list[str]:
    """The files of a folder that may define hooks. They need not exist."""
    names = FILES.get(folder.program, ())
    return [os.path.join(folder.path, name) for name in names if folder.tier == "project" or name != "settings.local.json"]


def read_json_hooks(text: str, path: str, folder: ProgramFolder, disabled: frozenset[str] = frozenset()) -> FoundHooks:
    """Never raises: errors become one notice that names file and line. `disabled`: see `read_hooks`."""
    place = Origin(folder.program, folder.tier, path)
    try:
        data = located_json.decode(text)
    except located_json.WrongJson as error:
        return FoundHooks((), (say("hooks.bad_file", place=f"{path}:{error.line}", reason=error),))
    if not isinstance(data, dict):
        return FoundHooks((), (say("hooks.bad_file", place=path, reason=say("hooks.not_a_table")),))
    if _is_switched_off(data, folder.program):
        return FoundHooks()
    table = data.get("hooks")
    bounds = Bounds(_texts(data.get("allowedHttpHookUrls")), _texts(data.get("httpHookAllowedEnvVars")))
    return read_hooks(table, place, folder.project, disabled=_disabled(data) | disabled, bounds=bounds, line_of=_lines_in(text, table))


def _lines_in(text: str, table: Any) -> LineOf:
    """Looked up in one go, where there is something to look up."""
    events = table if isinstance(table, dict) else {}
    groups = [(event, at, group) for event, each in events.items() if isinstance(each, list) for at, group in enumerate(each)]
    paths: list[tuple[str, ...]] = [("hooks", str(event)) for event, each in events.items() if not isinstance(each, list)]
    paths += [("hooks", event, str(at)) for event, at, _ in groups]
    paths += [
        ("hooks", event, str(at), "hooks", str(number))
        for event, at, group in groups
        if isinstance(group, dict) and isinstance(rows := group.get("hooks"), list)
        for number in range(len(rows))
    ]
    lines = located_json.lines_of(text, paths)

    def line_of(event: str, at: int, number: int | None) -> int:
        inside = ("hooks", str(number)) if number is not None else ()
        return lines.get(("hooks", event, *((str(at),) if at >= 0 else ()), *inside), 0)

    return line_of


def read_plugin_hooks(text: str, path: str, plugin: Plugin) -> FoundHooks:
    """The hooks of a plugin. They may name the plugin's folder by a variable."""
    origin = plugin.origin
    found = read_json_hooks(text, path, ProgramFolder(plugin.speaks, origin.tier, plugin.path, plugin.project))
    hooks = (
        msgspec.structs.replace(
            hook, root=plugin.path, speaks=plugin.speaks, origin=Origin(origin.program, origin.tier, path, hook.origin.line)
        )
        for hook in found.hooks
    )
    return FoundHooks(tuple(hooks), found.notices)


def _is_switched_off(data: Mapping[str, Any], program: Program) -> bool:
    settings = data.get("hooksConfig")
    if program == "gemini" and isinstance(settings, Mapping) and settings.get("enabled") is False:
        return True
    return data.get("disableAllHooks") is True


def _disabled(data: Mapping[str, Any]) -> frozenset[str]:
    """Names or commands that gemini-cli's user has switched off."""
    settings = data.get("hooksConfig")
    names = settings.get("disabled") if isinstance(settings, Mapping) else None
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()


def read_hooks(
    table: Any,
    place: Origin,
    project: str = "",
    *,
    disabled: frozenset[str] = frozenset(),
    bounds: Bounds | None = None,
    line_of: LineOf = lambda event, at, number: 0,
) -> FoundHooks:
    """The hooks of a table that has lists by event, without those that are `disabled` by name, command, or place (as Codex writes it:
    `FILE:pre_tool_use:0:0`)."""
    if table is None:
        return FoundHooks()
    if not isinstance(table, Mapping):
        return FoundHooks((), (say("hooks.bad_file", place=str(place), reason=say("hooks.not_a_table")),))
    reading = _Reading(place, project, disabled, bounds or Bounds())
    for name, groups in table.items():
        if not isinstance(groups, Sequence) or isinstance(groups, str):
            if not isinstance(groups, bool):  # older files of gemini-cli have a switch among the events
                at = msgspec.structs.replace(place, line=line_of(str(name), -1, None))
                reading.refuse(at, say("hooks.not_a_list", event=str(name)[:60]))
            continue
        for at, group in enumerate(groups):
            reading.add_group(str(name), group, partial(line_of, str(name), at), at)
    return FoundHooks(tuple(reading.hooks), reading.notices())


class Bounds(msgspec.Struct, frozen=True):
    """What a settings.json of Claude Code limits http hooks to; None: nothing."""

    urls: tuple[str, ...] | None = None
    env_vars: tuple[str, ...] | None = None

    def allow(self, url: str) -> bool:
        return self.urls is None or any(
            re.fullmatch(".*".join(map(re.escape, re.split(r"\*+", each[:500]))), url, re.DOTALL) for each in self.urls
        )


class WrongHook(ValueError):
    """The text says why it is not run."""


class OtherKind(ValueError):
    """A hook of a type that there is not here: of which one the text says."""


def _text(row: Mapping[str, Any], key: str) -> str:
    """Raises WrongHook."""
    value = row.get(key)
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise WrongHook(say("hooks.not_text", key=key))
    return value


def _texts(value: Any) -> tuple[str, ...] | None:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else None


class _Reading:
    def __init__(self, place: Origin, project: str, disabled: frozenset[str], bounds: Bounds) -> None:
        self._place = place
        self._project = project
        self._disabled = disabled
        self._bounds = bounds
        self.hooks: list[Hook] = []
        self._unknown: dict[str, Origin] = {}
        self._wrong: list[str] = []

    def notices(self) -> tuple[str, ...]:
        """One at most."""
        problems = list(self._wrong)
        if self._unknown:
            first = next(iter(self._unknown.values()))
            problems.append(say("hooks.no_equal", place=str(first), events=", ".join(self._unknown)))
        if not problems:
            return ()
        return (problems[0] if len(problems) == 1 else say("hooks.several_problems", first=problems[0], more=len(problems) - 1),)

    def refuse(self, at: Origin, reason: str) -> None:
        self._wrong.append(say("hooks.bad_hook", place=str(at), reason=reason))

    def add_group(self, name: str, group: Any, line_of: Callable[[int | None], int], place: int) -> None:
        at = msgspec.structs.replace(self._place, line=line_of(None))
        if not isinstance(group, Mapping):
            return self.refuse(at, say("hooks.not_a_table"))
        events = events_of(self._place.program, name)
        if not events:
            self._unknown.setdefault(name[:60], at)
            return None
        matcher = group.get("matcher", "")
        if not isinstance(matcher, str):
            return self.refuse(at, say("hooks.not_text", key="matcher"))
        rows = group.get("hooks", [group] if "command" in group else None)  # ours may stand without a list
        if not isinstance(rows, Sequence) or isinstance(rows, str):
            return self.refuse(at, say("hooks.not_a_list", event="hooks"))
        key = f"{self._place.path}:{re.sub('(?<=.)(?=[A-Z])', '_', name).lower()}:{place}"
        for number, row in enumerate(rows):
            if f"{key}:{number}" in self._disabled:
                continue
            self._add(name, events, matcher, row, msgspec.structs.replace(at, line=line_of(number) or at.line))
        return None

    def _add(self, name: str, events: tuple[Event, ...], matcher: str, row: Any, at: Origin) -> None:
        if not isinstance(row, Mapping):
            return self.refuse(at, say("hooks.not_a_table"))
        try:
            what = self._command(row) if row.get("type", "command") == "command" else self._address(row)
            condition = _text(row, "if") if "if" in row else ""
        except OtherKind as error:
            return self._wrong.append(say("hooks.other_kind", place=str(at), kind=error))
        except WrongHook as error:
            return self.refuse(at, str(error))
        timeout_s = self._timeout(row, events)
        if timeout_s is None:
            return self.refuse(at, say("hooks.bad_timeout"))
        label = row.get("name") if isinstance(row.get("name"), str) else ""
        if label in self._disabled or what.get("command") in self._disabled:
            return None
        is_async = row.get("async") is True or row.get("asyncRewake") is True
        fields: dict[str, Any] = {"command": "", **what, "condition": condition, "name": str(label or "")}
        for event in events:
            self.hooks.append(
                Hook(event, name, origin=at, matcher=matcher, timeout_s=timeout_s, project=self._project, is_async=is_async, **fields)
            )
        return None

    def _command(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Raises WrongHook."""
        args = row.get("args")
        if args is not None and not (isinstance(args, Sequence) and all(isinstance(each, str) for each in args)):
            raise WrongHook(say("hooks.not_text", key="args"))
        return {"command": _text(row, "command"), "args": tuple(args) if args is not None else None}

    def _address(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Raises WrongHook or OtherKind."""
        if row["type"] != "http":
            raise OtherKind(str(row["type"])[:40])
        url, headers = _text(row, "url"), row.get("headers") or {}
        if not url.startswith(("http://", "https://")) or not url.isascii() or any(sign.isspace() for sign in url):
            raise WrongHook(say("hooks.bad_url", url=url[:100]))
        if not self._bounds.allow(url):
            raise WrongHook(say("hooks.url_not_allowed", url=url[:100]))
        if not isinstance(headers, Mapping) or not all(isinstance(each, str) for pair in headers.items() for each in pair):
            raise WrongHook(say("hooks.not_text", key="headers"))
        named = _texts(row.get("allowedEnvVars")) or ()
        allowed = self._bounds.env_vars
        return {
            "url": url,
            "headers": tuple(headers.items()),
            "env_vars": tuple(each for each in named if allowed is None or each in allowed),
        }

    def _timeout(self, row: Mapping[str, Any], events: tuple[Event, ...]) -> float | None:
        """In seconds; gemini-cli counts milliseconds. None: it is wrong."""
        given = row.get("timeout")
        if given is None:
            return SESSION_END_S if "SessionEnd" in events else DEFAULT_TIMEOUT_S.get(self._place.program, USUAL_TIMEOUT_S)
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < 1e12:
            return None
        return min(given / 1000 if self._place.program == "gemini" else float(given), MAX_TIMEOUT_S)


def definition_of(hook: Hook) -> str:
    """All that decides what it runs and when, as text."""
    parts: list[object] = [
        hook.program,
        hook.project,
        hook.named,
        hook.matcher,
        hook.command,
        list(hook.args) if hook.args is not None else None,
    ]
    parts += [hook.root] if hook.root else []
    return jsontext.dumps([*parts, *hook.further])
