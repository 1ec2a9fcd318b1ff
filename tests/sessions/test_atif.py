"""Trajectories: every rule of ATIF v1.8, checked here by our own reading of it. `make test-harbor` has two validators of others say the
same, over the 34 exercises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hypothesis
import hypothesis.strategies as st
import msgspec
import pytest

from dragoman.loop.history import History
from dragoman.sessions.atif import to_atif
from dragoman.values.errors import InputError
from dragoman.values.messages import Blob, Citation, FinishReason, Response, Thought, ToolCall, ToolSpec, assistant, tool_result, user
from dragoman.values.notes import GREETING, LOOP_NOTE
from dragoman.values.record import CommandOutput
from dragoman.values.usage import Prices, Usage
from trajectories import faults_in

NOW_MS = 1_794_744_062_123
ID = "20261115-120102-1a2b3c4d"
PRICES = Prices(1.0, 10.0, cache_read=0.1)
READ = ToolSpec.of("read_file", "Reads a file.", {"type": "object", "properties": {"file_path": {"type": "string"}}}, read_only=True)


def lived(session_id: str = ID) -> History:
    history = History(now_ms=lambda: NOW_MS)
    history.start(session_id, "f00d", ("/home/me/here",), ("dragoman 1",))
    history.configure("claude-opus-5", "Be good.", tools=(READ,), session_id=session_id, deployment="anthropic")
    history.say(user(f"{GREETING}\n\nToday's date is …"), "environment")
    history.say(user("Read the file"))
    call = ToolCall("call_1", "run_shell", '{"command":"cat a.txt"}')
    said = assistant(Thought("Looking"), Thought("at it"), "I will read it.", call)
    history.answer(Response(said, FinishReason.TOOL_CALLS, usage=Usage(100_000, 400_000, 0, 9_000, 4)))
    history.start_tool(call)
    history.finish_tool(tool_result(call, "hello", is_error=True), "failed", command=CommandOutput("hello", "", 3))
    history.say(user(LOOP_NOTE.format(what="x")), "loop")
    history.answer(
        Response(
            assistant("It says hello.", Citation("https://example.org", "Example")), FinishReason.STOP, usage=Usage(10, output_tokens=1)
        )
    )
    return history


def test_an_answer_is_one_step_with_its_calls_and_what_came_of_them() -> None:
    told = to_atif(lived().entries, prices_of=lambda deployment, model: PRICES)
    assert faults_in(told) == []
    assert [step["source"] for step in told["steps"]] == ["system", "system", "user", "agent", "system", "agent"]
    assert told["steps"][0]["message"] == "Be good."
    answer = told["steps"][3]
    assert (answer["message"], answer["reasoning_content"]) == ("I will read it.", "Looking\n\nat it")
    assert answer["model_name"] == "anthropic/claude-opus-5"
    assert answer["tool_calls"] == [{"tool_call_id": "call_1", "function_name": "run_shell", "arguments": {"command": "cat a.txt"}}]
    [result] = answer["observation"]["results"]
    assert (result["source_call_id"], result["content"]) == ("call_1", "hello")
    assert (result["extra"]["outcome"], result["extra"]["exit_code"]) == ("failed", 3)
    assert answer["metrics"] == {
        "prompt_tokens": 500_000,
        "completion_tokens": 9_000,
        "cached_tokens": 400_000,
        "cost_usd": pytest.approx(0.1 + 0.04 + 0.09),
        "extra": {"reasoning_tokens": 4},
    }
    assert told["agent"]["tool_definitions"][0]["function"]["name"] == "read_file"
    assert told["steps"][5]["extra"]["citations"] == [{"title": "Example", "uri": "https://example.org"}]


def test_what_does_not_count_is_left_out_and_paid_for() -> None:
    history = lived()
    history.reject(history.answer(Response(assistant("wrong"), FinishReason.STOP, usage=Usage(1_000, output_tokens=7))), "empty")
    before = history.entries[-1]
    history.answer(Response(assistant("taken back"), FinishReason.STOP, usage=Usage(2_000, output_tokens=9)))
    history.rewind(before)
    told = to_atif(history.entries, prices_of=lambda deployment, model: PRICES)
    assert faults_in(told) == []
    assert not {"wrong", "taken back"} & {step["message"] for step in told["steps"]}
    assert "2 answers were" in told["notes"]
    shown = sum(step["metrics"]["prompt_tokens"] for step in told["steps"] if "metrics" in step)
    assert told["final_metrics"]["total_prompt_tokens"] == shown + 3_000
    assert told["final_metrics"]["extra"]["llm_requests"] == 4


def test_costs_are_left_out_where_one_price_is_unknown() -> None:
    history = lived()
    history.change_model("somebody", deployment="elsewhere")
    history.answer(Response(assistant("Hi."), FinishReason.STOP, usage=Usage(10, output_tokens=1)))
    told = to_atif(history.entries, prices_of=lambda deployment, model: PRICES if deployment == "anthropic" else None)
    assert "total_cost_usd" not in told["final_metrics"]
    assert "cost_usd" not in told["steps"][-1]["metrics"]
    assert told["steps"][-1]["model_name"] == "elsewhere/somebody"


def test_calls_without_a_result_and_arguments_that_are_no_object_are_told() -> None:
    history = lived()
    calls = [ToolCall("c1", "read_file", "[1]"), ToolCall("c2", "read_file", '{"file_path":"x"}')]
    history.answer(Response(assistant(*calls), FinishReason.TOOL_CALLS, raw_finish="cancelled"))
    history.finish_tool(tool_result(calls[0], "no object", is_error=True), "failed")
    told = to_atif(history.entries)
    assert faults_in(told) == []
    first, second = told["steps"][-1]["tool_calls"]
    assert (first["arguments"], first["extra"]) == ({}, {"arguments_text": "[1]"})
    assert second["extra"] == {"outcome": "not_run"}
    assert [result["source_call_id"] for result in told["steps"][-1]["observation"]["results"]] == ["c1"]
    assert told["steps"][-1]["extra"] == {"broken_off": "cancelled"}


def test_pictures_are_named_by_their_hash() -> None:
    history, picture = lived(), Blob.of("image/png", b"not really")
    history.say(user("Look", picture))
    told = to_atif(history.entries)
    assert faults_in(told) == []
    assert told["steps"][-1]["extra"]["attachments"] == [{"media_type": "image/png", "sha256": picture.sha256, "bytes": 10}]


def test_agents_that_were_called_are_embedded_once_and_damaged_records_end() -> None:
    outer, inner = lived(), History(now_ms=lambda: NOW_MS)
    inner.start("20261115-120103-00000001", "f00d", (), ())
    inner.configure("small", deployment="anthropic")
    inner.say(user("asked by the other"))
    inner.answer(Response(assistant("Done."), FinishReason.STOP))
    head, *rest = inner.entries
    called = (msgspec.structs.replace(head, parent=ID, parent_call="call_1"), *rest)
    told = to_atif(outer.entries, called=lambda session_id: [called, outer.entries])
    assert faults_in(told) == []
    assert [each["trajectory_id"] for each in told["subagent_trajectories"]] == ["20261115-120103-00000001"]
    [result] = told["steps"][3]["observation"]["results"]
    assert result["subagent_trajectory_ref"] == [{"trajectory_id": "20261115-120103-00000001"}]


def test_a_session_in_which_nothing_was_said_has_no_trajectory() -> None:
    with pytest.raises(InputError, match="at least one step"):
        to_atif([])


def _acts() -> Iterator[st.SearchStrategy[Any]]:
    yield st.tuples(st.just("say"), st.text(max_size=5))
    yield st.tuples(st.just("note"), st.text(max_size=5))
    yield st.tuples(st.just("answer"), st.lists(st.sampled_from(['{"a":1}', "[", "7", ""]), max_size=2))
    yield st.tuples(st.sampled_from(["finish", "reject", "rewind", "model", "configure"]), st.integers(0, 9))


@hypothesis.given(st.lists(st.one_of(*_acts()), max_size=14))
def test_every_conversation_is_a_valid_trajectory(acts: list[tuple[str, Any]]) -> None:
    history, open_calls = lived(), []
    for number, (act, value) in enumerate(acts):
        match act:
            case "say":
                history.say(user(value))
            case "note":
                history.say(user(value), "loop")
            case "answer":
                calls = [ToolCall(f"call-{number}-{each}", "read_file", text) for each, text in enumerate(value)]
                open_calls += calls
                history.answer(Response(assistant("text", *calls), FinishReason.STOP, usage=Usage(number)))
            case "finish" if open_calls:
                history.finish_tool(tool_result(open_calls.pop(value % len(open_calls)), "done"))
            case "reject":
                history.reject(history.answer(Response(assistant(ToolCall(f"r{number}", "x")), FinishReason.STOP)), "empty")
            case "rewind":
                history.rewind(history.entries[value % len(history.entries)])
            case "model":
                history.change_model(f"model-{value}")
            case "configure":
                history.configure("m", f"system {value}")
            case _:
                pass
    try:
        told = to_atif(history.entries)
    except InputError:
        return
    assert faults_in(told) == []
