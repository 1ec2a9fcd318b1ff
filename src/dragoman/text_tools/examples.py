"""A conversation that never was, before the real one: a small model does as it sees it done, rather than as it is told.

In `examples.md` a blank line stands between two exchanges. The lines of one: what is asked, the reply, what the tool returned, the reply to
that. Replies are written as in `constrained`, and told in whatever form the model is told to use.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from dragoman.base import jsontext
from dragoman.text_tools.constrained import read_constrained
from dragoman.values.messages import Message, Text, ToolCall, ToolResult, user

_FILE = os.path.join(os.path.dirname(__file__), "examples.md")


def examples(tools: Collection[str]) -> tuple[Message, ...]:
    """The exchanges that call one of these tools, and those that need none; nothing where none of the tools occurs."""
    with open(_FILE, encoding="utf-8") as file:
        exchanges = [_exchange(each.splitlines()) for each in file.read().strip().split("\n\n")]
    fitting = [each for each in exchanges if all(call.name in tools for message in each for call in message.calls)]
    if not any(message.calls for each in fitting for message in each):
        return ()
    return tuple(message for each in fitting for message in each)


def _exchange(lines: list[str]) -> tuple[Message, ...]:
    asked, reply, *rest = lines
    match read_constrained(reply):
        case (name, arguments):
            call = ToolCall(f"example-{name}", name, jsontext.dumps(arguments))
            result = ToolResult(call.id, name, (Text("\n".join(rest[:-1])),))
            return user(asked), Message("assistant", (call,)), Message("user", (result,)), _said(rest[-1])
        case _:
            return user(asked), _said(reply)


def _said(reply: str) -> Message:
    words = read_constrained(reply)
    assert isinstance(words, str), f"{_FILE}: {reply!r} is no answer in words"
    return Message("assistant", (Text(words),))
