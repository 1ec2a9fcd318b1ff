"""The home directory as workspace: what a model writes there never decides what runs next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from program import Place, Service, calls, script
from terminals import terminal

Serve = Callable[..., Service]
CONFIG = "home/dragoman/config.toml"
GRANTS = "home/dragoman/data/grants.jsonl"


def write(name: str, content: str) -> str:
    return calls(("write_file", {"file_path": name, "content": content}))


@pytest.fixture
def outer(place: Place) -> Place:
    """The workspace holds the home directory, and with it our own files."""
    place.work = place.home.parent
    return place


def test_in_auto_edit_no_configuration_is_written_that_runs_a_command_at_the_next_start(outer: Place, serve: Serve) -> None:
    planted = f'[tools]\ndiscover = ["touch", "{outer.work}/ran"]\n'
    service = serve(script([write(CONFIG, planted), write("a.txt", "x")], "text: Done.", "text: Again."))
    done = outer.ask("go", "--approval", "auto-edit")
    assert "(1: write_file" in done.err
    assert not (outer.work / CONFIG).exists()
    assert (outer.work / "a.txt").read_text() == "x"
    assert "nobody" in str(service.requests[1]["messages"][-1])
    outer.ask("again")
    assert not (outer.work / "ran").exists()


def test_a_saved_approval_of_all_edits_does_not_cover_our_own_files(outer: Place, serve: Serve) -> None:
    read = calls(("read_file", {"file_path": GRANTS}))
    serve(script(write("a.txt", "x"), "text: Done.", read, write(GRANTS, '{"folder":"x","key":"y"}'), "text: Done too."))
    with terminal(outer) as shown:
        shown.prompt()
        shown.ask("go")
        assert "[s]ave for this folder (both: all edits)" in shown.expect("Run it?") + shown.expect("run): ")
        shown.send("s")
        shown.prompt()
        shown.ask("and now ours")
        question = shown.expect("Run it?") + shown.expect("run): ")
        assert "Dragoman's own files" in question
        assert "[s]ave" not in question
        shown.send("a")
        shown.expect("kept for the next prompt", "Run it?", "run): ")
        shown.send("n")
        shown.prompt()
    assert "folder" in Path(outer.work / GRANTS).read_text()
    assert '"key":"y"' not in Path(outer.work / GRANTS).read_text()


def test_the_configuration_that_was_named_is_guarded_too(place: Place, serve: Serve) -> None:
    (place.work / "mine.toml").write_text("")
    serve(script(write("mine.toml", "model = 'evil'\n"), "text: Done."))
    done = place.ask("go", "--approval", "auto-edit", "--config", "mine.toml")
    assert "(1: write_file" in done.err
    assert (place.work / "mine.toml").read_text() == ""
