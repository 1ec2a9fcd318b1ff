"""Long sessions over real HTTP, in every protocol: summed up, gone on with, cancelled and resumed; and the person's rules survive."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agents import make_agent
from destinations import MAIN, rules_of
from dragoman.context.settings import CompressSettings, ContextSettings
from dragoman.foreign.sessions import import_session
from dragoman.loop.agent import Agent
from dragoman.loop.history import History
from dragoman.providers.catalog import Catalog, builtin_catalog, profile_for
from dragoman.providers.connect import Connection, connect
from dragoman.providers.retry import RetryPolicy
from dragoman.sessions.store import FileStore
from dragoman.testing.mock.server import MockServer
from dragoman.testing.mock.wire import ModelRequest
from dragoman.testing.script_steps import CallStep, CutStep, Fail, Finish, ScriptedAnswer, Stall, answer
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.calls import Show
from dragoman.values.errors import Cancelled, ContextOverflow
from dragoman.values.events import ContextCompressed, ContextOverflowed, TurnEvent
from dragoman.values.messages import FinishReason, Message, Response, Text, ToolCall, ToolResult, assistant, user
from dragoman.values.record import Compressed, NotCompressed, Pruned, Said, encode_entry
from scenarios.harness import Desk
from scenarios.workshop import QUICK, PlainTool, check_record, events_of, no_wait, play

SNAPSHOT = "<snapshot>\n<goal>look at everything</goal>\n<open>go on with the next</open>\n</snapshot>"
RULE = 'Never touch "main.py"; 用中文写注释, and ask before you push.'
WINDOW = 30_000
QUICKLY = RetryPolicy(attempts=2, sleep=no_wait)
OVERFLOWS = {
    "gemini": Fail(400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    "openai_chat": Fail(400, "This model's maximum context length is 128000 tokens.", "context_length_exceeded"),
    "openai_responses": Fail(400, "Your input exceeds the context window of this model.", "context_length_exceeded"),
    "anthropic": Fail(400, "prompt is too long: 212345 tokens > 200000 maximum"),
}


def is_summary(body: Any) -> bool:
    return "===== transcript" in json.dumps(body)


class Service:
    """A model behind a loopback server: one answer to a question for a summary, another to anything else."""

    def __init__(
        self, protocol: str, summary: ScriptedAnswer | str = SNAPSHOT, reply: Callable[[ModelRequest], ScriptedAnswer] | None = None
    ) -> None:
        self.protocol = protocol
        self.summary = answer(summary) if isinstance(summary, str) else summary
        self.reply = reply or (lambda asked: answer("Done."))
        deployment, name = builtin_catalog().find(MAIN[protocol])
        profile = profile_for(deployment, name)
        self.server = MockServer(self._choose, rules=rules_of(deployment, profile))
        small = msgspec.to_builtins(msgspec.structs.replace(profile, context_window=WINDOW))
        self.catalog: Catalog = builtin_catalog().with_rows({deployment.name: {"models": {"small": small}}})
        self.model = f"{deployment.name}/small"

    def _choose(self, asked: ModelRequest) -> ScriptedAnswer:
        return self.summary if is_summary(asked.body) else self.reply(asked)

    async def __aenter__(self) -> Service:
        await self.server.__aenter__()
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.server.aclose()

    def connection(self) -> Connection:
        url = self.server.url + ("/v1" if self.protocol.startswith("openai") else "")
        return connect(self.model, catalog=self.catalog, base_url=url, key="key-for-tests", retry=QUICKLY)

    def agent(self, *tools: PlainTool, **options: Any) -> Agent:
        options = {"describe": False, "system": "Be brief.", "limits": QUICK, "builtin": False, "tools": tools, **options}
        return make_agent(self.connection(), **options)

    @property
    def turns(self) -> list[Any]:
        return [
            exchange.body
            for exchange in self.server.requests
            if exchange.action in ("stream", "generate") and not is_summary(exchange.body)
        ]

    @property
    def summaries(self) -> list[Any]:
        return [exchange.body for exchange in self.server.requests if is_summary(exchange.body) and exchange.action != "count"]

    def check(self) -> None:
        for number, exchange in enumerate(self.server.requests):
            assert exchange.violation is None, f"request {number}: {exchange.violation}"


async def much(args: Mapping[str, Any], show: Show) -> str:
    return " ".join(f"{args.get('what')}-{number}" for number in range(100))


def looks_once_per_prompt() -> Callable[[ModelRequest], ScriptedAnswer]:
    """A call, and when its result is there a word."""
    count = 0

    def reply(asked: ModelRequest) -> ScriptedAnswer:
        nonlocal count
        count += 1
        if count % 2:
            return answer(f"I look at number {count}.", CallStep("look", json.dumps({"what": f"thing {count}"}), id=f"call_{count:04d}"))
        return answer(f"That was number {count}.")

    return reply


def held(rounds: int, chars: int = 600) -> History:
    """A long session from elsewhere: no service of ours has counted anything of it."""
    history = History()
    history.configure("another", "Be brief.", deployment="elsewhere")
    for number in range(rounds):
        history.say(user(RULE if number == 0 else f"Now number {number}."))
        call = ToolCall(f"call_{number:04d}", "look", json.dumps({"what": f"{number}"}))
        history.answer(Response(Message("assistant", (Text("Looking."), call)), FinishReason.TOOL_CALLS))
        history.finish_tool(ToolResult(call.id, "look", (Text(f"[{number}] " + "o" * chars),)))
        history.answer(Response(assistant(f"Seen {number}."), FinishReason.STOP))
    return history


def no_fault(message: str) -> None:
    raise AssertionError(message)


def entries(agent: Agent, *kinds: type[Any]) -> list[Any]:
    return [entry for entry in agent.history.entries if isinstance(entry, kinds)]


def told(body: Any) -> str:
    return json.dumps(body, ensure_ascii=False)


def as_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


# --- a long session --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", MAIN)
def test_a_session_of_300_messages_is_summed_up_once_and_goes_on(protocol: str, tmp_path: Path) -> None:
    async def go() -> None:
        async with Service(protocol, reply=looks_once_per_prompt()) as service:
            agent = service.agent(PlainTool(act=much), sessions=tmp_path / "sessions", workspace=tmp_path)
            events: list[TurnEvent] = []
            for number in range(75):
                run = agent.run(f"{RULE} Look at the first." if number == 0 else f"Look at number {number}.")
                events += await events_of(run)
                assert run.result.error == ""
            service.check()
            assert len(agent.history.transcript()) == 300
            [compressed] = entries(agent, Compressed)
            assert not entries(agent, NotCompressed)
            assert len(service.summaries) == 1
            assert [event.status for event in events if isinstance(event, ContextCompressed)] == ["compressed"]
            assert compressed.new_tokens < 0.6 * compressed.original_tokens
            assert compressed.original_tokens > 0.7 * WINDOW
            assert compressed.usage is not None
            assert compressed.usage.input_tokens > 1_000
            last = told(service.turns[-1])
            assert as_json(f"{RULE} Look at the first.") in last, "the person's rules, word for word"
            assert as_json("<goal>look at everything</goal>") in last
            for number in range(1, 75):
                assert f"Look at number {number}." in last, "every prompt is still there: there is room for them"
            assert len(last) < len(max(map(told, service.turns), key=len)), "and the request is shorter than it was"
            before = [encode_entry(entry) for entry in agent.history.entries]
            check_record(agent.history)
            await agent.aclose()
            store = FileStore(tmp_path / "sessions")
            kept = store.open(store.find(agent.session_id, str(tmp_path)).path, no_fault)
            kept.journal.close()
            assert [encode_entry(entry) for entry in kept.loaded.entries] == before

    play(go, within_s=60)


@pytest.mark.parametrize("protocol", MAIN)
def test_resumed_afterwards_it_sends_the_same_bytes(protocol: str, tmp_path: Path) -> None:
    """The same session, once gone on with and once taken up again from a copy of its files."""

    async def go() -> None:
        async with Service(protocol, reply=looks_once_per_prompt()) as service:
            folder, copy = tmp_path / "sessions", tmp_path / "copy"
            options: dict[str, Any] = {"workspace": tmp_path, "context": ContextSettings(compress=CompressSettings(threshold_tokens=4_000))}
            agent = service.agent(PlainTool(act=much), sessions=folder, **options)
            for number in range(16):
                await agent.run(f"Look at number {number}.")
            assert entries(agent, Compressed)
            await agent.aclose()
            shutil.copytree(folder, copy)
            sent: list[Any] = []
            for sessions in (folder, copy):
                service.reply = looks_once_per_prompt()
                again = service.agent(PlainTool(act=much), sessions=sessions, resume=agent.session_id, **options)
                before = len(service.server.requests)
                await again.run("And one more.")
                sent.append([exchange.body for exchange in service.server.requests[before:]])
                await again.aclose()
            assert sent[0] == sent[1]
            assert as_json("<goal>look at everything</goal>") in told(sent[0][0])
            service.check()

    play(go)


@pytest.mark.parametrize("protocol", MAIN)
def test_a_run_that_fills_the_window_by_itself_goes_on_to_its_end(protocol: str) -> None:
    """Between tool rounds: the prompt it works on is within what is summed up, and stays word for word."""

    async def go() -> None:
        count = 0

        def reply(asked: ModelRequest) -> ScriptedAnswer:
            nonlocal count
            count += 1
            return answer(CallStep("look", json.dumps({"what": f"{count}"}), id=f"call_{count}")) if count <= 30 else answer("All seen.")

        async def lots(args: Mapping[str, Any], show: Show) -> str:
            return " ".join(f"{args.get('what')}-{number}" for number in range(1_200))

        async with Service(protocol, reply=reply) as service:
            agent = service.agent(PlainTool(act=lots))
            prompt = f"Look at thirty things. {RULE}"
            result = await agent.run(prompt)
            assert (result.text, result.tool_calls) == ("All seen.", 30)
            service.check()
            assert entries(agent, Compressed)
            assert all(as_json(prompt) in told(body) for body in service.turns)
            assert all(len(told(body)) / 4 < WINDOW for body in (*service.turns, *service.summaries))
            assert result.requests == len(service.turns) + len(service.summaries)
            check_record(agent.history)

    play(go, within_s=60)


# --- when no summary is to be had ------------------------------------------------------------------------------------------------------

FAULTS: dict[str, tuple[ScriptedAnswer, str]] = {
    "500": (answer(Fail(500)), "failed"),
    "cut": (answer("<snapshot><goal>half of", CutStep()), "failed"),
    "empty": (answer(Finish()), "empty"),
    "no snapshot": (answer("I am a helpful model. What shall I do?"), "empty"),
    "truncated": (answer("<snapshot><goal>half of", Finish("length")), "truncated"),
    "inflated": (answer(f"<snapshot>{'many words ' * 12_000}</snapshot>"), "inflated"),
}


@pytest.mark.parametrize("protocol", MAIN)
@pytest.mark.parametrize(("summary", "status"), FAULTS.values(), ids=FAULTS.keys())
def test_without_a_summary_old_results_go_and_the_conversation_goes_on(protocol: str, summary: ScriptedAnswer, status: str) -> None:
    async def go() -> None:
        async with Service(protocol, summary) as service:
            agent = service.agent(PlainTool(), history=held(110))
            run = agent.run("Go on.")
            events = await events_of(run)
            assert run.result.text == "Done."
            assert [entry.status for entry in entries(agent, NotCompressed)] == [status]
            assert not entries(agent, Compressed)
            assert [event.status for event in events if isinstance(event, ContextCompressed)] == [status]
            assert entries(agent, Pruned)
            assert len(told(service.turns[-1])) / 4 < WINDOW
            service.check()
            asked = len(service.summaries)
            assert (await agent.run("And on.")).text == "Done."
            assert len(service.summaries) == asked, "not asked for again before the history has grown"
            service.check()
            check_record(agent.history, protocols=[protocol])

    play(go)


@pytest.mark.parametrize("protocol", MAIN)
def test_a_model_that_always_writes_too_much_is_asked_once_and_the_conversation_goes_on_with_an_extract(protocol: str) -> None:
    async def go() -> None:
        async with Service(protocol, f"<snapshot>{'many words ' * 40_000}</snapshot>") as service:
            history = History()
            for number in range(60):
                history.say(user(f"part {number}: " + "p" * 1_500))
                history.answer(Response(assistant("a" * 1_500), FinishReason.STOP))
            agent = service.agent(history=history)
            run = agent.run("Go on.")
            events = await events_of(run)
            assert not any(isinstance(event, ContextOverflowed) for event in events)
            assert run.result.text == "Done."
            assert len(service.summaries) == len(service.turns) == 1
            assert [event.status for event in events if isinstance(event, ContextCompressed)] == ["inflated", "extracted"]
            assert len(told(service.turns[-1])) / 4 < WINDOW
            assert "part 59: " in told(service.turns[-1]), "what was said last is still there"
            service.check()
            check_record(agent.history, protocols=[protocol])

    play(go)


# --- over the limit already ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", MAIN)
def test_a_session_from_elsewhere_that_is_far_too_long_is_brought_within(protocol: str) -> None:
    async def go() -> None:
        async with Service(protocol) as service:
            agent = service.agent(PlainTool(), history=held(600))
            assert agent._harness.upkeep.size.tokens > 3 * WINDOW
            assert (await agent.run("Go on.")).text == "Done."
            service.check()
            assert len(entries(agent, Compressed)) == 1
            assert all(len(told(body)) / 4 < WINDOW for body in (*service.turns, *service.summaries))
            assert as_json(RULE) in told(service.turns[-1])
            check_record(agent.history, protocols=[protocol])

    play(go)


@pytest.mark.parametrize("protocol", MAIN)
def test_a_model_with_a_smaller_window_takes_over(protocol: str) -> None:
    async def go() -> None:
        async with Service("anthropic") as large, Service(protocol) as small:
            agent = large.agent(PlainTool(), history=held(130))
            agent.change_model(small.connection())
            assert (await agent.run("And you?")).text == "Done."
            assert large.server.requests == []
            assert len(small.summaries) == 1
            small.check()
            assert all(len(told(body)) / 4 < WINDOW for body in (*small.turns, *small.summaries))

    play(go)


@pytest.mark.parametrize("protocol", MAIN)
def test_what_the_service_finds_too_long_is_made_shorter_and_sent_once_more(protocol: str) -> None:
    """It counts otherwise than we do, or takes less than we know."""

    async def go() -> None:
        def reply(asked: ModelRequest) -> ScriptedAnswer:
            return answer(OVERFLOWS[protocol]) if asked.input_tokens > 8_000 else answer("Done.")

        async with Service(protocol, reply=reply) as service:
            agent = service.agent(PlainTool(), history=held(50))
            run = agent.run("Go on.")
            result = await run
            assert result.text == "Done."
            assert len(entries(agent, Compressed)) == 1
            assert (len(service.turns), len(service.summaries)) == (2, 1)
            service.check()
            service.reply = lambda asked: answer(OVERFLOWS[protocol])
            with pytest.raises(ContextOverflow):
                await agent.run("And now?")
            check_record(agent.history, protocols=[protocol])

    play(go)


TRACES = ["claude-code/2caf2337-66bf-41d1-ad27-9d2cab7bd2dc.jsonl", "pi-mono/large-session.jsonl"]


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("protocol", MAIN)
def test_real_sessions_are_brought_within_a_small_window(protocol: str, trace: str, corpora: Path) -> None:
    async def go() -> None:
        imported = import_session(corpora / "traces" / trace, blobs=MemoryBlobs())
        history = History(entries=imported.entries)
        async with Service(protocol) as service:
            agent = service.agent(PlainTool(), history=history)
            before = agent._harness.upkeep.size.tokens
            assert before > WINDOW
            assert (await agent.run("Go on.")).text == "Done."
            service.check()
            assert agent._harness.upkeep.size.tokens < WINDOW
            assert all(len(told(body).encode()) / 4 < 1.3 * WINDOW for body in (*service.turns, *service.summaries))
            assert len(service.summaries) == 1

    play(go, within_s=60)


# --- cancelled -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", MAIN)
def test_cancelled_while_it_is_summed_up_nothing_is_changed(protocol: str) -> None:
    async def go() -> None:
        async with Service(protocol, answer("<snapshot><goal>half", Stall())) as service:
            agent = service.agent(PlainTool(), history=held(110))
            messages = agent.history.view.messages
            run = agent.run("Go on.")
            watching = asyncio.create_task(events_of(run))
            while not service.summaries:  # noqa: ASYNC110  a server has nothing to wait on
                await asyncio.sleep(0.01)
            run.cancel()
            await watching
            with pytest.raises(Cancelled):
                await run
            assert agent.history.view.messages == (*messages, user("Go on."))
            assert not entries(agent, Compressed, NotCompressed, Pruned)
            service.summary = answer(SNAPSHOT)
            assert (await agent.run("Go on.")).text == "Done."
            assert len(entries(agent, Compressed)) == 1
            assert [entry.message.text for entry in entries(agent, Said)].count("Go on.") == 1
            service.check()

    play(go)


# --- the program -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", MAIN)
def test_the_program_sums_up_between_tool_rounds_and_says_so(protocol: str, tmp_path: Path) -> None:
    desk = Desk.at(tmp_path, protocol)
    desk.write("long.txt", "\n".join(f"line {number} of the file" for number in range(1_500)))
    name, model = desk.model.split("/")
    profile = msgspec.to_builtins(profile_for(builtin_catalog()[name], model))
    rows = "".join(
        f"{key} = {json.dumps(value)}\n"
        for key, value in profile.items()
        if key not in ("context_window", "prices", "known", "token_scale")
    )
    config = f'[retry]\nfirst_delay_s = 0.01\n\n[deployments.{name}.models."small"]\ncontext_window = {WINDOW}\n{rows}'
    count = 0

    def reply(asked: ModelRequest) -> ScriptedAnswer:
        nonlocal count
        if is_summary(asked.body):
            return answer(SNAPSHOT)
        count += 1
        part = {"file_path": "long.txt", "offset": count * 100, "limit": 600}
        return answer(CallStep("read_file", json.dumps(part), id=f"call_{count}")) if count <= 8 else answer("All read.")

    ended = desk.run(reply, "--output-format", "stream-json", prompt=f"Read it all. {RULE}", model=f"{name}/small", config=config)
    assert ended.code == 0, ended.err
    assert ended.result["response"] == "All read."
    assert [event["status"] for event in ended.told("context") if event["event"] == "compressed"] == ["compressed"]
    turns = [body for body in ended.bodies() if not is_summary(body)]
    assert all(as_json(f"Read it all. {RULE}") in told(body) for body in turns)
    logs = list((desk.home / "dragoman").rglob("*.jsonl"))
    lines = [json.loads(line) for log in logs for line in log.read_text(encoding="utf-8").splitlines()]
    assert any(line.get("kind") == "compressed" for line in lines)
    assert sum(line.get("kind") == "tool_finished" for line in lines) == 8, "the record keeps everything"
