"""How commands are started, and what is known of those that run: what tools and MCP servers are given to start programs with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec


class HostsUsed(msgspec.Struct, frozen=True):
    """Which hosts a command in the sandbox asked for: `example.org`, or `example.org:8080` if the port is not one of the web's."""

    reached: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


NO_HOSTS = HostsUsed()


class Launched(Protocol):
    """A command that was started, and everything it starts."""

    @property
    def returncode(self) -> int | None:
        """The exit status as subprocess has it: negative if a signal ended it. None while it runs."""
        ...

    @property
    def remark(self) -> str:
        """After `end`: what it changed that had to be undone or should be known, in a line for the model. Empty: nothing."""
        ...

    @property
    def notice(self) -> str:
        """After `end`: the same for the user, in lines. Empty: nothing."""
        ...

    @property
    def hosts(self) -> HostsUsed:
        """After `end`: whom it has asked for through the gate to the network."""
        ...

    def take_gate(self) -> int | None:
        """The descriptor of the listener inside the command's own network, if one was asked for. The caller closes it."""
        ...

    def take_terminal(self) -> int | None:
        """The descriptor of the terminal's own end, if one was asked for. The caller closes it."""
        ...

    async def wait(self) -> int:
        """Wait until the command itself has ended; what it started may still run."""
        ...

    async def end(self, grace_s: float) -> bool:
        """End whatever of it is alive: SIGTERM, then SIGKILL after `grace_s`. Returns whether it is known that nothing is left."""
        ...


class Launch(Protocol):
    """Starts commands. All they have started ends when it is told to, and when our process dies."""

    @property
    def is_sandbox(self) -> bool:
        """Whether commands are confined: they write in the workspace only, read no secrets and have no network. May take a moment the first
        time; not after `prepare`."""
        ...

    async def prepare(self) -> None: ...

    @property
    def has_terminals(self) -> bool:
        """Whether a command can be given a terminal. May take a moment the first time; not after `prepare`."""
        ...

    async def start(
        self,
        argv: Sequence[str],
        *,
        directory: str,
        env: Mapping[str, str],
        streams: tuple[int, int, int],
        terminal: tuple[int, int] | None = None,
    ) -> Launched:
        """`argv[0]` is an absolute path; `streams` are descriptors for its standard input, output and error, which the caller closes. With
        `terminal`, it gets a new one of so many rows and columns in their place: see `Launched.take_terminal`.
        Raises OSError if it cannot be started. If cancelled, nothing is left running."""
        ...

    def explain(self, output: str) -> str:
        """What the boundary seems to have refused, in a line for the model; empty: nothing. `output`: the end of what the command said."""
        ...


StateOfCommand = Literal["running", "ended", "stopped", "timed out", "failed"]
"""ended: by itself. stopped: by the model or the user. failed: its output could not be read any more."""


class CommandState(msgspec.Struct, frozen=True):
    """A background command as it is at the moment."""

    id: str
    command: str
    state: StateOfCommand
    exit_code: int | None
    """As in a shell; None while it runs, and where it was stopped."""
    age_s: float
    """Since it was started."""
