"""Protocols and providers that other packages bring.

A protocol is a module, or an object, with the functions of `wire.Wire`. It is named in a deployment's row: `protocol = "my_package.wire"`
registered under the entry points `dragoman.protocols`, or directly as `my_package:wire`. A provider is a function that takes a model's
name and returns a Provider: the entry point `echo` of `dragoman.providers` serves `echo/MODEL`, and `my_package:make/MODEL` needs none.
"""

from __future__ import annotations

from typing import Any

from dragoman.base.plugins import PluginNotFound, has_plugin, is_module_name, load_plugin
from dragoman.providers.catalog import PROTOCOLS, Catalog
from dragoman.providers.wire import Wire
from dragoman.values.contracts import Provider
from dragoman.values.errors import ConfigError
from dragoman.words import say

PROVIDERS = "dragoman.providers"


def load_protocol(name: str) -> Wire:
    """Raises ConfigError where no package has it."""
    try:
        found: Wire = load_plugin(name, PROTOCOLS)
    except PluginNotFound as error:
        raise ConfigError(say("providers.unknown_protocol", name=name, reason=str(error))) from error
    return found


def is_from_package(model: str, catalog: Catalog) -> bool:
    """Whether `NAME/MODEL` names a provider of another package: the catalog does not have the name, and a package does."""
    name, slash, _ = model.partition("/")
    return bool(slash) and name not in catalog.deployments and has_plugin(name, PROVIDERS)


def load_provider(model: str, catalog: Catalog) -> Provider | None:
    """The provider another package has for `NAME/MODEL`; None where the name is the catalog's, or nobody's."""
    name, slash, rest = model.partition("/")
    if not slash or name in catalog.deployments:
        return None
    try:
        make: Any = load_plugin(name, PROVIDERS)
    except PluginNotFound as error:
        if is_module_name(name):
            raise ConfigError(say("providers.unknown_provider", name=name, reason=str(error))) from error
        return None
    made = make(rest)
    if not isinstance(made, Provider):
        raise ConfigError(say("providers.not_a_provider", name=name, kind=type(made).__name__))
    return made
