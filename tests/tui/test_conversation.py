"""The conversation with a live region, in tmux and in a bare terminal, with the loopback service."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import time

import pytest

from program import Place, calls, script, service
from terminals import Tmux, terminal, tmux
from tiny_model import CONTENT

pytestmark = pytest.mark.usefixtures("with_tmux")

READY = "Ask, / for commands"
ASKS = "a key answers, or a key and Enter"
MARKED = "› n  Enter answers with it"
SLOW = "text: Beginning.\nwait: 30\ntext: Never said."


def begin(pane: Tmux, prompt: str = "", ready: str = READY) -> None:
    pane.expect(ready)
    if prompt:
        pane.type(prompt)
        pane.keys("Enter")


def test_an_edit_is_asked_about_beside_its_diff_and_leaving_tells_how_to_come_back(place: Place) -> None:
    (place.work / "story.txt").write_text("The old text.\n")
    edit = calls(("edit", {"file_path": "story.txt", "old_string": "old", "new_string": "new"}))
    look = calls(("read_file", {"file_path": "story.txt"}))
    with service(script(look, f"text: I change one word.\n{edit}", "text: Done now.")) as place.service, tmux(place, size=(24, 80)) as pane:
        begin(pane, "change it")
        screen = pane.expect(ASKS)
        assert "− The old text." in screen
        assert "+ The new text." in screen
        pane.keys("Enter")  # alone it answers nothing
        pane.keys("C-o")
        pane.expect("q back")
        assert "edit story.txt" in pane.run("capture-pane", "-p").splitlines()[0]
        pane.keys("q")
        pane.expect(ASKS)
        pane.keys("y")
        pane.expect("Done now.")
        pane.expect("· /undo · /diff")
        assert (place.work / "story.txt").read_text() == "The new text.\n"
        (place.work / "story.txt").write_text("Of somebody else.\n")
        pane.type("/undo")
        pane.keys("Enter")
        pane.expect("/undo --force")
        assert (place.work / "story.txt").read_text() == "Of somebody else.\n"
        pane.type("/undo --force")
        pane.keys("Enter")
        pane.expect("restored story.txt")
        assert (place.work / "story.txt").read_text() == "The old text.\n"
        pane.keys("C-d")
        pane.expect("exit code 0")
        screen = pane.expect(" icanon")
        assert "dragoman --resume" in screen
        assert READY not in screen, "nothing of the live region is left"
        assert " echo " in screen


def test_a_refusal_with_a_reason_reaches_the_model(place: Place) -> None:
    with (
        service(script(calls(("run_shell", {"command": "rm -rf build", "writes": True})), "text: Then not.")) as serving,
    ):
        place.service = serving
        with tmux(place, size=(24, 80)) as pane:
            begin(pane, "clean")
            pane.expect(ASKS)
            pane.keys("r")
            pane.expect("Why not?")
            pane.type("keep it")
            pane.keys("Enter")
            screen = pane.expect("Then not.")
            assert "you said no: keep it" in screen
        assert "keep it" in str(serving.requests[-1])


@pytest.mark.parametrize("state", ["waiting", "streaming", "running", "asking"])
def test_escape_stops_whatever_is_under_way(place: Place, state: str) -> None:
    answer = {
        "waiting": "wait: 30\ntext: x",
        "streaming": SLOW,
        "running": calls(("run_shell", {"command": "sleep 30"})),
        "asking": calls(("run_shell", {"command": "touch made", "writes": True})),
    }[state]
    with service(script(answer, "text: Next answer.")) as place.service, tmux(place, size=(24, 80)) as pane:
        begin(pane, "go")
        if state == "streaming":
            pane.expect("Beginning.")
        elif state == "waiting":
            pane.expect("waiting")
        elif state == "running":
            pane.expect("running 1 of 1")
        else:
            pane.expect(ASKS)
        pane.keys("Escape")
        pane.expect("cancelled", within_s=60)
        pane.expect(READY)
        pane.type("and now")
        pane.keys("Enter")
        pane.expect("Next answer.")
        assert not (place.work / "made").exists()


def test_a_command_at_work_shows_its_end_and_goes_on_in_the_background(place: Place) -> None:
    command = "for n in 1 2 3 4 5 6 7 8 9; do echo line $n; done; sleep 20"
    with service(script(calls(("run_shell", {"command": command, "writes": True})), "text: It goes on.")) as serving:
        place.service = serving
        with tmux(place, size=(24, 80)) as pane:
            begin(pane, "go")
            pane.expect(ASKS)
            pane.keys("y")
            screen = pane.expect("line 9")
            assert "● $ for n in" in screen, "its title is not pushed out of the region"
            assert "⋮ 9 lines" in screen
            assert " s of 120 s" in screen, "how long it may take"
            assert "line 2\n" not in screen
            pane.expect("b background")
            pane.type("bet")  # the first letter of a word is none of the keys
            pane.expect("› bet")
            pane.keys("BSpace", "BSpace", "BSpace")
            pane.expect("Enter tells it now")
            assert "b background" in pane.screen()
            pane.type("b")
            pane.expect("It goes on.")
            screen = pane.expect("continues in the background as bg1")
            pane.expect(READY)
            pane.type("/ps")
            pane.keys("Enter")
            pane.expect("bg1  running")
        told = str(serving.requests[1])
        assert "bg1" in told
        assert "line 9" in told


def test_enter_steers_the_run_and_tab_queues_the_next_prompt(place: Place) -> None:
    os.mkfifo(place.work / "pipe")  # the command lasts until something is written there
    slow = calls(("run_shell", {"command": "cat pipe"}))
    with service(script(slow, "text: Steered.", "text: From the queue.")) as serving:
        place.service = serving
        with tmux(place, size=(24, 80)) as pane:
            begin(pane, "go")
            pane.expect("running 1 of 1")
            pane.type("look left")
            pane.keys("Enter")
            pane.expect("⏎ next: look left")
            pane.type("afterwards this")
            pane.keys("Tab")
            pane.expect("⏎ after this answer: afterwards this")
            (place.work / "pipe").write_text("read\n")
            pane.expect("Steered.")
            screen = pane.expect("From the queue.")
        assert screen.index("› look left") < screen.index("Steered.") < screen.index("› afterwards this")
        assert "look left" in str(serving.requests[1])
        assert "afterwards this" not in str(serving.requests[1])
        assert "afterwards this" in str(serving.requests[2])


def test_what_is_queued_can_be_taken_back(place: Place) -> None:
    with service(script(SLOW)) as place.service, tmux(place, size=(24, 80)) as pane:
        begin(pane, "go")
        pane.expect("Beginning.")
        pane.type("later")
        pane.keys("Tab")
        pane.expect("⏎ after this answer: later")
        pane.keys("Up")
        pane.expect("› later")
        assert "after this answer" not in pane.screen()


@pytest.mark.parametrize("brackets", [True, False])
def test_a_paste_of_5000_lines_is_folded_and_sent_whole(place: Place, brackets: bool) -> None:
    text = "\n".join(f"pasted line {number}" for number in range(5_000))
    with service(script("text: I have read it.")) as serving:
        place.service = serving
        with terminal(place, size=(24, 80)) as shown:
            shown.expect("claude-opus-5")
            data = text.replace("\n", "\r").encode()
            shown.send_all(b"\x1b[200~" + data + b"\x1b[201~" if brackets else data)
            shown.expect("[paste 1: 5,000 lines]")
            assert not serving.requests, "nothing is sent before Enter"
            shown.send("\r")
            shown.expect("I have read it.")
        assert "pasted line 0\\npasted line 1\\n" in str(serving.requests[0])
        assert "pasted line 4999" in str(serving.requests[0])


def test_what_is_typed_before_everything_is_loaded_is_kept(place: Place) -> None:
    with service(script("text: Heard.")) as place.service, terminal(place, size=(24, 80)) as shown:
        shown.send("early words")
        shown.expect("early words")
        shown.expect("claude-opus-5")
        shown.send("\r")
        shown.expect("Heard.")


def test_enter_before_everything_is_loaded_sends_when_it_is(place: Place) -> None:
    with service(script("text: Heard.")) as place.service, terminal(place, size=(24, 80)) as shown:
        shown.expect("Ask, /")
        shown.send("early words")
        shown.expect("early words")
        shown.send("\r")
        shown.expect("Heard.")


def test_enter_before_everything_is_loaded_takes_what_the_menu_would_show(place: Place) -> None:
    with service(script()) as place.service, terminal(place, size=(24, 80)) as shown:
        shown.expect("Ask, /")
        shown.send("/res")
        shown.expect("/res")
        shown.send("\r")
        shown.expect("Go on with")
        assert "unknown command" not in shown.text


def test_a_suspended_conversation_gives_the_terminal_back_and_goes_on(place: Place) -> None:
    after = "echo now suspended; stty -a; read -r; fg; echo exit code $?"
    with service(script("text: After the pause.")) as place.service, tmux(place, size=(30, 80), after=after) as pane:
        begin(pane)
        pane.type("a draft")
        pane.expect("› a draft")
        pane.keys("C-z")
        screen = pane.expect("now suspended")
        assert "› a draft" not in screen, "the shell's lines do not stand among ours"
        pane.expect(" icanon")
        pane.keys("Enter")
        screen = pane.expect("› a draft")
        assert screen.count("› a draft") == 1
        pane.keys("Enter")
        pane.expect("After the pause.")
        pane.expect("out · $")
        pane.keys("C-d")
        pane.expect("exit code 0")


BELL = re.compile(rb"\x1b\][^\x07]*\x07|(\x07)")
"""A bell of its own, and not the end of a title."""


def test_a_question_rings_for_whoever_looks_elsewhere_and_not_for_whoever_just_typed(place: Place) -> None:
    edit = calls(("write_file", {"file_path": "a.txt", "content": "one"}))
    with service(script(edit, edit)) as place.service:
        with terminal(place, size=(24, 80)) as shown:
            shown.expect("claude-opus-5")
            shown.send("write it\r")
            shown.expect(ASKS)
            assert not any(found[1] for found in BELL.finditer(shown.raw))
        with terminal(place, "write it", size=(24, 80)) as shown:
            shown.expect(ASKS)
            assert sum(bool(found[1]) for found in BELL.finditer(shown.raw)) == 1


def test_a_closed_window_ends_the_run_and_the_session_is_kept(place: Place) -> None:
    with service(script(SLOW)) as place.service, terminal(place, size=(24, 80)) as shown:
        shown.expect("claude-opus-5")
        shown.send("go\r")
        shown.expect("Beginning.")
        shown.hang_up()
        shown.process.wait(60)
        assert shown.process.returncode == 129
    done = place.run("sessions", "list")
    assert "go" in done.out


def test_a_killed_conversation_can_be_resumed_opened_and_copied(place: Place) -> None:
    look = calls(("run_shell", {"command": "printf 'ebb\\nflood\\n'"}))
    with service(script(look, "text: First answer.", SLOW, "text: And on.")) as place.service:
        with terminal(place, size=(24, 80)) as shown:
            shown.expect("claude-opus-5")
            shown.send("remember me\r")
            shown.expect("First answer.", "out · $")
            shown.send("second\r")
            shown.expect("Beginning.")
            os.kill(shown.process.pid, signal.SIGKILL)
            shown.process.wait(60)
        with terminal(place, "-c", size=(24, 80)) as shown:
            shown.expect("remember me", "exit 0", "First answer.")
            shown.expect("ask first")
            shown.send("/copy\r")
            shown.expect("copied:")
            shown.send("\x0f")
            shown.expect("ebb", "flood", "q back")
            shown.send("qgo on\r")
            shown.expect("And on.")


def test_ctrl_c_twice_leaves_and_once_clears(place: Place) -> None:
    with service(script("text: x")) as place.service, terminal(place, size=(24, 80)) as shown:
        shown.expect("claude-opus-5")
        shown.send("words")
        shown.expect("words")
        shown.send("\x03")
        shown.expect("Ask, /")
        shown.send("\x03")
        shown.expect("press Ctrl-C again")
        shown.send("\x03")
        assert shown.ended() == 0
        assert shown.modes[3] == shown.before[3]


def test_ctrl_c_twice_in_a_run_ends_at_once_and_says_how_to_come_back(place: Place) -> None:
    with service(script(SLOW)) as place.service, terminal(place, size=(24, 80)) as shown:
        shown.expect("claude-opus-5")
        shown.send("go\r")
        shown.expect("Beginning.")
        shown.send("\x03\x03")
        assert shown.ended() == 130
        assert "dragoman --resume" in shown.text
        assert shown.modes[3] == shown.before[3]


def test_a_dumb_terminal_gets_the_plain_conversation(place: Place) -> None:
    with service(script("text: x")) as place.service, terminal(place, env={"TERM": "dumb"}, size=(24, 80)) as shown:
        shown.expect("/help lists the commands")
        assert b"\x1b[?2004h" not in shown.raw


def test_the_configuration_may_ask_for_the_plain_conversation(place: Place) -> None:
    folder = place.home / "dragoman"
    folder.mkdir()
    (folder / "config.toml").write_text('[ui]\nmode = "plain"\n')
    with service(script("text: x")) as place.service, terminal(place, size=(24, 80)) as shown:
        shown.expect("/help lists the commands")
        assert "Ask, /" not in shown.text


def test_an_error_at_the_start_leaves_the_terminal_as_it_was(place: Place) -> None:
    with terminal(place, model="nobody/knows-it", size=(24, 80)) as shown:
        assert shown.ended() == 52
        assert shown.modes[3] == shown.before[3]
        assert "nobody" in shown.text


def test_commands_and_files_are_completed(place: Place) -> None:
    (place.work / "calculator.py").write_text("pass\n")
    with service(script("text: x")) as place.service, tmux(place, size=(24, 80)) as pane:
        begin(pane)
        pane.type("/appr")
        pane.expect("/approvals")
        pane.keys("Escape")  # with the next key close behind it would be another key
        pane.expect_gone("/approvals")
        pane.keys("C-u")
        pane.type("read @calcu")
        pane.expect("› @calculator.py")
        pane.keys("Tab")
        pane.expect("› read @calculator.py")


def test_a_command_of_the_users_own_is_shown_and_told_with_the_next_prompt(place: Place) -> None:
    with service(script("text: I see it.")) as serving:
        place.service = serving
        os.mkfifo(place.work / "pipe")
        with tmux(place, size=(24, 80)) as pane:
            begin(pane, "!echo from $((40 + 2))")
            pane.expect("from 42")
            pane.type("!printf '\\033[31mred\\033[0m'; cat pipe")  # until it is stopped
            pane.keys("Enter")
            pane.expect("s · esc stops it")
            pane.expect("\n  red")
            pane.keys("Escape")
            pane.expect("\n  stopped")
            pane.type("what was that")
            pane.keys("Enter")
            pane.expect("I see it.")
        assert "from 42" in str(serving.requests[0])


def test_what_is_folded_opens_and_the_conversation_comes_back(place: Place) -> None:
    (place.work / "long.txt").write_text("".join(f"line {number}\n" for number in range(60)))
    look = calls(("read_file", {"file_path": "long.txt"}))
    with service(script(look, "text: Read it.")) as place.service, tmux(place, size=(24, 80)) as pane:
        begin(pane, "read")
        pane.expect("Read it.")
        pane.expect("out · $")
        assert "line 30" not in pane.screen()
        pane.keys("C-o")
        pane.expect("line 3")
        pane.keys("End")
        pane.expect("line 59")
        pane.keys("q")
        screen = pane.expect("Read it.")
        assert "line 59" not in screen
        assert screen.count("ask first") == 1


def test_the_model_is_picked_in_mid_conversation(place: Place) -> None:
    with service(script("text: Said by the first.", "text: Said by the other.")) as serving:
        place.service = serving
        with tmux(place, size=(24, 80)) as pane:
            begin(pane, "one")
            pane.expect("Said by the first.")
            pane.expect("out · $")
            pane.type("/model")
            pane.keys("Enter")
            pane.expect("Model for the next answer")
            pane.type("gpt-4.1-mini")
            pane.keys("Enter")
            pane.expect("gpt-4.1-mini")
            pane.type("two")
            pane.keys("Enter")
            pane.expect("Said by the other.")
        assert "gpt-4.1-mini" in str(serving.requests[-1])


def test_sessions_are_picked_forked_and_begun_anew(place: Place) -> None:
    answers = script("text: In the first.", "text: In the second.", "text: In the first again.")
    with service(answers) as place.service, tmux(place, size=(24, 100)) as pane:
        begin(pane, "the first session")
        pane.expect("In the first.")
        pane.expect("out · $")
        pane.type("/new")
        pane.keys("Enter")
        pane.expect("Dragoman 0", count=2)
        pane.type("the second session")
        pane.keys("Enter")
        pane.expect("In the second.")
        pane.expect("out · $", count=2)
        pane.type("/resume")
        pane.keys("Enter")
        pane.expect("Go on with")
        assert "in use" not in pane.screen()
        pane.keys("Escape")
        logs = (place.home / "dragoman" / "data" / "sessions").rglob("*.jsonl")
        path = next(each for each in logs if b"the first session" in each.read_bytes())
        with path.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            pane.expect(READY)
            pane.type("/resume")
            pane.keys("Enter")
            pane.expect("in use")
            pane.type("first")
            pane.keys("Enter")
            pane.expect(f"another program has it open (process {os.getpid()})")
        pane.keys("Enter")
        pane.expect("Dragoman 0", count=3)
        pane.type("more")
        pane.keys("Enter")
        pane.expect("In the first again.")


def test_an_earlier_prompt_comes_back_with_escape_twice(place: Place) -> None:
    with service(script("text: One.", "text: Two.", "text: Three.")) as serving:
        place.service = serving
        with tmux(place, size=(24, 80)) as pane:
            begin(pane, "the first prompt")
            pane.expect("One.")
            pane.expect("out · $")
            pane.type("the second prompt")
            pane.keys("Enter")
            pane.expect("Two.")
            pane.expect("out · $", count=2)
            pane.keys("Escape", "Escape")
            pane.expect("Back to before")
            pane.keys("Enter")
            pane.expect("› the second prompt", count=2)
            pane.type(", changed")
            pane.keys("Enter")
            pane.expect("Three.")
        told = str(serving.requests[-1])
        assert "the second prompt, changed" in told
        assert "Two." not in told


def test_an_overloaded_service_is_one_line_and_is_not_waited_for_at_will(place: Place) -> None:
    busy = 'error: 529 "Overloaded"'
    config = place.home / "dragoman" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[retry]\nfirst_delay_s = 300\nmax_delay_s = 300\ndeadline_s = 3000\n")  # none by itself while the test types
    with service(script(busy, busy, "text: After all.", busy, "text: From the other one.")) as serving:
        place.service = serving
        with tmux(place, size=(24, 120)) as pane:
            begin(pane, "go")
            pane.expect("attempt 2 of")
            pane.expect("⏎ now")
            pane.keys("Enter")
            pane.expect("attempt 3 of")
            pane.keys("Enter")
            screen = pane.expect("After all.")
            assert screen.count("Overloaded") == 1, "one line stays of both"
            assert "tried again 2 times" in screen
            pane.expect(READY)
            pane.type("once more")
            pane.keys("Enter")
            pane.expect("m another model")
            pane.type("m")
            pane.expect("only those with a key")
            pane.type("openai/gpt-5.4")
            pane.keys("Enter")
            screen = pane.expect("From the other one.")
            assert "cancelled" not in screen
        assert serving.requests[-1]["model"].startswith("gpt-5.4")


def test_a_question_on_the_command_line_begins_the_conversation(place: Place) -> None:
    with service(script("text: Answered.")) as place.service, tmux(place, "what is it", size=(24, 80)) as pane:
        screen = pane.expect("Answered.")
        assert "› what is it" in screen
        pane.expect(READY)


def test_the_conversation_speaks_chinese(place: Place) -> None:
    with service(script("text: 你好。")) as place.service, tmux(place, "--lang", "zh", size=(24, 80)) as pane:
        pane.expect("提问")
        pane.type("你好")
        pane.keys("Enter")
        pane.expect("你好。")


def test_the_prompt_is_written_in_the_users_editor(place: Place) -> None:
    editor = place.home / "editor"
    editor.write_text('#!/bin/sh\ngrep -q kept "$1" && exit 1\necho "written in the editor" > "$1"\n')
    editor.chmod(0o755)
    with service(script("text: Read.")) as serving:
        place.service = serving
        place.more_env = {"EDITOR": str(editor)}
        with tmux(place, size=(24, 80)) as pane:
            begin(pane)
            pane.type("kept as it was")
            pane.keys("C-g")
            pane.expect("the editor ended with an error")
            pane.expect("› kept as it was")
            pane.keys("C-u", "C-g")
            pane.expect("› written in the editor")
            pane.keys("Enter")
            pane.expect("Read.")
        assert "written in the editor" in str(serving.requests[0])


def test_a_question_of_the_model_is_answered_in_a_line(place: Place) -> None:
    asks = calls(("ask_user", {"question": "Which colour?", "choices": ["red", "green"]}))
    with service(script(asks, "text: As you say.")) as serving:
        place.service = serving
        with tmux(place, size=(24, 80)) as pane:
            begin(pane, "ask me")
            pane.expect("A number, or your own answer")
            pane.type("2")
            pane.keys("Enter")
            pane.expect("As you say.")
        assert "green" in str(serving.requests[-1]["messages"][-1])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_a_signal_ends_it_with_the_terminal_restored(place: Place, number: signal.Signals) -> None:
    with service(script(SLOW)) as place.service, terminal(place, size=(24, 80)) as shown:
        shown.expect("opus-5")
        shown.send("go\r")
        shown.expect("Beginning.")
        shown.process.send_signal(number)
        assert shown.ended(5) == 128 + number
        assert shown.modes[3] == shown.before[3]
        assert "dragoman --resume" in shown.text


# --- what the model sees, sessions, lists


def with_tiny_model(place: Place) -> None:
    """The program knows a model of a few thousand bytes, and its weights lie in the workspace."""
    (place.work / "own.gguf").write_bytes(CONTENT)
    added = "from dragoman.local.weights import models\nfrom tiny_model import TINY\nmodels.MODELS['tiny'] = TINY\n"
    (place.home / "sitecustomize.py").write_text(added)
    place.more_env = {"PYTHONPATH": os.pathsep.join([str(place.home), os.path.dirname(os.path.dirname(__file__))])}


def test_a_result_is_dropped_brought_back_and_kept_in_the_list_of_what_the_model_sees(place: Place) -> None:
    (place.work / "story.txt").write_text("The old text.\n" * 30)
    look = calls(("read_file", {"file_path": "story.txt"}))
    with_tiny_model(place)
    with service(script(look, "text: Read it.")) as place.service, tmux(place, size=(30, 100)) as pane:
        begin(pane, "look")
        pane.expect("out · $")
        pane.type("/context")
        pane.keys("Enter")
        pane.expect("Next request:")
        pane.type("old")
        pane.expect("fewer")
        pane.keys("C-x")
        pane.expect("dropped, was")
        pane.keys("C-x")
        pane.expect("fewer")
        pane.keys("C-k")
        pane.expect("kept")
        pane.keys("Enter")
        pane.expect("lines 1–")
        pane.keys("q")
        pane.expect("Next request:")
        pane.keys("C-s")
        pane.expect("hindsight")
        pane.keys("q")
        pane.expect("Next request:")
        pane.keys("C-r")
        pane.expect('{"model":"claude-opus-5"')
        pane.keys("q")
        pane.expect("Next request:")
        pane.keys("Escape")
        pane.expect(READY)
        for line, told in (
            ("/context drop 999", "entry 999 is not in the next request"),
            ("/stats", "read_file      1"),
            ("/bug", "python    3."),
            ("/models pull tiny", "/models pull tiny --yes"),
            ("/models pull tiny --from own.gguf", "Downloaded tiny"),
            ("/export --as record told.json", "written to"),
            ("/export told.json", "told.json exists"),
            ("/copy 3", "the last answer has 0 code blocks"),
            ("/sessions search look", "look"),
            ("/rewind 999", "no entry 999"),
        ):
            pane.type(line)
            pane.keys("Enter")
            pane.expect(told)
        shown = place.run("context", "--json").json
        pane.type("/rewind 4")
        pane.keys("Enter")
        pane.expect("back to entry 4")
        pane.keys("C-d")
        pane.expect("exit code 0")
    assert [item["state"] for item in place.run("context", "--json").json["items"] if item["kind"] == "result"] == ["dropped"]
    [kept] = [item for item in shown["items"] if item["kind"] == "result"]
    assert kept["held"]
    assert kept["state"] == "kept"


def test_a_session_is_named_and_deleted_in_the_list_and_one_of_another_program_goes_on(place: Place) -> None:
    for prompt in ("first thing", "second thing"):
        with service("text: An answer.") as place.service:
            place.ask(prompt)
    folder = place.home / ".codex" / "sessions" / "2026" / "11" / "10"
    folder.mkdir(parents=True)
    head = {"timestamp": "2026-11-10T10:00:00Z", "type": "session_meta", "payload": {"id": "0199", "cwd": str(place.work)}}
    items = [
        {"type": "message", "role": role, "content": [{"type": f"{kind}_text", "text": text}]}
        for role, kind, text in (("user", "input", "Begun elsewhere"), ("assistant", "output", "Said elsewhere."))
    ]
    lines = [head, *({"timestamp": "2026-11-10T10:00:01Z", "type": "response_item", "payload": item} for item in items)]
    (folder / "rollout-2026-11-10T10-00-00-0199.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with service("text: Goes on here.") as place.service, tmux(place, size=(30, 120)) as pane:
        begin(pane, "/resume")
        pane.expect("second thing")
        pane.type("first")
        pane.keys("C-t")
        pane.expect("title: first thing")
        pane.type(" renamed")
        pane.keys("Enter")
        pane.expect("first thing renamed")
        pane.keys("C-e")
        pane.expect("write to:")
        pane.keys("C-u")
        pane.type("told.json")
        pane.keys("Enter")
        pane.expect("written to")
        pane.keys("C-y")
        pane.expect("nothing was changed")
        pane.keys("C-x")
        pane.expect("again deletes")
        pane.keys("C-x")
        pane.expect("deleted")
        pane.keys("C-u")
        pane.keys("Tab", "Tab")
        pane.expect("Begun elsewhere")
        pane.keys("Enter")
        pane.expect("Said elsewhere.")
        pane.type("go on")
        pane.keys("Enter")
        pane.expect("Goes on here.")
        counted = re.search(r"cache warm (4:\d\d)", pane.expect("cache warm 4:"))
        assert counted is not None
        until = time.monotonic() + 60
        while f"cache warm {counted[1]}" in pane.screen():
            assert time.monotonic() < until, "it counts down by itself"
    assert "first thing" in (place.work / "told.json").read_text()
    listed = place.run("sessions", "list").out
    assert "first thing" not in listed
    assert "second thing" in listed
    assert "Begun elsewhere" in listed


def test_nothing_is_drawn_once_the_terminal_is_given_back_however_long_closing_takes(place: Place) -> None:
    config = place.home / "dragoman" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[[hooks.SessionEnd]]\ncommand = "sleep 1.2"\n')  # longer than the next second of the cache counts down
    with service(script("text: Done now.")) as place.service, tmux(place, model="anthropic/claude-opus-5", size=(24, 120)) as pane:
        begin(pane, "go")
        pane.expect("cache warm 4:")
        pane.keys("C-d")
        screen = pane.expect("exit code 0")
        assert "dragoman --resume" in screen
        assert READY not in screen
        assert "cache warm" not in screen


def test_escape_stops_the_run_when_the_model_asks(place: Place) -> None:
    asked = calls(("ask_user", {"question": "Which colour?", "choices": ["red", "blue"]}))
    with service(script(asked, "text: Next answer.")) as place.service, tmux(place, size=(24, 80)) as pane:
        begin(pane, "go")
        pane.expect("Which colour?")
        pane.keys("Escape")
        pane.expect("cancelled")
        pane.expect(READY)


def test_what_was_looked_at_stands_on_one_line_and_the_list_of_tasks_above_the_prompt(place: Place) -> None:
    for name in ("a.txt", "b.txt"):
        (place.work / name).write_text("x\n")
    reads = calls(("read_file", {"file_path": "a.txt"}), ("read_file", {"file_path": "b.txt"}))
    steps = [{"content": "look around", "status": "completed"}, {"content": "mend it", "status": "in_progress"}]
    work = calls(("run_shell", {"command": "sleep 3; echo slept"}))
    with (
        service(script(reads, calls(("todo", {"items": steps})), work, "text: Done.")) as place.service,
        tmux(place, size=(24, 80)) as pane,
    ):
        begin(pane, "go")
        pane.expect("running 1 of 1")
        screen = pane.expect("▸ mend it")
        assert "● read_file a.txt, b.txt" in screen or "● read_file b.txt, a.txt" in screen  # as they came
        assert "1 of 2 done" in screen
        pane.expect("Done.")


def test_vim_keys_edit_the_prompt(place: Place) -> None:
    config = place.home / "dragoman" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("ui.vim = true\n")
    with service("text: Understood.") as serving:
        place.service = serving
        with tmux(place, size=(24, 80)) as pane:
            begin(pane)
            pane.type("fix the parser")
            pane.keys("Escape")
            pane.expect("NORMAL")
            pane.type("bcwlexer")
            pane.keys("Enter")
            pane.expect("Understood.")
        assert "fix the lexer" in str(serving.requests[-1])


def test_an_image_that_is_named_is_sent(place: Place) -> None:
    (place.work / "pic.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    with service("text: Seen.") as serving:
        place.service = serving
        with tmux(place, size=(24, 100)) as pane:
            begin(pane)
            pane.type("what is ")
            pane.paste(str(place.work / "pic.png"))
            pane.expect("@pic.png")
            pane.keys("Enter")
            pane.expect("@pic.png · image/png")
            pane.expect("Seen.")
        assert "image/png" in str(serving.requests[-1])


def test_documents_are_sent_like_images_and_what_cannot_be_sent_is_said(place: Place) -> None:
    (place.work / "paper.pdf").write_bytes(b"%PDF-1.4\n%%EOF\n")
    (place.work / "song.mp3").write_bytes(b"ID3" + bytes(40))
    with service("text: Read.") as serving:
        place.service = serving
        with tmux(place, size=(24, 160)) as pane:
            begin(pane)
            pane.paste(str(place.work / "paper.pdf"))
            pane.expect("@paper.pdf")
            pane.type("and @song.mp3 @gone.png")
            pane.keys("Enter")
            pane.expect("song.mp3 was not sent")
            pane.expect("gone.png cannot be read")
            pane.expect("@paper.pdf · application/pdf")
            pane.expect("Read.")
        assert "application/pdf" in str(serving.requests[-1])
        assert "audio/mpeg" not in str(serving.requests[-1])


def test_thinking_is_set_in_the_conversation(place: Place) -> None:
    with service(script("text: One.", "text: Two.")) as serving:
        place.service = serving
        with tmux(place, size=(24, 80)) as pane:
            begin(pane, "/effort high")
            pane.expect("thinking: high")
            pane.type("go")
            pane.keys("Enter")
            pane.expect("One.")
        assert "high" in str(serving.requests[-1].get("output_config", serving.requests[-1].get("thinking")))


def test_it_starts_without_any_argument(place: Place) -> None:
    config = place.home / "dragoman" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('model = "anthropic/claude-opus-5"\n')
    with service("text: Hello.") as place.service, terminal(place, model="") as shown:
        shown.expect(READY)
        shown.send("\x04")
        assert shown.ended() == 0


def test_the_first_start_asks_about_trust_with_one_key_and_keeps_what_was_typed(place: Place) -> None:
    (place.work / "AGENTS.md").write_text("Obey the folder.")
    with service("text: Hello.") as serving:
        place.service = serving
        with tmux(place, size=(24, 80)) as pane:
            pane.expect("Trust this folder?")
            pane.expect(MARKED)
            pane.keys("?")
            pane.expect("speaks to your model")
            pane.keys("y")
            pane.expect("└ trusted")
            begin(pane, "hi")
            screen = pane.expect("Hello.")
            assert screen.count("Trust this folder?") == 0, "the question itself was live, and is gone"
            assert screen.count("AGENTS.md") == 1
            pane.type("/trust")
            pane.keys("Enter")
            pane.expect("this conversation has read: AGENTS.md")
        assert "Obey the folder." in str(serving.requests)


@pytest.mark.parametrize(("key", "code"), [("C-c", 130), ("C-d", 0)])
def test_leaving_at_the_question_of_trust_is_no_answer(place: Place, key: str, code: int) -> None:
    (place.work / "AGENTS.md").write_text("Obey the folder.")
    with service("text: Hello.") as place.service, tmux(place, size=(24, 80)) as pane:
        pane.expect("Trust this folder?")
        pane.keys(key)
        pane.expect(f"exit code {code}")
        pane.expect(" icanon")
    assert not (place.home / "dragoman" / "data" / "trust.jsonl").exists()


def type_slowly(pane: Tmux, text: str) -> None:
    """As a person types: in a slow terminal a sentence comes bit by bit. Two keys at once: a busy machine would make a pause of its own
    around a single one, which then answers."""
    for at in range(0, len(text) - 1, 2):
        pane.type(text[at : at + 2] if len(text) - at > 3 else text[at:])
        time.sleep(0.08)
        if len(text) - at <= 3:
            break


@pytest.mark.parametrize("sentence", ["why not", "/retry", "yes please"])
def test_a_sentence_at_the_question_of_trust_is_kept_and_enter_alone_says_no(place: Place, sentence: str) -> None:
    (place.work / "AGENTS.md").write_text("Obey the folder.")
    trust = place.home / "dragoman" / "data" / "trust.jsonl"
    with service("text: Hello.") as place.service, tmux(place, size=(24, 80)) as pane:
        pane.expect(MARKED)
        type_slowly(pane, sentence)
        pane.expect(f"› {sentence}")
        pane.keys("Enter")  # meant for the sentence: nothing is sent, and nothing is answered
        pane.expect(ASKS)
        assert not trust.exists()
        pane.keys("C-u", "BSpace", "C-u")
        pane.expect(MARKED)
        pane.keys("Enter")
        pane.expect("└ not trusted")
        pane.expect(READY)
    assert json.loads(trust.read_text())["trusted"] is False


def test_what_is_typed_while_the_question_of_trust_comes_up_is_in_the_prompt(place: Place) -> None:
    (place.work / "AGENTS.md").write_text("Obey the folder.")
    with service("text: Hello.") as place.service, terminal(place, size=(24, 80)) as shown:
        shown.send("y")
        shown.expect("Trust this folder?")
        shown.expect("a key answers, or a key and Enter")
        assert not (place.home / "dragoman" / "data" / "trust.jsonl").exists()
        shown.send("n\r")
        shown.expect("not trusted", "› y")


@pytest.mark.parametrize("sentence", ["why not", "yes please", "no, do it otherwise"])
def test_a_sentence_at_an_approval_is_kept_in_the_prompt_and_answers_nothing(place: Place, sentence: str) -> None:
    answers = script(calls(("run_shell", {"command": "touch made", "writes": True})), "text: Then not.")
    with service(answers) as place.service, tmux(place, size=(24, 80)) as pane:
        begin(pane, "go")
        pane.expect(ASKS)
        type_slowly(pane, sentence)
        pane.keys("Enter")
        pane.expect(f"› {sentence}")
        screen = pane.expect(ASKS)
        assert "Run this command?" in screen, "the question stays whole above what is written"
        pane.keys("n")
        screen = pane.expect("Then not.")
        assert "you said no" in screen
        pane.expect(f"› {sentence}")
        assert not (place.work / "made").exists()


def test_what_is_typed_while_a_question_comes_up_is_in_the_prompt(place: Place) -> None:
    asks = calls(("run_shell", {"command": "touch made", "writes": True}))
    with service(script(f"text: Begun.\nwait: 1\n{asks}", "text: Then not.")) as place.service, tmux(place, size=(24, 80)) as pane:
        begin(pane, "go")
        pane.expect("Begun.")
        until = time.monotonic() + 30
        typed = ""
        while "Run this command?" not in pane.screen():
            assert time.monotonic() < until
            pane.type("yy")  # never one key alone: on a busy machine there may be a pause between two of these
            typed += "yy"
            time.sleep(0.1)
        pane.type("yy")
        pane.expect(ASKS)
        pane.expect(f"› {typed}yy")
        assert not (place.work / "made").exists()
        pane.keys("n", "Enter")
        pane.expect("Then not.")
        pane.expect(f"› {typed}yy")


def test_the_choices_are_explained(place: Place) -> None:
    with (
        service(script(calls(("run_shell", {"command": "touch made", "writes": True})), "text: Done.")) as place.service,
        tmux(place, size=(40, 80)) as pane,
    ):
        begin(pane, "go")
        pane.expect(ASKS)
        pane.keys("?")
        pane.expect("y lets it run this once")
        pane.expect(ASKS)
        pane.keys("y")
        pane.expect("Done.")
        assert (place.work / "made").exists()


@pytest.mark.parametrize("ui", ["plain", ""])
def test_a_sentence_at_a_question_about_a_host_reaches_nothing(place: Place, ui: str) -> None:
    place.ui = ui
    fetch = "python3 -c \"import urllib.request as u; u.urlopen('http://example.com'); open('made', 'w')\""
    answers = script(calls(("run_shell", {"command": fetch})), "text: Then not.")
    with service(answers) as place.service, tmux(place, "--approval", "auto", size=(40, 100)) as pane:
        begin(pane, "go", "/help" if ui else READY)
        pane.expect("connect to example.com")
        pane.expect("run):" if ui else ASKS)
        type_slowly(pane, "yes please")
        pane.expect("run):" if ui else ASKS, count=2 if ui else 1)
        pane.keys("n", "Enter")
        pane.expect("Then not.")
        pane.expect("› yes please")
    assert not (place.work / "made").exists()
