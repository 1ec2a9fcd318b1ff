"""Sends the input of hooks that are an address. In the mode auto only hosts are reached that web_fetch may reach, unless the user's own
hook is answered on this machine; what rules refuse to web_fetch is refused here in every mode."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dragoman.app.setup import Setup, catalog_of
from dragoman.base.words import say
from dragoman.extensions.hooks.definitions import Hook
from dragoman.extensions.hooks.posting import fill_headers, post_input
from dragoman.extensions.hooks.running import Posted
from dragoman.providers.catalog import secret_variables
from dragoman.values.messages import ToolSpec

if TYPE_CHECKING:
    from dragoman.loop.agent import Agent


async def post_hook(setup: Setup, agent: Agent | None, hook: Hook, body: bytes) -> Posted:
    try:
        split = urlsplit(hook.url)
        host, port = split.hostname or "", split.port
    except ValueError as error:
        return None, say("hooks.not_reached", reason=error)
    if agent is not None and (reason := _refusal(agent, hook, host, port)):
        return None, say("hooks.host_refused", host=host, reason=reason)
    return await post_input(hook, body, fill_headers(hook, setup.env, secret_variables(catalog_of(setup))))


def _refusal(agent: Agent, hook: Hook, host: str, port: int | None) -> str:
    shown = host if port in (None, 80, 443) else f"{host}:{port}"
    # It only tells somebody of a call: the mode plan does not forbid that.
    spec = ToolSpec.of("web_fetch", "", {"type": "object"}, kind="fetch", read_only=True)
    if not hook.project and _is_here(host) and agent.approvals.mode == "auto":
        return ""
    return agent.approvals.forbids_host(spec, shown)


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
