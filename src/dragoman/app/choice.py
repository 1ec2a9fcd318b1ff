"""Chooses the model of a run: the configured one, else that of a service whose key is set, else of a server on this machine, else a model
in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.app.setup import Choice, Setup
from dragoman.providers.catalog import key_variable, needs_only_a_key
from dragoman.values.errors import Unauthorized
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.app.probe import RunningServer
    from dragoman.providers.catalog import Catalog

KEYED_DEPLOYMENTS = ("gemini", "anthropic", "openai")
"""Services in order of preference if several keys are set; also the ones an error suggests if none is."""
LOCAL = "local"


def choose_model(setup: Setup, catalog: Catalog, servers: tuple[RunningServer, ...] | None = None) -> Choice:
    """Asks no questions and downloads nothing: first_use.py does that. `servers` are the running ones, if already known.

    Raises Unauthorized, saying what to do, if there is no model to choose.
    """
    if setup.choice is not None:
        return setup.choice
    if found := named_choice(setup, catalog):
        return found
    for server in running_servers(setup, catalog) if servers is None else servers:
        return server_choice(server)
    if found := local_choice(setup, catalog):
        return found
    raise no_model_error(catalog)


def named_choice(setup: Setup, catalog: Catalog) -> Choice | None:
    """The configured model, or that of a service whose key is set, else stored. Probes no servers."""
    if setup.config.model:
        return Choice(setup.config.model, setup.loaded.source("model").name)
    first = [catalog[name] for name in KEYED_DEPLOYMENTS]
    for deployment in (*first, *catalog.deployments.values()):
        if needs_only_a_key(deployment) and (variable := key_variable(deployment, setup.env)):
            return Choice(f"{deployment.name}/{deployment.default_model}", variable, "key")
    from dragoman.app.keys import key_source

    for deployment in (*first, *catalog.deployments.values()):
        if needs_only_a_key(deployment) and (source := key_source(deployment, setup)):
            return Choice(f"{deployment.name}/{deployment.default_model}", source.words, "stored")
    return None


def no_model_error(catalog: Catalog, further: str = "") -> Unauthorized:
    if not further:
        from dragoman.local.engine import unusable_reason

        further = say("no_model_engine", reason=unusable_reason())
    return Unauthorized(say("no_model", variables=", ".join(key_variables(catalog)), further=further))


def key_variables(catalog: Catalog) -> list[str]:
    return [variable for name in KEYED_DEPLOYMENTS for variable in catalog[name].key_env]


def running_servers(setup: Setup, catalog: Catalog) -> tuple[RunningServer, ...]:
    if not setup.config.local.find_servers:
        return ()
    from dragoman.app.probe import find_servers

    return find_servers(catalog, setup.env)


def server_choice(server: RunningServer) -> Choice:
    return Choice(server.model, say("server_at", title=server.title, where=server.where), "server")


def local_choice(setup: Setup, catalog: Catalog) -> Choice | None:
    """The best model whose weights were pulled, else the default one, which may have to be pulled. None if local models cannot run."""
    from dragoman.local.engine import unusable_reason
    from dragoman.local.provider import FILE_VARIABLE

    if unusable_reason():
        return None
    default = catalog[LOCAL].default_model
    if setup.env.get(FILE_VARIABLE, "").strip():
        return Choice(f"{LOCAL}/{default}", FILE_VARIABLE, "set")
    from pathlib import Path

    from dragoman.local.weights.models import MODELS
    from dragoman.local.weights.places import find

    names = list(MODELS)
    better = names[names.index(default) :] if default in names else []
    best = next((name for name in reversed(better) if find(name, Path(setup.places.weights))), default)
    return Choice(f"{LOCAL}/{best}", say("nothing_else"), "local")
