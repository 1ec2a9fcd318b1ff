"""Where the key of a service comes from: a variable, or what the user has stored. The key itself is never here."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.app.setup import Setup, catalog_of
from dragoman.app.surface import surface
from dragoman.providers.catalog import key_variable
from dragoman.providers.stored_keys import StoredIn, StoredKeys
from dragoman.values.profile import Deployment
from dragoman.words import say


class KeySource(msgspec.Struct, frozen=True):
    """Where the key of a service comes from."""

    kind: Literal["variable", "keyring", "file"]
    variable: str = ""

    @property
    def words(self) -> str:
        return say(f"key_from_{self.kind}", name=self.variable)


class ServiceKey(msgspec.Struct, frozen=True):
    """A service that has a key, set or stored."""

    service: str
    title: str
    source: KeySource | None
    """None: a key is stored for a service that the configuration no longer has."""
    stored_in: StoredIn | None
    """Where a key is stored, also if the variable is used instead."""


def stored_keys(setup: Setup) -> StoredKeys:
    """The user's stored keys. If their file had to be repaired, a notice says so."""

    def tell(text: str) -> None:
        surface().messages.line(say("notice", text=text))

    return StoredKeys(setup.places.keys_file, tell)


def find_stored_key(setup: Setup, service: str) -> str:
    return stored_keys(setup).find(service)


def key_source(deployment: Deployment, setup: Setup) -> KeySource | None:
    """Where a service's key comes from; None if there is none. Raises ConfigError if the file of stored keys is damaged."""
    if variable := key_variable(deployment, setup.env):
        return KeySource("variable", variable)
    stored = stored_keys(setup).services.get(deployment.name)
    return KeySource(stored) if stored else None


def services_with_keys(setup: Setup) -> list[ServiceKey]:
    catalog, stored = catalog_of(setup), stored_keys(setup).services
    found: list[ServiceKey] = []
    for deployment in catalog.deployments.values():
        kept = stored.get(deployment.name)
        variable = key_variable(deployment, setup.env)
        if variable or kept:
            source = KeySource("variable", variable) if variable else KeySource(kept) if kept else None
            found.append(ServiceKey(deployment.name, deployment.title, source, kept))
    return found + [ServiceKey(name, "", None, kept) for name, kept in stored.items() if name not in catalog.deployments]
