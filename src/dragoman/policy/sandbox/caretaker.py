"""Looks before and after each command of a workspace: what must be covered, copied, undone or told."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dragoman.base.beneath import is_inside
from dragoman.policy.sandbox.boundary import Ground
from dragoman.policy.sandbox.cache_layers import CacheLayer
from dragoman.policy.sandbox.detection import KINDS
from dragoman.policy.sandbox.findings import Remarks, explain_read_only, tell_copied, tell_findings, tell_read_only, tell_refused
from dragoman.policy.sandbox.guard import Findings, Guard
from dragoman.policy.sandbox.hard_links import SharedFiles
from dragoman.policy.sandbox.launcher import landlock
from dragoman.policy.sandbox.launcher.mending import Repairs
from dragoman.policy.sandbox.launcher.order import Boundary, Order
from dragoman.policy.sandbox.launching import Launcher
from dragoman.policy.sandbox.private_folder import identify
from dragoman.policy.sandbox.repositories import Repository, main_folders
from dragoman.policy.sandbox.survey import Seen
from dragoman.policy.sandbox.toolchains import VARIABLES
from dragoman.policy.sandbox.view import FileView, find_covered
from dragoman.words import say


class Prepared(NamedTuple):
    """What one command is started with, and looked at when it has ended."""

    boundary: Boundary
    guard: Guard
    repositories: list[Repository]


class _Sight(NamedTuple):
    """What was looked up of the user's toolchains, and what it was looked up for."""

    key: tuple[object, ...]
    tools: tuple[str, ...]
    """What variables name."""
    covered: FileView
    """Those that must be put back into private folders."""
    view: FileView | None = None
    """What commands that only read see."""


