"""HTTP/1.1 as bytes. h11 is the oracle: what we read, it reads too, and alike; what it refuses, so do we."""

from __future__ import annotations

import gzip
import itertools
import zlib
from collections.abc import Iterable

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.http.framing import (
    DECOMPRESSED_BYTES,
    MAX_HEAD_BYTES,
    MAX_SIZE_LINE_BYTES,
    Chunked,
    Decompressor,
    NotHTTP,
    Sized,
    Unsendable,
    Unsized,
    body_of,
    read_head,
    request_head,
)

Read = tuple[int, bytes, bool]
"""Status, body, and whether it is whole."""


def read(packets: Iterable[bytes], method: str = "POST") -> Read | None:
    """What an answer says that arrives in these packets and ends with the connection; None where no head came."""
    data, head, body = b"", None, b""
    reader: Sized | Unsized | Chunked | None = None
    for packet in packets:
        if reader is None:
            data += packet
            while reader is None and (found := read_head(data)) is not None:
                head, data = found[0], data[found[1] :]
                if head.status == 101:
                    raise NotHTTP
                if head.status >= 200:
                    reader, packet = body_of(head, method), data
        if reader is not None and not reader.done:
            body += reader.feed(packet)
    return None if head is None or reader is None else (head.status, body, reader.done or reader.ends_with_connection)


def read_by_h11(wire: bytes) -> Read | None:
    """The same by h11; None where it refuses."""
    client = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
    client.send(h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")]))
    client.send(h11.EndOfMessage())
    client.receive_data(wire)
    status, body, ended = 0, b"", False
    try:
        while True:
            match client.next_event():
                case h11.Response(status_code=status):
                    pass
                case h11.Data(data=data):
                    body += data
                case h11.EndOfMessage():
                    return status, body, True
                case h11.NEED_DATA | h11.PAUSED:
                    if ended:
                        return None
                    ended = True
                    client.receive_data(b"")
    except h11.RemoteProtocolError:
        return (status, body, False) if status else None


def cut(wire: bytes, places: Iterable[int]) -> list[bytes]:
    marks = [0, *sorted({place % (len(wire) + 1) for place in places}), len(wire)]
    return [wire[start:end] for start, end in itertools.pairwise(marks)]


# --- valid answers --------------------------------------------------------------------------------------------------------------

chunk_lists = st.lists(st.binary(min_size=1, max_size=60), max_size=8)
extensions = st.sampled_from([b"", b";x", b";name=value", b'; q="a b"', b"  "])
trailers = st.sampled_from([b"", b"X-Sum: 1\r\n", b"a: b\r\nc:\r\n"])


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """An answer as bytes, and the body it has."""
    informational = draw(st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 2]))
    head = informational + b"HTTP/1.1 200 OK\r\nServer: a b\r\nX-Empty:\r\n"
    chunks = draw(chunk_lists)
    body = b"".join(chunks)
    match draw(st.sampled_from(["chunked", "length", "twice the length", "to the end"])):
        case "length":
            return head + b"Content-Length: %d\r\n\r\n" % len(body) + body, body
        case "twice the length":
            return head + b"Content-Length: %d\r\ncontent-length: %d\r\n\r\n" % (len(body), len(body)) + body, body
        case "to the end":
            return head + b"Connection: close\r\n\r\n" + body, body
    wire = head + b"Transfer-Encoding: Chunked\r\n\r\n"
    for chunk in chunks:
        size = draw(st.sampled_from([b"%x", b"%X", b"%08x"])) % len(chunk)
        wire += size + draw(extensions) + b"\r\n" + chunk + b"\r\n"
    return wire + b"0\r\n" + draw(trailers) + b"\r\n", body


@given(answers(), st.lists(st.integers(min_value=0, max_value=2000), max_size=30))
def test_any_packets_give_the_same_answer(answer: tuple[bytes, bytes], places: list[int]) -> None:
    wire, body = answer
    assert read(cut(wire, places)) == (200, body, True)


