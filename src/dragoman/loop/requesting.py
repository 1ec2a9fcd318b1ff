"""From what a person writes to a Request every service accepts: coerced, checked, curated, repaired."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dragoman.context.repair import repair
from dragoman.values.errors import InputError
from dragoman.values.messages import Content, Request, Settings, ToolSpec
from dragoman.values.parts import check_roles, curated, to_messages
from dragoman.words import say

_TOOL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")


def build_request(
    model: str,
    content: Content | Iterable[Content],
    *,
    system: str = "",
    tools: Sequence[ToolSpec] = (),
    settings: Settings | None = None,
    cache_key: str = "",
) -> Request:
    """A Request from a str, a part, a message, or any list of them, whatever happened in it before. Messages and parts may be dicts as the
    APIs of Gemini, OpenAI and Anthropic have them.

    Messages that are well as they are go in as the same objects, so a growing conversation is rendered once and not again.
    """
    messages = to_messages(content)
    check_roles(messages)
    names = [tool.name for tool in tools]
    if odd := [name for name in names if not _TOOL_NAME.fullmatch(name)]:
        raise InputError(say("loop.wrong_tool_name", name=odd[0]))
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(say("loop.tool_name_twice", name=min(twice)))
    if not (sendable := repair(curated(messages)).messages):
        raise InputError(say("loop.nothing_to_send"))
    return Request(model, sendable, system, tuple(tools), settings or Settings(), cache_key)
