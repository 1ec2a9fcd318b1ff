"""Choosing the model before the first request: offers a server found on this machine, and pulls missing weights, once the user agrees.
If the user cannot be asked, `--yes` or a setting agrees; otherwise the error says what to do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dragoman.app.asking import Ask, FirstQuestion
from dragoman.app.choice import choose_model, key_variables, local_choice, no_model_error, running_servers, server_choice
from dragoman.app.setup import Choice, Setup, catalog_of, is_from_package
from dragoman.app.surface import surface
from dragoman.base import jsontext
from dragoman.base.atomic import replace_file
from dragoman.base.private import make_directory
from dragoman.base.text import one_line, size
from dragoman.values.errors import InputError, Unauthorized
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.app.probe import RunningServer
    from dragoman.providers.catalog import Catalog


def agree_on_model(setup: Setup, catalog: Catalog, choice: Choice | None, ask: Ask | None) -> Setup:
    """The setup with a model that the user agreed to and whose weights are present. `choice` is the configured one, if any.
    `ask`: None where nobody can be asked.

    Raises Unauthorized or InputError if the user has to do something first.
    """
    notices: tuple[str, ...] = ()
    if choice is None:
        servers = running_servers(setup, catalog)
        if ask is not None and not servers and not _may_pull(setup) and not _has_local(setup, catalog):
            choice, notices = _choose_way(setup, catalog, ask)
        else:
            choice = choose_model(setup, catalog, servers)
        if choice.kind == "server" and servers:
            choice, notices = _choose_server(setup, catalog, servers, ask)
    if choice.kind == "local":
        _pull_default(setup, catalog, choice, ask)
        notices = (*notices, say("local_taken", title=_title(choice.model), variables=", ".join(key_variables(catalog))))
    else:
        require_weights(setup, choice.model, ask)
    return replace(setup, choice=choice, notices=(*setup.notices, *notices))


def agree_on_another(setup: Setup, ask: Ask) -> Setup:
    """Where the model that was named, or that a session was held with, has no key: the setup with one that can be reached."""
    choice, notices = _choose_way(setup, catalog_of(setup), ask)
    options = replace(setup.options, model=choice.model)
    return replace(setup, options=options, choice=choice, notices=(*setup.notices, *notices))


def _choose_way(setup: Setup, catalog: Catalog, ask: Ask) -> tuple[Choice, tuple[str, ...]]:
    from dragoman.app.ways_in import WaysIn

    return WaysIn(setup, catalog, ask, ask_about=ask_about_servers, require=require_weights).choose()


def _has_local(setup: Setup, catalog: Catalog) -> bool:
    """Whether a model can answer in this process without a download."""
    local = local_choice(setup, catalog)
    return local is not None and not needs_weights(setup, local.model)


def require_weights(setup: Setup, model: str, ask: Ask | None) -> None:
    """Pull the weights of a model that runs in this process, if they are missing. Raises InputError if the user does not agree."""
    if not needs_weights(setup, model):
        return
    from dragoman.app.pulling import confirm_pull, fetch_weights
    from dragoman.local.engine import unusable_reason
    from dragoman.local.weights.models import get_model

    if reason := unusable_reason():
        raise InputError(say("no_engine", model=one_line(model, 100), reason=reason))
    wanted = get_model(model)
    if setup.config.local.pull == "no" and not setup.options.yes:
        raise InputError(say("weights_pull_off", name=wanted.name))
    if not _may_pull(setup):
        confirm_pull(wanted, setup, ask)
    fetch_weights(wanted, setup)


def needs_weights(setup: Setup, model: str) -> bool:
    """Whether a model runs in this process and its weights are missing."""
    catalog = catalog_of(setup)
    if is_from_package(model, catalog):
        return False
    deployment, name = catalog.find(model)
    if not deployment.in_process:
        return False
    from pathlib import Path

    from dragoman.local.provider import FILE_VARIABLE
    from dragoman.local.weights.places import find

    return not setup.env.get(FILE_VARIABLE, "").strip() and find(name, Path(setup.places.weights)) is None


def _may_pull(setup: Setup) -> bool:
    return setup.options.yes or setup.config.local.pull == "yes"


# --- no model is configured -----------------------------------------------------------------------------------------------------


def _pull_default(setup: Setup, catalog: Catalog, choice: Choice, ask: Ask | None) -> None:
    """Like `require_weights`, for a model the user did not name: the error also lists the alternatives."""
    if not needs_weights(setup, choice.model):
        return
    from dragoman.local.weights.models import get_model

    model = get_model(choice.model)
    alternative = say("no_model_pull", title=model.title, size=size(model.bytes), licence=model.licence)
    if not _may_pull(setup) and (ask is None or setup.config.local.pull == "no"):
        raise no_model_error(catalog, alternative)
    if not _may_pull(setup):
        surface().messages.line(say("local_offer", variables=", ".join(key_variables(catalog))))
    try:
        require_weights(setup, choice.model, ask)
    except InputError as error:
        if _may_pull(setup):
            raise
        raise no_model_error(catalog, alternative) from error


def _title(model: str) -> str:
    """Works for the user's own file too, which may be the default model."""
    from dragoman.local.weights.models import MODELS

    name = model.partition("/")[2]
    return MODELS[name].title if name in MODELS else one_line(name, 100)


