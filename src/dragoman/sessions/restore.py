"""Carry out the plan of an undo or a redo: check every file again, write its new content beside it, and only then replace anything.

If something goes wrong, everything is rolled back: all or nothing. Replaced content goes to the blob store first.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from functools import partial
from stat import S_IMODE

import msgspec

from dragoman.base.atomic import FileChanged, change_mode, keep_attributes, remove_with_retry, require_unchanged, temporary_name
from dragoman.base.beneath import Directory, open_parent, rmdir_beneath, unlink_beneath
from dragoman.base.private import write_whole
from dragoman.sessions.file_state import NOTHING, FileState, is_hash, read_file_state
from dragoman.sessions.undo import PRIVATE, Conflict, UndoPlan, UndoStep, obstacle, saved_bytes
from dragoman.values.errors import DragomanError, InputError
from dragoman.values.record import FileChange
from dragoman.words import say

_SHOWN_CONFLICTS = 5


class UndoRefused(InputError):
    """Conflicts forbid it. Nothing was changed."""

    def __init__(self, conflicts: Sequence[Conflict], *, leaves_some: bool = False, is_redo: bool = False) -> None:
        """`leaves_some`: force would leave out what cannot be restored, and restore the rest."""
        self.conflicts = tuple(conflicts)
        self.shown = tuple(each for place, each in enumerate(self.conflicts) if each.is_guarded or place < _SHOWN_CONFLICTS)
        """Those that a message names: the first few, and every guarded file."""
        self.can_force = leaves_some or any(each.can_force for each in self.conflicts)
        shown = [say("sessions.undo_conflict", path=each.path, reason=each.reason) for each in self.shown]
        count = len(self.conflicts) - len(self.shown)
        more = say("sessions.undo_more", count=count) if count > 0 else ""
        act = "redo" if is_redo else "undo"
        key = f"sessions.{act}_refused_force" if self.can_force else f"sessions.{act}_refused"
        super().__init__(say(key, conflicts=shown, more=more))


class UndoFailed(DragomanError):
    """The system refused an operation. The message says whether everything was rolled back."""


class RestoreResult(msgspec.Struct, frozen=True):
    """What an undo did."""

    files: tuple[FileChange, ...] = ()
    """Each file that was restored, before and after; the replaced content is in the blob store too."""
    left: tuple[Conflict, ...] = ()
    """What could not be restored, not even by force."""


def restore(plan: UndoPlan, *, force: bool = False) -> RestoreResult:
    """Restore files as planned. Raises UndoRefused or UndoFailed after rolling back as far as possible.

    Force overrides those conflicts that allow it, and leaves the other files out. Links are not followed. Folders that become empty stay.
    """
    if plan.conflicts and not force:
        raise UndoRefused(plan.conflicts, leaves_some=bool(plan.steps), is_redo=plan.is_redo)
    attempt = _Attempt(plan)
    try:
        for step in plan.steps:
            attempt.prepare(step, force)
        attempt.carry_out()
    except (OSError, UndoRefused) as error:
        stuck = attempt.roll_back()
        if isinstance(error, FileChanged) and not stuck:
            raise attempt.refusal(attempt.at, say("sessions.undo_changed_now")) from error
        if isinstance(error, UndoRefused) and not stuck:
            raise
        raise UndoFailed(_failure_message(error, attempt.at, stuck, is_redo=plan.is_redo)) from error
    except BaseException:
        attempt.roll_back()
        raise
    attempt.clean_up()
    return RestoreResult(tuple(work.change for work in attempt.works), tuple(each for each in plan.conflicts if not each.can_force))


def _failure_message(error: Exception, path: str, stuck: Sequence[str], *, is_redo: bool) -> str:
    why = error.strerror or error if isinstance(error, OSError) else error
    if stuck:
        return say("sessions.redo_stuck" if is_redo else "sessions.undo_stuck", path=path, reason=why, stuck=", ".join(stuck))
    return say("sessions.redo_failed" if is_redo else "sessions.undo_failed", path=path, reason=why)


class _StepWork:
    """One step in progress."""

    def __init__(self, step: UndoStep, now: FileState) -> None:
        self.step = step
        self.now = now
        self.status: os.stat_result | None = None
        self.is_mode_only = step.content == now.content
        """Whether its permissions are changed in place. A file with several names is replaced instead: the others may lie outside."""
        self.new = ""
        """Name of the temporary file that will replace it."""
        self.aside = ""
        """Name under which the old file can be restored."""
        self.is_done = False

    @property
    def name(self) -> str:
        return os.path.basename(self.step.path)

    @property
    def change(self) -> FileChange:
        """What it did to the file. As with changes by calls, the mode has the file type only if it was changed, so that a redo leaves
        alone a mode that somebody else has set since."""
        keeps_mode = self.step.content != NOTHING and self.step.mode in (None, self.now.permissions)
        mode = S_IMODE(self.now.mode) if keeps_mode else self.now.mode
        return FileChange(self.step.path, self.now.content, self.step.content, mode)


class _Attempt:
    def __init__(self, plan: UndoPlan) -> None:
        self.works: list[_StepWork] = []
        self.at = ""
        """The file being processed, for messages."""
        self._plan = plan
        self._made: list[str] = []

    def refusal(self, path: str, reason: str, *, can_force: bool = True) -> UndoRefused:
        return UndoRefused([Conflict(path, reason, can_force)], is_redo=self._plan.is_redo)

    # --- nothing is visible yet

    def prepare(self, step: UndoStep, force: bool) -> None:
        self.at = step.path
        now = read_file_state(step.path)
        if reason := obstacle(step, now, self._plan.blobs):
            raise self.refusal(step.path, reason, can_force=False)
        if (now.content, now.mode) != (step.found.content, step.found.mode) and not force:
            raise self.refusal(step.path, say("sessions.undo_changed_now"))
        if now.data is not None:
            self._plan.blobs.put("application/octet-stream", now.data)
        work = _StepWork(step, FileState(now.content, now.mode))
        self.works.append(work)
        if step.content == NOTHING and now.content == NOTHING:
            return
        is_written = step.content != NOTHING and not work.is_mode_only
        with open_parent(step.path, create=is_written, made=self._made) as directory:
            work.status = directory.stat(work.name) if now.content else None
            if work.is_mode_only and work.status is not None and work.status.st_nlink > 1:
                if not is_hash(step.content):
                    raise self.refusal(step.path, say("sessions.undo_not_kept"), can_force=False)
                work.is_mode_only, is_written = False, True
            if is_written:
                self._write_beside(directory, work)

    def _write_beside(self, directory: Directory, work: _StepWork) -> None:
        data = saved_bytes(work.step.content, self._plan.blobs)
        if data is None:
            raise FileNotFoundError(2, say("sessions.undo_copy_damaged"), work.step.path)
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

    # --- from here on it is

    def carry_out(self) -> None:
        for work in self.works:
            self.at = work.step.path
            if work.status is None and not work.new:
                continue  # it was to be removed, and is already gone
            with open_parent(work.step.path) as directory:
                require_unchanged(directory, work.name, work.status)
                self._put_back(directory, work)
        one_in_each = {os.path.dirname(path): path for path in (*self._made, *(work.step.path for work in self.works if work.is_done))}
        for path in one_in_each.values():
            _sync(path)

    def _put_back(self, directory: Directory, work: _StepWork) -> None:
        if work.is_mode_only:
            _change_mode(directory, work, work.step.mode)
        elif work.new:
            if work.status is not None:
                work.aside = _link_aside(directory, work.name)
            directory.replace(work.new, work.name)
            work.new = ""
        else:
            aside = temporary_name()
            directory.replace(work.name, aside)
            work.aside = aside
        work.is_done = True

    # --- afterwards

    def roll_back(self) -> list[str]:
        """Roll back as far as possible. Returns the paths that could not be restored."""
        stuck = list[str]()
        for work in reversed(self.works):
            try:
                if work.is_done:
                    with open_parent(work.step.path) as directory:
                        _roll_back(directory, work)
            except OSError:
                stuck.append(work.step.path)
                work.aside = ""  # so that it is kept and can still be found
        self.clean_up()
        for folder in reversed(self._made):
            try:
                rmdir_beneath(folder)
            except OSError:
                continue  # in use by now
        return stuck

    def clean_up(self) -> None:
        for work in self.works:
            for name in (work.new, work.aside):
                if name:
                    remove_with_retry(partial(unlink_beneath, os.path.join(os.path.dirname(work.step.path), name)))


def _roll_back(directory: Directory, work: _StepWork) -> None:
    if work.is_mode_only:
        _change_mode(directory, work, work.now.permissions)
    elif work.aside:
        directory.replace(work.aside, work.name)
        work.aside = ""
    elif work.status is None:
        directory.unlink(work.name)
    else:
        raise FileNotFoundError(work.step.path)


def _sync(path: str) -> None:
    try:
        with open_parent(path) as directory:
            directory.sync()
    except OSError:
        pass  # its folder was moved away in the meantime, with everything in it


def _link_aside(directory: Directory, name: str) -> str:
    second = temporary_name()
    try:
        directory.link(name, second)
    except OSError:
        return ""  # then it could not be rolled back; but it is in the blob store
    return second


def _change_mode(directory: Directory, work: _StepWork, mode: int | None) -> None:
    if mode is None:
        return
    descriptor = directory.open_for_reading(work.name)
    try:
        found = os.fstat(descriptor)
        if work.status is None or not os.path.samestat(found, work.status) or found.st_nlink > 1:
            raise FileChanged(errno.ESTALE, "it was changed by somebody else just now", work.name)
        change_mode(descriptor, mode)
    finally:
        os.close(descriptor)
