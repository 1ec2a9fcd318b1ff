"""`dragoman sessions`, as a user runs it, over logs as a run leaves them."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.base.graphemes import clusters, width_of
from dragoman.base.ids import short_ids
from dragoman.conversation.pages.session_list import age, as_table
from dragoman.loop.history import History
from dragoman.sessions.log import encode_line, read_log
from dragoman.sessions.store import FileStore, StoredSession
from dragoman.sessions.summary import Summary
from dragoman.values.messages import Citation, FinishReason, Message, Response, Thought, ToolCall, assistant, tool_result, user
from dragoman.values.record import CommandOutput, Entry, FileChange, Rewound
from dragoman.values.usage import Usage
from program import Place, Service
from terminals import terminal
from trajectories import faults_in

NOW_MS = 1_794_744_062_123
EVIL = "\x1b]0;owned\x07\x1b[2J\rover"


class Kept:
    """The sessions of a place, written as a run would."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.store = FileStore(place.home / "dragoman" / "data" / "sessions")

    def session(
        self, prompt: str = "Read the file", answer: str = "It says hello.", *, at_ms: int = NOW_MS, work: Path | None = None
    ) -> StoredSession:
        """Entries: 1 started, 2 configured, 3 prompt, 4 answer with a call, 5 and 6 the call, 7 answer."""
        made = self.store.create(work or self.place.work, versions=("dragoman test",))
        history = History(made.journal, entries=made.loaded.entries, now_ms=lambda: at_ms)
        history.configure("claude-opus-5", "Be good.", session_id=made.session_id, deployment="anthropic")
        history.say(user(prompt))
        call = ToolCall("call_1", "read_file", '{"file_path":"a.txt"}')
        said = assistant(Thought("Looking"), "I will read it.", call)
        history.answer(Response(said, FinishReason.TOOL_CALLS, usage=Usage(1_000, 234, 0, 56)))
        history.start_tool(call)
        history.finish_tool(tool_result(call, "hello\nworld"), display="2 lines")
        history.answer(Response(assistant(answer, Citation("https://example.org", "Example")), FinishReason.STOP))
        made.journal.close()
        return made

    def entries(self, session: StoredSession) -> tuple[Entry, ...]:
        return read_log(session.path).entries

    def go_on(self, session: StoredSession) -> tuple[History, StoredSession]:
        opened = self.store.open(session.path)
        return History(opened.journal, entries=opened.loaded.entries, now_ms=lambda: NOW_MS), opened


@pytest.fixture
def kept(place: Place) -> Kept:
    return Kept(place)


# --- list


def test_no_session_yet(place: Place) -> None:
    assert "No sessions in this folder yet" in place.run("sessions").out
    assert place.run("sessions", "list", "--all").out == "No sessions yet.\n"
    assert place.run("sessions", "--output-format", "json").json == {"sessions": []}
    place.run("sessions", "show", "latest").complaint(42, "no session")
    assert not (place.home / "dragoman" / "data").exists(), "looking makes nothing"


def test_list_shows_id_age_title_messages_model_and_size(place: Place, kept: Kept) -> None:
    first_made = kept.session("the first thing", at_ms=NOW_MS - 86_400_000 * 3)
    last = kept.session("重构解析器 مرحبا 👩‍👩‍👧")
    done = place.run("sessions")
    assert done.code == 0
    assert done.err == ""
    head, newest, oldest = done.out.splitlines()
    assert head.split() == ["id", "age", "title", "messages", "model", "size"]
    assert newest.startswith(f"{last.session_id[-8:-4]} ")
    assert "重构解析器 مرحبا 👩‍👩‍👧" in newest
    assert oldest.split()[0] == first_made.session_id[-8:-4], "a session keeps its id, however many come after it"
    assert oldest.split()[2:] == ["the", "first", "thing", "3", "claude-opus-5", *oldest.split()[-2:]]
    assert oldest.endswith("kB")
    again = place.run("sessions", "list").out.splitlines()
    assert [line.split()[2:] for line in again[1:]] == [line.split()[2:] for line in (newest, oldest)], "but for their age"
    first = place.run("sessions", "list", "--output-format", "json").json["sessions"][0]
    assert (first["id"], first["session_id"], first["messages"]) == (last.session_id[-8:-4], last.session_id, 3)
    assert "number" not in first
    told = {"input_tokens": 1234, "fresh_tokens": 1000, "cache_read_tokens": 234, "output_tokens": 56}
    untold = dict.fromkeys(("cache_write_tokens", "cache_write_1h_tokens", "thought_tokens"))
    assert first["usage"] == told | untold | {"incomplete": 1}, "the last answer told nothing"


