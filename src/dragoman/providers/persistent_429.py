"""What is done about a 429 after which no attempt is left: the hook of the retry policy is asked."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from dragoman.values.errors import InputError, RateLimited
from dragoman.words import say


def status_of(error: Exception) -> int | None:
    """The HTTP status of an error, ours or another library's; None if it has none."""
    response = getattr(error, "response", None)
    for source, name in ((error, "status"), (error, "status_code"), (error, "code"), (response, "status_code"), (response, "status")):
        status = getattr(source, name, None)
        if isinstance(status, int) and 100 <= status < 600:
            return status
    return None


def is_429(error: Exception) -> bool:
    return isinstance(error, RateLimited) or status_of(error) == 429


async def decide_about_429(hook: Callable[[Any], Any], error: Exception) -> str | bool | None:
    """Ask the hook, which may be a plain function or an async one."""
    decision = hook(error)
    return checked_decision(await decision if inspect.isawaitable(decision) else decision, error)


def checked_decision(decision: object, error: Exception) -> str | bool | None:
    if decision is None or isinstance(decision, str | bool):
        return decision
    raise InputError(say("providers.decision_wrong", given=repr(decision))) from error
