"""Recording and replaying, on real sockets and with every kind of bytes; and no secret in the file."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.http.transport import HttpTransport
from dragoman.providers.redact import REDACTED
from dragoman.testing.cassette import Cassette
from dragoman.values.contracts import HttpResponse
from dragoman.values.errors import ConnectionFailed, InputError
from loopback_http import Received, always, answer, chunk, chunked_head, endless, fetch, serving

SECRET = "hush-hush-0123"


class Canned:
    """A Transport that answers from memory, chunk by chunk."""

    def __init__(self, *answers: Any) -> None:
        self._answers = iter(answers)

    @asynccontextmanager
    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> AsyncIterator[HttpResponse]:
        canned = next(self._answers)
        if isinstance(canned, Exception):
            raise canned
        yield canned

    async def aclose(self) -> None:
        pass


class CannedAnswer:
    def __init__(
        self, chunks: list[bytes], *, status: int = 200, headers: dict[str, str] | None = None, fault: Exception | None = None
    ) -> None:
        self.status = status
        self.headers = headers or {}
        self._chunks = chunks
        self._fault = fault

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self._chunks:
            yield piece
        if self._fault:
            raise self._fault


async def pieces(
    transport: Any, method: str, url: str, headers: Mapping[str, str], body: bytes
) -> tuple[int, Mapping[str, str], list[bytes]]:
    async with transport.send(method, url, headers, body) as got:
        return got.status, got.headers, [piece async for piece in got.chunks()]


def record(path: Path, *takes: tuple[Any, ...], secrets: Any = ()) -> list[Any]:
    """Each take is (answer, method, url, headers, body). Returns what the caller saw."""

    async def run() -> list[Any]:
        cassette = Cassette(path, Canned(*(take[0] for take in takes)), mode="record", secrets=secrets)
        seen = [await attempt(cassette, *take[1:]) for take in takes]
        await cassette.aclose()
        return seen

    return asyncio.run(run())


def replay(path: Path, *requests: tuple[Any, ...], secrets: Any = ()) -> list[Any]:
    async def run() -> list[Any]:
        cassette = Cassette(path, mode="replay", secrets=secrets)
        seen = [await attempt(cassette, *request) for request in requests]
        await cassette.aclose()
        return seen

    return asyncio.run(run())


async def attempt(transport: Any, *request: Any) -> Any:
    try:
        return await pieces(transport, *request)
    except ConnectionFailed as error:
        return error.message, error.retryable


# --- on real sockets ---------------------------------------------------------------------------------------------------------------


def test_what_was_recorded_is_replayed_without_a_network(tmp_path: Path) -> None:
    path = tmp_path / "tapes" / "chat.jsonl"

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked_head("Set-Cookie: a=b\r\n"))
        for number in range(3):
            writer.write(chunk(b"data: %b %d\n\n" % (request.body, number)))
            await writer.drain()
            await asyncio.sleep(0.02)
        writer.write(b"0\r\n\r\n")

    async def ask(cassette: Cassette, url: str) -> list[Any]:
        return [await pieces(cassette, "POST", f"{url}/v1?alt=sse", {"x-api-key": SECRET}, body) for body in (b"one", b"two")]

    async def run() -> None:
        async with serving(handler) as server:
            recording = Cassette(path, HttpTransport())
            assert recording.recording
            live = await ask(recording, server.url)
            await recording.aclose()
        replaying = Cassette(path)
        assert not replaying.recording
        assert replaying.remaining == 2
        again = await ask(replaying, "https://elsewhere.test")
        assert [(status, body) for status, _, body in again] == [(status, body) for status, _, body in live]
        assert again[0][2] == [b"data: one 0\n\n", b"data: one 1\n\n", b"data: one 2\n\n"]
        assert again[0][1]["set-cookie"] == REDACTED
        assert replaying.remaining == 0

    asyncio.run(run())
    assert SECRET not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["chat.jsonl"]


def test_faults_are_recorded_and_replayed(tmp_path: Path) -> None:
    path = tmp_path / "faults.jsonl"

    async def run(transport: Any, url: str) -> list[Any]:
        cassette = Cassette(path, transport)
        cut = await attempt_after(cassette, "POST", f"{url}/cut", {}, b"")
        refused = await attempt_after(cassette, "POST", "http://127.0.0.1:1/refused", {}, b"")
        await cassette.aclose()
        return [cut, refused]

    async def both() -> None:
        async with serving(always(chunked_head() + chunk(b"data: 1\n\n"), then_close=True)) as server:
            live = await run(HttpTransport(), server.url)
        assert live[0][0] == [b"data: 1\n\n"]
        assert "cut its answer short after 9 bytes" in str(live[0][1])
        assert "connection refused" in str(live[1][1])
        again = await run(None, "http://127.0.0.1:1")
        assert [(got, str(error)) for got, error in again] == [(got, str(error)) for got, error in live]

    asyncio.run(both())


async def attempt_after(transport: Any, *request: Any) -> tuple[list[bytes], ConnectionFailed]:
    """What came, and the fault that ended it."""
    got: list[bytes] = []
    try:
        async with transport.send(*request) as reply:
            async for piece in reply.chunks():
                got.append(piece)  # noqa: PERF401
    except ConnectionFailed as error:
        return got, error
    raise AssertionError("no fault")


def test_a_recording_that_was_broken_off_says_so_when_it_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"

    async def run() -> None:
        async with serving(endless) as server:
            recording = Cassette(path, HttpTransport())
            async with recording.send("POST", server.url, {}, b"") as got:
                async for piece in got.chunks():
                    assert piece == b"data: 1\n\n"
                    break
            await recording.aclose()
        got, error = await attempt_after(Cassette(path), "POST", server.url, {}, b"")
        assert got == [b"data: 1\n\n"]
        assert str(error) == "the recording was interrupted here"

    asyncio.run(run())


# --- round trips ---------------------------------------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
header_maps = st.dictionaries(st.sampled_from(["content-type", "x-request-id", "retry-after"]), texts, max_size=3)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["GET", "POST"]),
            texts,
            header_maps,
            st.binary(max_size=60),
            st.integers(200, 599),
            st.lists(st.binary(), max_size=5),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_interaction_comes_back_as_it_was(takes: list[tuple[str, str, dict[str, str], bytes, int, list[bytes]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "any.jsonl")
        requests = [(method, f"https://api.test/v1/{query}", headers, body) for method, query, headers, body, _, _ in takes]
        canned = [CannedAnswer(chunks, status=status, headers=headers) for _, _, headers, _, status, chunks in takes]
        live = record(path, *((reply, *request) for reply, request in zip(canned, requests, strict=True)))
        assert replay(path, *requests) == live
        assert path.read_bytes().count(b"\n") == len(takes)


secrets = st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=24).filter(lambda text: not set(text) <= set(REDACTED))


@given(secrets, st.binary(max_size=10), st.integers(0, 30), st.booleans())
def test_no_secret_survives_anywhere_in_the_file(secret: str, noise: bytes, cut: int, as_fault: bool) -> None:
    raw = secret.encode()
    body = b'{"note": %b}' % json.dumps(f"my key is {secret}!").encode() + noise
    stream = noise + b"data: " + raw + b"\n\n"
    fault = ConnectionFailed(f"it broke: {secret}") if as_fault else None
    reply = CannedAnswer([stream[:cut], stream[cut:]], headers={"x-echo": secret, "set-cookie": secret}, fault=fault)
    request = (
        "POST",
        f"https://api.test/{secret}?key={secret}&alt=sse",
        {"Authorization": f"Bearer {secret}", "x-note": f"({secret})"},
        body,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "secret.jsonl")
        record(path, (reply, *request), (ConnectionFailed(secret), *request), secrets=lambda: [secret])
        written = path.read_bytes()
        for text in [written.decode(), *strings_in(written)]:
            assert secret not in text
        assert secret not in "".join(map(str, replay(path, request, request, secrets=[secret])))


def strings_in(lines: bytes) -> list[str]:
    """Every string in a cassette, what is inside base64 and inside JSON bodies too, and the chunks put together."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "chunks" in value:
                found.append(b"".join(map(decoded, value["chunks"])).decode("utf-8", "replace"))
            for key, item in value.items():
                found.append(key)
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)
        elif isinstance(value, str):
            found.append(value)
            try:
                inner = json.loads(value)
            except ValueError:
                return
            if not isinstance(inner, str):
                walk(inner)

    for line in lines.splitlines():
        walk(msgspec.json.decode(line))
    return found


