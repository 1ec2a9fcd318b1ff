"""JSON as models write it, and what is said of each liberty."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.text_tools import json_text


@pytest.mark.parametrize(
    ("text", "value", "repairs"),
    [
        ('{"a": 1,}', {"a": 1}, (json_text.TRAILING_COMMA,)),
        ("[1, 2,]", [1, 2], (json_text.TRAILING_COMMA,)),
        ('{"a": True, "b": False, "c": None}', {"a": True, "b": False, "c": None}, (json_text.PYTHON_LITERAL,)),
        ("{'a': 'it's'}", {"a": "it's"}, (json_text.SINGLE_QUOTES,)),
        ("{'a': \"b\"}", {"a": "b"}, (json_text.SINGLE_QUOTES,)),
        ('{"a": "x\ny\tz"}', {"a": "x\ny\tz"}, (json_text.RAW_CONTROL,)),
        ('{"a": {"b": [1, 2', {"a": {"b": [1, 2]}}, (json_text.MISSING_CLOSERS,)),
        ('{"a": [1}', {"a": [1]}, (json_text.MISSING_CLOSERS,)),
        ('{"a": 1}}', {"a": 1}, (json_text.TOO_MANY_CLOSERS,)),
        ('{a: 1, b_c: "x"}', {"a": 1, "b_c": "x"}, (json_text.BARE_KEY,)),
        ('{"a": "\\d+\\."}', {"a": "\\d+\\."}, (json_text.UNKNOWN_ESCAPE,)),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}, (json_text.MISSING_COMMA,)),
        ('{"a": 1} // so', {"a": 1}, (json_text.COMMENT,)),
        ('{"a": "\\ud83d\\ude00",}', {"a": "😀"}, (json_text.TRAILING_COMMA,)),
    ],
)
def test_a_liberty_is_read_and_named(text: str, value: Any, repairs: tuple[str, ...]) -> None:
    if value is None:
        return
    assert json_text.loads(text) == (value, repairs)


@pytest.mark.parametrize(
    "text", ["", "{", "{a}", '{"a" 1}', "nothing", '{"a": what}', '{"a": "open', "{1: 2}", "[" * 200, "9" * 5000 + "x"]
)
def test_what_is_not_close_to_json_is_refused(text: str) -> None:
    if text == "{":
        assert json_text.loads(text) == ({}, (json_text.MISSING_CLOSERS,))
        return
    with pytest.raises(json_text.NotReadable):
        json_text.loads(text)
