"""Vim's keys in the composer: what a user of vim types without thinking."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.tui.composer import Composer
from dragoman.tui.keys import Key
from dragoman.tui.vim import VimKeys


def typed(text: str, keys: str) -> tuple[Composer, VimKeys]:
    """`text` written, Esc, and then these keys; `<esc>` is that key."""
    composer = Composer()
    composer.insert(text)
    vim = VimKeys(composer)
    vim.press(Key("esc"), 80)
    for part in keys.replace("<esc>", "\x1b"):
        key = Key("esc") if part == "\x1b" else Key("space", " ") if part == " " else Key(part, part)
        if not vim.press(key, 80):
            composer.press(key.name, key.text)
    return composer, vim


@pytest.mark.parametrize(
    ("text", "keys", "expected"),
    [
        ("fix the parser", "0dw", "the parser"),
        ("fix the parser", "bcwlexer", "fix the lexer"),
        ("fix the parser", "bbD", "fix "),
        ("fix the parser", "x", "fix the parse"),
        ("fix the parser", "0x", "ix the parser"),
        ("fix the parser", "03x", " the parser"),
        ("fix the parser", "0wywP", "fix the the parser"),
        ("one\ntwo\nthree", "kdd", "one\nthree"),
        ("one\ntwo", "ccnew", "one\nnew"),
        ("one\ntwo", "ggOzero", "zero\none\ntwo"),
        ("one", "otwo", "one\ntwo"),
        ("one", "Itwo ", "two one"),
        ("one", "A two", "one two"),
        ("one two", "0rO", "One two"),
        ("one two three", "0d2w", "three"),
        ("one two", "0dw<esc>u", "one two"),
        ("one two", "0de", " two"),
        ("one two", "d0", "o"),
        ("你好世界", "hx", "你好界"),
        ("a, b", "0wdw", "ab"),
        ("abc", "d<esc>x", "ab"),
        ("one two", "$x", "one tw"),
        ("one two", "xx", "one t"),
        ("one (two) three", "0f(ct)(2", "one (2) three"),
        ("a.b.c.d", "02f.D", "a.b"),
        ("a.b.c.d", "0f.;x", "a.bc.d"),
        ("a.b.c.d", "0f.;,x", "ab.c.d"),
        ("a.b.c.d", "T.x", "a.b.c."),
        ("one two", "dFt", "one o"),
        ("one two", "0dtw", "wo"),
        ("one two", "0~", "One two"),
        ("one two", "0sO", "One two"),
        ("one\ntwo", "Snew", "one\nnew"),
        ("one two", "0fzx", "ne two"),
    ],
)
def test_keys_of_normal_mode(text: str, keys: str, expected: str) -> None:
    assert typed(text, keys)[0].text == expected


def test_modes() -> None:
    composer, vim = typed("abc", "")
    assert vim.is_normal
    assert not vim.press(Key("enter"), 80), "it is sent as always"
    assert not vim.press(Key("esc"), 80), "in normal mode Esc stops a run"
    vim.press(Key("i", "i"), 80)
    assert not vim.is_normal
    assert not vim.press(Key("x", "x"), 80), "written as it is"
    vim.press(Key("esc"), 80)
    vim.begin()
    assert not vim.is_normal
    composer.set("")
    assert not vim.press(Key("esc"), 80), "with nothing written Esc is what it always is"


@given(st.text(st.sampled_from("ab ,\n世é\u0301"), max_size=30), st.text(st.sampled_from("hjklwbe0^$GgdcyxXDCpPuiaoOr3\x1b "), max_size=30))
def test_the_caret_stays_in_the_text_whatever_is_typed(text: str, keys: str) -> None:
    composer, _ = typed(text, keys)
    assert 0 <= composer.caret <= len(composer.text)
    composer.layout(20)
