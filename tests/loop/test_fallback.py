"""A service that keeps refusing: another model of the chain goes on, is told, is kept, and is the one that is paid."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from destinations import rules_of
from dragoman.loop.agent import Agent
from dragoman.loop.history import History
from dragoman.loop.options import AnswerPolicy, FallbackOptions, Limits
from dragoman.providers.catalog import builtin_catalog
from dragoman.providers.connect import connect
from dragoman.providers.retry import Retry, RetryPolicy
from dragoman.testing.mock.server import MockServer
from dragoman.testing.script_steps import ScriptedAnswer, answer
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.contracts import BlobStore, Provider
from dragoman.values.errors import InputError, Overloaded, ProviderError, QuotaExhausted, RateLimited, Refused, Unauthorized
from dragoman.values.events import ContextCompressed, ModelSwitched, NoticeGiven, Retrying, StreamEvent, TextDelta, TurnEvent
from dragoman.values.messages import Blob, Request, Settings, Text, ToolCall, assistant, tool_result, user
from dragoman.values.profile import Profile
from dragoman.values.record import Configured, ModelChanged, Pruned, Said
from dragoman.values.usage import Prices
from scenarios.workshop import PlainTool, agent_for, check_record, events_of, no_wait, play

GEMINI, CLAUDE, GPT, GPT_TEXT = "gemini/gemini-3.8-flash", "anthropic/claude-opus-5", "openai/gpt-4.1", "ollama/anything"
DAILY = "error: 429 quota_id=GenerateRequestsPerDayPerProjectPerModel-FreeTier"
POLICY = RetryPolicy(sleep=no_wait)
BASE = {"gemini": "", "anthropic": "", "openai": "/v1", "ollama": "/v1"}


class Services:
    """One loopback service for each deployment, each with its own script, and agents that know them by name."""

    def __init__(self, servers: dict[str, MockServer], folder: Path) -> None:
        self.servers = servers
        self.folder = folder
        self.connected: list[str] = []

    def connect(self, name: str, blobs: BlobStore) -> Provider:
        self.connected.append(name)
        deployment = name.partition("/")[0]
        if deployment not in self.servers:
            raise Unauthorized(f"no key for {deployment}")
        url = self.servers[deployment].url + BASE[deployment]
        return connect(name, key="key-for-tests", base_url=url, env={}, blobs=blobs, retry=POLICY)

    def agent(self, model: str = "", fallback: Any = (), **options: Any) -> Agent:
        limits = Limits(answers=AnswerPolicy(sleep=no_wait))
        settled = {"builtin": False, "describe": False, "system": "", "workspace": self.folder, "limits": limits}
        return make_agent(model, connect=self.connect, fallback=fallback, **(settled | options))

    def models_asked(self, deployment: str) -> int:
        return len(self.servers[deployment].requests)

    def check(self) -> None:
        """Every request was one that the real service takes."""
        for name, server in self.servers.items():
            for exchange in server.requests:
                assert exchange.violation is None, (name, exchange.violation)


@asynccontextmanager
async def services(folder: Path, **scripts: str) -> AsyncGenerator[Services, None]:
    servers: dict[str, MockServer] = {}
    models = {"gemini": GEMINI, "anthropic": CLAUDE, "openai": GPT, "ollama": GPT_TEXT}
    try:
        for name, script in scripts.items():
            deployment, model = builtin_catalog().find(models[name])
            profile = deployment.models.get(model, deployment.profile)
            servers[name] = await MockServer(script, rules=rules_of(deployment, profile)).__aenter__()
        yield Services(servers, folder)
    finally:
        for server in servers.values():
            await server.aclose()


def switches(events: list[TurnEvent]) -> list[tuple[str, str]]:
    return [(event.previous, event.model) for event in events if isinstance(event, ModelSwitched)]


def notices(events: list[TurnEvent]) -> list[str]:
    return [event.message for event in events if isinstance(event, NoticeGiven)]


def answered_by(agent: Agent) -> list[str]:
    """Which model the record names for each answer."""
    return [entry.model for entry in agent.history.entries if isinstance(entry, Said) and entry.finish is not None]


# --- when -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "requests"),
    [
        ("answer: times=3\nerror: 429", 3),
        ("answer: times=3\nerror: 503", 3),
        (DAILY, 1),
        ("error: 429 retry_after=3600", 1),
        ("error: 503 retry_after=3600", 1),
    ],
    ids=["rate limited", "overloaded", "daily quota", "wait beyond the deadline", "overloaded for an hour"],
)
def test_another_model_goes_on_where_the_service_keeps_refusing(tmp_path: Path, script: str, requests: int) -> None:
    """RETRY-5."""

    async def go() -> None:
        async with services(tmp_path, gemini=script, anthropic="text: Here I am.") as found:
            agent = found.agent(GEMINI, [CLAUDE])
            async with agent:
                run = agent.run("hi")
                events = await events_of(run)
                assert (await run).text == "Here I am."
                assert found.models_asked("gemini") == requests
                assert switches(events) == [(GEMINI, CLAUDE)]
                assert answered_by(agent) == ["claude-opus-5"]
                [changed] = [entry for entry in agent.history.entries if isinstance(entry, ModelChanged)]
                assert (changed.deployment, changed.model) == ("anthropic", "claude-opus-5")
                assert run.result.turns == 1
            found.check()

    play(go)


@pytest.mark.parametrize("script", ["error: 400", "error: 401", "error: 404", "answer: times=3\nerror: 500"])
def test_what_another_attempt_may_mend_or_the_user_must_does_not_change_the_model(tmp_path: Path, script: str) -> None:
    async def go() -> None:
        async with services(tmp_path, gemini=script, anthropic="text: no") as found, found.agent(GEMINI, [CLAUDE]) as agent:
            with pytest.raises(ProviderError):
                await agent.run("hi")
            assert found.models_asked("anthropic") == 0
            assert agent.model == "gemini-3.8-flash"

    play(go)


def test_what_was_shown_of_the_refused_answer_is_void(tmp_path: Path) -> None:
    """An overload may come in the middle of a stream. The switch tells that what was shown before it does not count."""

    async def go() -> None:
        half = "answer: times=3\ntext: Half of it\nerror: 529"
        async with services(tmp_path, anthropic=half, gemini="text: All of it.") as found, found.agent(CLAUDE, [GEMINI]) as agent:
            events = await events_of(agent.run("hi"))
            voids = (Retrying, ModelSwitched)
            shown = "".join("|" if isinstance(event, voids) else event.text for event in events if isinstance(event, (*voids, TextDelta)))
            assert shown == "Half of it|Half of it|Half of it|All of it."
            assert [message.text for message in agent.history.view.messages] == ["hi", "All of it."]
            check_record(agent.history)

    play(go)


# --- it is kept --------------------------------------------------------------------------------------------------------------------------


def test_later_turns_and_prompts_stay_on_the_model_that_answers(tmp_path: Path) -> None:
    async def go() -> None:
        tool = PlainTool()
        claude = 'call: look {"what": "a"}\n---\ntext: One.\n---\ntext: Two.'
        async with services(tmp_path, gemini="answer: times=9\nerror: 429", anthropic=claude) as found:
            async with found.agent(GEMINI, [CLAUDE], tools=[tool]) as agent:
                assert (await agent.run("a")).text == "One."
                assert (await agent.run("b")).text == "Two."
                assert tool.asked == [{"what": "a"}]
                assert found.models_asked("gemini") == 3, "the first model is not tried again with every turn"
                assert answered_by(agent) == ["claude-opus-5"] * 3
                check_record(agent.history)
            found.check()

    play(go)


def test_a_switch_in_the_middle_of_a_tool_loop_keeps_calls_and_results(tmp_path: Path) -> None:
    async def go() -> None:
        tool = PlainTool()
        gemini = f'thought signature=abc: Hm.\ncall: look {{"what": "a"}}\n---\n{DAILY}'
        async with services(tmp_path, gemini=gemini, anthropic="text: Done.") as found:
            async with found.agent(GEMINI, [CLAUDE], tools=[tool]) as agent:
                assert (await agent.run("a")).text == "Done."
                [asked] = found.servers["anthropic"].requests
                assert "looked at a" in str(asked.body)
                assert "abc" not in str(asked.body), "what only Gemini can read goes to nobody else"
                assert answered_by(agent) == ["gemini-3.8-flash", "claude-opus-5"]
            found.check()

    play(go)


def test_a_resumed_session_stays_on_the_model_that_answers(tmp_path: Path) -> None:
    async def go() -> None:
        kept = tmp_path / "sessions"
        async with services(tmp_path, gemini="answer: times=9\nerror: 429", anthropic="text: One.\n---\ntext: Two.") as found:
            async with found.agent(GEMINI, [CLAUDE], sessions=kept) as agent:
                await agent.run("a")
            async with found.agent("", [CLAUDE], sessions=kept, resume="latest") as agent:
                assert (await agent.run("b")).text == "Two."
                assert found.models_asked("gemini") == 3
                assert agent.model == "claude-opus-5"

    play(go)


# --- who is paid -----------------------------------------------------------------------------------------------------------------------


def test_each_answer_is_paid_at_the_prices_of_the_model_that_gave_it(tmp_path: Path) -> None:
    """E10: not at those of the model that the session has now, nor at those of another service's model of the same name."""

    async def go() -> None:
        million = "usage: fresh=1000000 output=0"
        gemini = f"text: One.\n{million}\n---\n{DAILY}"
        async with services(tmp_path, gemini=gemini, anthropic=f"text: Two.\n{million}") as found:
            async with found.agent(GEMINI, [CLAUDE], sessions=tmp_path / "sessions") as agent:
                one, two = await agent.run("a"), await agent.run("b")
                dear, cheap = (_prices(name).input for name in (CLAUDE, GEMINI))
                assert dear != cheap
                assert (one.cost_usd, two.cost_usd) == (pytest.approx(cheap), pytest.approx(dear))
                assert agent.cost_usd(agent.history.entries) == pytest.approx(cheap + dear)
            async with found.agent("", sessions=tmp_path / "sessions", resume="latest") as agent:
                assert agent.cost_usd(agent.history.entries) == pytest.approx(cheap + dear), "though only one of them is connected"

    play(go)


