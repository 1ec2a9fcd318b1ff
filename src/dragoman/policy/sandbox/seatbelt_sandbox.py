"""The sandbox on macOS: commands under `sandbox-exec`, in a process group that ends with the call.

Written from the documents, and tried with a stand-in for the program: nobody of us had such a machine. So it is believed only where a
trial shows that it holds: a write inside must work, and one outside must not.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence

from dragoman.base.processes import COOKIE, Watcher, end_processes
from dragoman.policy.sandbox.boundary import Ground
from dragoman.policy.sandbox.detection import EXTERNAL, SEATBELT, Detected
from dragoman.policy.sandbox.environment import keep_for_external, rebuild
from dragoman.policy.sandbox.sandbox import Sandbox
from dragoman.policy.sandbox.seatbelt import PROGRAM, profile, wrap
from dragoman.values.commands import GateEnd, Launched, Reach
from dragoman.values.record import NO_HOSTS, HostsUsed
from dragoman.words import say

_TRIAL = 'echo inside > "$1/trial" && { ! echo outside > "$2/trial"; } 2>/dev/null'
_TRIAL_S = 10.0


class SeatbeltSandbox(Sandbox):
    """A commands.Launch for one workspace. There is no gate: a profile can name addresses, but not hosts."""

    program = PROGRAM

    async def start(
        self,
        argv: Sequence[str],
        *,
        directory: str,
        env: Mapping[str, str],
        streams: tuple[int, int, int],
        terminal: tuple[int, int] | None = None,
        with_gate: bool = True,
        reach: Reach = "workspace",
    ) -> Launched:
        await self.prepare()
        if terminal is not None:
            raise OSError(0, "the sandbox of this system gives no terminals")
        ground, environment = self._ground, dict(env)
        if reach != "outside" and self.detected.is_external:
            environment = keep_for_external(env, self._environment)
        elif reach != "outside" and self.detected.level and ground is not None:
            environment = rebuild(env, temporary=_temporary(ground), keep=self._environment)
            argv = wrap(argv, _profile(ground), self.program)
        return SeatbeltCommand(argv, directory, environment, streams, env.get(COOKIE, "").rpartition(" ")[2])

    def _detect(self) -> Detected:
        if self._level == "off":
            return Detected(0, (say("policy.sandbox_off"),))
        if self._level == "external":
            return Detected(EXTERNAL)
        if self._level != "auto" or not os.path.exists(self.program):
            return Detected(0, (say("policy.sandbox_not_here"),))
        self._user = (os.getuid(), os.getgid())
        self._ground = self._make_ground(self._make_private_folder())
        if "/" in self._ground.writable:
            return Detected(0, (say("policy.sandbox_root"),))
        return Detected(SEATBELT) if self._holds(self._ground) else Detected(0, (say("policy.sandbox_no_seatbelt"),))

    def _holds(self, ground: Ground) -> bool:
        outside = os.path.join(ground.private, "var-tmp")
        argv = wrap(["/bin/sh", "-c", _TRIAL, "sh", _temporary(ground), outside], _profile(ground), self.program)
        try:
            tried = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TRIAL_S, check=False, env={}, cwd="/")
        except (OSError, subprocess.TimeoutExpired):
            return False
        return tried.returncode == 0 and not os.listdir(outside)


class SeatbeltCommand(Launched):
    """A command in its own process group. Raises OSError if it cannot be started."""

    remark = ""
    notice = ""

    def __init__(self, argv: Sequence[str], directory: str, env: Mapping[str, str], streams: tuple[int, int, int], cookie: str) -> None:
        self._cookie = cookie
        self._watcher = Watcher(cookie)
        try:
            self._process = subprocess.Popen(
                argv, stdin=streams[0], stdout=streams[1], stderr=streams[2], cwd=directory, env=env, start_new_session=True
            )
        except BaseException:
            self._watcher.dismiss()
            raise
        self._watcher.watch(self._process.pid)
        self._ended = asyncio.ensure_future(asyncio.to_thread(self._process.wait))

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    @property
    def hosts(self) -> HostsUsed:
        return NO_HOSTS

    def take_terminal(self) -> int | None:
        return None

    def take_gate(self) -> GateEnd | None:
        return None

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    async def end(self, grace_s: float) -> bool:
        await asyncio.to_thread(end_processes, self._process.pid, self._cookie)
        await self._ended
        self._watcher.dismiss()
        return True


def _profile(ground: Ground) -> str:
    boundary = ground.draw()
    writable = (*boundary.writable, _temporary(ground))
    # A profile can deny what is not there yet: nothing has to be put back.
    read_only = tuple(dict.fromkeys((*boundary.read_only, *ground.believed, *ground.started)))
    return profile(writable, read_only, boundary.hidden, pinned=boundary.pinned)


def _temporary(ground: Ground) -> str:
    return os.path.realpath(os.path.join(ground.private, "tmp"))
