"""Which model searches the web where the chat model cannot: one of another service that the user has a key for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from dragoman.base.places import find_places
from dragoman.providers.catalog import Catalog, builtin_catalog, key_variable, needs_only_a_key, profile_for
from dragoman.values.profile import Deployment

SEARCHING_PROTOCOLS = ("gemini", "openai_responses", "anthropic")
"""Protocols with which a service can be asked to search. Over Chat Completions it cannot."""


STORED = "stored"
"""In place of a variable: the key is stored."""


class SearchModel(NamedTuple):
    """A model that can search, and where its key comes from."""

    name: str
    """`deployment/model`."""
    variable: str
    """The variable that holds the key; `dragoman auth` if it is stored; or `key_command`."""


def find_search_model(catalog: Catalog, env: Mapping[str, str]) -> SearchModel | None:
    """The cheapest default model among the services that can search and whose key is set; else among those whose key is stored.
    Nothing is sent or loaded.

    Only services we know, at their own address: a gateway behind OPENAI_BASE_URL speaks the protocol, but may not be able to search.
    """
    able = [deployment for deployment in catalog.deployments.values() if _can_search(deployment, env)]
    return _cheapest(able, lambda deployment: _key_of(deployment, env)) or _cheapest(able, lambda deployment: _stored(deployment, env))


def _cheapest(deployments: Sequence[Deployment], key_of: Callable[[Deployment], str]) -> SearchModel | None:
    found = [
        (_price(deployment), SearchModel(f"{deployment.name}/{deployment.default_model}", variable))
        for deployment in deployments
        if (variable := key_of(deployment))
    ]
    return min(found)[1] if found else None


def _can_search(deployment: Deployment, env: Mapping[str, str]) -> bool:
    return (
        deployment.name in builtin_catalog().deployments
        and deployment.protocol in SEARCHING_PROTOCOLS
        and needs_only_a_key(deployment)
        and not any(env.get(name, "").strip() for name in deployment.base_url_env)
    )


def _key_of(deployment: Deployment, env: Mapping[str, str]) -> str:
    return key_variable(deployment, env) or ("key_command" if deployment.key_command else "")


def _stored(deployment: Deployment, env: Mapping[str, str]) -> str:
    if not os.path.exists(find_places(env).keys_file):
        return ""
    from dragoman.providers.stored_keys import keys_of_environment

    keys = keys_of_environment(env)
    return STORED if keys is not None and deployment.name in keys.services else ""


def _price(deployment: Deployment) -> float:
    """The price of a million tokens in and out. A model without prices sorts last."""
    prices = profile_for(deployment, deployment.default_model).prices
    return prices.input + prices.output if prices is not None else float("inf")
