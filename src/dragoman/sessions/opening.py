"""Opening a session's log: create it, resume it, or read it. What a crash left at its end is set aside, never deleted."""

from __future__ import annotations

import os

import msgspec

from dragoman.base.private import create_file, make_directory, open_file, sync_directory, sync_file, write_whole
from dragoman.sessions.journal import OnFault, SessionJournal
from dragoman.sessions.lock import lock
from dragoman.sessions.log import LoadedLog, loose_mode, read_file, read_log
from dragoman.sessions.projects import session_id_of
from dragoman.values.errors import InputError, NoSession
from dragoman.values.record import Started
from dragoman.words import say

Path = str | os.PathLike[str]


def create(path: Path, started: Started, on_fault: OnFault | None = None) -> SessionJournal:
    """Create a log with its head, and the directories above it. It is durable after the first `sync`.

    Raises InputError if the file cannot be created. Later faults are reported to `on_fault` and not raised, a full disk included.
    """
    path = os.path.abspath(path)
    try:
        directories = make_directory(os.path.dirname(path))
        descriptor = create_file(path)
    except FileExistsError as error:
        raise InputError(say("sessions.exists", path=error.filename or path)) from error
    except OSError as error:
        raise InputError(say("sessions.not_saved", path=path, reason=error.strerror or error)) from error
    try:
        lock(descriptor, session_id_of(path))
    except BaseException:
        os.close(descriptor)
        raise
    journal = SessionJournal(descriptor, 0, on_fault, path=path, directories=directories)
    journal.append(started)
    return journal


def open_for_writing(path: Path, on_fault: OnFault | None = None) -> tuple[SessionJournal, LoadedLog]:
    """Resume a session. No other process can until the journal is closed.

    A torn tail is moved to a file beside the log, `<session id>.torn-<n>`, before anything is appended; if that fails for now (a full
    disk), it is a fault like any other and `on_fault` is called. Raises InUse, InputError if there is no such session or no whole entry
    in it, and OSError if it cannot be read.
    """
    path = os.path.abspath(path)
    descriptor = _open(path, writing=True)
    try:
        lock(descriptor, session_id_of(path))
        _require_in_place(path, descriptor)
        access = _keep_others_out(path, descriptor)
        with os.fdopen(os.dup(descriptor), "rb", buffering=1 << 18) as file:
            loaded = msgspec.structs.replace(read_file(file), access=access)
        if not loaded.entries:
            raise InputError(say("sessions.nothing_to_resume", path=path))
        if not loaded.torn:
            return SessionJournal(descriptor, loaded.size, on_fault, path=path), loaded
        return _set_aside(descriptor, path, loaded, on_fault)
    except BaseException:
        os.close(descriptor)
        raise


def open_read_only(path: Path) -> LoadedLog:
    """Read a session, even while another process writes it. A torn tail may be a line that is being written at this moment."""
    return read_log(path)


def _open(path: str, *, writing: bool) -> int:
    try:
        return open_file(path, writing=writing, refuse=InputError)
    except FileNotFoundError as error:
        raise NoSession(say("sessions.not_found", session=path)) from error
    except OSError as error:
        raise InputError(say("sessions.not_writable", path=path, reason=error.strerror)) from error


def _require_in_place(path: str, descriptor: int) -> None:
    """Raises if the log was deleted or replaced between our opening and our locking it."""
    ours = os.fstat(descriptor)
    try:
        there = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        there = None
    if there is None or not os.path.samestat(ours, there):
        raise InputError(say("sessions.replaced", path=path))


def _keep_others_out(path: str, descriptor: int) -> str:
    """Make the log readable and writable by its owner alone. Returns what to tell the user. Raises InputError if another user owns it."""
    status = os.fstat(descriptor)
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        raise InputError(say("sessions.belongs_to_other", path=path, owner=status.st_uid))
    mode = loose_mode(status)
    if not mode:
        return ""
    try:
        os.fchmod(descriptor, 0o600)
    except OSError:
        pass
    if loose_mode(os.fstat(descriptor)):  # a file system without modes
        return say("sessions.others_can_write", mode=f"{mode:04o}", path=path)
    return say("sessions.others_could_write", mode=f"{mode:04o}")


def _set_aside(descriptor: int, path: str, loaded: LoadedLog, on_fault: OnFault | None) -> tuple[SessionJournal, LoadedLog]:
    """The journal of a log with a torn tail, which is moved to a side file first."""
    kept_in = ""

    def move_tail() -> None:
        nonlocal kept_in
        if not kept_in:
            kept_in = _save_tail(loaded.torn, path.removesuffix(".jsonl"))
        os.ftruncate(descriptor, loaded.size)
        sync_file(descriptor)

    journal = SessionJournal(descriptor, loaded.size, on_fault, path=path, prepare=move_tail)
    return journal, msgspec.structs.replace(loaded, torn_file=kept_in)


def _save_tail(tail: bytes, stem: str) -> str:
    """Write the torn tail to a new side file, and return its name once it is on disk."""
    number = 1
    while True:
        name = f"{stem}.torn-{number}"
        try:
            descriptor = create_file(name)
            break
        except FileExistsError:
            number += 1
    try:
        write_whole(descriptor, tail)
        sync_file(descriptor)
        sync_directory(os.path.dirname(name))
    except OSError:
        os.unlink(name)
        raise
    finally:
        os.close(descriptor)
    return name
