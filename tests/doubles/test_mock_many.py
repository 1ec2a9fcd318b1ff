"""The loopback server with many clients: pauses keep connections, nobody waits for another, and who leaves leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import socket
import struct
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.testing.mock.server import MockServer
from dragoman.testing.mock.wire import ModelRequest
from dragoman.testing.script import Source
from dragoman.testing.script_steps import Ping, Say, ScriptedAnswer, Stall, Wait, answer
from raw_client import PROTOCOLS, REQUESTS, Got, ask, connect, read_answer, read_for, request_bytes, text_of

QUESTION = "hello"
"""What the usual request asks, and what a test puts its own question in place of."""
BIG = "x" * 8_000_000
"""More than the system's buffers hold: sending it waits for its reader."""


class Complaints(logging.Handler):
    """Everything that asyncio would have printed."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(record.getMessage())

    def handle_context(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.heard.append(f"{context['message']}: {context.get('exception')!r}")


def run(source: Source, test: Callable[[MockServer], Awaitable[Any]], **options: Any) -> Any:
    """Run a test on a server that must print nothing, and must leave no task and no open file when it is closed."""
    complaints = Complaints()

    async def within() -> Any:
        asyncio.get_running_loop().set_exception_handler(complaints.handle_context)
        before = open_files()
        async with MockServer(source, **options) as server:
            result = await asyncio.wait_for(test(server), 60)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        await until(lambda: open_files() <= before)  # the test's own ends close a turn of the loop later
        return result

    log = logging.getLogger("asyncio")
    log.addHandler(complaints)
    try:
        result = asyncio.run(within())
    finally:
        log.removeHandler(complaints)
    assert complaints.heard == []
    return result


def open_files() -> int:
    return len(os.listdir("/dev/fd"))


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("waited ten seconds in vain")


def body_of(protocol: str, question: str) -> dict[str, Any]:
    return json.loads(json.dumps(REQUESTS[protocol][1]).replace(QUESTION, question))


def question_of(asked: ModelRequest) -> str:
    match asked.protocol:
        case "gemini":
            return asked.body["contents"][0]["parts"][0]["text"]
        case "openai_responses":
            return asked.body["input"][0]["content"]
        case _:
            return asked.body["messages"][0]["content"]


def socket_of(server: MockServer, **options: int) -> socket.socket:
    """A client that blocks: between two of its calls the server has no turn."""
    host, port = server.url.removeprefix("http://").split(":")
    client = socket.socket()
    client.settimeout(0.5)
    for name, value in options.items():
        client.setsockopt(socket.SOL_SOCKET, getattr(socket, name), value)
    client.connect((host, int(port)))
    return client


# --- one connection ---------------------------------------------------------------------------------------------------------

PAUSES = {
    "a wait before the answer": "wait: 0.005\ntext: Hello.",
    "a wait within the answer": "text: Hel\nwait: 0.005\ntext: lo.",
    "pings": "text: Hel\nping: 2 every=0.005\ntext: lo.",
    "a slow body": "answer: piece_bytes=200 piece_wait=0.001\ntext: Hello.",
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("pause", PAUSES)
def test_a_connection_is_kept_after_a_pause(protocol: str, pause: str, capfd: pytest.CaptureFixture[str]) -> None:
    async def several(server: MockServer) -> list[Got]:
        server.play(f"script: end=repeat\n{PAUSES[pause]}")
        reader, writer = await connect(server)
        answers: list[Got] = []
        for _ in range(3):
            writer.write(request_bytes(protocol))
            answers.append(await read_answer(reader))
        writer.close()
        assert server.connections == 1
        assert [exchange.outcome for exchange in server.requests] == ["answered"] * 3
        return answers

    assert [text_of(protocol, got.body) for got in run("", several)] == ["Hello."] * 3
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_connection_is_kept_after_a_late_error(protocol: str) -> None:
    async def both(server: MockServer) -> tuple[int, str]:
        reader, writer = await connect(server)
        writer.write(request_bytes(protocol))
        failed = await read_answer(reader)
        writer.write(request_bytes(protocol))
        got = await read_answer(reader)
        writer.close()
        return failed.status, text_of(protocol, got.body)

    assert run("wait: 0.005\nerror: 503\n---\ntext: Hello.", both) == (503, "Hello.")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_requests_sent_ahead_are_answered_in_order(protocol: str) -> None:
    def choose(asked: ModelRequest) -> ScriptedAnswer:
        return answer(Wait(0.02), question_of(asked), Ping(2, 0.005), "!", piece_bytes=300, piece_wait_s=0.002)

    async def ahead(server: MockServer) -> list[str]:
        reader, writer = await connect(server)
        first, second, third = (request_bytes(protocol, body=body_of(protocol, word)) for word in ("one", "two", "three"))
        writer.write(first + second[:1])
        await until(lambda: len(server.requests) == 1)
        writer.write(second[1:40])
        await asyncio.sleep(0.005)
        writer.write(second[40:] + third)
        answers = [text_of(protocol, (await read_answer(reader)).body) for _ in range(3)]
        writer.close()
        assert server.connections == 1
        return answers

    assert run(choose, ahead) == ["one!", "two!", "three!"]


def test_a_client_that_leaves_is_noticed_behind_any_amount_it_sent_ahead() -> None:
    async def leave(server: MockServer) -> None:
        _, writer = await connect(server)
        writer.write(request_bytes("anthropic") + b"x" * 3_000_000)
        await writer.drain()
        await until(lambda: bool(server.requests))
        writer.close()
        await until(lambda: server.requests[0].outcome != "waiting")
        assert server.requests[0].outcome == "the client went away"

    run("stall", leave)


# --- many connections -------------------------------------------------------------------------------------------------------


def test_hundreds_at_once_each_get_the_answer_to_their_own_question(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    chance = random.Random(1)

    def choose(asked: ModelRequest) -> ScriptedAnswer:
        words = [Say(f"{question_of(asked)} ", chance.choice([0, 1, 3])), Ping(1, chance.random() / 50), Say("is answered")]
        late = [Wait(chance.random() / 20)] if chance.random() < 0.7 else []
        slow = {"piece_bytes": 150, "piece_wait_s": 0.001} if chance.random() < 0.3 else {}
        return answer(*late, *words, **slow)

    async def converse(server: MockServer, number: int) -> None:
        reader, writer = await connect(server)
        for turn in range(3):
            protocol = PROTOCOLS[(number + turn) % 4]
            writer.write(request_bytes(protocol, body=body_of(protocol, f"{number}.{turn}")))
            got = await read_answer(reader)
            assert text_of(protocol, got.body) == f"{number}.{turn} is answered"
        writer.close()

    async def crowd(server: MockServer) -> None:
        await asyncio.gather(*(converse(server, number) for number in range(300)))
        assert (server.connections, len(server.requests)) == (300, 900)
        assert {exchange.outcome for exchange in server.requests} == {"answered"}

    run(choose, crowd, log=log)
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [line["outcome"] for line in lines] == ["answered"] * 900


def test_hundreds_may_connect_in_the_same_moment() -> None:
    limit = Path("/proc/sys/net/core/somaxconn")
    if not limit.exists() or int(limit.read_text()) < 2048:
        pytest.skip("this system lets fewer clients wait to be accepted")

    async def crowd(server: MockServer) -> None:
        clients = [socket_of(server) for _ in range(400)]  # the server has no turn until all of them are connected
        await until(lambda: server.connections == 400)
        for client in clients:
            client.close()

    run("", crowd)


def test_a_client_that_does_not_read_holds_up_nobody() -> None:
    async def beside(server: MockServer) -> None:
        slow = [await connect(server) for _ in range(5)]
        for _, writer in slow:
            writer.write(request_bytes("anthropic", body=body_of("anthropic", BIG[:10])))
        await until(lambda: len(server.requests) == 5)
        answers = await asyncio.gather(*(ask(server, protocol) for protocol in PROTOCOLS * 10))
        assert all(got.complete for got in answers)
        assert [exchange.outcome for exchange in server.requests[:5]] == ["waiting"] * 5
        texts = [text_of("anthropic", (await read_answer(reader)).body) for reader, _ in slow]
        assert texts == [BIG] * 5, "and it can have the whole of its answer when it wants to"
        for _, writer in slow:
            writer.close()

    # In pieces, since one write of any size is taken at once.
    run(lambda asked: answer(Say(BIG, 100_000) if question_of(asked) == BIG[:10] else "Hello."), beside)


def test_a_client_that_reads_as_fast_as_it_is_sent_to_holds_up_nobody() -> None:
    over = threading.Event()

    def read_endlessly(server: MockServer) -> None:
        client = socket_of(server)
        client.sendall(request_bytes("anthropic"))
        while not over.is_set():
            client.recv(1 << 20)
        client.close()

    async def beside(server: MockServer) -> None:
        reading = asyncio.create_task(asyncio.to_thread(read_endlessly, server))
        await until(lambda: bool(server.requests))
        server.play("text: Hello.")
        try:
            got = await asyncio.wait_for(ask(server, "anthropic"), 60)
            assert not reading.done(), "the other is still being sent to"
        finally:
            over.set()
        await reading
        assert text_of("anthropic", got.body) == "Hello."

    run("ping: forever", beside)


# --- clients that leave -----------------------------------------------------------------------------------------------------

ENDINGS = {
    "stalled": "text: half\nstall",
    "waiting": "wait: 5\ntext: late",
    "pinging": "text: a\nping: forever every=0.001",
    "slow": "answer: piece_bytes=10 piece_wait=0.001\ntext: A long text that takes a while to be sent.",
    "whole": "text: Hello.",
}


async def vanish(server: MockServer, chance: random.Random) -> None:
    """Begin to talk to the server, and leave at any moment: politely or with a reset, in the middle of a request or of its answer."""
    reader, writer = await connect(server)
    data = request_bytes(chance.choice(PROTOCOLS), path="", headers=chance.choice(["", "Connection: close\r\n"]))
    if chance.random() < 0.1:
        data = b"this is not HTTP\r\n\r\n"
    writer.write(data[: chance.choice([0, 10, len(data) - 5, len(data), len(data), len(data)])])
    await asyncio.sleep(chance.choice([0, 0, 0.01 * chance.random(), 0.05 * chance.random()]))
    if chance.random() < 0.5:
        await read_for(reader, 0.005)
    if chance.random() < 0.5:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@pytest.mark.parametrize("ending", ENDINGS)
def test_clients_that_vanish_leave_nothing_behind(ending: str, capfd: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(ending)

    async def crowd(server: MockServer) -> None:
        before = open_files()
        await asyncio.gather(*(vanish(server, chance) for _ in range(150)))
        me = asyncio.current_task()
        await until(lambda: open_files() <= before and len(asyncio.all_tasks() - {me}) <= 1)  # one: who waits for this test
        server.play("text: Still here.")
        assert text_of("anthropic", (await ask(server, "anthropic")).body) == "Still here."
        assert "waiting" not in {exchange.outcome for exchange in server.requests}

    run(f"script: end=repeat\n{ENDINGS[ending]}", crowd)
    assert capfd.readouterr() == ("", "")


def test_a_client_that_sends_nonsense_and_leaves_is_not_complained_about() -> None:
    async def leave(server: MockServer) -> None:
        for nonsense in (b"nonsense\r\n\r\n", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"):
            client = socket_of(server)
            client.sendall(nonsense)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        assert (await ask(server, "anthropic")).status == 200

    run("text: Hello.", leave)


@pytest.mark.parametrize("chunk", [b"-5\r\n", b"z\r\n", b"1" * 300_000 + b"\r\n"])
def test_a_chunk_that_makes_no_sense_gets_400(chunk: bytes) -> None:
    async def send(server: MockServer) -> int:
        reader, writer = await connect(server)
        writer.write(b"POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk)
        status = (await read_answer(reader)).status
        writer.close()
        return status

    assert run("text: Hello.", send) == 400


# --- closing the server -----------------------------------------------------------------------------------------------------


def test_closing_ends_hundreds_of_connections_whatever_they_are_doing() -> None:
    answers = {
        "wait": answer(Wait(300), "late"),
        "stall": answer("half", Stall()),
        "ping": answer("half", Ping(None, 0.001)),
        "slow": answer("a long text", piece_bytes=1, piece_wait_s=0.01),
        "big": answer(Say(BIG, 100_000)),
    }
    kinds = ["wait", "stall", "ping", "slow", "idle"] * 48 + ["big"] * 10

    async def close(server: MockServer) -> None:
        clients = [await connect(server) for _ in kinds]
        for kind, (_, writer) in zip(kinds, clients, strict=True):
            if kind != "idle":
                writer.write(request_bytes("anthropic", body=body_of("anthropic", kind)))
        await until(lambda: len(server.requests) == len(kinds) - kinds.count("idle"))
        await server.aclose()
        assert {exchange.outcome for exchange in server.requests} == {"the server closed"}
        for reader, writer in clients:
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(len(BIG))
            writer.close()

    run(lambda asked: answers[question_of(asked)], close)


def test_closing_ends_a_connection_that_was_only_just_made() -> None:
    async def close(server: MockServer) -> None:
        for turns in range(5):
            async with MockServer("text: Hello.") as other:
                clients = [socket_of(other) for _ in range(20)]
                for client in clients:
                    client.sendall(request_bytes("anthropic"))
                for _ in range(turns):
                    await asyncio.sleep(0)
            for client in clients:
                try:
                    while client.recv(1 << 20):
                        pass
                except ConnectionError:
                    pass
                client.close()
            assert len(asyncio.all_tasks()) <= 2, "this test, and who waits for it"

    run("", close)


def test_closing_ends_a_connection_whose_answer_is_given_but_not_read() -> None:
    async def close(server: MockServer) -> None:
        for listening in server._listener._server.sockets:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # as little as the system allows, so that the rest waits with us
        client = socket_of(server, SO_RCVBUF=1)
        client.sendall(request_bytes("anthropic", headers="Connection: close\r\n"))
        await until(lambda: bool(server.requests) and server.requests[0].outcome == "answered")
        before = open_files()
        await server.aclose()
        assert open_files() <= before - 2, "the listening socket and the connection"
        client.close()

    run(answer("x" * 60_000), close)
