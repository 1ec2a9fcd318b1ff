"""The folder of a fleet: what it was started with, and where everything of it lies."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from array import array
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, BinaryIO

import msgspec
from msgspec import Meta

from dragoman import __version__
from dragoman.base.atomic import temporary_name
from dragoman.base.beneath import open_directory, rmdir_beneath
from dragoman.base.found_files import TooLargeFile
from dragoman.base.lock import hold_folder
from dragoman.base.private import make_directory, require_unshared, write_whole
from dragoman.base.text import one_line
from dragoman.fleet import files
from dragoman.fleet.journal import JOURNAL_FILE, MOST_EPOCHS
from dragoman.fleet.result import RESULT_FILE, TASK_FILE, AttemptResult, read_result
from dragoman.fleet.task import Task, require_task
from dragoman.values.errors import DragomanError, InputError
from dragoman.words import say

MOST_LOCK_BYTES = 1_000_000
MOST_ATTEMPTS = 1_000_000
"""So many attempts a fleet has, all its tasks together."""
MOST_PATH_CHARS = 4_096
MOST_HIDDEN = 16
APPROVALS = ("", "plan", "default", "auto-edit", "auto")
SANDBOXES = ("", "auto", "1", "2", "3", "off", "external")
FLEETS = "fleet"
LOCK_FILE = "lock.json"
TASKS_FILE = "tasks.jsonl"
RESULTS_FILE = "results.jsonl"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}\Z")
_ID = re.compile(r"[0-9a-f]{12}\Z")
_TEMPORARY = re.compile(r"\.dragoman-[0-9a-f]{8}-[0-9a-f]{12}\.tmp\Z")
_MARK_BYTES = 8


class Lock(msgspec.Struct, frozen=True, kw_only=True):
    """What a fleet was started with. A resume goes on with exactly this."""

    id: str
    version: str
    tasks: Annotated[int, Meta(ge=0, le=MOST_ATTEMPTS)]
    tasks_sha256: str
    attempts: Annotated[int, Meta(ge=1, le=60_000)] = 1
    model: str = ""
    approval: str = ""
    sandbox: str = ""
    trust: bool = False
    config: str = ""
    scratch: str
    """Where the copies of workspaces lie."""
    hidden: tuple[str, ...] = ()
    """What no task may read: where the tasks came from, which names their hidden checks."""

    def flags(self) -> list[str]:
        """What every worker is called with."""
        named = {"--model": self.model, "--approval": self.approval, "--sandbox": self.sandbox, "--config": self.config}
        flags = [word for name, value in named.items() if value for word in (name, value)]
        hidden = [word for path in self.hidden for word in ("--hide", path)]
        return [*flags, "--scratch", self.scratch, *hidden, *(["--trust"] if self.trust else [])]


class TaskIndex:
    """Where each task stands in the list of tasks, and a mark of its line: what was changed since is not taken for a task."""

    def __init__(self) -> None:
        self._offsets, self._marks = array("Q"), bytearray()
        self._digest, self._at = hashlib.sha256(), 0

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def add(self, line: bytes) -> None:
        self._digest.update(line)
        self._offsets.append(self._at)
        self._marks += _mark_of(line)
        self._at += len(line)

    def offset(self, number: int) -> int:
        return self._offsets[number]

    def holds(self, number: int, line: bytes) -> bool:
        """Whether this is the line of the task with this number."""
        return number < len(self._offsets) and self._marks[number * _MARK_BYTES : (number + 1) * _MARK_BYTES] == _mark_of(line)


def _mark_of(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=_MARK_BYTES).digest()


class Fleet:
    """A fleet's folder, with its tasks found by number: none of them is kept in memory."""

    def __init__(self, folder: str, lock: Lock, index: TaskIndex, lock_sha256: str = "") -> None:
        """`folder`: by a path without links."""
        self.folder = folder
        self.lock = lock
        self.lock_sha256 = lock_sha256
        self._index = index

    @property
    def name(self) -> str:
        return os.path.basename(self.folder)

    @property
    def slots(self) -> int:
        """How many attempts there are of all tasks together. A slot's number is attempt × tasks + task."""
        return self.lock.tasks * self.lock.attempts

    def slot(self, task: int, attempt: int) -> int:
        """Raises InputError where the fleet has no such attempt."""
        if not (0 <= task < self.lock.tasks and 1 <= attempt <= self.lock.attempts):
            raise InputError(say("fleet.journal_strange", path=os.path.join(self.folder, JOURNAL_FILE)))
        return (attempt - 1) * self.lock.tasks + task

    def task_and_attempt(self, slot: int) -> tuple[int, int]:
        attempt, task = divmod(slot, self.lock.tasks)
        return task, attempt + 1

    def task(self, number: int) -> Task:
        with self._open_tasks() as file:
            file.seek(self._index.offset(number))
            return self._read_task(number, next(files.lines_of(file), b""))

    def tasks(self) -> Iterator[Task]:
        with self._open_tasks() as file:
            for number, line in enumerate(files.lines_of(file)):
                yield self._read_task(number, line)

    @contextmanager
    def _open_tasks(self) -> Generator[BinaryIO]:
        path = os.path.join(self.folder, TASKS_FILE)
        try:
            with files.open_file(path) as file:
                yield file
        except TooLargeFile as error:
            raise InputError(say("fleet.tasks_changed", path=path)) from error

    def _read_task(self, number: int, line: bytes) -> Task:
        path = os.path.join(self.folder, TASKS_FILE)
        if not self._index.holds(number, line):
            raise InputError(say("fleet.tasks_changed", path=path))
        try:
            task = files.decode(line, Task)
            require_task(task)
        except (msgspec.MsgspecError, DragomanError) as error:
            raise InputError(
                say("fleet.lock_unreadable", path=path, reason=say("fleet.bad_line", number=number + 1, reason=error))
            ) from error
        return task

    def attempt_folder(self, task: Task, attempt: int) -> str:
        return os.path.join(self.folder, "tasks", task.folder, str(attempt))

    def epoch_folder(self, task: Task, attempt: int, epoch: int) -> str:
        return os.path.join(self.attempt_folder(task, attempt), f"epoch-{epoch}")

    def free_epoch(self, task: Task, attempt: int, epoch: int) -> int:
        """This number, or the next one whose folder holds nothing yet: what lies there otherwise is of a start that nobody knows of."""
        while files.list_folder(folder := self.epoch_folder(task, attempt, epoch)) or _is_no_folder(folder):
            epoch += 1
            if epoch > MOST_EPOCHS:
                raise InputError(say("fleet.journal_strange", path=os.path.dirname(folder)))
        return epoch

    def make_epoch(self, task: Task, attempt: int, epoch: int) -> str:
        """The folder of an epoch, with the task beside it for the worker. Raises OSError where a link leads elsewhere."""
        folder = self.epoch_folder(task, attempt, epoch)
        files.make_folder(folder)
        path, data = os.path.join(os.path.dirname(folder), TASK_FILE), msgspec.json.encode(task)
        try:
            is_written = files.read_file(path, len(data)) == data
        except OSError:
            is_written = False
        if not is_written:
            with files.write_aside(path) as descriptor:
                write_whole(descriptor, data)
        return folder

    def accept(self, task: Task, attempt: int, epoch: int) -> bool:
        """Make the result of an epoch that of the attempt. Returns False where another one was accepted before: it stays."""
        try:
            files.link_file(
                os.path.join(self.epoch_folder(task, attempt, epoch), RESULT_FILE),
                os.path.join(self.attempt_folder(task, attempt), RESULT_FILE),
            )
        except FileExistsError:
            return False
        return True

    def reopen(self, task: Task, attempt: int) -> None:
        """Let an attempt be without a result again; its epoch keeps the one that was accepted."""
        files.remove_file(os.path.join(self.attempt_folder(task, attempt), RESULT_FILE))

    def is_done(self, task: Task) -> bool:
        """Whether each of its attempts has a result."""
        return all(self.has_result(task, number + 1) for number in range(self.lock.attempts))

    def has_result(self, task: Task, attempt: int) -> bool:
        """Whether a result was accepted."""
        return files.is_there(os.path.join(self.attempt_folder(task, attempt), RESULT_FILE))

    @property
    def is_untouched(self) -> bool:
        """Whether nothing of it was ever started."""
        try:
            return not os.lstat(os.path.join(self.folder, JOURNAL_FILE)).st_size
        except FileNotFoundError:
            return True

    def remove(self) -> None:
        """Remove a fleet that is untouched."""
        for name in (LOCK_FILE, TASKS_FILE, JOURNAL_FILE):
            files.remove_file(os.path.join(self.folder, name))
        with suppress(OSError):  # other fleets, or what is none of ours
            rmdir_beneath(self.folder)
            rmdir_beneath(os.path.dirname(self.folder))

    def result(self, task: Task, attempt: int) -> AttemptResult | None:
        return read_result(self.attempt_folder(task, attempt))


