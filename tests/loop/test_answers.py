"""One answer: what counts as one, what is tried again, and what the record keeps of the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from dragoman.loop.history import History
from dragoman.loop.model import Model
from dragoman.loop.options import AnswerPolicy
from dragoman.loop.turn import InvalidAnswer, Turn
from dragoman.providers.retry import Retry, RetryPolicy
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.contracts import Provider
from dragoman.values.errors import OutputLimit, Refused, StreamBroken
from dragoman.values.events import Retrying, TextDelta, TurnEvent, TurnFinished
from dragoman.values.messages import Settings, ToolCall, assistant, tool_result, user
from dragoman.values.notes import CUT_NOTE, EMPTY_NOTE
from dragoman.values.record import AnswerRejected, Said


async def no_wait(_: float) -> None:
    pass


class Asking:
    """One turn, and the history it is held in."""

    def __init__(self, provider: Provider, history: History, policy: AnswerPolicy | None = None) -> None:
        self.history = history
        self.turn = Turn(Model.of(provider), history, policy)

    def answer(self) -> AsyncGenerator[TurnEvent, None]:
        return self.turn.run()


def talk(script: str, history: History | None = None, **policy: object) -> tuple[Asking, ScriptedProvider]:
    history = history or asked()
    provider = ScriptedProvider(script)
    return Asking(provider, history, AnswerPolicy(sleep=no_wait, **policy)), provider  # type: ignore[arg-type]


def asked(settings: Settings | None = None) -> History:
    history = History()
    history.configure("m", settings=settings)
    history.say(user("hello"))
    return history


def after_results() -> History:
    history = asked()
    call = ToolCall("c1", "read_file", "{}")
    history.say(assistant(call))
    history.finish_tool(tool_result(call, "text"))
    return history


def answer(chat: Asking) -> list[TurnEvent]:
    async def collect() -> list[TurnEvent]:
        async with aclosing(chat.answer()) as events:
            return [event async for event in events]

    return asyncio.run(collect())


def rejections(history: History) -> list[AnswerRejected]:
    return [entry for entry in history.entries if isinstance(entry, AnswerRejected)]


def test_an_answer_is_streamed_and_recorded_once() -> None:
    chat, _ = talk("text piece=2: Hello you")
    events = answer(chat)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Hello you"
    assert isinstance(events[-1], TurnFinished)
    assert [message.text for message in chat.history.view.messages] == ["hello", "Hello you"]


@pytest.mark.parametrize("empty", ["finish: stop", 'text: "  \\n "', "thought: hm"])
def test_an_empty_answer_is_tried_again_once_at_temperature_one(empty: str) -> None:
    """CHAT-7: one attempt and one retry after 500 ms, the retry at temperature 1. White space alone counts as empty."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    provider = ScriptedProvider(f"{empty}\n---\ntext: There.")
    chat = Asking(provider, asked(Settings(temperature=0.2)), AnswerPolicy(sleep=sleep))
    events = answer(chat)
    assert waits == [0.5]
    assert [request.settings.temperature for request in provider.requests] == [0.2, 1.0]
    assert [event for event in events if isinstance(event, Retrying)] == [Retrying(1, 0.5, "the model gave an empty answer")]
    assert [message.text for message in chat.history.view.messages] == ["hello", "There."]
    assert chat.history.request.settings.temperature == 0.2


def test_the_user_message_enters_the_record_once_whatever_the_attempts() -> None:
    chat, provider = talk("finish: stop\n---\nfinish: stop")
    with pytest.raises(InvalidAnswer, match="empty answer 2 times"):
        answer(chat)
    assert [entry.message.text for entry in chat.history.entries if isinstance(entry, Said)].count("hello") == 1
    assert len(provider.requests) == 2


def test_after_exhausted_retries_the_view_is_what_it_was() -> None:
    chat, _ = talk("finish: stop\n---\nfinish: stop")
    before = chat.history.view.messages
    with pytest.raises(InvalidAnswer):
        answer(chat)
    assert chat.history.view.messages == before


def test_attempts_delay_and_temperature_are_settings() -> None:
    chat, provider = talk("finish: stop\n---\nfinish: stop\n---\nfinish: stop\n---\ntext: At last.", attempts=4, temperature=0.7)
    answer(chat)
    assert [request.settings.temperature for request in provider.requests] == [None, 0.7, 0.7, 0.7]


