"""PV14, the provider's half: answers of a size and shape that no one should send. No crash, and the next request is valid."""

from __future__ import annotations

import json

import pytest

from dragoman.testing.script_steps import CallStep, ScriptedAnswer, answer
from dragoman.values.errors import StreamBroken
from dragoman.values.messages import FinishReason, ToolCall, tool_result, user
from faulty_service import Bench, always, run, violation
from streaming import PROTOCOLS

BIG = json.dumps({"path": "a.txt", "content": "x" * 20_000_000})


async def next_is_valid(bench: Bench, said: ScriptedAnswer) -> tuple[ToolCall, ...]:
    """The calls of an answer; the next request, with a result for each, is one that the service takes."""
    first = user("hello")
    response = await bench.answer(said, first)
    calls = response.message.calls
    await bench.answer("text: ok", first, response.message, user(*(tool_result(call, "too much", is_error=True) for call in calls)))
    assert bench.server.requests[-1].violation is None
    assert violation(bench.protocol, bench.body()) is None
    return calls


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("piece_chars", [0, 50_000], ids=["in one event", "in many"])
def test_twenty_megabytes_of_arguments(protocol: str, piece_chars: int) -> None:
    """PV14: read, and named in later requests instead of repeated."""

    async def big(bench: Bench) -> None:
        (call,) = await next_is_valid(bench, answer(CallStep("write_file", BIG, piece_chars=piece_chars)))
        assert len(call.arguments) >= 20_000_000
        assert call.args is not None
        assert len(call.args["content"]) == 20_000_000
        assert len(json.dumps(bench.body())) < 10_000

    run(protocol, big)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("depth", [60, 70, 300, 700, 960, 10_000])
@pytest.mark.parametrize("inside", ["1", '"\\ud800"'], ids=["a number", "half a pair"])
def test_any_depth_of_nesting(protocol: str, depth: int, inside: str) -> None:
    """PV14: nesting depth 10,000, and the depths at which parsers and recursive code give up one after the other."""
    deep = '{"a":' + "[" * (depth - 1) + inside + "]" * (depth - 1) + "}"

    async def nested(bench: Bench) -> None:
        said = answer(CallStep("write_file", deep, id="c"))
        if protocol == "gemini" and depth > 600:  # where calls are part of the event, the event is no JSON that can be read
            _, error = await bench.ask(always(said))
            if error is not None:
                assert isinstance(error, StreamBroken)
                return
        (call,) = await next_is_valid(bench, said)
        assert call.args is None or call.args["a"]
        if inside == "1":
            assert call.arguments.replace(" ", "") == deep

    run(protocol, nested)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_duplicate_keys(protocol: str) -> None:
    async def twice(bench: Bench) -> None:
        (call,) = await next_is_valid(bench, answer(CallStep("write_file", '{"path":"a","path":"b"}')))
        assert call.args == {"path": "b"}

    run(protocol, twice)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("arguments", ['{"a":NaN}', '{"a":[Infinity,-Infinity]}'])
def test_numbers_that_are_not_json(protocol: str, arguments: str) -> None:
    """PV14: NaN is not JSON: a call that cannot be read, or where it makes the event itself no JSON, a broken stream."""

    async def not_a_number(bench: Bench) -> None:
        events, error = await bench.ask(always(CallStep("write_file", arguments)))
        if error is not None:
            assert isinstance(error, StreamBroken)
            return
        response = events[-1].response  # type: ignore[union-attr]
        assert response.finish is FinishReason.TOOL_CALLS
        assert response.message.calls[0].args is None
        calls = response.message.calls
        await bench.answer("text: ok", user("hello"), response.message, user(*(tool_result(call, "no", is_error=True) for call in calls)))
        assert violation(protocol, bench.body()) is None

    run(protocol, not_a_number)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("arguments", ['{"a":1e999}', '{"a":123456789012345678901234567890}', '{"a":1.0000000000000000000001}', '{"a":-0}'])
def test_numbers_that_no_machine_holds(protocol: str, arguments: str) -> None:
    async def huge(bench: Bench) -> None:
        events, error = await bench.ask(always(CallStep("write_file", arguments)))
        if error is not None:
            assert isinstance(error, StreamBroken)
            return
        response = events[-1].response  # type: ignore[union-attr]
        calls = response.message.calls
        await bench.answer("text: ok", user("hello"), response.message, user(*(tool_result(call, "no", is_error=True) for call in calls)))
        assert violation(protocol, bench.body()) is None

    run(protocol, huge)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_lone_surrogates_in_arguments_never_come_back_out(protocol: str) -> None:
    """PV14, and rule 24 of docs/reference/wire.md: escaped in valid and in broken JSON."""

    async def halves(bench: Bench) -> None:
        said = [CallStep("write_file", each) for each in ('{"content":"a\\ud83db"}', '{"\\udc00":["\\ud83d\\ude00"]}')]
        first, second = await next_is_valid(bench, answer(*said))
        assert first.args == {"content": "a\ufffdb"}
        assert second.args == {"\ufffd": ["\U0001f600"]}
        bench.server.play(answer(CallStep("write_file", '{"content":"\\ud83d')))
        events, error = await bench.ask(None)
        assert error is None
        response = events[-1].response  # type: ignore[union-attr]
        assert response.finish is (FinishReason.MALFORMED_TOOL_CALL if protocol == "gemini" else FinishReason.TOOL_CALLS)
        results = [user(*(tool_result(call, "no") for call in response.message.calls))] if response.message.calls else [user("go on")]
        await bench.answer("text: ok", user("hello"), response.message, *results)
        assert violation(protocol, bench.body()) is None

    run(protocol, halves)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_five_hundred_calls_in_one_answer(protocol: str) -> None:
    async def many(bench: Bench) -> None:
        said = answer(*(CallStep("read_file", f'{{"path":"{n}"}}', id=["", "same", None][n % 3]) for n in range(500)))
        calls = await next_is_valid(bench, said)
        assert len({call.id for call in calls}) == 500
        assert [call.args for call in calls] == [{"path": str(n)} for n in range(500)]

    run(protocol, many)
