"""The catalog: deployments and model profiles as data. Written as TOML, read as JSON, which loads faster at start-up.

`python -m dragoman.providers.catalog` makes catalog.json from catalog.toml; a test keeps them equal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

import msgspec

from dragoman.values.errors import ConfigError
from dragoman.values.profile import SMALL_FIELDS, Deployment, Profile, ProtocolName
from dragoman.words import say

PROTOCOLS = "dragoman.protocols"
"""The entry points of protocols that other packages bring."""
MAX_FILE_BYTES = 10_000_000
_HERE = os.path.dirname(__file__)
_DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest|\d{3})\Z")
_VARIABLE = re.compile(r"\{([A-Z_][A-Z0-9_]*)(?::([^}]*))?\}")


class Catalog(msgspec.Struct, frozen=True):
    """All known deployments, by name."""

    deployments: dict[str, Deployment]

    def __getitem__(self, name: str) -> Deployment:
        try:
            return self.deployments[name]
        except KeyError:
            raise ConfigError(say("providers.unknown_deployment", name=name, hint=_suggestion(name, self.deployments))) from None

    def find(self, model: str) -> tuple[Deployment, str]:
        """Look up `deployment/model`, a deployment (for its default model), or a model name that only one deployment has."""
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
            raise ConfigError(say("providers.ambiguous_model", model=model, choices=choices))
        names = {f"{home.name}/{known}" for home in self.deployments.values() for known in home.models}
        hint = _suggestion(model, names | set(self.deployments))
        raise ConfigError(say("providers.unknown_model", model=model, hint=hint))

    def with_rows(self, rows: Mapping[str, Any], source: str = "config") -> Catalog:
        """The catalog with a user's rows merged in: new deployments, new models, or changes to single fields."""
        merged = dict(self.deployments)
        for name, row in rows.items():
            if not isinstance(row, Mapping):
                raise ConfigError(say("providers.deployment_not_a_table", where=_where(source), name=name))
            base = msgspec.to_builtins(merged[name]) if name in merged else {}
            merged[name] = _read_deployment(name, _merge_tables(base, row), source)
        return Catalog(merged)

    def with_file(self, path: str | os.PathLike[str]) -> Catalog:
        """The catalog with the `[deployments.NAME]` tables of a TOML file merged in; the rest of the file is ignored."""
        from dragoman.base.found_files import read_found_text

        try:
            text = read_found_text(os.fspath(path), MAX_FILE_BYTES)
        except OSError as error:
            raise ConfigError(say("providers.file_unreadable", path=path, reason=error.strerror or error)) from error
        rows = _parse_toml(text, str(path)).get("deployments", {})
        if not isinstance(rows, Mapping):
            raise ConfigError(say("providers.deployments_not_tables", path=path))
        return self.with_rows(rows, str(path))

    def _default(self, name: str) -> str:
        if model := self.deployments[name].default_model:
            return model
        raise ConfigError(say("providers.no_default_model", deployment=name))


def profile_for(deployment: Deployment, model: str) -> Profile:
    """A model's profile: its own row, the row without the date suffix of its name, its family's, or the deployment's for unknown models."""
    found = deployment.models.get(model) or deployment.models.get(_DATED.sub("", model))
    if found is None and deployment.families:
        family = max((name for name in deployment.families if model.startswith(name)), key=len, default="")
        found = deployment.families.get(family)
    return found or deployment.profile


def key_variable(deployment: Deployment, env: Mapping[str, str]) -> str:
    """The name of the variable that holds a deployment's key, or an empty string. The key itself is never returned."""
    return next((name for name in (*deployment.key_env, *deployment.token_env) if env.get(name, "").strip()), "")


def secret_variables(catalog: Catalog) -> frozenset[str]:
    """The variables that hold what is sent to some deployment: keys, tokens, and headers of the user's."""
    return frozenset(
        name
        for deployment in catalog.deployments.values()
        for name in (*deployment.key_env, *deployment.token_env, deployment.headers_env, *deployment.env_headers.values())
        if name
    )


