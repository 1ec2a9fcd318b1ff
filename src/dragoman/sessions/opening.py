"""Opening a session's log: new, to go on with, or to look at. What a crash left at its end is set aside, never thrown away."""

from __future__ import annotations

import os

from dragoman.base.private import create_file, make_directory, open_file, sync_directory, sync_file, write_whole
from dragoman.sessions.journal import OnFault, SessionJournal
from dragoman.sessions.lock import lock
from dragoman.sessions.log import Loaded, read_file, read_log
from dragoman.sessions.projects import session_id_of
from dragoman.values.errors import InputError
from dragoman.values.record import Started

Path = str | os.PathLike[str]


def create(path: Path, started: Started, on_fault: OnFault | None = None) -> SessionJournal:
    """A new log with its head, and the directories above it. The first `sync` makes it last.

    Raises InputError where the file cannot be made. From then on faults are told, not raised, a full disk included.
    """
    path = os.path.abspath(path)
    try:
        directories = make_directory(os.path.dirname(path))
        descriptor = create_file(path)
    except FileExistsError as error:
        raise InputError(f"{error.filename or path} exists already, and a session is never written over: start another") from error
    except OSError as error:
        raise InputError(f"the session cannot be saved in {path}: {error.strerror or error}") from error
    try:
        lock(descriptor, session_id_of(path))
    except BaseException:
        os.close(descriptor)
        raise
    journal = SessionJournal(descriptor, 0, on_fault, path=path, directories=directories)
    journal.append(started)
    return journal


def open_for_writing(path: Path, on_fault: OnFault | None = None) -> tuple[SessionJournal, Loaded]:
    """Go on with a session. Nobody else can until the journal is closed.

    A torn tail is moved to a file beside the log, `<session id>.torn-<n>`, before anything is appended; where that cannot be done yet
    (a full disk), it is a fault like any other, and `on_fault` is told. Raises InUse, InputError where there is no such session or not
    one whole record in it, and OSError where it cannot be read.
    """
    path = os.path.abspath(path)
    descriptor = _open(path, writing=True)
    try:
        lock(descriptor, session_id_of(path))
        _require_in_place(path, descriptor)
        with os.fdopen(os.dup(descriptor), "rb", buffering=1 << 18) as file:
            loaded = read_file(file)
        if not loaded.entries:
            raise InputError(f"{path} holds no whole record of a session: there is nothing to go on with, and it was left as it is")
        if not loaded.torn:
            return SessionJournal(descriptor, loaded.size, on_fault, path=path), loaded
        return _set_aside(descriptor, path, loaded, on_fault)
    except BaseException:
        os.close(descriptor)
        raise


def open_read_only(path: Path) -> Loaded:
    """Look at a session, whoever writes it. A torn tail may be a line that is being written at this moment."""
    return read_log(path)


def _open(path: str, *, writing: bool) -> int:
    try:
        return open_file(path, writing=writing, refuse=InputError)
    except FileNotFoundError as error:
        raise InputError(f"there is no session {path}: `dragoman sessions list` shows those there are") from error
    except OSError as error:
        message = f"{path} cannot be written ({error.strerror}): `dragoman sessions show` reads it, `dragoman sessions fork` copies it"
        raise InputError(message) from error


def _require_in_place(path: str, descriptor: int) -> None:
    """It may have been deleted, or another put in its place, between our opening and our locking it."""
    ours = os.fstat(descriptor)
    try:
        there = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        there = None
    if there is None or not os.path.samestat(ours, there):
        raise InputError(f"{path} was deleted or replaced while it was being opened: `dragoman sessions list` shows what there is")


def _set_aside(descriptor: int, path: str, loaded: Loaded, on_fault: OnFault | None) -> tuple[SessionJournal, Loaded]:
    """The journal of a log with a torn tail, which goes to a side file first."""
    kept_in = ""

    def move_the_tail() -> None:
        nonlocal kept_in
        if not kept_in:
            kept_in = _keep(loaded.torn, path.removesuffix(".jsonl"))
        os.ftruncate(descriptor, loaded.size)
        sync_file(descriptor)

    journal = SessionJournal(descriptor, loaded.size, on_fault, path=path, prepare=move_the_tail)
    return journal, Loaded(loaded.entries, loaded.damage, loaded.torn, loaded.size, kept_in)


def _keep(tail: bytes, stem: str) -> str:
    """Write what was cut off to a side file of its own, and return its name once it is on disk."""
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
