"""Who searches the web, in words: for `doctor` and `config`. Nothing is sent, and no server is looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.app.choice import named_choice
from dragoman.app.setup import Setup, is_from_package
from dragoman.loop.search_model import SEARCHING_PROTOCOLS, STORED, find_search_model
from dragoman.loop.web import NOBODY
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.providers.catalog import Catalog


def who_searches(setup: Setup, catalog: Catalog) -> str:
    """Empty where the model of the conversation is not known yet. Raises ConfigError for a model nobody knows."""
    web = setup.config.web
    if web.search == "off":
        return say("search_off")
    if web.searxng:
        return say("search_by_searxng", url=web.searxng)
    if web.search_model not in ("", NOBODY):
        return say("search_by_model", model=web.search_model)
    choice = named_choice(setup, catalog)
    if choice is None or is_from_package(choice.model, catalog):
        return ""
    deployment, model = catalog.find(choice.model)
    name = f"{deployment.name}/{model}"
    if deployment.protocol in SEARCHING_PROTOCOLS:
        return say("search_by_model", model=name)
    is_here = deployment.local or deployment.in_process
    other = None if web.search_model == NOBODY or is_here else find_search_model(catalog, setup.env)
    if other is None:
        return say("search_by_nobody", model=name)
    key = say("search_key_stored") if other.variable == STORED else say("key_from_variable", name=other.variable)
    return say("search_by_other", model=name, other=other.name, key=key)
