"""JSON text: valid Unicode out, whatever came in, and nothing changed that need not be."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base import jsontext
from dragoman.values.messages import ToolCall

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)
broken_text = st.text(alphabet=st.characters() | st.sampled_from("\ud83d\ude00\udfff\ud800"))


@given(value=anything)
def test_encode_and_decode_are_inverse(value: object) -> None:
    assert jsontext.decode(jsontext.encode(value)) == value


@given(text=broken_text)
def test_valid_unicode_is_valid_and_leaves_valid_text_alone(text: str) -> None:
    cleaned = jsontext.valid_unicode(text)
    cleaned.encode()
    assert jsontext.valid_unicode(cleaned) is cleaned
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert cleaned is text


def test_halves_that_belong_together_are_joined() -> None:
    assert jsontext.valid_unicode("\ud83d\ude00") == "😀"
    assert jsontext.valid_unicode("a\ud83d b") == "a\ufffd b"


@given(text=broken_text)
def test_lone_surrogates_never_get_out(text: str) -> None:
    """docs/reference/wire.md, rule 24"""
    out = jsontext.encode({"key": text, text: [text]})
    out.decode()
    read = json.loads(out)
    assert all(jsontext.valid_unicode(value) == value for value in [*read, read["key"]])


@given(text=broken_text)
def test_clean_takes_them_out_of_json_text_too(text: str) -> None:
    escaped = json.dumps({"a": text})
    cleaned = jsontext.clean(escaped)
    assert jsontext.decode_object(cleaned) == {"a": jsontext.valid_unicode(text)}
    jsontext.encode(jsontext.decode(cleaned)).decode()


@pytest.mark.parametrize("text", ['{"a": 1,  "a":2}', "not json", '{"half":', '"\\u0041"', "[1e5]", ""])
def test_clean_leaves_everything_else_to_the_letter(text: str) -> None:
    assert jsontext.clean(text) is text


@given(value=anything)
def test_depth_is_what_parsing_would_find(value: object) -> None:
    def depth(inner: object) -> int:
        children = inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else None
        return 0 if children is None else 1 + max(map(depth, children), default=0)

    assert jsontext.depth(jsontext.encode(value)) == depth(value)


def test_depth_does_not_recurse() -> None:
    assert jsontext.depth(b"[" * 100_000) == 100_000


@pytest.mark.parametrize("data", [b"{", b"NaN", b'{"a":Infinity}', b"\xff", b"[" * 200_000 + b"]" * 200_000, b"\xef\xbb\xbf{}", b""])
def test_what_is_not_json_says_so(data: bytes) -> None:
    with pytest.raises(jsontext.NotJSON):
        jsontext.decode(data)


@pytest.mark.parametrize(
    ("arguments", "args"),
    [("{}", {}), ("", {}), ('{"a":1}', {"a": 1}), ("[1]", None), ("null", None), ('{"a":', None), ('{"a":"\\ud83d"}', {"a": "\ufffd"})],
)
def test_arguments_decode_to_a_fresh_dict_or_nothing(arguments: str, args: dict | None) -> None:
    call = ToolCall("c", "n", arguments)
    assert call.args == args
    if args is not None:
        assert call.args is not call.args
