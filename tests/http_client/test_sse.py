"""Server-sent events are read from bytes, however they are cut."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.http.sse import ServerEvent, SSEDecoder
from dragoman.values.errors import StreamBroken
from streaming import CUTS, cut_at, single_bytes

BOM = b"\xef\xbb\xbf"


def decoded(*chunks: bytes) -> list[tuple[str, bytes]]:
    decoder = SSEDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close()
    return [(event.name, event.data) for event in events]


def by_the_letter(body: bytes) -> list[tuple[str, bytes]]:
    """The standard, one byte at a time; but the last event counts without its blank line."""
    lines, line, at = list[bytes](), b"", len(BOM) if body.startswith(BOM) else 0
    while at < len(body):
        if body[at] in b"\r\n":
            lines.append(line)
            line = b""
            at += 2 if body[at : at + 2] == b"\r\n" else 1
        else:
            line += body[at : at + 1]
            at += 1
    events, name, data = list[tuple[str, bytes]](), "", list[bytes]()
    lines += [line, b""]
    for line in lines:
        if not line:
            if data:
                events.append((name, b"\n".join(data)))
            name, data = "", []
            continue
        colon = line.find(b":")
        field, value = (line, b"") if colon < 0 else (line[:colon], line[colon + 1 :])
        value = value[1:] if value[:1] == b" " else value
        if field == b"data":
            data.append(value)
        if field == b"event":
            name = value.decode(errors="replace")
    return events


# --- by example: the standard, and PV06 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [("", b"a"), ("", b"b")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [("", b"a"), ("", b"b")]),
        (b"data: a\r\rdata: b\r\r", [("", b"a"), ("", b"b")]),
        (b"data: a\r\n\ndata: b\n\r\ndata: c\r\n\r", [("", b"a"), ("", b"b"), ("", b"c")]),
        (b"\n\n\ndata: a\n\n\n\n\ndata: b\n\n\n", [("", b"a"), ("", b"b")]),
    ],
    ids=["LF", "CRLF", "CR", "mixed", "more blank lines than needed"],
)
def test_lines_end_at_lf_crlf_and_cr(body: bytes, events: list[tuple[str, bytes]]) -> None:
    """Events split on \\n, \\r\\n, \\r."""
    assert decoded(body) == decoded(*single_bytes(body)) == events


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\u0085", "\u000b", "\u000c", "\u001c", "\u001e", "\u00a0", "\u0000", "\ufeff"])
def test_no_other_character_ends_a_line(character: str) -> None:
    """PV06: raw U+2028 and U+0085 in data are data, and so is all that str.splitlines would split on."""
    data = f"a{character}b{character}{character}c".encode()
    assert decoded(b"data: " + data + b"\n\n") == [("", data)]
    assert decoded(*single_bytes(b"data: " + data + b"\r\n\r\n")) == [("", data)]


def test_comments_are_dropped() -> None:
    assert decoded(b": hello\n\n:\n\n:ping\ndata: a\n: in between\ndata: b\n\n: end") == [("", b"a\nb")]


def test_data_over_several_lines_is_joined_by_newlines() -> None:
    assert decoded(b"data: {\ndata: 1\ndata\ndata: }\n\n") == [("", b"{\n1\n\n}")]


def test_one_space_after_the_colon_is_not_data() -> None:
    assert decoded(b"data:a\n\ndata: a\n\ndata:  a\n\ndata:\ta\n\n") == [("", b"a"), ("", b"a"), ("", b" a"), ("", b"\ta")]


def test_a_byte_order_mark_counts_only_at_the_very_start() -> None:
    """PV06: a BOM before the first line; anywhere else it is part of what it stands in."""
    assert decoded(BOM + b"data: a\n\ndata: b\n\n") == [("", b"a"), ("", b"b")]
    assert decoded(*single_bytes(BOM + b"data: a\n\n")) == [("", b"a")]
    assert decoded(BOM + b"\n\ndata: a\n\n") == [("", b"a")]
    assert decoded(b"data: a\n\n" + BOM + b"data: b\n\ndata: " + BOM + b"c\n\n") == [("", b"a"), ("", BOM + b"c")]
    assert decoded(b"\n\n" + BOM + b"data: a\n\n") == []


def test_event_names_are_kept_and_do_not_outlive_their_event() -> None:
    body = b"event: first\ndata: a\n\ndata: b\nevent:second\n\ndata: c\n\nevent: lonely\n\ndata: d\n\n"
    assert decoded(body) == [("first", b"a"), ("second", b"b"), ("", b"c"), ("", b"d")]


def test_the_last_event_counts_without_a_blank_line() -> None:
    """Last event without a blank line."""
    assert decoded(b"data: a\n\ndata: b\n") == [("", b"a"), ("", b"b")]
    assert decoded(b"data: a\n\nevent: x\ndata: b") == [("", b"a"), ("x", b"b")]
    assert decoded(b"data: a\r\n\r\ndata: b\r") == [("", b"a"), ("", b"b")]
    assert decoded() == decoded(b"") == decoded(b"\n") == []


def test_empty_data_is_an_event_and_no_data_is_none() -> None:
    assert decoded(b"data:\n\ndata\n\ndata: \n\nevent: x\n\n") == [("", b"")] * 3


def test_other_fields_are_ignored() -> None:
    body = b"id: 1\nretry: 1000\nunknown: x\nDATA: no\n data: no\ndata: yes\nid\n\n"
    assert decoded(body) == [("", b"yes")]


def test_an_error_line_is_an_event() -> None:
    """Not in the standard, but llama.cpp and servers around it end a stream so."""
    body = b'data: {"a":1}\n\nerror: {"code":500,"message":"no slot"}\n\n'
    assert decoded(body) == [("", b'{"a":1}'), ("error", b'{"error":{"code":500,"message":"no slot"}}')]
    assert decoded(b"error: no JSON\n\n") == []


def test_a_colon_in_data_is_data() -> None:
    assert decoded(b'data: {"a": "b:c"}\n\ndata::\n\n') == [("", b'{"a": "b:c"}'), ("", b":")]


def test_invalid_utf8_passes_through_for_others_to_refuse() -> None:
    assert decoded(b"event: \xff\ndata: \xff\xfe\n\n") == [("\ufffd", b"\xff\xfe")]


def test_an_event_is_told_as_soon_as_its_blank_line_is_there() -> None:
    """No look-ahead: a service that waits after an event must not hold it back, whatever its line ends."""
    for end in (b"\n", b"\r\n", b"\r"):
        decoder = SSEDecoder()
        assert decoder.feed(b"data: a" + end) == []
        assert decoder.feed(end) == [ServerEvent("", b"a")]
        assert decoder.feed(b"data: b" + end + end) == [ServerEvent("", b"b")]


def test_an_event_without_end_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SSEDecoder, "max_event_bytes", 1000)
    decoder = SSEDecoder()
    assert decoder.feed(b"data: " + b"x" * 900) == []
    with pytest.raises(StreamBroken, match="more than 1000 bytes") as caught:
        decoder.feed(b"x" * 200)
    assert not caught.value.retryable


def test_long_events_are_read_in_linear_time() -> None:
    """PV14: 20 MB in one event, in chunks of 16 KB and, for less, byte by byte."""
    start = time.process_time()
    body = b"data: " + b"x" * 20_000_000 + b"\n\n"
    assert decoded(*(body[at : at + 16_384] for at in range(0, len(body), 16_384))) == [("", body[6:-2])]
    small = b"data: " + b"x\r\ndata:" * 30_000 + b"\r\n\r\n"
    assert decoded(*single_bytes(small)) == decoded(small)
    assert time.process_time() - start < 30, "0.2 s; reading everything again with each chunk takes minutes"


# --- by property ------------------------------------------------------------------------------------------------------------

PIECES = [
    *(b"data: ", b"data:", b"data", b"dat", b"event: ", b"event:", b"event", b"id: 1", b"retry: 5", b": ", b":", b" ", b"x", b'{"a":1}'),
    *(b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b"\r\r"),
    *(BOM, "é".encode(), "\u2028".encode(), "\u0085".encode(), "\U0001f642".encode(), b"\x0b", b"\x00", b"\xff"),
]
BODIES = st.lists(st.sampled_from(PIECES), max_size=60).map(b"".join) | st.binary(max_size=60)


@given(BODIES, CUTS)
def test_any_cutting_gives_what_the_standard_says(body: bytes, cuts: list[int]) -> None:
    """Any chunking of the same bytes gives the same events, and they are those of the standard."""
    expected = by_the_letter(body)
    assert decoded(body) == expected
    assert decoded(*cut_at(body, cuts)) == expected
    assert decoded(*single_bytes(body)) == expected


NAMES = st.sampled_from(["", "ping", "délta"])
LINES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"))
WRITTEN = st.lists(st.tuples(NAMES, st.lists(LINES, min_size=1, max_size=3), st.sampled_from([b"\n", b"\r\n", b"\r"])))


@given(WRITTEN, CUTS)
def test_whatever_is_written_is_read_back(events: list[tuple[str, list[str], bytes]], cuts: list[int]) -> None:
    """Events written with any line ends, each with its own, and cut anywhere, are the events again."""
    body, expected = b"", []
    for name, lines, end in events:
        written = [f"event: {name}"] * bool(name) + [f"data: {line}" for line in lines] + [""]
        body += b"".join(line.encode() + end for line in written)
        expected.append((name, "\n".join(lines).encode()))
    assert decoded(*cut_at(body, cuts)) == expected
