"""Commands that fail and commands that ask for a host, in the real conversation: with a live region in tmux, and line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from program import Place, calls, script, service
from terminals import terminal, tmux

READY = "Ask, / for commands"
ASKS = "a key answers, or a key and Enter"
FAILS = "seq 30; echo 'a.c:3:1: error: unknown type name'; echo 'make: *** [a.o] Error 1' >&2; exit 2"
STOPPED = "touch /usr/dragoman-probe"


@pytest.mark.usefixtures("with_tmux")
def test_a_failed_command_shows_why_and_opens_whole(place: Place) -> None:
    answers = script(calls(("run_shell", {"command": FAILS})), calls(("run_shell", {"command": STOPPED})), "text: Done.")
    with service(answers) as place.service, tmux(place, "--approval", "auto", size=(24, 80)) as pane:
        pane.expect(READY)
        pane.type("go")
        pane.keys("Enter")
        screen = pane.expect("Done.")
        assert "  a.c:3:1: error: unknown type name\n  make: *** [a.o] Error 1\n  … 32 lines in all · Ctrl-O" in screen
        assert "stopped by the sandbox: /usr/dragoman-probe is read-only there" in screen
        pane.keys("C-o")
        pane.expect("2 of 2")
        pane.keys("Left")
        assert "exit 2" in pane.expect("lines 1–21 of 35")


@pytest.mark.usefixtures("with_tmux")
def test_a_background_command_asks_at_the_prompt_and_esc_refuses_it(place: Place) -> None:
    asks = {"command": "sleep 2; curl -sS http://late.example/; sleep 60", "background": True}
    answers = script(calls(("run_shell", asks)), "text: Started.", "text: After.")
    with service(answers) as place.service, tmux(place, "--approval", "auto", size=(24, 80)) as pane:
        pane.expect(READY)
        pane.type("go")
        pane.keys("Enter")
        pane.expect("Started.")
        pane.expect("Let this command connect to late.example?")
        pane.keys("Escape")
        pane.expect(READY)
        pane.type("more")
        pane.keys("Enter")
        pane.expect("After.")


@pytest.mark.usefixtures("with_tmux")
def test_a_question_outlives_its_command_and_no_json_is_shown(place: Place) -> None:
    asks = {"command": "curl -sS example.org & until test -e x; do sleep 1; done; kill $!; exit 9", "timeout_s": 3}
    with (
        service(script(calls(("run_shell", asks)), "text: Done.")) as place.service,
        tmux(place, "--approval", "auto", size=(24, 80)) as pane,
    ):
        pane.expect(READY)
        pane.type("go")
        pane.keys("Enter")
        pane.expect(ASKS)
        (place.work / "x").touch()  # it gives up
        pane.run("run-shell", "sleep 4")  # longer than the command takes, and than it may
        asked = pane.expect("Let this command connect to example.org?")
        assert "│ curl -sS example.org & until test -e x; do sleep 1; done; kill $!; exit 9" in asked
        assert "y yes, this command   a example.org and its subdomains, this session" in asked
        assert "change it first" not in asked, "there is nothing to change in a host"
        assert "network.hosts" not in asked
        pane.keys("a")
        screen = pane.expect("Done.")
        assert "you allowed example.org when it had given up waiting: it has to run again" in screen
        assert "exit 9" in screen
        assert "{" not in screen.partition("connect to")[2]


def test_line_by_line_a_host_is_asked_about_in_words(tmp_path: Path) -> None:
    place = Place(tmp_path)
    asks = calls(("run_shell", {"command": "curl -sS -m 60 http://example.org/"}))
    with service(script(asks, "text: Done.")) as place.service, terminal(place, "--approval", "auto") as shown:
        shown.prompt()
        shown.ask("go")
        asked = shown.expect("stop the run):")
        shown.send("?")
        explained = shown.expect("stop the run):")
        shown.send("n")
        shown.expect("Done.")
        place.close()
    assert "Let this command connect to example.org? [y]es, this command" in asked
    assert "(both: example.org and its subdomains)" in asked
    assert "[e]dit" not in asked
    assert "Commands in the sandbox reach only hosts that you allow." in explained


def test_line_by_line_they_are_printed_with_where_all_are(tmp_path: Path) -> None:
    place = Place(tmp_path)
    answers = script(calls(("run_shell", {"command": FAILS})), calls(("run_shell", {"command": STOPPED})), "text: Done.")
    with service(answers) as place.service, terminal(place, "--approval", "auto") as shown:
        shown.prompt()
        shown.ask("go")
        told = shown.expect("Done.")
        place.close()
    assert "(exit code 2)" in told
    assert "    a.c:3:1: error: unknown type name" in told
    assert "    make: *** [a.o] Error 1" in told
    assert "32 lines in all: /export writes them to a file" in told
    assert "stopped by the sandbox: /usr/dragoman-probe is read-only there" in told
    assert "    7" not in told


@pytest.mark.usefixtures("with_tmux")
def test_a_background_command_that_ends_at_once_shows_how(place: Place) -> None:
    fails = {"command": "echo starting; nosuchserver --port 5173", "background": True}
    with service(script(calls(("run_shell", fails)), "text: Done.")) as place.service, tmux(place, "--approval", "auto") as pane:
        pane.expect(READY)
        pane.type("go")
        pane.keys("Enter")
        screen = pane.expect("Done.")
    assert "exit 127" in screen
    assert "nosuchserver: command not found" in screen
