"""The screen: nothing written to it acts on the terminal, and what passes leaves no trace."""

from __future__ import annotations

import asyncio
import fcntl
import io
import os
import pty
import struct
import sys
import termios
from collections.abc import Iterator
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.app.console import Messages
from dragoman.app.output import Output
from dragoman.cli.reports import TextReport
from dragoman.plain.report import TerminalReport
from dragoman.plain.screen import Screen
from dragoman.values.events import (
    CitationAdded,
    ContextCompressed,
    ContextOverflowed,
    ContextPruned,
    ErrorRaised,
    FieldOmitted,
    LoopSuspected,
    PromptRead,
    Retrying,
    StreamInvalid,
    TextDelta,
    ThoughtDelta,
    ToolCallFinished,
    ToolCallRequested,
    ToolCallUpdated,
    TurnEvent,
    TurnFinished,
    UserCancelled,
)
from dragoman.values.messages import Citation, FinishReason, Text, ToolCall
from terminals import plain


class Eyes:
    """Makes screens, and sees what is written on them."""

    def __init__(self) -> None:
        self.master, self._slave = pty.openpty()
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
        self._screens: list[Screen] = []
        modes = termios.tcgetattr(self._slave)
        modes[1] &= ~termios.OPOST  # line ends as they are
        termios.tcsetattr(self._slave, termios.TCSANOW, modes)

    def screen(self, color: Literal["auto", "always", "never"] = "never", *, term: str = "xterm", encoding: str = "utf-8") -> Screen:
        with open(self._slave, "w", encoding=encoding, closefd=False) as stdout, pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdout", stdout)
            patch.setenv("TERM", term)
            self._screens.append(Screen(color=color))
        return self._screens[-1]

    def seen(self, screen: Screen) -> bytes:
        screen.write("\0")  # never written otherwise: here ends what was
        screen.finish()
        seen = b""
        while not seen.endswith(b"\0"):
            seen += os.read(self.master, 1 << 16)
        return seen[:-1]

    def close(self) -> None:
        for screen in self._screens:
            screen.gone = True  # nobody will read the rest
            screen.close()
        os.close(self._slave)
        os.close(self.master)


@pytest.fixture
def eyes() -> Iterator[Eyes]:
    eyes = Eyes()
    yield eyes
    eyes.close()


def taken(screen: Screen, *events: TurnEvent) -> Screen:
    report = TerminalReport(screen)
    for event in events:
        report.take(event)
    return screen


def told(eyes: Eyes, *events: TurnEvent) -> str:
    """What a report shows of these events, passing lines among it."""
    return plain(eyes.seen(taken(eyes.screen(), *events)))


# --- the screen


def test_a_passing_line_is_taken_back(eyes: Eyes) -> None:
    screen = eyes.screen()
    screen.text("begun")
    screen.transient_line("for now")
    screen.transient_line("still")
    screen.line("done")
    assert eyes.seen(screen) == b"begun\nfor now\r\x1b[Kstill\r\x1b[Kdone\n"


def test_colours_only_where_they_are_wanted(eyes: Eyes) -> None:
    def coloured(screen: Screen) -> bool:
        screen.line("text", "red")
        return b"\x1b[31m" in eyes.seen(screen)

    assert coloured(eyes.screen("auto"))
    assert not coloured(eyes.screen("auto", term="dumb"))
    assert not coloured(eyes.screen("never"))
    assert coloured(eyes.screen("always", term="dumb"))


def test_our_signs_in_a_terminal_that_has_none_of_them(eyes: Eyes) -> None:
    screen = eyes.screen(encoding="ascii")
    screen.line("● read_file ✓ fine … ü")
    assert eyes.seen(screen) == b"* read_file ok: fine ... ?\n"