def test_a_trajectory_has_prices_and_the_agents_that_were_called(place: Place, kept: Kept) -> None:
    mine = kept.session("mine")
    inner = kept.store.create(place.work, parent=(mine.session_id, "call_1"))
    history = History(inner.journal, entries=inner.loaded.entries)
    history.say(user("asked by the other"))
    history.answer(Response(assistant("Done."), FinishReason.STOP))
    inner.journal.close()
    told = place.run("sessions", "export", "latest", "--atif").json
    assert faults_in(told) == []
    assert told["steps"][2]["metrics"]["cost_usd"] > 0
    assert told["steps"][2]["observation"]["results"][0]["subagent_trajectory_ref"] == [{"trajectory_id": inner.session_id}]
    written = place.run("sessions", "export", "latest", "--as", "atif", "-o", "told.json")
    assert "told.json" in written.out
    assert json.loads((place.work / "told.json").read_text()) == told


def test_list_keeps_folders_apart_unless_all_is_asked_for(place: Place, kept: Kept, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    kept.session("mine")
    theirs = kept.session("theirs", work=other)
    assert "theirs" not in place.run("sessions").out
    everywhere = place.run("sessions", "--all").out
    assert everywhere.splitlines()[1].startswith(theirs.session_id[-8:-4])
    assert everywhere.splitlines()[1].endswith("/other")
    assert "theirs" in place.run("-C", str(other), "sessions").out
    assert "theirs" in place.run("sessions", "show", theirs.session_id).out


def test_list_and_latest_pass_over_what_a_called_agent_said(place: Place, kept: Kept) -> None:
    mine = kept.session("mine")
    inner = kept.store.create(place.work, parent=(mine.session_id, "call-1"))
    history = History(inner.journal, entries=inner.loaded.entries)
    history.say(user("asked by the other"))
    history.answer(Response(assistant("Done."), FinishReason.STOP))
    inner.journal.close()
    assert len(place.run("sessions", "list").out.splitlines()) == 2
    assert kept.store.find("latest", place.work).session_id == mine.session_id
    assert "asked by the other" in place.run("sessions", "show", inner.session_id).out
    copied = kept.store.fork(inner.path)
    assert kept.store.find("latest", place.work).path == copied, "a copy is a session of its own"


def test_columns_line_up_whatever_the_script() -> None:
    titles = ["plain", "重构解析器", "👩‍👩‍👧 family", "é" * 3, "wide 字 " * 40]
    found = [Summary(f"20261115-120102-{number:08x}", title=title, model="m", messages=3) for number, title in enumerate(titles)]
    short = short_ids(each.session_id for each in found)
    lines = as_table(found, short, now_ms=0, everywhere=False).splitlines()
    before = [line[: line.rindex("  m")] for line in lines]
    assert len({sum(map(width_of, clusters(line))) for line in before[1:]}) == 1
    assert max(sum(map(width_of, clusters(line))) for line in lines) <= 120
    assert as_table(found[:1], short, now_ms=0, everywhere=True).splitlines()[1].startswith("00000000 ")


def test_ages_and_sizes_are_short() -> None:
    assert [age(ms * 1000) for ms in (-5, 0, 59, 60, 7_200, 86_400 * 3, 86_400 * 20, 86_400 * 800)] == [
        "0s",
        "0s",
        "59s",
        "1m",
        "2h",
        "3d",
        "2w",
        "2y",
    ]


# --- show


def test_show_is_what_was_seen(place: Place, kept: Kept) -> None:
    session = kept.session()
    done = place.run("sessions", "show", "latest")
    assert done.err == ""
    assert done.out.splitlines()[0] == "Read the file"
    assert session.session_id in done.out
    assert "1,234 tokens in, 56 out" in done.out
    assert "› Read the file\n" in done.out
    assert "● read_file a.txt ✓ 2 lines\n" in done.out
    assert "It says hello.\n" in done.out
    assert "source: Example https://example.org" in done.out
    for which in (session.session_id[-8:-4], session.session_id, session.session_id[:12], session.session_id[-8:]):
        assert place.run("sessions", "show", which).out == done.out


def test_show_marks_a_command_that_failed_and_says_why(place: Place, kept: Kept) -> None:
    history, opened = kept.go_on(kept.session())
    for name, output, code in (
        ("make test", "F.\nFAILED test_a.py::test_a\n1 failed in 0.1s\n", 1),
        ("false", "", 1),
        ("ls", "a.txt\n", 0),
    ):
        call = ToolCall(name, "run_shell", json.dumps({"command": name}))
        history.answer(Response(assistant("", call), FinishReason.OTHER, ""))
        display = output or f"(exit code {code})"
        history.finish_tool(tool_result(call, output or "[exit code 1]"), display=display, command=CommandOutput(output, "", code))
    opened.journal.close()
    out = place.run("sessions", "show", "latest").out
    assert "● $ make test ✗ 1 failed in 0.1s\n" in out
    assert "● $ false ✗ (exit code 1)\n" in out
    assert "● $ ls ✓ a.txt\n" in out


def test_show_marks_what_was_rejected_cancelled_and_taken_back(place: Place, kept: Kept) -> None:
    session = kept.session()
    history, opened = kept.go_on(session)
    history.reject(history.answer(Response(assistant("half"), FinishReason.OTHER, "broken off")), "the stream was cut")
    call = ToolCall("call_2", "run_shell", '{"command":"make"}')
    history.answer(Response(assistant("stopped", call), FinishReason.OTHER, "cancelled"))
    history.finish_tool(tool_result(call, "x", is_error=True), "cancelled")
    mark = history.entries[-1]
    history.say(user("the wrong way"))
    history.rewind(mark)
    opened.journal.close()
    out = place.run("sessions", "show", "latest").out
    assert "⚠ broken off, rejected: the stream was cut\nhalf\n" in out
    assert "⚠ cancelled\nstopped\n● $ make … cancelled\n" in out
    assert f"[{mark.seq + 1}] 2026-11-15 12:01:02 UTC (rewound)\n› the wrong way" in out
    assert f"Went back to entry {mark.seq}." in out


def test_show_and_list_and_search_let_nothing_act_on_the_terminal(place: Place, kept: Kept) -> None:
    session = kept.session(f"prompt {EVIL}", f"answer {EVIL}")
    history, opened = kept.go_on(session)
    call = ToolCall("c", f"tool {EVIL}", f'{{"command":"{json.dumps(EVIL)[1:-1]}"}}')
    history.say(Message("assistant", (call,)))
    history.finish_tool(tool_result(call, EVIL), display=EVIL)
    history.title(f"title {EVIL}")
    history.change_model(f"model {EVIL}", EVIL)
    opened.journal.close()
    for words in (["list"], ["show", "latest"], ["search", "prompt"], ["export", "latest"], ["list", "--all"]):
        done = place.run("sessions", *words)
        assert done.code == 0
        assert not set(done.out + done.err) & set("\x1b\x07\r"), words
    html = place.run("sessions", "export", "latest", "--as", "html").out
    assert "\x1b" not in html


def test_show_as_json(place: Place, kept: Kept) -> None:
    session = kept.session()
    told = place.run("sessions", "show", "latest", "--output-format", "json").json
    assert (told["session_id"], told["title"], told["model"]) == (session.session_id, "Read the file", "claude-opus-5")
    assert [step["type"] for step in told["steps"]] == ["prompt", "answer", "call", "answer"]
    assert told["steps"][2]["outcome"] == "finished"
    assert told["steps"][2]["output"] == "hello\nworld"


def test_a_damaged_log_is_shown_with_a_word_about_it(place: Place, kept: Kept) -> None:
    session = kept.session()
    lines = Path(session.path).read_bytes().split(b"\n")
    lines[2] = lines[2].replace(b"Read", b"Raed")
    Path(session.path).write_bytes(b"\n".join(lines)[:-20])
    before = Path(session.path).read_bytes()
    done = place.run("sessions", "show", "latest")
    assert done.code == 0
    assert "I will read it." in done.out
    assert "line 3" in done.err
    assert "not a complete record" in done.err
    assert Path(session.path).read_bytes() == before, "looking changes nothing"


# --- search


@pytest.mark.parametrize("text", ["解析", "مرحبا", "👩‍👩‍👧", "PARSER"])
def test_search_in_any_script(place: Place, kept: Kept, text: str) -> None:
    kept.session("something else")
    session = kept.session("重构解析器 مرحبا 👩‍👩‍👧 the parser")
    done = place.run("sessions", "search", text)
    assert done.out.splitlines()[0].startswith(session.session_id[-8:-4])
    assert "[3] prompt:" in done.out
    (hit,) = place.run("sessions", "search", text, "--output-format", "json").json["hits"]
    assert (hit["session"]["session_id"], hit["seq"], hit["role"]) == (session.session_id, 3, "user")


def test_a_search_that_finds_nothing_says_so(place: Place, kept: Kept) -> None:
    kept.session()
    assert "--all" in place.run("sessions", "search", "zebra").out
    assert place.run("sessions", "search", "zebra", "--output-format", "json").json == {"hits": []}
    assert "needs TEXT" in place.run("sessions", "search", "").err


# --- fork, rewind, delete


def test_fork_makes_a_copy_up_to_an_entry(place: Place, kept: Kept) -> None:
    session = kept.session()
    done = place.run("sessions", "fork", "latest", "--at", "3")
    assert done.code == 0, done
    fork_id = done.out.split(" as ")[1][:4]
    fork = kept.store.find(fork_id, place.work)
    assert [entry.seq for entry in read_log(fork.path).entries] == [1, 2, 3]
    assert fork.forked_from == session.session_id
    assert len(kept.entries(session)) == 7
    whole = place.run("sessions", "fork", session.session_id)
    assert len(read_log(kept.store.find(whole.out.split(" as ")[1][:4], place.work).path).entries) == 7
    place.run("sessions", "fork", session.session_id, "--at", "99").complaint(42, "99", "show")


def test_rewind_appends_and_erases_nothing(place: Place, kept: Kept) -> None:
    session = kept.session()
    before = Path(session.path).read_bytes()
    done = place.run("sessions", "rewind", "latest", "--to", "3")
    assert done.code == 0, done
    after = Path(session.path).read_bytes()
    assert after.startswith(before)
    last = kept.entries(session)[-1]
    assert isinstance(last, Rewound)
    assert (last.seq, last.to_seq) == (8, 3)
    assert [message.text for message in History(entries=kept.entries(session)).curated()] == ["Read the file"]
    place.run("sessions", "rewind", "latest").complaint(42, "--to")
    place.run("sessions", "rewind", "latest", "--to", "50").complaint(42, "50")
    assert Path(session.path).read_bytes() == after


def test_a_session_in_use_is_not_changed(place: Place, kept: Kept) -> None:
    """SS05: the second is told who holds it, and offered to look or to fork."""
    session = kept.session()
    opened = kept.store.open(session.path)
    try:
        place.run("sessions", "rewind", "latest", "--to", "3").complaint(42, f"pid {os.getpid()}", "fork")
        place.run("sessions", "delete", "latest", "--yes").complaint(42, f"pid {os.getpid()}")
        assert place.run("sessions", "show", "latest").code == 0
        assert place.run("sessions", "fork", "latest").code == 0
    finally:
        opened.journal.close()
    assert len(kept.entries(session)) == 7


def test_delete_asks_and_without_anybody_needs_yes(place: Place, kept: Kept) -> None:
    session = kept.session()
    place.run("sessions", "delete", "latest").complaint(42, "--yes")
    place.run("sessions", "delete", "latest", stdin="y\n").complaint(42, "--yes")
    assert Path(session.path).exists()
    deleted = place.run("sessions", "delete", "latest", "--yes").out
    assert deleted.startswith(f"Deleted session {session.session_id[-8:-4]} (Read the file): {session.path}")
    assert not Path(session.path).exists()
    place.run("sessions", "delete", session.session_id, "--yes").complaint(42, "no session")


@pytest.mark.parametrize(("answer", "agrees"), [("y\n", True), ("YES\n", True), ("\n", False), ("n\n", False), ("\x04", False)])
def test_a_question_is_answered_by_yes_alone(answer: str, agrees: bool, place: Place, kept: Kept) -> None:
    session = kept.session()
    with terminal(place, "sessions", "delete", "latest", model="") as shown:
        shown.send("y\n")  # before it is asked
        shown.expect("for good?", "for good?", "(Enter: n): ")
        shown.send("yes please\n")
        shown.expect("for good?", "(Enter: n): ")
        shown.send(answer)
        assert shown.ended() == (0 if agrees else 42)
    assert Path(session.path).exists() is not agrees


@pytest.mark.parametrize("which", ["../../../etc/passwd", "/etc/passwd", "x" * 5000, "\x1b[2J", "-1", "0", "9"])
def test_what_names_no_session_is_refused(place: Place, kept: Kept, which: str) -> None:
    kept.session()
    told = place.run("sessions", "show", "--", which).complaint(42)
    assert "\x1b" not in told
    assert len(told) < 400


# --- export


@pytest.mark.parametrize(
    ("form", "begins"),
    [("markdown", "# Read the file\n"), ("html", "<!DOCTYPE html>"), ("json", '{"format":'), ("record", '{"sessionId":')],
)
def test_export_in_every_format(place: Place, kept: Kept, form: str, begins: str) -> None:
    kept.session()
    done = place.run("sessions", "export", "latest", "--as", form)
    assert done.code == 0
    assert done.out.startswith(begins)
    assert "It says hello." in done.out
    assert done.out.endswith("\n")


@pytest.mark.parametrize(("name", "begins"), [("s.md", b"# "), ("s.html", b"<!DOCTYPE"), ("s.json", b'{"format"'), ("s", b"# ")])
def test_a_file_is_for_the_users_eyes_alone_and_is_not_written_over(place: Place, kept: Kept, name: str, begins: bytes) -> None:
    """SE02: 0600 whatever the umask."""
    kept.session()
    before = os.umask(0)
    try:
        done = place.run("sessions", "export", "latest", "-o", name)
    finally:
        os.umask(before)
    assert done.code == 0, done
    file = place.work / name
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_bytes().startswith(begins)
    file.write_text("precious")
    place.run("sessions", "export", "latest", "-o", name).complaint(42, "--yes")
    assert file.read_text() == "precious"
    assert place.run("sessions", "export", "latest", "-o", name, "--yes").code == 0
    assert file.read_bytes().startswith(begins)
    assert [each.name for each in place.work.iterdir()] == [name], "nothing is left beside it"


def test_a_link_planted_at_the_target_is_not_followed(place: Place, kept: Kept) -> None:
    """SE02."""
    kept.session()
    victim = place.home / "victim"
    (place.work / "out.md").symlink_to(victim)
    place.run("sessions", "export", "latest", "-o", "out.md").complaint(42, "--yes")
    assert not victim.exists()
    victim.write_text("precious")
    assert place.run("sessions", "export", "latest", "-o", "out.md", "--yes").code == 0
    assert victim.read_text() == "precious"
    assert not (place.work / "out.md").is_symlink()


def test_a_target_that_cannot_be_written_is_told(place: Place, kept: Kept) -> None:
    kept.session()
    place.run("sessions", "export", "latest", "-o", "nowhere/out.md").complaint(42, "nowhere/out.md")
    (place.work / "folder").mkdir()
    place.run("sessions", "export", "latest", "-o", "folder", "--yes").complaint(42, "directory")


# --- import


def test_our_json_comes_back_as_another_session(place: Place, kept: Kept) -> None:
    session = kept.session()
    history, opened = kept.go_on(session)
    image = opened.blobs.put("image/png", b"\x89PNG")
    history.say(user("look", image))
    opened.journal.close()
    place.run("sessions", "export", "latest", "-o", "s.json")
    elsewhere = place.home / "elsewhere"
    elsewhere.mkdir()
    done = place.run("-C", str(elsewhere), "sessions", "import", str(place.work / "s.json"))
    assert done.code == 0, done
    assert done.err == ""
    found = kept.store.find("latest", elsewhere)
    assert found.session_id[-8:-4] in done.out
    assert found.path in done.out
    head, configured, *rest = read_log(found.path).entries
    source = kept.entries(session)
    assert rest == list(source[2:])
    assert getattr(configured, "session_id", "") == found.session_id != session.session_id
    assert found.imported_from.startswith(f"dragoman {session.session_id}")
    assert found.workspace == str(elsewhere.resolve())
    assert head.seq == 1
    assert kept.store.blobs_beside(found.path).get(image.sha256) == b"\x89PNG"
    assert "It says hello." in place.run("-C", str(elsewhere), "sessions", "show", "latest").out


def test_a_copied_log_can_be_imported(place: Place, kept: Kept) -> None:
    session = kept.session()
    (place.work / "copy.jsonl").write_bytes(Path(session.path).read_bytes() + b"torn")
    done = place.run("sessions", "import", "copy.jsonl")
    assert done.code == 0, done
    assert "4 bytes" in done.err
    assert len(kept.store.list(place.work)) == 2


def test_a_conversation_record_goes_out_and_comes_in(place: Place, kept: Kept) -> None:
    kept.session()
    place.run("sessions", "export", "latest", "--as", "record", "-o", "record.json")
    done = place.run("sessions", "import", "record.json")
    assert done.code == 0, done
    assert "gemini-cli" in done.out
    imported = next(each for each in kept.store.list(place.work) if each.imported_from)
    said = [message.text for message in History(entries=read_log(imported.path).entries).curated()]
    assert said[0] == "Read the file"
    assert said[-1] == "It says hello."


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.txt", b"no session"), ("empty.json", b""), ("bad.json", b'{"format":"dragoman-session","entries":[7]}'), ("none.jsonl", None)],
)
def test_what_cannot_be_imported_is_told_and_nothing_is_kept(place: Place, kept: Kept, name: str, data: bytes | None) -> None:
    if data is not None:
        (place.work / name).write_bytes(data)
    place.run("sessions", "import", name).complaint(42, name if data is None or b"format" not in data else "export")
    assert kept.store.list() == []


