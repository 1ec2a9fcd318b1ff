"""The walks of docs/inside/walks.md, walked: the program does what each is about, and the files that ran are those it names."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from program import Place, Service, calls, script
from quay import Quay
from terminals import terminal
from test_walks import WALKS, core, walk
from traced import Trace

Serve = Callable[..., Service]
READ = calls(("read_file", {"file_path": "a.txt"}))
PENDING = """
import asyncio, dragoman as dm
from dragoman.contracts import Later
from dragoman.options import ApprovalOptions, SessionOptions
from dragoman.stores import FileStore
@dm.tool(kind="execute")
def pay(amount: int) -> str:
    "Pays."
    return "paid"
async def later(call, intent): return Later()
async def main():
    store = FileStore({where!r})
    first = dm.Agent("anthropic/claude-opus-5", tools=[pay], approval=ApprovalOptions(ask=later), session=SessionOptions(store))
    async with first as agent:
        await agent.run("Pay 3.")
        name = agent.session_id
    async with dm.Agent(None, tools=[pay], approval=ApprovalOptions(ask=later), session=SessionOptions(store, resume=name)) as agent:
        (call,) = agent.pending
        print((await agent.resume({call.id: dm.Allow()})).text)
asyncio.run(main())
"""
NOT_RUN = {
    "app/options.py": "the options as a value: it has no function",
    "text_tools/dialect.py": "a dialect as a value: it has no function",
    "sessions/stores.py": "what stores promise: it has no function with a body",
    "policy/sandbox/launcher/program.py": "a process of its own, which takes nothing from the environment of the program",
}
"""Files that a walk names and that cannot be seen to run, with the reason."""


@pytest.fixture
def trace(place: Place, tmp_path: Path) -> Trace:
    folder = tmp_path / "trace"
    folder.mkdir()
    found = Trace(folder)
    place.more_env = found.env
    (place.work / "a.txt").write_text("hello\n" * 2_000)
    return found


def not_run(title: str, trace: Trace) -> list[str]:
    ran = trace.files
    return [name for name in walk(title) if name not in ran and name not in NOT_RUN]


def test_one_turn_and_a_prompt_from_the_command_line(place: Place, serve: Serve, trace: Trace) -> None:
    assert place.run("-p", "hi", "--offline").code, "nothing is named, and no key is there"
    place.run("-p", "hi")
    serve(script(READ, "text: Done."))
    assert place.run("-p", "hi", env={"OPENAI_API_KEY": "", "GEMINI_API_KEY": ""}).out == "Done.\n"
    assert not_run("One turn", trace) == []
    assert not_run("A prompt from the command line", trace) == []
    assert [name for name in core() if name not in trace.files] == [], "docs/inside/map.md says that a prompt goes through it"


def test_resume(place: Place, serve: Serve, trace: Trace) -> None:
    service = serve(script("text: Done.", "text: Again.", calls(("pay", {"amount": 3})), "text: It is paid."))
    assert place.ask().code == 0
    assert place.run("-c", "-p", "and?").out == "Again.\n"
    code = PENDING.replace("{where!r}", repr(str(place.home / "own")))
    done = subprocess.run([sys.executable, "-c", code], env=place.env, cwd=place.work, capture_output=True, text=True, timeout=60)
    assert done.stdout == "It is paid.\n", done.stderr
    assert len(service.requests) == 4
    assert not_run("Resume", trace) == []


def test_a_tool_call_written_as_text(place: Place, serve: Serve, trace: Trace) -> None:
    written = json.dumps('<tool_call>\n{"name": "read_file", "arguments": {"file_path": "a.txt"}}\n</tool_call>')
    broken = json.dumps('<tool_call>\n{"name": "read_file", "arguments": {"file_path": </tool_call>')
    serve(script(f"text: {written}", f"text: {broken}", "text: Done."))
    assert place.ask(model="openai/nobody-knows-it").out == "Done.\n"
    assert not_run("A tool call written as text", trace) == []


def test_a_compression(place: Place, serve: Serve, trace: Trace) -> None:
    serve(script(READ, "text: Done.", "text: Again.", *["nothing"] * 8))
    assert place.run("-m", "openai/nobody-knows-it", stdin="Read it. " * 20_000).code == 0
    assert place.run("-c", "-p", "and?").code == 0
    assert place.run("context").code == 0
    assert place.run("context", "compress").out.startswith("Not summarised")
    assert not_run("A compression", trace) == []


def test_a_cancel(place: Place, serve: Serve, trace: Trace) -> None:
    service = serve(script("text: Half of it\nstall", calls(("run_shell", {"command": "echo begun; sleep 60"}))))
    process = place.start("-m", "anthropic/claude-opus-5", "-p", "hi", "--output-format", "stream-json")
    assert process.stdout is not None
    while b"Half" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    with terminal(place, "--sandbox", "off") as shown:
        shown.prompt()
        shown.ask("sleep")
        shown.expect("sleep 60", "begun")
        shown.send("\x03")
        shown.expect("cancelled")
        shown.prompt()
        shown.send("/quit\r")
        assert shown.ended() == 0
    assert len(service.requests) == 2
    assert not_run("A cancel", trace) == []


def test_a_command_and_a_prompt_typed_in_the_conversation(place: Place, serve: Serve, trace: Trace) -> None:
    place.ui = ""
    hooks = {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "true"}]}]}}
    (place.home / ".claude").mkdir()
    (place.home / ".claude" / "settings.json").write_text(json.dumps(hooks))
    serve(script(calls(("run_shell", {"command": "touch here /etc/there"})), "text: Done."))
    with terminal(place) as shown:
        shown.expect("›")
        shown.ask("touch it")
        shown.expect("write in the workspace?", "esc stop the run")
        shown.read_for(1)  # what is typed before a pause goes to the prompt
        shown.send("y")
        shown.expect("Done.")
        shown.send("/quit\r")
        assert shown.ended() == 0
    assert not_run("A command: may it run", trace) == []
    assert not_run("A prompt typed", trace) == []


def test_a_prompt_from_an_editor(place: Place, serve: Serve, trace: Trace) -> None:
    (place.work / "AGENTS.md").write_text("Be brief.\n")
    serve(script(READ, "text: Done."))
    process = place.start("acp", "-m", "anthropic/claude-opus-5", stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None

    def say(**message: Any) -> None:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()

    def hear(id: int) -> Any:
        for line in process.stdout:
            message = json.loads(line)
            if message.get("method") == "session/request_permission":
                say(id=message["id"], result={"outcome": {"outcome": "selected", "optionId": "y"}})
            elif message.get("id") == id:
                return message["result"]

    say(id=1, method="initialize", params={"protocolVersion": 1})
    assert hear(1)["protocolVersion"] == 1
    say(id=2, method="session/new", params={"cwd": str(place.work), "mcpServers": []})
    session = hear(2)["sessionId"]
    say(id=3, method="session/prompt", params={"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]})
    assert hear(3) == {"stopReason": "end_turn"}
    assert process.communicate(timeout=60)[1] == b""
    assert not_run("A prompt from an editor", trace) == []


def test_a_tool_of_an_mcp_server(place: Place, serve: Serve, trace: Trace) -> None:
    """Of one that is a program, beside one behind an address where nobody answers."""
    quay = Quay(place)
    far = {"type": "http", "url": "http://127.0.0.1:9/mcp"}
    (place.home / ".claude.json").write_text(json.dumps({"mcpServers": {"harbour": quay.entry("harbour"), "far": far}}))
    serve(script(calls(("mcp__harbour__tide", {"port": "Sur"})), "text: Done."))
    assert place.ask("hi", "--approval", "auto", "--allow", "mcp__harbour__tide").out == "Done.\n"
    assert "call tide" in quay.log("harbour")
    assert not_run("A tool of an MCP server", trace) == []


def test_every_walk_is_walked() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    titles = [part.partition("\n")[0] for part in WALKS.split("\n## ")[1:]]
    assert [title for title in titles if not any(f'not_run("{title[:length]}"' in source for length in range(4, len(title) + 1))] == []
    named = {name for title in titles for name in walk(title)}
    assert sorted(set(NOT_RUN) - named) == [], "no walk names it"


def test_what_did_not_run_is_named(trace: Trace) -> None:
    assert not_run("One turn", trace) == walk("One turn")