def decoded(data: str | dict[str, str]) -> bytes:
    import base64

    return data.encode() if isinstance(data, str) else base64.b64decode(data["base64"])


def test_what_looks_like_a_key_goes_though_nobody_named_it(tmp_path: Path) -> None:
    path = tmp_path / "keys.jsonl"
    key = "sk-proj-abcDEF0123456789"
    reply = CannedAnswer([b"your key ", key[:5].encode(), key[5:].encode() + b" is wrong"])
    record(path, (reply, "POST", f"https://user:pass-word@api.test/v1?api_key={key}", {"x-other": f"Bearer {key}"}, key.encode()))
    written = path.read_text()
    assert key not in written
    assert "DEF0123456789" not in written
    assert "pass-word" not in written
    [(_, _, chunks)] = replay(path, ("POST", "https://api.test/v1?api_key=another", {}, b"sk-proj-another-key-9876"))
    assert chunks == [b"your key ", b"REDACTED", b" is wrong"]


# --- matching -------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    path = tmp_path / "tape.jsonl"
    record(path, (CannedAnswer([b"ok"]), "POST", "https://api.test/v1/chat?alt=sse", {"x-api-key": "old-key-0123"}, b'{"model":"a","n":1}'))
    return path


def test_host_and_headers_may_differ(tape: Path) -> None:
    assert replay(tape, ("POST", "http://127.0.0.1:8/v1/chat?alt=sse", {"x-api-key": "new-key-4567"}, b'{"model":"a","n":1}')) == [
        (200, {}, [b"ok"])
    ]


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (("GET", "https://api.test/v1/chat?alt=sse", {}, b'{"model":"a","n":1}'), "the method was POST and is GET"),
        (
            ("POST", "https://api.test/v2/chat?alt=sse", {}, b'{"model":"a","n":1}'),
            "the path differs at character 2\n  recorded: '/v1/chat",
        ),
        (("POST", "https://api.test/v1/chat", {}, b'{"model":"a","n":1}'), "the path differs at character 8"),
        (
            ("POST", "https://api.test/v1/chat?alt=sse", {}, b'{"model":"b","n":1}'),
            'the body differs at character 10\n  recorded: \'{"model":"a',
        ),
        (("POST", "https://api.test/v1/chat?alt=sse", {}, b'{"model":"a","n":1'), "the body differs at character 18"),
        (("POST", "https://api.test/v1/chat?alt=sse", {}, b"\xff"), "the body differs at character 0"),
    ],
)
def test_another_request_is_told_where_it_differs(tape: Path, request_: tuple[Any, ...], told: str) -> None:
    with pytest.raises(InputError) as caught:
        replay(tape, request_)
    assert f"{tape} line 1 is not what was sent: {told}" in str(caught.value)


