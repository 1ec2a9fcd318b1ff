"""The pool, whatever happens at whatever moment: no connection ever has two owners, and no answer two readers.

Model-based: real pool, real connections and the real transport over wires in memory; hypothesis decides after every turn of the event loop
who asks, who is cancelled, what the server says, and which connection breaks or grows too old.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dragoman.http import dialling
from dragoman.http.connection import Busy, HttpConnection
from dragoman.http.pool import OpenConnections, Pool, most_connections, open_connections
from dragoman.http.transport import HttpTransport
from dragoman.values.errors import ConnectionFailed

URL = "http://127.0.0.1:9/v1"


class Wire(asyncio.Transport):
    """A connection's way to a server in memory. The server answers when the test says so, with the question it was asked."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self._closing = False
        self.protocol = HttpConnection()
        self.asked: list[bytes] = []
        """Questions that are not answered yet."""
        self.pieces: list[bytes] = []
        """What is left to send of an answer that has begun."""
        self.answered = 0
        self.protocol.connection_made(self)

    # what a connection does

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._closing:
            self.asked.append(bytes(data).partition(b"\r\n\r\n")[2])

    def is_closing(self) -> bool:
        return self._closing

    def abort(self) -> None:
        self._lose(None)

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def pause_reading(self) -> None:
        pass

    # what the server does

    def begin_answer(self, chance: random.Random) -> None:
        body = b"answer to " + self.asked[0]
        said = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        cuts = sorted({0, len(said), *(chance.randrange(len(said)) for _ in range(chance.randrange(4)))})
        self.pieces = [said[start:end] for start, end in pairwise(cuts)]

    def send_piece(self) -> None:
        piece = self.pieces.pop(0)
        if not self.pieces:
            self.asked.pop(0)
            self.answered += 1
        self.say(piece)

    def say(self, data: bytes) -> None:
        while data and not self._closing:
            view = self.protocol.get_buffer(-1)
            size = min(len(view), len(data))
            view[:size] = data[:size]
            self.protocol.buffer_updated(size)
            data = data[size:]

    def hang_up(self) -> None:
        if not self._closing:
            self.protocol.eof_received()
            self._lose(None)

    def reset(self) -> None:
        self._lose(ConnectionResetError("reset"))

    def _lose(self, error: Exception | None) -> None:
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self.protocol.connection_lost, error)


class Asking:
    """Somebody with a question."""

    def __init__(self, transport: HttpTransport, number: int, leaves_early: bool) -> None:
        self.question = b"q%d." % number
        self.status = 200
        self.got = b""
        self._leaves_early = leaves_early
        self.task = asyncio.get_event_loop_policy().get_event_loop().create_task(self._ask(transport))

    async def _ask(self, transport: HttpTransport) -> None:
        async with transport.send("POST", URL, {}, self.question) as answer:
            self.status = answer.status
            async for piece in answer.chunks():
                self.got += piece
                if self._leaves_early:
                    return


TURNS = st.integers(0, 4)
"""Turns of the event loop after something was done. An await takes one or several: whatever happens next may happen at any of them."""


ALSO = st.sampled_from(["", "", "cancel"])
"""Whether somebody is cancelled in the same moment."""


class PoolMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.transport = HttpTransport(connect_timeout_s=1_000)
        self.dialling: list[asyncio.Future[HttpConnection]] = []
        self.wires: list[Wire] = []
        self.asking: list[Asking] = []
        self.preconnecting: list[asyncio.Task[None]] = []
        self.chance = random.Random(0)
        self.open_before = len(open_connections)
        self._dial = dialling.dial
        dialling.dial = self.dial  # type: ignore[assignment]

    async def dial(self, *_: object) -> HttpConnection:
        asked = self.loop.create_future()
        self.dialling.append(asked)
        await asked
        self.wires.append(wire := Wire(self.loop))
        return wire.protocol

    def turn(self, turns: int) -> None:
        for _ in range(turns):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    @initialize(count=st.integers(0, 3))
    def begin_with_kept_connections(self, count: int) -> None:
        for _ in range(count):
            self.asking.append(Asking(self.transport, len(self.asking), leaves_early=False))
        self.drain()

    # --- what people do

    @rule(data=st.data(), count=st.integers(1, 3), leaves_early=st.booleans(), also=ALSO, turns=TURNS)
    def ask(self, data: st.DataObject, count: int, leaves_early: bool, also: str, turns: int) -> None:
        for _ in range(count):
            self.asking.append(Asking(self.transport, len(self.asking), leaves_early))
        self.turn(turns)
        if also:
            self.cancel_one(data)

    @rule(turns=TURNS)
    def preconnect(self, turns: int) -> None:
        self.preconnecting.append(self.loop.create_task(self.transport.preconnect(URL)))
        self.turn(turns)

    @precondition(lambda self: self.unfinished())
    @rule(data=st.data(), turns=TURNS)
    def cancel(self, data: st.DataObject, turns: int) -> None:
        data.draw(st.sampled_from(self.unfinished())).cancel()
        self.turn(turns)

    @precondition(lambda self: len(self.asking) > 8)
    @rule(turns=TURNS)
    def close(self, turns: int) -> None:
        self.loop.create_task(self.transport.aclose())
        self.turn(turns)

    # --- what the network and the server do

    def unfinished(self) -> list[asyncio.Task[None]]:
        return [task for task in (*(each.task for each in self.asking), *self.preconnecting) if not task.done()]

    def waiting(self) -> list[asyncio.Future[HttpConnection]]:
        return [each for each in self.dialling if not each.done()]

    def open(self, wanted: Callable[[Wire], Any] = lambda wire: True) -> list[Wire]:
        return [wire for wire in self.wires if not wire.is_closing() and wanted(wire)]

    @precondition(lambda self: self.waiting())
    @rule(data=st.data(), also=ALSO, turns=TURNS)
    def connect(self, data: st.DataObject, also: str, turns: int) -> None:
        data.draw(st.sampled_from(self.waiting())).set_result(None)  # type: ignore[arg-type]
        self.turn(turns)
        if also:
            self.cancel_one(data)

    @rule()
    def serve_everyone(self) -> None:
        self.drain()

    @precondition(lambda self: self.waiting())
    @rule(data=st.data(), turns=TURNS)
    def refuse(self, data: st.DataObject, turns: int) -> None:
        data.draw(st.sampled_from(self.waiting())).set_exception(ConnectionRefusedError("refused"))
        self.turn(turns)

    @precondition(lambda self: self.open(lambda wire: wire.asked))
    @rule(data=st.data(), seed=st.integers(0, 99), whole=st.booleans(), also=ALSO, turns=TURNS)
    def answer(self, data: st.DataObject, seed: int, whole: bool, also: str, turns: int) -> None:
        wire = data.draw(st.sampled_from(self.open(lambda wire: wire.asked)))
        if not wire.pieces:
            wire.begin_answer(random.Random(seed))
        wire.send_piece()
        while whole and wire.pieces:
            wire.send_piece()
        if also:
            self.cancel_one(data)
        self.turn(turns)

    def cancel_one(self, data: st.DataObject) -> None:
        """In the very moment in which something came for somebody."""
        if unfinished := self.unfinished():
            data.draw(st.sampled_from(unfinished)).cancel()

    @precondition(lambda self: self.open())
    @rule(data=st.data(), how=st.sampled_from(["hang_up", "reset"]), turns=TURNS)
    def break_off(self, data: st.DataObject, how: str, turns: int) -> None:
        getattr(data.draw(st.sampled_from(self.open())), how)()
        self.turn(turns)

    @precondition(lambda self: self.open(lambda wire: wire.answered and not wire.pieces))
    @rule(data=st.data(), turns=TURNS)
    def lose_patience(self, data: st.DataObject, turns: int) -> None:
        """A server that is tired of a silent connection says so and hangs up, be it in the moment in which it is asked again."""
        wire = data.draw(st.sampled_from(self.open(lambda wire: wire.answered and not wire.pieces)))
        wire.asked.clear()
        wire.say(b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        wire.hang_up()
        self.turn(turns)

    @precondition(lambda self: self.open(lambda wire: wire.answered and not wire.asked))
    @rule(data=st.data(), turns=TURNS)
    def say_more(self, data: st.DataObject, turns: int) -> None:
        """A second answer to one question."""
        wire = data.draw(st.sampled_from(self.open(lambda wire: wire.answered and not wire.asked)))
        wire.say(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        self.turn(turns)

    @precondition(lambda self: self.open(lambda wire: wire.protocol.idle_since is not None))
    @rule(data=st.data(), turns=TURNS)
    def expire(self, data: st.DataObject, turns: int) -> None:
        resting = self.open(lambda wire: wire.protocol.idle_since is not None)
        data.draw(st.sampled_from(resting)).protocol.close_if_idle()
        self.turn(turns)

    # --- what must hold

    @invariant()
    def no_connection_is_asked_twice_at_once(self) -> None:
        assert all(len(wire.asked) <= 1 for wire in self.wires)

    @invariant()
    def nobody_reads_anothers_answer(self) -> None:
        for each in self.asking:
            assert (b"answer to " + each.question).startswith(each.got), (each.question, each.got)

    @invariant()
    def no_lost_patience_is_taken_for_an_answer(self) -> None:
        assert all(each.status == 200 for each in self.asking)

    def teardown(self) -> None:
        try:
            self.drain()
            for each in self.asking:
                error = None if each.task.cancelled() else each.task.exception()
                assert error is None or isinstance(error, ConnectionFailed), error
                assert error or each.task.cancelled() or each.got, "an answer came, and was empty"
            busy = [wire for wire in self.open() if wire.protocol.idle_since is None]
            assert not busy, "a connection that nobody uses is neither in the pool nor closed"
            self.loop.run_until_complete(self.transport.aclose())
            self.turn(3)
            assert self.open() == []
            assert len(open_connections) == self.open_before
        finally:
            dialling.dial = self._dial
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()
            asyncio.set_event_loop(None)

    def drain(self) -> None:
        """Let everything come to its end: whoever dials is connected, whoever asked is answered."""
        for _ in range(100):
            self.turn(3)
            if not self.unfinished():
                return
            for asked in self.waiting():
                asked.set_result(None)  # type: ignore[arg-type]
            for wire in self.open(lambda wire: wire.asked):
                if not wire.pieces:
                    wire.begin_answer(self.chance)
                wire.send_piece()
        raise AssertionError("somebody hangs")


PoolMachine.TestCase.settings = settings(max_examples=3 * settings().max_examples, stateful_step_count=40)
TestPool = PoolMachine.TestCase


# --- the parts by themselves ----------------------------------------------------------------------------------------------------


def test_a_connection_refuses_a_second_exchange_while_one_is_under_way() -> None:
    async def run() -> None:
        wire = Wire(asyncio.get_running_loop())
        first = asyncio.ensure_future(wire.protocol.ask("POST", b"POST / HTTP/1.1\r\n\r\n", b"one"))
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await wire.protocol.ask("POST", b"POST / HTTP/1.1\r\n\r\n", b"two")
        with pytest.raises(Busy):
            wire.protocol.start_idling(1)
        wire.begin_answer(random.Random(1))
        while wire.pieces:
            wire.send_piece()
        exchange = await first
        assert exchange.take() == b"answer to one"
        with pytest.raises(Busy):
            await wire.protocol.ask("POST", b"POST / HTTP/1.1\r\n\r\n", b"three")
        assert exchange.finish() is wire.protocol
        assert wire.asked == []
        with pytest.raises(EOFError):
            exchange.take()

    asyncio.run(run())


def test_a_connection_is_out_of_the_pool_before_anything_is_awaited() -> None:
    """What E1 was: two takers and a return in between got the same connection."""

    async def run() -> None:
        pool: Pool[HttpConnection] = Pool()
        wires = [Wire(asyncio.get_running_loop()) for _ in range(2)]
        pool.put(("a",), wires[0].protocol)
        first = asyncio.ensure_future(pool.take(("a",)))
        second = asyncio.ensure_future(pool.take(("a",)))
        await asyncio.sleep(0)
        pool.put(("a",), wires[1].protocol)
        third = asyncio.ensure_future(pool.take(("a",)))
        taken = [each for each in await asyncio.gather(first, second, third) if each is not None]
        assert len(taken) == len(set(map(id, taken))) == 2
        for wire in wires:
            wire.abort()
        await asyncio.sleep(0)

    asyncio.run(run())


def test_a_connection_handed_over_in_the_moment_of_a_cancel_is_not_lost() -> None:
    async def run() -> None:
        pool: Pool[HttpConnection] = Pool()
        wire = Wire(asyncio.get_running_loop())
        with pool.opening(("a",)) as opened:
            taking = asyncio.ensure_future(pool.take(("a",)))
            await asyncio.sleep(0)
            opened(wire.protocol)
            taking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await taking
        assert pool.has(("a",))
        assert await pool.take(("a",)) is wire.protocol
        wire.abort()
        await asyncio.sleep(0)

    asyncio.run(run())


def test_room_is_made_by_closing_what_has_been_idle_longest() -> None:
    async def run() -> None:
        count = OpenConnections(lambda: 16)
        wires = [Wire(asyncio.get_running_loop()) for _ in range(16)]
        pool: Pool[HttpConnection] = Pool()
        for wire in wires:
            count.add(wire.protocol)
        for wire in wires[3:]:
            pool.put(("a",), wire.protocol)
            wire.protocol.idle_since = float(wires.index(wire))
        with count.opening_one():
            await asyncio.sleep(0)
        assert [wires.index(wire) for wire in wires if wire.is_closing()] == [3]
        pool.close()
        for wire in wires:
            wire.abort()
        await asyncio.sleep(0)

    asyncio.run(run())


def test_so_many_connections_are_open_at_most() -> None:
    assert 16 <= most_connections() <= 4096
