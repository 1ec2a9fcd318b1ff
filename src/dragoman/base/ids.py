"""Session ids: the time in UTC, so that they sort, and four random bytes. People name a session by the beginning of its random part."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterable
from itertools import pairwise

LEAST_SHORT = 4
"""A short id has at least so many characters."""
_RANDOM_CHARS = 8
_SESSION_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{8}", re.ASCII)
_BEGINNING = re.compile(r"[0-9a-f-]{4,24}", re.ASCII)
_DRAWS = 64


def new_session_id(others: Collection[str] = ()) -> str:
    """A new id, such as `20261115-120102-1a2b3c4d`. Its short id matches no other session, so that the others' short ids stay valid."""
    taken = {random_part(other)[:LEAST_SHORT] for other in others}
    drawn = ""
    for _ in range(_DRAWS):  # with tens of thousands of sessions there may be none left: then short ids become longer
        drawn = os.urandom(4).hex()
        if drawn[:LEAST_SHORT] not in taken:
            break
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{drawn}"


def is_session_id(text: str) -> bool:
    return _SESSION_ID.fullmatch(text) is not None


def random_part(session_id: str) -> str:
    return session_id[-_RANDOM_CHARS:]


def is_beginning(text: str) -> bool:
    """Whether a session may be named by this text."""
    return _BEGINNING.fullmatch(text) is not None


def named_by(text: str, session_ids: Iterable[str]) -> list[str]:
    """The ids that this text names: by the beginning of the random part, which people see, or else of the whole id."""
    known = list(session_ids)
    by_random_part = [each for each in known if random_part(each).startswith(text)]
    return by_random_part or [each for each in known if each.startswith(text)]


def short_ids(session_ids: Iterable[str]) -> dict[str, str]:
    """For each id the shortest beginning of its random part, of four characters or more, that names no other of them."""
    ordered = sorted(set(session_ids), key=random_part)
    needed = dict.fromkeys(ordered, LEAST_SHORT)
    for one, next_one in pairwise(ordered):  # the two that share most stand side by side
        least = _shared_chars(random_part(one), random_part(next_one)) + 1
        needed[one], needed[next_one] = max(needed[one], least), max(needed[next_one], least)
    return {each: random_part(each)[:chars] if chars <= _RANDOM_CHARS else each for each, chars in needed.items()}


def _shared_chars(one: str, other: str) -> int:
    """How many characters both begin with."""
    return next((place for place, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), min(len(one), len(other)))
