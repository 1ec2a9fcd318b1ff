"""PV06 to PV13, the provider's half: answers that are written, worded or laid out oddly, over real HTTP, in all four protocols."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.testing.script import Script
from dragoman.testing.script_steps import (
    BlockStep,
    CallQuirk,
    CallStep,
    Finish,
    Garbage,
    RawStep,
    Say,
    ScriptedAnswer,
    ScriptFraming,
    Step,
    Think,
    answer,
)
from dragoman.values.errors import StreamBroken
from dragoman.values.messages import FinishReason, Text, Thought, ToolCall, assistant, tool_result, user
from faulty_service import Bench, always, retries, run, violation
from streaming import PROTOCOLS, checked

# --- PV06: what events look like --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_one_invalid_event_between_valid_ones_breaks_the_stream(protocol: str) -> None:
    """PV06: bad JSON = stream error (retry), never skipped silently."""

    async def garbled(bench: Bench) -> None:
        events, error = await bench.fails(always("before", Garbage('{"broken'), "after"))
        assert isinstance(error, StreamBroken)
        assert "not JSON" in error.message
        assert len(retries(events)) == 2
        assert (await bench.ask(Script((answer("a", Garbage(), "b"), answer("ok")))))[1] is None

    run(protocol, garbled)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("framing", [(), *((each,) for each in ScriptFraming), tuple(set(ScriptFraming) - {ScriptFraming.CR})])
def test_every_other_way_of_writing_events_gives_the_exact_text(protocol: str, framing: tuple[ScriptFraming, ...]) -> None:
    """PV06: unknown event types, U+2028 and U+0085, UTF-8 split over chunks, CRLF, `data:` without space, BOM, several data lines."""
    text = "a\u2028b\u0085c\u000bd naïve \U0001f9d1\u200d\U0001f680 文字\r\n\r\nend"
    end = b"\r\n" if ScriptFraming.CRLF in framing else b"\r" if ScriptFraming.CR in framing else b"\n"
    news = RawStep(b'event: news\ndata: {"type":"news"}\n\n'.replace(b"\n", end))

    async def exact(bench: Bench) -> None:
        for size in (0, 1, 7):
            said = answer(Say(text, piece_chars=3), news, CallStep("read_file", '{"path":"\u2028"}'), framing=framing, piece_bytes=size)
            response = await bench.answer(said)
            assert response.message.text == text
            assert response.message.calls[0].args == {"path": "\u2028"}

    run(protocol, exact)


# --- PV07: answers that say nothing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_answers_that_say_nothing_are_reported_as_they_are(protocol: str) -> None:
    """PV07: no events is a broken stream; an empty answer with a finish is an answer, and what to do is for the chat to say."""

    async def nothing(bench: Bench) -> None:
        events, error = await bench.fails(always())
        assert isinstance(error, StreamBroken)
        assert len(retries(events)) == 2
        empty = await bench.answer(answer(Finish("stop")))
        assert (empty.message, empty.finish) == (assistant(), FinishReason.STOP)
        thinking = await bench.answer(answer(Think("Hm.")))
        assert (thinking.message.parts, thinking.finish) == ((Thought("Hm."),), FinishReason.STOP)
        blank = await bench.answer(answer(" \n"))
        assert (blank.message.parts, blank.finish) == ((Text(" \n"),), FinishReason.STOP)

    run(protocol, nothing)


# --- PV08, PV09: calls that are not whole -----------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
@pytest.mark.parametrize("steps", [(), ("Let me see.",)], ids=["nothing", "text"])
def test_a_malformed_call_is_named_by_the_reason(reason: str, steps: tuple[Step | str, ...]) -> None:
    """PV08: key on the reason, not on emptiness."""

    async def malformed(bench: Bench) -> None:
        response = await bench.answer(answer(*steps, Finish(reason, "print(write_file(")))
        assert (response.finish, response.raw_finish) == (FinishReason.MALFORMED_TOOL_CALL, reason)
        assert response.detail == "print(write_file("
        assert response.message.calls == ()

    run("gemini", malformed)


def test_the_calls_beside_one_that_gemini_could_not_read_are_good() -> None:
    """It leaves that one out and says so. A call where it expected none is kept, and not to be run."""

    async def partly(bench: Bench) -> None:
        call = CallStep("write_file", '{"path":"a"}')
        response = await bench.answer(answer(call, Finish("MALFORMED_FUNCTION_CALL", "print(write_file(")))
        assert (response.finish, response.fault) == (FinishReason.TOOL_CALLS, "unreadable_call")
        assert [each.args for each in response.message.calls] == [{"path": "a"}]
        assert "(print(write_file()" in response.detail
        unexpected = await bench.answer(answer(call, Finish("UNEXPECTED_TOOL_CALL", "why")))
        assert (unexpected.finish, len(unexpected.message.calls)) == (FinishReason.MALFORMED_TOOL_CALL, 1)

    run("gemini", partly)


HALF = '{"path": "a.txt", "content": "def f():\\n    ret'


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_call_cut_by_the_output_limit_is_reported_as_cut(protocol: str) -> None:
    """PV09: max_tokens in the middle of write_file arguments. Not retried, not repaired."""

    async def cut(bench: Bench) -> None:
        response = await bench.answer(answer("Writing.", CallStep("write_file", HALF, piece_chars=7), Finish("length")))
        assert response.finish is FinishReason.LENGTH
        for call in response.message.calls:
            assert (call.arguments, call.args) == (HALF, None)
        assert bool(response.message.calls) == (protocol != "gemini"), "Gemini sends whole calls or none"

    run(protocol, cut)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("finish", ["stop", "tool_calls", ""])
def test_incomplete_arguments_under_a_good_reason_are_that_calls_fault(protocol: str, finish: str) -> None:
    """PV09: also reported as 'stop' with incomplete JSON. The call that is whole is good, and the next request is valid."""

    async def stop(bench: Bench) -> None:
        steps: tuple[Step, ...] = (CallStep("read_file", '{"path":"a"}'), CallStep("write_file", HALF))
        scripted = (Finish(finish),) if finish and protocol != "gemini" else ()
        response = await bench.answer(answer(*steps, *scripted))
        assert response.finish is FinishReason.TOOL_CALLS
        calls = response.message.calls
        assert [call.name for call in calls] == (["read_file"] if protocol == "gemini" else ["read_file", "write_file"])
        assert [call.arguments for call in calls[1:]] == ([] if protocol == "gemini" else [HALF]), "as it came"
        await bench.answer("text: ok", user("hello"), response.message, user(*(tool_result(call, "r") for call in calls)))
        assert violation(protocol, bench.body()) is None

    run(protocol, stop)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_valid_arguments_without_what_the_tool_needs_are_the_schedulers_to_judge(protocol: str) -> None:
    """PV09: valid JSON without the required field is passed on as it is."""

    async def passed(bench: Bench) -> None:
        response = await bench.answer(answer(CallStep("write_file", '{"path":"a"}')))
        assert (response.finish, response.message.calls[0].args) == (FinishReason.TOOL_CALLS, {"path": "a"})

    run(protocol, passed)


# --- PV10, PV11, PV12: ids, names, arguments, layouts -----------------------------------------------------------------------


async def goes_on(bench: Bench, *said: CallStep, **options: Any) -> tuple[ToolCall, ...]:
    """The calls of an answer, after the next request, with a result for each, was found good by the service."""
    first = user("hello")
    response = await bench.answer(answer(*said, **options), first)
    calls = response.message.calls
    results = user(*(tool_result(call, f"result of {call.id}") for call in calls))
    await bench.answer("text: ok", first, response.message, results)
    assert bench.server.requests[-1].violation is None
    assert violation(bench.protocol, bench.body()) is None
    again = await bench.answer(answer(*said, **options), first, response.message, results)
    ids = [call.id for call in (*calls, *again.message.calls)]
    assert len(set(ids)) == len(ids), "an id that comes again in a later turn is another call's"
    await bench.answer(
        "text: ok", first, response.message, results, again.message, user(*(tool_result(call, "r") for call in again.message.calls))
    )
    assert violation(bench.protocol, bench.body()) is None
    return calls


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_ids_become_unique_and_the_next_request_is_valid(protocol: str) -> None:
    """PV10: the same id twice with the same and with different arguments, empty ids, ids re-used in a later turn."""

    async def ids(bench: Bench) -> None:
        said = [
            CallStep("read_file", f'{{"path":"{n}"}}', id=call_id)
            for n, call_id in enumerate(["x", "x", "", "", "functions.Bash:0", "y" * 200])
        ]
        said.append(said[0])
        calls = await goes_on(bench, *said)
        assert len({call.id for call in calls}) == 7
        assert [call.args for call in calls] == [{"path": str(n)} for n in (*range(6), 0)]

    run(protocol, ids)


ODD_NAMES = [
    "rm_all",
    "READ_FILE",
    "../../bin/sh",
    "\x1b[31mls\x1b[0m",
    "two words",
    "x" * 200,
    "工具",
    "a.b:c/d",
    "123",
    "-",
    "functions.read_file",
]
ODD_ARGUMENTS = ['"a string"', "[1,2]", "null", "true", "5", "{}", '{"path":"a","extra":{"x":1}}', '{"":""}', '{"_arguments":1}']


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_odd_names_and_arguments_are_kept_and_the_next_request_is_valid(protocol: str) -> None:
    """PV11: unknown tools, wrong case, paths and ANSI in names; arguments that are no object, extra and missing fields."""

    async def odd(bench: Bench) -> None:
        said = [CallStep(name, '{"path":"a"}', id=f"n{n}") for n, name in enumerate(ODD_NAMES)]
        said += [CallStep("read_file", arguments, id=f"a{n}") for n, arguments in enumerate(ODD_ARGUMENTS)]
        calls = await goes_on(bench, *said)
        assert [call.name for call in calls[: len(ODD_NAMES)]] == ODD_NAMES
        kept = [call.arguments for call in calls[len(ODD_NAMES) :]]
        assert kept == ["{}" if each == "null" and protocol == "gemini" else each for each in ODD_ARGUMENTS]
        assert [call.args is None for call in calls[len(ODD_NAMES) :]] == [not each.startswith("{") for each in kept]

    run(protocol, odd)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "quirks",
    [(quirk,) for quirk in CallQuirk]
    + [
        (CallQuirk.SAME_INDEX, CallQuirk.ID_EVERY, CallQuirk.INTERLEAVED),
        (CallQuirk.NO_INDEX, CallQuirk.INTERLEAVED),
        (CallQuirk.SAME_INDEX, CallQuirk.INTERLEAVED),
    ],
)
def test_every_layout_of_parallel_calls_is_rebuilt_exactly_or_broken(protocol: str, quirks: tuple[CallQuirk, ...]) -> None:
    """PV12: calls rebuilt exactly or stream error; arguments never concatenated across calls."""
    said = (
        CallStep("read_file", '{"path":"a","n":{"x":1}}', id="ca", piece_chars=4),
        CallStep("write_file", '{"path":"b","n":{"y":2}}', id="cb", piece_chars=4),
    )

    async def rebuilt(bench: Bench) -> None:
        events, error = await bench.ask(Script((ScriptedAnswer(said, calls=quirks),), at_end="repeat"))
        if error is not None:
            assert isinstance(error, StreamBroken)
            assert set(quirks) & {CallQuirk.INTERLEAVED, CallQuirk.LATE_DELTA}
            return
        found = [(call.id, call.name, call.arguments) for call in checked(events).message.calls]
        assert found == [(call.id, call.name, call.arguments) for call in said]

    run(protocol, rebuilt)


# --- PV13: refused and filtered ---------------------------------------------------------------------------------------------

WORDS: dict[str, list[tuple[str, FinishReason]]] = {
    "gemini": [
        ("SAFETY", FinishReason.SAFETY),
        ("RECITATION", FinishReason.RECITATION),
        ("PROHIBITED_CONTENT", FinishReason.SAFETY),
        ("BLOCKLIST", FinishReason.SAFETY),
        ("SPII", FinishReason.SAFETY),
    ],
    "openai_chat": [("content_filter", FinishReason.SAFETY), ("refusal", FinishReason.REFUSAL)],
    "openai_responses": [("content_filter", FinishReason.SAFETY), ("refusal", FinishReason.REFUSAL)],
    "anthropic": [("refusal", FinishReason.REFUSAL)],
}
BEFORE = {"at once": (), "after text": (Say("Well, "),), "after a call": (Say("Well, "), CallStep("read_file", '{"path":"a"}'))}


@pytest.mark.parametrize(("protocol", "word", "reason"), [(protocol, *each) for protocol in PROTOCOLS for each in WORDS[protocol]])
@pytest.mark.parametrize("when", BEFORE)
def test_a_refusal_or_filter_is_told_with_its_reason_and_not_tried_again(protocol: str, word: str, reason: FinishReason, when: str) -> None:
    """PV13: before and after partial text or a tool call; not retried, pending calls not to be run, the session continues."""

    async def refused(bench: Bench) -> None:
        response = await bench.answer(answer(*BEFORE[when], Finish(word, "Because of the rules.")))
        assert response.finish is reason
        assert response.raw_finish
        if protocol in ("gemini", "anthropic") or reason is FinishReason.REFUSAL:
            assert response.detail == "Because of the rules."
        assert response.message.text.startswith("Well, " if when != "at once" else "")
        await bench.answer("text: ok", user("hello"), *([response.message] if when == "after text" else []), user("Something else."))
        assert violation(protocol, bench.body()) is None

    run(protocol, refused)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_blocked_prompt_is_told_with_its_reason_and_not_tried_again(protocol: str) -> None:
    """PV13: promptFeedback blocked, and what the others have for it."""

    async def blocked(bench: Bench) -> None:
        response = await bench.answer(answer(BlockStep("PROHIBITED_CONTENT")))
        assert response.finish in (FinishReason.SAFETY, FinishReason.REFUSAL)
        assert response.message.parts == ()
        assert response.raw_finish in ("PROHIBITED_CONTENT", "content_filter", "refusal")

    run(protocol, blocked)