@given(st.lists(st.tuples(st.sampled_from(["text", "line", "message", "transient_line"]), st.text())))
def test_no_text_acts_on_the_terminal(parts: list[tuple[str, str]]) -> None:
    """Whatever is written, all that is left of control characters are line ends, tabs and our own sequence for a transient line."""
    eyes = Eyes()
    screen = eyes.screen()
    for how, text in parts:
        getattr(screen, how)(text)
    screen._encode_texts()
    written = screen._backlog.decode()
    eyes.close()
    left = written.replace("\r\x1b[K", "")
    assert not [char for char in left if (ord(char) < 32 or 127 <= ord(char) < 160) and char not in "\n\t"]


def test_a_terminal_that_takes_nothing_holds_up_nobody(eyes: Eyes) -> None:
    """Not even one that was stopped with Ctrl-S. `shown` returns when all of it was taken."""
    screen = eyes.screen()
    read: list[bytes] = []

    def look() -> None:
        while sum(map(len, read)) < 1_000_000:
            read.append(os.read(eyes.master, 1 << 16))

    async def work() -> None:
        screen.attach(asyncio.get_running_loop())
        os.write(eyes.master, b"\x13")
        screen.text("x" * 1_000_000)
        waiting = asyncio.create_task(screen.drain())
        await asyncio.sleep(0.2)
        assert not waiting.done()
        os.write(eyes.master, b"\x11")
        await asyncio.gather(waiting, asyncio.to_thread(look))

    asyncio.run(work())
    assert b"".join(read) == b"x" * 1_000_000


# --- events

CALL = ToolCall("c1", "read_file", '{"file_path": "a.txt"}')


def test_a_call_is_one_line_when_it_has_ended(eyes: Eyes) -> None:
    shown = told(
        eyes,
        ToolCallRequested(CALL),
        ToolCallUpdated("c1", "executing"),
        ToolCallUpdated("c1", "executing", "half way\nnearly"),
        ToolCallUpdated("c1", "executing", progress="line 3", done=3, total=12),
        ToolCallFinished("c1", (), display="12 lines\nand more"),
    )
    assert shown.splitlines()[-1] == "● read_file a.txt ✓ 12 lines"
    assert "… nearly" in shown
    assert "… 3/12 line 3" in shown


def test_a_command_that_failed_says_how_it_ended(eyes: Eyes) -> None:
    call = ToolCall("c1", "run_shell", '{"command": "make"}')
    result = Text('{"stdout": "cc a.c\\n", "stderr": "error\\n", "exitCode": 2}')
    shown = told(eyes, ToolCallRequested(call), ToolCallFinished("c1", (result,), display="cc a.c\nerror\n(exit code 2)"))
    assert shown == "● $ make … (exit code 2)\n    cc a.c\n    error\n"


def test_a_call_that_was_edited_is_told_as_it_ran(eyes: Eyes) -> None:
    call = ToolCall("c1", "run_shell", '{"command": "make install"}')
    shown = told(eyes, ToolCallRequested(call), ToolCallFinished("c1", (), display="ok", arguments='{"command": "make -n install"}'))
    assert shown == "● $ make -n install ✓ ok\n"


def test_a_failure_is_red(eyes: Eyes) -> None:
    shown = eyes.seen(taken(eyes.screen("always"), ToolCallRequested(CALL), ToolCallFinished("c1", (), error="no such file\nat all")))
    assert shown == "\x1b[31m● read_file a.txt ✗ no such file\x1b[39m\n".encode()


def test_a_thought_is_one_line_however_many_pieces_it_comes_in(eyes: Eyes) -> None:
    shown = told(eyes, ThoughtDelta("**Look"), ThoughtDelta("ing**\nat"), ThoughtDelta(" everything"), TextDelta("Hi."))
    assert shown.splitlines()[-2:] == ["… Looking", "Hi."]


def test_each_thought_with_a_subject_is_a_line(eyes: Eyes) -> None:
    shown = told(eyes, ThoughtDelta("t1", "First"), ThoughtDelta("more"), ThoughtDelta("t2", "Second"), TextDelta("Hi."))
    assert [line for line in dict.fromkeys(shown.splitlines()) if line] == ["… First", "… Second", "Hi."]


