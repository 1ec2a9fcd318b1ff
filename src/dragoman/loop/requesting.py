"""From what a person writes to a Request every service accepts: coerced, checked, curated, repaired."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.context.repair import repair
from dragoman.values.errors import InputError, shown
from dragoman.values.messages import Content, Request, Settings, ToolSpec
from dragoman.values.parts import check_roles, curated, to_messages
from dragoman.words import say

_TOOL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")


def build_request(
    model: str,
    content: Content | Iterable[Content],
    *,
    system: str = "",
    tools: Iterable[ToolSpec | Mapping[str, Any]] = (),
    settings: Settings | None = None,
    cache_key: str = "",
) -> Request:
    """A Request from a str, a part, a message, or any list of them, whatever happened in it before. Messages and parts may be dicts as the
    APIs of Gemini, OpenAI and Anthropic have them, and so may the declarations of tools.

    Messages that are well as they are go in as the same objects, so a growing conversation is rendered once and not again.
    """
    messages = to_messages(content)
    check_roles(messages)
    if not isinstance(system or "", str):
        raise InputError(say("loop.option_wrong", name="system", expected=say("loop.option_text"), given=shown(system)))
    if not isinstance(settings or Settings(), Settings):
        raise InputError(
            say("loop.option_wrong", name="settings", expected=say("loop.option_kind", kind="dragoman.Settings"), given=shown(settings))
        )
    specs = _specs(tools)
    names = [tool.name for tool in specs]
    if odd := [name for name in names if not _TOOL_NAME.fullmatch(name)]:
        raise InputError(say("loop.wrong_tool_name", name=odd[0]))
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(say("loop.tool_name_twice", name=min(twice)))
    if not (sendable := repair(curated(messages)).messages):
        raise InputError(say("loop.nothing_to_send"))
    return Request(model, sendable, system or "", specs, settings or Settings(), cache_key)


def _specs(tools: Iterable[ToolSpec | Mapping[str, Any]]) -> tuple[ToolSpec, ...]:
    given: tuple[Any, ...] = (tools,) if isinstance(tools, (str, Mapping)) else tuple(tools)
    if all(isinstance(tool, ToolSpec) for tool in given):
        return given
    from dragoman.tools.declared import read_declarations

    if strange := [tool for tool in given if not isinstance(tool, (ToolSpec, Mapping))]:
        raise InputError(say("tools.not_a_declaration", given=shown(strange[0])))
    return tuple(spec for tool in given for spec in read_declarations(tool))
