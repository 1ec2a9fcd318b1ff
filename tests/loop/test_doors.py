"""What the loop uses, without a loop: the scheduler, results, calls read out of text, friendly errors, the first message, both forms of a
session."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman as dm
from dragoman.calls import CallScheduler, call_guidance, function_response, read_calls
from dragoman.chat import initial_history, setup_text
from dragoman.errors import (
    BadRequest,
    Cancelled,
    ConnectionFailed,
    Forbidden,
    InputError,
    RateLimited,
    ServerError,
    TimedOut,
    Unauthorized,
    friendly_error,
)
from dragoman.events import ToolCallConfirmation, ToolCallRequested, ToolCallUpdated
from dragoman.messages import parse_thought
from dragoman.options import ApprovalOptions
from dragoman.stores import FileStore, sent_history, shown_history
from dragoman.testing import MemoryBlobs, ScriptedProvider

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452")
CALL = dm.ToolCall("c1", "tides", '{"harbour": "Muscat"}')


@dm.tool(read_only=True)
def tides(harbour: str) -> str:
    """When the tide is high."""
    return f"noon, at {harbour}"


@dm.tool(kind="edit")
def write_log(text: str) -> str:
    """Write into the log."""
    return f"wrote {text}"


@dm.tool(read_only=True)
def sink() -> str:
    """Fails."""
    raise RuntimeError("no water")


def states_of(calls: list[dm.ToolCall], approval: Any = "default", **options: Any) -> tuple[list[tuple[str, str]], Any, list[Any]]:
    seen: list[Any] = []

    async def carry_out() -> Any:
        async with CallScheduler([tides, write_log, sink], approval=approval, watch=seen.append) as scheduler:
            return await scheduler.run(calls, **options)

    reports = asyncio.run(carry_out())
    return [(event.call_id, event.state) for event in seen if isinstance(event, ToolCallUpdated)], reports, seen


# --- the scheduler


def test_a_call_passes_through_the_states_and_its_result_is_for_the_model() -> None:
    states, reports, _ = states_of([CALL])
    assert [state for _, state in states] == ["validating", "scheduled", "executing", "success"]
    assert reports[0].result == dm.tool_result(CALL, "noon, at Muscat")


def test_all_seven_states_can_be_seen() -> None:
    async def ask(call: dm.ToolCall, intent: dm.Intent) -> dm.Allow:
        return dm.Allow()

    seen: list[Any] = []

    async def carry_out() -> None:
        scheduler = CallScheduler([tides, write_log, sink, slow], approval=ApprovalOptions(ask=ask), watch=watch)
        holder.append(scheduler)
        await scheduler.run([CALL, dm.ToolCall("c2", "write_log", '{"text": "x"}'), dm.ToolCall("c3", "sink"), dm.ToolCall("c4", "slow")])
        await scheduler.aclose()

    @dm.tool(read_only=True)
    async def slow() -> str:
        """Never ends."""
        await asyncio.sleep(3600)
        return ""

    holder: list[CallScheduler] = []

    def watch(event: Any) -> None:
        seen.append(event)
        if isinstance(event, ToolCallUpdated) and event.call_id == "c4" and event.state == "executing":
            asyncio.get_running_loop().call_soon(holder[0].cancel, "c4")

    asyncio.run(carry_out())
    states = {event.state for event in seen if isinstance(event, ToolCallUpdated)}
    assert states >= {"validating", "scheduled", "executing", "awaiting_approval", "success", "error", "cancelled"}
    assert any(isinstance(event, ToolCallConfirmation) for event in seen)


def test_without_anybody_to_ask_what_writes_is_refused() -> None:
    states, reports, _ = states_of([dm.ToolCall("c1", "write_log", '{"text": "x"}')])
    assert states[-1] == ("c1", "refused")
    assert reports[0].result.is_error


def test_what_a_person_asked_for_is_told_so() -> None:
    for asked in (True, False):
        _, _, seen = states_of([CALL], client_initiated=asked)
        assert [event.client_initiated for event in seen if isinstance(event, ToolCallRequested)] == [asked]


def test_calls_with_one_id_are_told_apart_and_batches_follow_each_other() -> None:
    async def carry_out() -> Any:
        async with CallScheduler([tides]) as scheduler:
            first = await scheduler.run([CALL, CALL])
            second = await scheduler.run([CALL])
            assert await scheduler.run([]) == ()
            return [report.call.id for report in (*first, *second)], scheduler.history

    ids, history = asyncio.run(carry_out())
    assert len(set(ids)) == 3
    assert len(sent_history(history)) == 4


@pytest.mark.parametrize(
    "given",
    [
        [{"functionCall": {"id": "c1", "name": "tides", "args": {"harbour": "Muscat"}}}],
        [{"id": "c1", "type": "function", "function": {"name": "tides", "arguments": '{"harbour": "Muscat"}'}}],
        [{"type": "tool_use", "id": "c1", "name": "tides", "input": {"harbour": "Muscat"}}],
        [{"type": "function_call", "call_id": "c1", "name": "tides", "arguments": '{"harbour": "Muscat"}'}],
        {"role": "model", "parts": [{"functionCall": {"name": "tides", "args": {"harbour": "Muscat"}}}]},
        dm.assistant(CALL),
    ],
)
def test_calls_as_the_services_write_them_are_carried_out(given: Any) -> None:
    async def go() -> list[str]:
        async with CallScheduler([tides]) as scheduler:
            return [report.result.text for report in await scheduler.run(given)]

    assert asyncio.run(go()) == ["noon, at Muscat"]


@pytest.mark.parametrize(
    "given", [None, 5, "tides", ["tides"], [CALL, "tides"], [{"text": "tides"}], [{"functionResponse": {"name": "x"}}]]
)
def test_what_is_no_call_is_refused_in_words(given: Any) -> None:
    async def go() -> None:
        async with CallScheduler([tides]) as scheduler:
            with pytest.raises(InputError, match=r"holds something that is no call: give dragoman\.ToolCall"):
                await scheduler.run(given)
            assert scheduler.history.view.messages == ()

    asyncio.run(go())


# --- results


def test_a_text_becomes_the_result_of_its_call() -> None:
    assert function_response(CALL, "noon") == dm.tool_result(CALL, "noon")
    assert function_response(CALL, None).text == "(no output)"
    assert json.loads(function_response(CALL, {"tide": ["noon"]}).text) == {"tide": ["noon"]}


def test_a_list_keeps_its_parts_and_binary_data_is_kept_where_it_is_sent_from() -> None:
    blobs = MemoryBlobs()
    result = function_response(CALL, ["a picture", PNG, dm.FileRef("image/png", "https://example.org/a.png")], blobs=blobs)
    text, blob, file = result.content
    assert text == dm.Text("a picture")
    assert isinstance(blob, dm.Blob)
    assert blobs.get(blob.sha256) == PNG
    assert isinstance(file, dm.FileRef)


def test_binary_data_without_a_store_travels_with_the_result_until_it_is_sent() -> None:
    inline = {"inlineData": {"mimeType": "image/png", "data": b64encode(PNG).decode()}}
    provider = ScriptedProvider("call: tides {}\n---\ncall: tides {}\n---\ncall: tides {}\n---\ntext: I see.")
    with dm.chat.Chat(provider, tools=[{"name": "tides", "description": "Tides.", "parameters": {"type": "object"}}]) as chat:
        answer = chat.send_message_sync("How does it look?")
        for value in (PNG, dm.Media(PNG), inline):
            result = function_response(answer.calls[0], value)
            assert [part.sha256 for part in result.content if isinstance(part, dm.Blob)] == [sha256(PNG).hexdigest()]
            answer = chat.send_message_sync([result])
        assert answer.text == "I see."
        assert chat.blobs.get(sha256(PNG).hexdigest()) == PNG


def test_dicts_of_geminis_api_are_the_files_that_they_are() -> None:
    file = {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/a.png"}}
    assert function_response(CALL, ["look", file]).content == (dm.Text("look"), dm.FileRef("image/png", "https://example.org/a.png"))
    broken = function_response(CALL, {"inlineData": {"mimeType": "image/png", "data": "!"}})
    assert broken.is_error
    assert "is not base64" in broken.text
    assert json.loads(function_response(CALL, {"inlineData": "not a file", "more": 1}).text) == {"inlineData": "not a file", "more": 1}


def test_what_cannot_be_told_is_an_error_for_the_model() -> None:
    for value in (object(), ValueError("no water")):
        result = function_response(CALL, value)
        assert result.is_error
        assert "tides failed" in result.text or "cannot be written" in result.text


# --- calls as text


def test_a_call_in_a_fence_is_read_and_its_words_are_kept_or_dropped() -> None:
    text = '<think>Let me see.</think>I look.\n```json\n{"tool_call": {"name": "tides", "arguments": {"harbour": "Muscat"}}}\n```\n'
    parsed = read_calls(text, [tides.spec])
    assert [(call.name, call.args) for call in parsed.calls] == [("tides", {"harbour": "Muscat"})]
    assert parsed.text.strip() == "I look."
    assert parsed.original_text == text
    assert read_calls(text, [tides.spec], keep_text=False).text == ""
    assert read_calls("Nothing here.", [tides.spec], keep_text=False).text == "Nothing here."


def test_the_guidance_names_the_tools_and_the_form() -> None:
    guidance = call_guidance([tides.spec])
    assert "tides" in guidance
    assert "harbour" in guidance
    assert call_guidance([]) == ""


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert read_calls(text, [tides.spec]).original_text == text


def test_a_thought_is_parsed() -> None:
    assert parse_thought("**Tides** I look them up.") == ("Tides", "I look them up.")


# --- friendly errors


class Response:
    def __init__(self, status_code: int, content: bytes) -> None:
        self.status_code, self.content, self.headers = status_code, content, {"Retry-After": "7"}


class HTTPError(Exception):
    def __init__(self, response: Response) -> None:
        super().__init__("it failed")
        self.response = response


BODY = b'{"error": {"code": %d, "message": "API says no", "status": "X"}}'


@pytest.mark.parametrize(
    ("status", "kind"), [(400, BadRequest), (401, Unauthorized), (403, Forbidden), (429, RateLimited), (500, ServerError)]
)
def test_an_error_of_another_library_becomes_ours(status: int, kind: type[Exception]) -> None:
    theirs = HTTPError(Response(status, BODY % status))
    ours = friendly_error(theirs)
    assert type(ours) is kind
    assert "API says no" in str(ours)
    assert ours.__cause__ is theirs
    assert type(friendly_error(json.loads(BODY % status))) is kind
    assert type(friendly_error({"response": {"status": status, "data": json.loads(BODY % status)}})) is kind


def test_what_says_nothing_of_a_service_comes_back_as_it_is() -> None:
    for error in (ValueError("x"), None, {"a": 1}, InputError("x"), "text"):
        assert friendly_error(error) is error


def test_connections_time_outs_and_cancels_are_named() -> None:
    assert type(friendly_error(ConnectionResetError("gone"))) is ConnectionFailed
    assert type(friendly_error(TimeoutError())) is TimedOut
    assert type(friendly_error(asyncio.CancelledError())) is Cancelled


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_any_value_can_be_given(value: Any) -> None:
    friendly_error({"error": value, "status": value, "response": value})


# --- the first message


def test_the_initial_history_is_what_an_agent_tells_first(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("Muscat")
    extra = [dm.user("before"), dm.assistant("yes")]
    first, *rest = initial_history(tmp_path, extra, memory=[("AGENTS.md", "Be kind.")])
    assert rest == extra
    service = ScriptedProvider("text: hi")
    with dm.Agent(service, workspace=dm.WorkspaceOptions(tmp_path, describe=True, memory=[("AGENTS.md", "Be kind.")])) as agent:
        agent.run_sync("hello")
    told = service.requests[0].messages[0].text
    conditions = [line for line in told.splitlines() if line not in first.text.splitlines()]
    assert all(line.startswith("Questions: ") for line in conditions)
    assert [line for line in told.splitlines() if line not in conditions] == first.text.splitlines() or not conditions


def test_a_folder_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="nowhere"):
        setup_text("nowhere")


# --- both forms of a session


def test_a_session_in_both_forms(tmp_path: Path) -> None:
    with dm.Agent(ScriptedProvider("finish: stop\n---\ntext: Hello."), session=tmp_path) as agent:
        agent.run_sync("hi")
        history, name = agent.history, agent.session_id
    assert [message.text for message in sent_history(history)] == ["hi", "Hello."]
    assert [step.text for step in shown_history(history) if hasattr(step, "text")] == ["hi", "", "Hello."]
    store = FileStore(tmp_path)
    loaded = store.read(store.find(name, "").path)
    assert sent_history(loaded) == sent_history(loaded.entries) == sent_history(history)


def test_a_conversation_record_has_both_forms_too() -> None:
    record = {
        "sessionId": "s1",
        "projectHash": "p",
        "startTime": "2026-01-31T01:00:00Z",
        "lastUpdated": "2026-01-31T01:00:00Z",
        "messages": [
            {"id": "1", "timestamp": "2026-01-31T01:00:00Z", "type": "user", "content": "Hello"},
            {"id": "2", "timestamp": "2026-01-31T01:00:01Z", "type": "gemini", "content": "Hi there!"},
        ],
    }
    assert [(message.role, message.text) for message in sent_history(record)] == [("user", "Hello"), ("assistant", "Hi there!")]
    assert [step.text for step in shown_history(record) if hasattr(step, "text")] == ["Hello", "Hi there!"]


def test_a_record_may_be_given_as_the_documents_hand_it_on() -> None:
    """Their ResumedSessionData holds it, and convertSessionToHistoryFormats is given its messages."""
    record = {"sessionId": "xxx", "messages": [{"type": "user", "content": "Hello"}, {"type": "gemini", "content": "Hi there!"}]}
    forms: list[Any] = [record, {"conversation": record, "filePath": "/path/to/session.json"}, record["messages"]]
    for form in forms:
        assert [(message.role, message.text) for message in sent_history(form)] == [("user", "Hello"), ("assistant", "Hi there!")]
        assert [step.text for step in shown_history(form) if hasattr(step, "text")] == ["Hello", "Hi there!"]
    assert sent_history({**record, "messages": []}) == ()


def test_what_is_no_session_is_refused() -> None:
    for wrong in ("latest", 7, None, [None], [dm.user("hi")]):
        with pytest.raises(InputError, match="no session"):
            sent_history(wrong)  # type: ignore[arg-type]
    for strange in ({}, {"conversation": 3}, {"messages": [{"type": "alien"}]}, [{"role": "user", "content": "hi"}]):
        with pytest.raises(InputError, match=r"^this is no ConversationRecord: give one with `messages`"):
            shown_history(strange)  # type: ignore[arg-type]


DECLARED = {"name": "tides", "description": "When the tide is high.", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    "declared",
    [
        [DECLARED],
        [{"type": "function", "function": DECLARED}],
        [{"functionDeclarations": [DECLARED]}],
        {"functionDeclarations": [DECLARED]},
        [{"name": "tides", "description": DECLARED["description"], "input_schema": DECLARED["parameters"]}],
    ],
)
def test_tools_may_be_declared_as_any_service_has_them_where_calls_are_text(declared: Any) -> None:
    assert "tides()\n  When the tide is high." in call_guidance(declared)
    (call,) = read_calls('<tool_call>{"name": "tides", "arguments": {}}</tool_call>', declared).calls
    assert call.name == "tides"


def test_what_declares_no_tool_and_what_is_no_dialect_is_refused_where_calls_are_text() -> None:
    for strange in ([3], "tides", [tides]):
        for use in (call_guidance, lambda tools: read_calls("hi", tools)):
            with pytest.raises(InputError, match="this declares no tool: "):
                use(strange)  # type: ignore[arg-type]
    for use in (lambda: read_calls("hi", [], dialect="zz"), lambda: call_guidance([], "zz")):
        with pytest.raises(InputError, match="no dialect is called 'zz'"):
            use()