def _is_no_folder(path: str) -> bool:
    """Whether something else has this name."""
    try:
        return not stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def is_fleet_folder(path: str) -> bool:
    """Whether this is the folder of a fleet."""
    return all(os.path.isfile(os.path.join(path, name)) for name in (LOCK_FILE, TASKS_FILE))


def is_fleet(name: str, above: int) -> bool:
    """Whether an entry of an open folder is that of a fleet. Where tasks work on the very folder that they were started in, the results of
    others and what checks will ask are no part of their workspace: copies would also grow with each task."""
    try:
        found = [os.stat(f"{name}/{each}", dir_fd=above, follow_symlinks=False) for each in (JOURNAL_FILE, LOCK_FILE, TASKS_FILE)]
    except OSError:
        return False
    return all(stat.S_ISREG(each.st_mode) for each in found)


def fleet_folder(name: str, directory: str) -> str:
    """By a path without links. Raises InputError where the name cannot be one, and where a link stands in the place of the folder, or of
    the one that holds all fleets: it could lead anywhere."""
    if not _NAME.match(name):
        raise InputError(say("fleet.bad_name", name=name[:80]))
    folder = os.path.join(os.path.realpath(directory), FLEETS, name)
    for path in (os.path.dirname(folder), folder):
        if os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path)):
            raise InputError(say("fleet.is_no_folder", path=path))
    return folder


