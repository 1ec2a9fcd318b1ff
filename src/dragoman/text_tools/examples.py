"""Few-shot examples put before the first message, for small models.

`examples.md` has a blank line between exchanges. The lines of an exchange: the question, the reply, the tool's result, the reply to that.
Replies are written as in `constrained`, and sent in the form the model has to use.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from dragoman.base import jsontext
from dragoman.text_tools.constrained import read_constrained
from dragoman.values.messages import Message, Text, ToolCall, ToolResult, user

_FILE = os.path.join(os.path.dirname(__file__), "examples.md")


def examples(tools: Collection[str]) -> tuple[Message, ...]:
    """The exchanges that call only these tools, and those without a call; empty if no exchange calls any of them."""
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
            return user(asked), Message("assistant", (call,)), Message("user", (result,)), _assistant_message(rest[-1])
        case _:
            return user(asked), _assistant_message(reply)


def _assistant_message(reply: str) -> Message:
    words = read_constrained(reply)
    assert isinstance(words, str), f"{_FILE}: {reply!r} is no answer in words"
    return Message("assistant", (Text(words),))