def _prices(name: str) -> Prices:
    deployment, model = builtin_catalog().find(name)
    prices = deployment.models[model].prices
    assert prices is not None
    return prices


# --- the chain ---------------------------------------------------------------------------------------------------------------------------


def test_a_model_without_a_key_is_skipped_and_that_is_said(tmp_path: Path) -> None:
    async def go() -> None:
        async with services(tmp_path, gemini=DAILY, openai="text: Mine.") as found, found.agent(GEMINI, [CLAUDE, GPT]) as agent:
            events = await events_of(agent.run("hi"))
            assert switches(events) == [(GEMINI, GPT)]
            [notice] = notices(events)
            assert CLAUDE in notice
            assert "no key for anthropic" in notice

    play(go)


def test_the_chain_goes_on_where_a_model_of_it_refuses_too(tmp_path: Path) -> None:
    async def go() -> None:
        async with (
            services(tmp_path, gemini=DAILY, anthropic="answer: times=3\nerror: 529", openai="text: Mine.") as found,
            found.agent(GEMINI, [CLAUDE, GPT]) as agent,
        ):
            run = agent.run("hi")
            events = await events_of(run)
            assert switches(events) == [(GEMINI, CLAUDE), (CLAUDE, GPT)]
            assert (await run).text == "Mine."

    play(go)


