"""Would the service accept this request? Asked of the strict validators, without sending anything."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, get_args

import msgspec

from dragoman.base import jsontext
from dragoman.providers.catalog import builtin_catalog
from dragoman.providers.connect import connect
from dragoman.testing.mock.rules import rules_of
from dragoman.testing.mock.validate import Violation, validate
from dragoman.values.contracts import BlobStore, Provider
from dragoman.values.errors import InputError
from dragoman.values.events import StreamEvent
from dragoman.values.messages import Message, Request, Response, Text
from dragoman.values.profile import Deployment, ProtocolName
from dragoman.values.wrapping import WrappingProvider
from dragoman.words import say

_OWN_SERVICES: dict[str, str] = {
    "gemini": "gemini",
    "openai_chat": "openai",
    "openai_responses": "responses",
    "anthropic": "anthropic",
}
"""The deployment that stands for each protocol."""
_FILLED = {"GOOGLE_CLOUD_PROJECT": "project", "AZURE_OPENAI_ENDPOINT": "http://127.0.0.1:9"}
"""For addresses with variables in them. Nothing is sent there."""


def assert_valid(request: Request | Mapping[str, Any], where: str | Provider = "", *, blobs: BlobStore | None = None) -> None:
    """Raises AssertionError, in the service's own words, if it would refuse this request. Nothing is sent.

    request: a `Request`, such as an agent's next one (`agent.history.request`; where it ends with an answer, a prompt is put behind it, as
    the next run would), or the body that would be sent, decoded.
    where: a protocol (`anthropic`, `gemini`, `openai_chat`, `openai_responses`), a deployment or model of the catalog (`kimi`,
    `anthropic/claude-opus-5`), or a connected provider; empty: all four protocols. A body has to be told.
    blobs: where the bytes of images and documents are, if the request has any.
    """
    if not isinstance(request, Request) and not where:
        raise InputError(say("testing.body_of_which", protocols=", ".join(_OWN_SERVICES)))
    for place in (where,) if where else _OWN_SERVICES:
        if fault := _refusal(request, place, blobs):
            raise AssertionError(fault)


class Validated(WrappingProvider):
    """A provider that asserts that every request is valid before it is sent.

    where: as with `assert_valid`; empty: the provider's own service, or all four protocols for one that has none (`ScriptedProvider`).
    """

    def __init__(self, provider: Provider, where: str | Provider = "") -> None:
        super().__init__(provider)
        served = provider.deployment
        self._where = where or (provider if served is not None and served.protocol in get_args(ProtocolName) else "")
        self.refusals: list[AssertionError] = []
        """What was raised, so that a test can tell it even if nobody let it through."""

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        self._check(request)
        async with aclosing(self.provider.stream(request)) as events:
            async for event in events:
                yield event

    async def generate(self, request: Request) -> Response:
        self._check(request)
        return await self.provider.generate(request)

    def _check(self, request: Request) -> None:
        try:
            assert_valid(request, self._where, blobs=self.blobs)
        except AssertionError as error:
            self.refusals.append(error)
            raise


def _refusal(request: Request | Mapping[str, Any], where: str | Provider, blobs: BlobStore | None) -> str:
    """Why it would be refused; empty if it would not."""
    provider, deployment, model = _destination(where, blobs)
    protocol = next((name for name in get_args(ProtocolName) if name == deployment.protocol), None)
    if protocol is None:
        raise InputError(say("testing.no_validator", name=deployment.name, protocol=deployment.protocol))
    named = f"{deployment.name}/{model}"
    if isinstance(request, Request):
        try:
            body = jsontext.decode(provider.prepare(_next_request(request, model)).body)
        except InputError as error:
            return say("testing.refused_by", where=named, message=error)
    else:
        body = dict(request)
    found: Violation | None = validate(protocol, body, rules_of(deployment, provider.profile(model)))
    return say("testing.refused_by", where=named, message=found.message) if found else ""


def _next_request(request: Request, model: str) -> Request:
    messages = request.messages
    if messages and messages[-1].role == "assistant":
        messages = (*messages, Message("user", (Text("Go on."),)))
    return msgspec.structs.replace(request, model=model, messages=messages)


def _destination(where: str | Provider, blobs: BlobStore | None) -> tuple[Provider, Deployment, str]:
    if isinstance(where, Provider):
        if where.deployment is None:
            raise InputError(say("testing.no_deployment", name=where.name))
        return where, where.deployment, where.model
    deployment, model = builtin_catalog().find(_OWN_SERVICES.get(where, where))
    name = f"{deployment.name}/{model}"
    return connect(name, key="none", base_url="http://127.0.0.1:9", env=_FILLED, blobs=blobs), deployment, model
