"""`dragoman sessions`: list, show, search and change stored sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.app.asking import LineQuestions, confirm
from dragoman.app.options import Options
from dragoman.app.setup import set_up
from dragoman.app.surface import surface
from dragoman.base import jsontext
from dragoman.base.clock import now_ms
from dragoman.base.text import did_you_mean, one_line, size
from dragoman.conversation.actions import Action, Output, refuse_options
from dragoman.conversation.pages.sessions_command import SessionsCommand, open_to_append
from dragoman.sessions.last_run import is_held
from dragoman.sessions.projects import session_id_of
from dragoman.sessions.store import FileStore
from dragoman.values.errors import InputError
from dragoman.values.record import Rewound
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.sessions.summary import Summary
    from dragoman.values.record import Entry


RESUME = "resume"
"""Beside ACTIONS: it is the same as `dragoman --resume`, and a conversation."""


def run_sessions(options: Options) -> Output:
    """Run the action that the words name, and return what is printed."""
    name = options.words[0] if options.words else "list"
    if name == RESUME:  # with one session it never comes here: see program.py
        raise InputError(say("too_many_words", command=f"sessions {name}", word=one_line(options.words[-1], 60)))
    action = ACTIONS.get(name)
    if action is None:
        raise InputError(_unknown_action(name))
    _check_operand(name, action, options.words[1:])
    refuse_options(options, action, f"sessions {name}")

    setup = set_up(options)
    return action.run(SessionsCommand(setup, FileStore(setup.places.sessions)))


# --- looking


def _list(command: SessionsCommand) -> str:
    from dragoman.conversation.pages.session_list import as_json, as_table

    found = command.store.list(None if command.options.all else command.workspace)
    found = [each for each in found if not each.parent]  # nobody goes on with the conversation of an agent that was called
    short = command.store.short_ids(each.session_id for each in found)
    if command.as_json:
        return jsontext.dumps({"sessions": as_json(found, short)}) + "\n"
    if not found:
        return say("sessions_none_at_all" if command.options.all else "sessions_none") + "\n"
    return as_table(found, short, now_ms=now_ms(), everywhere=command.options.all)


def _search(command: SessionsCommand) -> str:
    from dragoman.conversation.pages.session_list import hits_as_json, hits_as_text

    found = command.store.search(command.operand, None if command.options.all else command.workspace)
    short = command.store.short_ids(each.summary.session_id for each in found)
    if command.as_json:
        return jsontext.dumps({"hits": hits_as_json(found, short)}) + "\n"
    if not found:
        elsewhere = "" if command.options.all else say("sessions_try_all")
        return say("sessions_not_found", text=one_line(command.operand, 60), elsewhere=elsewhere) + "\n"
    return hits_as_text(found, short, now_ms=now_ms())


def _show(command: SessionsCommand) -> str:
    from dragoman.conversation.pages.session_show import as_json, as_text
    from dragoman.sessions.transcript import read_transcript

    found = command.find()
    entries, short = command.read(found.path).entries, command.store.short_id(found.session_id)
    transcript, held = read_transcript(entries), is_held(found.path)
    called = [each for each in command.store.list() if each.parent == found.session_id]
    ids = command.store.short_ids([each.session_id for each in called] + [transcript.parent] * bool(transcript.parent))
    if command.as_json:
        subagents = [{"id": ids[each.session_id], "session_id": each.session_id, "title": each.title} for each in reversed(called)]
        return jsontext.dumps({"id": short} | as_json(transcript, is_held=held) | {"subagents": subagents}) + "\n"
    by = [say("subagents.called_by", id=ids[transcript.parent])] if transcript.parent else []
    links = [say("subagents.session_link", id=ids[each.session_id], title=one_line(each.title, 100)) for each in reversed(called)]
    return as_text(entries, is_held=held) + "".join(f"{line}\n" for line in (*by, *links))


# --- changing


def _fork(command: SessionsCommand) -> str:
    found = command.find()
    if command.options.at is not None:
        _require_seq(command, command.options.at, command.store.read(found.path).entries, "--at", found)
    path = command.store.fork(found.path, command.options.at)
    return say("session_forked", session=command.name(found), id=command.store.short_id(session_id_of(path)), path=path) + "\n"


def _rewind(command: SessionsCommand) -> str:
    found, to_seq = command.find(), command.options.to
    if to_seq is None:
        raise InputError(say("rewind_where", id=command.store.short_id(found.session_id)))

    with open_to_append(command.store, found.path) as session:
        entries = session.loaded.entries
        _require_seq(command, to_seq, entries, "--to", found)
        session.journal.append(Rewound(entries[-1].seq + 1, now_ms(), to_seq))
    words = say("session_rewound", session=command.name(found), seq=to_seq, path=found.path, id=command.store.short_id(found.session_id))
    return f"{words}\n"


def _delete(command: SessionsCommand) -> str:
    found = command.find()
    name = command.name(found)
    if not command.options.yes:
        confirm(say("delete_it", session=name), LineQuestions() if surface().can_ask else None)
    removed = command.store.delete(found.path)
    return say("session_deleted", session=name, path=found.path, size=size(removed.freed_bytes)) + "\n"


def _undo(command: SessionsCommand) -> str:
    from dragoman.conversation.pages.session_undo import undo_last_run

    found = command.find()
    with open_to_append(command.store, found.path) as session:
        return undo_last_run(session, command.name(found), command.memory_file, force=command.options.force)


def _redo(command: SessionsCommand) -> str:
    from dragoman.conversation.pages.session_undo import redo_last_undo

    found = command.find()
    with open_to_append(command.store, found.path) as session:
        return redo_last_undo(session, command.name(found), command.memory_file, force=command.options.force)


def _export(command: SessionsCommand) -> str:
    from dragoman.conversation.pages.session_files import export_session

    return export_session(command, command.find())


def _import(command: SessionsCommand) -> str:
    from dragoman.conversation.pages.session_files import import_file

    return import_file(command)


ACTIONS: dict[str, Action[SessionsCommand]] = {
    "list": Action(_list, options=("all",)),
    "show": Action(_show, "[ID]"),
    "search": Action(_search, "TEXT", ("all",)),
    "fork": Action(_fork, "[ID]", ("at",), json=False),
    "rewind": Action(_rewind, "[ID]", ("to",), json=False),
    "export": Action(_export, "[ID]", ("form", "output", "yes"), json=False),
    "delete": Action(_delete, "ID", ("yes",), json=False),
    "import": Action(_import, "FILE", json=False),
    "undo": Action(_undo, "[ID]", ("force",), json=False),
    "redo": Action(_redo, "[ID]", ("force",), json=False),
}


# --- the words of the command


def _check_operand(name: str, action: Action[SessionsCommand], operands: tuple[str, ...]) -> None:
    if action.operand and not action.operand.startswith("[") and not "".join(operands).strip():
        raise InputError(say("session_needs", action=name, operand=action.operand))
    if len(operands) > bool(action.operand):
        raise InputError(say("too_many_words", command=f"sessions {name}", word=one_line(operands[-1], 60)))


def _unknown_action(name: str) -> str:
    known = [*ACTIONS, RESUME]
    return say("unknown_action", name=one_line(name, 60), command="sessions", hint=did_you_mean(name, known), known=", ".join(known))


# --- what changing needs


def _require_seq(command: SessionsCommand, seq: int, entries: tuple[Entry, ...], flag: str, found: Summary) -> None:
    if not any(entry.seq == seq for entry in entries):
        last = entries[-1].seq if entries else 0
        raise InputError(say("session_no_seq", flag=flag, seq=seq, last=last, id=command.store.short_id(found.session_id)))
