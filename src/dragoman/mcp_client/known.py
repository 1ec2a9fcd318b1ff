"""A cache on disk of what servers offer, so that no server is started before one of its tools is called."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from dragoman.base.atomic import replace_file
from dragoman.base.clock import now_ms
from dragoman.base.found_files import read_found
from dragoman.base.private import make_directory
from dragoman.mcp_client.configured import ConfiguredServer, hash_of
from dragoman.mcp_client.contracts import Era, McpPrompt, McpResource, McpTool

MAX_BYTES = 50_000_000
VERSION = 1


class KnownList(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a server said it offers."""

    version: int = VERSION
    hash: str = ""
    """Of the configuration it was started with."""
    saved_ms: int = 0
    ttl_ms: int | None = None
    """How long the server says that it holds; None: until it is seen to have changed."""
    era: Era = ""
    protocol: str = ""
    instructions: str = ""
    tools: tuple[McpTool, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()
    resources: tuple[McpResource, ...] = ()

    @property
    def is_outdated(self) -> bool:
        return self.ttl_ms is not None and now_ms() > self.saved_ms + self.ttl_ms

    @property
    def tools_hash(self) -> str:
        """A hash of everything that the model and the user get to see of the tools."""
        return hash_of([[tool.name, tool.title, tool.description, tool.input_schema, tool.annotations] for tool in self.tools])


class KnownLists:
    """One file for each server, in our cache. What cannot be read is not known; what cannot be written is asked for again."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def get(self, server: ConfiguredServer) -> KnownList | None:
        try:
            known = msgspec.json.decode(read_found(self._path(server), MAX_BYTES), type=KnownList)
        except (OSError, msgspec.DecodeError, UnicodeError, RecursionError):
            return None
        return known if known.version == VERSION and known.hash == server.hash else None

    def put(self, server: ConfiguredServer, known: KnownList) -> None:
        try:
            make_directory(self._folder)
            replace_file(self._path(server), msgspec.json.encode(known))
        except (OSError, UnicodeError, TypeError):
            return

    def forget(self, server: ConfiguredServer) -> None:
        try:
            os.unlink(self._path(server))
        except OSError:
            return

    def _path(self, server: ConfiguredServer) -> str:
        # Not the name alone: projects have servers of the same name, and a name may hold anything.
        return os.path.join(self._folder, f"{server.hash}.json")


def as_json(known: KnownList | None) -> Any:
    return None if known is None else msgspec.to_builtins(known)
