"""The models that a person may choose from without being asked for a key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dragoman.app.keys import key_source
from dragoman.app.setup import Setup, catalog_of
from dragoman.values.errors import ConfigError


class ChoosableModel(NamedTuple):
    """A model by its deployment, and what its service is called."""

    name: str
    """`deployment/model`."""
    model: str
    service: str


def models_with_key(setup: Setup) -> Iterator[ChoosableModel]:
    """The models of every service that has a key; no server is asked."""
    for name, row in catalog_of(setup).deployments.items():
        if row.in_process or row.local:
            continue
        try:
            has_key = key_source(row, setup) is not None
        except ConfigError:
            continue
        if has_key:
            yield from (ChoosableModel(f"{name}/{model}", model, row.title or name) for model in row.models)
