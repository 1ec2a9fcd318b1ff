"""Every command of `sessions` and `context` that changes something says which session and which file, and never that nothing changed.

"Nothing changed" is said if and only if no log has changed. A new action has to be added here, or to those that only look.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.conversation.pages.context import ACTIONS as CONTEXT
from dragoman.conversation.pages.sessions import ACTIONS as SESSIONS
from dragoman.loop.history import History
from dragoman.sessions.log import read_log
from dragoman.sessions.store import FileStore, StoredSession
from dragoman.sessions.summary import Summary
from dragoman.values.messages import FinishReason, Response, ToolCall, assistant, tool_result, user
from dragoman.values.record import FileChange, NotCompressed, Pruned, RunEnded
from dragoman.values.usage import Usage
from program import Place, Service

LOOKING = {"sessions list", "sessions show", "sessions search", "context show", "context simulate", "context new"}
NOTHING_CHANGED = re.compile("as it was|as before|nothing was (changed|done)|unchanged", re.IGNORECASE)
MINUTE_MS = 60_000
SNAPSHOT = "text: <state_snapshot><goal>Fix the parser</goal><done>Ran make.</done></state_snapshot>"


class Desk:
    """A session with outdated results, and a file that its last run changed."""

    def __init__(self, place: Place, serve: Callable[..., Service]) -> None:
        self.place = place
        self.serve = serve
        self.store = FileStore(place.home / "dragoman" / "data" / "sessions")
        self.take(self.made())

    def take(self, session: StoredSession) -> None:
        self.session = session
        self.short = session.session_id[-8:-4]

    def made(self, *, calls: int = 30) -> StoredSession:
        session = self.store.create(self.place.work)
        now = [time.time_ns() // 1_000_000 - 90 * MINUTE_MS]
        history = History(session.journal, entries=session.loaded.entries, now_ms=lambda: now[0])
        history.configure("claude-opus-5", "Be good. " * 40, session_id=session.session_id, deployment="anthropic")
        history.say(user("Fix the parser"))
        for number in range(calls):
            call = ToolCall(f"c{number}", "run_shell", '{"command":"make test"}')
            usage = Usage(10, 900 + 400 * number, 400, 50)
            history.answer(Response(assistant("Running it.", call), FinishReason.TOOL_CALLS, usage=usage))
            history.start_tool(call)
            history.finish_tool(tool_result(call, "output line\n" * 80))
            now[0] += MINUTE_MS
        session.journal.append(RunEnded(history.entries[-1].seq + 1, now[0], "answered"))
        session.journal.close()
        return session

    def change_file(self) -> Path:
        opened = self.store.open(self.session.path)
        history = History(opened.journal, entries=opened.loaded.entries)
        file = (self.place.work / "changed.txt").resolve()
        history.say(user("write it"))
        call = ToolCall("w", "write_file", "{}")
        history.answer(Response(assistant(call), FinishReason.TOOL_CALLS))
        history.start_tool(call)
        before, after = opened.blobs.put("", b"before").sha256, opened.blobs.put("", b"after").sha256
        file.write_bytes(b"after")
        history.change_files(call.id, [FileChange(str(file), before, after, 0o644)])
        history.finish_tool(tool_result(call, "written"))
        opened.journal.close()
        return file

    def set(self, toml: str) -> None:
        config = self.place.home / "dragoman" / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(toml, encoding="utf-8")

    def logs(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in Path(self.store.root).rglob("*.jsonl")}


class Case(msgspec.Struct, frozen=True):
    """A command line, what must be prepared, and what must come of it."""

    command: str
    changes: bool
    prepare: Callable[[Desk], Any] = lambda desk: None
    file: Callable[[Desk], str] = lambda desk: desk.session.path
    """The file that the output must name, if it changed one."""
    code: int = 0


def _no_room(desk: Desk) -> None:
    """Above the threshold, and the model writes no summary: old results go instead."""
    desk.set("[context.compress]\nthreshold_tokens = 4000\n")
    desk.serve("text: I would rather not.")


def _nothing_said(desk: Desk) -> None:
    desk.take(desk.made(calls=0))
    desk.serve(SNAPSHOT)


def _newest(desk: Desk) -> str:
    return desk.store.list(desk.place.work)[0].path


def _imported(desk: Desk) -> Summary:
    return next(each for each in desk.store.list(desk.place.work) if each.imported_from)


def _undone(desk: Desk) -> None:
    desk.change_file()
    desk.place.run("sessions", "undo", desk.short)


CASES = {
    "fork": Case("sessions fork {id}", changes=True, file=_newest),
    "rewind": Case("sessions rewind {id} --to 3", changes=True),
    "undo": Case("sessions undo {id}", changes=True, prepare=Desk.change_file),
    "undo without anything to undo": Case("sessions undo {id}", changes=False),
    "redo": Case("sessions redo {id}", changes=True, prepare=_undone),
    "redo without anything to redo": Case("sessions redo {id}", changes=False, prepare=Desk.change_file),
    "export": Case("sessions export {id} -o out.html", changes=False, file=lambda desk: "out.html"),
    "import": Case(
        "sessions import out.json",
        changes=True,
        prepare=lambda desk: desk.place.run("sessions", "export", desk.short, "-o", "out.json"),
        file=lambda desk: _imported(desk).path,
    ),
    "delete": Case("sessions delete {id} --yes", changes=True),
    "prune": Case("context prune {id}", changes=True),
    "prune again": Case("context prune {id}", changes=False, prepare=lambda desk: desk.place.run("context", "prune", desk.short)),
    "keep": Case("context keep 6 {id}", changes=True),
    "drop": Case("context drop 6 {id}", changes=True),
    "drop again": Case("context drop 6 {id}", changes=False, prepare=lambda desk: desk.place.run("context", "drop", "6", desk.short)),
    "undo a choice": Case("context undo 6 {id}", changes=True, prepare=lambda desk: desk.place.run("context", "drop", "6", desk.short)),
    "compress": Case("context compress {id}", changes=True, prepare=lambda desk: desk.serve(SNAPSHOT)),
    "compress without a summary": Case(
        "context compress {id}", changes=True, prepare=lambda desk: desk.serve("text: I would rather not."), code=57
    ),
    "compress without a summary or room": Case("context compress {id}", changes=True, prepare=_no_room, code=57),
    "compress with too little to sum up": Case("context compress {id}", changes=False, prepare=_nothing_said),
}


def test_every_command_that_changes_something_is_tried() -> None:
    known = {f"sessions {name}" for name in SESSIONS} | {f"context {name}" for name in CONTEXT}
    tried = {" ".join(case.command.split()[:2]) for case in CASES.values()}
    assert tried | LOOKING == known
    assert not tried & LOOKING


@pytest.mark.parametrize("name", CASES)
def test_what_changed_is_named_and_nothing_changed_is_said_only_where_it_is_true(
    name: str, place: Place, serve: Callable[..., Service]
) -> None:
    desk, case = Desk(place, serve), CASES[name]
    desk.made(calls=1)  # a newer one, which must not be touched
    case.prepare(desk)
    before = desk.logs()
    done = place.run(*case.command.format(id=desk.short).split())
    assert done.code == case.code, done
    after = desk.logs()
    assert (before != after) == case.changes
    is_export = name == "export"  # which writes a file of its own, and no log
    assert bool(NOTHING_CHANGED.search(done.out)) == (before == after and not is_export), done.out
    session = desk.store.short_id(_imported(desk).session_id) if name == "import" else desk.short
    assert f"session {session} (Fix the parser)" in done.out.replace("Session", "session"), done.out
    if case.changes or is_export:
        assert case.file(desk) in done.out


def test_the_files_that_undo_restored_are_named(place: Place, serve: Callable[..., Service]) -> None:
    desk = Desk(place, serve)
    file = desk.change_file()
    assert f"restored {file}\n" in place.run("sessions", "undo", desk.short).out
    assert file.read_bytes() == b"before"


def test_the_same_command_twice_is_about_the_same_session(place: Place, serve: Callable[..., Service]) -> None:
    """`context prune 2` pruned two sessions when it was given twice: the first became the newest and moved up."""
    desk = Desk(place, serve)
    other = desk.made()
    untouched = Path(other.path).read_bytes()
    for _ in range(2):
        assert f"ession {desk.short} (Fix the parser)" in place.run("context", "prune", desk.short).out
    assert Path(other.path).read_bytes() == untouched


def test_figures_before_and_after_are_of_the_same_measure(place: Place, serve: Callable[..., Service]) -> None:
    """Without a summary, results went and the size before that was told as the size now."""
    desk = Desk(place, serve)
    size = lambda: place.run("context", desk.short, "--json").json["tokens"]  # noqa: E731
    before = size()
    _no_room(desk)
    told = place.run("context", "compress", desk.short, "--json").json
    assert told["status"] == "empty"
    assert (told["id"], told["path"]) == (desk.short, desk.session.path)
    assert told["original_tokens"] == before
    assert told["new_tokens"] == size() < before
    kinds = [entry for entry in read_log(desk.session.path).entries if isinstance(entry, NotCompressed | Pruned)]
    assert [type(entry) for entry in kinds] == [NotCompressed, Pruned]
    assert isinstance(kinds[1], Pruned)
    assert told["pruned"] == len(kinds[1].call_ids)
    desk.set("")
    pruned = place.run("context", "prune", desk.short, "--json").json
    assert pruned["new_tokens"] == size() <= pruned["original_tokens"] == told["new_tokens"]


def test_what_compress_removed_for_want_of_a_summary_is_told(place: Place, serve: Callable[..., Service]) -> None:
    desk = Desk(place, serve)
    _no_room(desk)
    out = place.run("context", "compress", desk.short).out
    assert re.search(r"Instead \d+ old results were removed from what the model sees: about [\d,]+ tokens before, [\d,]+ now\.", out), out