@pytest.mark.parametrize("script", ["error: 401", "error: 404", "error: 400", "answer: times=3\nerror: 500", "answer: times=3\ncut"])
def test_a_model_of_the_chain_that_is_of_no_use_does_not_end_the_run(tmp_path: Path, script: str) -> None:
    """Its key may be refused, or its server may not run: that is no reason to stop, when the next one may do."""

    async def go() -> None:
        async with (
            services(tmp_path, gemini=DAILY, anthropic=script, openai="text: Mine.") as found,
            found.agent(GEMINI, [CLAUDE, GPT]) as agent,
        ):
            assert (await agent.run("hi")).text == "Mine."

    play(go)


def test_an_answer_that_is_refused_for_what_it_says_is_told(tmp_path: Path) -> None:
    """Another model is for a service that is not there, not for an answer one does not like."""

    async def go() -> None:
        async with services(tmp_path, gemini=DAILY, anthropic="text: no\nfinish: refusal", openai="text: Mine.") as found:
            async with found.agent(GEMINI, [CLAUDE, GPT]) as agent:
                with pytest.raises(Refused):
                    await agent.run("hi")
                assert found.models_asked("openai") == 0
                check_record(agent.history)
            found.check()

    play(go)


def test_a_model_of_the_chain_that_is_too_small_is_passed_over() -> None:
    async def go() -> None:
        first = ScriptedProvider("answer: times=9\nerror: 429", name="one", profile=Profile(context_window=1_000_000))
        tiny = ScriptedProvider("answer: times=9\ntext: no", name="tiny", profile=Profile(context_window=100))
        last = ScriptedProvider("text: Mine.", name="last")
        agent = agent_for(first, PlainTool(), fallback=[tiny, last], history=long_history())
        run = agent.run("word " * 500)
        events = await events_of(run)
        assert switches(events) == [("one/one", "tiny/tiny"), ("tiny/tiny", "last/last")]
        assert (await run).text == "Mine."

        alone = agent_for(first, PlainTool(), fallback=[tiny], history=long_history())
        with pytest.raises(RateLimited, match="tiny/tiny"):
            await alone.run("word " * 500)
        assert alone.model == "one"

    play(go)


