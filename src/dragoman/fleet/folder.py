"""The folder of a fleet: what it was started with, and where everything of it lies."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import msgspec

from dragoman import __version__
from dragoman.base.atomic import replace_file, temporary_name
from dragoman.base.found_files import read_found
from dragoman.base.lock import hold_folder
from dragoman.base.private import make_directory, require_unshared
from dragoman.fleet.journal import JOURNAL_FILE
from dragoman.fleet.result import RESULT_FILE, TASK_FILE, AttemptResult, read_result
from dragoman.fleet.task import Task
from dragoman.values.errors import InputError
from dragoman.words import say

FLEETS = "fleet"
LOCK_FILE = "lock.json"
TASKS_FILE = "tasks.jsonl"
RESULTS_FILE = "results.jsonl"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}\Z")
_ID = re.compile(r"[0-9a-f]{12}\Z")


class Lock(msgspec.Struct, frozen=True, kw_only=True):
    """What a fleet was started with. A resume goes on with exactly this."""

    id: str
    version: str
    tasks: int
    tasks_sha256: str
    attempts: int = 1
    model: str = ""
    approval: str = ""
    sandbox: str = ""
    trust: bool = False
    config: str = ""
    scratch: str
    """Where the copies of workspaces lie."""

    def flags(self) -> list[str]:
        """What every worker is called with."""
        named = {"--model": self.model, "--approval": self.approval, "--sandbox": self.sandbox, "--config": self.config}
        flags = [word for name, value in named.items() if value for word in (name, value)]
        return [*flags, "--scratch", self.scratch, *(["--trust"] if self.trust else [])]


class Fleet:
    """A fleet's folder, with its tasks found by number: none of them is kept in memory."""

    def __init__(self, folder: str, lock: Lock, offsets: array[int]) -> None:
        self.folder = folder
        self.lock = lock
        self._offsets = offsets

    @property
    def name(self) -> str:
        return os.path.basename(self.folder)

    @property
    def slots(self) -> int:
        """How many attempts there are of all tasks together. A slot's number is attempt × tasks + task."""
        return self.lock.tasks * self.lock.attempts

    def slot(self, task: int, attempt: int) -> int:
        return (attempt - 1) * self.lock.tasks + task

    def task_and_attempt(self, slot: int) -> tuple[int, int]:
        attempt, task = divmod(slot, self.lock.tasks)
        return task, attempt + 1

    def task(self, number: int) -> Task:
        with open(os.path.join(self.folder, TASKS_FILE), "rb") as file:
            file.seek(self._offsets[number])
            return msgspec.json.decode(file.readline(), type=Task)

    def tasks(self) -> Iterator[Task]:
        with open(os.path.join(self.folder, TASKS_FILE), "rb") as file:
            for line in file:
                yield msgspec.json.decode(line, type=Task)

    def attempt_folder(self, task: Task, attempt: int) -> str:
        return os.path.join(self.folder, "tasks", task.folder, str(attempt))

    def epoch_folder(self, task: Task, attempt: int, epoch: int) -> str:
        return os.path.join(self.attempt_folder(task, attempt), f"epoch-{epoch}")

    def make_epoch(self, task: Task, attempt: int, epoch: int) -> str:
        """The folder of an epoch, with the task beside it for the worker."""
        folder = self.epoch_folder(task, attempt, epoch)
        os.makedirs(folder, 0o700, exist_ok=True)
        path = os.path.join(os.path.dirname(folder), TASK_FILE)
        if not os.path.exists(path):  # whole or not at all; it need not be on disk, because it can be written again
            aside = os.path.join(folder, TASK_FILE)
            with open(aside, "wb") as file:
                file.write(msgspec.json.encode(task))
            os.replace(aside, path)
        return folder

    def accept(self, task: Task, attempt: int, epoch: int) -> bool:
        """Make the result of an epoch that of the attempt. Returns False where another one was accepted before: it stays."""
        try:
            os.link(
                os.path.join(self.epoch_folder(task, attempt, epoch), RESULT_FILE),
                os.path.join(self.attempt_folder(task, attempt), RESULT_FILE),
            )
        except FileExistsError:
            return False
        return True

    def reopen(self, task: Task, attempt: int) -> None:
        """Let an attempt be without a result again; its epoch keeps the one that was accepted."""
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self.attempt_folder(task, attempt), RESULT_FILE))

    def is_done(self, task: Task) -> bool:
        """Whether each of its attempts has a result."""
        return all(self.has_result(task, number + 1) for number in range(self.lock.attempts))

    def has_result(self, task: Task, attempt: int) -> bool:
        """Whether a result was accepted."""
        return os.path.lexists(os.path.join(self.attempt_folder(task, attempt), RESULT_FILE))

    @property
    def is_untouched(self) -> bool:
        """Whether nothing of it was ever started."""
        try:
            return not os.path.getsize(os.path.join(self.folder, JOURNAL_FILE))
        except FileNotFoundError:
            return True

    def remove(self) -> None:
        """Remove a fleet that is untouched."""
        for name in (LOCK_FILE, TASKS_FILE, JOURNAL_FILE):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(self.folder, name))
        with suppress(OSError):  # other fleets, or what is none of ours
            os.rmdir(self.folder)
            os.rmdir(os.path.dirname(self.folder))

    def result(self, task: Task, attempt: int) -> AttemptResult | None:
        return read_result(self.attempt_folder(task, attempt))


