"""Ports that the user opens to their own programs: reached by the address that is given, for as long as it is open, and one way only."""

from __future__ import annotations

import asyncio
import socket
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.loop.commands import CommandStarter
from dragoman.loop.options import Sandboxing
from dragoman.policy.sandbox import detection, ports
from dragoman.policy.sandbox.bubblewrap import find_bubblewrap
from dragoman.policy.sandbox.ports import read_listening
from dragoman.policy.sandbox.sandbox import Sandbox
from policy.sandbox.sandboxes import bash, sandbox_at
from policy.sandbox.test_session_network import OWNERS, PORT, SERVE, in_background, workspace  # noqa: F401 - a fixture

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")
ECHO = """PATH=/usr/bin:/bin; exec python3 -c '
import socket, threading
server = socket.create_server(("::1", %d), family=socket.AF_INET6)
def echo(client):
    with client:
        while data := client.recv(65536):
            client.sendall(data)
while True:
    threading.Thread(target=echo, args=(server.accept()[0],), daemon=True).start()
'"""


def fetch(url: str) -> str:
    with urllib.request.urlopen(f"{url}/hello.txt", timeout=60) as answer:
        return answer.read().decode()


def reaches(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=60).close()
    except ConnectionRefusedError:
        return False
    return True


def address_of(url: str) -> tuple[str, int]:
    host, _, port = url.removeprefix("http://").partition(":")
    return host, int(port)


@pytest.mark.parametrize("level", [1, 2])
def test_an_opened_port_is_reached_from_outside_until_it_is_closed(level: int, workspace: Path) -> None:  # noqa: F811
    async def main(sandbox: Sandbox) -> str:
        async with in_background(sandbox, SERVE, workspace):
            assert not reaches(("127.0.0.1", PORT))
            url = await sandbox.open_port(PORT)
            assert await asyncio.to_thread(fetch, url) == "hello from inside\n"
            assert url == f"http://{address_of(url)[0]}:{PORT}", "the same port number"
            assert url.startswith("http://127.")
            assert not url.startswith("http://127.0.0.1:"), "an address of its own"
            assert await sandbox.open_port(PORT) == url
            assert dict(sandbox.opened_ports) == {PORT: url}
            assert not reaches(("127.0.0.1", PORT))
            await sandbox.close_port(PORT)
            assert not reaches(address_of(url))
            assert dict(sandbox.opened_ports) == {}
            return await sandbox.open_port(PORT)

    with sandbox_at(level, workspace) as sandbox:
        url = asyncio.run(main(sandbox))
        assert reaches(address_of(url)), "it does not depend on the loop in which it was asked for"
    assert not reaches(address_of(url)), "it closes with the session"


@pytest.mark.parametrize("level", [1, 2])
def test_bytes_go_both_ways_to_their_end_also_over_ipv6(level: int, tmp_path: Path) -> None:
    sent = bytes(range(256)) * 20_000

    async def main(sandbox: Sandbox) -> None:
        async with in_background(sandbox, ECHO % 8124, tmp_path, 8124):
            host, port = address_of(await sandbox.open_port(8124))

            async def converse() -> bytes:
                reader, writer = await asyncio.open_connection(host, port)
                answer = asyncio.ensure_future(reader.read(-1))
                writer.write(sent)
                await writer.drain()
                writer.write_eof()
                try:
                    async with asyncio.timeout(60):
                        return await answer
                finally:
                    writer.close()

            assert await asyncio.gather(converse(), converse(), converse()) == [sent] * 3

    with sandbox_at(level, tmp_path) as sandbox:
        asyncio.run(main(sandbox))


