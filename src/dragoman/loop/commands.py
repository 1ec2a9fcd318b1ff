"""How the commands of an agent are started: by the launcher, in a sandbox if one was asked for and works here.

The sandbox itself is loaded and looked for when the first command comes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dragoman.base.places import find_places
from dragoman.loop.options import Sandboxing
from dragoman.values.contracts import Launch, Launched

if TYPE_CHECKING:
    from dragoman.policy.sandbox.sandbox import Sandbox


class CommandStarter(Launch):
    """A contracts.Launch that makes its sandbox when it is first asked."""

    def __init__(
        self,
        folders: Sequence[str],
        sandbox: Sandboxing | bool,
        *,
        own: Sequence[str] = (),
        readable: Sequence[str] = (),
        environment: Sequence[str] = (),
    ) -> None:
        """`own`: files that commands must not change, wherever they lie. `readable`: long results. `environment`: variables that
        commands get besides those the sandbox lets through."""
        self._environment = tuple(environment)
        self._folders = tuple(folders)
        self._sandboxing = sandbox if isinstance(sandbox, Sandboxing) else Sandboxing(level="auto" if sandbox else "off")
        self._own = tuple(own)
        self._readable = tuple(readable)
        self._sandbox: Sandbox | None = None

    @property
    def is_sandbox(self) -> bool:
        return self._sandboxing.level != "off" and self.sandbox.is_sandbox

    @property
    def sandbox(self) -> Sandbox:
        if self._sandbox is None:
            from dragoman.policy.sandbox.sandbox import Sandbox

            places, wanted = find_places(), self._sandboxing
            self._sandbox = Sandbox(
                self._folders,
                level=wanted.level,
                unix_sockets=wanted.unix_sockets,
                writable=[os.fspath(path) for path in wanted.writable],
                environment=(*wanted.environment, *self._environment),
                gate_port=wanted.gate_port,
                own=(places.config, places.grants_file, places.sessions, *self._own),
                secret=(places.keys_file,),
                readable=self._readable,
                hide=wanted.hide_process,
            )
        return self._sandbox

    async def prepare(self) -> None:
        if self._sandboxing.level != "off":
            await self.sandbox.prepare()

    async def start(self, argv: Sequence[str], *, directory: str, env: Mapping[str, str], streams: tuple[int, int, int]) -> Launched:
        return await self.sandbox.start(argv, directory=directory, env=env, streams=streams)

    def explain(self, output: str) -> str:
        return self._sandbox.explain(output) if self._sandbox is not None else ""

    def add_folder(self, folder: str) -> None:
        self._folders += (folder,)
        if self._sandbox is not None:
            self._sandbox.add_folder(folder)

    def close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