class Caretaker:
    """Belongs to one sandbox. Commands may be prepared side by side: what it remembers changes under a lock."""

    def __init__(self, ground: Ground, launcher: Launcher, level: int) -> None:
        self._launcher = launcher
        self._lock = threading.Lock()
        self._covers: tuple[str, ...] = ()
        """What is read-only now because it is shared with files outside by hard links."""
        self._shared = SharedFiles({})
        self._wants_copies = False
        """Whether a command wanted to write there."""
        self._watched: dict[str, tuple[int, int]] = {}
        """What the last survey found and a command may have moved: then it is looked for anew."""
        self._is_news = False
        """Whether a command has left something that git would run: what is new is looked for before the next one."""
        self._living: list[Prepared] = []
        """Commands that may write now."""
        self._sight: _Sight | None = None
        self._views = 0
        self._untold: list[Remarks] = []
        self._told: set[tuple[str, int]] = set()
        """What the user knows already: a path, and when it changed."""
        self.move_to(ground, level)

    def move_to(self, ground: Ground, level: int) -> None:
        """Another folder was added: from now on it is about this ground."""
        with self._lock:
            self._ground = ground
            self._level = level
            self._private = identify(ground.private)
            self._sight = None

    async def prepare(self, env: Mapping[str, str]) -> Prepared:
        """Look at what there is, and copy what must be the workspace's alone. Raises OSError if the command must not run."""
        # To hand it to a thread takes longer than the look itself, unless there is a survey to make or to wait for.
        if self._ground.layers is not None:
            self._ground.layers.renew()
        found = await asyncio.to_thread(self._look, env) if self._takes_long(env) else self._look(env)
        if isinstance(found, SharedFiles):
            await self._mend(Repairs(copy=found.to_copy), self._ground.repositories())
            found = await asyncio.to_thread(self._look, env, copied=found)
        assert isinstance(found, Prepared)
        return found

    def release(self, prepared: Prepared) -> None:
        """The command has ended, or was not started."""
        with self._lock:
            self._living = [each for each in self._living if each is not prepared]

    async def prepare_reading(self, env: Mapping[str, str]) -> Boundary:
        """For a command that only reads: there is nothing to copy before it, and nothing to look after. Its layer over the caches is given
        back with `release_reading`. Raises OSError if it must not run."""
        takes_long = self._takes_long(env) or self._sight is None or self._sight.view is None or not self._sight.view.is_current
        return await asyncio.to_thread(self._look_reading, env) if takes_long else self._look_reading(env)

    @property
    def shown_tools(self) -> tuple[str, ...]:
        """What stays readable because PATH or the like named it for the last command."""
        return self._sight.tools if self._sight is not None else ()

    def release_reading(self, boundary: Boundary) -> None:
        """The command has ended, or was not started."""
        if boundary.layer is not None and self._ground.layers is not None:
            self._ground.layers.give_back(CacheLayer(*boundary.layer))

    def forget_toolchains(self) -> None:
        """Something that was looked up is no longer there."""
        self._sight = None

    def _takes_long(self, env: Mapping[str, str]) -> bool:
        is_known = self._sight is not None and self._sight.key == self._key_of_sight(env)
        return not is_known or self._ground.survey.is_due or self._lock.locked() or self._has_moved()

    def _look_reading(self, env: Mapping[str, str]) -> Boundary:
        with self._lock:
            self._require_private()
            self._ground.survey.look(at_once=self._has_moved())
            sight = self._look_around(env)
            if sight.view is None or not sight.view.is_current:
                self._views += 1
                sight = self._sight = sight._replace(view=self._ground.make_view(env, self._views))
            assert sight.view is not None
            return self._ground.draw_read_only(sight.view, self._ground.layers.take() if self._ground.layers is not None else None)

    def _look_around(self, env: Mapping[str, str]) -> _Sight:
        """Looked up again only if something has changed."""
        key = self._key_of_sight(env)
        if self._sight is None or self._sight.key != key:
            tools = tuple(self._ground.find_named_tools(env))
            self._sight = _Sight(key, tools, find_covered(tools))
        return self._sight

    def _key_of_sight(self, env: Mapping[str, str]) -> tuple[object, ...]:
        """Changes with what the variables name, and with what there is in `/` and in the homes."""
        return (*map(env.get, VARIABLES), *map(_changed_ns, ("/", *self._ground.homes)))

    async def look_after(self, prepared: Prepared) -> Remarks:
        """When nothing of a command is alive any more: undo what must be undone, and say what was found."""
        self.release(prepared)
        if prepared.guard.is_unchanged() and not self._untold:
            return Remarks()
        findings, left = await asyncio.to_thread(prepared.guard.look), ()
        if findings.undone:
            await self._mend(findings.repairs, prepared.repositories)
            left = (await asyncio.to_thread(prepared.guard.look)).undone
        with self._lock:
            self._is_news = self._is_news or bool(findings.running)
            told = [*self._untold, tell_findings(self._leave_out_told(findings), left, self._ground.writable)]
            self._untold.clear()
        return Remarks(" ".join(each.model for each in told if each.model), "\n".join(each.user for each in told if each.user))

    def explain_read_only(self) -> str:
        """For a command that was refused to write, where that may be because of hard links: they are copied before the next one."""
        with self._lock:
            self._wants_copies = bool(self._covers)
            is_copied = self._wants_copies and self._shared.is_copyable
            return explain_read_only(self._covers, self._ground.writable, is_copied=is_copied) if self._covers else ""

    def _look(self, env: Mapping[str, str], *, copied: SharedFiles | None = None) -> Prepared | SharedFiles:
        """Blocks: the first time it looks at every file. Returns files that must be copied first, if there are any. Raises OSError if the
        command must not run. `copied`: what was just copied."""
        with self._lock:
            self._require_private()
            seen = self._ground.survey.look(at_once=copied is not None or self._has_moved())
            self._is_news = False
            self._shared = SharedFiles(seen.shared)
            if copied is not None:
                self._note_copied(copied)
            elif self._must_copy(self._shared):
                return self._shared
            return self._draw(seen, self._look_around(env))

    def _has_moved(self) -> bool:
        return self._is_news or any(_identity(path) != identity for path, identity in self._watched.items())

    def _require_private(self) -> None:
        """Raises OSError if something else stands in the place of our own temporary folder."""
        try:
            is_ours = identify(self._ground.private) == self._private
        except OSError:
            is_ours = False
        if not is_ours:
            raise OSError(errno.EACCES, say("policy.sandbox_private_replaced", path=self._ground.private))

    def _must_copy(self, shared: SharedFiles) -> bool:
        if not shared.folders or not shared.is_copyable:
            return False
        return shared.is_small or self._wants_copies or self._find_covers(shared) is None

    def _note_copied(self, copied: SharedFiles) -> None:
        self._wants_copies = False
        if self._shared.count < copied.count:
            self._untold.append(tell_copied(copied, self._ground.writable))

    def _find_covers(self, shared: SharedFiles) -> tuple[str, ...] | None:
        """What must be read-only. None: that cannot be had, as by Landlock alone."""
        if not shared.folders:
            return ()
        return shared.covers((*self._ground.writable, *main_folders(self._ground.writable))) if self._level != 3 else None

    def _draw(self, seen: Seen, sight: _Sight) -> Prepared:
        covers = self._find_covers(self._shared)
        if covers is None:
            raise OSError(errno.EPERM, tell_refused(self._shared, self._ground.writable))
        if covers and not self._covers:
            self._untold.append(tell_read_only(self._shared, self._ground.writable))
        self._covers = covers
        self._watched = {path: _identity(path) for path in (*covers, *seen.denied, *seen.repositories)}
        ground, is_last = self._ground, self._level == 3
        repositories = ground.repositories(seen)
        if is_last:
            boundary = ground.draw_for_landlock(repositories, tools=sight.tools)
        else:
            boundary = ground.draw(repositories, shared=covers, tools=sight.covered)
            if self._level == 2 and self._living:
                self._leave_out_movable(boundary, repositories)
        guard = Guard(ground.writable, repositories, started=ground.started, near=seen.near, inodes=seen.inodes, with_content=is_last)
        self._living.append(prepared := Prepared(boundary, guard, repositories))
        return prepared

    def _leave_out_movable(self, boundary: Boundary, repositories: Sequence[Repository]) -> None:
        """Leave out repositories that a command which goes on could swap for a link. bubblewrap follows it, and would make writable what it
        leads to, wherever that is. What is left out is looked at afterwards."""
        held = self._held_in_place()
        movable = {path for each in repositories for path in each.fixed if not any(is_inside(path, top) for top in held)}
        pinned = {path for each in repositories for path in each.pinned}
        boundary.pinned = tuple(path for path in boundary.pinned if path not in pinned or path in held)
        boundary.read_only = tuple(path for path in boundary.read_only if path not in movable)

    def _held_in_place(self) -> set[str]:
        """What cannot be moved by any of the commands that live: it is mounted for each of them, and so are the folders it lies in."""
        held = set.intersection(*({*each.boundary.writable} for each in self._living))
        mounted = set.intersection(*({*each.boundary.pinned, *each.boundary.read_only} for each in self._living))
        for path in sorted(mounted):  # a folder before what lies in it
            if os.path.dirname(path) in held:
                held.add(path)
        return held & mounted

    def _leave_out_told(self, findings: Findings) -> Findings:
        news = {path: _changed_ns(path) for path in (*findings.running, *findings.believed)}
        new = {path for path, changed_ns in news.items() if (path, changed_ns) not in self._told}
        self._told |= set(news.items())
        return findings._replace(
            running=tuple(path for path in findings.running if path in new),
            believed=tuple(path for path in findings.believed if path in new),
        )

    async def _mend(self, repairs: Repairs, repositories: Sequence[Repository]) -> None:
        """Inside a boundary in which no more can be written than by commands. Where none can be drawn, nothing is done."""
        has_landlock = bool(landlock.version())
        if not has_landlock and self._level != 1:
            return
        boundary = self._ground.draw_for_mending(repositories) if has_landlock else self._ground.draw(repositories)
        order = Order((), {}, "/", KINDS[3] if has_landlock else KINDS[1], boundary, repairs=repairs)
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            mending = await self._launcher.start(order, (nothing, nothing, nothing))
        except OSError:
            return
        finally:
            os.close(nothing)
        try:
            await mending.wait()
        finally:
            mending.close()


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
