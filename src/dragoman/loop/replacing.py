"""Clears the conversation, or replaces it with messages from elsewhere. The record keeps what was there before.

It is a rewind to the beginning with the configuration written again, so whoever resumes the session goes on from the same point.
"""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.base.words import say
from dragoman.context.repair import repair
from dragoman.loop.harness import Harness
from dragoman.loop.session import VERSIONS
from dragoman.values.errors import InputError
from dragoman.values.messages import Message, ToolResult, user
from dragoman.values.parts import check_roles, curated, shown
from dragoman.values.record import Started


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


def set_history(harness: Harness, messages: Iterable[Message]) -> None:
    """Raises InputError where a message has a role that no service knows; then nothing is changed."""
    given = tuple(messages)
    for position, message in enumerate(given):
        if not isinstance(message, Message):
            raise InputError(
                say("loop.option_wrong", name=f"messages[{position}]", expected=say("loop.option_message"), given=shown(message))
            )
    check_roles(given)
    clear(harness)
    *repaired, _ = repair((*curated(given), user("What is asked next."))).messages  # a prompt follows: nothing need be added for it
    for message in repaired:
        _say(harness, message)


def _say(harness: Harness, message: Message) -> None:
    """Results are not messages of the record: the view makes them from the calls that ended."""
    history = harness.session.history
    for result in message.results:
        history.finish_tool(result, "failed" if result.is_error else "finished")
    said = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    if said or not message.results:
        history.say(Message(message.role, said))
