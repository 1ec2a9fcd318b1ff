"""Carrying out a plan of undoing: every file is looked at again, its new content written beside it, and only then anything is replaced.

What goes wrong on the way is taken back, so that there is all of it or nothing. What is displaced goes to the blob store first.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

import msgspec

from dragoman.base.atomic import FileChanged, change_mode, keep_attributes, remove_surely, require_unchanged, temporary_name
from dragoman.base.beneath import Directory, open_parent
from dragoman.base.private import write_whole
from dragoman.sessions.file_state import NOTHING, FileState, look_at
from dragoman.sessions.undo import PRIVATE, Conflict, Plan, Step, kept_bytes, obstacle
from dragoman.values.errors import DragomanError, InputError
from dragoman.values.record import FileChange

_SHOWN_CONFLICTS = 5


class UndoRefused(InputError):
    """Something stands against it. Nothing was changed."""

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        self.conflicts = tuple(conflicts)
        shown = "; ".join(f"{each.path}: {each.reason}" for each in self.conflicts[:_SHOWN_CONFLICTS])
        more = len(self.conflicts) - _SHOWN_CONFLICTS
        force = " (force it to undo it all the same)" if any(each.can_force for each in self.conflicts) else ""
        super().__init__(f"nothing was undone: {shown}{f'; and {more} more' if more > 0 else ''}{force}")


class UndoFailed(DragomanError):
    """The system would not let it happen. The message says whether everything is as it was."""


class Restored(msgspec.Struct, frozen=True):
    """What undoing did."""

    files: tuple[FileChange, ...] = ()
    """Each file that was put back, before and after: what was displaced is in the blob store too."""
    left: tuple[Conflict, ...] = ()
    """What could not be brought back, not even by force."""


def restore(plan: Plan, *, force: bool = False) -> Restored:
    """Put files back as planned. Raises UndoRefused or UndoFailed, and then nothing has changed, as far as that can be had.

    Force overrides conflicts that can be, and leaves the others out. No link is followed. Folders that become empty are left.
    """
    if plan.conflicts and not force:
        raise UndoRefused(plan.conflicts)
    attempt = _Attempt(plan)
    try:
        for step in plan.steps:
            attempt.prepare(step, force)
        attempt.carry_out()
    except (OSError, UndoRefused) as error:
        stuck = attempt.take_back()
        if isinstance(error, FileChanged) and not stuck:
            raise UndoRefused([Conflict(attempt.at, "it was changed by somebody else just now")]) from error
        if isinstance(error, UndoRefused) and not stuck:
            raise
        raise UndoFailed(_told(error, attempt.at, stuck)) from error
    except BaseException:
        attempt.take_back()
        raise
    attempt.clear_up()
    return Restored(tuple(work.change for work in attempt.works), tuple(each for each in plan.conflicts if not each.can_force))


def _told(error: Exception, path: str, stuck: Sequence[str]) -> str:
    why = error.strerror or error if isinstance(error, OSError) else error
    end = f"and could not be taken back for {', '.join(stuck)}: see what is in its folder" if stuck else "everything is as it was"
    return f"undoing failed at {path} ({why}), {end}"


class _Work:
    """One step under way."""

    def __init__(self, step: Step, now: FileState) -> None:
        self.step = step
        self.now = now
        self.status: os.stat_result | None = None
        self.is_mode_only = step.content == now.content
        self.new = ""
        """Name of the file beside it that is to take its place."""
        self.aside = ""
        """Name by which what was there can be had back."""
        self.is_done = False

    @property
    def name(self) -> str:
        return os.path.basename(self.step.path)

    @property
    def change(self) -> FileChange:
        return FileChange(self.step.path, self.now.content, self.step.content, self.now.mode)


class _Attempt:
    def __init__(self, plan: Plan) -> None:
        self.works: list[_Work] = []
        self.at = ""
        """The file it is at, for messages."""
        self._plan = plan
        self._made: list[str] = []

    # --- nothing of this can be seen yet

    def prepare(self, step: Step, force: bool) -> None:
        self.at = step.path
        now = look_at(step.path)
        if reason := obstacle(step, now, self._plan.blobs):
            raise UndoRefused([Conflict(step.path, reason, can_force=False)])
        if (now.content, now.mode) != (step.found.content, step.found.mode) and not force:
            raise UndoRefused([Conflict(step.path, "it was changed by somebody else just now")])
        if now.data is not None:
            self._plan.blobs.put("application/octet-stream", now.data)
        work = _Work(step, FileState(now.content, now.mode))
        self.works.append(work)
        if step.content == NOTHING and now.content == NOTHING:
            return
        is_written = step.content != NOTHING and not work.is_mode_only
        with open_parent(step.path, create=is_written, made=self._made) as directory:
            work.status = directory.stat(work.name) if now.content else None
            if is_written:
                self._write_beside(directory, work)

    def _write_beside(self, directory: Directory, work: _Work) -> None:
        data = kept_bytes(work.step.content, self._plan.blobs)
        if data is None:
            raise FileNotFoundError(2, "the copy that was kept of it is gone", work.step.path)
        work.new = temporary_name()
        descriptor = directory.create(work.new, 0o600)
        try:
            write_whole(descriptor, data)
            mode = work.step.mode
            if work.status is not None and work.now.is_regular:
                keep_attributes(directory, work.name, descriptor, work.status)
                mode = work.now.permissions if mode is None else mode
            change_mode(descriptor, PRIVATE if mode is None else mode)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    # --- from here on it can

    def carry_out(self) -> None:
        for work in self.works:
            self.at = work.step.path
            if work.status is None and not work.new:
                continue  # it was to be removed, and is gone
            with open_parent(work.step.path) as directory:
                require_unchanged(directory, work.name, work.status)
                self._put_back(directory, work)
        one_in_each = {os.path.dirname(path): path for path in (*self._made, *(work.step.path for work in self.works if work.is_done))}
        for path in one_in_each.values():
            _sync(path)

    def _put_back(self, directory: Directory, work: _Work) -> None:
        if work.is_mode_only:
            _change_mode(directory, work.name, work.step.mode)
        elif work.new:
            if work.status is not None:
                work.aside = _second_name(directory, work.name)
            directory.replace(work.new, work.name)
            work.new = ""
        else:
            aside = temporary_name()
            directory.replace(work.name, aside)
            work.aside = aside
        work.is_done = True

    # --- afterwards

    def take_back(self) -> list[str]:
        """As it was, as far as it can be had. Returns the paths that could not."""
        stuck = list[str]()
        for work in reversed(self.works):
            try:
                if work.is_done:
                    with open_parent(work.step.path) as directory:
                        _take_back(directory, work)
            except OSError:
                stuck.append(work.step.path)
                work.aside = ""  # where it can still be found
        self.clear_up()
        for folder in reversed(self._made):
            try:
                os.rmdir(folder)
            except OSError:
                continue  # it is in use by now
        return stuck

    def clear_up(self) -> None:
        for work in self.works:
            for name in (work.new, work.aside):
                if name:
                    remove_surely(partial(_remove_beside, work.step.path, name))


def _take_back(directory: Directory, work: _Work) -> None:
    if work.is_mode_only:
        _change_mode(directory, work.name, work.now.permissions)
    elif work.aside:
        directory.replace(work.aside, work.name)
        work.aside = ""
    elif work.status is None:
        directory.unlink(work.name)
    else:
        raise FileNotFoundError(work.step.path)


def _remove_beside(path: str, name: str) -> None:
    with open_parent(path) as directory:
        directory.unlink(name)


def _sync(path: str) -> None:
    try:
        with open_parent(path) as directory:
            directory.sync()
    except OSError:
        pass  # its folder was moved away meanwhile, with all that is in it


def _second_name(directory: Directory, name: str) -> str:
    second = temporary_name()
    try:
        directory.link(name, second)
    except OSError:
        return ""  # then it could not be taken back; but it is in the blob store
    return second


def _change_mode(directory: Directory, name: str, mode: int | None) -> None:
    if mode is None:
        return
    descriptor = directory.open_for_reading(name)
    try:
        change_mode(descriptor, mode)
    finally:
        os.close(descriptor)
