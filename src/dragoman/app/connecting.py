"""The model a command begins with, and connecting to it or to another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from dragoman.app.choice import choose_model, named_choice
from dragoman.app.setup import Setup, catalog_of, is_from_package
from dragoman.http.clients import open_transport
from dragoman.providers.auth import Auth, NoAuth
from dragoman.providers.connect import Connection, auth_for, connect
from dragoman.providers.retry import RetryPolicy
from dragoman.values.contracts import BlobStore, Transport
from dragoman.values.profile import Deployment

if TYPE_CHECKING:
    from dragoman.app.asking import Ask

MakeTransport = Callable[[Transport, Callable[[], Iterable[str]]], Transport]
"""Makes a transport around another one, given what returns the secrets."""


def choose_first_model(setup: Setup, ask: Ask | None) -> Setup:
    """Choose the first model. The user has to agree to one they did not name; missing weights are pulled. `ask`: None where nobody can be
    asked.

    Raises Unauthorized or InputError if the user has to do something first. A resumed session keeps its own model.
    """
    if setup.options.resume is not None and not setup.options.model:
        return setup
    catalog = catalog_of(setup)
    choice = named_choice(setup, catalog)
    if choice is not None and (is_from_package(choice.model, catalog) or not catalog.find(choice.model)[0].in_process):
        return msgspec.structs.replace(setup, choice=choice)
    from dragoman.app.first_use import agree_on_model

    return agree_on_model(setup, catalog, choice, ask)


def authenticate(setup: Setup, deployment: Deployment) -> Auth:
    """Authentication from the environment, else from the user's stored keys. Raises Unauthorized or ConfigError."""

    def find(service: str) -> str:
        from dragoman.app.keys import find_stored_key

        return find_stored_key(setup, service)

    return auth_for(deployment, setup.env, stored=find)


def connect_model(
    setup: Setup,
    blobs: BlobStore | None = None,
    model: str = "",
    *,
    record: MakeTransport | None = None,
) -> Connection:
    """A provider for the chosen model, or for another, with the same catalog, retries and logging.

    `record` makes the transport, around the one that would be used.
    """
    catalog = catalog_of(setup)
    model = model or choose_model(setup, catalog).model
    auth = NoAuth() if is_from_package(model, catalog) else authenticate(setup, catalog.find(model)[0])
    retry = setup.config.retry
    policy = RetryPolicy(retry.attempts, retry.first_delay_s, retry.max_delay_s, deadline_s=retry.deadline_s)
    if setup.pause is not None:
        policy = msgspec.structs.replace(policy, sleep=setup.pause)
    if setup.options.debug:
        from dragoman.app.debug_log import log_to_stderr

        log_to_stderr(auth.secrets)
    connection = connect(
        model,
        auth=auth,
        env=setup.env,
        catalog=catalog,
        transport=record(open_transport(setup.config.http.client), auth.secrets) if record else None,
        blobs=blobs,
        retry=policy,
        http=setup.config.http.client,
        kept=lambda: setup.places.prompts,
    )
    if setup.options.debug:
        from dragoman.providers.logged import Logged

        connection.provider = Logged(connection.provider, secrets=auth.secrets)
    return connection
