"""`dragoman -p` where standard output or standard error is a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping

import pytest

from program import Place, Service, calls, script

Serve = Callable[..., Service]


class Terminal:
    """The far end of a pseudo-terminal: what a person would see."""

    def __init__(self) -> None:
        self._far, self.near = pty.openpty()
        fcntl.ioctl(self.near, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
        self.seen = ""

    def read_until(self, text: str, timeout_s: float = 20) -> None:
        deadline = time.monotonic() + timeout_s
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            self._read()

    def read_all(self) -> str:
        """Everything, once the program has ended."""
        os.close(self.near)
        while self._read():
            pass
        os.close(self._far)
        return self.seen.replace("\r\n", "\n")

    def _read(self) -> bool:
        try:
            data = os.read(self._far, 65536)
        except OSError:  # EIO: nobody holds the near end any more
            return False
        self.seen += data.decode()
        return bool(data)


def seen(place: Place, *arguments: str, both: bool = True, env: Mapping[str, str] | None = None) -> str:
    """What a terminal shows of a run: of both streams, or of standard output alone."""
    terminal = Terminal()
    stderr = terminal.near if both else subprocess.DEVNULL
    process = place.start("-m", "anthropic", *arguments, "-p", "hi", stdout=terminal.near, stderr=stderr, env=env)
    assert process.wait(60) == 0
    return terminal.read_all()


def test_the_answer_is_shown_as_it_comes(place: Place, serve: Serve) -> None:
    serve("text: First thing\nwait: 2\ntext: , last thing.")
    terminal = Terminal()
    process = place.start("-m", "anthropic", "-p", "hi", stdout=terminal.near, stderr=terminal.near)
    terminal.read_until("First thing")
    assert "last" not in terminal.seen
    assert process.poll() is None
    assert process.wait(60) == 0
    assert terminal.read_all() == "First thing, last thing.\n"


def test_everything_the_model_says_is_shown_and_calls_take_a_line_each(place: Place, serve: Serve) -> None:
    (place.work / "a.txt").write_text("alpha\n")
    answers = ["text: Let me look.", calls(("read_file", {"file_path": "a.txt"}), ("read_file", {"file_path": "b.txt"}))]
    serve(script(answers, "text: It says alpha."))
    lines = seen(place).splitlines()
    assert lines[0] == "Let me look."
    assert lines[-1] == "It says alpha."
    assert any("read_file a.txt ✓" in line for line in lines[1:-1])
    assert any("read_file b.txt ✗" in line for line in lines[1:-1])
    assert len(lines) == 4


@pytest.mark.parametrize(("arguments", "env"), [(["--no-color"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})])
def test_colours_can_be_done_without(place: Place, serve: Serve, arguments: list[str], env: dict[str, str]) -> None:
    (place.work / "a.txt").write_text("alpha\n")
    answers = script([calls(("read_file", {"file_path": "a.txt"}))], "text: ok")
    serve(answers)
    assert "\x1b[2m" in seen(place)
    serve(answers)
    assert "\x1b" not in seen(place, *arguments, env=env)


def test_an_answer_cannot_act_on_the_terminal(place: Place, serve: Serve) -> None:
    """Escape sequences set titles, fill the clipboard and rewrite what stands above: none gets through."""
    serve('text: "a\\u001b]0;title\\u0007b\\u001b[2Jc\\u009b31md\\re\\bf\\u007fg\\th"\ntext: "\\u001b"\ntext: "[31mi"')
    assert seen(place, both=False) == "a]0;titleb[2Jc31mdefg\th[31mi\n"


def test_a_call_cannot_either(place: Place, serve: Serve) -> None:
    serve(script([calls(("read_file", {"file_path": "\x1b]0;title\x07\nx"}))], "text: ok"))
    assert "\x1b]" not in seen(place)


def test_what_was_shown_and_is_void_is_said_to_be_so(place: Place, serve: Serve) -> None:
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text("[retry]\nfirst_delay_s = 0")
    serve(script("text: The wrong answer\ncut", "text: The right answer"))
    lines = seen(place).splitlines()
    assert lines[:2] == ["The wrong answer", "[answer discarded, trying again]"]
    assert lines[2].startswith("dragoman: ")
    assert lines[3:] == ["The right answer"]


def test_a_notice_stands_on_a_line_of_its_own_after_the_answer(place: Place, serve: Serve) -> None:
    """It came before the end of the answer's line, and was glued to it."""
    serve(script(calls(("run_shell", {"command": "make", "writes": True})), "text: I may not run it."))
    shown = seen(place)
    lines = shown.splitlines()
    assert "I may not run it." in lines
    assert lines[lines.index("I may not run it.") + 1].startswith("dragoman: ")
    assert "refused" in shown[shown.index("dragoman: ") :]


def test_a_wait_is_counted_down(place: Place, serve: Serve) -> None:
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text("[retry]\nfirst_delay_s = 3")
    serve(script("error: 503", "text: ok"))
    shown = seen(place)
    assert shown.count("Ctrl-C cancels") >= 2
    assert shown.endswith("\r\x1b[Kok\n")


def test_json_is_the_same_in_a_terminal(place: Place, serve: Serve) -> None:
    serve("text: ok")
    assert seen(place, "--output-format", "json", both=False).startswith('{"session_id":')


def test_without_a_prompt_in_a_terminal_json_is_refused(place: Place) -> None:
    terminal = Terminal()
    process = place.start("--output-format", "stream-json", stdin=terminal.near)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 42
    assert b'"type":"result"' in out
    terminal.read_all()
