"""What MCP tools are called: `mcp__server__tool`, in the characters and the length that every service takes."""

from __future__ import annotations

import re
from collections.abc import Collection
from hashlib import sha256

MAX_CHARS = 64
_HASH_CHARS = 8
_OTHER = re.compile(r"[^a-zA-Z0-9_-]")


def tool_name(server: str, tool: str, taken: Collection[str] = ()) -> str:
    """The same for the same server and tool, wherever it is asked; with a hash where it had to be changed so far that it could be
    another's, or is taken."""
    plain = f"mcp__{_OTHER.sub('_', server)}__{_OTHER.sub('_', tool)}"
    if len(plain) <= MAX_CHARS and plain not in taken:
        return plain
    mark = sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{plain[: MAX_CHARS - _HASH_CHARS - 1]}_{mark}"


def full_name(server: str, tool: str) -> str:
    """As rules name it, however the model calls it."""
    return f"mcp__{server}__{tool}"
