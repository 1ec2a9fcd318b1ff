"""Adds to a record what a history from elsewhere has beyond it: a service that makes calls itself returns the whole conversation.

Such a history (the documents' automaticFunctionCallingHistory) begins with what the service was sent. Only what stands behind the known
part is new. Ids are not compared, because a service that returns no ids is given others each time it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from dragoman.context.repair import repair
from dragoman.context.view import View
from dragoman.values.errors import InputError, shown
from dragoman.values.messages import Message, Part, Text, Thought, ToolCall, ToolResult, user
from dragoman.values.parts import INTERRUPTED, check_roles, curated, text_of, to_messages
from dragoman.values.record import ToolOutcome
from dragoman.words import say

_NEXT = user("What is asked next.")
_Key = tuple[object, ...]


class Record(Protocol):
    """A History, as far as it is needed here."""

    @property
    def view(self) -> View: ...
    def curated(self) -> tuple[Message, ...]: ...
    def say(self, message: Message) -> object: ...
    def finish_tool(self, result: ToolResult, outcome: ToolOutcome) -> object: ...


def merge(history: Record, messages: Iterable[Message | Mapping[str, Any]]) -> tuple[Message, ...]:
    """Append what is new and return it. Raises InputError, and appends nothing, where the two histories depart from each other."""
    before, received = history.curated(), history.view.received
    known = (*before, user(*received)) if received else before
    new = _what_is_new(curated(checked(messages)), known)
    if not new:
        return ()
    *_, last = added = list(repair((*known, *new, _NEXT)).messages[len(before) : -1])
    if last.results:  # the calls that have none wait for theirs, which may come with the next history
        added[-1] = Message("user", tuple(part for part in last.parts if not _is_added(part)))
    ours = {result.call_id for result in received}
    if received:  # the round that was begun: what it has is on the record
        added[0] = Message("user", tuple(part for part in added[0].parts if not isinstance(part, ToolResult) or part.call_id not in ours))
    added = [message for message in added if message.parts]
    for message in added:
        add_message(history, message)
    return tuple(added)


def checked(messages: Iterable[Message | Mapping[str, Any]]) -> tuple[Message, ...]:
    """Messages, and dicts that are messages as other APIs write them. Raises InputError for what is no message, such as a loose text of
    which nobody knows who said it, and for a role that no service knows."""
    if isinstance(messages, (Message, Mapping, str, bytes)) or not isinstance(messages, Iterable):
        raise InputError(say("loop.option_wrong", name="messages", expected=say("loop.option_messages"), given=shown(messages)))
    given = tuple(messages)
    for position, message in enumerate(given):
        if not isinstance(message, Message) and not _is_foreign(message):
            raise InputError(
                say("loop.option_wrong", name=f"messages[{position}]", expected=say("loop.option_message"), given=shown(message))
            )
    read = to_messages(given)
    check_roles(read)
    return read


def _is_foreign(message: object) -> bool:
    from dragoman.values.api_shapes import is_foreign

    return is_foreign(message)


def add_message(history: Record, message: Message) -> None:
    """Results are not messages of the record: the view makes them from the calls that ended."""
    for result in message.results:
        history.finish_tool(result, "failed" if result.is_error else "finished")
    said = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    if said or not message.results:
        history.say(Message(message.role, said))


# --- what is new ----------------------------------------------------------------------------------------------------------------------


class _Piece(msgspec.Struct, frozen=True):
    """A part with what is compared of it. Messages are not compared: services join those of one role."""

    key: _Key
    message: int
    """The place of its message, and its own place in it."""
    place: int
    part: Part


def _what_is_new(given: Sequence[Message], known: Sequence[Message]) -> list[Message]:
    ours, theirs = _pieces(known), _pieces(given)
    lengths = _common_lengths([piece.key for piece in theirs], [piece.key for piece in ours])
    beginnings = {0, sum(piece.message == 0 for piece in ours)}  # the setup message may be missing
    best = start = 0
    for place, length in enumerate(lengths):
        is_known = length == len(ours) - place or (place in beginnings and length == len(theirs))
        if is_known and length > best:
            best, start = length, place
    departing = max(lengths, default=0)
    if not best and (departing > 1 or any(lengths[place] for place in beginnings if place < len(lengths))):
        raise InputError(say("loop.histories_depart", number=theirs[departing].message + 1))
    if best == len(theirs):
        return []
    ids = {
        theirs[place].part.id: ours[start + place].part.id  # type: ignore[union-attr]
        for place in range(best)
        if isinstance(theirs[place].part, ToolCall)
    }
    first = theirs[best]
    is_split = best > 0 and theirs[best - 1].message == first.message
    rest = given[first.message].parts[first.place if is_split else 0 :]
    return [_rename(message, ids) for message in (Message(given[first.message].role, rest), *given[first.message + 1 :])]


def _common_lengths(beginning: Sequence[_Key], whole: Sequence[_Key]) -> list[int]:
    """For each place of `whole`: how long it goes on there as `beginning` begins. By the Z algorithm, which is never quadratic."""
    joined: list[_Key | None] = [*beginning, None, *whole]
    lengths, left, right = [0] * len(joined), 0, 0
    for place in range(1, len(joined)):
        length = min(right - place, lengths[place - left]) if place < right else 0
        while place + length < len(joined) and joined[length] == joined[place + length] and joined[length] is not None:
            length += 1
        lengths[place] = length
        if place + length > right:
            left, right = place, place + length
    return lengths[len(beginning) + 1 :]


def _pieces(messages: Sequence[Message]) -> list[_Piece]:
    """The parts that are compared: neither thinking nor results that `repair` has added."""
    return [
        _Piece((message.role, *key), number, place, part)
        for number, message in enumerate(messages)
        for place, part in enumerate(message.parts)
        if (key := _key(part)) is not None
    ]


def _key(part: Part) -> _Key | None:
    match part:
        case Text(text=text):
            return ("text", text) if text else None
        case Thought():
            return None
        case ToolCall(name=name):
            args = part.args
            return "call", name, part.arguments if args is None else msgspec.json.encode(args, order="sorted")
        case ToolResult(name=name):
            return None if _is_added(part) else ("result", name, tuple(_key(each) for each in part.content))
        case _:
            return "media", msgspec.json.encode(part)


def _is_added(part: Part) -> bool:
    """Say whether this is the result that `repair` gives a call without one."""
    return isinstance(part, ToolResult) and part.is_error and text_of(part.content) == INTERRUPTED


def _rename(message: Message, ids: dict[str, str]) -> Message:
    """With our ids in the results of calls that we know."""
    parts = tuple(
        msgspec.structs.replace(part, call_id=ids.get(part.call_id, part.call_id)) if isinstance(part, ToolResult) else part
        for part in message.parts
    )
    return Message(message.role, parts)
