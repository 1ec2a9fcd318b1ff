"""What the options of an agent may be. A wrong one is refused when the agent is made, not in the middle of a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from typing import Any, Literal, get_args

from dragoman.context.settings import CompressSettings, ContextSettings, PruneRule, PruneSettings, Schedule
from dragoman.http.clients import HttpClient
from dragoman.loop.history import History
from dragoman.loop.options import (
    AnswerPolicy,
    ApprovalOptions,
    FallbackOptions,
    Limits,
    LoopLimits,
    Sandboxing,
    SearchMode,
    SessionOptions,
    ToolCalling,
    ToolOptions,
    WebAccess,
    WorkspaceOptions,
)
from dragoman.policy.grants import Grants
from dragoman.policy.judge import Mode
from dragoman.values.calls import Tool
from dragoman.values.contracts import Provider
from dragoman.values.errors import InputError, shown
from dragoman.values.messages import Effort, Settings, Thinking
from dragoman.words import say

Check = Callable[[str, Any], None]
"""Raises InputError where an option, given by its name, is not what it may be."""


def check_options(**options: Any) -> None:
    """The groups of options by the names of the agent's parameters. None is as good as the default."""
    for name, value in options.items():
        if value is not None:
            _OPTIONS[name](name, value)


# --- one value


def text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise _refusal(name, value, say("loop.option_text"))


def flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise _refusal(name, value, say("loop.option_flag"))


def function(name: str, value: object) -> None:
    if not callable(value):
        raise _refusal(name, value, say("loop.option_function"))


def whole(least: int) -> Check:
    def check(name: str, value: object) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise _refusal(name, value, say("loop.option_whole", least=least))

    return check


def number(least: float, most: float = float("inf")) -> Check:
    def check(name: str, value: object) -> None:
        if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most:
            return
        if most == float("inf"):
            raise _refusal(name, value, say("loop.option_number", least=least))
        raise _refusal(name, value, say("loop.option_between", least=least, most=most))

    return check


def duration(name: str, value: object) -> None:
    number(0)(name, value)
    if value == 0:
        raise _refusal(name, value, say("loop.option_above", least=0))


def one_of(literal: Any) -> Check:
    def check(name: str, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, str | int) or value not in get_args(literal):
            raise _refusal(name, value, say("loop.option_choice", choices=_choices(literal)))

    return check


def folder(name: str, value: Any) -> None:
    if not _is_path(value):
        raise _refusal(name, value, say("loop.option_folder"))
    if not os.path.isdir(value):
        raise InputError(say("loop.no_folder", name=name, path=os.fspath(value).encode(errors="replace").decode()))


def path(name: str, value: object) -> None:
    if not _is_path(value):
        raise _refusal(name, value, say("loop.option_folder"))


def tool(name: str, value: object) -> None:
    if not isinstance(value, Tool) and not callable(value):
        raise _refusal(name, value, say("loop.option_tool"))


def mode(name: str, value: object) -> None:
    if not isinstance(value, str) or value not in get_args(Mode):
        raise _refusal(name, value, say("loop.option_approval", choices=_choices(Mode)))


def memory_file(name: str, value: Any) -> None:
    if not isinstance(value, Collection) or isinstance(value, str) or [isinstance(each, str) for each in value] != [True, True]:
        raise _refusal(name, value, say("loop.option_pair"))


def builtin(name: str, value: object) -> None:
    if not isinstance(value, bool):
        each(text)(name, value)


def hooks(name: str, value: object) -> None:
    from dragoman.values.hooks import Hooks  # not loaded where there are none

    if not isinstance(value, Hooks):
        raise _refusal(name, value, say("loop.option_hooks"))
    for field in Hooks.__struct_fields__:
        if field != "everywhere":
            optional(function)(f"{name}.{field}", getattr(value, field))


def sandbox(name: str, value: object) -> None:
    if not isinstance(value, bool):
        a(Sandboxing)(name, value)


def model(name: str, value: object) -> None:
    if not isinstance(value, str | Provider):
        raise _refusal(name, value, say("loop.option_model"))


def store(name: str, value: Any) -> None:
    if _is_path(value):
        if os.path.isfile(value):
            raise InputError(say("loop.not_a_store", name=name, path=os.fspath(value)))
    elif not callable(getattr(value, "open_or_create", None)):
        raise _refusal(name, value, say("loop.option_store"))


def blob_store(name: str, value: object) -> None:
    if not callable(getattr(value, "put", None)) or not callable(getattr(value, "get", None)):
        raise _refusal(name, value, say("loop.option_blobs"))


def rule(name: str, value: object) -> None:
    from dragoman.policy.rules import Rule, RuleProblem, check_rule

    if not isinstance(value, Rule):
        raise _refusal(name, value, say("loop.option_rule"))
    try:
        check_rule(value)
    except RuleProblem as problem:
        raise InputError(say("loop.option_wrong_rule", name=name, rule=value.text, reason=problem)) from problem


def host(name: str, value: object) -> None:
    from dragoman.policy.host_rules import is_host

    text(name, value)
    if not is_host(str(value)):
        raise _refusal(name, value, say("loop.option_host"))


def budget(name: str, value: Any) -> None:
    """A budget, or an account of one."""
    from dragoman.loop.budget import Account, Budget

    value = value.budget if isinstance(value, Account) else value
    a(Budget)(name, value)
    for field in Budget.__struct_fields__:
        check = duration if field in ("usd", "seconds") else whole(0 if field == "tool_calls" else 1)
        optional(check)(f"{name}.{field}", getattr(value, field))


