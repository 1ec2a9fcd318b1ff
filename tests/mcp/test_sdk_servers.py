"""Our client against servers written with the official SDK: every transport, both eras."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from waiting import pid_of, until

from dragoman.mcp_client.client import McpClient
from dragoman.mcp_client.contracts import Elicitation, Elicited, Era, HttpServer, StdioServer
from dragoman.mcp_client.errors import ProtocolError, ServerDied, ServerTimedOut

SERVER = str(Path(__file__).with_name("sdk_server.py"))
STARTING_S = 60


class Harbour:
    """A client that is connected, and the loop that it belongs to."""

    def __init__(self, run: Callable[[Coroutine[Any, Any, Any]], Any], client: McpClient, asked: list[Elicitation], kind: str) -> None:
        self.run = run
        self.client = client
        self.asked = asked
        self.kind = kind


@pytest.fixture(scope="module", params=["stdio-legacy", "stdio-modern", "http-modern", "http-legacy", "sse", "http-found-sse"])
def harbour(request: pytest.FixtureRequest) -> Iterator[Harbour]:
    kind: str = request.param
    asked: list[Elicitation] = []

    async def elicit(question: Elicitation) -> Elicited:
        asked.append(question)
        return Elicited("accept", {"ship": "Nautilus"})

    with server_of(kind) as server, asyncio.Runner() as runner:
        era: Era = "modern" if kind == "stdio-modern" else "legacy" if kind == "http-legacy" else ""
        client = McpClient(server, elicit=elicit, era=era, timeout_s=STARTING_S)
        runner.run(client.connect())
        yield Harbour(runner.run, client, asked, kind)
        runner.run(client.aclose())


@contextmanager
def server_of(kind: str) -> Iterator[StdioServer | HttpServer]:
    if kind.startswith("stdio"):
        yield StdioServer(sys.executable, (SERVER, "stdio"))
        return
    port = free_port()
    is_sse = kind.endswith("sse")
    process = subprocess.Popen([sys.executable, SERVER, "sse" if is_sse else "http", str(port)], stderr=subprocess.PIPE)
    try:
        wait_for(port, process)
        address = f"http://127.0.0.1:{port}/{'sse' if is_sse else 'mcp'}"
        yield HttpServer(address, transport="sse" if kind == "sse" else "http")
    finally:
        process.kill()
        process.communicate()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + STARTING_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    pytest.fail(f"the server did not start: {process.stderr.read() if process.stderr and process.poll() is not None else ''!r}")


def test_the_era_is_found_out(harbour: Harbour) -> None:
    info = harbour.client.info
    assert (info.name, info.instructions) == ("port", "Ask the harbour master.")
    assert info.era == ("modern" if harbour.kind in {"stdio-modern", "http-modern"} else "legacy")


def test_tools_are_listed_and_called(harbour: Harbour) -> None:
    tools = {tool.name: tool for tool in harbour.run(harbour.client.list_tools()).items}
    assert {"add", "picture", "sink", "unload", "moor", "wait"} <= set(tools)
    assert tools["add"].description == "Add two numbers."
    assert tools["add"].input_schema["required"] == ["a", "b"]

    result = harbour.run(harbour.client.call_tool("add", {"a": 2, "b": 3}))
    assert (result.content[0]["text"], result.structured, result.is_error) == ("5", {"result": 5}, False)


def test_an_image_comes_whole(harbour: Harbour) -> None:
    (block,) = harbour.run(harbour.client.call_tool("picture", {})).content
    assert (block["type"], block["mimeType"]) == ("image", "image/png")
    assert b64decode(block["data"]).startswith(b"\x89PNG")


def test_a_tool_that_fails_says_so_in_its_result(harbour: Harbour) -> None:
    result = harbour.run(harbour.client.call_tool("sink", {"ship": "Argo"}))
    assert result.is_error
    assert "sink" in result.content[0]["text"]


def test_a_resource_that_is_not_there_is_an_error_of_the_protocol(harbour: Harbour) -> None:
    with pytest.raises(ProtocolError) as caught:
        harbour.run(harbour.client.read_resource("log://never"))
    assert caught.value.key == "mcp.protocol_error"
    assert caught.value.code != 0


def test_resources_and_templates_are_listed_and_read(harbour: Harbour) -> None:
    found = {each.uri: each.is_template for each in harbour.run(harbour.client.list_resources()).items}
    assert found == {"log://today": False, "ship://{name}": True}
    (content,) = harbour.run(harbour.client.read_resource("ship://Argo"))
    assert content["text"] == "the Argo"


def test_prompts_are_listed_and_got(harbour: Harbour) -> None:
    (prompt,) = harbour.run(harbour.client.list_prompts()).items
    assert (prompt.name, prompt.arguments[0]["name"]) == ("greet", "name")
    (message,) = harbour.run(harbour.client.get_prompt("greet", {"name": "Ada"}))
    assert message["content"]["text"] == "Greet Ada."


def test_progress_is_told_in_order(harbour: Harbour) -> None:
    told: list[tuple[float, float | None, str]] = []
    result = harbour.run(harbour.client.call_tool("unload", {"crates": 4}, progress=lambda *each: told.append(each)))
    assert result.content[0]["text"] == "4 crates"
    assert told == [(float(n), 4.0, f"crate {n}") for n in range(1, 5)]


def test_the_user_is_asked_in_the_middle_of_a_call_and_defaults_are_filled_in(harbour: Harbour) -> None:
    harbour.asked.clear()
    result = harbour.run(harbour.client.call_tool("moor", {}))
    assert result.content[0]["text"] == "Nautilus at 3"
    (question,) = harbour.asked
    assert question.message == "Which ship, and where?"
    assert question.schema is not None
    assert set(question.schema["properties"]) == {"ship", "berth"}


def test_a_cancelled_call_is_cancelled_in_the_server(harbour: Harbour, tmp_path: Path) -> None:
    note = tmp_path / "note"

    async def begin_and_cancel() -> None:
        call = asyncio.ensure_future(harbour.client.call_tool("wait", {"seconds": 60, "note": str(note)}))
        await until(lambda: note.exists() and note.read_text() == "began")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: note.read_text() == "cancelled")
        assert (await harbour.client.call_tool("add", {"a": 1, "b": 1})).structured == {"result": 2}

    harbour.run(begin_and_cancel())


def test_a_call_that_takes_too_long_times_out_and_is_cancelled(harbour: Harbour, tmp_path: Path) -> None:
    note = tmp_path / "note"

    async def time_out() -> None:
        usual, harbour.client._timeout_s = harbour.client._timeout_s, 0.5
        try:
            with pytest.raises(ServerTimedOut):
                await harbour.client.call_tool("wait", {"seconds": 60, "note": str(note)})
        finally:
            harbour.client._timeout_s = usual
        await until(lambda: note.read_text() == "cancelled")

    harbour.run(time_out())


def test_many_calls_at_once_get_their_own_answers(harbour: Harbour) -> None:
    async def call(number: int) -> bool:
        return (await harbour.client.call_tool("add", {"a": number, "b": 1000})).structured == {"result": number + 1000}

    async def call_all() -> list[bool]:
        return await asyncio.gather(*map(call, range(40)))

    assert all(harbour.run(call_all()))


@pytest.mark.parametrize("harbour", ["stdio-legacy", "stdio-modern"], indirect=True)
def test_a_server_that_is_killed_is_started_anew_at_the_next_call(harbour: Harbour, tmp_path: Path) -> None:
    note = tmp_path / "note"

    async def kill_it() -> None:
        call = asyncio.ensure_future(harbour.client.call_tool("wait", {"seconds": 60, "note": str(note)}))
        await until(lambda: note.exists() and note.read_text() == "began")
        os.kill(pid_of(harbour.client), signal.SIGKILL)
        with pytest.raises(ServerDied) as caught:
            await call
        assert caught.value.exit_code_of_server == -signal.SIGKILL
        assert not harbour.client.is_connected
        assert (await harbour.client.call_tool("add", {"a": 1, "b": 1})).structured == {"result": 2}

    harbour.run(kill_it())
