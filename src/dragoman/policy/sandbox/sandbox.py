"""Starts commands inside the strongest boundary this machine offers, and looks after them when they have ended."""

from __future__ import annotations

import asyncio
import errno
import os
import pwd
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from dragoman.base.words import say
from dragoman.policy.sandbox.boundary import Ground, outermost
from dragoman.policy.sandbox.detection import KINDS, SEATBELT, Detected, Level, detect, make_order
from dragoman.policy.sandbox.environment import rebuild
from dragoman.policy.sandbox.findings import Remarks, explain_read_only, tell_copied, tell_findings, tell_read_only, tell_refused
from dragoman.policy.sandbox.guard import Findings, Guard
from dragoman.policy.sandbox.hard_links import SharedFiles
from dragoman.policy.sandbox.launcher import landlock
from dragoman.policy.sandbox.launcher.mending import Repairs
from dragoman.policy.sandbox.launcher.order import Boundary, Order
from dragoman.policy.sandbox.launching import Launcher, Running, hide_this_process, shared_launcher
from dragoman.policy.sandbox.private_folder import identify, is_safe, make_private_folder, remove_private_folder
from dragoman.policy.sandbox.refusals import explain, is_about_writing
from dragoman.policy.sandbox.repositories import Repository, main_folders
from dragoman.policy.sandbox.survey import Survey
from dragoman.values.commands import NO_HOSTS, HostsUsed, Launched

_TRIES = 3