def needs_only_a_key(deployment: Deployment) -> bool:
    """Whether the key is enough: no project, endpoint or model has to be configured as well."""
    return bool(deployment.default_model) and deployment.auth not in ("none", "vertex") and "{" not in deployment.base_url


@cache
def builtin_catalog() -> Catalog:
    """The services and models that are known without configuration."""
    with open(os.path.join(_HERE, "catalog.json"), "rb") as file:
        return Catalog(msgspec.json.decode(file.read(), type=dict[str, Deployment]))


def filled(template: str, env: Mapping[str, str], deployment: str) -> str:
    """A base URL with its `{VARIABLE}` placeholders filled from the environment."""

    def value(match: re.Match[str]) -> str:
        name, default = match.group(1), match.group(2)
        found = env.get(name, "").strip() or default
        if not found:
            raise ConfigError(say("providers.variable_missing", deployment=deployment, name=name))
        return found.rstrip("/")

    return _VARIABLE.sub(value, template)


def from_toml(text: str, source: str = "catalog.toml") -> Catalog:
    """A catalog written as TOML: one table per deployment."""
    rows = _parse_toml(text, source)
    rows.pop("taken", None)
    return Catalog({}).with_rows(rows, source)


def _parse_toml(text: str, source: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(say("providers.not_toml", where=_where(source), reason=error)) from error


def _read_deployment(name: str, row: dict[str, Any], source: str) -> Deployment:
    profile = _with_small({**(row.get("profile") or {}), "known": False})
    row = {**row, "name": name, "profile": profile}
    for key in ("models", "families"):
        if isinstance(rows := row.get(key), Mapping):
            row[key] = {model: _with_small(each) if isinstance(each, Mapping) else each for model, each in rows.items()}
    if isinstance(families := row.get("families"), Mapping):
        row["families"] = {name: {**each, "known": False} if isinstance(each, dict) else each for name, each in families.items()}
    try:
        deployment = msgspec.convert(row, Deployment)
        _require_protocol(deployment.protocol)
        return deployment
    except msgspec.ValidationError as error:
        hint = _suggested_field(str(error))
        raise ConfigError(say("providers.wrong_row", where=_where(source), name=name, reason=error, hint=hint)) from error


def _require_protocol(name: str) -> None:
    """One of ours, or one that an installed package brings. What `module:name` names is loaded when it is connected to."""
    from dragoman.base.plugins import has_plugin

    if name not in get_args(ProtocolName) and not has_plugin(name, PROTOCOLS):
        known = ", ".join(get_args(ProtocolName))
        raise msgspec.ValidationError(
            f"Invalid protocol {name!r}, expected one of {known}, or one of an installed package - at `$.protocol`"
        )


def _where(source: str) -> str:
    return f"{source}: " if source else ""


def _with_small(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Move the fields of `small` into it: earlier versions of the configuration had them beside it."""
    beside = {key: profile[key] for key in SMALL_FIELDS if key in profile}
    if not beside:
        return dict(profile)
    rest = {key: value for key, value in profile.items() if key not in beside}
    return {**rest, "small": {**(profile.get("small") or {}), **beside}}


def _merge_tables(base: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in row.items():
        both_tables = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merge_tables(merged[key], value) if both_tables else value
    return merged


def _suggestion(name: str, names: Any) -> str:
    from dragoman.base.text import closest

    close = closest(name, names, 3)
    return say("providers.did_you_mean", names=say("providers.or").join(close)) if close else ""


def _suggested_field(message: str) -> str:
    unknown = re.search(r"unknown field `([^`]+)`", message)
    fields = {
        *Deployment.__struct_fields__,
        *Profile.__struct_fields__,
        *SMALL_FIELDS,
        "input",
        "output",
        "cache_read",
        "cache_write",
        "taken",
    }
    return _suggestion(unknown.group(1), fields) if unknown else ""


if __name__ == "__main__":
    from pathlib import Path

    written = Path(_HERE, "catalog.toml").read_text(encoding="utf-8")
    lines = [msgspec.json.encode(name) + b":" + msgspec.json.encode(row) for name, row in from_toml(written).deployments.items()]
    Path(_HERE, "catalog.json").write_bytes(b"{" + b",\n".join(lines) + b"}\n")
