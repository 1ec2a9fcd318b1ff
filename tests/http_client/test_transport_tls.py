"""Both clients over TLS, their timeouts and names, and what they load and leave behind."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from certificates import Authority
from dragoman.http import tls
from dragoman.values.contracts import Transport
from dragoman.values.errors import ConfigError, ConnectionFailed
from loopback_http import Client, Handler, Received, Server, against, always, answer, chunk, chunked_head, closing, endless, fetch, serving

# --- names and time ------------------------------------------------------------------------------------------------------------


def test_a_name_that_does_not_resolve_says_so(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def run() -> None:
        async with closing(client()) as transport:
            with pytest.raises(ConnectionFailed) as caught:
                await fetch(transport, "http://api.exmaple.test/v1")
        assert str(caught.value) == (
            "cannot find api.exmaple.test: the name does not resolve; check the spelling, and whether you are online"
        )

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    asyncio.run(run())


@pytest.mark.skipif(sys.platform != "linux", reason="fills the accept queue, which only Linux then leaves unanswered")
def test_a_connection_that_does_not_come_about_is_given_up(client: Client) -> None:
    async def run(port: int) -> None:
        async with closing(client(connect_timeout_s=0.3)) as transport:
            with pytest.raises(ConnectionFailed, match=r"no connection within 0\.3 s; check the address and your network"):
                await asyncio.wait_for(fetch(transport, f"http://127.0.0.1:{port}"), 60)

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        time.sleep(0.05)
        asyncio.run(run(listener.getsockname()[1]))
        for filler in fillers:
            filler.close()


def test_there_is_no_read_timeout(client: Client) -> None:
    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.5)
        writer.write(answer(b"late"))

    async def test(server: Server) -> None:
        assert (await fetch(transport, server.url))[2] == b"late"

    transport = client(connect_timeout_s=0.2)
    against(handler, transport, test)


# --- TLS ----------------------------------------------------------------------------------------------------------


def over_tls(client: Client, context: Any, test: Callable[[Server, Transport], Any], handler: Handler | None = None) -> None:
    async def run() -> None:
        async with serving(handler or always(answer(b"ok")), tls=context) as server, closing(client()) as transport:
            await asyncio.wait_for(test(server, transport), 60)  # type: ignore[arg-type]

    asyncio.run(run())


@pytest.mark.usefixtures("trusted")
def test_a_trusted_certificate_is_accepted_and_the_connection_used_again(client: Client, authority: Authority) -> None:
    async def test(server: Server, transport: Transport) -> None:
        for _ in range(3):
            assert (await fetch(transport, server.url, b"x" * 100_000))[2] == b"ok"
        assert server.connections == 1

    over_tls(client, authority.server("127.0.0.1"), test)


@pytest.mark.usefixtures("trusted")
def test_the_certificates_are_read_once_for_all_transports(client: Client, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[object] = []
    original = tls.new_tls_context
    monkeypatch.setattr(tls, "new_tls_context", lambda: built.append(context := original()) or context)

    async def test(server: Server, transport: Transport) -> None:
        assert (await fetch(transport, server.url))[2] == b"ok"

    for _ in range(3):
        over_tls(client, authority.server("127.0.0.1"), test)
    assert len(built) == 1


@pytest.mark.usefixtures("fresh_trust")
def test_a_certificate_of_a_stranger_is_refused(client: Client, authority: Authority) -> None:
    async def test(server: Server, transport: Transport) -> None:
        with pytest.raises(ConnectionFailed) as caught:
            await fetch(transport, server.url, b"secret question")
        assert not caught.value.retryable
        message = str(caught.value)
        assert message.startswith(f"certificate not trusted: 127.0.0.1:{server.port} (")
        assert message.endswith("set SSL_CERT_FILE to a file with its certificate")
        assert server.requests == []

    over_tls(client, authority.server("127.0.0.1"), test)


@pytest.mark.usefixtures("trusted")
def test_a_certificate_for_another_name_is_refused(client: Client, authority: Authority) -> None:
    async def test(server: Server, transport: Transport) -> None:
        with pytest.raises(ConnectionFailed, match=r"the certificate is not for 127\.0\.0\.1:\d+; check the address"):
            await fetch(transport, server.url)

    over_tls(client, authority.server("api.example.test"), test)


@pytest.mark.usefixtures("trusted")
def test_a_certificate_out_of_date_is_refused(client: Client, authority: Authority) -> None:
    async def test(server: Server, transport: Transport) -> None:
        with pytest.raises(ConnectionFailed, match=r"out of date \(certificate has expired\); check this machine's clock"):
            await fetch(transport, server.url)

    over_tls(client, authority.server("127.0.0.1", expired=True), test)


@pytest.mark.usefixtures("trusted")
def test_https_to_a_plain_server_says_so(client: Client) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def run() -> None:
        async with await asyncio.start_server(handler, "127.0.0.1", 0) as server, closing(client()) as transport:
            with pytest.raises(
                ConnectionFailed, match=r"no TLS connection to .*; if it is a plain HTTP server, write its address with http://"
            ):
                await fetch(transport, f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")

    asyncio.run(run())


@pytest.mark.usefixtures("trusted")
def test_cancelling_over_tls_hangs_up_at_once(client: Client, authority: Authority) -> None:
    async def test(server: Server, transport: Transport) -> None:
        task = asyncio.create_task(fetch(transport, server.url))
        await server.asked.wait()
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.hung_up.wait(), 60)

    over_tls(client, authority.server("127.0.0.1"), test, endless)


@pytest.mark.usefixtures("trusted")
def test_a_cut_over_tls_is_a_fault(client: Client, authority: Authority) -> None:
    async def test(server: Server, transport: Transport) -> None:
        with pytest.raises(ConnectionFailed, match="cut its answer short after 9 bytes"):
            await fetch(transport, server.url)

    over_tls(client, authority.server("127.0.0.1"), test, always(chunked_head() + chunk(b"data: 1\n\n"), then_close=True))


@pytest.mark.usefixtures("fresh_trust")
def test_certificates_that_cannot_be_read_are_a_setting_to_correct(client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("no certificate")

    async def run() -> None:
        async with closing(client()) as transport:
            with pytest.raises(ConfigError, match="cannot read the certificates that SSL_CERT_FILE names"):
                await fetch(transport, "https://127.0.0.1:1/")

    for file in [garbage, tmp_path / "missing.pem"]:
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        asyncio.run(run())


# --- what it costs ---------------------------------------------------------------------------------------------------


def run_python(script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_importing_it_loads_no_other_client() -> None:
    script = """
        import sys
        from dragoman.http.transport import HttpTransport
        HttpTransport()
        print({"httpx2", "h11", "anyio", "urllib.request"} & set(sys.modules))
    """
    assert run_python(script).strip() == "set()"


FIRST_SEND = """
    import asyncio, sys
    from dragoman.http.transport import HttpTransport
    from loopback_http import always, answer, serving

    async def run():
        transport = HttpTransport()
        async with serving(always(answer(b"ok"))) as server:
            before = set(sys.modules)
            async with transport.send("POST", server.url, {}, b"x") as got:
                assert b"".join([piece async for piece in got.chunks()]) == b"ok"
        await transport.aclose()
        slow = {"anyio", "certifi", "email", "h11", "http.client", "httpx2", "importlib.metadata", "urllib.request"}
        print(sorted(slow & set(sys.modules)), sorted(name for name in set(sys.modules) - before if "." not in name))

    asyncio.run(run())
