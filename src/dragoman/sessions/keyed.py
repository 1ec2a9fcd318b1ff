"""Sessions by a key of the embedder's own: open the one that has it, or create it. Of several who ask at once, one creates it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from dragoman.base.lock import hold
from dragoman.base.private import make_directory
from dragoman.values.errors import InputError
from dragoman.words import say

_T = TypeVar("_T")
_KEYS = "keys"
"""Beside a file of this name in the folder of all sessions is the lock under which sessions with keys are created."""


def open_or_create(root: str, find: Callable[[], _T | None], create: Callable[[], _T]) -> _T:
    """What `find` opens, else what `create` makes, while no other process creates one. Raises what they raise, and InputError."""
    if (found := find()) is not None:
        return found
    path = os.path.join(root, _KEYS)
    try:
        make_directory(root)
        with hold(path):
            return find() or create()
    except OSError as error:
        raise InputError(say("sessions.not_saved", path=path, reason=error.strerror or error)) from error