def test_the_difference_is_shown_and_not_the_whole_body(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    record(path, (CannedAnswer([]), "POST", "https://api.test/", {}, b"x" * 50_000 + b"old" + b"y" * 50_000))
    with pytest.raises(InputError) as caught:
        replay(path, ("POST", "https://api.test/", {}, b"x" * 50_000 + b"new" + b"y" * 50_000))
    assert "old" in str(caught.value)
    assert "new" in str(caught.value)
    assert len(str(caught.value)) < 500


def test_one_request_too_many_is_told_so(tape: Path) -> None:
    request = ("POST", "https://api.test/v1/chat?alt=sse", {}, b'{"model":"a","n":1}')
    with pytest.raises(InputError, match="has 1 interaction, and this is one more: POST /v1/chat"):
        replay(tape, request, request)


# --- files ------------------------------------------------------------------------------------------------------------------------------


def test_a_cassette_cut_anywhere_names_the_line(tmp_path: Path, every_offset: bool) -> None:
    path = tmp_path / "whole.jsonl"
    take = (CannedAnswer([b"\xff\xfe", "é".encode()]), "POST", "https://api.test/", {}, b"question")
    record(path, take, (CannedAnswer([b"second"]), *take[1:]))
    whole = path.read_bytes()
    first = whole.index(b"\n")
    for size in range(len(whole)) if every_offset else range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        if size in {first, first + 1}:
            assert Cassette(path, mode="replay").remaining == 1
            continue
        if size == len(whole) - 1:
            assert Cassette(path, mode="replay").remaining == 2
            continue
        with pytest.raises(InputError) as caught:
            Cassette(path, mode="replay")
        line = 1 if size <= first else 2
        assert str(caught.value).startswith(f"the cassette {path} is " + (f"damaged in line {line}: " if size else "empty"))


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"[]",
        b"\xff\xfe",
        b'{"request": {"method": "GET", "url": "/", "headers": {}, "body": ""}}',
        b'{"request": {"method": "GET", "url": "/", "headers": {}, "body": {"base64": "*"}}, "fault": {"message": "x"}}',
        b'{"request": {"method": "GET", "url": "/", "headers": {}, "body": ""}, "response": {"status": "ok", "headers": {}, "chunks": []}}',
    ],
)
def test_a_damaged_line_is_named(tape: Path, line: bytes) -> None:
    tape.write_bytes(tape.read_bytes() + b"\n" + line + b"\n")
    with pytest.raises(InputError, match=r"tape\.jsonl is damaged in line 3: .*record it again"):
        Cassette(tape, mode="replay")