def test_a_setting_that_is_left_out_is_one_line(eyes: Eyes) -> None:
    shown = told(eyes, FieldOmitted("responses", "gpt-x", "reasoning.summary", "not\nverified"), TextDelta("Hi."))
    assert shown == "responses/gpt-x refuses reasoning.summary, so it is left out (not verified)\nHi."


def test_shown_text_that_is_void_is_marked(eyes: Eyes) -> None:
    assert "[answer discarded, trying again]" in told(eyes, TextDelta("Half"), Retrying(1, 0.0, "cut"))
    assert "discarded" not in told(eyes, Retrying(1, 0.0, "cut"))
    assert "[answer discarded]" in told(eyes, TextDelta("Half"), StreamInvalid("empty"))
    assert "discarded" not in told(eyes, TextDelta("Whole"), TurnFinished(FinishReason.STOP), Retrying(1, 0.0, "cut"))


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (LoopSuspected("the same call"), "the model seems to be going in circles (the same call)"),
        (ErrorRaised("overloaded", "Overloaded", retryable=True), "✗ overloaded; /retry tries again"),
        (ErrorRaised("bad\nkey", "Unauthorized"), "✗ bad key\n"),
        (UserCancelled(), "cancelled\n"),
        (ContextPruned(("a", "b"), 1_234), "context: old tool output is left out from now on (2 calls, about 1,234 tokens)"),
        (ContextCompressed("compressed", 120_000, 30_000), "summarised (about 120,000 tokens before, 30,000 now)"),
        (ContextCompressed("inflated", 120_000, 130_000), "older messages were not summarised: inflated (about 120,000 tokens)"),
    ],
)
def test_what_happens_to_a_run_is_one_line(event: TurnEvent, words: str, eyes: Eyes) -> None:
    shown = told(eyes, TextDelta("Text"), event)
    assert words in shown
    assert shown.startswith("Text\n")
    assert shown.count("\n") == 2


def test_what_the_error_says_is_not_said_twice(eyes: Eyes) -> None:
    shown = told(eyes, TextDelta("Text"), ContextOverflowed(120_000, 100_000), ErrorRaised("too long", "ContextOverflow"))
    assert shown == "Text\n✗ too long\n"


def test_how_far_a_prompt_is_read_is_told_in_passing(eyes: Eyes) -> None:
    screen = taken(eyes.screen(), PromptRead(32, 400), PromptRead(400, 400), TextDelta("Text."))
    seen = plain(eyes.seen(screen))
    assert "reading the prompt: 8% of 400 tokens" in seen
    assert seen.endswith("Text.")
    assert told(eyes, PromptRead(0, 0), TextDelta("Text.")).endswith("Text."), "whatever a server says"


@pytest.mark.parametrize("follows", [TextDelta("Text."), TurnFinished(FinishReason.STOP), ErrorRaised("broken", "ServerError")])
def test_without_a_conversation_too_and_the_line_is_taken_back(follows: TurnEvent, monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    messages = Messages()
    messages.is_terminal = True
    out = Output()
    out.is_terminal = True
    report = TextReport(out, messages, show_calls=True)
    report.take(PromptRead(32, 400))
    assert stderr.getvalue() == "reading the prompt: 8% of 400 tokens"
    report.take(follows)
    assert stderr.getvalue().endswith("\r\x1b[K")


def test_sources_stand_after_the_answer(eyes: Eyes) -> None:
    source = CitationAdded(Citation(uri="https://a.example", title="A page"))
    shown = told(eyes, TextDelta("Text."), source, source, TurnFinished(FinishReason.STOP))
    assert shown == "Text.\n[1] A page https://a.example\n"


def test_nothing_is_told_while_a_question_stands(eyes: Eyes) -> None:
    screen = eyes.screen()
    report = TerminalReport(screen)
    with report.hold():
        screen.line("A question?")
        report.take(TextDelta("Text."))
        screen.line("An answer.")
    assert eyes.seen(screen) == b"A question?\nAn answer.\nText."
