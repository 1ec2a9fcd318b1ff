"""What is taken out of everything that is written down."""

from __future__ import annotations

import json
from itertools import pairwise
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dragoman.providers.redact import REDACTED, redact, redact_bytes, redact_chunks, redact_headers

KEYS = [
    "sk-proj-abcDEF0123456789",
    "sk-ant-api03-abc_DEF-0123456789",
    "AIzaSyA-1234567890abcdefghijklmnopqrstu",
    "ya29.a0AfH6SMBx-1234567890",
    "gsk_abcdefghijklmnopqrstuvwx",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----",
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("frame", ["{}", "the key is {}.", '{{"key": "{}"}}', "https://api.test/v1?alt=sse&x={}", "a\n{}\nb"])
def test_what_looks_like_a_key_goes(key: str, frame: str) -> None:
    cleaned = redact(frame.format(key))
    assert key not in cleaned
    assert key[12:] not in cleaned
    assert REDACTED in cleaned


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Authorization: Bearer abcdefgh123", "Authorization: Bearer REDACTED"),
        ("https://api.test/v1?key=short&alt=sse", "https://api.test/v1?key=REDACTED&alt=sse"),
        ("https://api.test/v1?alt=sse&access_token=a.b-c#top", "https://api.test/v1?alt=sse&access_token=REDACTED#top"),
        ("http://user:hunter22@proxy:3128/", "http://user:REDACTED@proxy:3128/"),
        ("a task-force on risk-management-in-general", "a task-force on risk-management-in-general"),
        ("the bearer of news", "the bearer of news"),
        ('{"max_tokens": 5, "key": "value"}', '{"max_tokens": 5, "key": "value"}'),
    ],
)
def test_the_rest_stays(text: str, cleaned: str) -> None:
    assert redact(text) == cleaned


def test_headers_that_carry_secrets_lose_their_value_whole() -> None:
    given_headers = {"Authorization": "Basic x", "X-API-Key": "k", "api-key": "k", "Set-Cookie": "a=b", "Content-Type": "text/plain"}
    assert redact_headers(given_headers) == dict.fromkeys(list(given_headers)[:4], REDACTED) | {"Content-Type": "text/plain"}


def test_short_values_are_no_secrets() -> None:
    assert redact("http://localhost/ollama/none", ("ollama", "none", "")) == "http://localhost/ollama/none"


def test_secrets_may_be_given_by_a_function() -> None:
    assert redact("so hush-hush it is", lambda: ["hush-hush"]) == "so REDACTED it is"


secrets = st.text(min_size=8, max_size=20).filter(lambda text: not set(text) <= set(REDACTED))


@given(st.lists(secrets, min_size=1, max_size=3), st.lists(st.one_of(st.binary(max_size=12), st.integers(0, 2)), max_size=8))
def test_no_secret_survives_in_any_form(values: list[str], parts: list[bytes | int]) -> None:
    forms = [form for value in values for form in written(value)]
    data = b"".join(part if isinstance(part, bytes) else forms[part % len(forms)] for part in parts)
    cleaned = redact_bytes(data, values)
    for form in forms:
        assert form not in cleaned


def written(value: str) -> list[bytes]:
    raw = value.encode("utf-8", "surrogatepass")
    escaped = [json.dumps(value)[1:-1].encode(), json.dumps(value, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")]
    return [raw, *escaped, quote(raw, safe="").encode(), quote_plus(raw).encode()]


@given(secrets, st.binary(max_size=20), st.binary(max_size=20), st.lists(st.integers(0, 60), max_size=6))
def test_chunk_boundaries_do_not_matter(secret: str, before: bytes, after: bytes, cuts: list[int]) -> None:
    data = before + secret.encode("utf-8", "surrogatepass") + after
    ends = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    chunks = [data[start:end] for start, end in pairwise(ends)]
    cleaned = redact_chunks(chunks, [secret])
    assert len(cleaned) == len(chunks)
    assert b"".join(cleaned) == redact_bytes(data, [secret])


@given(st.text(max_size=60))
def test_once_is_enough(text: str) -> None:
    assume("\ud800" not in text)
    assert redact(redact(text)) == redact(text)


def test_overlapping_secrets_go_whole() -> None:
    assert redact("xabcdefghijklx", ["abcdefgh", "efghijkl"]) == "xREDACTEDx"
    assert redact("aaaaaaaaaaaa", ["aaaaaaaa"]) == "REDACTED"


@pytest.mark.parametrize(
    "written",
    [
        'pass\\/"word\\u003d1',  # as some services escape
        'pass\\\\\\/\\\\\\"word=1',  # JSON inside JSON
        "pass%2f%22word%3D1",
        "pass\\u002F\\u0022word=1",
    ],
)
def test_a_secret_is_found_however_it_is_escaped(written: str) -> None:
    assert redact(f"a {written} b", ['pass/"word=1']) == f"a {REDACTED} b"


def test_a_secret_of_backslashes_does_not_take_long() -> None:
    secret = "\\" * 30 + "x"
    assert redact("\\" * 20_000, [secret]) == "\\" * 20_000
    assert redact(secret, [secret]) == REDACTED


def test_further_patterns_lose_their_first_group() -> None:
    assert redact_bytes(b"user alice here", (), [rb"user (\w+)"]) == b"user REDACTED here"
