"""`dragoman context`: shows what the next request contains, what was left out and why, and what it costs; compresses and prunes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dragoman.app.options import Options
from dragoman.app.setup import catalog_of, set_up
from dragoman.base import jsontext
from dragoman.base.clock import now_ms
from dragoman.base.text import one_line
from dragoman.conversation.actions import Action, Output, refuse_options
from dragoman.conversation.pages.context_command import ContextCommand, upkeep_of
from dragoman.loop.history import History
from dragoman.sessions.store import FileStore
from dragoman.values.errors import InputError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.context.plan import Plan
    from dragoman.values.record import Entry


def run_context(options: Options) -> Output:
    """Run the action that the words name, and return what is printed, with the exit code where it may be other than 0."""
    name, entry, session_id = parse_words(options)
    action = ACTIONS[name]
    refuse_options(options, action, _command_name(name), "context_not_with")

    setup = set_up(options)
    store = FileStore(setup.places.sessions)
    is_first = session_id in ("", "latest") and not store.list(setup.workspace)
    if name == "new" or (name == "show" and not session_id and options.at is None and is_first):
        from dragoman.conversation.pages.context_new import show_new

        if session_id:
            raise InputError(say("context_new_of_none", word=one_line(session_id, 60)))
        return show_new(setup)
    if is_first:
        raise InputError(say("context_no_session"))
    return action.run(ContextCommand(setup, store, store.find(session_id, setup.workspace), catalog_of(setup), entry))


class Words(NamedTuple):
    """What is to be done, the entry it is about where it needs one, and the session; empty: the latest."""

    action: str
    entry: int
    session_id: str


def parse_words(options: Options) -> Words:
    """An action and a session cannot be confused: session ids are hexadecimal. Raises InputError."""
    words = list(options.words)
    name = words.pop(0) if words and words[0] in ACTIONS else "show"
    entry = _parse_entry(name, words.pop(0) if words else "") if ACTIONS[name].operand else 0
    if len(words) > 1:
        raise InputError(say("context_too_many", command=_command_name(name), word=one_line(words[1], 60)))
    return Words(name, entry, words[0] if words else "")


def _parse_entry(action: str, word: str) -> int:
    if not (word.isascii() and word.isdecimal()) or len(word) > 9:
        raise InputError(say("context_needs_entry", command=_command_name(action), word=one_line(word, 60)))
    return int(word)


def _command_name(action: str) -> str:
    return "context" if action == "show" else f"context {action}"


# --- looking


def _show(command: ContextCommand) -> Output:
    entries = command.entries()
    if command.options.request is not None:
        from dragoman.conversation.pages.context_request import write_request

        return write_request(command, entries)
    plan = plan_now(command, entries)
    if command.as_json:
        return jsontext.dumps({"id": command.short_id} | msgspec.to_builtins(plan) | {"usage": plan.usage.as_told()}) + "\n"
    from dragoman.conversation.page import look_of
    from dragoman.conversation.pages.context_page import page_of

    known = command.find_model(plan.deployment, plan.model)[1].known
    return page_of(
        plan,
        look_of(command.setup.config.color),
        title=command.summary.title,
        session_id=command.short_id,
        now_ms=_moment_ms(command, entries),
        everything=command.options.all,
        window_is_known=known,
    )


def plan_now(command: ContextCommand, entries: Sequence[Entry]) -> Plan:
    """The plan as of now, or as of the entry of `--at`."""
    at_ms = _moment_ms(command, entries)
    return upkeep_of(command, History(entries=entries, now_ms=lambda: at_ms)).plan(command.prices)


def _moment_ms(command: ContextCommand, entries: Sequence[Entry]) -> int:
    return now_ms() if command.options.at is None or not entries else entries[-1].timestamp_ms


def _simulate(command: ContextCommand) -> str:
    from dragoman.conversation.pages.context_simulate import simulate

    return simulate(command, command.entries())


# --- changing


def _compress(command: ContextCommand) -> tuple[str, int]:
    from dragoman.conversation.pages.context_change import compress

    return compress(command)


def _prune(command: ContextCommand) -> str:
    from dragoman.conversation.pages.context_change import prune

    return prune(command)


def _keep(command: ContextCommand) -> str:
    from dragoman.conversation.pages.context_change import choose

    return choose(command, "keep")


def _drop(command: ContextCommand) -> str:
    from dragoman.conversation.pages.context_change import choose

    return choose(command, "drop")


def _undo(command: ContextCommand) -> str:
    from dragoman.conversation.pages.context_change import choose

    return choose(command, "undo")


ACTIONS: dict[str, Action[ContextCommand]] = {
    "show": Action(_show, options=("all", "at", "request")),
    "new": Action(_show, options=("all", "request")),
    "simulate": Action(_simulate, options=("at", "all")),
    "compress": Action(_compress, options=("focus",)),
    "prune": Action(_prune),
    "keep": Action(_keep, operand="ENTRY"),
    "drop": Action(_drop, operand="ENTRY"),
    "undo": Action(_undo, operand="ENTRY"),
}