@given(answers())
def test_byte_by_byte_gives_the_same_answer(answer: tuple[bytes, bytes]) -> None:
    wire, body = answer
    assert read(wire[at : at + 1] for at in range(len(wire))) == (200, body, True)
    assert read_by_h11(wire) == (200, body, True)


@given(answers(), st.integers(min_value=0, max_value=5000))
def test_a_cut_answer_is_never_whole(answer: tuple[bytes, bytes], place: int) -> None:
    wire, _ = answer
    got = read([wire[: place % len(wire)]])
    if b"Connection: close" not in wire:
        assert got is None or not got[2]


# --- damaged answers ------------------------------------------------------------------------------------------------------------


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    wire, _ = draw(answers())
    for _ in range(draw(st.integers(min_value=1, max_value=3))):
        at = draw(st.integers(min_value=0, max_value=len(wire)))
        until = min(len(wire), at + draw(st.integers(min_value=0, max_value=3)))
        wire = wire[:at] + draw(st.one_of(st.binary(max_size=3), st.sampled_from([b"\r\n", b"\n", b"\r", b"0", b":", b" "]))) + wire[until:]
    return wire


@given(damaged(), st.lists(st.integers(min_value=0, max_value=2000), max_size=12))
@example(b"HTTP/1.1 200 OK\r\nContent-Length: 5\xa0\r\n\r\nhello", [])
def test_a_damaged_answer_is_refused_or_read_as_h11_reads_it(wire: bytes, places: list[int]) -> None:
    oracle = read_by_h11(wire)
    try:
        got = read(cut(wire, places))
    except NotHTTP:
        return
    if got is not None and got[2]:
        assert oracle == got


REFUSED = {
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "another version": b"HTTP/2 200\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "a status of two digits": b"HTTP/1.1 20 OK\r\n\r\n",
    "space before a colon": b"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello",
    "a folded header": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
    "a bare line feed": b"HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
    "a bare carriage return": b"HTTP/1.1 200 OK\r\nX: a\rContent-Length: 5\r\n\r\nhello",
    "a NUL": b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n",
    "no name": b"HTTP/1.1 200 OK\r\n: b\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "two lengths in one": b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello!",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
    "a signed length": b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
    "no length at all": b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
    "a length in other digits": b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\nhello",
    "a length of twenty digits": b"HTTP/1.1 200 OK\r\nContent-Length: 11111111111111111111\r\n\r\n",
    "a length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "chunks, twice": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "another transfer encoding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a head without end": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * (MAX_HEAD_BYTES // 6),
    "another protocol from here": b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
}
CHUNKS_REFUSED = {
    "no size": b"\r\nhello\r\n0\r\n\r\n",
    "a size in hexadecimal notation": b"0x5\r\nhello\r\n0\r\n\r\n",
    "a signed size": b"+5\r\nhello\r\n0\r\n\r\n",
    "an underscore": b"1_0\r\nhello\r\n0\r\n\r\n",
    "space before a size": b" 5\r\nhello\r\n0\r\n\r\n",
    "a size too small": b"4\r\nhello\r\n0\r\n\r\n",
    "a size too large": b"6\r\nhello\r\n0\r\n\r\n",
    "a bare line feed": b"5\nhello\n0\n\n",
    "a size without end": b"5;" + b"x" * MAX_SIZE_LINE_BYTES,
    "a size of many digits": b"0" * 16 + b"5\r\nhello\r\n",
    "a trailer that is none": b"0\r\nno colon\r\n\r\n",
    "trailers without end": b"0\r\n" + b"X: y\r\n" * (MAX_HEAD_BYTES // 5),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_an_answer_that_could_be_misread_is_refused(name: str) -> None:
    with pytest.raises(NotHTTP):
        read([REFUSED[name]])


@pytest.mark.parametrize("size", [1, 3, 100_000])
@pytest.mark.parametrize("name", list(CHUNKS_REFUSED))
def test_chunks_that_could_be_misread_are_refused(name: str, size: int) -> None:
    wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS_REFUSED[name]
    with pytest.raises(NotHTTP):
        read(wire[at : at + size] for at in range(0, len(wire), size))


def test_what_comes_behind_a_body_is_told_apart() -> None:
    sized, chunked = Sized(3), Chunked()
    assert (sized.feed(b"abcde"), sized.done, sized.excess) == (b"abc", True, b"de")
    assert (chunked.feed(b"3\r\nabc\r\n0\r\n\r\nde"), chunked.done, chunked.excess) == (b"abc", True, b"de")


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("POST", 204), ("POST", 304), ("CONNECT", 200)])
def test_some_answers_have_no_body_whatever_they_say(method: str, status: int) -> None:
    assert read([b"HTTP/1.1 %d X\r\nContent-Length: 7\r\n\r\n" % status], method) == (status, b"", True)


