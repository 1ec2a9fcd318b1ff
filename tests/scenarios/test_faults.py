"""PV01 to PV14 through the real program: the exit code, one line that says what happened, nothing run from a broken answer.

And with an agent in this process: whatever went wrong, the same prompt asked again is answered, by a valid request that holds it once.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from destinations import connection
from dragoman.providers.retry import RetryPolicy
from dragoman.testing.mock.server import MockServer
from dragoman.testing.script import Script, Source
from dragoman.testing.script_steps import CallQuirk, CallStep, CutStep, Finish, Say, ScriptedAnswer, answer
from dragoman.values.errors import DragomanError
from scenarios.harness import LONGEST_S, PROTOCOLS, QUICK, QUICK_S, Desk, Ended, assert_valid, prompts, told_results, told_text
from scenarios.workshop import QUICK as QUICK_LIMITS
from scenarios.workshop import check_record, no_wait, play
from streaming import recorded

DIALECTS = ("gemini", "openai_chat", "anthropic")
TARGET = "ran.txt"
"""The file that a tool call in a broken answer would write."""
DANGER = CallStep("write_file", json.dumps({"file_path": TARGET, "content": "a tool of a broken answer was run"}))
GOOD = answer("Good.")
AUTO_EDIT = ("--approval", "auto-edit")


@pytest.fixture(params=DIALECTS)
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    return Desk.at(tmp_path, request.param)


@pytest.fixture
def gemini(tmp_path: Path) -> Desk:
    return Desk.at(tmp_path, "gemini")


@pytest.fixture
def openai(tmp_path: Path) -> Desk:
    return Desk.at(tmp_path, "openai_chat")


def always(*steps: Any) -> Script:
    return Script((answer(*steps),), at_end="repeat")


def untouched(desk: Desk) -> None:
    assert not (desk.workspace / TARGET).exists(), "a call of a broken answer was run"


def complaint(ended: Ended, code: int) -> str:
    """The one line that says what went wrong; lines that tell of another try, or of a prompt that was taken back, stand before it."""
    assert ended.code == code, ended.err
    *before, last = ended.err.splitlines()
    expected = ("trying again", "it has been told", "kept in the session")
    assert all(any(words in line for words in expected) for line in before), ended.err
    assert last.startswith("dragoman: ")
    assert "--debug" not in last, "that would be a fault of our own"
    return last


def ran_into(desk: Desk, script: Source, code: int, *arguments: str, **options: Any) -> str:
    """What a run that must fail said in the end. It showed nothing, and ran nothing."""
    ended = desk.run(script, *AUTO_EDIT, *arguments, **options)
    assert ended.out == ""
    untouched(desk)
    return complaint(ended, code)


def came_through(desk: Desk, script: Source, **options: Any) -> Ended:
    """A run that must end well in spite of everything, and ran nothing it should not have."""
    ended = desk.run(script, *AUTO_EDIT, **options)
    assert (ended.code, ended.out) == (0, "Good.\n"), ended.err
    untouched(desk)
    return ended


def test_the_faults_are_those_of_the_corpus(corpora: Path) -> None:
    """Each id of the corpus is named by a test in this file."""
    ids = {json.loads(line)["id"] for line in (corpora / "provider_faults.jsonl").read_text().splitlines()}
    named = set(re.findall(r"PV\d\d", Path(__file__).read_text(encoding="utf-8")))
    assert ids <= named


# --- PV01: cut -------------------------------------------------------------------------------------------------------------------


def test_an_answer_cut_anywhere_is_no_answer(desk: Desk) -> None:
    """PV01: retried; no tool of a partial answer is run; what was shown of it is no part of the answer; history has no half message."""
    whole = (Say("Let me write that.", piece_chars=5), DANGER)
    size = len(recorded(desk.protocol, answer(*whole)))
    offsets = [*range(0, int(size * 0.8), max(1, size // 24))]
    cut = [answer(*whole, CutStep(offset)) for offset in offsets]
    tries = QUICK.replace("[retry]", f"[retry]\nattempts = {len(cut) + 1}")
    ended = came_through(desk, Script((*cut, GOOD)), config=tries)
    assert len(ended.requests) == len(offsets) + 1
    assert ended.bodies() == [ended.requests[0].body] * len(ended.requests)


def test_an_answer_that_is_always_cut_is_an_error(desk: Desk) -> None:
    """PV01: tried again a bounded number of times, and never taken for a finished turn."""
    ended = desk.run(always("Half an answer", DANGER, CutStep()), *AUTO_EDIT, "--output-format", "stream-json")
    assert (ended.code, len(ended.requests)) == (57, 3)
    untouched(desk)
    warnings = [event for event in ended.told("error") if event["severity"] == "warning"]
    assert [event["discard"] for event in warnings] == [True, True], "what was shown is marked as void"
    assert ended.result["response"] == ""
    assert not ended.told("tool_use")


# --- PV02: silence ---------------------------------------------------------------------------------------------------------------

SILENCES = {
    "headers and nothing": "script: end=repeat\nstall",
    "three events and pings": "script: end=repeat\ntext: a\ntext: b\ntext: c\nping: forever every=0.05",
    "a byte now and then": "script: end=repeat\nanswer: piece_bytes=1 piece_wait=0.1\ntext: a",
}


def test_silence_ends_in_a_timeout(desk: Desk, tmp_path: Path) -> None:
    """PV02: headers and then nothing; events and then only pings; a byte now and then. The turn ends, and says why."""

    async def go() -> list[Ended]:
        places = []
        for name in SILENCES:
            (tmp_path / name).mkdir()
            places.append(Desk.at(tmp_path / name, desk.protocol))
        return await asyncio.gather(
            *(
                each.run_async(script, model=each.hasty, config=each.hasty_config)
                for each, script in zip(places, SILENCES.values(), strict=True)
            )
        )

    for ended in asyncio.run(go()):
        line = complaint(ended, 57)
        assert f"{QUICK_S:g} s" in line or "in time" in line or "silent" in line, line
        assert len(ended.requests) == 2
        assert ended.seconds >= 2 * QUICK_S


# --- PV03: how long to wait --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hint", ["retry_after=1", "retry_info=1.2", "retry_info=0.2 retry_after=1"])
def test_the_wait_a_service_asks_for_is_kept_and_told(gemini: Desk, hint: str) -> None:
    """PV03: never shorter than asked; the countdown is visible."""
    ended = came_through(gemini, f"error: 429 {hint}\n---\ntext: Good.")
    assert ended.seconds >= 1
    (line,) = ended.err.splitlines()
    assert re.search(r"trying again in 1\.\d s \(attempt 2\)|trying again in [12](\.\d)? s", line), line


def test_a_wait_that_is_too_long_fails_at_once_with_the_time(desk: Desk) -> None:
    """PV03: above the limit it fails fast and names the time to come back."""
    start = time.time()
    line = ran_into(desk, "script: end=repeat\nerror: 429 retry_after=600", 57)
    until = [time.strftime("%H:%M", time.localtime(start + 600 + seconds)) for seconds in (0, 60)]
    assert "600 s" in line
    assert any(f"until {each}" in line for each in until), line


def test_the_default_delays(gemini: Desk) -> None:
    """PV03: without a config the first wait is 5 s; the countdown says so, and Ctrl-C is not kept waiting by it."""

    async def go() -> None:
        async with gemini.server("error: 503\n---\ntext: Good.") as service:
            gemini.url = service.url
            async with gemini.started(config="") as started:
                assert started.process.stderr is not None
                line = (await asyncio.wait_for(started.process.stderr.readline(), LONGEST_S)).decode()
                wait_s = float(re.search(r"trying again in ([\d.]+) s", line)[1])  # type: ignore[index]
                assert 3.5 <= wait_s <= 6.5

    asyncio.run(go())


# --- PV04: what waiting does not help ------------------------------------------------------------------------------------------------

HOPELESS: list[tuple[str, str, int, str]] = [
    ("gemini", "error: 429 quota_id=GenerateRequestsPerDayPerProject", 57, "daily quota"),
    ("openai_chat", "error: 429 code=insufficient_quota", 57, "billing"),
    ("openai_responses", "error: 401", 41, "OPENAI_API_KEY"),
    ("anthropic", "error: 403", 41, "ANTHROPIC_API_KEY"),
    *((protocol, "error: 401", 41, "_API_KEY") for protocol in DIALECTS),
    *((protocol, 'error: 400 "tools.0.name: too long"', 57, "tools.0.name: too long") for protocol in DIALECTS),
]


@pytest.mark.parametrize(("protocol", "script", "code", "word"), HOPELESS)
def test_what_waiting_does_not_help_fails_at_once(tmp_path: Path, protocol: str, script: str, code: int, word: str) -> None:
    """PV04: not retried; one clear message naming quota, billing or auth."""
    desk = Desk.at(tmp_path, protocol)
    ended = desk.run(f"script: end=repeat\n{script}", config="")
    assert word in complaint(ended, code)
    assert (len(ended.requests), len(ended.err.splitlines()), ended.out) == (1, 1, "")


# --- PV05: overload ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", ["error: 529", "error: 503", "error: 500", "text: Half an answer\nerror: 529"])
def test_overload_is_tried_again_a_bounded_number_of_times(desk: Desk, script: str) -> None:
    """PV05: as a status and in the middle of a 200 stream, for ever; then an error in the service's own words."""
    ended = desk.run(f"script: end=repeat\n{script}", *AUTO_EDIT)
    complaint(ended, 57)
    assert (len(ended.requests), ended.out) == (3, "")
    assert len(ended.err.splitlines()) == 3, "each try is told"
    assert ended.bodies() == [ended.requests[0].body] * 3


