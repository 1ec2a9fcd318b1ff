"""Which fields we ever send to a service, found by sending it every conversation of the wire cases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import msgspec

from dragoman.providers.catalog import builtin_catalog
from dragoman.providers.connect import connect
from dragoman.values.errors import DragomanError
from wire.cases import BLOBS, CASES
from wire.destinations import DESTINATIONS

_ENV = {"GOOGLE_CLOUD_PROJECT": "project", "AZURE_OPENAI_ENDPOINT": "http://127.0.0.1:9"}
_PAYLOAD = "Invalid JSON payload received. "
_UNKNOWN_FIELD = (
    re.compile(r"([\w.]+): Extra inputs are not permitted"),
    re.compile(r"Unrecognized request arguments? supplied: ([\w, ]+)"),
    re.compile(r"Unknown parameter: '([^']+)'"),
    re.compile(r'Unknown name "(\w+)"'),
)


def refused_fields(message: str) -> list[str]:
    """The fields that a validator says it does not know; empty if it says something else."""
    found = next((match[1] for pattern in _UNKNOWN_FIELD if (match := pattern.match(message.removeprefix(_PAYLOAD)))), "")
    return [field.rpartition(".")[2] for field in found.split(", ") if field]


@cache
def fields_sent(deployment: str) -> frozenset[str]:
    """Every key, at any depth, of the bodies that go to a deployment."""
    row = builtin_catalog()[deployment]
    models = {row.default_model} | {to.row[1] for to in DESTINATIONS if to.deployment.name == deployment}
    found: set[str] = set()
    for model in filter(None, models):
        connection = connect(f"{deployment}/{model}", key="k", env=_ENV, base_url="http://127.0.0.1:1", blobs=BLOBS)
        for request in CASES.values():
            try:
                body = connection.prepare(msgspec.structs.replace(request, model=model)).body
            except DragomanError:  # something this model cannot do
                continue
            found.update(_keys(msgspec.json.decode(body)))
    return frozenset(found)


def without_fields(value: Any, fields: Iterable[str]) -> Any:
    """A body without these keys, at any depth."""
    if isinstance(value, dict):
        return {key: without_fields(item, fields) for key, item in value.items() if key not in fields}
    return [without_fields(item, fields) for item in value] if isinstance(value, list) else value


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item)