def test_a_model_of_this_process_without_weights_is_passed_over() -> None:
    class NoWeights(ScriptedProvider):
        async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
            raise InputError("the weights are not here")
            yield

    async def go() -> None:
        agent = agent_for("error: 429", fallback=[NoWeights("", name="here"), ScriptedProvider("text: Mine.", name="last")])
        assert (await agent.run("hi")).text == "Mine."

    play(go)


def test_an_exhausted_chain_tells_the_first_error_and_what_was_tried(tmp_path: Path) -> None:
    async def go() -> None:
        async with (
            services(tmp_path, gemini=f"{DAILY}\n---\ntext: Back.", openai="answer: times=3\nerror: 503") as found,
            found.agent(GEMINI, [CLAUDE, GPT]) as agent,
        ):
            with pytest.raises(QuotaExhausted) as raised:
                await agent.run("hi")
            assert raised.value.provider == "gemini"
            assert raised.value.key == "providers.daily_quota" or "quota" in str(raised.value)
            for word in (CLAUDE, "no key for anthropic", GPT, "overloaded"):
                assert word in str(raised.value)
            assert agent.model == "gemini-3.8-flash", "nobody answered in its place, so the session keeps the model it had"
            assert (await agent.run("hi")).text == "Back."
            check_record(agent.history)

    play(go)


def test_without_a_fallback_the_error_is_as_ever(tmp_path: Path) -> None:
    async def go() -> None:
        async with services(tmp_path, gemini="answer: times=3\nerror: 503") as found, found.agent(GEMINI) as agent:
            with pytest.raises(Overloaded) as raised:
                await agent.run("hi")
            assert "fallback" not in str(raised.value)

    play(go)


def test_models_that_refused_before_come_last() -> None:
    async def go() -> None:
        one = ScriptedProvider("answer: times=9\nerror: 429", name="one")
        two = ScriptedProvider("text: Two.\n---\nerror: 429\n---\ntext: Two again.", name="two")
        three = ScriptedProvider("text: Three.\n---\nerror: 429", name="three")
        agent = agent_for(one, fallback=[two, three])
        assert [(await agent.run(prompt)).text for prompt in "abc"] == ["Two.", "Three.", "Two again."]
        assert len(one.requests) == 1

    play(go)


# --- the hook -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", ["answer: times=3\nerror: 429", DAILY, "error: 429 retry_after=3600"])
def test_the_hook_is_asked_first_and_may_name_any_model(tmp_path: Path, script: str) -> None:
    """RETRY-5: given to an agent that knows its model by name."""

    async def go() -> None:
        asked: list[RateLimited] = []

        async def choose(error: RateLimited) -> str | None:
            asked.append(error)
            return GPT

        async with (
            services(tmp_path, gemini=script, anthropic="text: no", openai="text: Chosen.") as found,
            found.agent(GEMINI, FallbackOptions([CLAUDE], choose)) as agent,
        ):
            assert (await agent.run("hi")).text == "Chosen."
            assert len(asked) == 1
            assert answered_by(agent) == ["gpt-4.1"]
            assert found.models_asked("anthropic") == 0

    play(go)