class Prepared(NamedTuple):
    """What was found out for one command before it starts."""

    boundary: Boundary
    guard: Guard
    repositories: list[Repository]
    to_copy: SharedFiles | None = None
    """Files that must be copied first: then the rest is not made yet."""


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
        self._private_identity: tuple[tuple[int, int], ...] = ()
        self._covers: tuple[str, ...] = ()
        """What is read-only now because it is shared with files outside by hard links."""
        self._watched: dict[str, tuple[int, int]] = {}
        """What the last survey found and a command may have moved: then it is looked for anew."""
        self._wants_copies = False
        """Whether a command wanted to write there."""
        self._untold: list[Remarks] = []
        self._told: set[tuple[str, int]] = set()
        """What the user knows already: a path, and when it changed."""

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
            private = self._private.copy()
            self._private.clear()
            self._launcher = self._ground = self._detected = None
        for folder in private:
            remove_private_folder(folder)

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
        detected, launcher, ground = self.detected, self._launcher, self._ground
        assert launcher is not None
        if not detected.level or ground is None:
            plain = Order(tuple(argv), dict(env), directory, drop_spying=self._hide, terminal=terminal)
            return Confined(await launcher.start(plain, streams))
        if terminal is not None and not self.has_terminals:
            raise OSError(0, "the sandbox of this system gives no terminals")
        for tries_left in reversed(range(_TRIES)):
            prepared = await asyncio.to_thread(self._prepare_command, ground, detected.level)
            if prepared.to_copy is not None:
                await self._mend(Repairs(copy=prepared.to_copy.to_copy), ground, prepared.repositories)
                prepared = await asyncio.to_thread(self._prepare_command, ground, detected.level, copied=prepared.to_copy)
            order = self._order(detected.level, prepared.boundary, tuple(argv), directory, env, self._gate_port if with_gate else 0)
            order.terminal = terminal
            try:
                return Confined(await launcher.start(order, streams), partial(self._look_after, prepared, ground))
            except FileNotFoundError:  # what was to be covered has been moved meanwhile, or the command is not there
                if not tries_left:
                    raise
        raise AssertionError

    def explain(self, output: str, *, has_gate: bool = False) -> str:
        """What the sandbox seems to have refused, in a line for the model; empty if nothing. `output`: the end of what was said."""
        level = self._detected.level if self._detected is not None else 0
        if self._covers and is_about_writing(output):
            self._wants_copies = True
            shared = SharedFiles(self._ground.survey.look().shared) if self._ground is not None else SharedFiles({})
            return explain_read_only(self._covers, self._folders, is_copied=shared.is_copyable)
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

    # --- before and after a command

    def _prepare_command(self, ground: Ground, level: int, *, copied: SharedFiles | None = None) -> Prepared:
        """Blocks: the first time it looks at every file. Raises OSError if the command must not run. `copied`: what was just copied."""
        try:
            is_ours = identify(ground.private) == self._private_identity
        except OSError:
            is_ours = False
        if not is_ours:
            raise OSError(errno.EACCES, say("policy.sandbox_private_replaced", path=ground.private))
        has_moved = any(_identity(path) != identity for path, identity in self._watched.items())
        seen = ground.survey.look(at_once=has_moved or copied is not None)
        repositories = ground.repositories(seen)
        shared = SharedFiles(seen.shared)
        if copied is not None:
            self._wants_copies = False
            if shared.count < copied.count:
                self._untold.append(tell_copied(copied, self._folders))
        covers = (
            shared.covers((*ground.writable, *main_folders(ground.writable)))
            if shared.folders and level != 3
            else ()
            if not shared.folders
            else None
        )
        if shared.folders and (shared.is_small or covers is None or self._wants_copies) and copied is None and shared.is_copyable:
            return Prepared(Boundary(), Guard((), ()), repositories, shared)
        if covers is None:
            raise OSError(errno.EPERM, tell_refused(shared, self._folders))
        if covers and not self._covers:
            self._untold.append(tell_read_only(shared, covers, self._folders))
        self._covers = covers
        self._watched = {path: _identity(path) for path in (*covers, *seen.denied, *seen.repositories)}
        boundary = ground.draw_for_landlock(repositories) if level == 3 else ground.draw(repositories, shared=covers)
        guard = Guard(ground.writable, repositories, started=ground.started, near=seen.near, with_content=level == 3)
        return Prepared(boundary, guard, repositories)

    async def _look_after(self, prepared: Prepared, ground: Ground) -> Remarks:
        """When nothing of a command is alive any more."""
        findings, left = await asyncio.to_thread(prepared.guard.look), ()
        if findings.undone:
            await self._mend(findings.repairs, ground, prepared.repositories)
            left = (await asyncio.to_thread(prepared.guard.look)).undone
        told = [*self._untold, tell_findings(self._leave_out_told(findings), left, self._folders)]
        self._untold.clear()
        return Remarks(" ".join(each.model for each in told if each.model), "\n".join(each.user for each in told if each.user))

    def _leave_out_told(self, findings: Findings) -> Findings:
        news = {path: _changed_ns(path) for path in (*findings.running, *findings.believed)}
        new = {path for path, changed_ns in news.items() if (path, changed_ns) not in self._told}
        self._told |= set(news.items())
        return findings._replace(
            running=tuple(path for path in findings.running if path in new),
            believed=tuple(path for path in findings.believed if path in new),
        )

    async def _mend(self, repairs: Repairs, ground: Ground, repositories: Sequence[Repository]) -> None:
        """Inside a boundary in which no more can be written than by commands. Where none can be drawn, nothing is done."""
        level, launcher = self.detected.level, self._launcher
        if launcher is None or not (landlock.version() or level == 1):
            return
        has_landlock = bool(landlock.version())
        boundary = ground.draw_for_mending(repositories) if has_landlock else ground.draw(repositories)
        order = Order((), {}, "/", KINDS[3] if has_landlock else KINDS[1], boundary, repairs=repairs)
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            mending = await launcher.start(order, (nothing, nothing, nothing))
        except OSError:
            return
        finally:
            os.close(nothing)
        try:
            await mending.wait()
        finally:
            mending.close()

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
            self._launcher = shared_launcher()
            return Detected(0, (error.strerror or str(error),))
        self._launcher = shared_launcher(self._user)
        detected = detect(self._launcher, self._ground, self._level)
        if not detected.level:  # then commands run as we do
            self._launcher = shared_launcher()
        return detected

    def _make_private_folder(self) -> str:
        """Raises OSError if there is no place for it."""
        writable = outermost(map(os.path.realpath, (*self._folders, *self._writable)))
        if self._private and is_safe(self._private[-1], writable):
            return self._private[-1]
        private = make_private_folder([self._private_in] if self._private_in else [], writable, self._user)
        self._private.append(private)
        self._private_identity = identify(private)
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


def _identity(path: str) -> tuple[int, int]:
    try:
        status = os.lstat(path)
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino


def _changed_ns(path: str) -> int:
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return 0


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