# --- PV06: events ------------------------------------------------------------------------------------------------------------------


def test_an_event_that_is_not_json_breaks_the_stream(desk: Desk) -> None:
    """PV06: bad JSON = stream error, retried, never skipped."""
    call = f"call: {DANGER.name} {DANGER.arguments}"
    assert "JSON" in ran_into(desk, f"script: end=repeat\ntext: a\n{call}\ngarbage\ntext: b", 57)


def test_every_other_way_of_writing_events_gives_the_exact_text(desk: Desk) -> None:
    """PV06: unknown events, U+2028 and U+0085, UTF-8 split over chunks, CRLF, BOM, `data:` without space, data over several lines."""
    text = "a\u2028b\u0085c naïve 文字 👩‍🚀\r\nend"
    framing = "crlf+comments+bom+no_space+multiline"
    script = f"answer: framing={framing} piece_bytes=1\ntext piece=3: {json.dumps(text)}\nraw: " + json.dumps(
        "event: news\r\ndata: {}\r\n\r\n"
    )
    ended = desk.run(script, "--output-format", "json")
    assert (ended.code, ended.result["response"]) == (0, text)


# --- PV07: nothing -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("script", "tries"), [("nothing", 3), ("finish: stop", 2), ("thought: Hm.", 2), ('text: " \\n "', 2)])
def test_an_answer_that_says_nothing_is_tried_again_and_then_an_error(desk: Desk, script: str, tries: int) -> None:
    """PV07: no events, only a finish, only thinking, white space; never exit 0, never endless."""
    ended = desk.run(f"script: end=repeat\n{script}")
    line = complaint(ended, 57)
    assert len(ended.requests) == tries
    assert ended.out.strip() == ""
    assert tries == 3 or "empty" in line


