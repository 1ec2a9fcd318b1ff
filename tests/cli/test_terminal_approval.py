"""Approvals in the terminal: what is shown, which key does what, and that nobody approves by accident."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from program import Place, Service, calls, script
from terminals import Terminal, terminal

Serve = Callable[..., Service]
ASKED = "run): "


def write(name: str, content: str) -> str:
    return calls(("write_file", {"file_path": name, "content": content}))


def command(text: str) -> str:
    return calls(("run_shell", {"command": text, "writes": True}))


def asked(shown: Terminal, prompt: str = "do it") -> str:
    shown.prompt()
    shown.ask(prompt)
    return shown.expect(ASKED)


def told(service: Service, request: int) -> str:
    """What the model was told last, in the n-th request."""
    return json.dumps(service.requests[request]["messages"][-1], ensure_ascii=False)


# --- what is shown


def test_the_whole_diff_is_shown_coloured(place: Place, serve: Serve) -> None:
    serve(script(write("note.txt", "\n".join(f"line {number}" for number in range(50)) + "\n"), "text: Done."))
    with terminal(place) as shown:
        question = asked(shown)
        assert "write_file note.txt" in question
        for number in range(50):
            assert f"\n+line {number}\n" in question
        assert b"\x1b[32m+line 49\x1b[39m" in shown.raw


def test_the_whole_command_is_shown(place: Place, serve: Serve) -> None:
    long = "echo first\n" + "echo " + "x" * 500 + "\nrm -rf somewhere"
    serve(script(command(long), "text: Done."))
    with terminal(place) as shown:
        assert "".join(f"\n│ {line}" for line in long.splitlines()) in asked(shown).replace("\n┆ ", "")


@pytest.mark.parametrize(
    ("hidden", "seen"),
    [
        ("echo safe\r rm -rf x", "<U+000D>"),
        ("echo \x1b[8mhidden", "<U+001B>"),
        ("echo \u202etxt.exe", "<U+202E>"),
        ("echo a\u200bb", "<U+200B>"),
        ("echo \x07", "<U+0007>"),
        ("echo \x9b31m", "<U+009B>"),
    ],
)
def test_every_character_of_a_command_can_be_seen(hidden: str, seen: str, place: Place, serve: Serve) -> None:
    serve(script(command(hidden), "text: Done."))
    with terminal(place) as shown:
        assert seen in asked(shown)
        for sequence in (b"\r rm", b"\x1b[8m", "\u202e".encode(), "\u200b".encode(), b"\x07", "\x9b".encode()):
            assert sequence not in shown.raw


def test_what_always_covers_is_said(place: Place, serve: Serve) -> None:
    serve(script(write("a.txt", "x"), command("env true"), "text: Done."))
    with terminal(place) as shown:
        assert "all edits" in asked(shown)
        shown.send("y")
        assert "this exact command" in shown.expect(ASKED)


# --- the keys


@pytest.mark.parametrize("key", ["y", "Y"])
def test_yes_runs_it_once(key: str, place: Place, serve: Serve) -> None:
    serve(script(write("a.txt", "one"), write("b.txt", "two"), "text: Done."))
    with terminal(place) as shown:
        asked(shown)
        shown.send(key)
        shown.expect(ASKED)
        assert (place.work / "a.txt").read_text() == "one"
        shown.send("n")
        shown.expect("Done.")
    assert not (place.work / "b.txt").exists()


def test_no_tells_the_model_so(place: Place, serve: Serve) -> None:
    service = serve(script(write("a.txt", "one"), "text: Done."))
    with terminal(place) as shown:
        asked(shown)
        shown.send("n")
        shown.expect("● write_file a.txt ✗", "the user said no", "Done.")
    assert not (place.work / "a.txt").exists()
    assert "the user said no" in told(service, 1)


def test_a_reason_reaches_the_model(place: Place, serve: Serve) -> None:
    service = serve(script(write("a.txt", "one"), "text: Done."))
    with terminal(place) as shown:
        asked(shown)
        shown.send("r")
        shown.expect("(the model reads this): ")
        shown.send("use tabz\x7fs, bitte schön\r")
        shown.expect("Done.")
        assert "tabs, bitte schön" in shown.text
    assert not (place.work / "a.txt").exists()
    assert "use tabs, bitte schön" in told(service, 1)


def test_a_reason_that_is_closed_leads_back_to_the_question(place: Place, serve: Serve) -> None:
    serve(script(write("a.txt", "one"), "text: Done."))
    with terminal(place) as shown:
        asked(shown)
        shown.send("r")
        shown.expect("(the model reads this): ")
        shown.send(b"\x04")
        shown.expect(ASKED)
        shown.send("y")
        shown.expect("Done.")
    assert (place.work / "a.txt").exists()


def test_always_holds_for_the_session_alone(place: Place, serve: Serve) -> None:
    serve(script(write("a.txt", "one"), write("b.txt", "two"), "text: Done."))
    with terminal(place) as shown:
        asked(shown)
        shown.send("a")
        assert ASKED not in shown.expect("Done.")
    assert (place.work / "b.txt").exists()
    serve(script(write("c.txt", "three"), "text: Done."))
    with terminal(place) as shown:
        asked(shown)


def test_saved_holds_for_the_folder(place: Place, serve: Serve) -> None:
    serve(script(command("echo 1 >> count"), "text: Done."))
    with terminal(place) as shown:
        asked(shown)
        shown.send("s")
        shown.expect("Done.")
    serve(script(command("echo 1 >> count"), command("echo 2 >> count"), "text: Done."))
    with terminal(place) as shown:
        assert asked(shown).count("● $ echo 1 >> count ✓") == 1
        shown.send("n")
        shown.expect("Done.")
    assert (place.work / "count").read_text() == "1\n1\n"


def test_another_key_goes_to_the_prompt_and_the_choices_are_repeated(place: Place, serve: Serve) -> None:
    serve(script(write("a.txt", "one"), "text: Done."))
    with terminal(place) as shown:
        asked(shown)
        for key, complaint in [("\r", "Enter alone"), ("\x1b[A", "Enter alone"), ("x", "kept for the next"), ("é", "kept for the next")]:
            shown.send(key)
            shown.expect(complaint, ASKED)
        assert not (place.work / "a.txt").exists()
        shown.send("y")
        shown.expect("Done.", "› xé")
    assert (place.work / "a.txt").exists()


# --- no accidents


def test_what_was_typed_before_the_question_is_no_answer(place: Place, serve: Serve) -> None:
    serve(script("text: Begun\nwait: 0.5\n" + write("a.txt", "one"), "text: Done."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("do it")
        shown.expect("Begun")
        shown.send("y")
        shown.expect(ASKED)
        shown.read_for(0.4)
        assert not (place.work / "a.txt").exists()
        shown.send("n")
        shown.expect("Done.", "› y")  # it stands in the next prompt


def test_a_paste_is_no_answer(place: Place, serve: Serve) -> None:
    serve(script(write("a.txt", "one"), "text: Done."))
    with terminal(place) as shown:
        asked(shown)
        shown.send("yes please ")
        shown.expect("kept for the next prompt", ASKED)
        shown.send("y\ny\n")
        shown.expect("kept for the next prompt", ASKED)
        assert not (place.work / "a.txt").exists()
        shown.send("n\n")
        shown.expect("Done.", "› yes please y y")


@pytest.mark.parametrize("sentence", ["why not", "/retry", "yes please", "no, do it otherwise", "yy"])
def test_a_sentence_is_no_answer_and_stands_in_the_next_prompt(sentence: str, place: Place, serve: Serve) -> None:
    service = serve(script(write("a.txt", "one"), "text: Done."))
    with terminal(place) as shown:
        asked(shown)
        for char in sentence:
            shown.send(char)
            shown.read_for(0.1)
        shown.expect("kept for the next prompt", ASKED)
        assert not (place.work / "a.txt").exists()
        assert len(service.requests) == 1
        shown.send("n\r")
        shown.expect("Done.", f"› {sentence}")


def test_the_choices_are_explained(place: Place, serve: Serve) -> None:
    serve(script(write("a.txt", "one"), "text: Done."))
    with terminal(place) as shown:
        asked(shown)
        shown.send("?")
        shown.expect("y lets it run this once", "Enter alone answers nothing", ASKED)
        assert not (place.work / "a.txt").exists()


def test_one_question_at_a_time(place: Place, serve: Serve) -> None:
    questions = calls(("ask_user", {"question": "First?"}), ("ask_user", {"question": "Second?"}))
    service = serve(script(questions, "text: Done."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("do it")
        shown.expect("\nFirst?\n", ": ")
        shown.read_for(0.2)
        assert "\nSecond?\n" not in shown.text
        shown.send("one\r")
        shown.expect("\nSecond?\n", ": ")
        shown.send("two\r")
        shown.expect("Done.")
    assert told(service, 1).index("one") < told(service, 1).index("two")


def test_what_happens_beside_a_question_is_told_after_it(place: Place, serve: Serve) -> None:
    both = calls(("ask_user", {"question": "Colour?"}), ("list_directory", {"path": "."}))
    serve(script(both, "text: Done."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("do it")
        shown.expect("Colour?", "none): ")
        shown.read_for(0.3)
        assert shown.text.endswith("none): ")
        shown.send("blue\r")
        shown.expect("● list_directory . ✓")


# --- editing


@pytest.fixture
def editor(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """An $EDITOR that is a line of shell: `$1` is the file."""

    def make(line: str) -> dict[str, str]:
        path = tmp_path / "my editor"
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)
        return {"EDITOR": f"'{path}' -w"}

    return make


def test_a_command_edited_in_an_editor_is_shown_again_and_runs_as_edited(place: Place, serve: Serve, editor: Any) -> None:
    service = serve(script(command("echo dangerous > a.txt"), "text: Done."))
    with terminal(place, env=editor("""sed -i 's/dangerous/harmless/' "$2" """)) as shown:
        asked(shown)
        shown.send("e")
        assert "echo harmless > a.txt" in shown.expect(ASKED)
        assert not (place.work / "a.txt").exists()
        shown.send("y")
        assert "● $ echo harmless > a.txt" in shown.expect("Done.")
    assert (place.work / "a.txt").read_text() == "harmless\n"
    assert "harmless" in told(service, 1)  # the model is told what ran


def test_arguments_are_edited_as_json(place: Place, serve: Serve, editor: Any) -> None:
    serve(script(write("a.txt", "one"), "text: Done."))
    with terminal(place, env=editor("""sed -i 's/"one"/"two"/' "$2" """)) as shown:
        asked(shown)
        shown.send("e")
        assert "+two" in shown.expect(ASKED)
        shown.send("y")
        shown.expect("Done.")
    assert (place.work / "a.txt").read_text() == "two"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("""echo '{"broken' > "$2" """, "not a JSON object"),
        ("""echo '{"file_path": 3, "content": "x"}' > "$2" """, "does not match the tool"),
        ("true", "nothing was changed"),
        ("exit 1", "nothing was changed"),
        ("""rm "$2" """, "nothing was changed"),
    ],
)
def test_an_edit_that_comes_to_nothing_is_said_and_asked_again(line: str, complaint: str, place: Place, serve: Serve, editor: Any) -> None:
    serve(script(write("a.txt", "one"), "text: Done."))
    with terminal(place, env=editor(line)) as shown:
        asked(shown)
        shown.send("e")
        shown.expect(complaint, ASKED)
        shown.send("n")
        shown.expect("Done.")
    assert not (place.work / "a.txt").exists()


@pytest.mark.parametrize("editor", ["/does/not/exist", "vi 'unclosed"])
def test_an_editor_that_cannot_be_started(editor: str, place: Place, serve: Serve) -> None:
    serve(script(write("a.txt", "one"), "text: Done."))
    with terminal(place, env={"EDITOR": editor}) as shown:
        asked(shown)
        shown.send("e")
        shown.expect(editor, "cannot be started", ASKED)


def test_without_an_editor_the_text_stands_on_a_line_to_be_changed(place: Place, serve: Serve) -> None:
    serve(script(command("echo one > a.txt"), "text: Done."))
    with terminal(place) as shown:
        asked(shown)
        shown.send("e")
        shown.expect("> echo one > a.txt")
        shown.send("\x01\x1bd" + "printf\r")  # to the beginning, away with the first word
        assert "printf one > a.txt" in shown.expect(ASKED)
        shown.send("y")
        shown.expect("Done.")
    assert (place.work / "a.txt").read_text() == "one"


def test_ctrl_c_in_an_editor_is_the_editors(place: Place, serve: Serve) -> None:
    serve(script(command("echo one > a.txt"), "text: Done."))
    with terminal(place) as shown:
        asked(shown)
        shown.send("e")
        shown.expect("> echo one > a.txt")
        shown.read_for(0.1)
        shown.send(b"\x03")
        shown.expect("nothing was changed", ASKED)
        shown.send("n")
        shown.expect("Done.")


def test_ending_the_program_ends_the_editor(place: Place, serve: Serve, editor: Any) -> None:
    serve(script(command("env echo one"), "text: Done."))
    with terminal(place, env=editor("echo open; exec sleep 60")) as shown:
        asked(shown)
        shown.send("e")
        shown.expect("\nopen\n")
        shown.process.send_signal(signal.SIGTERM)
        assert shown.ended() == 143
        assert shown.modes == shown.before


# --- outside the sandbox


def let_out(command: str, outside: str = "May I?") -> str:
    return calls(("run_shell", {"command": command, "outside": outside}))


def test_a_command_outside_the_sandbox_is_shown_whole_with_what_the_model_says(place: Place, serve: Serve) -> None:
    long = "echo first\n" + "echo " + "x" * 500 + f"\ntouch {place.home}/out"
    serve(script(let_out(long, "It needs\n\x1b[2J your \u202ehome."), "text: Done."))
    with terminal(place) as shown:
        question = asked(shown)
        assert "Run OUTSIDE the sandbox, with all your rights?" in question
        assert 'The model says: "It needs<U+000A><U+001B>[2J your <U+202E>home."' in question
        assert "".join(f"\n│ {line}" for line in long.splitlines()) in question.replace("\n┆ ", "")
        assert "[y]es once · [e]dit · [n]o" in question
        assert "always" not in question
        shown.send("a\r")
        shown.expect(ASKED)
        assert not (place.home / "out").exists()
        shown.send("y\r")
        assert "(outside the sandbox) ✓" in shown.expect("Done.")
        assert (place.home / "out").exists()


def test_a_beginning_is_offered_for_the_session_and_listed(place: Place, serve: Serve) -> None:
    serve(script(let_out("systemctl status nothing"), let_out("systemctl status other"), let_out("systemctl stop other"), "text: Done."))
    with terminal(place) as shown:
        question = asked(shown)
        assert "[b] this session: commands that begin with `systemctl status`, outside the sandbox" in question
        assert "[f]" not in question
        shown.send("b\r")
        question = shown.expect(ASKED)
        assert "status other (outside the sandbox)" in question
        assert "systemctl stop other" in question
        assert "[b]" not in question
        shown.send("n\r")
        shown.expect("Done.")
        shown.prompt()
        shown.ask("/approvals")
        assert "outside the sandbox, commands that begin with: systemctl status" in shown.expect("until this session ends")


def test_an_edited_command_runs_outside_as_it_was_edited(place: Place, serve: Serve) -> None:
    serve(script(let_out("touch ../home/wrong"), "text: Done."))
    editor = place.home / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/wrong/right/ "$1"\n')
    editor.chmod(0o755)
    place.more_env["EDITOR"] = str(editor)
    with terminal(place) as shown:
        asked(shown)
        shown.send("e\r")
        question = shown.expect(ASKED)
        assert "Run OUTSIDE the sandbox" in question
        assert "│ touch ../home/right" in question
        shown.send("y\r")
        shown.expect("Done.")
    assert (place.home / "right").exists()
    assert not (place.home / "wrong").exists()
