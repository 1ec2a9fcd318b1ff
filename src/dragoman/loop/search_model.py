"""Which model searches the web where the chat model cannot: one of another service that the user has a key for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dragoman.providers.catalog import Catalog, builtin_catalog, key_variable, needs_only_a_key, profile_for
from dragoman.values.profile import Deployment

SEARCHING_PROTOCOLS = ("gemini", "openai_responses", "anthropic")
"""Protocols with which a service can be asked to search. Over Chat Completions it cannot."""


class SearchModel(NamedTuple):
    name: str
    """`deployment/model`."""
    variable: str
    """The variable that holds the key, or `key_command`."""


def find_search_model(catalog: Catalog, env: Mapping[str, str]) -> SearchModel | None:
    """The cheapest default model among the services that can search and whose key is set. Nothing is sent or loaded.

    Only services we know, at their own address: a gateway behind OPENAI_BASE_URL speaks the protocol, but may not be able to search.
    """
    found = [
        (_price(deployment), SearchModel(f"{deployment.name}/{deployment.default_model}", variable))
        for deployment in catalog.deployments.values()
        if _can_search(deployment, env) and (variable := _key_of(deployment, env))
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


def _price(deployment: Deployment) -> float:
    """Of a million tokens in and out. A model without prices comes last."""
    prices = profile_for(deployment, deployment.default_model).prices
    return prices.input + prices.output if prices is not None else float("inf")
