"""A redo through the program: `sessions redo`, `/redo` in a conversation, and what the model is told of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.test_discarded_work import state
from cli.test_told_changes import CHANGED, UNDONE, extends, note, said
from program import Place, Service, calls, script
from terminals import terminal

Serve = Callable[..., Service]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="uses a terminal of this system, and commands in a sandbox")

AUTO = ("--approval", "auto")
REDONE = "These changes of yours that had been undone were redone"
EDITS = calls(
    ("write_file", {"file_path": "new.txt", "content": "a\nb\n"}),
    ("edit", {"file_path": "old.txt", "old_string": "two", "new_string": "TWO\nmore"}),
)
COMMAND = calls(("run_shell", {"command": "rm gone.txt; printf 'x\\0' > made.bin; chmod 755 old.txt"}))


@pytest.fixture
def work(place: Place) -> Path:
    for name in ("old.txt", "gone.txt"):
        (place.work / name).write_text("one\ntwo\nthree\n")
        (place.work / name).chmod(0o640)
    return place.work


def modes(folder: Path) -> dict[str, int]:
    return {name: (folder / name).stat().st_mode & 0o777 for name in state(folder)}


def test_what_a_run_and_its_commands_did_is_undone_redone_and_undone_again(place: Place, serve: Serve, work: Path) -> None:
    serve(script(EDITS, COMMAND, "text: Done."))
    before = state(work), modes(work)
    assert place.ask("fix it", *AUTO).code == 0
    after = state(work), modes(work)
    assert after[0].keys() == {"old.txt", "new.txt", "made.bin"}
    assert place.run("sessions", "redo").out.startswith("session "), "nothing was undone yet"
    for _ in range(2):
        assert place.run("sessions", "undo").code == 0
        assert (state(work), modes(work)) == before
        done = place.run("sessions", "redo")
        assert done.code == 0, done
        assert (state(work), modes(work)) == after
        for line in ("redid the change of {}/old.txt", "removed {}/gone.txt, which did not", "redid the change of {}/made.bin"):
            assert line.format(work.resolve()) in done.out
        assert "Redid the file changes of the last undo" in done.out
    nothing = place.run("sessions", "redo", "latest")
    assert "no undo to redo" in nothing.out
    assert (state(work), modes(work)) == after
    assert "An undo was taken back (changes redone: " in place.run("sessions", "show", "latest").out


def test_a_file_that_the_user_changed_since_the_undo_is_named_and_kept_where_it_is_forced(place: Place, serve: Serve, work: Path) -> None:
    serve(script(EDITS, "text: Done."))
    assert place.ask("fix it", *AUTO).code == 0
    after = state(work)
    assert place.run("sessions", "undo").code == 0
    (work / "old.txt").write_bytes(b"mine now")
    mine = state(work)
    refused = place.run("sessions", "redo")
    refused.complaint(42, f"nothing was redone: {work.resolve()}/old.txt: it was changed by somebody else since", "--force")
    assert "new.txt" not in refused.err
    assert state(work) == mine
    assert place.run("sessions", "redo", "--force").code == 0
    assert state(work) == after
    kept = [path.read_bytes() for path in place.home.rglob("*") if path.is_file() and path.stat().st_size == len(b"mine now")]
    assert b"mine now" in kept


def test_a_run_that_changes_files_ends_what_can_be_redone_and_one_that_only_reads_does_not(place: Place, serve: Serve, work: Path) -> None:
    read = calls(("read_file", {"file_path": "gone.txt"}))
    other = calls(("write_file", {"file_path": "other.txt", "content": "x"}))
    serve(script(EDITS, "text: Done.", read, "text: Read.", other, "text: Written."))
    assert place.ask("fix it", *AUTO).code == 0
    after = state(work)
    assert place.run("sessions", "undo").code == 0
    assert place.ask("look", *AUTO, "--continue").code == 0
    assert place.run("sessions", "redo").code == 0
    assert state(work) == after
    assert place.run("sessions", "undo").code == 0
    undone = state(work)
    assert place.ask("write", *AUTO, "--continue").code == 0
    done = place.run("sessions", "redo")
    assert "a run changed files since; nothing was changed" in done.out
    assert state(work) == {**undone, "other.txt": b"x"}


def test_in_a_conversation_undos_are_redone_in_turn_and_the_model_is_told(place: Place, serve: Serve, work: Path) -> None:
    served = serve(script(EDITS, "text: Done.", COMMAND, "text: Removed.", "text: Two.", "text: Three.", "text: Four."))
    states = [state(work)]
    with terminal(place, "-m", "anthropic/claude-opus-5", *AUTO, size=(60, 110)) as shown:

        def ask(line: str) -> str:
            shown.ask(line)
            return shown.prompt()

        shown.prompt()
        for line in ("fix it", "remove it"):
            ask(line)
            states.append(state(work))
        assert "no undo to redo" in ask("/redo")
        assert "restored gone.txt" in ask("/undo")
        assert state(work) == states[1]
        ask("/undo")
        assert state(work) == states[0]
        ask("and now?")
        said_of_it = ask("/redo")
        assert "redid the change of old.txt" in said_of_it
        assert "redid the change of new.txt" in said_of_it
        assert state(work) == states[1]
        assert "removed gone.txt, which did not exist before the undo" in ask("/sessions redo")
        assert state(work) == states[2]
        assert "no undo to redo" in ask("/redo")
        ask("and then?")
        ask("/undo")
        ask("/redo")
        assert state(work) == states[2]
        ask("and at last?")
    *_, fourth, fifth, sixth, seventh = served.requests
    assert UNDONE in note(fifth)
    told = next(text for text in said({"messages": sixth["messages"][-1:]}) if REDONE in text)
    assert told.startswith("This is Dragoman.")
    assert UNDONE not in told
    assert CHANGED not in told
    for line in ("  old.txt (+2 -1 lines)", "  new.txt (there again)", "  gone.txt (removed again)"):
        assert line in told
    assert extends(fourth, fifth)
    assert extends(fifth, sixth)
    assert extends(sixth, seventh)
    assert not any(REDONE in text or UNDONE in text for text in said({"messages": seventh["messages"][-1:]})), "all is as the model knows"
