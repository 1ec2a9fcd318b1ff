"""`dragoman context new`: what a new conversation in this folder begins with. No key is needed, and nothing is sent or recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.app.choice import choose_model
from dragoman.app.opening import close_agent, open_agent
from dragoman.app.setup import catalog_of
from dragoman.app.surface import surface
from dragoman.base import jsontext
from dragoman.base.clock import now_ms
from dragoman.context.plan import plan_of
from dragoman.loop.options import Connector
from dragoman.loop.rehearsal import rehearse
from dragoman.providers.auth import NoAuth
from dragoman.providers.connect import connect
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.contracts import BlobStore, HttpRequest, Provider
from dragoman.values.errors import Unauthorized
from dragoman.values.messages import ToolCall
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.app.setup import Setup
    from dragoman.context.plan import Plan
    from dragoman.values.messages import Message

ANY_MODEL = "gemini"
"""Whose tools and words are shown where no model can be chosen yet."""


class FirstRequest(msgspec.Struct, frozen=True):
    """What a new session begins with."""

    plan: Plan
    messages: tuple[Message, ...]
    request: HttpRequest | None
    """As it would be sent with nothing said; None where nothing is told before the first prompt."""
    window_is_known: bool


def show_new(setup: Setup) -> str | bytes:
    """The sizes of what a new session begins with, and its first message whole; with `--request` the request itself."""
    options = setup.options
    begun = asyncio.run(_begin(setup, options.request or _choose(setup)))
    if options.request is not None:
        return _request_of(begun, as_json=options.output_format == "json")
    if options.output_format == "json":
        body = msgspec.to_builtins(begun.plan) | {"messages": msgspec.to_builtins(begun.messages)}
        return jsontext.dumps(body) + "\n"
    from dragoman.conversation.page import look_of
    from dragoman.conversation.pages.context_page import page_of

    page = page_of(
        begun.plan,
        look_of(setup.config.color),
        title=say("context_new_title"),
        now_ms=now_ms(),
        everything=options.all,
        window_is_known=begun.window_is_known,
    )
    said = "\n\n".join(message.text for message in begun.messages) or say("context_new_nothing")
    return f"{page}\n{said}\n"


def _choose(setup: Setup) -> str:
    try:
        return choose_model(setup, catalog_of(setup)).model
    except Unauthorized:
        return ANY_MODEL


async def _begin(setup: Setup, model: str) -> FirstRequest:
    catalog = catalog_of(setup)

    def offline(name: str, blobs: BlobStore) -> Provider:
        return connect(name, auth=NoAuth(), env=setup.env, catalog=catalog, blobs=blobs)

    connector = Connector(offline, model, catalog, setup.env)
    opened = await open_agent(setup, ask=_ask, ask_user=_ask_user, waits=False, connector=connector)
    try:
        harness = opened.agent._harness
        history = await rehearse(harness)
        profile, view = harness.session.model.profile, history.view
        plan = plan_of(
            view,
            history.entries,
            history.cache,
            prior=profile.token_scale,
            window=profile.prompt_window,
            now_ms=now_ms(),
            prices_of=lambda deployment, model: profile.prices,
        )
        request = harness.session.model.provider.prepare(view.request) if view.messages else None
        return FirstRequest(plan, view.messages, request, profile.known)
    finally:
        await close_agent(opened.agent)


def _ask(call: ToolCall, intent: Intent) -> Allow | Deny:
    """Stands for the person of a conversation, who is never asked here: the model is told that somebody can answer."""
    raise AssertionError("nothing is run")


def _ask_user(question: str, choices: Sequence[str]) -> str:
    raise AssertionError("nothing is run")


def _request_of(begun: FirstRequest, *, as_json: bool) -> str | bytes:
    if begun.request is None:
        return say("context_new_nothing") + "\n"
    if as_json:
        return (
            jsontext.dumps({"method": begun.request.method, "url": begun.request.url, "body": jsontext.decode(begun.request.body)}) + "\n"
        )
    surface().messages.line(say("request_head", method=begun.request.method, url=begun.request.url))
    return begun.request.body + b"\n" * surface().is_terminal
