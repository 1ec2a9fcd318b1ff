"""Sends the input of hooks that are an address.

In the mode auto only hosts are reached that web_fetch may reach, or that the user says yes to, unless the user's own hook is answered on
this machine; what rules refuse to web_fetch is refused here in every mode. A yes to a project's hook is one to what its address says: a
name that leads to this machine is refused.
"""

from __future__ import annotations

import asyncio
import ipaddress
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dragoman.app.setup import Setup, catalog_of
from dragoman.base import jsontext
from dragoman.extensions.hooks.definitions import Hook
from dragoman.extensions.hooks.posting import fill_headers, post_input
from dragoman.extensions.hooks.running import Posted
from dragoman.http.clients import open_transport
from dragoman.http.route import route_to
from dragoman.policy.approvals import gate_spec
from dragoman.policy.judge import GATE, MustAsk
from dragoman.providers.catalog import secret_variables
from dragoman.tools.web.addresses import non_public_kind, system_resolve
from dragoman.values.calls import Allow, Deny, run_at_work
from dragoman.values.messages import ToolCall, ToolSpec
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.agent import Agent

_NEVER_BY_NAME = frozenset({"this machine", "an unspecified address", "a link-local address", "a cloud's own service"})
"""Where a project's name may not lead. A company's own network may be where its hooks are answered."""


async def post_hook(setup: Setup, agent: Agent | None, hook: Hook, body: bytes) -> Posted:
    try:
        split = urlsplit(hook.url)
        host, port = split.hostname or "", split.port
    except ValueError as error:
        return None, say("hooks.not_reached", reason=error)
    if agent is not None and (reason := await _refusal(agent, hook, host, port)):
        return None, say("hooks.host_refused", host=host, reason=reason)
    headers = fill_headers(hook, setup.env, secret_variables(catalog_of(setup)))
    if not hook.project or _is_here(host) or route_to(hook.url, None).proxy:  # a proxy looks names up itself
        return await post_input(hook, body, headers)
    try:
        async with asyncio.timeout(hook.timeout_s):
            addresses = await system_resolve(host, port or (443 if split.scheme == "https" else 80))
    except (OSError, TimeoutError, UnicodeError) as error:
        return None, say("hooks.not_reached", reason=error)
    if kind := next((kind for kind in map(non_public_kind, addresses) if kind in _NEVER_BY_NAME), ""):
        return None, say("hooks.host_refused", host=host, reason=say("hooks.leads_here", kind=kind))
    return await post_input(hook, body, headers, partial(open_transport, address=addresses[0]))


async def _refusal(agent: Agent, hook: Hook, host: str, port: int | None) -> str:
    """Why nothing is sent there; empty: it may be. In the mode auto the user is asked about a host that they did not name, once."""
    shown = host if port in (None, 80, 443) else f"{host}:{port}"
    # It only tells somebody of a call: the mode plan does not forbid that.
    spec = ToolSpec.of("web_fetch", "", {"type": "object"}, kind="fetch", read_only=True)
    verdict = agent.approvals.judge_host(spec, shown)
    if isinstance(verdict, Deny):
        return verdict.reason
    if not isinstance(verdict, MustAsk) or agent.approvals.mode != "auto" or (not hook.project and _is_here(host)):
        return ""
    if isinstance(agent.approvals.judge_host(gate_spec(), shown), Allow):  # the user said yes to it, and had it saved
        return ""
    if agent.approvals.ask is None or run_at_work.get()() is None:  # nobody is there, or no longer
        return verdict.view.why
    answers: dict[str, asyncio.Future[Allow | Deny]] = agent.beside.setdefault("hosts_of_hooks", {})
    if shown not in answers:
        call = ToolCall(f"hook-{GATE}-{shown}", GATE, jsontext.dumps({"host": host, "port": port or 0}))
        answers[shown] = asyncio.ensure_future(agent.approvals.ask_host(call, verdict.view))
    try:
        answer = await asyncio.shield(answers[shown])
    except Exception:  # the person went away: no answer means no
        return verdict.view.why
    return answer.reason if isinstance(answer, Deny) else ""


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