def test_a_pipe_is_not_waited_for(place: Place, kept: Kept) -> None:
    os.mkfifo(place.work / "pipe")
    place.run("sessions", "import", "pipe", timeout_s=60).complaint(42, "named pipe")
    place.run("sessions", "import", ".").complaint(42)


# --- undo


def changed(kept: Kept, session: StoredSession, file: Path, before: bytes | None, after: bytes) -> None:
    """A run in which a call wrote a file."""
    history, opened = kept.go_on(session)
    call = ToolCall(f"write_{len(history.entries)}", "write_file", "{}")
    history.say(user("write it"))
    history.say(assistant(call))
    history.start_tool(call)
    old = opened.blobs.put("", before).sha256 if before is not None else ""
    new = opened.blobs.put("", after).sha256
    file.write_bytes(after)
    history.change_files(call.id, [FileChange(str(file), old, new, 0o644 if before is not None else 0)])
    history.finish_tool(tool_result(call, "written"))
    opened.journal.close()


def test_undo_puts_files_back_run_by_run(place: Place, kept: Kept) -> None:
    session = kept.session()
    old, new = (place.work / "old.txt").resolve(), (place.work / "new.txt").resolve()
    old.write_bytes(b"before")
    changed(kept, session, new, None, b"created")
    changed(kept, session, old, b"before", b"after")
    history, opened = kept.go_on(session)
    history.say(user("what did you do?"))
    history.say(assistant("I wrote files."))
    opened.journal.close()
    done = place.run("sessions", "undo")
    assert done.code == 0, done
    assert f"restored {old}" in done.out
    assert old.read_bytes() == b"before"
    assert new.read_bytes() == b"created"
    assert f"removed {new}" in place.run("sessions", "undo", "latest").out
    assert not new.exists()
    assert "no run of session" in place.run("sessions", "undo", "latest").out
    assert "Files were restored" in place.run("sessions", "show", "latest").out


