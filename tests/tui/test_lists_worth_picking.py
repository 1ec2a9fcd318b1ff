"""Lists that tell one thing from another, figures that agree, and what a rewind took back."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from program import Place, service
from terminals import Tmux, tmux

pytestmark = pytest.mark.usefixtures("with_tmux")
PRICES = "usage: fresh=2000 cache_read=500 output=40\n"


def test_a_rewind_names_what_is_gone_and_paths_are_those_of_the_workspace(place: Place) -> None:
    (place.work / "calc.py").write_text("x = 1\n")
    read = json.dumps({"file_path": str(place.work / "calc.py")})
    with service(f"call: read_file {read}\n---\ntext: One.\n---\ntext: Two.") as serving:
        place.service = serving
        with tmux(place, size=(40, 90)) as pane:
            pane.expect("Ask, / for")
            for prompt, answer in (("review it", "One."), ("and again", "Two.")):
                pane.type(prompt)
                pane.keys("Enter")
                pane.expect(answer)
            assert "● read_file calc.py  1 line" in pane.screen()
            pane.type("/rewind")
            pane.keys("Enter")
            pane.expect("Back to before …")
            pane.keys("Down")
            pane.keys("Enter")
            screen = pane.expect("2 prompts are undone")
            pane.expect("✗ and again")
            assert "✗ review it" in screen


def test_sessions_are_told_apart_and_figures_agree(place: Place) -> None:
    """The same title twice; what the last one cost is the same in the list, in its preview, in /usage, in /stats and headless."""
    with service(
        f"text: Begun.\n---\n{PRICES}text: First.\n---\n{PRICES}text: Second.\n---\n{PRICES}text: Third.\n---\n{PRICES}text: Fourth."
    ) as serving:
        place.service = serving
        assert place.ask("fix the bug").code == 0  # told by its answer: it has one prompt alone
        for more in ("the lexer", "the parser"):
            assert place.ask("fix the bug").code == 0
            done = place.run("-c", "-p", more, "--output-format", "json")
            assert done.code == 0
        told = json.loads(done.out)["stats"]["cost_usd"]
        listed = json.loads(place.run("sessions", "list", "--output-format", "json").out)["sessions"]
        assert [each["title"] for each in listed] == ["fix the bug"] * 3
        with tmux(place, "-c", size=(40, 110)) as pane:
            pane.expect("Ask, / for")
            pane.type("/usage")
            pane.keys("Enter")
            screen = pane.expect("so far")
            cost = re.search(r"\$([\d.]+) · runs", screen)
            assert cost is not None
            pane.type("/stats")
            pane.keys("Enter")
            assert f"${cost[1]}\n" in pane.expect("2 requests").replace(" \n", "\n")
            pane.type("/new")
            pane.keys("Enter")
            pane.expect("Dragoman 0", count=2)
            pane.type("/resume")
            pane.keys("Enter")
            screen = pane.expect("fix the bug · the parser")
            assert "fix the bug · the lexer" in screen
            assert "fix the bug · Begun." in screen
            assert screen.count(f"${cost[1]}") >= 2
            assert "  Fourth." in screen
            assert "anthropic/claude-opus-5" in screen
        assert 0 < told < float(cost[1])


def test_figures_of_a_stopped_run_agree_that_they_are_the_least(place: Place) -> None:
    """The service had no chance to tell what it will bill: the line under the answer, /usage, /stats and the list all say so."""
    with service("text: Beginning.\nwait: 300\ntext: end") as serving:
        place.service = serving
        with tmux(place, size=(40, 110)) as pane:
            pane.expect("Ask, / for")
            pane.type("tell me all")
            pane.keys("Enter")
            pane.expect("Beginning.")
            pane.keys("Escape")
            cost = re.search(r"≥\$([\d.]+) ──", pane.expect("out · ≥$"))
            assert cost is not None
            pane.type("/usage")
            pane.keys("Enter")
            pane.expect(f"at least ${cost[1]} · runs")
            pane.type("/stats")
            pane.keys("Enter")
            pane.expect(f"1 request, ≥${cost[1]}")
            pane.type("/new")
            pane.keys("Enter")
            pane.expect("Dragoman 0", count=2)
            pane.type("/resume")
            pane.keys("Enter")
            pane.expect("tell me all")
            pane.expect(f"≥${cost[1]}", count=2)


def test_another_model_and_an_earlier_session_are_few_keys_away(place: Place) -> None:
    with service("text: Old.\n---\ntext: New.\n---\ntext: On.") as serving:
        place.service = serving
        for prompt in ("yesterday's work", "today's work"):
            assert place.ask(prompt).code == 0
        with tmux(place, "-r", size=(40, 110)) as pane:
            pane.expect("today's work")
            pane.keys("Down")
            pane.expect("› yesterday's work")
            pane.keys("Enter")
            pane.expect("Old.")
            pane.expect("Ask, / for")
            pane.keys("M-p")
            pane.expect("Model for the next answer")
            row = next(row for row in pane.expect("now\n").splitlines() if "anthropic/claude-haiku-5-5 " in row)
            assert re.match(r"[2-9] ", row), "the models of this service come first"
            pane.keys(f"M-{row[0]}")
            pane.expect("the model is now anthropic/claude-haiku-5-5")
            pane.type("go on")
            pane.keys("Enter")
            pane.expect("On.")
        assert serving.requests[-1]["model"].startswith("claude-haiku-5-5")


def test_retry_goes_on_after_the_program_was_killed(place: Place) -> None:
    with service("stall\n---\ntext: Back again.") as serving:
        place.service = serving
        with tmux(place, size=(30, 90)) as pane:
            pane.expect("Ask, / for")
            pane.type("long work")
            pane.keys("Enter")
            serving.expect(1)
            os.kill(_program_of(pane), signal.SIGKILL)
        with tmux(place, "-c", size=(30, 90)) as pane:
            pane.expect("was broken off: its end is not on the record")
            pane.type("/retry")
            pane.keys("Enter")
            pane.expect("Back again.")


def test_retry_goes_on_after_the_program_was_killed_while_a_command_ran(place: Place) -> None:
    """The model is told that nobody knows how the command ended."""
    with service('call: run_shell {"command": "sleep 300"}\n---\ntext: Back again.') as serving:
        place.service = serving
        with tmux(place, "--approval", "auto", size=(30, 90)) as pane:
            pane.expect("Ask, / for")
            pane.type("long work")
            pane.keys("Enter")
            pane.expect("of 120 s")
            os.kill(_program_of(pane), signal.SIGKILL)
        with tmux(place, "-c", size=(30, 90)) as pane:
            pane.expect("was broken off: its end is not on the record")
            pane.type("/retry")
            pane.keys("Enter")
            pane.expect("Back again.")
        assert "interrupted, outcome unknown" in json.dumps(serving.requests[-1]["messages"][-1])


def test_up_recalls_a_prompt_that_held_a_long_paste(place: Place) -> None:
    with service("text: Read.") as serving:
        place.service = serving
        with tmux(place, size=(30, 90)) as pane:
            pane.expect("Ask, / for")
            pane.paste("\n".join(f"{number} {'x' * 80}" for number in range(100)))
            pane.expect("[paste 1: 100 lines]")
            for _ in range(6):
                pane.paste("\n".join(f"{number} {'y' * 80}" for number in range(100)))
            pane.expect("[paste 7: 100 lines]")
            pane.keys("Enter")
            pane.expect("Read.")
            pane.keys("Up")
            pane.expect("› [paste 1")


def _program_of(pane: Tmux) -> int:
    """Find it among what the pane started: where it works is for root alone to read."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents.setdefault(int((entry / "stat").read_text().rpartition(")")[2].split()[1]), []).append(int(entry.name))
            except OSError:
                continue
    below = [int(pane.run("display-message", "-p", "#{pane_pid}"))]
    for pid in below:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"dragoman" in words and b"-m" in words and words[0].endswith(Path(sys.executable).name.encode()):
            return pid
        below += parents.get(pid, [])
    raise AssertionError("it does not run")


def test_a_small_window_keeps_the_question_and_its_keys(place: Place) -> None:
    (place.work / "calc.py").write_text("x = 1\n")
    edit = json.dumps({"file_path": "calc.py", "old_string": "x = 1", "new_string": "x = 2"})
    with service(f"call: edit {edit}\n---\ntext: Done.") as serving:
        place.service = serving
        place.more_env = {"SHELL": "/bin/bash"}
        with tmux(place, size=(12, 40)) as pane:
            pane.expect("Ask, / for")
            pane.type("fix it")
            pane.keys("Enter")
            pane.expect("a key answers")
            window = pane.run("capture-pane", "-p", "-t", "talk")
            assert "Make this edit to calc.py?" in window
            assert "y yes   n no   a s r e v" in window
            pane.type("?")
            pane.expect("Anything else you type")
            pane.expect("a key answers")
            assert "Make this edit to calc.py?" in pane.run("capture-pane", "-p", "-t", "talk")
            pane.type("y")
            pane.expect("Done.")
            pane.type("!echo $BASH_VERSION")  # the user's own shell runs it
            pane.keys("Enter")
            pane.expect("-release")
