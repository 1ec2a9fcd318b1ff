"""Bytes from the terminal become keys, in whatever pieces they come."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.tui.bindings import KEYS, bind_keys, is_key
from dragoman.tui.canvas import Canvas
from dragoman.tui.keys import Key, KeyReader, Paste
from dragoman.tui.listening import Listening

SEQUENCES = {
    b"a": Key("a", "a"), b" ": Key("space", " "), "ü".encode(): Key("ü", "ü"), "你".encode(): Key("你", "你"),
    "😀".encode(): Key("😀", "😀"),
    b"\r": Key("enter"), b"\n": Key("ctrl-j"), b"\t": Key("tab"), b"\x7f": Key("backspace"), b"\x03": Key("ctrl-c"), b"\x1f": Key("ctrl-_"),
    b"\x1b[A": Key("up"), b"\x1bOA": Key("up"), b"\x1b[Z": Key("shift-tab"), b"\x1b[3~": Key("delete"), b"\x1b[1;5C": Key("ctrl-right"),
    b"\x1b\r": Key("alt-enter"), b"\x1bb": Key("alt-b"), b"\x1b[13;2u": Key("shift-enter"), b"\x1b[27;5;13~": Key("ctrl-enter"),
    b"\x1bOM": Key("enter"), b"\x1bOj": Key("*", "*"), b"\x1bO5D": Key("ctrl-left"), b"\x1bOd": Key("ctrl-left"), b"\x1b[[A": Key("f1"),
    b"\x1b[97;2u": Key("A", "A"), b"\x1b[97:65;2u": Key("A", "A"), b"\x1b[27;2;65~": Key("A", "A"), b"\x1b[32;2u": Key("space", " "),
    b"\x1b[1;9D": Key("alt-left"), "\u200c".encode(): Key("\u200c", "\u200c"), "\u200d".encode(): Key("\u200d", "\u200d"),
    b"\x1b[200~two\r\nlines\x1b[A\x1b[201~": Paste("two\nlines\x1b[A"),
}  # fmt: skip
# What other terminals send, by their documentation: none of them was here. Terminal.app and iTerm2 (Option as Meta or as Esc+), and Windows
# Terminal, from which a conversation on Linux is held over ssh.
ELSEWHERE = {
    "Terminal.app": {b"\x1bb": "alt-b", b"\x1bf": "alt-f", b"\x1b[H": "home", b"\x1b[F": "end", b"\x1b[3~": "delete",
                     b"\x1b\x7f": "alt-backspace", b"\x1bOP": "f1", b"\x1b\x1b[D": "alt-left", b"\x1b[1;2C": "shift-right"},
    "iTerm2": {b"\x1b[1;3D": "alt-left", b"\x1b[1;9C": "alt-right", b"\x01": "ctrl-a", b"\x05": "ctrl-e", b"\x15": "ctrl-u",
               b"\x1b[13;2u": "shift-enter", b"\x1b\r": "alt-enter", b"\x1b[127;5u": "ctrl-backspace"},
    "Windows Terminal": {b"\x08": "backspace", b"\x7f": "backspace", b"\x1b[1;5D": "ctrl-left", b"\x1b[3;5~": "ctrl-delete",
                         b"\x1b[1;5H": "ctrl-home", b"\x1b[5~": "pageup", b"\x1b[Z": "shift-tab", b"\x1b[15~": "f5"},
}  # fmt: skip
REPORTS = (b"\x1b[?62;22c", b"\x1b]11;rgb:0000/0000/0000\x07", b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\", b"\x1b[?2026;2$y",
           b"\x1b[I", b"\x1b[O", b"\x1b[<64;10;10M", b"\x1b[M`!!", b"\x1b[97;1:3u", b"\x1b[1;1:3A")  # fmt: skip


@pytest.mark.parametrize(("data", "wanted"), SEQUENCES.items(), ids=repr)
def test_every_key_has_its_name(data: bytes, wanted: Key | Paste) -> None:
    assert KeyReader().feed(data) == [wanted]


@pytest.mark.parametrize("terminal", ELSEWHERE)
def test_what_terminals_of_other_systems_send(terminal: str) -> None:
    for data, wanted in ELSEWHERE[terminal].items():
        reader = KeyReader()
        assert [event.name for event in [*reader.feed(data), *reader.rest()] if isinstance(event, Key)] == [wanted], data


@given(st.lists(st.sampled_from([*SEQUENCES]), max_size=12), st.data())
def test_any_pieces_give_the_same_keys(keys: list[bytes], data: st.DataObject) -> None:
    keys = [key for key in keys if key != b"\r"]  # a line break inside one read is a paste
    stream = b"".join(keys)
    reader = KeyReader()
    found: list[Key | Paste] = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += reader.feed(stream[:size])
        stream = stream[size:]
    assert found == [SEQUENCES[key] for key in keys]
    assert reader.waits_s == 0


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_nothing_that_comes_breaks_it(pieces: list[bytes]) -> None:
    reader = KeyReader()
    for piece in pieces:
        for event in reader.feed(piece):
            assert isinstance(event, Key | Paste)
    reader.rest()


def test_a_lone_escape_is_known_after_a_moment() -> None:
    reader = KeyReader()
    assert reader.feed(b"\x1b") == []
    assert 0 < reader.waits_s <= 0.05
    assert reader.rest() == [Key("esc")]
    assert reader.feed(b"\x1b\x1b") == [Key("esc")]
    assert reader.rest() == [Key("esc")]


@pytest.mark.parametrize(
    ("data", "wanted"), [(b"\x1b\x1b[D", ["alt-left"]), (b"\x1b\x1b", ["esc", "esc"]), (b"\x1b[", ["alt-["]), (b"\x1bO", ["alt-O"])]
)
def test_alt_is_not_taken_for_an_escape(data: bytes, wanted: list[str]) -> None:
    reader = KeyReader()
    assert [event.name for event in [*reader.feed(data), *reader.rest()] if isinstance(event, Key)] == wanted


def test_enter_after_a_word_in_one_read_is_enter() -> None:
    assert KeyReader().feed(b"hi\r") == [Key("h", "h"), Key("i", "i"), Key("enter")]


@given(st.lists(st.text("ab ü", min_size=1, max_size=8), min_size=3, max_size=30), st.integers(4, 60))
def test_a_paste_without_brackets_is_one_paste(lines: list[str], size: int) -> None:
    data = "\r".join(lines).encode()
    if b"\r" not in data[: size - 1]:
        size = data.index(b"\r") + 2
    reader = KeyReader()
    events = [event for start in range(0, len(data), size) for event in reader.feed(data[start : start + size])]
    assert [*events, *reader.rest()] == [Paste("\n".join(lines))]


def test_a_long_paste_without_brackets_may_come_in_pieces() -> None:
    reader = KeyReader()
    assert reader.feed(b"one\rtwo") == []
    assert reader.waits_s < 0.05
    assert reader.feed(b"\r" + b"more and more\r" * 20) == []
    assert reader.waits_s > 0.1
    assert reader.feed(b"the last line\r") == [], "its line break sends nothing"
    assert reader.rest() == [Paste("one\ntwo\n" + "more and more\n" * 20 + "the last line\n")]


@pytest.mark.parametrize("report", REPORTS)
def test_what_a_terminal_reports_is_no_key(report: bytes) -> None:
    assert KeyReader().feed(report + b"x") == [Key("x", "x")]


def test_an_esc_that_was_read_just_before_the_conversation_began_needs_no_other_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first frame has read it, and the conversation goes on with the same reader."""
    reader = KeyReader()
    assert reader.feed(b"\x1b") == []
    loop = asyncio.new_event_loop()
    monkeypatch.setattr(loop, "add_reader", lambda *_: None)
    pressed: asyncio.Future[Key | Paste] = loop.create_future()
    listening = Listening(loop, reader, pressed.set_result, cast("Canvas", SimpleNamespace(note_size=lambda: None)), lambda code: None)
    listening.start()
    try:
        assert loop.run_until_complete(asyncio.wait_for(pressed, 60)) == Key("esc")
    finally:
        monkeypatch.setattr(loop, "remove_reader", lambda *_: None)
        listening.stop()
        monkeypatch.undo()
        loop.close()


def test_keys_that_are_bound_wrong_are_named_with_what_would_be_right() -> None:
    table, wrong = bind_keys(
        {"Ctrl-E": "editor", "ctrl-q": "nonsense", "strange key": "send", "esc": "none", "ctrl-alt-x": "models", "é": "open"}
    )
    assert (table["ctrl-e"], table["ctrl-alt-x"], table["é"]) == ("editor", "models", "open")
    assert "esc" not in table
    assert [words.partition(":")[0] for words in wrong] == ["[ui.keys] ctrl-q", "[ui.keys] strange key"]
    assert "send, queue" in wrong[0]
    assert all(is_key(name) for name in KEYS)
