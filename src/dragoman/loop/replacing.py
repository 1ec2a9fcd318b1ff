"""Clears the conversation, or replaces it with messages from elsewhere. The record keeps what was there before.

It is a rewind to the beginning with the configuration written again, so whoever resumes the session goes on from the same point.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.context.repair import repair
from dragoman.loop.given_results import assign_results
from dragoman.loop.harness import Harness
from dragoman.loop.merging import checked
from dragoman.loop.session import VERSIONS
from dragoman.values.errors import InputError
from dragoman.values.messages import Message, ToolResult, user
from dragoman.values.parts import check_roles, curated, is_valid
from dragoman.values.record import Started
from dragoman.words import say


def clear(harness: Harness) -> None:
    """The model sees nothing of what was said. Model, system prompt, tools and settings stay."""
    history = harness.session.history
    view, entries = history.view, history.entries
    if not view.messages:
        return
    model, system, tools, settings = view.model, view.system, view.tools, view.settings
    session_id, placeholders, deployment, window = view.session_id, view.placeholders, view.deployment, view.window
    history.rewind(entries[0] if isinstance(entries[0], Started) else 0)
    if model:
        history.configure(
            model,
            system,
            tools,
            settings,
            session_id=session_id,
            placeholder=placeholders.commands,
            other_placeholder=placeholders.others,
            deployment=deployment,
            directories=harness.directories,
            versions=VERSIONS,
            window=window,
        )
    harness.look_again()


def set_history(harness: Harness, messages: Iterable[Message | Mapping[str, Any]], *, keep_open: bool = False) -> None:
    """Raises InputError where a message has a role that no service knows; then nothing is changed. With `keep_open`, calls of the last
    message go on waiting for their results."""
    given = checked(messages)
    valid = curated(given)
    waiting = valid[-1:] if keep_open and valid and valid[-1].calls and valid[-1].role == "assistant" else ()
    # A prompt follows: nothing need be added for it.
    *repaired, _ = repair((*valid[: len(valid) - len(waiting)], user("What is asked next."))).messages
    clear(harness)
    add_messages(harness, (*repaired, *waiting))


def add_messages(harness: Harness, messages: Iterable[Message]) -> None:
    """Put messages behind the conversation. Results are not messages of the record: the view makes them from the calls that ended.

    Raises InputError for a result without an open call, and for words while calls wait for their results.
    """
    history, session = harness.session.history, harness.session
    given = tuple(messages)
    check_roles(given)
    if session.log is not None:
        session.log.begin(session, harness.directories)
    for message in given:
        session.keep_bytes(message.parts)
        results, strange = assign_results(history.view.open_calls, message.results)
        if strange:
            raise InputError(say("loop.results_without_calls", results=", ".join(f"{each.name} ({each.call_id})" for each in strange)))
        for result in results.values():
            session.keep_bytes(result.content)
            history.finish_tool(result, "failed" if result.is_error else "finished")
        said = tuple(part for part in message.parts if not isinstance(part, ToolResult))
        if not said and message.results:
            continue
        if waiting := history.view.open_calls:
            raise InputError(say("loop.calls_without_results", calls=", ".join(f"{call.name} ({call.id})" for call in waiting)))
        entry = history.say(Message(message.role, said))
        if message.role == "assistant" and not is_valid(message):
            history.reject(entry, "nothing was said")  # on the record, and never sent