def test_a_hook_that_declines_leaves_it_to_the_chain_and_one_that_insists_ends_it(tmp_path: Path) -> None:
    async def go() -> None:
        async def decline(error: RateLimited) -> str | None:
            return None

        async def insist(error: RateLimited) -> str | None:
            return GEMINI

        async with services(tmp_path, gemini=f"answer: times=9\n{DAILY}", anthropic="text: One.\n---\ntext: Two.") as found:
            for hook in (decline, insist):
                async with found.agent(GEMINI, FallbackOptions([CLAUDE], hook)) as agent:
                    assert (await agent.run("hi")).text in ("One.", "Two.")
            async with found.agent(GEMINI, FallbackOptions(on_persistent_429=insist)) as agent:
                with pytest.raises(QuotaExhausted):
                    await agent.run("hi")

    play(go)


@pytest.mark.parametrize("plain", [True, False])
def test_a_hook_may_have_the_same_model_asked_once_more(tmp_path: Path, plain: bool) -> None:
    """True means that it has waited, or changed the key. It counts once in a run, so that no run goes round for ever."""

    async def go() -> None:
        async def later(error: RateLimited) -> bool:
            return True

        hook = (lambda error: True) if plain else later
        gemini = f"{DAILY}\n---\ntext: One.\n---\nanswer: times=9\n{DAILY}"
        async with (
            services(tmp_path, gemini=gemini, anthropic="text: Two.") as found,
            found.agent(GEMINI, FallbackOptions([CLAUDE], hook)) as agent,
        ):
            run = agent.run("hi")
            assert switches(await events_of(run)) == []
            assert (await run).text == "One."
            assert (await agent.run("hi")).text == "Two."

    play(go)


def test_what_a_hook_may_not_decide_is_refused_in_words(tmp_path: Path) -> None:
    async def go() -> None:
        wrong: Any = lambda error: 5  # noqa: E731
        async with (
            services(tmp_path, gemini=f"answer: times=9\n{DAILY}", anthropic="text: Two.") as found,
            found.agent(GEMINI, FallbackOptions([CLAUDE], wrong)) as agent,
        ):
            with pytest.raises(InputError, match="on_persistent_429 returned 5"):
                await agent.run("hi")

    play(go)


def test_a_switch_of_the_retry_policy_is_on_the_record_and_kept() -> None:
    """A policy's own hook names another model of the same service: the loop learns of it from the stream."""

    async def go() -> None:
        async def smaller(error: RateLimited) -> str | None:
            return "small"

        prices = {"big": Profile(prices=Prices(10.0, 10.0)), "small": Profile(prices=Prices(1.0, 1.0))}
        usage = "usage: fresh=1000000 output=0"
        script = f"answer: times=3\nerror: 429\n---\ntext: One.\n{usage}\n---\ntext: Two.\n{usage}"
        provider = ScriptedProvider(script, name="service", model="big", profiles=prices)
        agent = agent_for(Retry(provider, RetryPolicy(sleep=no_wait, on_persistent_429=smaller)))
        run = agent.run("a")
        events = await events_of(run)
        assert switches(events) == [("service/big", "service/small")]
        assert (await run).cost_usd == pytest.approx(1.0)
        assert (await agent.run("b")).text == "Two."
        assert [request.model for request in provider.requests] == ["big", "big", "big", "small", "small"]
        assert answered_by(agent) == ["small", "small"]
        assert [entry.model for entry in agent.history.entries if isinstance(entry, ModelChanged)] == ["small"]

    play(go)


# --- what the new model is sent ----------------------------------------------------------------------------------------------------------


def test_a_model_whose_tools_are_told_as_text_goes_on_from_native_calls() -> None:
    async def go() -> None:
        tool = PlainTool()
        native = ScriptedProvider('call: look {"what": "a"}\n---\nerror: 429', name="native")
        in_text = ScriptedProvider("text: Done.", name="words", profile=Profile(tools="text"))
        agent = agent_for(native, tool, fallback=[in_text])
        assert (await agent.run("go")).text == "Done."
        [request] = in_text.requests
        assert request.tools == ()
        assert all(not message.calls and not message.results for message in request.messages)
        assert any("looked at a" in message.text for message in request.messages)
        check_record(agent.history)

    play(go)