@pytest.mark.parametrize(
    ("start", "stays"),
    [
        (b"HTTP/1.1 200 OK", True),
        (b"HTTP/1.1 200", True),
        (b"HTTP/1.1 200 OK\r\nConnection: close", False),
        (b"HTTP/1.1 200 OK\r\nConnection: x, Close", False),
        (b"HTTP/1.0 200 OK", False),
        (b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive", True),
    ],
)
def test_whether_a_connection_stays_open(start: bytes, stays: bool) -> None:
    found = read_head(start + b"\r\n\r\n")
    assert found is not None
    assert found[0].stays_open is stays


@pytest.mark.parametrize(
    ("method", "target", "name", "value"),
    [
        ("GE T", "/", b"a", b"b"),
        ("GET", "/a b", b"a", b"b"),
        ("GET", "/\r\nx: y", b"a", b"b"),
        ("GET", "/é", b"a b", b"b"),
        ("GET", "/", b"a:", b"b"),
        ("GET", "/", b"", b"b"),
        ("GET", "/", b"a", b"b\r\nx: y"),
        ("GET", "/", b"a", b"b\x00"),
    ],
)
def test_a_request_that_could_be_misread_is_not_written(method: str, target: str, name: bytes, value: bytes) -> None:
    with pytest.raises(Unsendable):
        request_head(method, target, [(name, value)])


# --- content encodings ------------------------------------------------------------------------------------------------------------


def packed(text: bytes, encoding: str) -> bytes:
    if encoding == "gzip":
        return gzip.compress(text)
    if encoding == "two members":
        return gzip.compress(text[:7]) + gzip.compress(text[7:])
    compressor = zlib.compressobj(wbits=-15 if encoding == "bare" else 15)
    return compressor.compress(text) + compressor.flush()


PACKINGS = st.sampled_from([("gzip", "gzip"), ("gzip", "two members"), ("deflate", "zlib"), ("deflate", "bare")])


@given(st.binary(max_size=400), PACKINGS, st.lists(st.integers(min_value=0, max_value=500), max_size=12))
def test_a_packed_body_is_undone_however_it_arrives(text: bytes, packing: tuple[str, str], places: list[int]) -> None:
    encoding, how = packing
    data = packed(text, how)
    decompressor = Decompressor(encoding)
    assert b"".join(piece for part in cut(data, places) for piece in decompressor.feed(part)) == text
    assert decompressor.done
    cut_short = Decompressor(encoding)
    assert text.startswith(b"".join(cut_short.feed(data[:-1])))
    assert not cut_short.done


def test_a_small_body_that_unpacks_to_a_huge_one_comes_in_bounded_pieces() -> None:
    data = gzip.compress(bytes(20_000_000))
    assert len(data) < 30_000
    decompressor, size = Decompressor("gzip"), 0
    for piece in decompressor.feed(data):
        assert len(piece) <= DECOMPRESSED_BYTES
        size += len(piece)
    assert (size, decompressor.done) == (20_000_000, True)
