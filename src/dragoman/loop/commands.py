"""How the commands of an agent are started: by the launcher, in a sandbox if one was asked for and works here.

The sandbox itself is loaded and looked for when the first command comes.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from dragoman.base.beneath import is_inside
from dragoman.base.places import Places, find_places, running_code
from dragoman.base.private import make_directory
from dragoman.loop.options import Sandboxing
from dragoman.loop.session import SaidBoundary
from dragoman.loop.timed_commands import start_timed
from dragoman.values.commands import Launch, Launched, Reach
from dragoman.values.record import NO_HOSTS, HostsUsed
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.policy.approvals import Approvals
    from dragoman.policy.rules import Rule
    from dragoman.policy.sandbox.detection import Detected
    from dragoman.policy.sandbox.sandbox import Sandbox


class CommandStarter(Launch):
    """A commands.Launch that makes its sandbox when it is first asked."""

    def __init__(
        self,
        folders: Sequence[str],
        sandbox: Sandboxing | bool,
        *,
        own: Sequence[str] = (),
        readable: Sequence[str] = (),
        environment: Sequence[str] = (),
        rules: Sequence[Rule] = (),
        approvals: Callable[[], Approvals | None] = lambda: None,
        before: Callable[[], None] | None = None,
        within: Callable[[], CommandStarter] | None = None,
        said: SaidBoundary | None = None,
    ) -> None:
        """`own`: files that commands must not change, wherever they lie. `readable`: long results. `environment`: variables that
        commands get besides those the sandbox lets through. `rules`: what they keep from being read is hidden. `approvals`: who
        decides which hosts commands in the sandbox reach; None: they reach none. `before`: called in a thread before the first command.
        `within`: gives how the agent that this one runs inside of starts its commands; they share a network.
        `said`: what the user has said of the boundary in the conversation."""
        self._environment = tuple(environment)
        self._rules = tuple(rules)
        self._folders = tuple(folders)
        self._sandboxing = sandbox if isinstance(sandbox, Sandboxing) else Sandboxing(level="auto" if sandbox else "off")
        self._own = tuple(own)
        self._readable = tuple(readable)
        self._approvals = approvals
        self._before = before
        self._within = within
        self._said = said or SaidBoundary(self._sandboxing)
        self._told_ports: set[int] = set()
        self._sandbox: Sandbox | None = None

    @property
    def is_used(self) -> bool:
        """Whether commands run in a sandbox, or inside a boundary that is not ours, if there is one."""
        return self._sandboxing.level != "off" and not self._said.is_off

    @property
    def is_sandbox(self) -> bool:
        return self.is_used and self.sandbox.is_sandbox

    @property
    def is_external(self) -> bool:
        return self.is_used and self._sandboxing.level == "external"

    async def find_new_ports(self) -> tuple[int, ...]:
        if not self._said.opens_ports or not self.shares_network:
            return ()
        found = await asyncio.to_thread(self.listening_ports)
        new = tuple(port for port in found if port not in self._told_ports)
        self._told_ports.update(new)
        return new

    async def find_servers(self) -> tuple[int, ...]:
        return await self._sandbox.find_servers() if self._sandbox is not None and self.shares_network else ()

    @property
    def words(self) -> str:
        """One line: what holds, what does not, and whether hosts are reached."""
        if self._said.is_off:
            return say("policy.sandbox_none", reason=say("policy.sandbox_off_for_now"))
        if self._sandboxing.level == "off":
            return say("policy.sandbox_level_0")
        words = self.sandbox.detected.words
        return say("policy.sandbox_with_gate", words=words) if self._has_gate() else words

    @property
    def known_sandbox(self) -> Detected | None:
        """What was found out by now. Of what the user has said nothing has to be found out."""
        if self._said.is_off:
            from dragoman.policy.sandbox.detection import Detected

            return Detected(0, (say("policy.sandbox_off_for_now"),))
        if self._sandboxing.level in ("external", "off"):
            return self.sandbox.detected
        return self._sandbox.known if self._sandbox is not None else None

    @property
    def sandbox(self) -> Sandbox:
        if self._sandbox is None:
            if sys.platform == "darwin":
                from dragoman.policy.sandbox.seatbelt_sandbox import SeatbeltSandbox as Sandbox
            else:
                from dragoman.policy.sandbox.sandbox import Sandbox
            from dragoman.policy.denied_reads import denied_patterns, find_denied_elsewhere, is_denied

            places, wanted = find_places(), self._sandboxing
            _keep_in_place(places, self._folders)
            denied = denied_patterns(self._rules)
            self._sandbox = Sandbox(
                self._folders,
                level=wanted.level,
                unix_sockets=wanted.unix_sockets,
                writable=[os.fspath(path) for path in wanted.writable],
                environment=(*wanted.environment, *self._environment),
                gate_port=wanted.gate_port,
                own=(places.config, places.data, places.cache, *places.named_files, *running_code(), *self._own),
                secret=(*places.secret_files, places.prompt_history),
                readable=(*self._readable, *running_code()),
                caches_in=places.command_caches,
                hide=wanted.hide_process,
                is_denied=is_denied(denied, self._folders[0]),
                denied=find_denied_elsewhere(denied),
                within=(lambda: within().sandbox) if (within := self._within) is not None else None,
            )
        return self._sandbox

    @property
    def has_read_only(self) -> bool:
        return self.is_sandbox and self.sandbox.has_read_only

    @property
    def shares_network(self) -> bool:
        return self.is_sandbox and self.sandbox.shares_network

    async def prepare(self) -> None:
        if self.is_used:
            await self.sandbox.prepare()

    @property
    def has_terminals(self) -> bool:
        return not self.is_used or self.sandbox.has_terminals

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
        await self.prepare()
        if not self.is_used:
            reach = "outside"
        if self._before is not None:
            await asyncio.to_thread(self._before)
            self._before = None
        start = partial(self.sandbox.start, argv, directory=directory, env=env, streams=streams, terminal=terminal, reach=reach)
        approvals = self._approvals()
        if reach == "outside":
            return await start_timed(start(with_gate=False), (os.sep,))
        if approvals is None or not self._has_gate():
            return await (start(with_gate=False) if reach == "read-only" else start_timed(start(with_gate=False), self.writable))
        from dragoman.loop.gating import open_gate  # only where a host may be reached

        return await open_gate(await (start() if reach == "read-only" else start_timed(start(), self.writable)), approvals, argv[-1])

    @property
    def writable(self) -> tuple[str, ...]:
        """Where commands may write: everywhere, if there is no sandbox of ours."""
        if not self.is_sandbox or self.is_external:
            return (os.sep,)
        return (*self._folders, *(os.path.expanduser(os.fspath(path)) for path in self._sandboxing.writable))

    def _has_gate(self) -> bool:
        """Whether commands have a way to the network: the sandbox has a network of its own, and some host may be reached."""
        approvals = self._approvals()
        wanted = self._sandboxing.gate_port and approvals is not None and approvals.may_reach_out
        return bool(wanted) and self.is_used and self.sandbox.detected.has_own_network

    def explain(
        self, output: str, *, directory: str = "", reach: Reach = "workspace", hosts: HostsUsed = NO_HOSTS, can_leave: bool = False
    ) -> str:
        if self._sandbox is None:
            return ""
        told = partial(self._sandbox.explain, output, directory=directory, reach=reach, hosts=hosts, can_leave=can_leave)
        return told(has_gate=self._has_gate())

    def find_refused_write(self, output: str) -> str:
        return self.sandbox.find_refused_write(output)

    async def open_port(self, port: int) -> str:
        """Let the user's own programs reach a server that a command has started, at the URL that is returned. Raises OSError."""
        return f"http://127.0.0.1:{port}" if not self.is_used or self.is_external else await self.sandbox.open_port(port)

    async def close_port(self, port: int) -> None:
        if self._sandbox is not None:
            await self._sandbox.close_port(port)

    @property
    def opened_ports(self) -> Mapping[int, str]:
        """Port → URL."""
        return self._sandbox.opened_ports if self._sandbox is not None else {}

    def listening_ports(self) -> list[int]:
        """Ports that commands of the session listen on, in its own network. Blocks for a moment."""
        return self._sandbox.listening_ports() if self._sandbox is not None else []

    def add_folder(self, folder: str) -> None:
        self._folders += (folder,)
        if self._sandbox is not None:
            self._sandbox.add_folder(folder)

    def close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()


def _keep_in_place(places: Places, folders: Iterable[str]) -> None:
    """Where our folders lie in one that commands write to, as in a home folder that is worked in, they are there from the first command
    on, so that they can be made read-only. A command could make them otherwise."""
    roots = [os.path.realpath(folder) for folder in folders]
    for path in (places.config, places.data, places.cache):
        if any(is_inside(os.path.realpath(path), root) for root in roots):
            with suppress(OSError):
                make_directory(path)