def test_a_missing_cassette_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read the cassette .*No such file"):
        Cassette(tmp_path / "none.jsonl", mode="replay")
    with pytest.raises(InputError, match=r"there is no cassette .*none\.jsonl to replay, and no transport to record one with"):
        Cassette(tmp_path / "none.jsonl")


def test_recording_again_replaces_the_whole_file_and_a_failure_leaves_it(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tape.read_bytes()
    take = (CannedAnswer([b"new"]), "GET", "https://api.test/", {}, b"")

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("dragoman.base.atomic.sync_file", full)
        with pytest.raises(InputError, match=r"cannot write the cassette .*: No space left on device"):
            record(tape, take)
    assert tape.read_bytes() == before
    assert os.listdir(tape.parent) == ["tape.jsonl"]
    record(tape, take)
    assert replay(tape, take[1:]) == [(200, {}, [b"new"])]


def test_nothing_recorded_writes_nothing(tmp_path: Path) -> None:
    assert record(tmp_path / "nothing.jsonl") == []
    assert os.listdir(tmp_path) == []


def test_requests_side_by_side_are_kept_in_the_order_they_were_sent(tmp_path: Path) -> None:
    path = tmp_path / "parallel.jsonl"

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.2 if request.body == b"first" else 0)
        writer.write(answer(request.body))

    async def run() -> None:
        async with serving(handler) as server:
            recording = Cassette(path, HttpTransport())
            await asyncio.gather(fetch(recording, server.url, b"first"), fetch(recording, server.url, b"second"))
            await recording.aclose()
        replaying = Cassette(path)
        got = await asyncio.gather(fetch(replaying, server.url, b"first"), fetch(replaying, server.url, b"second"))
        assert [body for _, _, body in got] == [b"first", b"second"]

    asyncio.run(run())


# --- recordings for others --------------------------------------------------------------------------------------------------------


def test_a_recording_says_what_it_is_and_keeps_only_chosen_headers(tmp_path: Path) -> None:
    path = tmp_path / "about.jsonl"

    async def run() -> None:
        canned = Canned(CannedAnswer([b"of alice"], headers={"x-kept": "1", "x-other": "2"}), CannedAnswer([b"two"]))
        cassette = Cassette(
            path,
            canned,
            mode="record",
            hide=lambda: [rb"of (\w+)"],
            keep_header=lambda name: name == "x-kept",
            about={"model": "a/b"},
        )
        for body in (b"one", b"two"):
            await pieces(cassette, "POST", "https://api.test/v1", {"X-Kept": "yes", "X-Other": "no"}, body)
        assert cassette.recorded == 2
        await cassette.aclose()

    asyncio.run(run())
    first, second = map(json.loads, path.read_text().splitlines())
    assert first["about"] == {"model": "a/b"}
    assert "about" not in second
    assert first["request"]["headers"] == {"X-Kept": "yes"}
    assert first["response"] == {"status": 200, "headers": {"x-kept": "1"}, "chunks": [f"of {REDACTED}"]}
    assert Cassette(path).about == {"model": "a/b"}


def test_without_order_each_request_gets_the_next_answer_to_an_equal_one(tmp_path: Path) -> None:
    path = tmp_path / "order.jsonl"
    url = "https://api.test/v1"
    takes = [(CannedAnswer([text]), "POST", url, {}, body) for text, body in ((b"1", b"a"), (b"2", b"b"), (b"3", b"a"))]
    record(path, *takes)

    async def run() -> None:
        cassette = Cassette(path, mode="replay", in_order=False)
        replies = [(await pieces(cassette, "POST", url, {}, body))[2] for body in (b"b", b"a", b"a")]
        assert replies == [[b"2"], [b"1"], [b"3"]]
        assert cassette.remaining == 0

    asyncio.run(run())

    async def unknown() -> None:
        await pieces(Cassette(path, mode="replay", in_order=False), "POST", url, {}, b"c")

    with pytest.raises(InputError, match="is not what was sent"):
        asyncio.run(unknown())
