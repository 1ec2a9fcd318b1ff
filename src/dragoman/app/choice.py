"""Which model a run uses, and why: what is set, else the service there is a key for, else a server on this machine, else a model in this
process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.base.words import say
from dragoman.values.errors import Unauthorized

if TYPE_CHECKING:
    from dragoman.app.probe import Running
    from dragoman.app.setup import Setup
    from dragoman.providers.catalog import Catalog
    from dragoman.values.profile import Deployment

KEYED_DEPLOYMENTS = ("gemini", "anthropic", "openai")
"""Whose key comes first where several are set, and which are named to whoever has none."""
LOCAL = "local"


class Choice(msgspec.Struct, frozen=True):
    """The model, and why this one."""

    model: str
    reason: str
    """The option, file or variable that says so; the server that answers."""
    kind: Literal["set", "key", "server", "local"] = "set"

    @property
    def why(self) -> str:
        return say(f"because_{self.kind}", reason=self.reason)


def choose_model(setup: Setup, catalog: Catalog, servers: tuple[Running, ...] | None = None) -> Choice:
    """Asks nobody and pulls nothing: see first_use.py. `servers` are those that answer, where that is known.

    Raises Unauthorized, saying what to do, where there is nothing to choose.
    """
    if setup.choice is not None:
        return setup.choice
    if found := named_choice(setup, catalog):
        return found
    for server in running_servers(setup, catalog) if servers is None else servers:
        return server_choice(server)
    if found := local_choice(setup, catalog):
        return found
    raise no_model(catalog)


def named_choice(setup: Setup, catalog: Catalog) -> Choice | None:
    """What is set, or there is a key for. Nobody is asked anything, not even a server."""
    if setup.config.model:
        return Choice(setup.config.model, setup.loaded.source("model").name)
    first = [catalog[name] for name in KEYED_DEPLOYMENTS]
    for deployment in (*first, *catalog.deployments.values()):
        if _needs_only_a_key(deployment) and (variable := key_of(deployment, setup.env)):
            return Choice(f"{deployment.name}/{deployment.default_model}", variable, "key")
    return None


def _needs_only_a_key(deployment: Deployment) -> bool:
    """Not a project, an endpoint or a model besides."""
    return bool(deployment.default_model) and deployment.auth not in ("none", "vertex") and "{" not in deployment.base_url


def no_model(catalog: Catalog, further: str = "") -> Unauthorized:
    if not further:
        from dragoman.local.engine import unusable

        further = say("no_model_engine", reason=unusable())
    return Unauthorized(say("no_model", variables=", ".join(key_variables(catalog)), further=further))


def key_variables(catalog: Catalog) -> list[str]:
    return [variable for name in KEYED_DEPLOYMENTS for variable in catalog[name].key_env]


def key_of(deployment: Deployment, env: Mapping[str, str]) -> str:
    """The name of the variable that holds a deployment's key, or nothing. The key itself is nobody's business here."""
    return next((name for name in deployment.key_env if env.get(name, "").strip()), "")


def running_servers(setup: Setup, catalog: Catalog) -> tuple[Running, ...]:
    if not setup.config.local.find_servers:
        return ()
    from dragoman.app.probe import running

    return running(catalog, setup.env)


def server_choice(server: Running) -> Choice:
    return Choice(server.model, say("server_at", title=server.title, where=server.where), "server")


def local_choice(setup: Setup, catalog: Catalog) -> Choice | None:
    """The model in this process: the best that was pulled, or the usual one, which may have to be. None where it could not run."""
    from dragoman.local.engine import unusable
    from dragoman.local.provider import FILE_VARIABLE

    if unusable():
        return None
    usual = catalog[LOCAL].default_model
    if setup.env.get(FILE_VARIABLE, "").strip():
        return Choice(f"{LOCAL}/{usual}", FILE_VARIABLE, "set")
    from pathlib import Path

    from dragoman.local.weights.models import MODELS
    from dragoman.local.weights.places import find

    names = list(MODELS)
    better = names[names.index(usual) :] if usual in names else []
    here = next((name for name in reversed(better) if find(name, Path(setup.places.weights))), usual)
    return Choice(f"{LOCAL}/{here}", say("nothing_else"), "local")
