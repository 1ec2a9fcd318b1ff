"""PV01 and PV02: connections that break, and services that fall silent, over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import pytest

from dragoman.providers import reading
from dragoman.providers.connect import connect
from dragoman.providers.retry import RetryPolicy
from dragoman.testing.mock.server import MockServer
from dragoman.testing.script import Script
from dragoman.testing.script_steps import CallStep, CutStep, Fail, Ping, RawStep, Say, Stall, Step, Think, Wait, answer
from dragoman.values.errors import ConnectionFailed, RateLimited, StreamBroken, TimedOut, Unauthorized
from dragoman.values.events import ResponseFinished, TextDelta
from dragoman.values.messages import FinishReason, assistant
from faulty_service import GOOD, QUICK_S, Bench, always, retries, run, run_at_some_pace
from loopback_http import Received, serving
from streaming import MODELS, PROTOCOLS, checked, collect, generated, recorded, recorded_whole, request_for, streamed

SAID = answer(
    Think("Hm \U0001f914.", "c2ln", piece_chars=4),
    Say("Let me see: naïve 文字.", piece_chars=9),
    CallStep("read_file", '{"path":"a.txt"}', id="c1", piece_chars=8),
    CallStep("read_file", '{"path":"b.txt"}', id="c2"),
)


# --- PV01: the connection closes after byte n -------------------------------------------------------------------------------


def sampled(body: bytes, every: bool) -> list[int]:
    """Offsets to cut at: all of them, or the edges of events and a spread of what lies between."""
    if every:
        return list(range(len(body)))
    edges = [at for at in range(len(body)) if body[at : at + 2] == b"\n\n"]
    chosen = {0, 1, 5, 6, len(body) - 2, len(body) - 1} | {edge + near for edge in edges[:3] + edges[-4:] for near in (0, 1, 2, 3)}
    chosen |= set(range(0, len(body), max(len(body) // 30, 1)))
    return sorted(offset for offset in chosen if offset < len(body))


async def body_of(bench: Bench) -> bytes:
    """What the server sends for the answer, byte for byte."""
    bench.server.play(SAID)
    prepared = bench.connection.prepare(bench.request())
    async with bench.connection.provider.transport.send("POST", prepared.url, prepared.headers, prepared.body) as got:  # type: ignore[attr-defined]
        return b"".join([chunk async for chunk in got.chunks()])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_stream_cut_at_any_byte_is_tried_again_and_never_finished(protocol: str, every_offset: bool) -> None:
    """PV01: no terminal event = error; retried up to N with backoff, each time announced; then an error."""

    async def cut_everywhere(bench: Bench) -> None:
        offsets = sampled(await body_of(bench), every_offset)
        assert len(offsets) >= 40
        for offset in offsets:
            before = len(bench.server.requests)
            bench.waits.clear()
            events, error = await bench.fails(always(*SAID.steps, CutStep(offset)))
            assert isinstance(error, StreamBroken | ConnectionFailed), offset
            assert len(bench.server.requests) - before == 3
            assert [event.attempt for event in retries(events)] == [1, 2]
            assert [event.wait_s for event in retries(events)] == list(bench.waits)
            assert all("cut" in event.reason or "closed" in event.reason for event in retries(events)), retries(events)
        assert checked((await bench.ask(SAID))[0]).finish is FinishReason.TOOL_CALLS

    run(protocol, cut_everywhere)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_cut_behind_the_terminal_event_loses_nothing(protocol: str) -> None:
    """PV01, the last offset: where the service has said that it ended, how the connection ends does not matter."""

    async def cut_at_the_end(bench: Bench) -> None:
        body = await body_of(bench)
        events, error = await bench.ask(always(*SAID.steps, CutStep(len(body))))
        if protocol == "gemini":  # no terminal event: the end of the body is the end, and there was none
            assert isinstance(error, StreamBroken)
        else:
            assert error is None
            assert checked(events).message.calls[1].args == {"path": "b.txt"}

    run(protocol, cut_at_the_end)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_attempt_that_follows_a_cut_starts_anew(protocol: str) -> None:
    """PV01: the partial answer is void; what was shown of it is replaced by the whole one, and history has one request."""

    async def second_time(bench: Bench) -> None:
        size = len(await body_of(bench))
        events, error = await bench.ask(Script((answer(*SAID.steps, CutStep(size // 2)), SAID)))
        assert error is None
        (retry,) = retries(events)
        after = events[events.index(retry) + 1 :]
        assert [call.args for call in checked(after).message.calls] == [{"path": "a.txt"}, {"path": "b.txt"}]
        first, second = bench.server.requests[-2:]
        assert first.body == second.body

    run(protocol, second_time)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_body_that_ends_early_but_cleanly_is_whole_or_broken(protocol: str, every_offset: bool) -> None:
    """PV01: a proxy that closes in good order does not make half an answer whole."""
    body = recorded(protocol, SAID)
    whole = checked(streamed(protocol, body)).message
    finished = 0
    for offset in sampled(body, every_offset):
        try:
            response = checked(streamed(protocol, body[:offset]))
        except StreamBroken:
            continue
        finished += 1
        assert (response.message, response.finish) == (whole, FinishReason.TOOL_CALLS), offset
    assert finished, "the last bytes are a blank line, and without it the answer is whole"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_that_is_not_streamed_is_whole_or_broken(protocol: str, every_offset: bool) -> None:
    body = recorded_whole(protocol, SAID)
    for offset in range(0, len(body), 1 if every_offset else len(body) // 40):
        with pytest.raises(StreamBroken):
            generated(protocol, body[:offset])

    async def cut_in_the_middle(bench: Bench) -> None:
        bench.server.play(always(*SAID.steps, CutStep()))
        with pytest.raises((ConnectionFailed, StreamBroken)):
            await bench.connection.generate(bench.request())
        assert len(bench.waits) == 2

    run(protocol, cut_in_the_middle)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_connection_closed_before_the_head_is_tried_again(protocol: str) -> None:
    async def no_head(bench: Bench) -> None:
        events, error = await bench.fails(always(CutStep()))
        assert isinstance(error, ConnectionFailed)
        assert len(retries(events)) == 2

    run(protocol, no_head)


# --- PV02: silence ----------------------------------------------------------------------------------------------------------

PINGS = Ping(None, every_s=0.02)
NEWS = (Wait(0.02), RawStep(b'event: news\ndata: {"type": "news"}\n\n')) * 100
SILENCES = {
    "no head": answer(Wait(300)),
    "a head and nothing": answer(Stall(), "never"),
    "a head and pings": answer(PINGS, "never"),
    "three events and nothing": answer("a", "b", "c", Stall()),
    "three events and pings": answer("a", "b", "c", PINGS),
    "three events and comments": answer("a", "b", "c", *(Wait(0.02), RawStep(b": still here\n\n")) * 100),
    "three events and events of unknown kinds": answer("a", "b", "c", *NEWS),
    "a byte at a time": answer("a", "b", piece_bytes=1, piece_wait_s=0.02),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("silence", SILENCES)
def test_silence_ends_in_a_timeout_whatever_the_bytes_do(protocol: str, silence: str) -> None:
    """PV02: timeouts are on events, first and between. Bytes do not reset them; pings and comments do, but not for ever. The turn ends
    retryable."""

    async def wait_for_it(bench: Bench) -> None:
        events, error = await bench.fails(always(SILENCES[silence]))
        assert isinstance(error, TimedOut)
        assert error.retryable
        assert len(retries(events)) == 1
        said = "".join(event.text for event in events if isinstance(event, TextDelta))
        assert said == ("abcabc" if silence.startswith("three") else "")

    run(protocol, wait_for_it, quick=True, attempts=2)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_event_gives_the_service_time_for_the_next(protocol: str) -> None:
    async def slow_but_alive(bench: Bench, pace_s: float) -> None:
        beats = [step for letter in "abcdef" for step in (Say(letter), Wait(pace_s * 0.6))]
        assert (await bench.answer(answer(*beats))).message == assistant("abcdef")

    run_at_some_pace(protocol, slow_but_alive)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("said", "sign"), [("", Ping(1)), ("a", Ping(1)), ("a", RawStep(b": still here\n\n")), ("", RawStep(b": still here\n"))]
)
def test_pings_and_comments_are_life(protocol: str, said: str, sign: Step) -> None:
    """M6: a model that thinks for long is heard of in pings alone. Nothing of an answer has to come before them."""

    async def slow_but_pinging(bench: Bench, pace_s: float) -> None:
        silence = (Wait(pace_s * 0.6), sign, Wait(pace_s * 0.6))  # longer than the service may be silent, shorter than it may only ping
        begun = (Say(said),) if said else ()
        assert (await bench.answer(answer(*begun, *silence, Say("b")))).message == assistant(said + "b")

    run_at_some_pace(protocol, slow_but_pinging)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_time_a_reader_takes_is_not_the_services(protocol: str) -> None:
    """A reader slower than the timeout does not make a service look silent that has long answered."""

    async def dawdle(bench: Bench) -> None:
        bench.server.play(answer("a", Wait(0.05), "b", Wait(0.05), "c"))
        events = []
        async with aclosing(bench.connection.stream(bench.request())) as stream:
            async for event in stream:
                events.append(event)
                if isinstance(event, TextDelta):
                    await asyncio.sleep(QUICK_S * 1.5)
        assert checked(events).message == assistant("abc")

    run(protocol, dawdle, quick=True)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_service_that_does_not_close_its_answer_is_not_waited_for(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gemini's answer is complete with its finish reason, the others' with their terminal event: an open connection holds up nobody."""
    monkeypatch.setattr(reading, "TRAILING_S", 0.3)

    async def left_open(bench: Bench) -> None:
        response = await bench.answer(answer(RawStep(recorded(protocol, answer("a"))), Stall()))
        assert response.message == assistant("a")

    run(protocol, left_open)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_generate_is_not_waited_for_either(protocol: str) -> None:
    async def silent(bench: Bench) -> None:
        for silence in (answer(Wait(300)), answer("a", Stall())):
            bench.server.play(always(silence))
            with pytest.raises(TimedOut):
                await bench.connection.generate(bench.request())

    run(protocol, silent, quick=True, attempts=1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("silence", ["no head", "a head and nothing", "three events and pings", "a byte at a time"])
def test_cancelling_works_at_once_the_whole_time(protocol: str, silence: str) -> None:
    """PV02: Esc and Ctrl-C end it; the connection is closed, and the provider serves the next request."""

    async def cancel(bench: Bench) -> None:
        bench.server.play(always(SILENCES[silence]))
        before = len(bench.server.requests)
        asking = asyncio.create_task(bench.ask(None))
        await asyncio.sleep(0.1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await until(lambda: bench.server.requests[before].outcome != "waiting")
        assert bench.server.requests[before].outcome == "the client went away"

    run(protocol, cancel)


def test_closing_the_stream_early_closes_the_connection() -> None:
    async def leave(bench: Bench) -> None:
        bench.server.play(answer("a", Stall()))
        async with aclosing(bench.connection.stream(bench.request())) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    break
        await until(lambda: bench.server.requests[0].outcome != "waiting")

    for protocol in PROTOCOLS:
        run(protocol, leave)


def test_waiting_for_a_retry_can_be_cancelled() -> None:
    """PV03: the countdown is cancellable."""

    async def cancel(bench: Bench) -> None:
        asking = asyncio.create_task(bench.ask(always(Fail(429, retry_after_s=30))))
        await until(lambda: bool(bench.server.requests))
        await asyncio.sleep(0.05)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert len(bench.server.requests) == 1

    run("gemini", cancel, sleep=asyncio.sleep)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110  the server has nothing to wait on
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_error_whose_explanation_is_cut_is_told_by_its_status(protocol: str) -> None:
    async def cut(bench: Bench) -> None:
        _, error = await bench.fails(always(Fail(401), CutStep(9)))
        assert isinstance(error, Unauthorized)
        _, error = await bench.fails(always(Fail(429, retry_after_s=600), CutStep(0)))
        assert (type(error), error.retry_after_s) == (RateLimited, 600)
        assert len(bench.server.requests) == 2

    run(protocol, cut)


def test_an_error_whose_explanation_never_comes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """PV04: the status says enough."""
    monkeypatch.setattr(reading, "TRAILING_S", 0.3)

    async def stall(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        await writer.drain()
        await asyncio.sleep(300)

    async def ask() -> None:
        async with serving(stall) as server:
            connection = connect(MODELS["anthropic"], key="k", base_url=server.url, env={})
            with pytest.raises(Unauthorized, match="ANTHROPIC_API_KEY"):
                await asyncio.wait_for(collect(connection, request_for("anthropic")), 60)
            await connection.aclose()

    asyncio.run(ask())


def test_a_server_that_comes_back_is_found_again() -> None:
    """A connection kept from before the server went away is not held against the next request."""

    async def restart() -> None:
        async with MockServer(GOOD) as server:
            port = int(server.url.rpartition(":")[2])
            connection = connect(MODELS["anthropic"], key="k", base_url=server.url, env={}, retry=RetryPolicy(attempts=1))
            assert isinstance((await collect(connection, request_for("anthropic")))[-1], ResponseFinished)
        with pytest.raises(ConnectionFailed):
            await collect(connection, request_for("anthropic"))
        async with MockServer(GOOD, port=port):
            assert isinstance((await collect(connection, request_for("anthropic")))[-1], ResponseFinished)
        await connection.aclose()

    asyncio.run(restart())
