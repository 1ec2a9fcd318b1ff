"""The publisher's own file, from a server on this machine that sends ranges, or misbehaves."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from dragoman.local.weights import NotPulled, hub, models, pull
from dragoman.local.weights.hub import Hub
from loopback_http import Handler, Received, Server, against, always, answer, silent
from tiny_model import CONTENT, TINY, Fake, tiny_model

TARGET = "/maker/tiny/resolve/main/tiny.gguf"


@pytest.fixture(autouse=True)
def in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(models.MODELS, "tiny", TINY)


async def ranges(request: Received, writer: asyncio.StreamWriter) -> None:
    first, last = map(int, request.headers["range"].removeprefix("bytes=").split("-"))
    writer.write(answer(CONTENT[first : last + 1], "206 Partial Content"))
    await writer.drain()


def pulled(handler: Handler, folder: Path, *others: Fake) -> tuple[Path, Server]:
    async def run(server: Server) -> tuple[Path, Server]:
        path = await pull("tiny", folder=folder, sources=[Hub({"HF_ENDPOINT": server.url + "/"}), *others])
        return path, server

    from dragoman.http.transport import HttpTransport

    return against(handler, HttpTransport(), run)


def test_each_part_is_asked_for_as_a_range(tmp_path: Path) -> None:
    path, server = pulled(ranges, tmp_path)
    assert path.read_bytes() == CONTENT
    assert sorted(request.headers["range"] for request in server.requests)[0] == "bytes=0-2999"
    assert len(server.requests) == len(TINY.parts)
    assert {request.target for request in server.requests} == {TARGET}


def test_redirects_are_followed(tmp_path: Path) -> None:
    async def elsewhere(request: Received, writer: asyncio.StreamWriter) -> None:
        if request.target == TARGET:
            writer.write(answer(b"", "302 Found", "Location: /store/file?x=1\r\n"))
        else:
            assert request.target == "/store/file?x=1"
            await ranges(request, writer)

    path, _ = pulled(elsewhere, tmp_path)
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (answer(b"no", "404 Not Found"), "it answers with HTTP 404"),
        (answer(b"slow down", "429 Too Many Requests"), "it answers with HTTP 429"),
        (answer(CONTENT), "it does not send parts of a file"),
        (answer(b"x" * 3_000, "206 Partial Content"), "is damaged, or another file"),
        (answer(b"x" * 4_000, "206 Partial Content"), "is longer than it should be"),
        (answer(b"", "302 Found", f"Location: {TARGET}\r\n"), "it redirects too often"),
        (answer(b"", "302 Found", "Location: ftp://127.0.0.1/x\r\n"), "it redirects to an unsafe address"),
        (answer(b"", "302 Found"), "it redirects to an unsafe address"),
    ],
)
def test_what_is_no_part_is_told_and_the_next_source_is_asked(tmp_path: Path, said: bytes, told: str) -> None:
    with pytest.raises(NotPulled, match=f"127.0.0.1: .*{told}"):
        pulled(always(said), tmp_path)
    path, _ = pulled(always(said), tmp_path, Fake())
    assert path.read_bytes() == CONTENT


def test_a_cut_part_is_told(tmp_path: Path) -> None:
    cut = answer(b"x" * 3_000, "206 Partial Content")[:-500]
    with pytest.raises(NotPulled, match=r"127\.0\.0\.1"):
        pulled(always(cut, then_close=True), tmp_path)


def test_a_server_that_says_nothing_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "ANSWER_S", 0.1)
    path, _ = pulled(silent, tmp_path, Fake())
    assert path.read_bytes() == CONTENT


def test_a_server_that_stops_sending_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def stops(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(bytes(3_000), "206 Partial Content")[:-1_000])
        await asyncio.sleep(600)

    monkeypatch.setattr(hub, "SILENCE_S", 0.1)
    path, _ = pulled(stops, tmp_path, Fake())
    assert path.read_bytes() == CONTENT


def test_no_network_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotPulled, match=r"127\.0\.0\.1"):
        asyncio.run(pull("tiny", folder=tmp_path, sources=[Hub({"HF_ENDPOINT": f"http://127.0.0.1:{closed_port()}"})]))


def test_an_endpoint_that_is_no_url_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotPulled):
        asyncio.run(pull("tiny", folder=tmp_path, sources=[Hub({"HF_ENDPOINT": "nonsense"})]))


def test_a_whole_file_will_do_where_it_is_one_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = CONTENT[:2_000]
    monkeypatch.setitem(models.MODELS, "tiny", tiny_model(small))
    path, _ = pulled(always(answer(small)), tmp_path)
    assert path.read_bytes() == small


def test_a_model_that_is_not_on_the_hub_is_not_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(models.MODELS, "tiny", tiny_model(hub=""))
    path, server = pulled(ranges, tmp_path, Fake())
    assert path.read_bytes() == CONTENT
    assert server.requests == []


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