def make_fleet(
    folder: str,
    tasks: Iterable[Task],
    settings: Lock,
    check: Callable[[], None] = lambda: None,
    remember: Callable[[Lock, str], None] = lambda lock, sha256: None,
) -> Fleet:
    """Make the folder with everything that is started. Raises InputError where there is one, with another input or the same, and what
    reading the tasks or `check` raises; then nothing is left of it. `remember` is told what the fleet is before anybody can find it."""
    files.make_folder(folder)
    aside = os.path.join(folder, temporary_name())  # another one may be made here at the same moment
    try:
        return _make(folder, aside, tasks, settings, check, remember)
    except BaseException:
        with suppress(OSError):
            files.remove_file(aside)
        with suppress(OSError):  # empty, unless there was a fleet before
            rmdir_beneath(folder)
            rmdir_beneath(os.path.dirname(folder))
        raise


def _make(
    folder: str, aside: str, tasks: Iterable[Task], settings: Lock, check: Callable[[], None], remember: Callable[[Lock, str], None]
) -> Fleet:
    index = TaskIndex()
    with open(files.open_to_append(aside), "wb") as file:
        for task in tasks:
            line = msgspec.json.encode(task) + b"\n"
            index.add(line)
            file.write(line)
        file.flush()
        os.fsync(file.fileno())
    if len(index) * settings.attempts > MOST_ATTEMPTS:
        raise InputError(say("fleet.too_many", count=len(index) * settings.attempts, most=f"{MOST_ATTEMPTS:,}"))
    lock = msgspec.structs.replace(settings, tasks=len(index), tasks_sha256=index.sha256)
    _refuse_existing(folder, lock)
    check()
    data = msgspec.json.format(msgspec.json.encode(lock)) + b"\n"
    digest = hashlib.sha256(data).hexdigest()
    with hold_folder(folder):
        _refuse_existing(folder, lock)  # somebody may have been faster
        remember(lock, digest)
        with open_directory(folder) as directory:
            directory.replace(os.path.basename(aside), TASKS_FILE)
        with files.write_aside(os.path.join(folder, LOCK_FILE)) as descriptor:
            write_whole(descriptor, data)
    return Fleet(folder, lock, index, digest)


