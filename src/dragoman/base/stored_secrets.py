"""Secrets of the user (keys, tokens), by name: in the system's keyring where one is usable, else in a file for the user alone.

The file also says which secrets are in the keyring. So what is stored can be listed, and a name without a stored secret looked up,
without loading the keyring library (an extra, and slow) or unlocking anything.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from dragoman.base.atomic import replace_file
from dragoman.base.clock import now_ms
from dragoman.base.found_files import open_found, read_opened
from dragoman.base.lock import hold
from dragoman.base.private import make_directory
from dragoman.words import say

StoredIn = Literal["keyring", "file"]
NAME = "dragoman"
"""What our entries in a keyring are filed under; the user name is the secret's."""
MAX_FILE_BYTES = 1_000_000
_PLAIN_BACKENDS = ("keyring.backends.null", "keyring.backends.fail", "keyrings.alt")
"""They keep nothing, or keep it no better than we do."""


class _Row(msgspec.Struct, frozen=True, omit_defaults=True):
    stored_in: StoredIn
    added_ms: int
    key: str = ""

    def __repr__(self) -> str:
        return f"_Row({self.stored_in!r}, …)"


class _File(msgspec.Struct, frozen=True):
    keys: dict[str, _Row] = {}


class SecretStored(msgspec.Struct, frozen=True):
    """Where a secret was stored, and why not in the keyring."""

    stored_in: StoredIn
    reason: str = ""


class NoKeyring(Exception):
    """There is no usable keyring. The message says why."""


class SecretLost(Exception):
    """The file says that the secret is in the keyring, and the keyring does not have it."""


class FileUnreadable(Exception):
    """The file is there and cannot be opened. The message says why."""


class FileDamaged(Exception):
    """The file is not as we write it."""


class StoredSecrets:
    """The secrets of one file. `tell` is called with what had to be repaired."""

    def __init__(self, file: str, tell: Callable[[str], None]) -> None:
        self.file = file
        self._tell = tell

    @property
    def names(self) -> dict[str, StoredIn]:
        """Every stored secret, and where it is. No keyring is loaded. Raises FileUnreadable or FileDamaged, as all that follow."""
        return {name: row.stored_in for name, row in self._read().items()}

    def find(self, name: str) -> str:
        """The secret, or an empty string. Raises NoKeyring or SecretLost if the keyring does not give it."""
        row = self._read().get(name)
        if row is None or row.stored_in == "file":
            return row.key if row is not None else ""
        key = _call(lambda: open_keyring().get_password(NAME, name))
        if not key:
            raise SecretLost(name)
        return str(key)

    def add(self, name: str, secret: str) -> SecretStored:
        """Store a secret, instead of an earlier one. Raises OSError, and then the earlier one is as it was."""
        make_directory(os.path.dirname(self.file))
        with hold(self.file):
            rows = self._read()
            try:
                _put_into_keyring(name, secret)
            except NoKeyring as error:
                stored = SecretStored("file", str(error))
            else:
                stored = SecretStored("keyring")
            self._write(rows | {name: _Row(stored.stored_in, now_ms(), secret if stored.stored_in == "file" else "")})
        return stored

    def remove(self, name: str) -> StoredIn | None:
        """Delete a secret; None if there was none. Raises NoKeyring if the keyring cannot be reached: then nothing has changed."""
        if not os.path.exists(self.file):
            return None
        with hold(self.file):
            rows = self._read()
            row = rows.pop(name, None)
            if row is None:
                return None
            if row.stored_in == "keyring":
                _delete_from_keyring(name)
            self._write(rows)
        return row.stored_in

    def _read(self) -> dict[str, _Row]:
        try:
            descriptor = open_found(self.file)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise FileUnreadable(error.strerror or str(error)) from error
        try:
            self._tighten(descriptor)
            data = read_opened(descriptor, MAX_FILE_BYTES + 1)
        finally:
            os.close(descriptor)
        try:
            if len(data) > MAX_FILE_BYTES:
                raise msgspec.DecodeError("too long")
            return msgspec.json.decode(data, type=_File).keys
        except msgspec.DecodeError:
            # Not `from`: the decoder's message may show what it read.
            raise FileDamaged(self.file) from None

    def _write(self, rows: Mapping[str, _Row]) -> None:
        replace_file(self.file, msgspec.json.format(msgspec.json.encode(_File(dict(rows)))) + b"\n")

    def _tighten(self, descriptor: int) -> None:
        """A file that others may read or write is closed to them, and the user is told."""
        mode = os.fstat(descriptor).st_mode
        if os.name != "posix" or not mode & 0o077:
            return
        try:
            os.fchmod(descriptor, 0o600)
        except OSError as error:
            self._tell(say("providers.keys_open", path=self.file, mode=f"{stat.S_IMODE(mode):o}", reason=error.strerror or error))
        else:
            self._tell(say("providers.keys_tightened", path=self.file, mode=f"{stat.S_IMODE(mode):o}"))


# --- the system's keyring -------------------------------------------------------------------------------------------------------


def open_keyring() -> Any:
    """A backend that keeps secrets better than a file of ours would. Raises NoKeyring."""
    try:
        import keyring
    except ImportError as error:
        raise NoKeyring(say("providers.keyring_missing")) from error
    found: Any = _call(keyring.get_keyring)
    chained: Any = getattr(found, "backends", None)
    for backend in chained if chained is not None else (found,):
        if backend.priority >= 1 and not type(backend).__module__.startswith(_PLAIN_BACKENDS):
            return backend
    raise NoKeyring(say("providers.keyring_none"))


def _put_into_keyring(name: str, secret: str) -> None:
    """Raises NoKeyring, also if the keyring took it and does not give it back."""
    backend = open_keyring()
    _call(lambda: backend.set_password(NAME, name, secret))
    if _call(lambda: backend.get_password(NAME, name)) != secret:
        raise NoKeyring(say("providers.keyring_forgets"))


def _delete_from_keyring(name: str) -> None:
    backend = open_keyring()
    if _call(lambda: backend.get_password(NAME, name)) is not None:
        _call(lambda: backend.delete_password(NAME, name))


def _call(use: Callable[[], Any]) -> Any:
    """Backends raise what the system beneath them raises. The message of such an error is not shown: it may repeat what it was given."""
    try:
        return use()
    except NoKeyring:
        raise
    except Exception as error:
        raise NoKeyring(say("providers.keyring_failed", kind=type(error).__name__)) from None