def test_a_port_on_which_nobody_listens_reaches_nobody_outside(tmp_path: Path) -> None:
    """The socket was made inside: a server of ours at the same port is not found."""

    async def main(sandbox: Sandbox) -> None:
        await bash(sandbox, "true", tmp_path)
        with socket.create_server(("127.0.0.1", 0)) as ours:
            host, port = address_of(await sandbox.open_port(ours.getsockname()[1]))
            reader, writer = await asyncio.open_connection(host, port)
            async with asyncio.timeout(60):
                with suppress(ConnectionResetError):
                    assert await reader.read() == b""
            writer.close()
            ours.setblocking(False)
            with pytest.raises(BlockingIOError):
                ours.accept()

    with sandbox_at(1, tmp_path) as sandbox:
        asyncio.run(main(sandbox))


def test_connections_are_counted_and_come_free_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "MAX_CONNECTIONS", 2)

    async def main(sandbox: Sandbox) -> None:
        async with in_background(sandbox, ECHO % 8124, tmp_path, 8124):
            host, port = address_of(await sandbox.open_port(8124))

            async def is_answered(keep: list[asyncio.StreamWriter]) -> bool:
                reader, writer = await asyncio.open_connection(host, port)
                keep.append(writer)
                writer.write(b"x")
                try:
                    async with asyncio.timeout(60):
                        return await reader.readexactly(1) == b"x"
                except (ConnectionResetError, asyncio.IncompleteReadError):
                    return False

            kept: list[asyncio.StreamWriter] = []
            assert [await is_answered(kept) for _ in range(3)] == [True, True, False]
            for writer in kept:
                writer.close()
            async with asyncio.timeout(60):
                while not await is_answered(kept):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            for writer in kept:
                writer.close()

    with sandbox_at(1, tmp_path) as sandbox:
        asyncio.run(main(sandbox))


def test_where_a_port_is_taken_outside_another_is_given(tmp_path: Path) -> None:
    async def main(sandbox: Sandbox) -> None:
        with socket.create_server(("0.0.0.0", 0)) as ours:
            port = ours.getsockname()[1]
            async with in_background(sandbox, SERVE.replace(str(PORT), str(port)), tmp_path, port):
                url = await sandbox.open_port(port)
                assert address_of(url)[1] != port
                assert await asyncio.to_thread(fetch, url) == "hello from inside\n"

    with sandbox_at(1, tmp_path) as sandbox:
        asyncio.run(main(sandbox))


def test_where_there_is_no_such_network_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sandbox_at(3, tmp_path) as sandbox, pytest.raises(OSError, match="no network"):
        asyncio.run(sandbox.open_port(PORT))
    closed = tmp_path / "bwrap"
    closed.write_text(f'#!/bin/bash\nwords=()\nfor each; do [ "$each" = --info-fd ] && exit 1; done\nexec {find_bubblewrap()} "$@"\n')
    closed.chmod(0o755)
    monkeypatch.setattr(detection, "find_bubblewrap", lambda: str(closed))
    with sandbox_at(2, tmp_path, gate_port=1) as sandbox:
        assert asyncio.run(bash(sandbox, "echo works; env | grep -ci http_proxy", tmp_path))[1] == "works\n0\n"
        with pytest.raises(OSError, match="no network"):
            asyncio.run(sandbox.open_port(PORT))


def test_without_a_sandbox_a_port_is_open_anyway(tmp_path: Path) -> None:
    starter = CommandStarter([str(tmp_path)], Sandboxing(level="off"))
    assert asyncio.run(starter.open_port(PORT)) == f"http://127.0.0.1:{PORT}"
    assert (dict(starter.opened_ports), starter.listening_ports()) == ({}, [])


@given(st.lists(st.tuples(st.integers(0, 65535), st.sampled_from(["0A", "01", "06"]))), st.binary(max_size=60))
def test_any_table_is_read(sockets: list[tuple[int, str]], rest: bytes) -> None:
    lines = [f"  {row}: 0100007F:{port:04X} 00000000:0000 {state} 00000000:00000000 00:0" for row, (port, state) in enumerate(sockets)]
    table = "\n".join(["  sl  local_address rem_address   st", *lines])
    assert list(read_listening(table)) == [port for port, state in sockets if state == "0A"]
    list(read_listening(table + "\n" + rest.decode("latin-1")))
