"""Starts commands inside the strongest boundary this machine offers, and looks after them when they have ended."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from dragoman.base.beneath import is_inside, outermost
from dragoman.policy.sandbox.boundary import NEVER_READABLE, Ground
from dragoman.policy.sandbox.cache_layers import CacheLayers
from dragoman.policy.sandbox.caches import WorkspaceCaches, make_session_caches
from dragoman.policy.sandbox.caretaker import Caretaker, Prepared
from dragoman.policy.sandbox.confined import Confined
from dragoman.policy.sandbox.detection import EXTERNAL, KINDS, SEATBELT, Detected, Level, detect, make_holder, make_order
from dragoman.policy.sandbox.environment import keep_for_external, lead_to_gate, rebuild
from dragoman.policy.sandbox.findings import Remarks
from dragoman.policy.sandbox.launcher.order import Boundary, Order
from dragoman.policy.sandbox.launching import Holder, Launcher, hide_this_process, shared_launcher
from dragoman.policy.sandbox.ports import Ports
from dragoman.policy.sandbox.private_folder import is_safe, make_private_folder, remove_private_folder
from dragoman.policy.sandbox.refusals import Circumstances, explain, is_about_writing
from dragoman.policy.sandbox.refused_paths import PathLimits
from dragoman.policy.sandbox.repositories import main_folders
from dragoman.policy.sandbox.survey import Survey
from dragoman.policy.secret_stores import find_homes, home_of
from dragoman.values.commands import Launched, Reach
from dragoman.values.record import NO_HOSTS, HostsUsed
from dragoman.words import say

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
        caches_in: str = "",
        hide: bool = False,
        is_denied: Callable[[str], bool] | None = None,
        denied: Sequence[str] = (),
        within: Callable[[], Sandbox] | None = None,
    ) -> None:
        """`folders`: the workspace's own first. `unix_sockets`, `writable`, `environment` let through what is named. `gate_port`: 0 for
        commands without a gate. `own`: our configuration, approvals, logs and code; `secret`: stored keys;
        `readable`: long results; `private_in`: where the session's temporary folder is made; `caches_in`: where the caches of all
        workspaces are, else they end with the session; `hide`: no command reads our memory
        and environment. `is_denied`: which files of the workspace the rules keep from being read; `denied`: which of those elsewhere.
        `within`: the sandbox of the session that this one is called by, whose network it shares where that is made in the same way."""
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
        self._caches = WorkspaceCaches(caches_in, os.path.realpath(folders[0])) if caches_in else None
        self._layers: CacheLayers | None = None
        """Over the caches, for commands that only read."""
        self._hide = hide
        self._is_denied = is_denied
        self._secret += tuple(denied)
        self._within = within
        self._lock = threading.Lock()
        self._detected: Detected | None = None
        self._launcher: Launcher | None = None
        self._holder: Holder | None = None
        """Of the session's network."""
        self._holders: dict[int, Holder] = {}
        """Our own, by level."""
        self._ports: Ports | None = None
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
    def is_external(self) -> bool:
        return self._level == "external"

    @property
    def has_terminals(self) -> bool:
        """Not with Landlock alone: whoever may open a terminal there may open the user's own."""
        return self.detected.level != 3

    async def find_new_ports(self) -> tuple[int, ...]:
        return ()  # who may be told of them knows the session

    async def find_servers(self) -> tuple[int, ...]:
        return tuple(await asyncio.to_thread(self.listening_ports))

    @property
    def temporary(self) -> str:
        """Where commands write temporary files, as they name it."""
        return self._temporary(self.detected.level)

    @property
    def caches(self) -> str:
        """Where commands keep the caches of their tools. Empty: among temporary files."""
        found = next(iter(self._ground.caches), "") if self.is_sandbox and self._ground is not None else ""
        return "" if self._ground is not None and is_inside(found, self._ground.private) else found

    @property
    def has_read_only(self) -> bool:
        """Whether a command can run with nothing but its temporary files to write. Not with Landlock alone: what is in the workspace
        could be listed around secrets, but an error would not say why writing is refused."""
        return self.detected.level in (1, 2)

    @property
    def shares_network(self) -> bool:
        return self.detected.has_own_network

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
        """Ends the session's network with all that is in it, and removes the temporary folder."""
        with self._lock:
            if self._ports is not None:
                self._ports.close()
            self._close_holders()
            self._ports = self._holder = None
            self._launcher = self._ground = self._detected = self._care = None
            if self._layers is not None:
                self._layers.close()
                self._layers = None
            self._remove_private()
            if self._caches is not None:
                self._caches.close()

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
        reach: Reach = "workspace",
    ) -> Launched:
        """Raises OSError if it cannot be started. `with_gate`: a listener is made in its network, where a port was named for it."""
        if reach == "outside":
            own = Order(tuple(argv), dict(env), directory, drop_spying=self._hide, terminal=terminal)
            return Confined(await shared_launcher().start(own, streams))
        await self.prepare()
        if reach == "read-only" and not self.has_read_only:
            raise OSError(errno.ENOTSUP, "the sandbox of this system has no way to make the workspace read-only")
        detected, launcher, care = self.detected, self._launcher, self._care
        assert launcher is not None
        if care is None:
            environment = keep_for_external(env, self._environment) if self.is_external else dict(env)
            plain = Order(tuple(argv), environment, directory, drop_spying=self._hide, terminal=terminal)
            return Confined(await launcher.start(plain, streams))
        if terminal is not None and not self.has_terminals:
            raise OSError(0, "the sandbox of this system gives no terminals")
        secret = os.urandom(24).hex() if with_gate and self._gate_port and detected.has_own_network else ""
        prepared: Prepared | None = None
        reading: Boundary | None = None

        async def make() -> Order:
            nonlocal prepared, reading
            if reach == "read-only":
                boundary = reading = await care.prepare_reading(env)
            else:
                prepared = await care.prepare(env)
                boundary = prepared.boundary
            order = self._order(detected, boundary, tuple(argv), directory, env, secret, reach)
            order.terminal = terminal
            return order

        starter = self._holder if detected.has_own_network and self._holder is not None else launcher
        for tries_left in reversed(range(_TRIES)):
            prepared = reading = None
            try:
                running = await starter.start_early(KINDS[detected.level], make, streams)
                return Confined(running, _aftercare(care, prepared, reading), secret)
            except BaseException as error:
                if prepared is not None:
                    care.release(prepared)
                if reading is not None:
                    care.release_reading(reading)
                # What was to be covered has been moved meanwhile, or the command is not there.
                if not tries_left or not isinstance(error, FileNotFoundError | NotADirectoryError):
                    raise
                care.forget_toolchains()
        raise AssertionError

    def explain(
        self,
        output: str,
        *,
        directory: str = "",
        reach: Reach = "workspace",
        hosts: HostsUsed = NO_HOSTS,
        can_leave: bool = False,
        has_gate: bool = False,
    ) -> str:
        """Implements Launch.explain. `has_gate`: some host could be reached."""
        level = self._detected.level if self._detected is not None and not self._detected.is_external else 0
        if not level or reach == "outside":
            return ""
        if self._care is not None and is_about_writing(output) and (words := self._care.explain_read_only()):
            return words
        about = Circumstances(
            level,
            directory=directory,
            reach=reach,
            temporary=self._temporary(level),
            has_gate=has_gate,
            hosts=hosts,
            unix_sockets=self._unix_sockets,
            can_leave=can_leave,
        )
        return explain(output, about, self._limits)

    def _limits(self) -> PathLimits:
        """What commands may write and see now."""
        assert self._ground is not None
        boundary, level = self._ground.draw(), self.detected.level
        temporary = (self._temporary(level),) if level in (3, SEATBELT) else tuple(place for place, _ in boundary.private)
        return PathLimits(
            boundary.writable,
            boundary.read_only,
            boundary.hidden,
            (*temporary, *boundary.caches),
            self._user[0],
            unreadable=tuple(map(os.path.realpath, NEVER_READABLE)) if level == 3 else (),
            readable=(*boundary.readable, *(self._care.shown_tools if self._care is not None else ())),
        )

    def find_refused_write(self, output: str) -> str:
        from dragoman.policy.sandbox.write_refusals import find_refused_write  # only after a read-only command

        return find_refused_write(output, outermost(map(os.path.realpath, (*self._folders, *self._writable))))

    def _order(
        self,
        detected: Detected,
        boundary: Boundary,
        argv: tuple[str, ...],
        directory: str,
        env: Mapping[str, str],
        secret: str,
        reach: Reach,
    ) -> Order:
        """`secret`: of its gate; empty: it has none."""
        home = home_of(self._user[0]) if os.getuid() == 0 and self._user[0] != 0 else ""
        temporary = self._temporary(detected.level)
        return make_order(
            detected.level,
            argv,
            rebuild(
                env,
                temporary=temporary,
                home=home,
                keep=self._environment,
                has_gate=bool(secret),
                reads_only=reach == "read-only",
                kept=self._ground.layers.kept if self._ground is not None and self._ground.layers is not None else "",
                caches=self._ground.caches[0] if self._ground is not None and self._ground.caches else "",
                writable=self._ground.writable if self._ground is not None else (),
            ),
            os.path.realpath(directory),
            boundary,
            unix_sockets=self._unix_sockets,
            proxies=lead_to_gate(secret) if secret else None,
            own_network=not detected.has_own_network,
        )

    def _temporary(self, level: int) -> str:
        return os.path.join(self._ground.private, "tmp") if level in (3, SEATBELT) and self._ground is not None else "/tmp"

    # --- ports

    async def open_port(self, port: int) -> str:
        """Let the user's own programs reach what listens at a port in the session's network: the URL, the same when asked again. Where
        commands have no network of their own, it is the port itself. Raises OSError."""
        await self.prepare()
        if not self.detected.level:
            return f"http://127.0.0.1:{port}"
        if self._ports is None or not self.detected.has_own_network:
            raise OSError(errno.ENOTSUP, say("policy.sandbox_no_ports"))
        return await self._ports.open(port)

    async def close_port(self, port: int) -> None:
        """Connections that are under way end too."""
        if self._ports is not None:
            await self._ports.close_one(port)

    @property
    def opened_ports(self) -> Mapping[int, str]:
        """Their URLs."""
        return self._ports.opened if self._ports is not None else {}

    def listening_ports(self) -> list[int]:
        """Ports on which something listens in the session's network, without gates. Blocks for a moment."""
        return self._ports.find_listening() if self._ports is not None else []

    # --- setting up

    def _detect(self) -> Detected:
        if self._hide:
            hide_this_process()
        if self._level in ("off", "external"):
            self._launcher = shared_launcher()
            return Detected(EXTERNAL) if self.is_external else Detected(0, (say("policy.sandbox_off"),))
        self._user = _owner_of(self._folders[0])
        try:
            self._ground = self._make_ground(self._make_private_folder())
        except OSError as error:
            self._launcher, self._care = shared_launcher(), None
            return Detected(0, (error.strerror or str(error),))
        self._launcher = shared_launcher(self._user)
        detected = detect(self._launcher, self._holder_at, self._ground, self._level)
        self._settle(detected)
        if not detected.level:  # then commands run as we do
            self._launcher, self._care = shared_launcher(), None
            self._remove_private()
        elif self._care is None:
            self._care = Caretaker(self._ground, self._launcher, detected.level)
        else:
            self._care.move_to(self._ground, detected.level)
        return detected

    def _holder_at(self, level: int) -> Holder:
        """That of the session which has called us, where its commands run as ours do; else our own."""
        if self._within is not None:
            outer = self._within()
            if outer.detected.has_own_network and (outer.detected.level, outer._user) == (level, self._user) and outer._holder is not None:
                return outer._holder
        assert self._launcher is not None
        return self._holders.setdefault(level, make_holder(self._launcher, level))

    def _settle(self, detected: Detected) -> None:
        """Keep the holder of the level that was found, and what is open in its network."""
        holder = self._holder_at(detected.level) if detected.has_own_network else None
        if holder is not self._holder:
            if self._ports is not None:
                self._ports.close()
            self._holder, self._ports = holder, Ports(holder) if holder is not None else None
        self._close_holders(but=holder)

    def _close_holders(self, but: Holder | None = None) -> None:
        for level, each in list(self._holders.items()):
            if each is not but:
                self._holders.pop(level).close()

    def _make_private_folder(self) -> str:
        """Raises OSError if there is no place for it."""
        writable = outermost(map(os.path.realpath, (*self._folders, *self._writable)))
        if self._private and is_safe(self._private[-1], writable):
            return self._private[-1]
        private = make_private_folder([self._private_in] if self._private_in else [], writable, self._user)
        self._private.append(private)
        return private

    def _open_caches(self, private: str) -> tuple[str, CacheLayers]:
        """Where caches are, and the layers over them for commands that only read. They last for the session where commands run as another
        user, who may not get to our folders, or there is no other place for them. Raises OSError."""
        owner = self._user if self._user[0] != os.getuid() else None
        caches, reading = "", ""
        if self._caches is not None and owner is None:
            with suppress(OSError):
                caches, reading = self._caches.open(), self._caches.reading
        if not caches:
            caches, reading = make_session_caches(private, owner), os.path.join(private, "reading")
        if self._layers is None or self._layers.caches != caches:
            if self._layers is not None:
                self._layers.close()
            self._layers = CacheLayers(caches, reading, owner)
        return caches, self._layers

    def _make_ground(self, private: str) -> Ground:
        writable = outermost(map(os.path.realpath, (*self._folders, *self._writable)))
        caches, layers = self._open_caches(private)
        return Ground(
            writable,
            homes=find_homes(self._folders[0]),
            private=private,
            own=self._own,
            secret=self._secret,
            readable=self._readable,
            user=self._user[0] if self._user[0] != os.getuid() else None,
            caches=caches,
            layers=layers,
            survey=Survey(writable, self._is_denied, also=partial(main_folders, writable)),
        )


def _aftercare(care: Caretaker, prepared: Prepared | None, reading: Boundary | None) -> Callable[[], Awaitable[Remarks]]:
    """What is done when nothing of a command is alive any more."""
    if prepared is not None:
        return partial(care.look_after, prepared)

    async def give_back() -> Remarks:
        if reading is not None:
            care.release_reading(reading)
        return Remarks()

    return give_back


def _owner_of(folder: str) -> tuple[int, int]:
    """The user that commands run as: ours, or, if we are root, the owner of the workspace."""
    if os.getuid() != 0:
        return os.getuid(), os.getgid()
    status = os.stat(folder)
    return status.st_uid, status.st_gid
