"""Session ids: the time in UTC, so that they sort, and four random bytes."""

from __future__ import annotations

import os
import re
import time

_SESSION_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{8}", re.ASCII)


def new_session_id() -> str:
    """As in `20261115-120102-1a2b3c4d`."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(4).hex()}"


def is_session_id(text: str) -> bool:
    return _SESSION_ID.fullmatch(text) is not None
