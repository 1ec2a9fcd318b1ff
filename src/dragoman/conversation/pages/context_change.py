"""`dragoman context compress`, `prune`, `keep`, `drop` and `undo`: take the session's lock, append an entry, and close it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.app.opening import open_agent
from dragoman.app.setup import Setup
from dragoman.app.surface import surface
from dragoman.base import jsontext
from dragoman.base.text import strip_controls
from dragoman.conversation.pages.sessions_command import name_of, open_to_append, print_notices
from dragoman.loop.history import History
from dragoman.values.errors import DragomanError, InputError, ProviderError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.conversation.pages.context_command import ContextCommand
    from dragoman.loop.compression import Compression


def compress(command: ContextCommand) -> tuple[str, int]:
    """Opens an agent on the session, because compressing needs a model."""
    options = msgspec.structs.replace(command.options, resume=command.summary.session_id)
    before = _last_seq(command)
    done, last_seq = asyncio.run(_compress(msgspec.structs.replace(command.setup, options=options), command.options.focus))
    written = _last_seq(command)
    if written < last_seq:
        raise InputError(say("context_not_saved", path=command.summary.path))
    code = ProviderError.exit_code if done.status in ("empty", "truncated", "failed") else 0
    if command.as_json:
        return jsontext.dumps(_about(command) | msgspec.to_builtins(done)) + "\n", code
    return f"{compression_words(done)} {_session_words(command, grown=written > before)}\n", code


def compression_words(done: Compression) -> str:
    before, after, reason = done.original_tokens, done.new_tokens, done.reason
    match done.status:
        case "compressed":
            return say("compressed" if after <= before else "compressed_longer", before=before, after=after)
        case _ if done.pruned:
            return say("compress_pruned", reason=reason, results=done.pruned, before=before, after=after)
        case "noop":
            return say("compress_noop", reason=reason, before=before)
        case status:
            return say("compress_failed", status=status, reason=reason, before=before)


async def _compress(setup: Setup, focus: str) -> tuple[Compression, int]:
    """The result, and the number of the session's last entry."""
    try:
        agent = (await open_agent(setup)).agent
    except DragomanError as error:
        raise error.__cause__ if isinstance(error.__cause__, DragomanError) else error from None  # no other model is offered here
    print_notices(agent.notices)
    async with agent:
        if (messages := surface().messages).is_terminal:
            messages.line(say("compressing", model=agent.model))
        done = await agent.compress(focus)
        return done, agent.history.entries[-1].seq if agent.history.entries else 0


def prune(command: ContextCommand) -> str:
    """Prune everything the rule allows, whatever the schedule. Needs no service and no key."""
    from dragoman.conversation.pages.context_command import upkeep_of

    with open_to_append(command.store, command.summary.path) as session:
        history = History(session.journal, entries=session.loaded.entries)
        upkeep = upkeep_of(command, history)
        before = upkeep.size.tokens
        pruned = upkeep.prune()
        after = upkeep.size.tokens
    if command.as_json:
        return jsontext.dumps(_about(command) | {"pruned": pruned, "original_tokens": before, "new_tokens": after}) + "\n"
    words = (
        say("context_pruned_now", results=pruned, before=before, after=after) if pruned else say("context_pruned_nothing", before=before)
    )
    return f"{words} {_session_words(command, grown=pruned > 0)}\n"


Choice = Literal["keep", "drop", "undo"]


def choose(command: ContextCommand, choice: Choice) -> str:
    """About one result: let it go, keep it, or take that back. Needs no service and no key."""
    from dragoman.conversation.pages.context_command import upkeep_of
    from dragoman.loop import choosing

    acts = {"keep": choosing.keep, "drop": choosing.drop, "undo": choosing.undo_choice}
    with open_to_append(command.store, command.summary.path) as session:
        history = History(session.journal, entries=session.loaded.entries)
        upkeep = upkeep_of(command, history)
        before, count = upkeep.size.tokens, len(history.entries)
        acts[choice](upkeep, history, command.entry)
        after, grown = upkeep.size.tokens, len(history.entries) > count
    if command.as_json:
        done = {"entry": command.entry, "original_tokens": before, "new_tokens": after}
        return jsontext.dumps(_about(command) | done) + "\n"
    words = say(f"context_chosen_{choice}", entry=command.entry, before=before, after=after)
    return f"{words} {_session_words(command, grown=grown)}\n"


# --- which session


def _session_words(command: ContextCommand, *, grown: bool) -> str:
    """Which session it was, and whether its log has grown. Told from the log itself, whatever the attempt came to."""
    name = name_of(command.store, command.summary)
    return say("context_recorded", session=name, path=command.summary.path) if grown else say("context_as_it_was", session=name)


def _about(command: ContextCommand) -> dict[str, str]:
    summary = command.summary
    title = strip_controls(summary.title)
    return {"id": command.short_id, "session_id": summary.session_id, "title": title, "path": summary.path}


def _last_seq(command: ContextCommand) -> int:
    entries = command.store.read(command.summary.path).entries
    return entries[-1].seq if entries else 0
