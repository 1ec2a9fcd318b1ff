"""The setup of a command: options, configuration, folders, and the chosen model once it is final."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.app.config import load
from dragoman.app.config_tables import Config, LoadedConfig
from dragoman.app.options import Options
from dragoman.base.places import Places, find_places
from dragoman.base.words import choose_language, say
from dragoman.providers.catalog import builtin_catalog
from dragoman.values.errors import ConfigError, InputError

if TYPE_CHECKING:
    from dragoman.providers.catalog import Catalog


class Choice(msgspec.Struct, frozen=True):
    """The model, and why it was chosen."""

    model: str
    reason: str
    """The option, file or variable that names it, or the server that serves it."""
    kind: Literal["set", "key", "stored", "server", "local"] = "set"

    @property
    def why(self) -> str:
        return say(f"because_{self.kind}", reason=self.reason)


class Setup(msgspec.Struct, frozen=True):
    """Everything a command needs to know before it starts."""

    options: Options
    env: Mapping[str, str]
    places: Places
    workspace: str
    loaded: LoadedConfig
    choice: Choice | None = None
    """The model, once it is final (first_use.py); until then `choose_model` chooses it at every call."""
    notices: tuple[str, ...] = ()
    """What the user should know about how the model was chosen."""

    @property
    def config(self) -> Config:
        return self.loaded.config


def set_up(options: Options, env: Mapping[str, str] | None = None) -> Setup:
    """Read the configuration. Raises InputError or ConfigError."""
    env = os.environ if env is None else env
    workspace = require_directory(options.directory or _working_directory(), "-C")
    places = find_places(env)
    loaded = load(options, env, places, workspace)
    choose_language(loaded.config.lang)
    return Setup(options, env, places, workspace, loaded)


def catalog_of(setup: Setup) -> Catalog:
    """The catalog, with the user's own deployments added."""
    catalog = builtin_catalog()
    rows = setup.config.deployments
    if not rows:
        return catalog
    from dragoman.app.config_faults import place_row_error

    for name, row in rows.items():
        try:
            catalog = catalog.with_rows({name: row}, "")
        except ConfigError as error:
            raise ConfigError(place_row_error(error, name, setup.loaded.files)) from error
    return catalog


def is_from_package(model: str, catalog: Catalog) -> bool:
    """Whether a model's service is one that an installed package brings."""
    if "/" not in model or model.partition("/")[0] in catalog.deployments:
        return False
    from dragoman.providers import outside

    return outside.is_from_package(model, catalog)


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError as error:  # somebody deleted it
        raise InputError(say("no_working_directory", reason=error.strerror)) from error


def require_directory(path: str, named_by: str) -> str:
    path = os.path.abspath(os.path.expanduser(path))
    if os.path.isdir(path):
        return path
    raise InputError(say("no_such_directory" if not os.path.lexists(path) else "not_a_directory", path=path, named_by=named_by))