# --- PV08, PV09: calls that are not whole --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "steps"),
    [("MALFORMED_FUNCTION_CALL", ()), ("UNEXPECTED_TOOL_CALL", ()), ("UNEXPECTED_TOOL_CALL", (DANGER,))],
    ids=["malformed", "unexpected", "a parsed call where none was expected"],
)
def test_a_malformed_call_is_not_run_and_the_model_is_told(gemini: Desk, reason: str, steps: tuple[CallStep, ...]) -> None:
    """PV08: retried with a corrective note, keyed on the reason; then a failed turn, not a success."""
    malformed = answer(*steps, Finish(reason, "print(write_file("))
    ended = came_through(gemini, [malformed, GOOD])
    assert "print(write_file(" in told_text(ended.requests[1].body)
    assert "could not be read" in ran_into(gemini, malformed, 57)


HALF = '{"file_path": "ran.txt", "content": "def f():\\n    ret'
WHOLE = DANGER.arguments


CUT_CALLS = {"half a call": HALF, "a call that looks whole": WHOLE}


@pytest.mark.parametrize("protocol", DIALECTS)
@pytest.mark.parametrize("arguments", [pytest.param(text, id=name) for name, text in CUT_CALLS.items()])
def test_a_call_cut_by_the_output_limit_is_not_run_and_the_model_is_told(tmp_path: Path, protocol: str, arguments: str) -> None:
    """PV09: nothing of that answer is executed; the target is unchanged; the model is told to write in smaller parts."""
    desk = Desk.at(tmp_path, protocol)
    if protocol == "gemini" and arguments == HALF:
        arguments = "{}"  # Gemini sends whole calls or none
    cut = answer("Writing.", CallStep("write_file", arguments), Finish("length"))
    ended = came_through(desk, [cut, GOOD])
    assert "smaller parts" in told_text(ended.requests[1].body)
    assert "output limit" in ran_into(desk, cut, 59)


