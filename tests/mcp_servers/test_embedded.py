"""MCP servers of an agent in somebody's own code: `dragoman.mcp.Servers`."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import dragoman as dm
from dragoman.mcp import HttpServer, ServerFailed, Servers, StdioServer
from dragoman.testing import ScriptedProvider
from dragoman.values.events import ToolCallUpdated
from dragoman.values.messages import ToolResult
from processes import gone_within

SERVER = Path(__file__).with_name("harbour_server.py")


def harbour(log: Path, **env: str) -> StdioServer:
    return StdioServer(sys.executable, (str(SERVER), f"log={log}"), env=env)


def calls(*wanted: tuple[str, dict[str, Any]]) -> ScriptedProvider:
    return ScriptedProvider("".join(f"call: {name} {json.dumps(args)}\n---\n" for name, args in wanted) + "text: Done.")


def results(provider: ScriptedProvider) -> list[str]:
    return [part.text for message in provider.requests[-1].messages for part in message.parts if isinstance(part, ToolResult)]


def pids(log: Path) -> list[str]:
    return list(dict.fromkeys(line.split()[0] for line in log.read_text().splitlines()))


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_its_tools_stand_beside_functions_and_it_ends_with_the_block(tmp_path: Path) -> None:
    def depth(port: str) -> str:
        """How deep it is."""
        return f"{port}: 7"

    log = tmp_path / "log"
    provider = calls(("mcp__harbour__tide", {"port": "Muscat"}), ("depth", {"port": "Muscat"}), ("mcp__harbour__slow", {}))

    async def main() -> list[Any]:
        async with Servers({"harbour": harbour(log)}, exclude=["env"]) as servers:
            assert "mcp__harbour__env" not in [tool.spec.name for tool in servers.tools]
            async with dm.Agent(provider, tools=[depth, *servers.tools]) as agent:
                return [event async for event in agent.run("When?")]

    events = asyncio.run(main())
    assert results(provider) == ["In Muscat the tide is high at noon.", "Muscat: 7", "slow done"]
    assert [(each.done, each.total) for each in events if isinstance(each, ToolCallUpdated) and each.total][-1] == (2, 2)
    assert not any(map(is_running, pids(log)))


def test_code_that_is_not_async_and_threads_share_one_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    said: list[str] = []

    def work(number: int) -> None:
        provider = calls(*(("mcp__harbour__tide", {"port": f"port {number}-{each}"}) for each in range(5)))
        with dm.Agent(provider, tools=servers.tools) as agent:
            agent.run_sync("go")
        assert results(provider) == [f"In port {number}-{each} the tide is high at noon." for each in range(5)]
        said.append("done")

    with Servers({"harbour": harbour(log)}) as servers:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert said == ["done"] * 8
    assert len(pids(log)) == 1


def test_a_cancelled_call_and_a_dying_server_leave_the_others_alone(tmp_path: Path) -> None:
    log, other = tmp_path / "log", tmp_path / "other"
    dying = calls(("mcp__b__die", {}), ("mcp__b__tide", {"port": "Sur"}), ("mcp__a__tide", {"port": "Sur"}))

    async def main() -> None:
        async with Servers({"a": harbour(log), "b": harbour(other), "c": harbour(other)}) as servers:
            async with dm.Agent(calls(("mcp__c__sleep", {})), tools=servers.tools) as agent:
                run = agent.run("sleep")
                async for event in run:
                    if isinstance(event, ToolCallUpdated) and event.state == "executing":
                        run.cancel()
            async with dm.Agent(dying, tools=servers.tools) as agent:
                await agent.run("go")

    asyncio.run(main())
    first, *rest = results(dying)
    assert "died" in first or "ended" in first
    assert [each.splitlines()[-1] for each in rest] == ["In Sur the tide is high at noon."] * 2
    assert not any(map(is_running, [*pids(log), *pids(other)]))


def test_one_that_cannot_be_started_is_named_and_the_others_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(ServerFailed, match="broken"):
        Servers({"harbour": harbour(log), "broken": StdioServer("no-such-program-here")}).__enter__()
    assert not any(map(is_running, pids(log)))
    with pytest.raises(dm.errors.InputError, match=r"must be a dragoman\.mcp\.StdioServer"):
        Servers({"harbour": "npx"})  # type: ignore[dict-item]
    with pytest.raises(dm.errors.InputError, match="inside the block"):
        _ = Servers({"far": HttpServer("http://127.0.0.1:9/")}).tools
    with pytest.raises(ServerFailed, match="far"), Servers({"far": HttpServer("http://127.0.0.1:9/")}):
        pass


def test_calls_are_put_before_a_person_where_that_is_wanted(tmp_path: Path) -> None:
    provider = calls(("mcp__harbour__tide", {"port": "Muscat"}))
    asked: list[str] = []

    def ask(call: Any, intent: dm.Intent) -> dm.Deny:
        asked.append(intent.title)
        return dm.Deny("not now")

    with (
        Servers({"harbour": harbour(tmp_path / "log")}, asks=True) as servers,
        dm.Agent(provider, tools=servers.tools, approval=dm.ApprovalOptions(ask=ask)) as agent,
    ):
        agent.run_sync("go")
    assert asked == ['harbour: tide {"port":"Muscat"}']
    assert "not now" in results(provider)[0]


def test_what_it_was_given_as_a_secret_does_not_come_back(tmp_path: Path) -> None:
    provider = calls(("mcp__harbour__tide", {"port": "a-secret-of-ours"}))
    with (
        Servers({"harbour": harbour(tmp_path / "log", HARBOUR_TOKEN="a-secret-of-ours")}) as servers,
        dm.Agent(provider, tools=servers.tools) as agent,
    ):
        agent.run_sync("go")
    assert results(provider) == ["In REDACTED the tide is high at noon."]


KILLED = """
import os, sys, dragoman.mcp as mcp
if sys.argv[3] == "forgotten":
    mcp.Servers({"harbour": mcp.StdioServer(sys.executable, (sys.argv[1], f"log={sys.argv[2]}"))}).__enter__()
    raise SystemExit
with mcp.Servers({"harbour": mcp.StdioServer(sys.executable, (sys.argv[1], f"log={sys.argv[2]}"))}) as servers:
    if sys.argv[3] == "fork" and os.fork() == 0:
        try:
            mcp.Servers({"harbour": mcp.StdioServer(sys.executable, (sys.argv[1], f"log={sys.argv[2]}"))}).__enter__().close()
            servers.close()  # as where it leaves the block: they are its parent's to end
            print("opened its own", flush=True)
        finally:
            os._exit(0)
    if sys.argv[3] == "fork":
        os.wait()
    else:
        os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("way", ["killed", "fork", "forgotten"])
def test_no_server_outlives_the_program(tmp_path: Path, way: str) -> None:
    log = tmp_path / "log"
    run = subprocess.run(
        [sys.executable, "-W", "default" if way == "forgotten" else "ignore", "-c", KILLED, str(SERVER), str(log), way],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=dict(os.environ),
    )
    assert (run.stdout, run.stderr) == ("opened its own\n" if way == "fork" else "", "")
    assert gone_within(60, f"log={log}")
