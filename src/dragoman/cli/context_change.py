"""`dragoman context compress` and `prune`: take the session's lock, append an entry, and close it."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import msgspec

from dragoman.app.console import Messages
from dragoman.app.opening import open_agent
from dragoman.app.setup import Setup
from dragoman.base import jsontext
from dragoman.base.words import say
from dragoman.cli.sessions_command import open_to_append, print_notices
from dragoman.loop.history import History
from dragoman.values.errors import DragomanError, InputError, ProviderError

if TYPE_CHECKING:
    from dragoman.cli.context_command import ContextCommand
    from dragoman.loop.compression import Compression


def compress(command: ContextCommand) -> tuple[str, int]:
    """Opens an agent on the session, because compressing needs a model."""
    options = msgspec.structs.replace(command.options, resume=command.summary.session_id)
    done, last_seq = asyncio.run(_compress(msgspec.structs.replace(command.setup, options=options), command.options.focus))
    written = command.store.read(command.summary.path).entries
    if last_seq and (not written or written[-1].seq < last_seq):
        raise InputError(say("context_not_saved", path=command.summary.path))
    code = ProviderError.exit_code if done.status in ("empty", "truncated", "failed") else 0
    if command.as_json:
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


async def _compress(setup: Setup, focus: str) -> tuple[Compression, int]:
    """The result, and the number of the session's last entry."""
    try:
        agent = (await open_agent(setup)).agent
    except DragomanError as error:
        raise error.__cause__ if isinstance(error.__cause__, DragomanError) else error from None  # no other model is offered here
    print_notices(agent.notices)
    async with agent:
        if sys.stderr.isatty():
            Messages().line(say("compressing", model=agent.model))
        done = await agent.compress(focus)
        return done, agent.history.entries[-1].seq if agent.history.entries else 0


def prune(command: ContextCommand) -> str:
    """Prune everything the rule allows, whatever the schedule. Needs no service and no key."""
    from dragoman.cli.context_command import upkeep_of

    with open_to_append(command.store, command.summary.path) as session:
        history = History(session.journal, entries=session.loaded.entries)
        upkeep = upkeep_of(command, history)
        before = upkeep.size.tokens
        pruned = upkeep.prune()
        after = upkeep.size.tokens
    if command.as_json:
        return jsontext.dumps({"pruned": pruned, "original_tokens": before, "new_tokens": after}) + "\n"
    if not pruned:
        return say("context_pruned_nothing", before=f"{before:,}") + "\n"
    return say("context_pruned_now", results=pruned, before=f"{before:,}", after=f"{after:,}") + "\n"
