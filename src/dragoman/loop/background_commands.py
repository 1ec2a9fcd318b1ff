"""The background commands of a session: what the record says of them, and what is told when they have ended.

That one was started stands in the result of its call; that it has ended, in a later result or in a note of the program. So whoever resumes
the session knows which are gone: they ended with the program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from dragoman.base import jsontext
from dragoman.loop.session import Session
from dragoman.tools.background import BackgroundCommand, BackgroundCommands
from dragoman.tools.background_results import title_of
from dragoman.tools.output import Outputs
from dragoman.values.events import NoticeGiven, TurnEvent
from dragoman.values.messages import user
from dragoman.values.notes import COMMAND_ENDED, COMMAND_LOST
from dragoman.values.record import Entry, Said, ToolFinished
from dragoman.words import say

_ENDED = re.compile(r"^Background command (bg[0-9]+) ", re.MULTILINE)


def open_commands(session: Session, outputs: Outputs) -> BackgroundCommands:
    named = [int(id[2:]) for id, _, _ in _states(session.history.entries)]
    return BackgroundCommands(outputs, max(named, default=0))


def tell_ended(session: Session, emit: Callable[[TurnEvent], None]) -> None:
    notes: list[str] = []
    if session.is_resumed:
        session.is_resumed = False
        alive = {each.id for each in session.background.describe()} if session.background is not None else set[str]()
        for id, command in lost_commands(session.history.entries).items():
            if id not in alive:
                notes.append(COMMAND_LOST.format(id=id, command=command))
                emit(NoticeGiven("background", str(say("loop.background_lost", id=id, command=command))))
    for ended in session.background.take_ended() if session.background is not None else ():
        how, words = _how(ended)
        notes.append(COMMAND_ENDED.format(id=ended.id, command=title_of(ended.command), how=how))
        emit(NoticeGiven("background", str(say("loop.background_ended", id=ended.id, command=title_of(ended.command), how=words))))
        if ended.exit is not None and ended.exit.notice:
            emit(NoticeGiven("sandbox", ended.exit.notice))
    if notes:
        session.history.say(user("\n".join(notes)), "background")


def lost_commands(entries: Iterable[Entry]) -> dict[str, str]:
    """Ids and titles of those that were running when the record ends."""
    running: dict[str, str] = {}
    for id, command, is_running in _states(entries):
        if is_running:
            running[id] = command
        else:
            running.pop(id, None)
    return running


def _states(entries: Iterable[Entry]) -> Iterable[tuple[str, str, bool]]:
    """Id, title, and whether it runs, as the record tells one after the other."""
    for entry in entries:
        if isinstance(entry, Said) and entry.about == "background":
            yield from ((id, "", False) for id in _ENDED.findall(entry.message.text))
        elif isinstance(entry, ToolFinished) and entry.extras.startswith('{"background"'):
            told = (jsontext.decode_object(entry.extras) or {}).get("background")
            if isinstance(told, dict) and re.fullmatch("bg[0-9]{1,9}", str(told.get("id"))):
                yield str(told["id"]), str(told.get("command")), told.get("state") == "running"


def _how(command: BackgroundCommand) -> tuple[str, str]:
    """For the model, and for the user."""
    ended = command.exit
    match command.state:
        case "stopped":
            return "the user stopped it", say("loop.background_stopped")
        case "timed out":
            return "its time was up", say("loop.background_timed_out")
        case "failed":
            return "it could not be read any more", say("loop.background_failed")
        case _ if ended is not None and ended.signal:
            return f"ended by {ended.signal}", say("loop.background_signal", signal=ended.signal)
        case _:
            code = ended.code if ended is not None else 1
            return f"exit code {code}", say("loop.background_exit", code=code)
