"""Every sentence that a user of the program can read exists in English and in Chinese, with the same values."""

from __future__ import annotations

import importlib
import re
import string
from pathlib import Path

import pytest

from dragoman import words
from dragoman.conversation.help_chinese import CHINESE_HELP
from dragoman.conversation.help_texts import ENGLISH_HELP

FOLDER = Path(words.__file__).parent
NOT_READ = {"__init__", "testing"}
"""`testing` speaks to those who write tests with the library's doubles, and to nobody in the program."""
TABLES = sorted(path.stem for path in (FOLDER / "en").glob("*.py") if path.stem not in NOT_READ)


def texts(language: str, table: str) -> dict[str, str]:
    always = {key: text for key, text in words.ALWAYS_LOADED.items() if key.startswith(f"{table}.") and language == "en"}
    return {**always, **importlib.import_module(f"{words.__name__}.{language}.{table}").TEXTS}


def values_in(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def is_chinese(text: str) -> bool:
    return any("\u4e00" <= char <= "\u9fff" for char in text)


@pytest.mark.parametrize("table", TABLES)
def test_a_sentence_is_in_both_languages_and_tells_the_same(table: str) -> None:
    english, chinese = texts("en", table), texts("zh", table)
    assert english.keys() - chinese.keys() == set(), "without a Chinese sentence"
    assert chinese.keys() - english.keys() == set(), "without an English sentence"
    assert {key for key in english if values_in(english[key]) != values_in(chinese[key])} == set()


@pytest.mark.parametrize("table", TABLES)
def test_a_counted_noun_needs_no_plural_in_chinese(table: str) -> None:
    assert {
        key for key, text in texts("zh", table).items() for _, _, form, _ in string.Formatter().parse(text) if "|" in (form or "")
    } == set()


@pytest.mark.parametrize("table", TABLES)
def test_what_has_words_in_english_has_chinese_ones(table: str) -> None:
    """But for names, what is typed, and what is made of values and signs alone."""
    english, chinese = texts("en", table), texts("zh", table)
    plain = {key for key in chinese if not is_chinese(chinese[key]) and len(re.findall("[a-z]{2,}", _without_values(english[key]))) > 2}
    assert plain <= {"weights_absent", "tools_not_loaded", "bad_dialect", "bad_fallback"}


def _without_values(text: str) -> str:
    return " ".join(literal for literal, _, _, _ in string.Formatter().parse(text))


def test_the_help_is_in_both_languages() -> None:
    assert CHINESE_HELP.keys() == ENGLISH_HELP.keys(), "conversation/help_chinese.py has the commands of conversation/help_texts.py"
    for command, text in CHINESE_HELP.items():
        assert is_chinese(text), command
        assert _first_words(text) == _first_words(ENGLISH_HELP[command]), f"{command}: the same options and commands in the same order"


def _first_words(text: str) -> list[str]:
    """The options, and the commands of the usage, in the order of their rows."""
    return re.findall(r"^ {2,7}(-[^ ,]*|dragoman [a-z-]+ [a-z]+|/[a-z]+)", text, re.MULTILINE)
