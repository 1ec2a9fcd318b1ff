"""A command that runs in the sandbox, or without one where there is none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from dragoman.policy.sandbox.findings import Remarks
from dragoman.policy.sandbox.running import Running
from dragoman.values.commands import GateEnd, Launched
from dragoman.values.record import NO_HOSTS, HostsUsed


class Confined(Launched):
    """A command in the sandbox: a commands.Launched. `look_after`: what is done when it has ended. `gate_secret`: its gate's."""

    def __init__(
        self,
        running: Running,
        look_after: Callable[[], Awaitable[Remarks]] | None = None,
        gate_secret: str = "",
    ) -> None:
        self._running = running
        self._look_after = look_after
        self._gate_secret = gate_secret
        self._told = Remarks()

    @property
    def remark(self) -> str:
        return self._told.model

    @property
    def notice(self) -> str:
        return self._told.user

    @property
    def returncode(self) -> int | None:
        return self._running.returncode

    @property
    def hosts(self) -> HostsUsed:
        return NO_HOSTS  # whoever takes the gate knows

    def take_gate(self) -> GateEnd | None:
        descriptor = self._running.take_gate()
        return GateEnd(descriptor, self._gate_secret) if descriptor is not None else None

    def take_terminal(self) -> int | None:
        return self._running.take_terminal()

    async def wait(self) -> int:
        return await self._running.wait()

    async def end(self, grace_s: float) -> bool:
        is_gone = await self._running.end(grace_s)
        if self._look_after is not None:
            look_after, self._look_after = self._look_after, None
            self._told = await look_after()
        return is_gone
