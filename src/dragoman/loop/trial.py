"""Tries on a copy of the session whether a prompt fits, so that one that cannot be sent is refused before it is recorded.

So a session that was opened with too small a model stays what it was, and the next model goes on as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import dropwhile

from dragoman.context.settings import ContextSettings
from dragoman.loop.configuring import configure
from dragoman.loop.harness import Emit, Harness
from dragoman.loop.history import History
from dragoman.loop.options import RunOptions
from dragoman.loop.prepare import is_repeated
from dragoman.loop.request_size import RequestSize
from dragoman.loop.room import Room
from dragoman.loop.session import Session
from dragoman.values.messages import Message
from dragoman.values.record import Configured, Entry, ModelChanged, Said


async def require_room(harness: Harness, prompt: Message | None, options: RunOptions, emit: Emit) -> None:
    """Raises ContextOverflow where not even the shortest request with this prompt fits the model's window."""
    session = harness.session
    tried = Session(History(entries=session.history.entries, now_ms=session.history.now_ms), session.id, session.blobs, session.outputs)
    tried.model, tried.purse = session.model, session.purse
    trial = copy(harness)
    trial.session = tried
    tried.history.close_interrupted()
    configure(trial, options)
    if prompt is not None and not is_repeated(trial, prompt):
        tried.history.say(prompt)
    settings, size = (harness.context or ContextSettings()).compress, RequestSize(tried)
    is_new = not 0 < _window_of_last_answer(session.history.entries) <= size.window
    await Room(tried, size, settings).require_some(emit, is_new=is_new)


def _window_of_last_answer(entries: Sequence[Entry]) -> int:
    """The window of the model that gave it; 0: not known."""
    behind = dropwhile(lambda entry: not (isinstance(entry, Said) and entry.message.role == "assistant"), reversed(entries))
    return next((entry.window for entry in behind if isinstance(entry, Configured | ModelChanged)), 0)