def _refuse_existing(folder: str, lock: Lock) -> None:
    """Raises InputError where the folder holds a fleet, or what a fleet could take for its own results."""
    name, found = os.path.basename(folder), files.list_folder(folder)
    if any(each.name == LOCK_FILE for each in found):
        before = read_lock(folder)[0]
        kept = {"id": lock.id, "scratch": lock.scratch, "version": lock.version, "hidden": lock.hidden}
        same = msgspec.structs.replace(before, **kept) == lock
        raise InputError(say("fleet.exists_same", name=name) if same else say("fleet.exists_other", path=folder))
    strange = [each.name for each in found if each.name != TASKS_FILE and not _TEMPORARY.match(each.name)]
    if any(
        name != JOURNAL_FILE or os.lstat(os.path.join(folder, name)).st_size for name in strange
    ):  # an empty one: a crash while it was removed
        raise InputError(say("fleet.not_empty", path=folder, name=one_line(sorted(strange)[0], 60)))


def read_lock(folder: str) -> tuple[Lock, str]:
    """What a fleet was started with, and the hash of the file that says so. Raises InputError."""
    path = os.path.join(folder, LOCK_FILE)
    try:
        data = files.read_file(path, MOST_LOCK_BYTES)
        lock = files.decode(data, Lock)
    except FileNotFoundError as error:
        raise InputError(say("fleet.none_there", path=folder)) from error
    except OSError as error:
        raise InputError(say("fleet.lock_unreadable", path=path, reason=error.strerror or error)) from error
    except msgspec.MsgspecError as error:
        raise InputError(say("fleet.lock_unreadable", path=path, reason=one_line(str(error), 200))) from error
    if not _is_plausible(lock):
        raise InputError(say("fleet.lock_strange", path=path))
    return lock, hashlib.sha256(data).hexdigest()


def _is_plausible(lock: Lock) -> bool:
    """Whether a fleet could have been started so: by an id and a folder for copies of its own, with settings that the program takes."""
    texts = (lock.version, lock.model, lock.approval, lock.sandbox, lock.config, lock.scratch, *lock.hidden)
    return (
        _ID.match(lock.id) is not None
        and lock.scratch == os.path.join(os.path.abspath(os.path.dirname(lock.scratch)), scratch_name(lock.id))
        and lock.tasks * lock.attempts <= MOST_ATTEMPTS
        and len(lock.hidden) <= MOST_HIDDEN
        and lock.approval in APPROVALS
        and lock.sandbox in SANDBOXES
        and all(len(text) <= MOST_PATH_CHARS and "\0" not in text and not text.startswith("-") for text in texts)
        and all(os.path.isabs(path) for path in (*lock.hidden, *filter(None, [lock.config])))
    )


def open_fleet(folder: str, *, any_version: bool = True) -> Fleet:
    """Raises InputError where there is none, where its tasks are not those it was started with, or another version wrote it."""
    lock, digest = read_lock(folder)
    if lock.version != __version__ and not any_version:
        raise InputError(say("fleet.other_version", theirs=one_line(lock.version, 60), ours=__version__))
    index, path = TaskIndex(), os.path.join(folder, TASKS_FILE)
    try:
        with files.open_file(path) as file:
            for line in files.lines_of(file):
                index.add(line)
                if len(index) > lock.tasks:
                    break
    except OSError as error:
        raise InputError(say("fleet.lock_unreadable", path=path, reason=error.strerror or error)) from error
    if index.sha256 != lock.tasks_sha256 or len(index) != lock.tasks:
        raise InputError(say("fleet.tasks_changed", path=path))
    return Fleet(folder, lock, index, digest)


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
