"""Starts commands inside the strongest boundary this machine offers, and looks after them when they have ended."""

from __future__ import annotations

import asyncio
import os
import pwd
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from dragoman.policy.sandbox.boundary import Ground, outermost
from dragoman.policy.sandbox.caretaker import Caretaker
from dragoman.policy.sandbox.detection import SEATBELT, Detected, Level, detect, make_order
from dragoman.policy.sandbox.environment import rebuild
from dragoman.policy.sandbox.findings import Remarks
from dragoman.policy.sandbox.launcher.order import Boundary, Order
from dragoman.policy.sandbox.launching import Launcher, Running, hide_this_process, shared_launcher
from dragoman.policy.sandbox.private_folder import is_safe, make_private_folder, remove_private_folder
from dragoman.policy.sandbox.refusals import explain, is_about_writing
from dragoman.policy.sandbox.repositories import main_folders
from dragoman.policy.sandbox.survey import Survey
from dragoman.values.commands import NO_HOSTS, HostsUsed, Launched

_TRIES = 3


class Sandbox:
    """A commands.Launch for one workspace. Nothing is started, made or looked for before the first command."""

    def __init__(
        self,
        folders: Sequence[str],
        *,
        level: Level = "auto",
        unix_sockets: bool = False,
        writable: Sequence[str] = (),
        environment: Sequence[str] = (),
        gate_port: int = 0,
        own: Sequence[str] = (),
        secret: Sequence[str] = (),
        readable: Sequence[str] = (),
        private_in: str = "",
        hide: bool = False,
        is_denied: Callable[[str], bool] | None = None,
        denied: Sequence[str] = (),
    ) -> None:
        """`folders`: the workspace's own first. `unix_sockets`, `writable`, `environment` let through what is named. `gate_port`: where a
        listener is made in the command's network. `own`: our configuration, approvals, logs and code; `secret`: stored keys;
        `readable`: long results; `private_in`: where the session's temporary folder is made; `hide`: no command reads our memory
        and environment. `is_denied`: which files of the workspace the rules keep from being read; `denied`: which of those elsewhere."""
        self._folders = tuple(folders)
        self._level: Level = level
        self._unix_sockets = unix_sockets
        self._writable = tuple(map(os.path.expanduser, writable))
        self._environment = tuple(environment)
        self._gate_port = gate_port
        self._own = tuple(own)
        self._secret = tuple(secret)
        self._readable = tuple(readable)
        self._private_in = private_in
        self._hide = hide
        self._is_denied = is_denied
        self._secret += tuple(denied)
        self._lock = threading.Lock()
        self._detected: Detected | None = None
        self._launcher: Launcher | None = None
        self._ground: Ground | None = None
        self._user = (0, 0)
        self._private: list[str] = []
        """Temporary folders that were made; the last is used."""
        self._care: Caretaker | None = None
        """Where there is a sandbox."""

    # --- what holds

    @property
    def is_sandbox(self) -> bool:
        return self.detected.level > 0

    @property
    def has_terminals(self) -> bool:
        """Not with Landlock alone: whoever may open a terminal there may open the user's own."""
        return self.detected.level != 3

    @property
    def detected(self) -> Detected:
        """Found out once; blocks for some 100 ms then."""
        with self._lock:
            if self._detected is None:
                self._detected = self._detect()
            return self._detected

    @property
    def known(self) -> Detected | None:
        """The same where it was found out already."""
        return self._detected

    async def prepare(self) -> None:
        """Find out without holding up the event loop."""
        if self._detected is None:
            await asyncio.to_thread(lambda: self.detected)

    def add_folder(self, folder: str) -> None:
        """Commands may write here too, from now on."""
        with self._lock:
            self._folders = (*self._folders, folder)
            self._detected = None  # our own files may lie in there

    def close(self) -> None:
        """Removes the temporary folder. Commands must have ended."""
        with self._lock:
            self._launcher = self._ground = self._detected = self._care = None
            self._remove_private()

    def _remove_private(self) -> None:
        while self._private:
            remove_private_folder(self._private.pop())

    # --- commands

    async def start(
        self,
        argv: Sequence[str],
        *,
        directory: str,
        env: Mapping[str, str],
        streams: tuple[int, int, int],
        terminal: tuple[int, int] | None = None,
        with_gate: bool = True,
    ) -> Launched:
        """Raises OSError if it cannot be started. `with_gate`: a listener is made in its network, where a port was named for it."""
        await self.prepare()
        detected, launcher, care = self.detected, self._launcher, self._care
        assert launcher is not None
        if care is None:
            plain = Order(tuple(argv), dict(env), directory, drop_spying=self._hide, terminal=terminal)
            return Confined(await launcher.start(plain, streams))
        if terminal is not None and not self.has_terminals:
            raise OSError(0, "the sandbox of this system gives no terminals")
        for tries_left in reversed(range(_TRIES)):
            prepared = await care.prepare()
            order = self._order(detected.level, prepared.boundary, tuple(argv), directory, env, self._gate_port if with_gate else 0)
            order.terminal = terminal
            try:
                return Confined(await launcher.start(order, streams), partial(care.look_after, prepared))
            except FileNotFoundError:  # what was to be covered has been moved meanwhile, or the command is not there
                if not tries_left:
                    raise
        raise AssertionError

    def explain(self, output: str, *, has_gate: bool = False) -> str:
        """What the sandbox seems to have refused, in a line for the model; empty if nothing. `output`: the end of what was said."""
        level = self._detected.level if self._detected is not None else 0
        if self._care is not None and is_about_writing(output) and (words := self._care.explain_read_only()):
            return words
        return explain(output, level, self._temporary(level), has_gate=has_gate) if level else ""

    def _order(
        self, level: int, boundary: Boundary, argv: tuple[str, ...], directory: str, env: Mapping[str, str], gate_port: int
    ) -> Order:
        home = _home_of(self._user[0]) if os.getuid() == 0 and self._user[0] != 0 else ""
        environment = rebuild(
            env, temporary=self._temporary(level), home=home, keep=self._environment, gate_port=gate_port if level != 3 else 0
        )
        return make_order(
            level,
            argv,
            environment,
            os.path.realpath(directory),
            boundary,
            unix_sockets=self._unix_sockets,
            gate_port=gate_port,
        )

    def _temporary(self, level: int) -> str:
        return os.path.join(self._ground.private, "tmp") if level in (3, SEATBELT) and self._ground is not None else "/tmp"

    # --- setting up

    def _detect(self) -> Detected:
        if self._hide:
            hide_this_process()
        if self._level == "off":
            self._launcher = shared_launcher()
            return detect(self._launcher, Ground((), homes=(), private=""), "off")
        self._user = _owner_of(self._folders[0])
        try:
            self._ground = self._make_ground(self._make_private_folder())
        except OSError as error:
            self._launcher, self._care = shared_launcher(), None
            return Detected(0, (error.strerror or str(error),))
        self._launcher = shared_launcher(self._user)
        detected = detect(self._launcher, self._ground, self._level)
        if not detected.level:  # then commands run as we do
            self._launcher, self._care = shared_launcher(), None
            self._remove_private()
        elif self._care is None:
            self._care = Caretaker(self._ground, self._launcher, detected.level)
        else:
            self._care.move_to(self._ground, detected.level)
        return detected

    def _make_private_folder(self) -> str:
        """Raises OSError if there is no place for it."""
        writable = outermost(map(os.path.realpath, (*self._folders, *self._writable)))
        if self._private and is_safe(self._private[-1], writable):
            return self._private[-1]
        private = make_private_folder([self._private_in] if self._private_in else [], writable, self._user)
        self._private.append(private)
        return private

    def _make_ground(self, private: str) -> Ground:
        writable = outermost(map(os.path.realpath, (*self._folders, *self._writable)))
        homes = [os.path.expanduser("~"), _home_of(os.getuid()), _home_of(self._user[0])]
        return Ground(
            writable,
            homes=list(dict.fromkeys(homes)),
            private=private,
            own=self._own,
            secret=self._secret,
            readable=self._readable,
            user=self._user[0] if self._user[0] != os.getuid() else None,
            survey=Survey(writable, self._is_denied, also=partial(main_folders, writable)),
        )


class Confined:
    """A command in the sandbox: a commands.Launched. `look_after`: what is done when it has ended."""

    def __init__(self, running: Running, look_after: Callable[[], Awaitable[Remarks]] | None = None) -> None:
        self._running = running
        self._look_after = look_after
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

    def take_gate(self) -> int | None:
        return self._running.take_gate()

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


def _owner_of(folder: str) -> tuple[int, int]:
    """The user that commands run as: ours, or, if we are root, the owner of the workspace."""
    if os.getuid() != 0:
        return os.getuid(), os.getgid()
    status = os.stat(folder)
    return status.st_uid, status.st_gid


def _home_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        return ""