@pytest.mark.parametrize("empty", ["finish: stop", 'text: "  \\n "', "thought: hm"])
def test_an_empty_answer_after_tool_results_is_asked_for_once_more_with_a_word_to_go_on(empty: str) -> None:
    """The same request would give the same answer: so the model is told."""
    chat, provider = talk(f"{empty}\n---\ntext: Done.", after_results())
    answer(chat)
    assert [request.messages[-1].text for request in provider.requests[1:]] == [EMPTY_NOTE]
    assert chat.history.view.messages[-1].text == "Done."
    assert all(message.parts for message in chat.history.view.messages), "nothing empty is sent"


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_an_answer_that_stays_empty_after_tool_results_is_an_error(attempts: int) -> None:
    chat, provider = talk("\n---\n".join(["finish: stop"] * attempts), after_results(), attempts=attempts)
    with pytest.raises(InvalidAnswer, match="empty answer after its tools had returned"):
        answer(chat)
    assert len(provider.requests) == attempts
    assert [message.text for message in provider.requests[-1].messages].count(EMPTY_NOTE) == (attempts > 1), "it is told once"


def test_whoever_wants_no_words_may_allow_an_empty_end_after_tool_results() -> None:
    chat, provider = talk("finish: stop", after_results(), allow_empty_end=True)
    answer(chat)
    assert len(provider.requests) == 1
    assert all(message.parts for message in chat.history.view.messages), "nothing empty is sent"


def test_an_empty_answer_to_a_prompt_is_never_an_end() -> None:
    chat, provider = talk("finish: stop\n---\ntext: Hi.", allow_empty_end=True)
    answer(chat)
    assert len(provider.requests) == 2


def test_an_empty_answer_with_another_reason_after_results_is_no_end() -> None:
    """Retries key on the reason, not on emptiness alone."""
    chat, provider = talk('finish: MALFORMED_FUNCTION_CALL "bad quotes"\n---\ntext: Done.', after_results())
    answer(chat)
    assert len(provider.requests) == 2


def test_a_malformed_call_is_tried_again_with_a_note_and_never_seen_as_a_call() -> None:
    """PV08: not executed, a corrective note, keyed on the reason."""
    chat, provider = talk('text: Let me\nfinish: MALFORMED_FUNCTION_CALL "print(x"\n---\ntext: Done.')
    events = answer(chat)
    assert isinstance(events[-1], TurnFinished)
    assert "print(x" in provider.requests[1].messages[-1].text
    assert [message.role for message in chat.history.view.messages] == ["user", "user", "assistant"]


def test_malformed_twice_is_a_failed_answer() -> None:
    chat, _ = talk("finish: MALFORMED_FUNCTION_CALL\n---\nfinish: MALFORMED_FUNCTION_CALL")
    with pytest.raises(InvalidAnswer, match="could not be read"):
        answer(chat)


def test_an_answer_cut_by_the_output_limit_runs_none_of_its_calls() -> None:
    """PV09: the model is told to write in smaller parts."""
    chat, provider = talk('call: write_file {"file_path": "a"}\nfinish: length\n---\ntext: In parts, then.')
    events = answer(chat)
    assert isinstance(events[-1], TurnFinished)
    assert chat.turn.response is not None
    assert chat.turn.response.message.calls == ()
    assert provider.requests[1].messages[-1].text == CUT_NOTE
    assert chat.history.view.open_calls == ()


def test_cut_calls_twice_end_in_the_output_limit() -> None:
    cut = 'call: write_file {"file_path": "a"}\nfinish: length'
    chat, _ = talk(f"{cut}\n---\n{cut}")
    with pytest.raises(OutputLimit):
        answer(chat)


def test_a_call_that_breaks_off_at_the_limit_is_cut_whatever_the_service_says() -> None:
    """Some servers say `tool_calls` though the output limit ended the answer: nothing is completed there."""
    half = 'call: write_file {"file_path": "a", "content": "b"\nusage: output=50\nfinish: tool_calls'
    chat, provider = talk(f"{half}\n---\ntext: In parts, then.", asked(Settings(max_output_tokens=50)))
    answer(chat)
    assert provider.requests[1].messages[-1].text == CUT_NOTE
    assert chat.history.view.open_calls == ()
    below, _ = talk(half, asked(Settings(max_output_tokens=51)))
    answer(below)
    assert [call.name for call in below.history.view.open_calls] == ["write_file"], "it is the scheduler's to judge"


