"""`dragoman context compress` and `prune`: the session is opened with its lock, an entry is added to it, and it is closed again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman.app.setup import context_of, make_agent
from dragoman.base import jsontext
from dragoman.base.words import say
from dragoman.cli import sessions
from dragoman.loop.history import History
from dragoman.values.errors import DragomanError, InputError, ProviderError

if TYPE_CHECKING:
    from dragoman.cli.context import Desk
    from dragoman.loop.agent import Agent
    from dragoman.loop.upkeep import Compression


def compress(desk: Desk) -> tuple[str, int]:
    """By the agent that would go on with the session, because a model is asked."""
    import asyncio

    options = msgspec.structs.replace(desk.options, resume=desk.found.session_id)
    try:
        agent, _ = make_agent(msgspec.structs.replace(desk.setup, options=options))
    except DragomanError as error:
        raise error.__cause__ if isinstance(error.__cause__, DragomanError) else error from None  # no other model is offered here
    sessions.tell(agent.notices)
    done = asyncio.run(_compressed(agent, desk.options.focus))
    written = desk.store.read(desk.found.path).entries
    if agent.history.entries and (not written or written[-1].seq < agent.history.entries[-1].seq):
        raise InputError(say("context_not_saved", path=desk.found.path))
    code = ProviderError.exit_code if done.status in ("empty", "truncated", "failed") else 0
    if desk.as_json:
        return jsontext.dumps(msgspec.to_builtins(done)) + "\n", code
    before, after = f"{done.original_tokens:,}", f"{done.new_tokens:,}"
    match done.status:
        case "compressed":
            words = say("compressed", before=before, after=after)
        case "noop":
            words = say("compress_noop", reason=done.reason, before=before)
        case status:
            words = say("compress_failed", status=status, reason=done.reason, before=before)
    return f"{words}\n", code


async def _compressed(agent: Agent, focus: str) -> Compression:
    async with agent:
        return await agent.compress(focus)


def prune(desk: Desk) -> str:
    """Everything the rule lets go, whatever the schedule. No service is asked, and no key is needed."""
    from dragoman.context.decide import Decider

    settings = context_of(desk.setup.config)
    at_once = msgspec.structs.replace(settings, prune=msgspec.structs.replace(settings.prune, schedule="request"))
    with sessions.writing(sessions.Desk(desk.options, desk.store, desk.setup.workspace), desk.found) as session:
        history = History(session.journal, entries=session.loaded.entries)
        view = history.view
        deployment, profile = desk.served(view.deployment, view.model)
        kind = deployment.cache if deployment else "none"
        due = Decider(at_once).decide(view, history.now_ms(), history.cache, profile, cache_kind=kind)
        before = view.tokens(profile.token_scale)
        if due.prune:
            history.prune(due.prune, due.saved_tokens, due.reason, due.premium_tokens)
        after = view.tokens(profile.token_scale)
    if desk.as_json:
        return jsontext.dumps({"pruned": len(due.prune), "original_tokens": before, "new_tokens": after}) + "\n"
    if not due.prune:
        return say("context_pruned_nothing", before=f"{before:,}") + "\n"
    return say("context_pruned_now", results=len(due.prune), before=f"{before:,}", after=f"{after:,}") + "\n"
