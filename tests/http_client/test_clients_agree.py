"""Our client and httpcore2 are oracles for each other: the same answers are read alike, and the same requests written alike."""

from __future__ import annotations

import asyncio
import gzip
import string
import zlib
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from dragoman.http.httpx_transport import HttpxTransport
from dragoman.http.transport import HttpTransport
from dragoman.values.errors import ConnectionFailed
from loopback_http import LAST_CHUNK, Received, Server, chunk, closing, fetch, serving

Got = tuple[int, Mapping[str, str], bytes] | None
"""None: a fault."""


def asked_by_both(
    wire: bytes, packet: int, *, method: str = "POST", path: str = "/", headers: Mapping[str, str] | None = None, body: bytes = b""
) -> tuple[list[Got], list[Received]]:
    """What each client makes of an answer that comes in packets of this size, and what the server got from each."""

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        for start in range(0, len(wire), packet):
            writer.write(wire[start : start + packet])
            await asyncio.sleep(0)
        await writer.drain()
        writer.close()

    async def ask(transport: HttpTransport | HttpxTransport, server: Server) -> Got:
        async with closing(transport):
            try:
                status, got, data = await asyncio.wait_for(fetch(transport, server.url + path, body, method=method, headers=headers), 60)
            except ConnectionFailed:
                return None
            # h11 writes these anew: chunked for Chunked, one length for two that are the same.
            return status, {name: value for name, value in got.items() if name not in {"transfer-encoding", "content-length"}}, data

    async def run() -> tuple[list[Got], list[Received]]:
        async with serving(handler) as server:
            return [await ask(HttpTransport(), server), await ask(HttpxTransport(), server)], server.requests

    return asyncio.run(run())


# --- answers ------------------------------------------------------------------------------------------------------------------------

TOKEN = string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~"
FRAMING = {"content-length", "transfer-encoding", "content-encoding", "connection"}
names = st.text(TOKEN, min_size=1, max_size=12).filter(lambda name: name.lower() not in FRAMING)
values = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f\x85\xa0"), max_size=20)
fields = st.lists(st.tuples(names, values), max_size=6)
statuses = st.sampled_from([200, 201, 204, 206, 302, 304, 400, 404, 429, 500, 503, 599])
pieces = st.lists(st.binary(min_size=1, max_size=60), max_size=6)


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKERS = {
    "": lambda data: data,
    "identity": lambda data: data,
    "gzip": gzip.compress,
    "x-gzip": lambda data: gzip.compress(data[:3]) + gzip.compress(data[3:]),
    "deflate": zlib.compress,
    "Deflate": raw_deflate,
}


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    status, headers, framing = draw(statuses), draw(fields), draw(st.sampled_from(["length", "chunks", "end"]))
    encoding = draw(st.sampled_from(list(PACKERS)))
    chunks = draw(pieces)
    if encoding:
        headers = [*headers, ("Content-Encoding", encoding)]
        packed = PACKERS[encoding](b"".join(chunks))
        cut = draw(st.integers(min_value=0, max_value=len(packed)))
        chunks = [piece for piece in (packed[:cut], packed[cut:]) if piece]
    if status in {204, 304}:
        chunks = []
    body = b"".join(chunks)
    match framing:
        case "length":
            headers = [*headers, ("Content-Length", str(len(body)))]
        case "chunks":
            headers, body = [*headers, ("transfer-encoding", "Chunked")], b"".join(map(chunk, chunks)) + LAST_CHUNK
        case "end":
            headers = [*headers, ("Connection", "close")]
    body = b"" if status in {204, 304} else body
    version = draw(st.sampled_from(["1.0", "1.1"])) if framing != "chunks" else "1.1"
    reason = draw(st.sampled_from([" OK", " Nicht gefunden", " ", ""]))
    lines = [f"HTTP/{version} {status}{reason}", *(f"{name}:{draw(st.sampled_from(['', ' ', '  ']))}{value}" for name, value in headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


@given(answers(), st.integers(min_value=1, max_value=80))
def test_an_answer_is_read_alike(wire: bytes, packet: int) -> None:
    (ours, theirs), _ = asked_by_both(wire, packet)
    assert ours is not None
    assert ours == theirs


@given(answers(), st.integers(min_value=0, max_value=10_000), st.binary(max_size=4), st.integers(min_value=0, max_value=4))
def test_what_ours_accepts_of_damaged_answers_is_read_alike(wire: bytes, at: int, put: bytes, taken: int) -> None:
    """It is the stricter of the two: what it refuses, the other may accept. Only the length of a body that cannot be is not looked at."""
    at %= len(wire) + 1
    (ours, theirs), _ = asked_by_both(wire[:at] + put + wire[at + taken :], len(wire) + 4)
    assert ours is None or ours == theirs or ours[0] in {204, 304}


# --- requests -----------------------------------------------------------------------------------------------------------------------

paths = st.text(string.ascii_letters + string.digits + "/?&=%._~- é[]:@#", max_size=20).map(lambda path: f"/{path}")


@given(
    st.sampled_from(["GET", "POST", "PUT", "HEAD", "DELETE"]),
    paths,
    st.dictionaries(
        st.text(TOKEN, min_size=1, max_size=12).filter(lambda name: name.lower() not in {"host", "connection", "expect"}),
        values,
        max_size=5,
    ),
    st.binary(max_size=200),
)
def test_a_request_is_written_alike(method: str, path: str, headers: dict[str, str], body: bytes) -> None:
    _, (ours, theirs) = asked_by_both(b"HTTP/1.1 204 No Content\r\n\r\n", 100, method=method, path=path, headers=headers, body=body)
    assert ours == theirs
