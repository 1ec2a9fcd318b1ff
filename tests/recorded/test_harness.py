"""The comparison itself, on exchanges written by hand: what is read well passes, and whatever is lost, misread or refused is noticed."""

from __future__ import annotations

import asyncio
import json
import lzma
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recorded import known
from recorded.answers import Answer, judge_answers
from recorded.comparison import compare_answer
from recorded.exchanges import Exchange, read_exchanges
from recorded.plain_reading import read_plainly
from recorded.playing import play, stage
from recorded.reading import Call, PlainUsage, Reading
from recorded.unsent import refused_fields
from recorded.validation import judge_requests

Json = dict[str, Any]
HOSTS = {
    "anthropic": "api.anthropic.com",
    "openai_chat": "api.openai.com",
    "openai_responses": "api.openai.com",
    "gemini": "generativelanguage.googleapis.com",
}


def exchange(protocol: str, body: object, *, status: int = 200, request: Json | None = None, source: str = "by/hand#0") -> Exchange:
    """An exchange with a whole answer, or with a stream where the body is a list of events."""
    stream = isinstance(body, list)
    text = "".join(f"data: {each if isinstance(each, str) else json.dumps(each)}\n\n" for each in body) if stream else json.dumps(body)  # type: ignore[union-attr]
    kind = "fixture" if request is None else "recorded"
    return Exchange("0123", source, kind, protocol, HOSTS[protocol], status, stream, text, model="a-model", request=request)  # type: ignore[arg-type]


def judge(one: Exchange) -> Answer:
    return asyncio.run(judge_answers([one]))[0]


def response_to(one: Exchange) -> Any:
    """What our provider makes of an answer."""

    async def read() -> Any:
        async with stage() as here:
            connection = here.connect(one)
            played = await play(one, connection)
            await connection.aclose()
            return played.response

    return asyncio.run(read())


def chat(message: Json, finish: str | None = "stop", **fields: object) -> Json:
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    return {"id": "c-1", "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage, **fields}


WELL_READ = {
    "anthropic": {
        "id": "m-1",
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "a"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 3},
    },
    "openai_chat": chat({"role": "assistant", "content": "Hello."}),
    "openai_responses": [
        {"type": "response.created", "response": {"id": "r-1", "status": "in_progress"}},
        {"type": "response.output_text.delta", "output_index": 0, "item_id": "msg_1", "content_index": 0, "delta": "Hé"},
        {
            "type": "response.completed",
            "response": {
                "id": "r-1",
                "status": "completed",
                "output": [{"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hé"}]}],
                "usage": {"input_tokens": 4, "output_tokens": 1, "total_tokens": 5},
            },
        },
    ],
    "gemini": [
        {"candidates": [{"content": {"parts": [{"text": "Hel"}], "role": "model"}}], "responseId": "g-1"},
        {
            "candidates": [{"content": {"parts": [{"text": "lo"}], "role": "model"}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5},
            "responseId": "g-1",
        },
    ],
}


@pytest.mark.parametrize("protocol", WELL_READ)
def test_an_answer_that_is_read_well_is_ok(protocol: str) -> None:
    judged = judge(exchange(protocol, WELL_READ[protocol]))
    assert (judged.verdict, judged.differences, judged.sent_back, judged.reason) == ("ok", [], [], "")


LOSSES = {
    "text": replace(Reading(), text="More."),
    "thinking": replace(Reading(), thinking="Hm."),
    "calls": replace(Reading(), calls=[Call("look", {})]),
    "signatures": replace(Reading(), signatures=[("c2ln", "b3RoZXI")]),
    "citations": replace(Reading(), citations=["http://a.example/"]),
    "usage": replace(Reading(), usage=PlainUsage(output=3)),
    "usage total": replace(Reading(), usage=PlainUsage(total=3)),
    "finish": replace(Reading(), finish="length"),
    "response id": replace(Reading(), response_id="another"),
    "custom call": replace(Reading(), custom_calls=[{"name": "paint"}]),
}


