"""Says that a service asks to wait longer than is allowed, and until when."""

from __future__ import annotations

from datetime import datetime, timedelta

from dragoman.values.errors import ProviderError
from dragoman.words import say


def wait_too_long(error: ProviderError, deadline_s: float) -> ProviderError:
    """The error with until when it asks to wait; as it is where it names no time."""
    hint = error.retry_after_s
    if hint is None:
        return error
    too_long = type(error)(
        wait_words(error.message, hint, deadline_s),
        provider=error.provider,
        status=error.status,
        request_id=error.request_id,
        code=error.code,
        retry_after_s=hint,
        retryable=False,
    )
    too_long.may_have_cost = error.may_have_cost
    too_long.__cause__ = error
    return too_long


def wait_words(message: str, hint_s: float, deadline_s: float) -> str:
    """Says that the service asks to wait longer than is allowed, and until when, if a date can express it."""
    try:
        reset = datetime.now().astimezone() + timedelta(seconds=hint_s)
        when = reset.strftime("%H:%M:%S" if hint_s < 12 * 3600 else "%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return say("providers.wait_far_too_long", message=message, seconds=hint_s, limit=deadline_s)
    return say("providers.wait_too_long", message=message, seconds=hint_s, time=when, limit=deadline_s)