def test_words_cut_by_the_output_limit_stand() -> None:
    chat, _ = talk("text: A long story\nfinish: length")
    answer(chat)
    assert chat.history.view.messages[-1].text == "A long story"


def test_thinking_that_used_up_the_limit_is_the_output_limit() -> None:
    chat, provider = talk("thought: hm hm hm\nfinish: length")
    with pytest.raises(OutputLimit):
        answer(chat)
    assert len(provider.requests) == 1


@pytest.mark.parametrize("reason", ["safety", "recitation", "refusal"])
def test_a_refusal_is_not_tried_again_and_leaves_no_call_open(reason: str) -> None:
    """PV13: shown with its reason, pending calls not executed, the session goes on."""
    chat, provider = talk(f'text: I\ncall: run_shell {{"command": "ls"}}\nfinish: {reason} "not this"')
    with pytest.raises(Refused, match="not this"):
        answer(chat)
    assert len(provider.requests) == 1
    assert chat.history.view.open_calls == ()
    assert [message.text for message in chat.history.view.messages] == ["hello"]


def test_what_came_of_a_cut_answer_is_kept_in_the_record_and_nowhere_else() -> None:
    """PV01: history has no half message; the record keeps the calls of a cut answer, and they are never sent again."""
    history = asked()
    script = 'text: Half a\ncall: run_shell {"command": "rm x"}\ncut\n---\ntext: Whole.'
    provider = Retry(ScriptedProvider(script), RetryPolicy(sleep=no_wait))
    events = answer(Asking(provider, history))
    assert any(isinstance(event, Retrying) for event in events)
    assert [message.text for message in history.view.messages] == ["hello", "Whole."]
    kept = [entry.message for entry in history.entries if isinstance(entry, Said) and entry.message.calls]
    assert [call.name for message in kept for call in message.calls] == ["run_shell"]
    assert len(rejections(history)) == 1


def test_a_stream_that_stays_broken_raises_and_leaves_the_view_as_it_was() -> None:
    chat, _ = talk("text: Half a\ncut")
    with pytest.raises(StreamBroken):
        answer(chat)
    assert [message.text for message in chat.history.view.messages] == ["hello"]
    assert [entry.message.text for entry in chat.history.entries if isinstance(entry, Said)] == ["hello", "Half a"]


def test_leaving_early_keeps_what_came_as_rejected() -> None:
    chat, _ = talk("text piece=1: abcdef")

    async def leave() -> None:
        async with aclosing(chat.answer()) as events:
            async for event in events:
                if isinstance(event, TextDelta) and event.text == "c":
                    break

    asyncio.run(leave())
    assert [entry.message.text for entry in chat.history.entries if isinstance(entry, Said)] == ["hello", "abc"]
    assert [message.text for message in chat.history.view.messages] == ["hello"]


@pytest.mark.parametrize(("script", "kept"), [('text: Half a\ncall: look {"what": "a"}\nstall', "Half a"), ("thought: hm\nstall", "")])
def test_what_came_before_a_cancel_is_handed_to_the_run(script: str, kept: str) -> None:
    chat, _ = talk(script)

    async def stop() -> None:
        async def listen() -> None:
            async with aclosing(chat.answer()) as events:
                async for _ in events:
                    heard.set()

        heard = asyncio.Event()
        listening = asyncio.create_task(listen())
        await heard.wait()
        await asyncio.sleep(0.05)
        listening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listening

    asyncio.run(stop())
    assert [message.text for message in chat.history.view.messages] == ["hello"], "the run records it"
    assert chat.turn.arrived.message().text == kept
    assert [call.name for call in chat.turn.arrived.message().calls] == (["look"] if "call" in script else [])


def test_the_prompt_is_synced_before_it_is_sent_and_the_answer_before_it_is_told() -> None:
    order: list[str] = []

    class Watching(History):
        async def sync(self) -> None:
            order.append(f"sync {len(self.entries)}")

    history = Watching()
    history.configure("m")
    history.say(user("hello"))
    provider = ScriptedProvider("text: Hi.")
    chat = Asking(provider, history)

    async def go() -> None:
        async with aclosing(chat.answer()) as events:
            async for event in events:
                order.append(type(event).__name__)  # noqa: PERF401

    asyncio.run(go())
    assert order[0] == "sync 2"
    assert order[-2:] == ["sync 3", "TurnFinished"]


def test_the_error_is_public_and_its_old_name_still_leads_to_it() -> None:
    import dragoman.errors

    assert dragoman.errors.InvalidAnswer is InvalidAnswer
