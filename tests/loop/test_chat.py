"""A conversation without the loop: one model round for each message, and nothing runs unless it is asked for."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman as dm
from dragoman.chat import Chat
from dragoman.errors import InputError, ServerError
from dragoman.events import (
    ErrorRaised,
    Retrying,
    StreamInvalid,
    TextDelta,
    ThoughtDelta,
    ToolCallFinished,
    ToolCallRequested,
    ToolCallUpdated,
    TurnFinished,
    UserCancelled,
)
from dragoman.options import AnswerPolicy, Limits
from dragoman.testing import MockServer, ScriptedProvider

CALL = 'text: I look.\ncall id=c1: tides {"harbour": "Muscat"}\n---\ntext: At noon.'
TIDES: dict[str, Any] = {
    "name": "tides",
    "description": "When the tide is high.",
    "parameters": {"type": "object", "properties": {"harbour": {"type": "string"}}, "required": ["harbour"]},
}
AT_ONCE = Limits(answers=AnswerPolicy(delay_s=0))


@dm.tool(read_only=True)
def tides(harbour: str) -> str:
    """When the tide is high."""
    return f"noon, at {harbour}"


def provider(script: str) -> ScriptedProvider:
    return ScriptedProvider(script)


def texts(messages: tuple[dm.Message, ...]) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages]


def test_each_message_is_sent_with_what_was_said_before() -> None:
    service = provider("text: Hello.\n---\ntext: You said hi.")

    async def talk() -> None:
        async with Chat(service, system="Be short.") as chat:
            assert (await chat.send_message("hi")).text == "Hello."
            assert (await chat.send_message("what did I say?")).text == "You said hi."
            assert chat.get_history(curated=True) == chat.get_history()

    asyncio.run(talk())
    assert texts(service.requests[1].messages) == [("user", "hi"), ("assistant", "Hello."), ("user", "what did I say?")]
    assert service.requests[1].system == "Be short."


def test_the_caller_carries_out_the_calls_and_sends_their_results() -> None:
    service = provider(CALL)

    async def talk() -> str:
        async with Chat(service, tools=[TIDES]) as chat:
            answer = await chat.send_message("when is high tide?")
            assert [call.name for call in answer.calls] == ["tides"]
            assert chat.open_calls == answer.calls
            return (await chat.send_message(dm.tool_result(answer.calls[0], "at noon"))).text

    assert asyncio.run(talk()) == "At noon."
    assert service.requests[1].messages[-1].results[0].text == "at noon"
    assert [spec.name for spec in service.requests[1].tools] == ["tides"]


@pytest.mark.parametrize(
    "declared",
    [
        TIDES,
        {"type": "function", "function": TIDES},
        {"functionDeclarations": [TIDES]},
        {"name": "tides", "description": TIDES["description"], "input_schema": TIDES["parameters"]},
        dm.ToolSpec.of("tides", TIDES["description"], TIDES["parameters"]),
    ],
)
def test_a_tool_may_be_declared_as_any_service_has_it(declared: Any) -> None:
    service = provider(CALL)
    with Chat(service, tools=[declared]) as chat:
        assert chat.send_message_sync("when?").calls[0].args == {"harbour": "Muscat"}
    assert service.requests[0].tools[0].schema == TIDES["parameters"]


def test_calls_can_be_run_as_a_run_does_and_the_conversation_goes_on() -> None:
    service, seen = provider(CALL), []

    async def talk() -> str:
        async with Chat(service, tools=[tides]) as chat:
            await chat.send_message("when is high tide?")
            reports = await chat.run_calls(watch=seen.append)
            assert [report.result.text for report in reports] == ["noon, at Muscat"]
            return (await chat.send_message()).text

    assert asyncio.run(talk()) == "At noon."
    assert [event.state for event in seen if isinstance(event, ToolCallUpdated)] == ["validating", "scheduled", "executing", "success"]
    assert any(isinstance(event, ToolCallFinished) for event in seen)


def test_a_tool_that_is_only_declared_goes_on_waiting() -> None:
    async def talk() -> None:
        async with Chat(provider(CALL), tools=[TIDES]) as chat:
            answer = await chat.send_message("when?")
            assert await chat.run_calls() == ()
            assert chat.open_calls == answer.calls
            assert (await chat.send_message(dm.tool_result(answer.calls[0], "noon"))).text == "At noon."

    asyncio.run(talk())


def test_words_while_calls_wait_are_refused_and_nothing_is_lost() -> None:
    async def talk() -> None:
        async with Chat(provider(CALL), tools=[TIDES]) as chat:
            answer = await chat.send_message("when?")
            before = chat.get_history()
            with pytest.raises(InputError, match=r"wait for their results: tides \(c1\); send dm.tool_result"):
                await chat.send_message("and tomorrow?")
            with pytest.raises(InputError, match=r"no call waits for these results: tides \(c9\)"):
                await chat.send_message([dm.ToolResult("c9", "tides"), dm.tool_result(answer.calls[0], "noon")])
            assert chat.get_history() == before
            both = [dm.tool_result(answer.calls[0], "noon"), "and tomorrow?"]
            assert (await chat.send_message(both)).text == "At noon."

    asyncio.run(talk())


def test_an_answer_as_it_comes() -> None:
    async def talk() -> list[Any]:
        async with Chat(provider("thought: Hm.\ntext: One\ntext: two")) as chat:
            events = [event async for event in chat.send_message_stream("count")]
            assert chat.last is not None
            assert chat.last.text == "Onetwo"
            return events

    kinds = [type(event) for event in asyncio.run(talk())]
    assert kinds[-1] is TurnFinished
    assert {ThoughtDelta, TextDelta} <= set(kinds)


def test_an_empty_answer_is_asked_for_once_more_and_stays_in_the_comprehensive_history() -> None:
    async def talk() -> None:
        async with Chat(provider("finish: stop\n---\ntext: Here."), limits=AT_ONCE) as chat:
            events = [event async for event in chat.turn("hello")]
            assert any(isinstance(event, Retrying) for event in events)
            assert texts(chat.get_history(curated=True)) == [("user", "hello"), ("assistant", "Here.")]
            assert len(chat.get_history()) == 3

    asyncio.run(talk())


def test_a_turn_tells_what_goes_wrong_and_a_message_raises_it() -> None:
    async def talk() -> None:
        async with Chat(provider('error: 500 "Out of order"\n---\nerror: 500 "Out of order"\n---\ntext: Back.')) as chat:
            turn = chat.turn("hello")
            events = [event async for event in turn]
            assert isinstance(events[-1], ErrorRaised)
            assert isinstance(turn.error, ServerError)
            with pytest.raises(ServerError):
                await chat.send_message("hello")
            assert (await chat.send_message()).text == "Back."
            assert texts(chat.get_history(curated=True)) == [("user", "hello"), ("assistant", "Back.")]

    asyncio.run(talk())


def test_no_valid_answer_ends_in_an_event_of_its_own() -> None:
    async def talk() -> list[Any]:
        async with Chat(provider("finish: stop\n---\nfinish: stop"), limits=AT_ONCE) as chat:
            return [type(event) async for event in chat.turn("hello")]

    assert asyncio.run(talk())[-2:] == [StreamInvalid, ErrorRaised]


def test_a_turn_can_be_cancelled_and_what_came_stays() -> None:
    async def talk() -> None:
        async with Chat(provider("text: Half of it\nstall\n---\ntext: The rest.")) as chat:
            turn, kinds = chat.turn("tell me"), []
            async for event in turn:
                kinds.append(type(event))
                if isinstance(event, TextDelta):
                    turn.cancel()
            assert kinds[-1] is UserCancelled
            assert texts(chat.get_history(curated=True))[-1] == ("assistant", "Half of it")
            assert (await chat.send_message("go on")).text == "The rest."

    asyncio.run(talk())


def test_leaving_the_loop_early_ends_the_turn() -> None:
    async def talk() -> None:
        async with Chat(provider("text: Half of it\nstall\n---\ntext: Yes.")) as chat:
            async with aclosing(chat.send_message_stream("tell me")) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        break
            assert (await chat.send_message("there?")).text == "Yes."

    asyncio.run(talk())


def test_two_messages_at_once_are_refused() -> None:
    async def talk() -> None:
        async with Chat(provider("text: One\nstall\n---\ntext: x")) as chat:
            turn = chat.turn("one")
            events = aiter(turn)
            await anext(events)
            with pytest.raises(InputError):
                await chat.send_message("two")
            turn.cancel()
            assert [type(event) async for event in events][-1] is UserCancelled
            assert chat.get_history()[0].text == "one"
            assert all(message.text != "two" for message in chat.get_history())

    asyncio.run(talk())


def test_history_can_be_given_added_to_replaced_and_cleared() -> None:
    service = provider("text: Four.\n---\ntext: Nine.\n---\ntext: Fresh.")
    with Chat(service, history=[dm.user("2 + 2?"), dm.assistant("4"), dm.user("sure?"), dm.assistant("yes")]) as chat:
        chat.add_history(dm.user("By the way: I like squares."))
        assert chat.send_message_sync("and in words?").text == "Four."
        assert [message.text for message in service.requests[0].messages] == [
            "2 + 2?",
            "4",
            "sure?",
            "yes",
            "By the way: I like squares.",
            "and in words?",
        ]
        chat.set_history([dm.user("3 × 3?")])
        chat.send_message_sync("in words?")
        assert [message.text for message in service.requests[1].messages] == ["3 × 3?", "in words?"]
        assert [message.text for message in chat.get_history()][:2] == ["3 × 3?", "in words?"]
        chat.clear()
        assert chat.get_history() == chat.get_history(curated=True) == ()
        chat.send_message_sync("anew")
        assert [message.text for message in service.requests[2].messages] == ["anew"]
        assert [message.text for message in chat.get_history()][:1] == ["anew"]
        assert "2 + 2?" in [message.text for message in chat.history.transcript()], "the record keeps what was cleared"


def test_a_history_may_end_in_a_call_that_waits() -> None:
    call = dm.ToolCall("c1", "tides", '{"harbour": "Muscat"}')
    with Chat(provider("text: At noon."), tools=[TIDES], history=[dm.user("when?"), dm.assistant(call)]) as chat:
        assert chat.open_calls == (call,)
        with pytest.raises(InputError, match="wait for their results"):
            chat.send_message_sync("well?")
        assert chat.send_message_sync(dm.tool_result(call, "noon")).text == "At noon."


def test_a_call_in_the_middle_of_a_history_gets_a_result_that_says_so() -> None:
    service = provider("text: Yes.")
    call = dm.ToolCall("c1", "tides", "{}")
    with Chat(service, history=[dm.user("when?"), dm.assistant(call), dm.user("never mind"), dm.assistant("fine")]) as chat:
        chat.send_message_sync("there?")
    assert service.requests[0].messages[2].results[0].is_error


def test_a_wrong_role_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="system"):
        Chat(provider("text: x"), history=[dm.Message("system", (dm.Text("be short"),))])  # type: ignore[arg-type]


def test_tools_are_set_for_the_conversation_and_sent_with_every_request() -> None:
    service = provider("text: a\n---\ntext: b\n---\ntext: c")
    with Chat(service, tools=[tides]) as chat:
        chat.send_message_sync("one")
        chat.send_message_sync("two")
        chat.set_tools([{"name": "winds", "description": "Where the wind blows."}])
        chat.send_message_sync("three")
    assert [[spec.name for spec in request.tools] for request in service.requests] == [["tides"], ["tides"], ["winds"]]


def test_what_declares_no_tool_is_refused_in_words() -> None:
    for wrong in ({"tool": "tides"}, {"functionDeclarations": ["tides"]}):
        with pytest.raises(InputError, match="declares no tool"):
            Chat(provider("text: x"), tools=[wrong])


def test_the_setup_message_stands_in_front(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("Muscat")
    service = provider("text: a\n---\ntext: b")
    with Chat(service, workspace=tmp_path) as chat:
        chat.send_message_sync("hello")
        chat.send_message_sync("again")
    first, *rest = service.requests[1].messages
    assert first.role == "user"
    assert "log.txt" in first.text
    assert first.text.endswith("My setup is complete. I will provide my first command in the next turn.")
    assert texts(tuple(rest)) == [("user", "hello"), ("assistant", "a"), ("user", "again")]


@pytest.mark.parametrize(
    "results",
    [
        {"role": "user", "parts": [{"functionResponse": {"name": "tides", "response": {"output": text}}} for text in ("one", "two")]},
        [{"role": "tool", "tool_call_id": "tides", "content": text} for text in ("one", "two")],
        [{"role": "tool", "tool_call_id": f"call-{n}", "content": text} for n, text in ((2, "two"), (1, "one"))],
        [dm.ToolResult("tides", "tides", (dm.Text("one"),)), dm.ToolResult("call-2", "tides", (dm.Text("two"),))],
    ],
)
@pytest.mark.parametrize("added", [False, True])
def test_results_without_the_ids_of_their_calls_belong_to_calls_of_that_name_in_turn(results: Any, added: bool) -> None:
    service = provider("call: tides {}\ncall: tides {}\n---\ntext: Fine.")
    with Chat(service, tools=[{"name": "tides", "description": "Tides.", "parameters": {"type": "object"}}]) as chat:
        ids = [call.id for call in chat.send_message_sync("When?").calls]
        assert ids == ["call-1", "call-2"]
        if added:
            for message in [results] if isinstance(results, dict) else [dm.user(*results)]:
                chat.add_history(message)
            chat.send_message_sync()
        else:
            chat.send_message_sync(results)
    told = service.requests[1].messages[-1].results
    assert [(each.call_id, each.name, each.text) for each in told] == [("call-1", "tides", "one"), ("call-2", "tides", "two")]


def test_a_result_of_no_call_is_refused() -> None:
    with Chat(provider("call: shoot {}\n---\ntext: Fine."), tools=[SHOOT]) as chat:
        call = chat.send_message_sync("Look.").calls[0]
        for strange in (dm.ToolResult("zz", "shoot"), dm.ToolResult("zz", ""), dm.tool_result(call, "once more")):
            with pytest.raises(InputError, match="no call waits for these results"):
                chat.send_message_sync([dm.tool_result(call, "seen"), strange])
        with pytest.raises(InputError, match=r"there is a call in it \(shoot\), and only the model calls"):
            chat.send_message_sync([call])
    with pytest.raises(InputError, match="a prompt holds the result of a call"), dm.Agent(provider("text: Fine.")) as agent:
        agent.run_sync({"role": "tool", "tool_call_id": "zz", "content": "seen"})


def test_the_services_own_search_is_no_tool_that_is_declared() -> None:
    for search in ({"googleSearch": {}}, {"google_search": {}}, {"type": "web_search_20250305", "name": "web_search"}):
        with pytest.raises(InputError, match="write search='grounding' instead"):
            Chat(provider("text: Fine."), tools=[search])


SHOOT = {"name": "shoot", "description": "Take a picture.", "parameters": {"type": "object", "properties": {}}}


def test_a_chat_is_kept_and_gone_on_with(tmp_path: Path) -> None:
    with Chat(provider("text: Hello."), session=tmp_path / "sessions", history=[dm.user("before"), dm.assistant("yes")]) as chat:
        chat.send_message_sync("hi")
        name = chat.session_id
    service = provider("text: Again.")
    options = dm.SessionOptions(tmp_path / "sessions", resume=name)
    with Chat(service, session=options) as chat:
        chat.send_message_sync("and now?")
    assert [message.text for message in service.requests[0].messages] == ["before", "yes", "hi", "Hello.", "and now?"]
    with pytest.raises(InputError, match="has a conversation already"):
        Chat(provider("text: x"), session=options, history=[dm.user("other")])


def test_images_in_results_are_kept_with_the_session(tmp_path: Path) -> None:
    png = bytes.fromhex("89504e470d0a1a0a0000000d49484452")
    merged = [
        dm.assistant(dm.ToolCall("m1", "shoot", "{}")),
        dm.Message("user", (dm.tool_result(dm.ToolCall("m1", "shoot", "{}"), dm.Media(png + b"2")),)),
        dm.assistant("Seen."),
    ]
    with Chat(provider("call: shoot {}\n---\ntext: I see."), session=tmp_path / "sessions", tools=[SHOOT]) as chat:
        answer = chat.send_message_sync("How does it look?")
        chat.send_message_sync([dm.tool_result(answer.calls[0], dm.Media(png))])
        chat.merge_history([*chat.get_history(curated=True), dm.user("And now?"), *merged])
        name = chat.session_id
    with Chat(provider("text: x"), session=dm.SessionOptions(tmp_path / "sessions", resume=name)) as chat:
        kept = [part for message in chat.get_history() for result in message.results for part in result.content]
        assert [chat.blobs.get(part.sha256) for part in kept if isinstance(part, dm.Blob)] == [png, png + b"2"]


def test_an_agents_history_set_before_its_first_run_is_kept_too(tmp_path: Path) -> None:
    with dm.Agent(provider("text: Hello."), session=tmp_path / "sessions") as agent:
        agent.set_history([dm.user("before"), dm.assistant("yes")])
        agent.run_sync("hi")
        assert agent.not_saved == ""
        name = agent.session_id
    with dm.Agent(service := provider("text: Again."), session=dm.SessionOptions(tmp_path / "sessions", resume=name)) as agent:
        agent.run_sync("and now?")
    assert [message.text for message in service.requests[0].messages] == ["before", "yes", "hi", "Hello.", "and now?"]


def test_settings_hold_for_one_message() -> None:
    service = provider("text: a\n---\ntext: b")
    with Chat(service) as chat:
        chat.send_message_sync("one", settings=dm.Settings(temperature=0.0), instructions="Be short.")
        chat.send_message_sync("two")
    assert [(request.settings.temperature, request.system) for request in service.requests] == [(0.0, "Be short."), (None, "")]


def test_settings_of_a_message_are_laid_over_those_of_the_chat() -> None:
    """`max_output_tokens` and `top_p` vanished from what was sent."""

    async def talk() -> list[Any]:
        async with dm.testing.MockServer("text: a\n---\ntext: b") as server:
            model = dm.connect("gemini/gemini-2.5-pro", base_url=server.url, key="any")
            async with Chat(model, settings=dm.Settings(top_p=0.9, max_output_tokens=1_234, stop=("END",))) as chat:
                await chat.send_message("one", settings=dm.Settings(temperature=0.2, max_output_tokens=99))
                await chat.send_message("two")
            return [exchange.body["generationConfig"] for exchange in server.requests]

    first, second = asyncio.run(talk())
    assert first | {"temperature": 0.2, "topP": 0.9, "maxOutputTokens": 99, "stopSequences": ["END"]} == first
    assert second | {"topP": 0.9, "maxOutputTokens": 1_234, "stopSequences": ["END"]} == second
    assert "temperature" not in second


_NUMBERS = {"temperature": st.floats(0, 2), "top_p": st.floats(0, 1), "top_k": st.integers(1, 9), "max_output_tokens": st.integers(1, 99)}
_SOME_SETTINGS = st.fixed_dictionaries(
    {}, optional={**_NUMBERS, "thinking": st.sampled_from(["low", "high"]), "tool_choice": st.sampled_from(["none", "required"])}
)


@given(_SOME_SETTINGS, _SOME_SETTINGS)
def test_what_a_message_says_holds_and_what_it_does_not_say_stays(of_chat: dict[str, Any], of_message: dict[str, Any]) -> None:
    with Chat(service := provider("text: a\n---\ntext: b"), settings=dm.Settings(**of_chat)) as chat:
        chat.send_message_sync("one", settings=dm.Settings(**of_message))
        chat.send_message_sync("two")
    assert [request.settings for request in service.requests] == [dm.Settings(**of_chat | of_message), dm.Settings(**of_chat)]


@pytest.mark.parametrize(("service", "path"), [("gemini", ""), ("openai", "/v1"), ("anthropic", "")])
def test_the_same_on_every_service(service: str, path: str) -> None:
    """Over HTTP, with the validator of each service in between."""

    async def talk() -> None:
        async with MockServer(CALL) as server, Chat(dm.connect(service, base_url=server.url + path, key="any"), tools=[TIDES]) as chat:
            answer = await chat.send_message("when is high tide?")
            done = await chat.send_message(dm.tool_result(answer.calls[0], "at noon"))
            assert done.text == "At noon."

    asyncio.run(talk())


def test_requested_calls_are_told_when_the_answer_is_whole() -> None:
    async def talk() -> list[Any]:
        async with Chat(provider(CALL), tools=[TIDES]) as chat:
            return [event async for event in chat.turn("when?")]

    events = asyncio.run(talk())
    assert isinstance(events[-1], ToolCallRequested)
    assert isinstance(events[-2], TurnFinished)


def test_searching_where_the_service_cannot_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(InputError, match="search"):
        Chat(dm.connect("openai", key="any"), search="grounding")
    with Chat(dm.connect("openai", key="any")) as chat, pytest.raises(InputError, match="search"):
        chat.send_message_sync("what is new?", search="grounding")


def test_messages_may_be_those_of_another_api() -> None:
    service = provider("text: Yes.\n---\ntext: No.")
    gemini = [{"role": "user", "parts": [{"text": "你好"}]}, {"role": "model", "parts": [{"text": "您好"}]}]
    with Chat(service, history=gemini) as chat:
        chat.add_history({"role": "user", "content": "By the way."})
        chat.send_message_sync({"role": "user", "parts": [{"text": "在吗？"}]})
        assert texts(service.requests[0].messages) == [
            ("user", "你好"),
            ("assistant", "您好"),
            ("user", "By the way."),
            ("user", "在吗？"),
        ]
        with pytest.raises(InputError):
            chat.send_message_sync({"role": "user", "words": "hello"})  # type: ignore[arg-type]
        with pytest.raises(InputError, match="messages\\[1\\]"):
            chat.set_history([dm.user("a"), "b"])  # type: ignore[list-item]


def test_a_services_own_history_is_merged_once() -> None:
    service = provider("text: Yes.")
    own = [
        dm.user("when?"),
        dm.assistant(dm.ToolCall("c1", "tides")),
        dm.Message("user", (dm.ToolResult("c1", "tides", (dm.Text("noon"),)),)),
        dm.assistant("At noon."),
    ]
    with Chat(service, history=own[:1]) as chat:
        assert len(chat.merge_history(own)) == 3
        assert chat.merge_history(own) == ()
        assert chat.get_history(curated=True) == tuple(own)


def test_a_history_that_is_no_list_of_messages_is_refused_in_words() -> None:
    for history in (None, 3, "hello", {"role": "user", "content": "hello"}, dm.user("hello")):
        with pytest.raises(InputError, match=r"^messages must be a list of messages, such as \[dragoman.user\(…\)\], not "):
            Chat(provider("text: Fine."), history=history)  # type: ignore[arg-type]
        with Chat(provider("text: Fine.")) as chat:
            for take in (chat.set_history, chat.merge_history):
                with pytest.raises(InputError, match=r"^messages must be a list of messages"):
                    take(history)  # type: ignore[arg-type]


class OfAnSdk:
    """A message as the SDK of a service has it."""

    def model_dump(self) -> dict[str, Any]:
        return {"role": "model", "parts": [{"text": "At noon."}]}


def test_a_message_of_an_sdk_is_one_wherever_history_is_given() -> None:
    given: list[Any] = [dm.user("When?"), OfAnSdk()]
    with Chat(provider("text: Fine."), history=given) as chat:
        assert texts(chat.get_history()) == [("user", "When?"), ("assistant", "At noon.")]
        chat.add_history(given[1])
        chat.set_history(given)
        assert texts(chat.get_history()) == [("user", "When?"), ("assistant", "At noon.")]


def test_a_prompt_that_says_nothing_is_refused() -> None:
    with Chat(service := provider("text: Fine.")) as chat:
        for prompt in ("", " \n", [], [""]):
            with pytest.raises(InputError, match="the prompt is empty"):
                chat.send_message_sync(prompt)
    assert service.requests == []


def test_a_way_of_searching_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="search must be one of 'off', 'tool', 'grounding', not True"):
        Chat(provider("text: Fine."), search=True)  # type: ignore[arg-type]


def test_an_answer_among_what_is_sent_is_refused_with_where_it_belongs() -> None:
    with Chat(provider("text: Fine.")) as chat, pytest.raises(InputError, match="with set_history, or as history= of a Chat"):
        chat.send_message_sync([dm.user("hi"), dm.assistant("hello")])


@pytest.mark.parametrize("is_added", [False, True])
def test_a_result_under_another_tools_name_is_sent_under_that_of_its_call(is_added: bool) -> None:
    """Gemini refuses one whose name is not the call's."""
    result = {"functionResponse": {"id": "c1", "name": "tide", "response": {"output": "noon"}}}

    async def talk() -> None:
        async with MockServer(CALL) as server:
            async with Chat(dm.connect("gemini", base_url=server.url, key="any"), tools=[TIDES]) as chat:
                await chat.send_message("when?")
                if is_added:
                    chat.add_history(result)
                answer = await chat.send_message(None if is_added else result)
                assert answer.text == "At noon."
            assert server.requests[1].body["contents"][-1]["parts"][0]["functionResponse"]["name"] == "tides"

    asyncio.run(talk())


