"""What `dragoman sessions|context|models|config|approvals` does has its place in a conversation, with the same words and options."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.app.arguments import OPTIONS
from dragoman.app.options import Options
from dragoman.app.setup import Setup, set_up
from dragoman.conversation.pages.approvals_command import ACTIONS as OF_APPROVALS
from dragoman.conversation.pages.context import ACTIONS as OF_CONTEXT
from dragoman.conversation.pages.models import ACTIONS as OF_MODELS
from dragoman.conversation.pages.sessions import ACTIONS as OF_SESSIONS
from dragoman.conversation.subcommand import parse_words, run_subcommand
from dragoman.values.errors import InputError
from program import Place, Service, calls, script
from terminals import terminal

Serve = Callable[..., Service]
SNAPSHOT = "text: <snapshot><goal>read the story</goal></snapshot>"
VALUES = {"at": "3", "to": "3", "form": "json", "output": "x.json", "source": "x.gguf", "request": "openai_chat", "focus": "names"}
OPERANDS = {"ID": "abcd", "TEXT": "story", "FILE": "x.json", "NAME": "smollm2", "ENTRY": "4"}
ACTIONS = {"sessions": OF_SESSIONS, "context": OF_CONTEXT, "models": OF_MODELS, "approvals": OF_APPROVALS}


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    return set_up(Options(directory=str(tmp_path / "work")))


@pytest.mark.parametrize("command", ACTIONS)
def test_every_action_with_every_option_is_understood_as_in_the_shell(command: str, setup: Setup) -> None:
    for name, action in ACTIONS[command].items():
        for key in ("", *action.options):
            option = next((each for each in OPTIONS if each.key == key), None)
            words = ["" if name == "show" and command == "context" else name, OPERANDS.get(action.operand, "")]
            words += [option.names[-1], *([VALUES[key]] if option.takes != "nothing" else [])] if option is not None else []
            options = parse_words(setup, command, " ".join(words))
            assert options.command == command
            assert (options.directory, options.no_color) == (setup.workspace, True)
            assert not key or getattr(options, key) != getattr(Options(), key)


def test_what_it_prints_comes_back_and_nobody_is_asked(setup: Setup, capfd: pytest.CaptureFixture[str]) -> None:
    printed = run_subcommand(parse_words(setup, "sessions", "list"), 60)
    assert "No sessions" in printed.text
    assert max(map(len, run_subcommand(parse_words(setup, "models", "--help"), 60).text.splitlines())) <= 60
    assert '"values"' in run_subcommand(parse_words(setup, "config", "--json"), 60).text
    for command, words in (("sessions", "delete abcd"), ("sessions", "show 'abcd"), ("sessions", "fly"), ("config", "--at 3")):
        with pytest.raises(InputError):
            run_subcommand(parse_words(setup, command, words), 60)
    assert capfd.readouterr() == ("", "")


def test_the_plain_conversation_has_them_too_and_what_is_kept_outlives_a_summary(place: Place, serve: Serve) -> None:
    (place.work / "story.txt").write_text("The old text.\n" * 100)
    (place.work / "other.txt").write_text("Another line.\n" * 1000)
    looks = [calls(("read_file", {"file_path": name})) for name in ("story.txt", "other.txt")]
    told = "text: Read it.\nusage: fresh=1000 cache_read=3000 output=5"
    service = serve(script(looks[0], told, looks[1], "text: Seen.", f"wait: 30\n{SNAPSHOT}", SNAPSHOT, "text: Still there."))
    with terminal(place, size=(60, 100)) as shown:

        def said(line: str) -> str:
            shown.ask(line)
            return shown.prompt()

        shown.prompt()
        said("look")
        said("and again")
        found = re.search(r"^ *(\d+) .*read_file: The old text", said("/context"), re.MULTILINE)
        assert found is not None
        number = found[1]
        assert f"result of entry {number} was dropped" in said(f"/context drop {number}")
        assert "undone" in said(f"/context undo {number}")
        assert "not in the next request" in said("/context drop 999")
        assert "is kept" in said(f"/context keep {number}")
        assert "hindsight" in said("/context simulate")
        assert '{"model":"claude-opus-5"' in said("/context --request")
        assert "0 results were dropped" in said("/prune")
        shown.ask("/compress")
        shown.expect("is asked to summarise")
        service.expect(5)
        shown.send("\x03")
        shown.expect("stopped")
        shown.prompt()
        assert "Summarised: about" in said("/compress the story")
        assert "messages" in said("/sessions list")
        assert '"steps":[' in said("/sessions show --output-format json")
        stats = said("/stats")
        assert "3,000 read from the cache" in stats
        assert re.search(r"read_file +2 ", stats)
        assert "1 summary of older messages" in stats
        assert "smollm2" in said("/models local")
        assert "needs NAME" in said("/models pull")
        assert "config.toml" in said("/config")
        assert "no approval is saved" in said("/approvals list")
        assert "Nothing was sent" in said("/bug")
        assert "open here" in said("/sessions delete latest --yes")
        assert "say the number" in said("/rewind back")
        assert "no entry 999" in said("/sessions rewind latest --to 999")
        assert "written to" in said("/export told.json")
        assert "no run of this session changed a file" in said("/undo")
        assert "is called The story now" in said("/rename The story")
        assert "thinking: low" in said("/effort low")
        assert "gpt-4.1" in said("/model openai/gpt-4.1")
        assert "openai/gpt-4.1" in said("/new")
        assert "nothing to copy" in said("/fork")
        assert "no model was asked yet" in said("/stats")
        [own] = re.findall(r"^([0-9a-f]{4})  .*The story", said("/resume"), re.MULTILINE)
        shown.ask(f"/resume {own}")
        shown.expect("Seen.")
        shown.prompt()
        shown.ask("go on")
        shown.expect("Still there.")
        shown.prompt()
    sent = str(service.requests[-1])
    assert "read the story" in sent
    assert "The old text." in sent
    assert "Another line." not in sent
    [kept] = [item for item in place.run("context", "--json").json["items"] if item.get("held")]
    assert kept["state"] == "kept"


def test_undo_in_a_conversation_skips_runs_that_changed_nothing_and_goes_back_run_by_run(place: Place, serve: Serve) -> None:
    """As `dragoman sessions undo` does."""
    story = place.work / "story.txt"
    story.write_text("old\n")
    read = calls(("read_file", {"file_path": "story.txt"}))
    change = calls(("edit", {"file_path": "story.txt", "old_string": "old", "new_string": "new"}))
    make = calls(("write_file", {"file_path": "more.txt", "content": "more\n"}))
    serve(script(read, change, "text: Changed.", make, "text: Made.", "text: Nothing more to do."))
    with terminal(place, "--approval", "auto-edit", size=(60, 100)) as shown:

        def said(line: str) -> str:
            shown.ask(line)
            return shown.prompt()

        shown.prompt()
        for line in ("change it", "make more", "and now?"):
            said(line)
        assert (story.read_text(), (place.work / "more.txt").read_text()) == ("new\n", "more\n")
        assert "removed more.txt, which did not exist before" in said("/undo")
        assert (story.read_text(), (place.work / "more.txt").exists()) == ("new\n", False)
        assert "restored story.txt" in said("/sessions undo")
        assert story.read_text() == "old\n"
        assert "no run of this session changed a file" in said("/undo")