def test_undo_refuses_what_was_changed_since_unless_forced(place: Place, kept: Kept) -> None:
    session = kept.session()
    file = (place.work / "a.txt").resolve()
    changed(kept, session, file, b"before", b"after")
    file.write_bytes(b"mine now")
    place.run("sessions", "undo", "latest").complaint(42, str(file), "--force")
    assert file.read_bytes() == b"mine now"
    assert place.run("sessions", "undo", "latest", "--force").code == 0
    assert file.read_bytes() == b"before"


# --- a run, and then


def test_what_a_run_said_and_did_is_listed_shown_and_exported(place: Place, serve: Callable[..., Service]) -> None:
    (place.work / "a.txt").write_text("hello")
    serve('call: read_file {"file_path": "a.txt"}\n---\ntext: It says hello.')
    assert place.ask("what does a.txt say?").code == 0
    (row,) = place.run("sessions", "--output-format", "json").json["sessions"]
    assert row["title"] == "what does a.txt say?"
    assert row["messages"] == 3
    shown = place.run("sessions", "show", "latest").out
    assert "environment described to the model" in shown
    assert "› what does a.txt say?\n" in shown
    assert "● read_file a.txt ✓" in shown
    assert shown.endswith("It says hello.\n")
    assert "It says hello." in place.run("sessions", "export", "latest", "--as", "html").out


