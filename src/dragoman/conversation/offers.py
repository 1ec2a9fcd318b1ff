"""Asks once, before the conversation begins, whether the MCP servers and hooks of a project may run on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dragoman.app.asking import Ask, FirstQuestion
from dragoman.app.setup import Setup, has_server_files, may_have_hooks
from dragoman.base.visible import escape_hidden
from dragoman.conversation.code_lines import code_lines
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.app.mcp_rows import ServerRow

MAX_OFFERS = 20
"""Those are asked about at one start; the others are listed by `dragoman mcp` and `dragoman hooks`."""


class Offer(NamedTuple):
    """A server or hook of the project that the user is asked about."""

    lines: tuple[str, ...]
    """What would run, whole, and where it stands."""
    decide: Callable[[bool], None]
    """Remembers the answer. Raises OSError."""


def ask_about_offers(setup: Setup, ask: Ask) -> str:
    """Ask about what waits for a yes, and remember the answer; returns why that was not possible. Raises EOFError if the user leaves."""
    offers = [*_servers(setup), *_hooks(setup)]
    if not offers:
        return ""
    shown, more = offers[:MAX_OFFERS], len(offers) - MAX_OFFERS
    try:
        _ask_about(shown, more, ask)
    except OSError as error:
        return say("offers_not_saved", reason=error.strerror or error)
    return ""


def _ask_about(offers: Sequence[Offer], more: int, ask: Ask) -> None:
    lines = [f"  {line}" for offer in offers for line in offer.lines]
    lines += [f"  {say('offers_more', count=more)}"] if more > 0 else []
    if len(offers) == 1:
        answer = ask(_one((say("offers_intro_one"), *lines)))
    else:
        said = {"y": say("offers_used"), "n": say("offers_not_used"), "e": say("offers_said_each")}
        answer = ask(FirstQuestion((say("offers_intro"), *lines), say("offers_question"), said, say("offers_why")))
    for offer in offers:
        if one := ask(_one(offer.lines)) if answer == "e" else answer:
            offer.decide(one == "y")


def _one(intro: tuple[str, ...]) -> FirstQuestion:
    return FirstQuestion(intro, say("offers_question_one"), {"y": say("offers_used"), "n": say("offers_not_used")}, say("offers_why"))


def _servers(setup: Setup) -> Iterator[Offer]:
    if not has_server_files(setup):
        return
    from dragoman.app.mcp import consent_of
    from dragoman.app.mcp_rows import rows_of

    consent = consent_of(setup)

    def offer(row: ServerRow) -> Offer:
        def decide(is_yes: bool) -> None:
            consent.decide(row.server, yes=is_yes, known=row.known)

        lines = code_lines(consent.code(row.server), setup.trust.root or setup.workspace)
        return Offer(server_lines(row, _place(setup, str(row.server.origin)), lines), decide)

    for row in rows_of(setup)[0]:
        if row.server.is_enabled and row.verdict not in ("yes", "no"):
            yield offer(row)


def server_lines(row: ServerRow, where: str, code: Sequence[str] = ()) -> tuple[str, ...]:
    """What would run, and all that it is given, as it is written: no value of the user's own. `code`: what it runs of the project."""
    server = row.server
    lines = [say("offers_server", name=server.name, shown=server.shown, where=where), *(f"  {line}" for line in code)]
    if row.verdict in ("changed", "tools_changed"):
        lines.append(f"  {say(f'mcp_servers.question_{row.verdict}')}")
    if server.given:
        lines.append(f"  {say('mcp_servers.question_env', names=', '.join(server.given))}")
    if server.takes:
        lines.append(f"  {say('mcp_servers.question_takes', names=', '.join(server.takes))}")
    return _visible(lines)


def _hooks(setup: Setup) -> Iterator[Offer]:
    if not may_have_hooks(setup):
        return
    from dragoman.app.finding_hooks import find_hooks
    from dragoman.extensions.hooks.agreement import agree, code_run_by
    from dragoman.extensions.hooks.definitions import Hook

    def offer(hook: Hook) -> Offer:
        event = " ".join(filter(None, (hook.named, hook.matcher)))
        lines = [say("offers_hook", event=event, shown=hook.line, where=_place(setup, str(hook.origin)))]
        lines += [f"  {line}" for line in code_lines(code_run_by(hook), hook.project)]

        def decide(is_yes: bool) -> None:
            agree(setup.places.hooks_file, [hook], is_yes=is_yes)

        return Offer(_visible(lines), decide)

    yield from map(offer, find_hooks(setup).unasked)


def _place(setup: Setup, path: str) -> str:
    """The path, relative to the workspace."""
    start = os.path.join(setup.workspace, "")
    return path.removeprefix(start)


def _visible(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(escape_hidden(line, one_line=True) for line in lines)
