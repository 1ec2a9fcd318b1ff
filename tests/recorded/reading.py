"""What an answer says, as it is read plainly, and what the plain readers of all protocols share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from recorded.exchanges import Exchange

Json = dict[str, Any]


@dataclass
class Call:
    name: str
    arguments: Any
    """Decoded, or the text itself where it is not JSON."""
    id: str = ""


@dataclass
class PlainUsage:
    input: int = 0
    """The whole prompt, cached or not."""
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    """Everything the model wrote, thinking included."""
    total: int = 0
    """As the service adds it up; 0 if it does not."""


@dataclass
class Reading:
    """One answer, or the error that came in its place."""

    text: str = ""
    thinking: str = ""
    calls: list[Call] = field(default_factory=list)
    signatures: list[tuple[str, ...]] = field(default_factory=list)
    """What only the service can read and wants back. Of two encryptions of the same thing, either will do."""
    citations: list[str] = field(default_factory=list)
    """Addresses, in order; empty for a source without one."""
    usage: PlainUsage = field(default_factory=PlainUsage)
    finish: str = ""
    """In our words. Empty: nothing says that the answer has ended, so it may have been cut."""
    raw_finish: str = ""
    response_id: str = ""
    error: str | None = None
    """The service's own words, where this is no answer."""
    blocks: list[Json] = field(default_factory=list)
    """The parts of the answer as the service sent them, put together from their deltas."""
    custom_calls: list[Json] = field(default_factory=list)
    """Calls of tools that take text instead of JSON, which we never declare."""
    streamed_text: str | None = None
    """What the deltas add up to, for a protocol that also sends the whole text at the end."""


class NoAnswer(Exception):
    """The body is neither an answer nor an error of this protocol."""


def server_sent_events(text: str) -> Iterator[tuple[str, str]]:
    """The name and data of each event, by the standard."""
    name, data = "", list[str]()
    for line in [*re.split(r"\r\n|\n|\r", text), ""]:
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data = "", []
            continue
        key, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if key == "data":
            data.append(value)
        elif key == "event":
            name = value


def documents(exchange: Exchange) -> Iterator[tuple[str, Json]]:
    """The name and content of each event of a stream, or the one document of a whole answer."""
    if not exchange.stream:
        document = json.loads(exchange.body)
        if not isinstance(document, dict):
            raise NoAnswer("not an object")
        yield "", document
        return
    for name, data in server_sent_events(exchange.body):
        if data.strip() != "[DONE]":
            yield name, json.loads(data)


def decoded(text: str) -> Any:
    """Arguments as a value; those that are not JSON as they are."""
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return text


def finish_of(words: dict[str, str], reading: Reading) -> str:
    """The finish reason in our words. A call to carry out counts for more than the service's word for an ordinary end."""
    finish = words.get(reading.raw_finish, "other" if reading.raw_finish else "")
    return "tool_calls" if finish == "stop" and reading.calls else finish


def words_of(error: Any) -> str:
    return error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)
