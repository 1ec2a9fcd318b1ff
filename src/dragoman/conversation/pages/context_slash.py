"""`/context …` in a conversation: the words of `dragoman context`, about this session unless another is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman.base.clock import now_ms
from dragoman.base.ids import named_by
from dragoman.conversation.page import Look
from dragoman.conversation.pages.context import ACTIONS, Words, parse_words
from dragoman.conversation.subcommand import Printed, Subcommand
from dragoman.conversation.subcommand import parse_words as parse_line
from dragoman.values.errors import InputError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.app.options import Options
    from dragoman.conversation.talk import Talk

CHANGES = ("compress", "prune", "keep", "drop", "undo")


def context(talk: Talk, rest: str, columns: int = 0) -> Printed | Subcommand | None:
    """The text to show, or what makes it; None if it runs in the background and reports when it is done. 0 columns: as wide as the
    conversation. Raises DragomanError."""
    columns = columns or talk.screen.columns
    options = parse_line(talk.setup, "context", rest)
    if options.help:
        return Subcommand(options, columns)
    words = parse_words(options)
    if words.action == "new" or (words == ("show", 0, "") and not talk.agent.history.view.messages):
        return Subcommand(msgspec.structs.replace(options, words=("new",)), columns)
    is_here = words.session_id in ("", "latest") or bool(named_by(words.session_id, [talk.agent.session_id]))
    if not is_here:
        if words.action == "compress":  # another agent on another session, while this one is open
            raise InputError(say("conversation.compress_elsewhere", id=words.session_id[:40]))
        return Subcommand(options, columns)
    if words.action in CHANGES:
        return _change(talk, words, options)
    if words.action == "show" and options.request is None and options.at is None and options.output_format == "text":
        return Printed(_page(talk, columns, everything=options.all), ())
    named = options if words.session_id else msgspec.structs.replace(options, words=(*options.words, talk.agent.session_id))
    return Subcommand(named, columns)


def _change(talk: Talk, words: Words, options: Options) -> Printed | None:
    from dragoman.conversation.actions import refuse_options

    refuse_options(options, ACTIONS[words.action], f"context {words.action}", "context_not_with")
    agent = talk.agent
    if words.action == "compress":
        talk.start(compress(talk, options.focus))
        return None
    if words.action == "prune":
        return Printed(say("conversation.pruned", count=agent.prune()), ())
    before = agent.plan().tokens
    {"keep": agent.keep, "drop": agent.drop, "undo": agent.undo_choice}[words.action](words.entry)
    return Printed(say(f"context_chosen_{words.action}", entry=words.entry, before=before, after=agent.plan().tokens), ())


async def compress(talk: Talk, rest: str) -> None:
    """What is to be kept may be named."""
    from dragoman.conversation.pages.context_change import compression_words

    talk.show_progress(say("compressing", model=talk.agent.model))
    talk.screen.message(compression_words(await talk.agent.compress(rest)))


def _page(talk: Talk, columns: int, *, everything: bool) -> str:
    from dragoman.conversation.pages.context_page import page_of

    agent = talk.agent
    return page_of(
        agent.plan(),
        Look(columns),
        session_id=agent.session_id,
        now_ms=now_ms(),
        everything=everything,
        window_is_known=agent.provider.profile(agent.model).known,
    )