@pytest.mark.parametrize("kind", LOSSES)
def test_whatever_is_lost_is_noticed(kind: str) -> None:
    """The service is made to have said more than our provider was told."""
    one = exchange("openai_chat", chat({"role": "assistant", "content": ""}, usage={}))
    plain, more = read_plainly(one), LOSSES[kind]
    changed = [name for name in vars(more) if getattr(more, name) != getattr(Reading(), name)]
    said = replace(plain, **{name: getattr(more, name) for name in changed})

    response = response_to(one)
    assert compare_answer("openai_chat", plain, response, ()) == []
    assert [found.kind for found in compare_answer("openai_chat", said, response, ())] == [kind]


def test_an_error_is_meant_as_the_service_says() -> None:
    body = {"error": {"message": "Incorrect API key provided.", "type": "invalid_request_error", "code": "invalid_api_key"}}
    assert judge(exchange("openai_chat", body, status=401)).verdict == "error as meant"


def test_a_refused_answer_is_known_by_a_rule_alone() -> None:
    """Without its finishReason, nobody knows whether the answer was cut."""
    judged = judge(exchange("gemini", [{"candidates": [{"content": {"parts": [{"text": "Hel"}]}}]}]))
    assert judged.verdict == "refused"
    assert known.why_misread(judged) == ["nothing says that the answer has ended (Gemini without finishReason, a stream that was cut)"]
    assert known.why_misread(replace(judged, verdict="crash")) == []


def test_a_rule_explains_only_what_it_is_about() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4, "prompt_tokens_details": {"cached_tokens": 9}}
    judged = judge(exchange("openai_chat", chat({"content": "Hi."}, usage=usage)))
    assert judged.verdict == "differs"
    assert known.why_misread(judged) == ["the service reports more cached than input tokens"]
    lost = compare_answer("openai_chat", Reading(text="More."), response_to(judged.exchange), ())
    assert known.why_misread(replace(judged, differences=[*judged.differences, *lost])) == []


def test_what_we_never_ask_for_is_left_out() -> None:
    several = exchange("openai_chat", chat({"content": "Hi."}), request={"n": 2})
    assert (judge(several).verdict, judge(several).reason) == ("not asked", "several choices (n > 1)")


def test_a_call_that_the_output_limit_cut_is_no_broken_stream() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "write", "input": {}}
    events: list[Json] = [
        {"type": "message_start", "message": {"id": "m-1", "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": call},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"lines": ["a'}},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    judged = judge(exchange("anthropic", events))
    assert (judged.verdict, judged.reading.finish, judged.differences, judged.sent_back) == ("ok", "length", [], [])


# --- the plain reading -----------------------------------------------------------------------------------------------------


def test_an_end_without_a_reason_is_an_end_in_chat_alone() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    chunk = {"id": "c-1", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **call}]}, "finish_reason": ""}]}
    assert read_plainly(exchange("openai_chat", [chunk, "[DONE] "])).finish == "tool_calls"
    assert read_plainly(exchange("openai_chat", chat({"content": "Hi."}, None))).finish == "stop"
    assert read_plainly(exchange("openai_chat", [chunk])).finish == ""
    assert read_plainly(exchange("gemini", {"candidates": [{"content": {"parts": [{"text": "Hi."}]}}]})).finish == ""


def test_thinking_is_found_where_it_stands() -> None:
    plain = read_plainly(exchange("openai_chat", chat({"content": "<think>\nHm.\n</think>\n\nYes. <think>"})))
    assert (plain.thinking.strip(), plain.text) == ("Hm.", "Yes. <think>")


def test_reasoning_beside_the_completion_is_output() -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 1, "total_tokens": 303, "completion_tokens_details": {"reasoning_tokens": 290}}
    assert read_plainly(exchange("openai_chat", chat({"content": "4"}, usage=usage))).usage.output == 291
    usage |= {"total_tokens": 313, "completion_tokens": 301}
    assert read_plainly(exchange("openai_chat", chat({"content": "4"}, usage=usage))).usage.output == 301


def test_a_call_that_the_service_could_not_read_is_malformed() -> None:
    body = {"error": {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "<x>"}}
    assert read_plainly(exchange("openai_chat", body, status=400)).finish == "malformed_tool_call"


# --- requests --------------------------------------------------------------------------------------------------------------