def test_incomplete_arguments_under_a_good_reason_are_not_run(desk: Desk) -> None:
    """PV09: also reported as 'stop' with incomplete JSON. The call before it that is whole is run: one slip does not cost the answer."""
    half = answer(CallStep("list_directory", "{}"), CallStep("write_file", HALF))
    ended = came_through(desk, [half, GOOD])
    assert len(ended.requests) == 2
    told = told_text(ended.requests[1].body) if desk.protocol == "gemini" else told_results(ended.requests[1].body)[1]
    assert ("could not be read" if desk.protocol == "gemini" else "break off before the JSON object is complete") in told


def test_arguments_without_what_the_tool_needs_are_an_error_for_the_model(desk: Desk) -> None:
    """PV09: valid JSON without the required `content`."""
    ended = came_through(desk, f'call: write_file {{"file_path": "{TARGET}"}}\n---\ntext: Good.')
    assert "content" in told_results(ended.requests[1].body)[0]


# --- PV10, PV11, PV12: ids, names, arguments, layouts ----------------------------------------------------------------------------------


def writes(*names: str, call_id: str | None = None) -> tuple[CallStep, ...]:
    return tuple(CallStep("write_file", json.dumps({"file_path": name, "content": name}), id=call_id) for name in names)


@pytest.mark.parametrize("call_id", ["x", ""])
def test_calls_with_one_id_are_each_run_once(desk: Desk, call_id: str) -> None:
    """PV10: the same id and no id, in one answer and again in a later one; results matched; every request valid."""
    script = [answer(*writes("a", "b", call_id=call_id)), answer(*writes("c", call_id=call_id)), GOOD]
    ended = came_through(desk, script)
    assert [(desk.workspace / name).read_text() for name in "abc"] == ["a", "b", "c"]
    results = told_results(ended.requests[2].body)
    assert [name in text for name, text in zip("abc", results, strict=True)] == [True] * 3


ODD_CALLS = [
    CallStep("rm_all", "{}"),
    CallStep("WRITE_FILE", WHOLE),
    CallStep("../../bin/sh", WHOLE),
    CallStep("\x1b[31mwrite_file\x1b[0m", WHOLE),
    CallStep("write_file", '"a string"'),
    CallStep("write_file", f"[{WHOLE}]"),
    CallStep("write_file", "null"),
    CallStep("write_file", '{"file_path": {"name": "ran.txt"}, "content": 5}'),
    CallStep("write_file", '{"file_path": "ran.txt", "colour": "missing fields"}'),
]


