"""Which project servers the user has approved. An approval covers one project, one name, and a hash of what would be started or
reached and of the project's files that the command names or runs; when one of them changes, or the server later describes its tools in
another way, it is asked for again. So is a server of the user's own that runs a file of the project: the model may write there."""

from __future__ import annotations

import os
from typing import Literal

import msgspec

from dragoman.base.clock import now_ms
from dragoman.base.named_files import code_of, hash_code
from dragoman.base.runs.search import ProjectCode
from dragoman.base.saved_lines import append_line, read_lines
from dragoman.mcp_client.configured import ConfiguredServer
from dragoman.mcp_client.contracts import StdioServer
from dragoman.mcp_client.known import KnownList

Verdict = Literal["yes", "no", "unasked", "changed", "tools_changed"]
"""changed: the yes was to another command, environment or address. tools_changed: to other tools."""


class ServerDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the file. The last one about a server holds."""

    project: str
    name: str
    hash: str
    yes: bool
    files: str = ""
    """The hash of the project's files that its command names or runs; empty: there are none."""
    tools: str = ""
    """The hash of the tools as they were; empty: they were not known yet."""
    saved_ms: int = 0


class Consent:
    """`project` is the folder that was trusted, `workspace` the one in it that servers are started in."""

    def __init__(self, file: str, project: str, workspace: str = "") -> None:
        self._file = file
        self._project = project
        self._workspace = workspace or project
        self._read: dict[str, ServerDecision] | None = None

    def verdict(self, server: ConfiguredServer, known: KnownList | None) -> Verdict:
        if not self.asks_about(server):
            return "yes"
        decision = self._decisions.get(server.name)
        if decision is None:
            return "unasked"
        if decision.hash != server.hash or decision.files != self._files(server):
            return "changed"
        if decision.yes and decision.tools and known is not None and known.tools_hash != decision.tools:
            return "tools_changed"
        return "yes" if decision.yes else "no"

    def asks_about(self, server: ConfiguredServer) -> bool:
        """Whether it needs a yes."""
        return server.needs_yes or bool(self._files(server))

    def is_changed(self, server: ConfiguredServer) -> bool:
        """Whether what would be started now is not what was agreed to: asked before each start, for files change in a conversation."""
        if self.verdict(server, None) == "yes":
            return False
        self._read = None  # the user may have agreed meanwhile
        return self.verdict(server, None) != "yes"

    def decide(self, server: ConfiguredServer, *, yes: bool, known: KnownList | None = None) -> None:
        """Raises OSError."""
        tools = known.tools_hash if known is not None else ""
        decision = ServerDecision(self._project, server.name, server.hash, yes, self._files(server), tools, now_ms())
        append_line(self._file, decision)
        self._decisions[server.name] = decision

    def bind_tools(self, server: ConfiguredServer, known: KnownList) -> None:
        """The tools of a server that was agreed to before they were known are those that were agreed to."""
        decision = self._decisions.get(server.name)
        if decision is not None and not decision.tools and self.verdict(server, None) == "yes" and self.asks_about(server):
            self.decide(server, yes=True, known=known)

    def code(self, server: ConfiguredServer) -> ProjectCode:
        """What it runs of the project."""
        spec = server.server
        if not isinstance(spec, StdioServer):
            return ProjectCode()
        directory = os.path.join(self._workspace, os.path.expanduser(spec.cwd)) if spec.cwd else self._workspace
        return code_of((spec.command, *spec.args), directory, self._project, spec.env, is_users=not server.needs_yes)

    def _files(self, server: ConfiguredServer) -> str:
        """The hash of the files that are run of the project, as they are now."""
        return hash_code(self.code(server), self._project)

    @property
    def _decisions(self) -> dict[str, ServerDecision]:
        if self._read is None:
            self._read = _read(self._file, self._project)
        return self._read


def _read(file: str, project: str) -> dict[str, ServerDecision]:
    try:
        decisions = read_lines(file, ServerDecision)
    except OSError:
        return {}  # the user is asked again
    return {decision.name: decision for decision in decisions if decision.project == project}