def test_a_request_is_judged_once_by_what_the_service_did_with_it() -> None:
    good = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi."}]}
    bad = {"model": "gpt-4.1", "messages": [{"role": "nobody", "content": "Hi."}]}
    refusal = {"error": {"message": "No.", "code": "invalid_value"}}
    judged = [
        exchange("openai_chat", chat({"content": "Hi."}), request=good),
        exchange("openai_chat", chat({"content": "Hello."}), request=good),
        exchange("openai_chat", chat({"content": "Hi."}), request=bad),
        exchange("openai_chat", refusal, status=400, request={**bad, "user": "me"}),
        exchange("openai_chat", refusal, status=400, request={**good, "user": "me"}),
        exchange("openai_chat", refusal, status=401, request={**good, "user": "you"}),
    ]
    assert [each.verdict for each in judge_requests(judged)] == ["pass", "refused by us", "both refuse", "lets pass", "not asked"]


def test_a_field_that_we_never_send_is_a_reason_and_hides_nothing() -> None:
    body = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi."}], "frobnicate": True}
    wrong = {**body, "temperature": "hot"}
    alone, beside = judge_requests([exchange("openai_chat", chat({"content": "Hi."}), request=each) for each in (body, wrong)])
    assert (alone.verdict, alone.said, alone.unsent, known.why_judged(alone)) == ("refused by us", "", ("frobnicate",), known.UNSENT)
    assert (beside.verdict, beside.unsent, known.why_judged(beside)) == ("refused by us", ("frobnicate",), "")
    assert "temperature" in beside.said


def test_refused_fields_are_found_in_the_words_of_every_service() -> None:
    assert refused_fields("output_config.task_budget: Extra inputs are not permitted") == ["task_budget"]
    assert refused_fields("Unrecognized request arguments supplied: models, provider") == ["models", "provider"]
    assert refused_fields("Unknown parameter: 'messages[1].annotations'.") == ["annotations"]
    assert refused_fields('Invalid JSON payload received. Unknown name "modelArmorConfig": Cannot find field.') == ["modelArmorConfig"]
    assert refused_fields("text content is empty") == []


# --- a folder, and the command -----------------------------------------------------------------------------------------------


def write(folder: Path, *exchanges: Exchange) -> None:
    lines = msgspec.json.Encoder().encode_lines(exchanges)
    (folder / "one.jsonl").write_bytes(lines)


def test_a_folder_may_hold_plain_and_packed_files(tmp_path: Path) -> None:
    one, two = (exchange("gemini", WELL_READ["gemini"], source=source) for source in ("a/b#0", "a/b#1"))
    write(tmp_path, one, exchange("anthropic", WELL_READ["anthropic"]))
    (tmp_path / "two.jsonl.xz").write_bytes(lzma.compress(msgspec.json.encode(two)))
    (tmp_path / "README.md").write_text("not an exchange")
    assert [each.source for each in read_exchanges("gemini", tmp_path)] == ["a/b#0", "a/b#1"]


def test_a_line_that_is_no_exchange_is_named(tmp_path: Path) -> None:
    write(tmp_path, exchange("gemini", WELL_READ["gemini"]))
    with (tmp_path / "one.jsonl").open("a") as file:
        file.write('{"id": 1}\n')
    with pytest.raises(ValueError, match=r"one\.jsonl, line 2"):
        list(read_exchanges("gemini", tmp_path))


def run_command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    here = Path(__file__).resolve().parents[1]
    path = os.pathsep.join(filter(None, [str(here), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": path, "DRAGOMAN_RECORDINGS": str(folder)}
    argv = [sys.executable, "-m", "recorded", *arguments]
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)


def test_the_command_fails_where_something_is_unexplained(tmp_path: Path) -> None:
    absent = run_command(tmp_path)
    assert (absent.returncode, absent.stdout) == (2, "")
    assert "DRAGOMAN_RECORDINGS" in absent.stderr

    fine = exchange("openai_chat", WELL_READ["openai_chat"])
    write(tmp_path, fine)
    run = run_command(tmp_path, "--details", str(tmp_path / "details"))
    assert (run.returncode, run.stderr) == (0, "")
    assert json.loads((tmp_path / "details").read_text())["verdict"] == "ok"

    two = chat({"content": "Hi."})
    two["choices"] *= 2  # we never ask for two
    write(tmp_path, fine, exchange("openai_chat", two, source="two#0"))
    run = run_command(tmp_path)
    assert run.returncode == 1
    assert "1 answers that nobody can explain" in run.stdout
    assert "two#0" in run.stdout
