"""The catalog: deployments and model profiles as data. Written as TOML, read as JSON, because start-up time is a feature.

`python -m dragoman.providers.catalog` makes catalog.json from catalog.toml; a test keeps them equal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from dragoman.values.errors import ConfigError
from dragoman.values.profile import Deployment, Profile

_HERE = os.path.dirname(__file__)
_DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest|\d{3})\Z")
_VARIABLE = re.compile(r"\{([A-Z_][A-Z0-9_]*)(?::([^}]*))?\}")


class Catalog(msgspec.Struct, frozen=True):
    """Every deployment known, by name."""

    deployments: dict[str, Deployment]

    def __getitem__(self, name: str) -> Deployment:
        try:
            return self.deployments[name]
        except KeyError:
            raise ConfigError(f"no deployment is called {name!r}{_nearest(name, self.deployments)}") from None

    def find(self, model: str) -> tuple[Deployment, str]:
        """`deployment/model`, a deployment's name for its default model, or a model name only one deployment has."""
        name, slash, rest = model.partition("/")
        if slash and name in self.deployments:
            return self.deployments[name], rest or self._default(name)
        if not slash and model in self.deployments:
            return self.deployments[model], self._default(model)
        homes = [deployment for deployment in self.deployments.values() if model in deployment.models]
        if len(homes) == 1:
            return homes[0], model
        if homes:
            choices = ", ".join(f"{home.name}/{model}" for home in homes)
            raise ConfigError(f"{model!r} is served by several deployments: say which, {choices}")
        names = {f"{home.name}/{known}" for home in self.deployments.values() for known in home.models}
        hint = _nearest(model, names | set(self.deployments))
        raise ConfigError(f"no model is called {model!r}: models are named deployment/model{hint}")

    def with_rows(self, rows: Mapping[str, Any], source: str = "config") -> Catalog:
        """The catalog with a user's rows over it: new deployments, new models, or single fields changed."""
        merged = dict(self.deployments)
        for name, row in rows.items():
            if not isinstance(row, Mapping):
                raise ConfigError(f"{source}: deployments.{name} must be a table")
            base = msgspec.to_builtins(merged[name]) if name in merged else {}
            merged[name] = _deployment(name, _over(base, row), source)
        return Catalog(merged)

    def with_file(self, path: str | os.PathLike[str]) -> Catalog:
        """The catalog with the `[deployments.NAME]` tables of a TOML file over it; whatever else the file holds is not looked at."""
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} cannot be read: {error}") from error
        rows = _parsed(text, str(path)).get("deployments", {})
        if not isinstance(rows, Mapping):
            raise ConfigError(f"{path}: deployments must be a table of tables, as [deployments.mine]")
        return self.with_rows(rows, str(path))

    def _default(self, name: str) -> str:
        if model := self.deployments[name].default_model:
            return model
        raise ConfigError(f"{name} has no default model: name one, as {name}/MODEL")


def profile_for(deployment: Deployment, model: str) -> Profile:
    """A model's profile: its own row, the row of the model it is a dated name of, or what the deployment takes strangers for."""
    found = deployment.models.get(model) or deployment.models.get(_DATED.sub("", model))
    return found or deployment.profile


@cache
def builtin_catalog() -> Catalog:
    with open(os.path.join(_HERE, "catalog.json"), "rb") as file:
        return Catalog(msgspec.json.decode(file.read(), type=dict[str, Deployment]))


def filled(template: str, env: Mapping[str, str], deployment: str) -> str:
    """A base URL with its `{VARIABLE}` places filled from the environment."""

    def value(match: re.Match[str]) -> str:
        name, default = match.group(1), match.group(2)
        found = env.get(name, "").strip() or default
        if not found:
            raise ConfigError(f"{deployment} needs {name}: set it in the environment")
        return found.rstrip("/")

    return _VARIABLE.sub(value, template)


def from_toml(text: str, source: str = "catalog.toml") -> Catalog:
    """A catalog written as TOML: one table per deployment."""
    rows = _parsed(text, source)
    rows.pop("taken", None)
    return Catalog({}).with_rows(rows, source)


def _parsed(text: str, source: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source}: {error}") from error


def _deployment(name: str, row: dict[str, Any], source: str) -> Deployment:
    profile = {**(row.get("profile") or {}), "known": False}
    row = {**row, "name": name, "profile": profile}
    try:
        return msgspec.convert(row, Deployment)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{source}: deployments.{name}: {error}{_nearest_field(str(error))}") from error


def _over(base: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in row.items():
        both_tables = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _over(merged[key], value) if both_tables else value
    return merged


def _nearest(name: str, names: Any) -> str:
    from dragoman.base.text import closest

    close = closest(name, names, 3)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _nearest_field(message: str) -> str:
    unknown = re.search(r"unknown field `([^`]+)`", message)
    fields = {*Deployment.__struct_fields__, *Profile.__struct_fields__, "input", "output", "cache_read", "cache_write", "taken"}
    return _nearest(unknown.group(1), fields) if unknown else ""


if __name__ == "__main__":
    from pathlib import Path

    written = Path(_HERE, "catalog.toml").read_text(encoding="utf-8")
    encoded = msgspec.json.format(msgspec.json.encode(from_toml(written).deployments), indent=1)
    Path(_HERE, "catalog.json").write_bytes(encoded + b"\n")