def test_odd_names_and_arguments_are_errors_for_the_model(desk: Desk) -> None:
    """PV11: unknown names, wrong case, paths and ANSI; arguments that are no object, or lack what is needed: nothing is executed."""
    ended = came_through(desk, [answer(*ODD_CALLS), GOOD])
    results = told_results(ended.requests[1].body)
    assert len(results) == len(ODD_CALLS)
    assert all("write_file" in results[number] for number in (1, 3)), "the tool that was meant is named"
    assert "\x1b" not in "".join(results)
    assert "\x1b" not in ended.err


def test_the_same_failing_call_ends_the_loop(desk: Desk) -> None:
    """PV11: the loop ends after k identical failures."""
    assert "repeating itself" in ran_into(desk, always(CallStep("rm_all", '{"path": "/"}')), 56)


@pytest.mark.parametrize(
    "quirks",
    [
        ("interleaved",),
        ("no_index",),
        ("same_index",),
        ("id_every", "same_index"),
        ("late_name",),
        ("late_delta",),
        ("no_index", "interleaved"),
    ],
)
def test_parallel_calls_are_rebuilt_exactly_or_not_run(openai: Desk, quirks: tuple[str, ...]) -> None:
    """PV12: arguments are never concatenated across calls."""
    layout = ScriptedAnswer(
        tuple(CallStep(each.name, each.arguments, id=f"c{number}", piece_chars=4) for number, each in enumerate(writes("a", "b", "c"))),
        calls=tuple(map(CallQuirk, quirks)),
    )
    ended = openai.run(Script((layout, GOOD), at_end="repeat"), *AUTO_EDIT)
    written = {path.name: path.read_text() for path in openai.workspace.iterdir()}
    if len(ended.requests) == 2 and told_results(ended.requests[1].body):
        assert written == {"a": "a", "b": "b", "c": "c"}
    else:
        assert written == {}, "a broken stream, and nothing of it was run"
    assert (ended.code, ended.out) == (0, "Good.\n")


# --- PV13: refused and filtered ----------------------------------------------------------------------------------------------------

REFUSALS: list[tuple[str, str]] = [
    ("gemini", "finish: SAFETY"),
    ("gemini", "finish: RECITATION"),
    ("gemini", "finish: PROHIBITED_CONTENT"),
    ("gemini", "block: PROHIBITED_CONTENT"),
    ("openai_chat", "finish: content_filter"),
    ("openai_responses", "finish: refusal"),
    ("anthropic", "finish: refusal"),
]


@pytest.mark.parametrize(("protocol", "script"), REFUSALS)
def test_a_refusal_or_filter_is_told_with_its_reason(tmp_path: Path, protocol: str, script: str) -> None:
    """PV13: after text and a call: not retried, the call not executed, its own exit code."""
    desk = Desk.at(tmp_path, protocol)
    before = "" if script.startswith("block") else f"text: Well, \ncall: {DANGER.name} {DANGER.arguments}\n"
    ended = desk.run(f"script: end=repeat\n{before}{script}", *AUTO_EDIT)
    untouched(desk)
    line = complaint(ended, 58)
    assert len(ended.requests) == 1
    word = script.partition(": ")[2]
    assert word.lower() in line.lower() or "refus" in line.lower()
    assert ended.out == ""


# --- PV14: monstrous -----------------------------------------------------------------------------------------------------------------


