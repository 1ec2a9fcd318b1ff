"""Names of MCP tools: `mcp__server__tool`, in characters and a length that every service accepts."""

from __future__ import annotations

import re
from collections.abc import Collection
from hashlib import sha256

MAX_CHARS = 64
_HASH_CHARS = 8
_OTHER = re.compile(r"[^a-zA-Z0-9_-]")
_TWO = re.compile(r"__+")


def tool_name(server: str, tool: str, taken: Collection[str] = ()) -> str:
    """The same for the same server and tool, wherever it is asked; with a hash where it had to be changed so far that it could be
    another's, or is taken."""
    plain = f"mcp__{server_part(server)}__{_OTHER.sub('_', tool)}"
    if len(plain) <= MAX_CHARS and plain not in taken:
        return plain
    mark = sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{plain[: MAX_CHARS - _HASH_CHARS - 1]}_{mark}"


def server_part(server: str) -> str:
    """A server's name in those of its tools. Two underscores end it, so it has none: else a rule about the server `git` would cover the
    tools of one that calls itself `git__hub`."""
    return _TWO.sub("_", _OTHER.sub("_", server)).strip("_") or "server"
