"""Looks before and after each command of a workspace: what must be covered, copied, undone or told."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.base.words import say
from dragoman.policy.sandbox.boundary import Ground
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


class Prepared(NamedTuple):
    """What one command is started with, and looked at when it has ended."""

    boundary: Boundary
    guard: Guard
    repositories: list[Repository]


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

    async def prepare(self) -> Prepared:
        """Look at what there is, and copy what must be the workspace's alone. Raises OSError if the command must not run."""
        # To hand it to a thread takes longer than the look itself, unless there is a survey to make or to wait for.
        takes_long = self._ground.survey.is_due or self._lock.locked() or self._has_moved()
        found = await asyncio.to_thread(self._look) if takes_long else self._look()
        if isinstance(found, SharedFiles):
            await self._mend(Repairs(copy=found.to_copy), self._ground.repositories())
            found = await asyncio.to_thread(self._look, copied=found)
        assert isinstance(found, Prepared)
        return found

    async def look_after(self, prepared: Prepared) -> Remarks:
        """When nothing of a command is alive any more: undo what must be undone, and say what was found."""
        if prepared.guard.is_unchanged() and not self._untold:
            return Remarks()
        findings, left = await asyncio.to_thread(prepared.guard.look), ()
        if findings.undone:
            await self._mend(findings.repairs, prepared.repositories)
            left = (await asyncio.to_thread(prepared.guard.look)).undone
        with self._lock:
            told = [*self._untold, tell_findings(self._leave_out_told(findings), left, self._ground.writable)]
            self._untold.clear()
        return Remarks(" ".join(each.model for each in told if each.model), "\n".join(each.user for each in told if each.user))

    def explain_read_only(self) -> str:
        """For a command that was refused to write, where that may be because of hard links: they are copied before the next one."""
        with self._lock:
            self._wants_copies = bool(self._covers)
            is_copied = self._wants_copies and self._shared.is_copyable
            return explain_read_only(self._covers, self._ground.writable, is_copied=is_copied) if self._covers else ""

    def _look(self, *, copied: SharedFiles | None = None) -> Prepared | SharedFiles:
        """Blocks: the first time it looks at every file. Returns files that must be copied first, if there are any. Raises OSError if the
        command must not run. `copied`: what was just copied."""
        with self._lock:
            self._require_private()
            seen = self._ground.survey.look(at_once=copied is not None or self._has_moved())
            self._shared = SharedFiles(seen.shared)
            if copied is not None:
                self._note_copied(copied)
            elif self._must_copy(self._shared):
                return self._shared
            return self._draw(seen)

    def _has_moved(self) -> bool:
        return any(_identity(path) != identity for path, identity in self._watched.items())

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

    def _draw(self, seen: Seen) -> Prepared:
        covers = self._find_covers(self._shared)
        if covers is None:
            raise OSError(errno.EPERM, tell_refused(self._shared, self._ground.writable))
        if covers and not self._covers:
            self._untold.append(tell_read_only(self._shared, self._ground.writable))
        self._covers = covers
        self._watched = {path: _identity(path) for path in (*covers, *seen.denied, *seen.repositories)}
        ground, is_last = self._ground, self._level == 3
        repositories = ground.repositories(seen)
        boundary = ground.draw_for_landlock(repositories) if is_last else ground.draw(repositories, shared=covers)
        guard = Guard(ground.writable, repositories, started=ground.started, near=seen.near, with_content=is_last)
        return Prepared(boundary, guard, repositories)

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