"""


def test_a_first_request_loads_little() -> None:
    assert run_python(FIRST_SEND).strip() in {"[] ['ipaddress', 'urllib']", "[] ['urllib']", "[] []"}


SEVERAL_RUNS = """
    import asyncio, gc
    from loopback_http import always, answer, serving
    from dragoman.http import tls
    from dragoman.http.MODULE import CLIENT

    transport = CLIENT()

    async def run():
        asyncio.get_running_loop().slow_callback_duration = 10  # what a client loads with its first request takes a while
        async with serving(always(answer(b"ok"))) as server:
            for _ in range(2):
                async with transport.send("POST", server.url, {}, b"x") as got:
                    assert b"".join([piece async for piece in got.chunks()]) == b"ok"
            async with transport.send("POST", server.url, {}, b"x") as got:
                async for piece in got.chunks():
                    break
            async with transport.send("POST", server.url, {}, b"x") as got:
                pass

    for _ in range(3):
        asyncio.run(run())
        gc.collect()
    assert len(transport._pools) == 1
    del transport
    gc.collect()
    assert tls._tls is None, "no certificates are read for http"
    print("clean")
"""


@pytest.mark.parametrize(("module", "name"), [("transport", "HttpTransport"), ("httpx_transport", "HttpxTransport")])
def test_nothing_is_left_open_though_nobody_closes_it(module: str, name: str) -> None:
    script = SEVERAL_RUNS.replace("MODULE", module).replace("CLIENT", name)
    assert run_python(script, "-X", "dev", "-W", "error").strip() == "clean"