# --- the words of the command


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["shwo", "latest"], ["shwo", "did you mean show?"]),
        (["resume", "1", "2"], ["unexpected argument '2' for dragoman sessions resume"]),
        (["resum"], ["did you mean resume?", "undo, redo, resume"]),
        (["show", "2"], ["sessions have ids and no numbers", "dragoman sessions list"]),
        (["delete"], ["needs ID"]),
        (["show"], ["no session to resume yet"]),
        (["show", "latest", "2"], ["'2'"]),
        (["list", "--at", "3"], ["--at", "sessions list"]),
        (["show", "latest", "--yes"], ["--yes", "sessions show"]),
        (["rewind", "latest", "--to", "x"], ["--to", "'x'"]),
        (["export", "latest", "--as", "pdf"], ["'pdf'", "markdown, html, json, record or atif"]),
        (["export", "latest", "--output-format", "json"], ["--output-format"]),
        (["--output-format", "stream-json"], ["text and json"]),
    ],
)
def test_a_mistake_is_named(place: Place, words: list[str], told: list[str]) -> None:
    done = place.run("sessions", *words)
    text = done.complaint(42) if "json" not in words else done.out + done.err
    assert done.code == 42
    assert all(word in text for word in told), done


def test_the_help_names_resume(place: Place) -> None:
    assert "dragoman sessions resume [ID]" in place.run("sessions", "--help").out


def test_a_mistake_in_json_is_told_in_json(place: Place) -> None:
    done = place.run("sessions", "show", "latest", "--output-format", "json")
    assert done.code == 42
    assert "no session" in done.json["error"]["message"]


def test_everything_that_is_made_is_the_users_alone(place: Place, kept: Kept) -> None:
    """SE02."""
    before = os.umask(0)
    try:
        kept.session()
        place.run("sessions", "search", "hello")
        place.run("sessions", "fork", "latest")
    finally:
        os.umask(before)
    for path in (place.home / "dragoman" / "data").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_line_of_a_fork_is_a_line_of_a_log(kept: Kept) -> None:
    session = kept.session()
    assert Path(session.path).read_bytes() == b"".join(map(encode_line, kept.entries(session)))
