"""A session in both of its forms: as a person saw it, and as the model is sent it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from dragoman.context.view import View
from dragoman.foreign.sessions import import_conversation
from dragoman.loop.history import History
from dragoman.sessions.log import LoadedLog
from dragoman.sessions.transcript import Step, read_transcript
from dragoman.values.errors import InputError, shown
from dragoman.values.messages import Message
from dragoman.values.record import Entry
from dragoman.words import say

Session = History | LoadedLog | Iterable[Entry] | Mapping[str, Any] | Iterable[Mapping[str, Any]]
"""A record, what `store.read` returns, entries, or a ConversationRecord as gemini-cli writes it: whole, in the documents'
ResumedSessionData, or its messages."""


def shown_history(session: Session) -> tuple[Step, ...]:
    """Return a session as a person saw it (the documents' uiHistory): prompts, replies, calls with their outcome, and notes; also what was
    rejected, pruned or taken back."""
    return read_transcript(_entries(session)).steps


def sent_history(session: Session) -> tuple[Message, ...]:
    """Return a session as the model is sent it (the documents' clientHistory): the messages of its next request."""
    view = View()
    for entry in _entries(session):
        view.feed(entry)
    return view.messages


def _entries(session: Session) -> tuple[Entry, ...]:
    if isinstance(session, (History, LoadedLog)):
        return tuple(session.entries)
    if isinstance(session, Mapping):
        return _of_record(cast("Mapping[str, Any]", session))
    if isinstance(session, (str, bytes)) or not isinstance(session, Iterable):
        raise InputError(say("loop.not_a_session", given=shown(session)))
    items = tuple(session)
    if items and all(isinstance(item, Mapping) for item in items):
        return _of_record({"messages": list(items)})
    for item in items:
        if not isinstance(item, Entry):
            raise InputError(say("loop.not_a_session", given=shown(item)))
    return cast("tuple[Entry, ...]", items)


def _of_record(given: Mapping[str, Any]) -> tuple[Entry, ...]:
    """What a ConversationRecord says; it may lie in the documents' ResumedSessionData, or be given as its messages alone."""
    conversation = given.get("conversation", given)
    messages = conversation.get("messages") if isinstance(conversation, Mapping) else None
    if not isinstance(messages, list):
        raise InputError(say("loop.not_a_record"))
    if not messages:
        return ()
    try:
        return import_conversation({"sessionId": "conversation", **conversation}).entries
    except InputError:  # it tells of a file
        raise InputError(say("loop.not_a_record")) from None
