"""`dragoman context --request`: the request itself, as it would be sent, for the session's own service or for any other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

from dragoman.app.console import Messages
from dragoman.base import jsontext
from dragoman.base.words import say
from dragoman.loop.history import History
from dragoman.providers.redact import REDACTED, SECRET_HEADERS, redact
from dragoman.values.errors import ConfigError, InputError
from dragoman.values.profile import ProtocolName

if TYPE_CHECKING:
    from dragoman.cli.context import Desk
    from dragoman.context.view import View
    from dragoman.values.contracts import Prepared
    from dragoman.values.record import Entry


def write_request(desk: Desk, entries: Sequence[Entry]) -> str:
    """The body goes to standard output byte for byte; what stands around it, to standard error. With `--json`: all of it as one object."""
    view = History(entries=entries).view
    if not view.messages:
        raise InputError(say("context_empty", id=desk.found.session_id))
    prepared = _prepared(desk, view)
    url, headers = redact(prepared.url), _shown(desk, prepared)
    if desk.as_json:
        told = {"method": prepared.method, "url": url, "headers": headers, "body": jsontext.decode(prepared.body)}
        return jsontext.dumps(told) + "\n"
    messages = Messages()
    messages.line(say("request_head", method=prepared.method, url=url))
    for name, value in headers.items():
        messages.line(say("request_header", name=name, value=value))
    if view.open_calls:
        messages.line(say("notice", text=say("request_open")))
    elif view.messages[-1].role == "assistant":
        messages.line(say("notice", text=say("request_unfinished")))
    _write(prepared.body)
    return ""


def _prepared(desk: Desk, view: View) -> Prepared:
    import msgspec

    from dragoman.app.setup import text_options_of
    from dragoman.loop.calling import Calling
    from dragoman.providers.auth import NoAuth
    from dragoman.providers.connect import connect

    model = _model(desk, view)
    blobs = desk.store.blobs_beside(desk.found.path)
    provider = connect(model, auth=NoAuth(), env=desk.setup.env, catalog=desk.catalog, blobs=blobs)
    calling = Calling(desk.setup.config.text_tools.mode, text_options_of(desk.setup))
    return calling.around(provider, provider.model).prepare(msgspec.structs.replace(view.request, model=provider.model))


def _model(desk: Desk, view: View) -> str:
    """`deployment/model`, as the catalog finds it."""
    wanted = desk.options.request
    own = f"{view.deployment}/{view.model}" if view.deployment else view.model
    if not wanted:
        if not own:
            raise InputError(say("request_no_model", id=desk.found.session_id))
        try:
            deployment, name = desk.catalog.find(own)
        except ConfigError as error:
            raise ConfigError(say("request_model_unknown", model=own, reason=error)) from error
        return f"{deployment.name}/{name}"
    named = wanted.partition("/")[0]
    if named in desk.catalog.deployments:
        return own if named == view.deployment and wanted == named else wanted
    protocols = get_args(ProtocolName)
    if wanted in protocols:
        return _speaking(desk, view, wanted)
    try:
        desk.catalog.find(wanted)
    except ConfigError as error:
        raise InputError(_unknown(desk, wanted, protocols)) from error
    return wanted


def _speaking(desk: Desk, view: View, protocol: str) -> str:
    """The session's own service where it speaks the protocol; else the first in the catalog that does and has a model to go by."""
    rows = desk.catalog.deployments
    if view.deployment in rows and rows[view.deployment].protocol == protocol:
        return f"{view.deployment}/{view.model}"
    return next(name for name, row in rows.items() if row.protocol == protocol and row.default_model)


def _unknown(desk: Desk, wanted: str, protocols: Sequence[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(wanted[:60], [*protocols, *desk.catalog.deployments], n=1)
    hint = say("did_you_mean", name=close[0]) if close else ""
    return say("request_unknown", name=wanted[:60], hint=hint, protocols=", ".join(protocols))


def _shown(desk: Desk, prepared: Prepared) -> dict[str, str]:
    """A header a user gave a service of their own may be a key, whatever it is called."""
    own = {name.lower() for row in desk.setup.config.deployments.values() for name in _headers(row)}
    return {name: REDACTED if name.lower() in own | SECRET_HEADERS else redact(value) for name, value in prepared.headers.items()}


def _headers(row: dict[str, Any]) -> list[str]:
    headers = row.get("headers")
    return list(headers) if isinstance(headers, dict) else []


def _write(body: bytes) -> None:
    if sys.stdout is None:
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(body + b"\n" if sys.stdout.isatty() else body)
    sys.stdout.buffer.flush()
