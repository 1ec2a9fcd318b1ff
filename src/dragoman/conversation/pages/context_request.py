"""`dragoman context --request`: prints the next request as it would be sent, to the session's service or to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from dragoman.app.settings import text_options_of
from dragoman.app.surface import surface
from dragoman.base import jsontext
from dragoman.base.text import did_you_mean
from dragoman.loop.history import History
from dragoman.loop.model import Models
from dragoman.providers.auth import NoAuth
from dragoman.providers.connect import connect
from dragoman.providers.redact import REDACTED, SECRET_HEADERS, redact
from dragoman.values.errors import ConfigError, InputError
from dragoman.values.profile import ProtocolName
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.context.view import View
    from dragoman.conversation.pages.context_command import ContextCommand
    from dragoman.values.contracts import HttpRequest
    from dragoman.values.record import Entry


def write_request(command: ContextCommand, entries: Sequence[Entry]) -> str | bytes:
    """The body byte for byte; the URL and headers are told beside it. With `--json`: all in one object."""
    view = History(entries=entries).view
    if not view.messages:
        raise InputError(say("context_empty", id=command.short_id))
    prepared = prepare(command, view, command.options.request or "")
    url, headers = redact(prepared.url), redact_headers(command, prepared)
    if command.as_json:
        request = {"method": prepared.method, "url": url, "headers": headers, "body": jsontext.decode(prepared.body)}
        return jsontext.dumps(request) + "\n"
    messages = surface().messages
    messages.line(say("request_head", method=prepared.method, url=url))
    for name, value in headers.items():
        messages.line(say("request_header", name=name, value=value))
    if view.open_calls:
        messages.line(say("notice", text=say("request_open")))
    elif view.messages[-1].role == "assistant":
        messages.line(say("notice", text=say("request_unfinished")))
    return prepared.body + b"\n" * surface().is_terminal


def prepare(command: ContextCommand, view: View, wanted: str = "") -> HttpRequest:
    """The request as it would be sent: to the session's own service, or to a protocol, a deployment or a model. Raises InputError or
    ConfigError where there is no such, or none to send to."""
    model = _target_model(command, view, wanted)
    blobs = command.store.blobs_beside(command.summary.path)
    provider = connect(model, auth=NoAuth(), env=command.setup.env, catalog=command.catalog, blobs=blobs)
    models = Models(None, blobs, command.setup.config.text_tools.mode, text_options_of(command.setup))
    used, messages = models.use(provider), view.messages  # as the session's own model is told of tools, and sees what its window forced
    if (view.deployment, view.model) != (provider.name, provider.model):
        messages = view.messages_for(provider.profile(provider.model).prompt_window)
    elif view.dialect:
        used = models.in_text(used, view.dialect)
    return used.provider.prepare(msgspec.structs.replace(view.request, model=provider.model, messages=messages))


def _target_model(command: ContextCommand, view: View, wanted: str) -> str:
    """The `deployment/model` to prepare the request for."""
    own = f"{view.deployment}/{view.model}" if view.deployment else view.model
    if not wanted:
        if not own:
            raise InputError(say("request_no_model", id=command.short_id))
        try:
            deployment, name = command.catalog.find(own)
        except ConfigError as error:
            raise ConfigError(say("request_model_unknown", model=own, reason=error)) from error
        return f"{deployment.name}/{name}"
    deployment_name = wanted.partition("/")[0]
    if deployment_name in command.catalog.deployments:
        return own if deployment_name == view.deployment and wanted == deployment_name else wanted
    protocols = get_args(ProtocolName)
    if wanted in protocols:
        return _model_for_protocol(command, view, wanted)
    try:
        command.catalog.find(wanted)
    except ConfigError as error:
        raise InputError(_unknown_target(command, wanted, protocols)) from error
    return wanted


def _model_for_protocol(command: ContextCommand, view: View, protocol: str) -> str:
    """The session's own model if its service uses the protocol, else the first deployment that does and has a default model."""
    rows = command.catalog.deployments
    if view.deployment in rows and rows[view.deployment].protocol == protocol:
        return f"{view.deployment}/{view.model}"
    return next(name for name, row in rows.items() if row.protocol == protocol and row.default_model)


def _unknown_target(command: ContextCommand, wanted: str, protocols: Sequence[str]) -> str:
    hint = did_you_mean(wanted[:60], [*protocols, *command.catalog.deployments])
    return say("request_unknown", name=wanted[:60], hint=hint, protocols=", ".join(protocols))


def redact_headers(command: ContextCommand, prepared: HttpRequest) -> dict[str, str]:
    """Headers without secrets. Any header that the user configured is redacted: it may hold a key, whatever its name."""
    own = {name.lower() for row in command.setup.config.deployments.values() for name in _header_names(row)}
    return {name: REDACTED if name.lower() in own | SECRET_HEADERS else redact(value) for name, value in prepared.headers.items()}


def _header_names(row: dict[str, Any]) -> list[str]:
    headers = row.get("headers")
    return list(headers) if isinstance(headers, dict) else []
