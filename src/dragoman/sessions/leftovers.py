"""Temporary files that a killed process left where it wrote: `.dragoman-*.tmp` beside the files it was replacing.

Before a session makes one, it notes the folder in a file of its own, `writing/<session id>` in its store, with the mark that all
temporary files of its process have in their names. The note goes when the session is closed. Whoever opens a session of the same
workspace next looks only at notes, and only sweeps folders of sessions that nobody has locked: their process is dead.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from dragoman.base import jsontext
from dragoman.base.atomic import process_mark, temporary_prefix
from dragoman.base.beneath import open_directory
from dragoman.base.ids import is_session_id
from dragoman.base.lock import Locked, lock
from dragoman.base.private import make_directory, open_file, write_whole
from dragoman.sessions.projects import WRITING, log_name
from dragoman.values.errors import InputError

_MARK = re.compile(r"[0-9a-f]{8}")


class WritingNote:
    """The note of one session. It never raises: without it, a kill may leave a temporary file, and that is all."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._noted = set[str]()

    def add(self, folders: Iterable[str]) -> None:
        """Temporary files may be made in these folders from now on."""
        new = set(folders) - self._noted
        if not new:
            return
        lines = b"".join(jsontext.encode([process_mark(), folder]) + b"\n" for folder in sorted(new))
        try:
            make_directory(os.path.dirname(self.path))
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except OSError:
            return
        try:
            write_whole(descriptor, lines)
            self._noted |= new
        except OSError:
            pass
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Nothing of this session writes any more."""
        if self._noted:
            self._noted.clear()
            _remove_note(self.path)


def sweep_leftovers(directory: str, locked: Callable[[str], str] | None = None) -> None:
    """Delete the temporary files that dead processes left, by the notes in a project directory. Never one of a living process.

    `locked` gives the file that an open session has locked, by its id: where none is given, its log.
    """
    for name in _names_in(os.path.join(directory, WRITING)):
        if not is_session_id(name):
            continue
        try:
            descriptor = open_file(locked(name) if locked is not None else os.path.join(directory, log_name(name)), refuse=InputError)
        except (OSError, InputError):
            continue
        try:
            if lock(descriptor, ()):  # False: this file system has no locks, so nobody knows who is alive
                _sweep(os.path.join(directory, WRITING, name))
        except (Locked, OSError):
            continue
        finally:
            os.close(descriptor)


def _sweep(note: str) -> None:
    for mark, folder in _notes_in(note):
        try:
            _sweep_folder(folder, temporary_prefix(mark))
        except (OSError, ValueError):
            continue  # it is gone, or a link is on the way to it now
    _remove_note(note)


def _sweep_folder(folder: str, prefix: str) -> None:
    with open_directory(folder) as directory:
        with directory.scan() as entries:
            found = [entry.name for entry in entries if entry.name.startswith(prefix) and entry.name.endswith(".tmp")]
        for name in found:
            with suppress(OSError):
                directory.unlink(name)


def _notes_in(path: str) -> Iterator[tuple[str, str]]:
    """Each mark and folder. Lines that are not ours are skipped."""
    with os.fdopen(open_file(path, refuse=OSError), "rb") as file:
        lines = file.read().splitlines()
    for line in lines:
        try:
            match jsontext.decode(line):
                case [str(mark), str(folder)] if _MARK.fullmatch(mark) and os.path.isabs(folder):
                    yield mark, folder
                case _:
                    pass
        except jsontext.NotJSON:
            continue


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (OSError, ValueError):
        return []


def _remove_note(path: str) -> None:
    _unlink(path)
    try:
        os.rmdir(os.path.dirname(path))
    except OSError:
        pass  # other sessions have notes there


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