def is_fleet(name: str, above: int) -> bool:
    """Whether an entry of an open folder is that of a fleet. Where tasks work on the very folder that they were started in, the results of
    others and what checks will ask are no part of their workspace: copies would also grow with each task."""
    try:
        found = [os.stat(f"{name}/{each}", dir_fd=above, follow_symlinks=False) for each in (JOURNAL_FILE, LOCK_FILE, TASKS_FILE)]
    except OSError:
        return False
    return all(stat.S_ISREG(each.st_mode) for each in found)


def fleet_folder(name: str, directory: str) -> str:
    """Raises InputError where the name cannot be one."""
    if not _NAME.match(name):
        raise InputError(say("fleet.bad_name", name=name[:80]))
    return os.path.join(directory, FLEETS, name)


def make_fleet(folder: str, tasks: Iterable[Task], settings: Lock, check: Callable[[], None] = lambda: None) -> Fleet:
    """Make the folder with everything that is started. Raises InputError where there is one, with another input or the same, and what
    reading the tasks or `check` raises; then nothing is left of it."""
    make_directory(folder)
    aside = os.path.join(folder, temporary_name())  # another one may be made here at the same moment
    try:
        return _make(folder, aside, tasks, settings, check)
    except BaseException:
        with suppress(OSError):
            os.unlink(aside)
        with suppress(OSError):  # empty, unless there was a fleet before
            os.rmdir(folder)
            os.rmdir(os.path.dirname(folder))
        raise


def _make(folder: str, aside: str, tasks: Iterable[Task], settings: Lock, check: Callable[[], None]) -> Fleet:
    digest, offsets, at = hashlib.sha256(), array("Q"), 0
    with open(aside, "wb") as file:
        for task in tasks:
            line = msgspec.json.encode(task) + b"\n"
            digest.update(line)
            offsets.append(at)
            at += file.write(line)
        file.flush()
        os.fsync(file.fileno())
    lock = msgspec.structs.replace(settings, tasks=len(offsets), tasks_sha256=digest.hexdigest())
    if os.path.lexists(os.path.join(folder, LOCK_FILE)):
        _refuse_existing(folder, lock)
    check()
    with hold_folder(folder):
        if os.path.lexists(os.path.join(folder, LOCK_FILE)):  # somebody was faster
            _refuse_existing(folder, lock)
        os.replace(aside, os.path.join(folder, TASKS_FILE))
        replace_file(os.path.join(folder, LOCK_FILE), msgspec.json.format(msgspec.json.encode(lock)) + b"\n")
    return Fleet(folder, lock, offsets)


def _refuse_existing(folder: str, lock: Lock) -> None:
    before, name = read_lock(folder), os.path.basename(folder)
    same = msgspec.structs.replace(before, id=lock.id, scratch=lock.scratch, version=lock.version) == lock
    raise InputError(say("fleet.exists_same", name=name) if same else say("fleet.exists_other", path=folder))


def read_lock(folder: str) -> Lock:
    try:
        lock = msgspec.json.decode(read_found(os.path.join(folder, LOCK_FILE), 1_000_000), type=Lock)
    except FileNotFoundError as error:
        raise InputError(say("fleet.none_there", path=folder)) from error
    except (OSError, msgspec.MsgspecError) as error:
        raise InputError(say("fleet.lock_unreadable", path=folder, reason=error)) from error
    if not _ID.match(lock.id) or lock.scratch != os.path.join(os.path.abspath(os.path.dirname(lock.scratch)), scratch_name(lock.id)):
        raise InputError(say("fleet.lock_strange", path=os.path.join(folder, LOCK_FILE)))
    return lock


def open_fleet(folder: str, *, any_version: bool = True) -> Fleet:
    """Raises InputError where there is none, where its tasks are not those it was started with, or another version wrote it."""
    lock = read_lock(folder)
    if lock.version != __version__ and not any_version:
        raise InputError(say("fleet.other_version", theirs=lock.version, ours=__version__))
    digest, offsets, at = hashlib.sha256(), array("Q"), 0
    try:
        with open(os.path.join(folder, TASKS_FILE), "rb") as file:
            for line in file:
                digest.update(line)
                offsets.append(at)
                at += len(line)
    except OSError as error:
        raise InputError(say("fleet.lock_unreadable", path=folder, reason=error)) from error
    if digest.hexdigest() != lock.tasks_sha256 or len(offsets) != lock.tasks:
        raise InputError(say("fleet.tasks_changed", path=os.path.join(folder, TASKS_FILE)))
    return Fleet(folder, lock, offsets)


def new_fleet_id() -> str:
    return secrets.token_hex(6)


def scratch_name(fleet_id: str) -> str:
    """What the folder for the copies of a fleet is called. A resume empties it, and ends every process that is marked with the id: so a
    `lock.json` that somebody else has written may not name any other."""
    return f"dragoman-fleet-{fleet_id}"


def scratch_of(fleet_id: str) -> str:
    """That folder: out of reach of what the user trusts, and short."""
    import tempfile

    return os.path.join(os.path.realpath(tempfile.gettempdir()), scratch_name(fleet_id))


def make_scratch(path: str) -> None:
    """Make the folder for copies, in a place where others may have put something under its name. Raises InputError where it is not ours
    alone."""
    make_directory(path)
    try:
        require_unshared(path, os.lstat(path))
    except PermissionError as error:
        raise InputError(say("fleet.scratch_is_shared", path=path)) from error