# --- a server on this machine ---------------------------------------------------------------------------------------------------


def _choose_server(setup: Setup, catalog: Catalog, servers: tuple[RunningServer, ...], ask: Ask | None) -> tuple[Choice, tuple[str, ...]]:
    """The first server that the user accepts, else the model in this process; and notices about the choice."""
    for server in servers:
        choice = server_choice(server)
        if setup.options.yes:
            return choice, (say("server_taken", model=server.model, server=choice.reason),)
    if ask is not None and (found := ask_about_servers(setup, servers, ask)) is not None:
        return found
    if ask is not None and not _has_local(setup, catalog):
        return _choose_way(setup, catalog, ask)
    local = local_choice(setup, catalog)
    offered = [say("server_beside", server=server_choice(each).reason, model=each.model) for each in servers]
    if local is not None and (ask is not None or not needs_weights(setup, local.model)):
        return local, tuple(offered) if ask is None else ()
    if servers and ask is None:
        raise Unauthorized(say("server_not_taken", variables=", ".join(key_variables(catalog)), offered="; ".join(offered)))
    raise no_model_error(catalog)


def ask_about_servers(setup: Setup, servers: tuple[RunningServer, ...], ask: Ask) -> tuple[Choice, tuple[str, ...]] | None:
    """The first that the user takes, and notices; None if it is none of them."""
    for server in servers:
        match _ask_about(server, ask):
            case "y":
                return server_choice(server), ()
            case "a":
                return server_choice(server), (save_model(setup, server.model),)
    return None


def _ask_about(server: RunningServer, ask: Ask) -> str:
    more = say("server_more", count=len(server.models) - 1) if len(server.models) > 1 else ""
    intro = say("server_offer", title=server.title, where=server.where, model=one_line(server.model, 100), more=more)
    try:
        return ask(FirstQuestion((intro,), say("server_question"), {"y": "", "a": "", "n": ""}, say("server_why")))
    except EOFError as error:
        raise InputError(say("left_alone")) from error


def save_model(setup: Setup, model: str) -> str:
    """Write the model to the top of the user's configuration file, and return the notice about it."""
    file = setup.loaded.files[0]
    path = os.path.realpath(file.path)  # a symlink to a file elsewhere stays one
    try:
        make_directory(os.path.dirname(path))
        mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o600
        replace_file(path, f"model = {jsontext.dumps(model)}\n{file.text}".encode(), mode=mode)
    except OSError as error:
        return say("not_kept", path=file.path, reason=error.strerror or error)
    return say("kept", path=file.path, model=model)
