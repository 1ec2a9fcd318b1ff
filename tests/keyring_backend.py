"""A backend for the keyring library, kept in a file: what a desktop's keyring is to a user, for tests."""

from __future__ import annotations

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError


class FileKeyring(KeyringBackend):
    priority = 5

    @property
    def _file(self) -> Path:
        return Path(os.environ["TEST_KEYRING"])

    def _read(self) -> dict[str, str]:
        return json.loads(self._file.read_text()) if self._file.exists() else {}

    def get_password(self, service: str, username: str) -> str | None:
        return self._read().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._file.write_text(json.dumps(self._read() | {f"{service}/{username}": password}))

    def delete_password(self, service: str, username: str) -> None:
        kept = self._read()
        if kept.pop(f"{service}/{username}", None) is None:
            raise PasswordDeleteError(username)
        self._file.write_text(json.dumps(kept))


class LockedKeyring(FileKeyring):
    """Takes nothing and gives nothing, and repeats in its error what it was given."""

    def get_password(self, service: str, username: str) -> str | None:
        raise RuntimeError("locked")

    def set_password(self, service: str, username: str, password: str) -> None:
        raise RuntimeError(f"cannot keep {password}")


class ForgetfulKeyring(FileKeyring):
    def set_password(self, service: str, username: str, password: str) -> None:
        pass


class PoorKeyring(FileKeyring):
    """As a plain-text backend rates itself."""

    priority = 0.5
