"""MCP servers of an agent that the program opened, in this process: joining, questions, progress, dying, modes."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from typing import Any

import pytest

from dragoman.app.mcp import AgentServers
from dragoman.app.opening import close_agent, open_agent
from dragoman.app.options import Options
from dragoman.app.setup import set_up
from dragoman.loop.agent import Agent
from dragoman.policy.judge import Law, MustAsk, judge
from dragoman.values.calls import Allow, Intent
from dragoman.values.events import ToolCallUpdated
from dragoman.values.messages import ToolSpec
from dragoman.values.record import Configured
from program import calls, script, service
from quay import Quay


async def opened(quay: Quay, **options: Any) -> Agent:
    setup = set_up(Options(model="anthropic/claude-opus-5", directory=str(quay.place.work)), quay.place.env)
    return (await open_agent(setup, ask=lambda call, intent: Allow(), **options)).agent


def texts(requests: Sequence[Any]) -> str:
    return json.dumps(requests)


def test_a_server_that_is_not_known_joins_at_the_next_prompt_by_an_entry(quay: Quay) -> None:
    quay.configure("harbour")

    async def talk() -> None:
        agent = await opened(quay, waits=False)
        servers: AgentServers = agent.beside["mcp"]
        told: list[str] = []
        servers.on_notice = told.append
        await agent.run("one")
        assert not any(spec.name.startswith("mcp__") for spec in agent.history.view.tools) or told
        for _ in range(300):
            if told:
                break
            await asyncio.sleep(0.02)
        assert "11 tools are added" in told[0]
        await agent.run("two")
        configured = [entry for entry in agent.history.entries if isinstance(entry, Configured)]
        assert "mcp__harbour__tide" in [spec.name for spec in configured[-1].tools]
        assert len(configured) == 2
        await close_agent(agent)

    with service(script("text: 1.", "text: 2.")) as quay.place.service:
        asyncio.run(talk())
    assert quay.living() == []


def test_where_all_are_too_much_those_that_join_later_are_searched_and_one_that_hangs_holds_up_none(quay: Quay) -> None:
    quay.configure("harbour")
    with service("text: Hello.") as quay.place.service:
        asyncio.run(_learn(quay))
    hanging = {f"hanging{number}": {"command": "sh", "args": ["-c", "while read line; do :; done"]} for number in range(3)}
    entries = {**hanging, "harbour": quay.entry("harbour"), "bay": quay.entry("bay", count=1000)}
    (quay.place.home / ".claude.json").write_text(json.dumps({"mcpServers": entries}))

    async def talk() -> None:
        agent = await opened(quay, waits=False)
        joined = asyncio.Event()
        agent.beside["mcp"].on_notice = lambda line: joined.set()
        await asyncio.wait_for(joined.wait(), 60)
        await agent.run("one")
        await close_agent(agent)

    with service(script("text: 1.", "text: 2.")) as quay.place.service:
        asyncio.run(talk())
        for name in hanging:
            del entries[name]
        (quay.place.home / ".claude.json").write_text(json.dumps({"mcpServers": entries}))
        assert quay.place.run("-c", "-p", "two").code == 0
        first, second = ([tool["name"] for tool in each["tools"]] for each in quay.place.service.requests)
    assert {"mcp__harbour__tide", "search_tools", "call_tool"} < set(first)
    assert not [name for name in first if "survey" in name]
    assert second == first, "a resumed session has both"


def test_tools_are_of_use_though_other_lists_fail_or_hang(quay: Quay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.mcp_client.running.MORE_LISTS_S", 0.1)
    quay.configure("harbour", fails="prompts/list", hangs="resources/list")

    async def talk() -> None:
        agent = await opened(quay)
        assert "mcp__harbour__tide" in agent.tools
        servers: AgentServers = agent.beside["mcp"]
        known = servers.lists.get(servers.usable[0])
        assert known is not None
        assert (known.prompts, known.resources, known.ttl_ms) == ((), (), 600_000), "it is asked again before long"
        await close_agent(agent)

    with service("text: 1.") as quay.place.service:
        asyncio.run(talk())


def test_questions_of_a_server_are_asked_and_progress_is_shown(quay: Quay) -> None:
    quay.configure("harbour")
    heard: list[str] = []

    async def ask_user(question: str, choices: Sequence[str]) -> str:
        heard.append(question)
        return choices[0] if choices else "7"

    async def talk() -> list[ToolCallUpdated]:
        agent = await opened(quay, ask_user=ask_user)
        events = [event async for event in agent.run("go")]
        await close_agent(agent)
        return [event for event in events if isinstance(event, ToolCallUpdated) and event.done is not None]

    names = ("ask", "page", "slow")
    with service(script(*(calls((f"mcp__harbour__{name}", {})) for name in names), "text: Done.")) as asked:
        quay.place.service = asked
        shown = asyncio.run(talk())
        sent = texts(asked.requests)
    assert [(event.done, event.total) for event in shown] == [(1, 2), (2, 2)]
    assert "Which berth?" in heard[0]
    assert "https://example.org/x" in heard[-1]
    assert '{\\\\\\"action\\\\\\": \\\\\\"accept\\\\\\", \\\\\\"content\\\\\\": {\\\\\\"berth\\\\\\": 7}}' in json.dumps(sent)


def test_a_server_that_dies_is_started_again_once(quay: Quay) -> None:
    quay.configure("harbour")

    async def talk() -> None:
        agent = await opened(quay)
        await agent.run("go")
        await close_agent(agent)

    die, tide = calls(("mcp__harbour__die", {})), calls(("mcp__harbour__tide", {"port": "Sur"}))
    with service(script(die, tide, die, tide, "text: Done.")) as asked:
        quay.place.service = asked
        asyncio.run(talk())
        sent = texts(asked.requests[-1:])
    assert quay.log("harbour").count("start") == 2
    assert "had ended, and was started again" in sent
    assert "In Sur the tide is high at noon." in sent
    assert "has ended a second time" in sent


def test_arguments_that_do_not_fit_do_not_reach_the_server(quay: Quay) -> None:
    pytest.importorskip("jsonschema_rs")
    quay.configure("harbour")

    async def talk() -> None:
        agent = await opened(quay)
        await agent.run("go")
        await close_agent(agent)

    with service(script(calls(("mcp__harbour__tide", {"port": "Sur", "fathoms": 3})), "text: Done.")) as asked:
        quay.place.service = asked
        asyncio.run(talk())
        assert "do not fit" in texts(asked.requests)
    assert "call tide" not in quay.log("harbour")


def test_servers_end_when_the_agent_is_closed_in_the_middle_of_a_call(quay: Quay) -> None:
    quay.configure("harbour")

    async def talk() -> None:
        agent = await opened(quay)
        run = asyncio.ensure_future(agent.run("go").__aenter__())
        for _ in range(500):
            if "call sleep" in quay.log("harbour"):
                break
            await asyncio.sleep(0.02)
        await agent.aclose()
        run.cancel()

    with service(script(calls(("mcp__harbour__sleep", {})), "text: Never.")) as quay.place.service:
        asyncio.run(talk())
    assert quay.living() == []


def test_in_the_mode_auto_servers_that_are_reached_by_http_keep_to_the_hosts() -> None:
    spec = ToolSpec("mcp__charts__get", "", kind="fetch")
    law = Law(hosts=("example.org",))
    assert isinstance(judge(spec, Intent(scope="charts.example.org"), "auto", law=law), Allow)
    assert isinstance(judge(spec, Intent(scope="evil.test"), "auto", law=law), MustAsk)
    assert isinstance(judge(spec, Intent(scope="charts.example.org"), "default", law=law), MustAsk)
    assert isinstance(judge(ToolSpec("mcp__harbour__tide", ""), Intent(), "auto", law=law), MustAsk), "a program runs outside the sandbox"


def test_errors_have_no_secret_of_the_servers_configuration(quay: Quay) -> None:
    entry = {"command": "/bin/sh", "args": ["-c", 'echo "bad token $TOKEN" >&2; exit 1'], "env": {"TOKEN": "secret-of-the-harbour"}}
    (quay.place.home / ".claude.json").write_text(json.dumps({"mcpServers": {"harbour": entry}}))
    with service("text: Hello.") as quay.place.service:
        done = quay.place.ask("hi")
    assert done.code == 0
    assert "bad token REDACTED" in done.err
    assert "secret-of-the-harbour" not in done.err
    assert os.path.exists(quay.place.home / ".claude.json")


def test_a_list_that_no_longer_holds_is_asked_for_again_beside_the_conversation(quay: Quay) -> None:
    quay.configure("harbour")

    async def talk(is_outdated: bool) -> None:
        agent = await opened(quay)
        servers: AgentServers = agent.beside["mcp"]
        [server] = servers.usable
        await agent.run("go")
        for _ in range(300):
            if servers.state(server) != "known" or not is_outdated:
                break
            await asyncio.sleep(0.02)
        assert servers.state(server) == ("started" if is_outdated else "known")
        await close_agent(agent)

    with service("text: Hello.") as quay.place.service:
        asyncio.run(_learn(quay))
        asyncio.run(talk(False))
        [kept] = (quay.place.home / "dragoman" / "cache" / "mcp").iterdir()
        kept.write_text(json.dumps(json.loads(kept.read_text()) | {"ttl_ms": 1}))
        asyncio.run(talk(True))


async def _learn(quay: Quay) -> None:
    await close_agent(await opened(quay))