# --- values within values


def optional(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def a(kind: type) -> Check:
    """A value of this class, whose own fields are checked as well."""

    def check(name: str, value: object) -> None:
        if not isinstance(value, kind):
            raise _refusal(name, value, say("loop.option_kind", kind=_public_name(kind)))
        for field, check_field in _FIELDS.get(kind, {}).items():
            check_field(f"{name}.{field}", getattr(value, field))

    return check


def each(check: Check) -> Check:
    """Several values. A text is not several: it is one that stands in the wrong place."""

    def check_all(name: str, value: object) -> None:
        if not isinstance(value, Collection) or isinstance(value, str | bytes):
            raise _refusal(name, value, say("loop.option_list"))
        for position, item in enumerate(value):
            check(f"{name}[{position}]", item)

    return check_all


# --- the fields of each group

_FIELDS: dict[type, dict[str, Check]] = {
    ToolOptions: {"own": each(tool), "builtin": builtin, "web": optional(a(WebAccess)), "calling": one_of(ToolCalling), "sandbox": sandbox},
    Sandboxing: {
        "level": one_of(Literal["auto", 1, 2, 3, "off", "external"]),
        "unix_sockets": flag,
        "writable": each(path),
        "environment": each(text),
        "gate_port": whole(0),
        "hide_process": flag,
    },
    WebAccess: {"search": one_of(SearchMode), "search_model": text, "searxng": text, "fetch": flag, "client": one_of(HttpClient)},
    WorkspaceOptions: {"root": folder, "include": each(folder), "describe": optional(flag), "memory": each(memory_file)},
    ApprovalOptions: {
        "mode": mode,
        "ask": optional(function),
        "ask_user": optional(function),
        "grants": optional(a(Grants)),
        "rules": each(rule),
        "hosts": each(host),
        "run_sandboxed": flag,
    },
    SessionOptions: {
        "store": optional(store),
        "resume": text,
        "history": optional(a(History)),
        "blobs": optional(blob_store),
        "outputs": text,
        "key": text,
    },
    FallbackOptions: {"models": each(model), "on_persistent_429": optional(function)},
    Settings: {
        "temperature": optional(number(0)),
        "top_p": optional(number(0, 1)),
        "top_k": optional(whole(1)),
        "max_output_tokens": optional(whole(1)),
        "thinking": optional(a(Thinking)),
        "tool_choice": text,
        "response_mime": text,
        "response_schema": text,
        "search": flag,
        "stop": each(text),
    },
    Thinking: {"effort": one_of(Effort), "budget_tokens": optional(whole(0))},
    Limits: {
        "max_turns": whole(1),
        "answers": a(AnswerPolicy),
        "loop": a(LoopLimits),
        "max_output_chars": whole(1),
        "shell_timeout_s": duration,
        "budget": optional(budget),
        "output_tries": whole(0),
        "max_depth": whole(0),
        "max_hand_overs": whole(0),
    },
    AnswerPolicy: {"attempts": whole(1), "delay_s": number(0), "temperature": number(0), "allow_empty_end": flag, "sleep": function},
    LoopLimits: {**dict.fromkeys(LoopLimits.__struct_fields__, whole(0)), "polled": each(text)},
    ContextSettings: {"prune": a(PruneSettings), "compress": a(CompressSettings)},
    PruneSettings: {
        "schedule": one_of(Schedule),
        "rule": a(PruneRule),
        "placeholder": text,
        "pressure": number(0, 1),
        "pressure_step": number(0, 1),
        "overhead": number(0),
        "share": number(0, 1),
        "overdraft": number(0),
    },
    PruneRule: {"tools": each(text), "age_ms": number(-1), "keep": whole(0), "strict_stderr": flag, "by_content": flag, "superseded": flag},
    CompressSettings: {
        "enabled": flag,
        "threshold": number(0, 1),
        "threshold_tokens": whole(0),
        "keep": number(0, 1),
        "min_gain": number(0, 1),
        "retry_growth": number(0),
    },
}
_OPTIONS: dict[str, Check] = {
    "system": text,
    "name": text,
    "instructions": text,
    "tools": a(ToolOptions),
    "workspace": a(WorkspaceOptions),
    "approval": a(ApprovalOptions),
    "session": a(SessionOptions),
    "settings": a(Settings),
    "limits": a(Limits),
    "context": a(ContextSettings),
    "budget": budget,
    "search": one_of(SearchMode),
    "fallback": a(FallbackOptions),
    "hooks": each(hooks),
}


_AT_TOP = {
    *(ToolOptions, WebAccess, WorkspaceOptions, ApprovalOptions, SessionOptions, Settings, Thinking, Limits, ContextSettings),
    *(Grants, History),
}


def _is_path(value: object) -> bool:
    return isinstance(value, str) or hasattr(value, "__fspath__")


def _refusal(name: str, value: object, expected: str) -> InputError:
    return InputError(say("loop.option_wrong", name=name, expected=expected, given=shown(value)))


def _choices(literal: Any) -> str:
    return ", ".join(map(repr, get_args(literal)))


def _public_name(kind: type) -> str:
    """Where whoever reads the sentence finds it."""
    return f"dragoman.{kind.__name__}" if kind in _AT_TOP else f"dragoman.options.{kind.__name__}"
