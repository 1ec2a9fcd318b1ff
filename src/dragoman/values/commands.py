"""How commands are started, and what is known of those that run: what tools and MCP servers are given to start programs with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from dragoman.values.record import NO_HOSTS, HostsUsed

# Told to the model of a command that ran with the workspace read-only; the user is told the second in their language.
WAS_READ_ONLY = "The workspace was read-only for this run"
REFUSED_TO_WRITE = f"{WAS_READ_ONLY}, which refused to let it write"

Reach = Literal["workspace", "read-only", "outside"]
"""How far a command reaches. workspace: inside the sandbox, and it writes in the workspace. read-only: inside, and it writes only temporary
files, adds nothing to the caches that others use, and sees no other projects. outside: no sandbox, with the user's own rights."""


class GateEnd(msgspec.Struct, frozen=True):
    """Our end of a command's way to the network."""

    descriptor: int
    """Of the listener inside the session's network."""
    secret: str
    """What the command was given, and whoever comes must know: all commands of a session reach that listener."""


class OutsideRun(msgspec.Struct, frozen=True):
    """A command that was allowed to run outside the sandbox: this one, in this folder, as it was shown."""

    command: str
    directory: str
    preview: str = ""
    untrusted: tuple[str, ...] = ()
    """Folders in which no program is looked for: nobody was asked about it."""
    environment: tuple[tuple[str, str], ...] = ()
    """Variables that it gets besides."""


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

    def take_gate(self) -> GateEnd | None:
        """The listener inside the command's network, if one was asked for. The caller closes it."""
        ...

    def take_terminal(self) -> int | None:
        """The descriptor of the terminal's own end, if one was asked for. The caller closes it."""
        ...

    def watch_questions(self, tell: Callable[[bool], None]) -> None:
        """Call `tell(True)` when the user is asked something about the command, and `tell(False)` when nothing is open any more. In the
        loop that runs it. A command about which nobody is asked has nothing to tell."""
        return None

    async def settle(self) -> None:
        """After it has ended by itself, and before `end`: wait until the user has answered what is still open. `end` withdraws it."""
        return None

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
        """Whether commands are confined: they write in the workspace only, read no secrets and have no network, or a
        container or virtual machine is the boundary, as the user says. May take a moment the first time; not after `prepare`."""
        ...

    @property
    def is_external(self) -> bool:
        """Whether what confines commands is not ours: a container or a virtual machine that the user has named as the boundary."""
        ...

    async def find_new_ports(self) -> tuple[int, ...]:
        """Ports on which commands have begun to listen since this was last asked, where somebody can open them to their own programs."""
        ...

    async def find_servers(self) -> tuple[int, ...]:
        """Ports on which commands of the session listen now, in a network of its own."""
        ...

    @property
    def has_read_only(self) -> bool:
        """Whether a command can run with the reach `read-only`. May take a moment the first time; not after `prepare`."""
        ...

    @property
    def shares_network(self) -> bool:
        """Whether the commands of a session reach each other's servers, in a network of its own. May take a moment the first time."""
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
        reach: Reach = "workspace",
    ) -> Launched:
        """`argv[0]` is an absolute path; `streams` are descriptors for its standard input, output and error, which the caller closes. With
        `terminal`, it gets a new one of so many rows and columns in their place: see `Launched.take_terminal`.
        `reach`: whether that may be had was decided by whoever calls this.
        Raises OSError if it cannot be started. If cancelled, nothing is left running."""
        ...

    def explain(
        self, output: str, *, directory: str = "", reach: Reach = "workspace", hosts: HostsUsed = NO_HOSTS, can_leave: bool = False
    ) -> str:
        """What the boundary stopped of a command that failed, in a line for the model; empty: nothing. `output`: the end of what it said;
        `directory`: where it ran; `hosts`: whom it asked for; `can_leave`: the model can ask for it to run outside."""
        ...

    def find_refused_write(self, output: str) -> str:
        """The line in which a command with the reach `read-only` was refused to write in the workspace; empty: there is none."""
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
    is_outside: bool = False
    """Whether it runs outside the sandbox."""
