"""Where a model's window is only a guess, the limit that its service tells takes its place. The record keeps it, so the session does."""

from __future__ import annotations

import msgspec

from dragoman.loop.history import History
from dragoman.loop.request_size import RequestSize
from dragoman.providers.faults import named_limit
from dragoman.values.errors import ContextOverflow
from dragoman.values.record import Configured

LEAST_WINDOW = 500
"""A smaller number in an error is not taken for a limit."""
BELOW_TOLD = 0.95
"""Where no limit is named, the window is this share of what was too long: that was counted by an estimate."""


def keep_limit(history: History, size: RequestSize, error: ContextOverflow) -> None:
    """Record the limit that an overflow names, or else less than what was too long."""
    if size.profile.known:
        return
    named, sent = named_limit(error.message), size.tokens
    # Until the service has counted a request, our count of it is an estimate, and the name is worth more.
    told = named if named and (named <= sent or not history.view.meter.reported) else round(sent * BELOW_TOLD)
    if LEAST_WINDOW <= told < size.window:
        _narrow_window(history, told)


def _narrow_window(history: History, window: int) -> None:
    """Record the configuration again as it is, with another window."""
    view = history.view
    last = next(entry for entry in reversed(history.entries) if isinstance(entry, Configured))
    seq, now_ms = history.stamp()
    changes = {"model": view.model, "deployment": view.deployment, "dialect": view.dialect, "placeholder": "", "other_placeholder": ""}
    history.append(msgspec.structs.replace(last, seq=seq, timestamp_ms=now_ms, window=window, **changes))
