"""Makes a ready-to-use provider from a model's name, with the authentication that its deployment asks for."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

from dragoman.base import late_types
from dragoman.http.clients import HttpClient, open_transport
from dragoman.providers.auth import Auth, KeyAuth, NoAuth, checked_header, with_env_headers
from dragoman.providers.catalog import Catalog, builtin_catalog, filled, profile_for
from dragoman.providers.http_provider import HttpProvider
from dragoman.providers.retry import Retry, RetryPolicy
from dragoman.providers.wire import Wire
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.contracts import BlobStore, Provider, Transport
from dragoman.values.errors import Unauthorized
from dragoman.values.profile import Deployment, ProtocolName
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.local.provider import Find
    from dragoman.providers.pace import RateLimit
else:
    (Find,) = late_types("dragoman.local.provider", "Find")
    (RateLimit,) = late_types("dragoman.providers.pace", "RateLimit")

log = logging.getLogger("dragoman.providers")
logging.getLogger("dragoman").addHandler(logging.NullHandler())  # silent unless the program sets logging up

FindKey = Callable[[str], str]
"""The key that is stored for a service, or an empty string."""


def connect(
    model: str,
    *,
    key: str | None = None,
    auth: Auth | None = None,
    base_url: str = "",
    env: Mapping[str, str] | None = None,
    catalog: Catalog | None = None,
    transport: Transport | None = None,
    blobs: BlobStore | None = None,
    retry: RetryPolicy | None = None,
    rate: RateLimit | None = None,
    http: HttpClient = "own",
    weights: Find | None = None,
    kept: Callable[[], str] | None = None,
) -> Connection:
    """A provider for `deployment/model`. Nothing is sent, and no connection is opened, before the first request.

    `http` chooses the HTTP client if no transport is given. `weights` finds the file of a model that runs in this process, by its
    name, and `kept` names the folder of such a model's prompt cache; by default both are where the user's files lie. `rate` is what all
    connections of this process to the same service with the same key may send per minute.
    """
    env = os.environ if env is None else env
    blobs = MemoryBlobs() if blobs is None else blobs
    catalog = catalog or builtin_catalog()
    if "/" in model and model.partition("/")[0] not in catalog.deployments:
        from dragoman.providers.outside import load_provider

        if (brought := load_provider(model, catalog)) is not None:
            return Connection(_paced(brought, rate, retry), model.partition("/")[2], retry)
    deployment, name = catalog.find(model)
    if deployment.in_process and transport is None:
        from dragoman.local.provider import LocalProvider

        return Connection(LocalProvider(deployment, name, env, find=weights, blobs=blobs, kept=kept), name, retry)
    for header, value in deployment.headers.items():
        checked_header(value, say("providers.header_of_row", name=header, deployment=deployment.name))
    wire = _protocol(deployment.protocol)
    url = base_url or next((env[var] for var in deployment.base_url_env if env.get(var, "").strip()), deployment.base_url)
    auth = with_env_headers(auth, deployment, env) if auth is not None else auth_for(deployment, env, key)
    url = filled(url.strip(), env, deployment.name)
    provider = HttpProvider(deployment, wire, transport or open_transport(http), auth, base_url=url, blobs=blobs)
    profile = profile_for(deployment, name)
    if not profile.known:
        log.info("%s/%s is not in the catalog: taken for a model with %d tokens of context", deployment.name, name, profile.context_window)
    return Connection(_paced(provider, rate, retry, url, auth), name, retry)


def _paced(provider: Provider, rate: RateLimit | None, retry: RetryPolicy | None, url: str = "", auth: Auth | None = None) -> Provider:
    """The provider, kept to what may be sent per minute, if that is limited."""
    row = provider.deployment
    if rate is None and (row is None or not (row.requests_per_minute or row.tokens_per_minute)):
        return provider
    from dragoman.providers.pace import Paced, RateLimit, limiter_for

    if rate is None and row is not None:
        rate = RateLimit(row.requests_per_minute or None, row.tokens_per_minute or None)
    limiter = limiter_for(provider.name, url, auth.secrets() if auth is not None else (), rate or RateLimit())
    return Paced(provider, limiter, patience_s=(retry or RetryPolicy()).deadline_s)


def auth_for(deployment: Deployment, env: Mapping[str, str], key: str | None = None, stored: FindKey | None = None) -> Auth:
    """The authentication a deployment asks for. `key` takes precedence over the environment, the environment over what the user has
    stored, and that over a command.

    With it go the headers that the environment has for this deployment. Raises ConfigError if one of them cannot be sent.
    """
    return with_env_headers(_credentials(deployment, env, key, stored), deployment, env)


def _credentials(deployment: Deployment, env: Mapping[str, str], key: str | None, stored: FindKey | None) -> Auth:
    title = deployment.title or deployment.name
    if deployment.auth == "none":
        return NoAuth()
    header = "Authorization" if deployment.auth in {"bearer", "vertex"} else deployment.auth
    if key is not None and key.strip():
        return KeyAuth(header, key, lambda: say("providers.key_given", title=title))
    for name in deployment.key_env:
        if env.get(name, "").strip():
            return KeyAuth(header, env[name], lambda name=name: say("providers.key_in_variable", name=name))
    for name in deployment.token_env:
        if env.get(name, "").strip():
            return KeyAuth("Authorization", env[name], lambda name=name: say("providers.key_in_variable", name=name))
    if found := stored(deployment.name) if stored is not None else _stored_key(deployment.name, env):
        return KeyAuth(header, found, lambda: say("providers.key_stored", title=title))
    if deployment.auth == "vertex":
        from dragoman.providers.google_auth import google_auth

        return google_auth(deployment, env)
    if deployment.key_command:
        from dragoman.providers.fetched_auth import CommandAuth

        return CommandAuth(deployment.key_command, header, env)
    if deployment.key_optional or not deployment.key_env:
        return NoAuth()

    from dragoman.base.text import either

    names = either((*deployment.key_env, *deployment.token_env))
    raise Unauthorized(say("providers.no_key", title=title, names=names, name=deployment.name))


def _stored_key(service: str, env: Mapping[str, str]) -> str:
    from dragoman.base.places import find_places

    if not os.path.exists(find_places(env).keys_file):
        return ""
    from dragoman.providers.stored_keys import keys_of_environment

    keys = keys_of_environment(env)
    return keys.find(service) if keys is not None else ""


def _protocol(name: str) -> Wire:
    if name in get_args(ProtocolName):
        built_in: Any = import_module(f"dragoman.providers.{name}")
        return built_in
    from dragoman.providers.outside import load_protocol

    return load_protocol(name)


class Connection(Retry):
    """A provider with retries, and the model it was connected for."""

    def __init__(self, provider: Provider, model: str, policy: RetryPolicy | None = None) -> None:
        super().__init__(provider, policy)
        self._model = model

    @property
    def model(self) -> str:
        return self._model
