"""Makes a ready-to-use provider from a model's name."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

from dragoman.base.words import say
from dragoman.http.clients import HttpClient, open_transport
from dragoman.providers.auth import Auth, auth_for, checked_header, with_env_headers
from dragoman.providers.catalog import Catalog, builtin_catalog, filled, profile_for
from dragoman.providers.http_provider import HttpProvider
from dragoman.providers.retry import Retry, RetryPolicy
from dragoman.providers.wire import Wire
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.contracts import BlobStore, Provider, Transport
from dragoman.values.profile import ProtocolName

if TYPE_CHECKING:
    from dragoman.local.provider import Find

log = logging.getLogger("dragoman")


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
    http: HttpClient = "own",
    weights: Find | None = None,
    kept: Callable[[], str] | None = None,
) -> Connection:
    """A provider for `deployment/model`. Nothing is sent, and no connection is opened, before the first request.

    `http` chooses the HTTP client if no transport is given. `weights` finds the file of a model that runs in this process, by its
    name, and `kept` names the folder of such a model's prompt cache; by default both are where the user's files lie.
    """
    env = os.environ if env is None else env
    blobs = MemoryBlobs() if blobs is None else blobs
    catalog = catalog or builtin_catalog()
    if "/" in model and model.partition("/")[0] not in catalog.deployments:
        from dragoman.providers.outside import load_provider

        if (brought := load_provider(model, catalog)) is not None:
            return Connection(brought, model.partition("/")[2], retry)
    deployment, name = catalog.find(model)
    if deployment.in_process and transport is None:
        from dragoman.local.provider import LocalProvider

        return Connection(LocalProvider(deployment, name, env, find=weights, blobs=blobs, kept=kept), name, retry)
    for header, value in deployment.headers.items():
        checked_header(value, say("providers.header_of_row", name=header, deployment=deployment.name))
    wire = _protocol(deployment.protocol)
    url = base_url or next((env[var] for var in deployment.base_url_env if env.get(var, "").strip()), deployment.base_url)
    provider = HttpProvider(
        deployment,
        wire,
        transport or open_transport(http),
        with_env_headers(auth, deployment, env) if auth is not None else auth_for(deployment, env, key),
        base_url=filled(url.strip(), env, deployment.name),
        blobs=blobs,
    )
    profile = profile_for(deployment, name)
    if not profile.known:
        log.info("%s/%s is not in the catalog: taken for a model with %d tokens of context", deployment.name, name, profile.context_window)
    return Connection(provider, name, retry)


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
