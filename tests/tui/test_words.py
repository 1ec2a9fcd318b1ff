"""Every sentence of the screen exists in English and in Chinese, with the same values."""

from __future__ import annotations

import string

from dragoman.words.en.tui import TEXTS as ENGLISH
from dragoman.words.zh.tui import TEXTS as CHINESE


def values_in(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_have_every_sentence() -> None:
    assert list(ENGLISH) == list(CHINESE)


def test_both_have_the_same_values() -> None:
    assert {key for key in ENGLISH if values_in(ENGLISH[key]) != values_in(CHINESE[key])} == set()


def test_chinese_is_chinese() -> None:
    """But for what is only made of values and signs."""
    plain = {key for key, text in CHINESE.items() if not any("\u4e00" <= char <= "\u9fff" for char in text)}
    assert plain == {"tui.asks_other", "tui.context_of"}
