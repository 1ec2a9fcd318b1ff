"""The guard of conftest.py holds: tests reach this machine and nothing beyond it."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import hypothesis
import pytest

# Addresses reserved for documentation: were the guard to fail, nobody would be called.
OUTSIDE_V4 = "192.0.2.1"
OUTSIDE_V6 = "2001:db8::1"
BLOCKED = "network blocked in tests"


@pytest.mark.parametrize("method", ["connect", "connect_ex"])
@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, OUTSIDE_V4), (socket.AF_INET6, OUTSIDE_V6), (socket.AF_INET, "example.com")])
def test_connecting_outside_is_blocked(method: str, family: socket.AddressFamily, host: str) -> None:
    with socket.socket(family) as sock:
        sock.settimeout(0.2)
        with pytest.raises(RuntimeError, match=BLOCKED):
            getattr(sock, method)((host, 80))


def test_datagrams_outside_are_blocked() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, pytest.raises(RuntimeError, match=BLOCKED):
        sock.sendto(b"x", (OUTSIDE_V4, 53))


@pytest.mark.parametrize("host", ["example.com", b"example.com", "localhost.example.com", OUTSIDE_V4, OUTSIDE_V6, "::ffff:192.0.2.1"])
def test_resolving_outside_names_is_blocked(host: str | bytes) -> None:
    with pytest.raises(RuntimeError, match=BLOCKED):
        socket.getaddrinfo(host, 80)


@pytest.mark.parametrize("lookup", ["gethostbyname", "gethostbyname_ex"])
def test_older_lookups_are_blocked(lookup: str) -> None:
    with pytest.raises(RuntimeError, match=BLOCKED):
        getattr(socket, lookup)("example.com")


def test_the_block_reaches_through_libraries() -> None:
    async def dial() -> None:
        await asyncio.open_connection("example.com", 80)

    with pytest.raises(RuntimeError, match=BLOCKED):
        asyncio.run(dial())
    with pytest.raises(RuntimeError, match=BLOCKED):
        urllib.request.urlopen("http://example.com/", timeout=1)


def test_the_block_is_no_connection_fault() -> None:
    with pytest.raises(RuntimeError) as caught:
        socket.create_connection((OUTSIDE_V4, 80), timeout=0.2)
    assert not isinstance(caught.value, OSError)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "::ffff:127.0.0.1", "127.8.9.10", None])
def test_loopback_names_resolve(host: str | None) -> None:
    assert socket.getaddrinfo(host, 80, type=socket.SOCK_STREAM)


def test_loopback_connections_work() -> None:
    async def echo() -> bytes:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readexactly(5))
            writer.close()
            await writer.wait_closed()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
            writer.write(b"hello")
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
            return answer

    assert asyncio.run(echo()) == b"hello"


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="this platform has no Unix sockets")
def test_unix_sockets_work(tmp_path: Path) -> None:
    address = "\0dragoman-test-" + str(os.getpid()) if sys.platform == "linux" else str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(address)
        server.listen(1)
        accepted: list[socket.socket] = []
        thread = threading.Thread(target=lambda: accepted.append(server.accept()[0]))
        thread.start()
        client.connect(address)
        thread.join(60)
        accepted[0].close()


ROOT = Path(__file__).resolve().parent.parent
AMBIENT = {
    "GEMINI_API_KEY": "secret",
    "OPENAI_API_KEY": "secret",
    "ANTHROPIC_API_KEY": "secret",
    "ANTHROPIC_AUTH_TOKEN": "secret",
    "SOME_NEW_VENDOR_API_KEY": "secret",
    "OPENAI_BASE_URL": "http://192.0.2.1/v1",
    "GOOGLE_APPLICATION_CREDENTIALS": "secret",
    "HTTPS_PROXY": "http://192.0.2.1:3128",
    "https_proxy": "http://192.0.2.1:3128",
    "DRAGOMAN_MODEL": "other",
}


def test_keys_base_urls_and_proxies_are_scrubbed() -> None:
    """Run the probe below in a session that was started with the developer's variables set."""
    probe = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::test_probe_environment"]
    done = subprocess.run(probe, cwd=ROOT, env=os.environ | AMBIENT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_probe_environment() -> None:
    assert not set(AMBIENT) & set(os.environ)
    assert "PATH" in os.environ


@hypothesis.given(hypothesis.strategies.booleans())
def test_the_environment_fixture_lives_with_hypothesis(flag: bool) -> None:
    assert flag in {True, False}
    assert not set(AMBIENT) & set(os.environ)
