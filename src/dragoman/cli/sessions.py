"""`dragoman sessions`: what there is, what was said, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from dragoman.app.console import Messages, confirm
from dragoman.app.options import Options
from dragoman.app.setup import set_up
from dragoman.base import jsontext
from dragoman.base.clock import now_ms
from dragoman.base.text import closest, one_line
from dragoman.base.words import say
from dragoman.values.errors import InputError

if TYPE_CHECKING:
    from dragoman.sessions.log import Loaded
    from dragoman.sessions.store import Session, Store
    from dragoman.sessions.summary import Summary
    from dragoman.values.record import Entry


class Desk(NamedTuple):
    """What every action needs."""

    options: Options
    store: Store
    workspace: str

    @property
    def operand(self) -> str:
        return self.options.words[1]

    @property
    def as_json(self) -> bool:
        return self.options.output_format == "json"

    def find(self) -> Summary:
        """The session that was named."""
        return self.store.find(self.operand, self.workspace)

    def read(self, path: str) -> Loaded:
        """A session to look at. What is wrong with its file is told, and the rest is shown."""
        loaded = self.store.read(path)
        tell(loaded.notices())
        return loaded


class Action(NamedTuple):
    does: Callable[[Desk], str]
    operand: str = ""
    """What it needs: `ID`, `TEXT` or `FILE`."""
    options: tuple[str, ...] = ()


def do(options: Options) -> str:
    """Do what the words say, and return what is to be printed."""
    name = options.words[0] if options.words else "list"
    action = ACTIONS.get(name)
    if action is None:
        raise InputError(_unknown(name))
    _check(name, action, options)
    from dragoman.sessions.store import Store

    setup = set_up(options)
    return action.does(Desk(options, Store(setup.places.sessions), setup.workspace))


def tell(notices: tuple[str, ...]) -> None:
    messages = Messages()
    for notice in notices:
        messages.line(say("notice", text=notice))


# --- looking


def _list(desk: Desk) -> str:
    from dragoman.cli.session_list import as_json, as_table

    found = desk.store.list(None if desk.options.all else desk.workspace)
    if desk.as_json:
        return jsontext.dumps({"sessions": as_json(found, numbered=not desk.options.all)}) + "\n"
    if not found:
        return say("sessions_none_at_all" if desk.options.all else "sessions_none") + "\n"
    return as_table(found, now_ms=now_ms(), everywhere=desk.options.all)


def _search(desk: Desk) -> str:
    from dragoman.cli.session_list import hits_as_json, hits_as_text

    found = desk.store.search(desk.operand, None if desk.options.all else desk.workspace)
    if desk.as_json:
        return jsontext.dumps({"hits": hits_as_json(found)}) + "\n"
    if not found:
        elsewhere = "" if desk.options.all else say("sessions_try_all")
        return say("sessions_not_found", text=one_line(desk.operand, 60), elsewhere=elsewhere) + "\n"
    return hits_as_text(found, now_ms=now_ms())


def _show(desk: Desk) -> str:
    from dragoman.cli.session_show import as_json, as_text
    from dragoman.sessions.transcript import read_transcript

    transcript = read_transcript(desk.read(desk.find().path).entries)
    return jsontext.dumps(as_json(transcript)) + "\n" if desk.as_json else as_text(transcript)


# --- changing


def _fork(desk: Desk) -> str:
    from dragoman.sessions.projects import session_id_of

    found = desk.find()
    if desk.options.at is not None:
        _require_seq(desk.store.read(found.path).entries, desk.options.at, "--at", found)
    return say("session_forked", id=session_id_of(desk.store.fork(found.path, desk.options.at))) + "\n"


def _rewind(desk: Desk) -> str:
    found, to_seq = desk.find(), desk.options.to
    if to_seq is None:
        raise InputError(say("rewind_where", id=found.session_id))
    from dragoman.values.record import Rewound

    with writing(desk, found) as session:
        entries = session.loaded.entries
        _require_seq(entries, to_seq, "--to", found)
        session.journal.append(Rewound(entries[-1].seq + 1, now_ms(), to_seq))
    return say("session_rewound", id=found.session_id, seq=to_seq) + "\n"


def _delete(desk: Desk) -> str:
    found = desk.find()
    if not desk.options.yes:
        confirm(say("delete_it", id=found.session_id, title=one_line(found.title, 60)))
    desk.store.delete(found.path)
    return say("session_deleted", id=found.session_id) + "\n"


def _undo(desk: Desk) -> str:
    from dragoman.cli.session_undo import undo_last_run

    with writing(desk, desk.find()) as session:
        return undo_last_run(session, force=desk.options.force)


def _export(desk: Desk) -> str:
    from dragoman.cli.session_files import export_session

    return export_session(desk, desk.find().path)


def _import(desk: Desk) -> str:
    from dragoman.cli.session_files import import_file

    return import_file(desk)


ACTIONS = {
    "list": Action(_list, options=("all",)),
    "show": Action(_show, "ID"),
    "search": Action(_search, "TEXT", ("all",)),
    "fork": Action(_fork, "ID", ("at",)),
    "rewind": Action(_rewind, "ID", ("to",)),
    "export": Action(_export, "ID", ("form", "output", "yes")),
    "delete": Action(_delete, "ID", ("yes",)),
    "import": Action(_import, "FILE"),
    "undo": Action(_undo, "ID", ("force",)),
}
_FLAGS = {"all": "--all", "at": "--at", "to": "--to", "form": "--as", "output": "--output", "yes": "--yes", "force": "--force"}
_SPEAKS_JSON = ("list", "show", "search")


# --- the words of the command


def _check(name: str, action: Action, options: Options) -> None:
    operands = options.words[1:]
    if action.operand and not operands:
        raise InputError(say("session_needs", action=name, operand=action.operand))
    if len(operands) > bool(action.operand):
        raise InputError(say("too_many_words", command=f"sessions {name}", word=one_line(operands[-1], 60)))
    for key, flag in _FLAGS.items():
        if getattr(options, key) not in (None, "", False) and key not in action.options:
            raise InputError(say("not_for_command", name=flag, command=f"sessions {name}"))
    if options.output_format != "text" and name not in _SPEAKS_JSON:
        raise InputError(say("not_for_command", name="--output-format", command=f"sessions {name}"))


def _unknown(name: str) -> str:
    close = closest(name, ACTIONS)
    hint = say("did_you_mean", name=close[0]) if close else ""
    return say("session_unknown_action", name=one_line(name, 60), hint=hint, known=", ".join(ACTIONS))


# --- what changing needs


@contextmanager
def writing(desk: Desk, found: Summary) -> Iterator[Session]:
    """A session to append to, under its lock. What was appended is on disk at the end."""
    session = desk.store.open(found.path)
    try:
        tell(session.loaded.notices())
        yield session
    finally:
        session.journal.close()
    if not session.journal.saved:
        raise InputError(say("session_not_saved", path=session.path, reason=session.journal.fault))


def _require_seq(entries: tuple[Entry, ...], seq: int, flag: str, found: Summary) -> None:
    if not any(entry.seq == seq for entry in entries):
        last = entries[-1].seq if entries else 0
        raise InputError(say("session_no_seq", flag=flag, seq=seq, last=last, id=found.session_id))
