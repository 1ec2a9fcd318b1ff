"""Keys that the user has stored (`dragoman auth add`): in the system's keyring where one is usable, else in a file for the user alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from dragoman.base.places import find_places
from dragoman.base.stored_secrets import (
    FileDamaged,
    FileUnreadable,
    NoKeyring,
    SecretLost,
    SecretStored,
    StoredIn,
    StoredSecrets,
)
from dragoman.values.errors import ConfigError, Unauthorized
from dragoman.words import say

log = logging.getLogger("dragoman.keys")

_HOMES = ("DRAGOMAN_HOME", "HOME", "USERPROFILE", "LOCALAPPDATA", "XDG_DATA_HOME")


class StoredKeys:
    """The stored keys of one file. `tell` is told what was put right."""

    def __init__(self, file: str, tell: Callable[[str], None] = log.warning) -> None:
        self.file = file
        self._secrets = StoredSecrets(file, tell)

    @property
    def services(self) -> dict[str, StoredIn]:
        """Every service with a stored key, and where it is. No keyring is loaded. Raises ConfigError."""
        with self._in_our_words():
            return self._secrets.names

    def find(self, service: str) -> str:
        """The key, or an empty string. Raises ConfigError if the file is damaged, Unauthorized if the keyring does not give it."""
        with self._in_our_words():
            try:
                return self._secrets.find(service)
            except NoKeyring as error:
                raise Unauthorized(say("providers.keyring_closed", service=service, reason=str(error))) from error
            except SecretLost as error:
                raise Unauthorized(say("providers.keyring_lost", service=service)) from error

    def add(self, service: str, key: str) -> SecretStored:
        """Store a key, instead of an earlier one. Raises ConfigError or OSError, and then the earlier one is as it was."""
        with self._in_our_words():
            return self._secrets.add(service, key)

    def remove(self, service: str) -> StoredIn | None:
        """Delete a key; None if there was none. Raises Unauthorized if the keyring cannot be reached: then nothing has changed."""
        with self._in_our_words():
            try:
                return self._secrets.remove(service)
            except NoKeyring as error:
                raise Unauthorized(say("providers.keyring_keeps", service=service, reason=str(error))) from error

    @contextmanager
    def _in_our_words(self) -> Iterator[None]:
        try:
            yield
        except FileUnreadable as error:
            raise ConfigError(say("providers.keys_unreadable", path=self.file, reason=str(error))) from error
        except FileDamaged:
            raise ConfigError(say("providers.keys_damaged", path=self.file)) from None


def keys_of_environment(env: Mapping[str, str]) -> StoredKeys | None:
    """The user's stored keys, where the environment says who that is. An environment without a home has none."""
    return StoredKeys(find_places(env).keys_file) if any(env.get(name) for name in _HOMES) else None