def long_history() -> History:
    """About 9,000 tokens of calls and results."""
    history = History()
    history.configure("one", "Be brief.", deployment="one")
    history.say(user("Look around."))
    for number in range(30):
        call = ToolCall(f"c{number}", "look", f'{{"what": "{number}"}}')
        history.say(assistant(call))
        history.finish_tool(tool_result(call, f"line {number} " * 100))
    history.say(assistant("That is all."))
    return history


def summing_up(request: Request) -> ScriptedAnswer:
    is_summary = "===== transcript" in request.messages[0].text
    return answer("<snapshot>\n<goal>look around</goal>\n</snapshot>" if is_summary else "Fits.")


@pytest.mark.parametrize("first_window", [1_000_000, 10_000], ids=["larger", "as small"])
def test_a_small_window_is_fitted_before_the_request_is_sent(first_window: int) -> None:
    """By the model that goes on. A summary that the first one's service refuses is left to it too: else results would be thrown away."""

    async def go() -> None:
        refusing = ScriptedProvider("answer: times=9\nerror: 429", name="one", profile=Profile(context_window=first_window))
        small = ScriptedProvider(summing_up, name="two", profile=Profile(context_window=10_000))
        agent = agent_for(refusing, PlainTool(), fallback=[small], history=long_history())
        run = agent.run("And now?")
        events = await events_of(run)
        assert (await run).text == "Fits."
        assert switches(events) == [("one/one", "two/two")]
        assert [event.status for event in events if isinstance(event, ContextCompressed)] == ["compressed"]
        assert len(refusing.requests) == 1, "not asked again after it refused the summary"
        assert small.tokens(small.requests[-1]) < 10_000
        assert not [entry for entry in agent.history.entries if isinstance(entry, Pruned)]
        check_record(agent.history)

    play(go)


def test_an_image_becomes_a_note_for_a_model_that_cannot_be_shown_it(tmp_path: Path) -> None:
    async def go() -> None:
        png = b"\x89PNG\r\n\x1a\n" + bytes(64)
        async with services(tmp_path, gemini=DAILY, ollama="text: I cannot see it.") as found:
            async with found.agent(GEMINI, [GPT_TEXT]) as agent:
                image: Blob = agent.blobs.put("image/png", png)
                assert (await agent.run([Text("What is this?"), image])).text == "I cannot see it."
                assert "this model cannot be shown it" in str(found.servers["ollama"].requests[0].body)
            found.check()

    play(go)


def test_tools_and_prompt_suit_the_model_that_goes_on() -> None:
    """What a run was prepared with for one model is prepared again for the next: here a small model's short prompt."""

    async def go() -> None:
        from dragoman.values.profile import SmallModel

        big = ScriptedProvider("error: 429", name="big")
        small = ScriptedProvider("text: Yes.", name="small", profile=Profile(small=SmallModel(short_prompt=True)))
        agent = make_agent(big, builtin=["todo"], describe=False, fallback=[small])
        await agent.run("hi")
        assert len(small.requests[0].system) < len(big.requests[0].system)
        assert [entry.model for entry in agent.history.entries if isinstance(entry, Configured)] == ["big", "small"]

    play(go)


def test_a_cancel_while_the_hook_thinks_ends_the_run() -> None:
    async def go() -> None:
        asked = asyncio.Event()

        async def forever(error: RateLimited) -> str | None:
            asked.set()
            await asyncio.Event().wait()
            return None

        agent = agent_for("error: 429\n---\ntext: Later.", fallback=FallbackOptions(on_persistent_429=forever))
        run = agent.run("hi")
        task = asyncio.create_task(events_of(run))
        await asked.wait()
        run.cancel()
        await task
        assert run.result.error_type == "Cancelled"
        check_record(agent.history)

    play(go)


def test_settings_the_new_model_does_not_take_are_told(tmp_path: Path) -> None:
    async def go() -> None:
        async with (
            services(tmp_path, openai="error: 429 code=insufficient_quota", anthropic="text: ok") as found,
            found.agent(GPT, [CLAUDE], settings=Settings(temperature=0.1)) as agent,
        ):
            events = await events_of(agent.run("hi"))
            told = [f"settings.temperature is not sent: {CLAUDE}"]
            assert [notice[: len(told[0])] for notice in notices(events)] == told

    play(go)