def test_monstrous_arguments_are_errors_for_the_model(desk: Desk) -> None:
    """PV14: 20 MB of arguments, nesting 10,000 deep, duplicate keys, NaN, lone surrogates: bounded results, no crash, valid requests."""
    big = json.dumps({"file_path": TARGET, "content": "x" * 20_000_000})
    deep = '{"file_path": "ran.txt", "content": ' + "[" * 10_000 + "]" * 10_000 + "}"
    unreadable = [CallStep("read_file", '{"file_path": "a", "limit": NaN}'), CallStep("read_file", '{"file_path": "a", "offset": 1e999}')]
    odd = [
        answer(CallStep("write_file", big)),
        answer(CallStep("write_file", deep)),
        answer(CallStep("read_file", '{"file_path": "a", "file_path": "b"}'), CallStep("read_file", '{"file_path": "\\ud83d"}')),
    ]
    if desk.protocol != "gemini":  # which sends arguments as JSON: what is none cannot be in its answer
        for each in unreadable:
            odd += [answer(each), answer(CallStep("list_directory", "{}"))]
    ended = desk.run([*odd, GOOD], *AUTO_EDIT)
    assert (ended.code, ended.out) == (0, "Good.\n"), ended.err
    assert len(told_text(ended.requests[-1].body)) < 200_000, "none of it is sent again and again"
    assert not (desk.workspace / TARGET).exists() or (desk.workspace / TARGET).stat().st_size == 20_000_000


def test_five_hundred_calls_in_one_answer_are_bounded(openai: Desk) -> None:
    """PV14: each has one result; those beyond the limit are told so."""
    openai.write("a.txt", "hello\n")
    ended = openai.run([answer(*(CallStep("read_file", f'{{"file_path": "a.txt", "limit": {n}}}') for n in range(1, 501))), GOOD])
    assert (ended.code, ended.out) == (0, "Good.\n")
    results = told_results(ended.requests[1].body)
    assert len(results) == 500
    assert "not run" in results[-1]


# --- the session is usable afterwards ----------------------------------------------------------------------------------------------

BROKEN: dict[str, Source] = {
    "PV01 cut": always("Half", DANGER, CutStep()),
    "PV01 cut before the head": always(CutStep()),
    "PV04 bad request": "script: end=repeat\nerror: 400",
    "PV04 wrong key": "script: end=repeat\nerror: 401",
    "PV04 quota": "script: end=repeat\nerror: 429 code=insufficient_quota quota_id=PerDay",
    "PV05 overloaded": "script: end=repeat\nerror: 529",
    "PV05 overloaded in mid-answer": "script: end=repeat\ntext: Half\nerror: 529",
    "PV06 garbage": "script: end=repeat\ntext: Half\ngarbage",
    "PV07 no events": "script: end=repeat\nnothing",
    "PV07 empty": "script: end=repeat\nfinish: stop",
    "PV08 malformed": always(DANGER, Finish("UNEXPECTED_TOOL_CALL", "why")),
    "PV09 cut call": always(DANGER, Finish("length")),
    "PV13 refused": always("Well", DANGER, Finish("refusal")),
    "PV13 filtered": always("Well", DANGER, Finish("safety")),
}


def faulty(protocol: str) -> Iterator[str]:
    for name in BROKEN:
        if (protocol, name) == ("anthropic", "PV13 filtered"):
            continue  # which it does not say
        if protocol == "gemini" or "PV08" not in name:
            yield name


@pytest.mark.parametrize(("protocol", "fault"), [(protocol, fault) for protocol in PROTOCOLS for fault in faulty(protocol)])
def test_after_a_fault_the_same_prompt_is_answered(tmp_path: Path, protocol: str, fault: str) -> None:
    """PV05 and all others: the session stays usable, and the same prompt is tried again without duplicate history."""

    async def go() -> None:
        async with MockServer(BROKEN[fault]) as server:
            url = server.url + ("/v1" if protocol.startswith("openai") else "")
            where = connection(protocol, url, retry=RetryPolicy(sleep=no_wait))
            async with make_agent(where, workspace=tmp_path, approval="auto-edit", limits=QUICK_LIMITS) as agent:
                with pytest.raises(DragomanError):
                    await agent.run("Write it.")
                check_record(agent.history)
                server.play(GOOD)
                assert (await agent.run("Write it.")).text == "Good."
                assert [message.text for message in agent.history.view.messages].count("Write it.") == 1
                check_record(agent.history)
        assert_valid(server.requests)
        assert prompts(server.requests[-1].body, "Write it.") == 1
        assert "Half" not in told_text(server.requests[-1].body)
        assert not (tmp_path / TARGET).exists()

    play(go)
