"""What is logged where, and that a program which has not set logging up sees and pays nothing."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman as dm
from destinations import MAIN, connection
from dragoman.providers.retry import RetryPolicy
from dragoman.testing.mock.server import MockServer
from scenarios.workshop import PlainTool, agent_for, failing, forever, no_wait, play


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Logger, level and words, without what differs from run to run."""
    found = [f"{record.name} {record.levelname} {record.getMessage()}" for record in caplog.records if record.name.startswith("dragoman")]
    return [re.sub(r"\d+ tokens in, \d+ out", "N tokens", re.sub(r"\d+\.\d+ s", "T s", re.sub(r"\S+#\d+:", "ID:", line))) for line in found]


def ask(protocol: str, script: str, *tools: PlainTool, system: str = "") -> None:
    async def go() -> None:
        async with MockServer(script) as server:
            where = connection(protocol, server.url + ("/v1" if protocol.startswith("openai") else ""), retry=RetryPolicy(sleep=no_wait))
            async with agent_for(where, *tools, system=system) as agent:
                await agent.run("Where is the harbour?")

    play(go)


@pytest.mark.parametrize("protocol", MAIN)
def test_a_run_its_calls_and_its_retries(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "dragoman.runs")
    script = (
        'error: 503 "Busy, key-for-tests"\n---\ncall: look {"what": "the map"}\ncall: fail {}\ncall: nobody {}\n---\ntext: At the quay.'
    )
    ask(protocol, script, PlainTool(), PlainTool("fail", failing("no map in the harbour")), system="You are a pilot.")
    told = lines(caplog)
    retry = told.pop(1)
    assert retry.startswith("dragoman.runs INFO ID: retry 1 in T s: ")
    assert told[0] == f"dragoman.runs INFO ID: started with {MAIN[protocol]}"
    assert sorted(told[1:4]) == [
        "dragoman.runs INFO ID: fail failed (not_found), T s",
        "dragoman.runs INFO ID: look finished, T s",
        "dragoman.runs INFO ID: nobody failed (unknown_tool), not run",
    ]
    assert told[4:] == ["dragoman.runs INFO ID: finished; 2 turns, 3 requests, 3 calls, 2 failed, N tokens, T s"]
    assert not re.search("harbour|the map|quay|pilot|key-for-tests", caplog.text), "nothing that was said, and no key"


def test_a_run_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dragoman.runs")
    with pytest.raises(dm.ProviderError):
        ask("anthropic", 'error: 400 "No such thing as key-for-tests"')
    assert re.search(r"failed: BadRequest: .*No such thing as REDACTED.*; 1 turn, 1 request, 0 calls, 0 failed", lines(caplog)[-1])


def test_a_cancelled_run(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dragoman.runs")

    async def go() -> None:
        tool = PlainTool(act=forever)
        async with agent_for('call: look {"what": "a"}', tool) as agent, agent.run("hi"):
            await tool.running.wait()

    play(go)
    assert lines(caplog)[-1].startswith("dragoman.runs INFO ID: cancelled; 1 turn, ")
    assert "dragoman.runs INFO ID: look cancelled (cancelled), T s" in lines(caplog)


def test_every_logger_is_on_the_page() -> None:
    source = Path(dm.__path__[0])
    used = {
        name for path in source.rglob("*.py") for name in re.findall(r'getLogger\("(dragoman\.[\w.]+)"\)', path.read_text(encoding="utf-8"))
    }
    page = (source.parent.parent / "docs" / "operate" / "traces.md").read_text(encoding="utf-8")
    assert used == set(re.findall(r"^\| `(dragoman\.\w+)` \|", page, re.MULTILINE))


def test_nothing_is_printed_or_loaded_where_logging_is_not_set_up() -> None:
    code = """
import logging, sys
import dragoman as dm
with dm.Agent(dm.testing.ScriptedProvider("text: Hi.")) as agent:
    agent.run_sync("hi")
logging.getLogger("dragoman.providers").warning("nobody listens")
assert "dragoman.loop.run_log" not in sys.modules
kinds = {type(handler) for logger in map(logging.getLogger, logging.root.manager.loggerDict) for handler in logger.handlers}
assert kinds <= {logging.NullHandler}, kinds
assert not logging.root.handlers
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
