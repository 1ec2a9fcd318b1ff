"""What a model would be told first, without asking it: on a copy of the session, so that nothing is recorded."""

from __future__ import annotations

from copy import copy

from dragoman.loop.conditions import tell_surroundings
from dragoman.loop.configuring import configure
from dragoman.loop.harness import Harness
from dragoman.loop.history import History
from dragoman.loop.session import Session


async def rehearse(harness: Harness) -> History:
    """Return the record as it would stand before the next prompt: with system prompt, tools, and the message about the surroundings."""
    session = harness.session
    copied = Session(History(entries=session.history.entries, now_ms=session.history.now_ms), session.id, session.blobs, session.outputs)
    copied.model = session.model
    rehearsal = copy(harness)
    rehearsal.session, rehearsal.orientation = copied, copy(harness.orientation)
    if rehearsal.orientation is not None:
        rehearsal.orientation.makes_folder = False
    configure(rehearsal)
    await tell_surroundings(rehearsal)
    return copied.history
