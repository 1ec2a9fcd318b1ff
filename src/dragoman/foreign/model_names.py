"""Models as the files of other programs name them: without a service, and with the day they came out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dragoman.values.errors import ConfigError

if TYPE_CHECKING:
    from dragoman.providers.catalog import Catalog, Deployment

_DATED = re.compile(r"[-@]20\d{6}\Z")


def find_named(catalog: Catalog, name: str, service: str) -> tuple[Deployment, str]:
    """By its own name; else as one of the service in use; else without its date. Raises ConfigError, about the name as it is written."""
    row = catalog.deployments.get(service)
    plain = name.rpartition("/")[2]
    for each in (plain, _DATED.sub("", plain)):
        if row is not None and each in row.models and name.partition("/")[0] in (plain, service):
            return row, each
    try:
        return catalog.find(name)
    except ConfigError:
        undated = _DATED.sub("", name)
        if undated == name:
            raise
        try:
            return catalog.find(undated)
        except ConfigError:
            pass
        raise
