"""`/sessions …` in a conversation: the words of `dragoman sessions`. This session itself is changed by its agent, which has it open."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from dragoman.app.setup import Choice
from dragoman.base.ids import named_by
from dragoman.base.places import path_inside
from dragoman.conversation.subcommand import Printed, Subcommand, parse_words
from dragoman.sessions.projects import session_id_of
from dragoman.sessions.undo import changes_of_last_changing_run, undos_to_redo
from dragoman.values.errors import InputError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.conversation.talk import Talk


_OF_ONE = ("show", "fork", "rewind", "undo", "redo", "export")
"""Actions that are about this session where none is named."""


def sessions(talk: Talk, rest: str) -> Printed | Subcommand:
    """What it says, or what makes it. Raises DragomanError."""
    columns = talk.screen.columns
    options = parse_words(talk.setup, "sessions", rest)
    if len(options.words) == 1 and options.words[0] in _OF_ONE and not options.help:
        options = msgspec.structs.replace(options, words=(*options.words, talk.agent.session_id))
    action, session_id = (*options.words, "", "")[:2]
    if options.help or not session_id or not _is_here(talk, session_id):
        return Subcommand(options, columns)
    if action == "rewind" and options.to is not None:
        return Printed(_rewind(talk, options.to), ())
    if action == "undo":
        return Printed(_undo(talk, force=options.force), ())
    if action == "redo":
        return Printed(_redo(talk, force=options.force), ())
    if action == "delete":
        raise InputError(say("conversation.session_is_open"))
    return Subcommand(options, columns)


def _is_here(talk: Talk, session_id: str) -> bool:
    return session_id == "latest" or bool(named_by(session_id, [talk.agent.session_id]))


def rewind(talk: Talk, rest: str) -> str:
    return _rewind(talk, _entry_number(rest))


def _rewind(talk: Talk, seq: int) -> str:
    talk.agent.rewind(seq)
    return say("conversation.rewound_to", seq=seq)


def undo(talk: Talk, rest: str) -> str:
    return _undo(talk, force=_is_forced(rest))


def redo(talk: Talk, rest: str) -> str:
    return _redo(talk, force=_is_forced(rest))


def _is_forced(rest: str) -> bool:
    if rest not in ("", "--force"):
        raise InputError(say("unknown_option", name=rest[:40], hint=""))
    return bool(rest)


def _undo(talk: Talk, *, force: bool) -> str:
    """As `dragoman sessions undo`: of the last run that changed files. Later runs that changed none are skipped."""
    changes = changes_of_last_changing_run(talk.agent.history.entries)
    if not changes:
        return say("conversation.nothing_undone")
    paths = talk.agent.restore_files(changes[0].seq - 1, force=force)
    words = [("undo_restored" if os.path.lexists(path) else "undo_removed", path) for path in paths]
    return "\n".join(say(word, path=path_inside(path, talk.setup.workspace)) for word, path in words)


def _redo(talk: Talk, *, force: bool) -> str:
    if not undos_to_redo(talk.agent.history.entries):
        return say("conversation.nothing_redone")
    paths = talk.agent.redo(force=force)
    words = [("redo_restored" if os.path.lexists(path) else "redo_removed", path) for path in paths]
    lines = [say(word, path=path_inside(path, talk.setup.workspace)) for word, path in words]
    return "\n".join(lines or [say("conversation.redone_already")])


def export(talk: Talk, rest: str) -> str:
    """`/export [FILE]`, with the options of `dragoman sessions export`; also of a session that is not kept."""
    from dragoman.conversation.pages.session_files import ExportSources, export_to

    agent = talk.agent
    options = parse_words(talk.setup, "sessions", f"export {rest}")
    name = options.output or " ".join(options.words[1:]) or f"{agent.session_id}.md"
    path = os.path.join(talk.setup.workspace, os.path.expanduser(name))
    sources = ExportSources(talk.setup, talk.store, is_held=True)
    export_to(path, agent.history.entries, options.form, agent.blobs, sources, over=options.yes)
    return say("conversation.exported", path=path_inside(path, talk.setup.workspace))


# --- going on elsewhere


def open_named(talk: Talk, session_id: str) -> None:
    """Go on with another session, with the model it used."""
    options = msgspec.structs.replace(talk.setup.options, resume=session_id, model="")
    talk.start(talk.open_session(msgspec.structs.replace(talk.setup, options=options)))


def new(talk: Talk, rest: str) -> None:
    """With the model of this conversation, whatever it was begun with."""
    options = msgspec.structs.replace(talk.setup.options, resume=None)
    talk.start(talk.open_session(msgspec.structs.replace(talk.setup, options=options, choice=Choice(talk.model, "/model"))))


def fork(talk: Talk, rest: str) -> str:
    """Go on in a copy, up to an entry if one is named; the session itself stays as it is. Returns how to come back to it. Raises
    InputError."""
    entries, store = talk.agent.history.entries, talk.store
    at = _entry_number(rest) if rest else None
    if at is not None and not any(entry.seq == at for entry in entries):
        raise InputError(say("loop.no_entry", seq=at, last=entries[-1].seq if entries else 0))
    if talk.agent.session_id not in store.ids():
        raise InputError(say("conversation.nothing_to_fork"))
    found = store.find(talk.agent.session_id, talk.setup.workspace)
    original = store.short_id(talk.agent.session_id)
    open_named(talk, session_id_of(store.fork(found.path, at)))
    return say("conversation.forked", id=original)


def rename(talk: Talk, rest: str) -> str:
    if not rest:
        raise InputError(say("conversation.rename_usage"))
    talk.agent.history.title(" ".join(rest.split())[:200])
    return say("conversation.renamed", title=rest)


def _entry_number(word: str) -> int:
    if not (word.isascii() and word.isdecimal()) or len(word) > 9:
        raise InputError(say("conversation.entry_number"))
    return int(word)