@pytest.mark.parametrize("strange", [[dm.ToolCall("zz", "tides", "{}")], "c1", None, [{"functionCall": {"name": "tides"}}]])
def test_what_is_no_waiting_call_is_not_run(strange: Any) -> None:
    with Chat(provider(CALL), tools=[tides]) as chat:
        answer = chat.send_message_sync("when?")
        if strange is None:
            assert len(chat.run_calls_sync(strange)) == 1
            strange = answer.calls  # which wait no longer
        with pytest.raises(InputError, match=r"is none of the calls that wait; chat.open_calls has them"):
            chat.run_calls_sync(strange)


@pytest.mark.parametrize("words", [[], ["and tomorrow?"]])
def test_results_sent_once_more_after_a_failure_are_not_said_twice(words: list[str]) -> None:
    service = provider("call id=c1: tides {}\n---\nerror: 400\n---\nerror: 500\n---\ntext: At noon.")

    async def talk() -> None:
        async with Chat(service, tools=[TIDES]) as chat:
            answer = await chat.send_message("when?")
            message = [{"functionResponse": {"name": "tides", "response": {"output": "noon"}}}, *words]
            for _ in range(2):
                with pytest.raises(dm.ProviderError):
                    await chat.send_message(message)
            with pytest.raises(InputError, match="no call waits for these results"):
                await chat.send_message([dm.tool_result(answer.calls[0], "midnight"), *words])
            assert (await chat.send_message(message)).text == "At noon."
            with pytest.raises(InputError, match="no call waits for these results"):
                await chat.send_message(message)

    asyncio.run(talk())
    assert [request.messages for request in service.requests[1:]] == [service.requests[3].messages] * 3
    assert [len(message.results) for message in service.requests[3].messages] == [0, 0, 1, *([0] if words else [])]


def test_an_added_answer_that_says_nothing_is_in_the_comprehensive_history_alone() -> None:
    with Chat(service := provider("text: Yes.")) as chat:
        for message in (dm.user("q"), dm.assistant(""), {"role": "model", "parts": []}):
            chat.add_history(message)
        assert texts(chat.get_history()) == [("user", "q"), ("assistant", ""), ("assistant", "")]
        assert texts(chat.get_history(curated=True)) == [("user", "q")]
        chat.send_message_sync("well?")
    assert texts(service.requests[0].messages) == [("user", "q"), ("user", "well?")]
