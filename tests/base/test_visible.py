"""Text in which nothing hides."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.visible import escape_hidden, is_hidden, strip_hidden


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("make test", "make test"),
        ("a\tb\nc", "a\tb\nc"),
        ("ls\rrm -rf ~", "ls<U+000D>rm -rf ~"),
        ("\x1b[2Kecho ok", "<U+001B>[2Kecho ok"),
        ("echo \u202egnp.exe", "echo <U+202E>gnp.exe"),
        ("rm\u200b -rf", "rm<U+200B> -rf"),
        ("a\u00a0b", "a<U+00A0>b"),
        ("\U000e0041hi", "<U+E0041>hi"),
        ("x\ufe0f\u3164\u2800", "x<U+FE0F><U+3164><U+2800>"),
        ("a\U0001d159\U00016fe4\ufffcb", "a<U+1D159><U+16FE4><U+FFFC>b"),
        ("r\u0336m\u20dd", "r<U+0336>m<U+20DD>"),
        ("a\u0301\u0302\u0303\u0304\u0305", "a\u0301\u0302\u0303<U+0304><U+0305>"),
        ("ti\u1ebfng Vi\u0323\u0302t", "ti\u1ebfng Vi\u0323\u0302t"),
        ("\x00\x7f\x9b", "<U+0000><U+007F><U+009B>"),
        ("line\u2028break", "line<U+2028>break"),
        ("晴朗 é 🎉 العربية", "晴朗 é 🎉 العربية"),
        ("\ud800", "<U+D800>"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert escape_hidden(text) == shown


def test_one_line_is_one_line() -> None:
    assert escape_hidden("a\n\tb", one_line=True) == "a<U+000A><U+0009>b"


@given(st.text(st.characters(codec=None)))
def test_nothing_invisible_is_left_and_nothing_else_is_touched(text: str) -> None:
    shown = escape_hidden(text)
    assert not [char for char in shown if unicodedata.category(char) in ("Cf", "Cs", "Cc", "Zl", "Zp") and char not in "\n\t"]
    assert escape_hidden(shown) == shown
    if "<U+" not in text:
        assert re.sub("<U\\+([0-9A-F]+)>", lambda found: chr(int(found[1], 16)), shown) == text


@given(st.text(st.characters(categories=["Lu", "Ll", "Nd", "Po", "Sm"])))
def test_plain_text_is_unchanged(text: str) -> None:
    assert escape_hidden(text) == text


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a\u200bb\u2060c\ufeff", "abc"),
        ("\U000e0041\U000e0042hi", "hi"),
        ("x\ufe01\ufe0d\U000e0100", "x"),
        ("a\u061cb\u3164c\u00ad", "abc"),
        ("line\r\n\tnext\x00", "line\r\n\tnext"),
        ("❤\ufe0f 👩\u200d💻 می\u200cخواهم", "❤\ufe0f 👩\u200d💻 می\u200cخواهم"),
        ("\u0600١ ⠓⠊⠀⠽⠕⠥", "\u0600١ ⠓⠊⠀⠽⠕⠥"),
    ],
)
def test_a_model_does_not_read_what_a_reader_would_not_see(text: str, read: str) -> None:
    assert strip_hidden(text) == read


@given(st.text(st.characters(codec=None)))
def test_what_is_hidden_is_never_shown_to_who_approves(text: str) -> None:
    assert not any(is_hidden(char) for char in escape_hidden(text, one_line=True))
