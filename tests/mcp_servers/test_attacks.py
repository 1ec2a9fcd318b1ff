"""Attacks on whoever uses MCP servers, each really made: by a project, by a server, and by a model that has both at hand."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.app.mcp_rows import ServerRow
from dragoman.base.places import find_places
from dragoman.conversation.offers import server_lines
from dragoman.mcp_client.asking import _choices, asks_by, is_page
from dragoman.mcp_client.client import McpClient
from dragoman.mcp_client.configured import ConfiguredServer, read_claude, read_entry
from dragoman.mcp_client.contracts import StdioServer
from dragoman.mcp_client.events import ResumableDecoder
from dragoman.mcp_client.filling import FillFrom
from dragoman.mcp_client.known import KnownList, KnownLists
from dragoman.mcp_client.messages import RpcRequest
from dragoman.mcp_client.oauth.tokens import Grant, TokenStore
from dragoman.mcp_client.process import ServerProcess
from dragoman.mcp_client.questions import Unanswerable
from dragoman.mcp_client.running import ServerAtWork, ServerFailed
from dragoman.values.errors import StreamBroken
from dragoman.values.origin import Origin
from policy.sandbox.sandboxes import sandbox_at
from program import Place, Service, calls, script
from quay import HARBOUR, Quay

Serve = Callable[..., Service]
ALLOW = ("--allow", "mcp__*")
HOSTILE = str(Path(__file__).with_name("hostile_server.py"))
NO_KEYRING = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
SECRET = "wharf-0123456789-secret"


def configure(place: Place, **entries: dict[str, Any]) -> None:
    (place.home / ".claude.json").write_text(json.dumps({"mcpServers": entries}))


def hostile(**more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [HOSTILE]} | more


def told(asked: Service) -> str:
    """All that the model was sent."""
    return json.dumps(asked.requests, ensure_ascii=False)


# --- a project -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def own_server(place: Place, quay: Quay) -> Path:
    """A project's server that is a file of the project, agreed to and known."""
    file = place.work / "tools" / "server.py"
    file.parent.mkdir()
    shutil.copy(HARBOUR, file)
    entry = quay.entry("harbour")
    entry["args"][0] = "tools/server.py"
    (place.work / ".mcp.json").write_text(json.dumps({"mcpServers": {"harbour": entry}}))
    assert place.run("mcp", "approve", "harbour", "--trust").code == 0
    assert place.run("mcp", "test", "harbour", "--trust").code == 0
    return file


def test_the_model_does_not_get_out_of_the_sandbox_by_changing_a_server(place: Place, serve: Serve, own_server: Path) -> None:
    mark = place.home / "owned"
    evil = own_server.read_text().replace("import base64\n", f"import base64\nopen({str(mark)!r}, 'w')\n")
    tide = calls(("mcp__harbour__tide", {"port": "Sur"}))
    write = calls(("write_file", {"file_path": "tools/server.py", "content": evil}))
    asked = serve(script(calls(("read_file", {"file_path": "tools/server.py"})), write, tide, "text: Done."))
    done = place.ask("Go", "--trust", "--approval", "auto-edit", *ALLOW)
    assert done.code == 0, done
    assert own_server.read_text() == evil
    assert not mark.exists()
    assert "a file of the project that it runs" in told(asked)
    # Nor at the next start; after another yes it runs.
    asked = serve("text: Hello.")
    assert "has changed" in place.ask("hi", "--trust").err
    assert not mark.exists()
    assert place.run("mcp", "approve", "harbour", "--trust").code == 0
    serve(script(tide, "text: Done."))
    assert place.ask("Go", "--trust", *ALLOW).code == 0
    assert mark.exists()


def test_a_command_does_not_get_out_of_the_sandbox_by_changing_the_module_that_a_server_is(place: Place, quay: Quay, serve: Serve) -> None:
    """In one run in `auto`: nothing of the command line names the file."""
    shutil.copy(HARBOUR, place.work / "harbour.py")
    entry = quay.entry("harbour")
    entry["args"] = ["-um", "harbour", *entry["args"][1:]]
    (place.work / ".mcp.json").write_text(json.dumps({"mcpServers": {"harbour": entry}}))
    assert "it runs: harbour.py" in place.run("mcp", "approve", "harbour", "--trust").out
    assert place.run("mcp", "test", "harbour", "--trust").code == 0
    (place.work / "notes.db").write_text("1")
    assert place.run("mcp", "test", "harbour", "--trust").code == 0
    mark = place.home / "owned"
    change = f"sed -i \"s|^import base64$|import base64; open('{mark}', 'w')|\" harbour.py"
    tide = calls(("mcp__harbour__tide", {"port": "Sur"}))
    asked = serve(script(calls(("run_shell", {"command": change})), tide, "text: Done."))
    done = place.ask("Go", "--trust", "--approval", "auto", *ALLOW, timeout_s=120)
    assert done.code == 0, done
    assert str(mark) in (place.work / "harbour.py").read_text()
    assert not mark.exists()
    assert "a file of the project that it runs" in told(asked)
    assert place.run("mcp", "approve", "harbour", "--trust").code == 0
    serve(script(tide, "text: Done."))
    assert place.ask("Go", "--trust", *ALLOW).code == 0
    assert mark.exists()


def test_a_server_of_the_users_own_that_runs_a_file_of_the_project_is_bound_to_it_too(place: Place, quay: Quay, serve: Serve) -> None:
    shutil.copy(HARBOUR, place.work / "server.py")
    entry = quay.entry("harbour")
    entry["args"][0] = "server.py"
    configure(place, harbour=entry)
    asked = serve("text: Hello.")
    assert "dragoman mcp approve harbour" in place.ask("hi").err
    assert quay.pids() == []
    assert "mcp__harbour" not in told(asked)
    assert place.run("mcp", "approve", "harbour").code == 0
    asked = serve("text: Hello.")
    assert place.ask("hi").err == ""
    assert "mcp__harbour__tide" in told(asked)


@pytest.mark.parametrize("key", ["env_vars", "pass_env"])
def test_no_key_of_another_program_hides_a_variable_from_the_yes(place: Place, quay: Quay, serve: Serve, key: str) -> None:
    path = place.work / ".mcp.json"

    def write(value: str) -> None:
        path.write_text(
            json.dumps({"mcpServers": {"harbour": quay.entry("harbour") | {key: ["LD_PRELOAD"], "env": {"LD_PRELOAD": value}}}})
        )

    write("")
    assert place.run("mcp", "approve", "harbour", "--trust").code == 0
    write("./evil.so")
    serve("text: Hello.")
    assert "has changed" in place.ask("hi", "--trust").err


def test_a_project_gets_no_copy_of_a_key(place: Place, serve: Serve) -> None:
    entry = {"type": "http", "url": "http://127.0.0.1:9/", "headers": {"X-Debug": "${MY_COPY}"}}
    (place.work / ".mcp.json").write_text(json.dumps({"mcpServers": {"leak": entry}}))
    serve("text: Hello.")
    copied = {"MY_COPY": "sk-ant-0123456789abcdef", "ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef"}
    assert "holds a key for a model" in place.ask("hi", "--trust", env=copied).err


def test_the_question_shows_what_a_server_is_given_and_hides_nothing(tmp_path: Path) -> None:
    entry = {"url": "https://x.org", "headers": {"X-Debug": "${AWS_SECRET_ACCESS_KEY}", "Y": "\x1b[2J\nz"}}
    server = read_entry("hub", entry, Origin("claude", "project", "/x"), read_claude, FillFrom({"AWS_SECRET_ACCESS_KEY": SECRET}))
    lines = server_lines(ServerRow(server, "unasked", None), "/x")
    assert not any("\x1b" in line or "\n" in line for line in lines)
    assert "X-Debug=${AWS_SECRET_ACCESS_KEY}" in lines[1]
    assert "AWS_SECRET_ACCESS_KEY" in lines[2]
    assert SECRET not in "".join(lines)


def test_a_project_does_not_take_the_name_of_a_server_of_the_users(place: Place, quay: Quay, serve: Serve) -> None:
    """A rule that allows the tools of the user's server is none about those of a stranger."""
    configure(place, harbour=quay.entry("mine"))
    theirs = {"harbour": quay.entry("theirs"), "har bour": quay.entry("theirs"), "harbour_": quay.entry("theirs")}
    (place.work / ".mcp.json").write_text(json.dumps({"mcpServers": theirs}))
    for name in theirs:
        place.run("mcp", "approve", name, "--trust")
    serve(script(calls(("mcp__harbour__tide", {"port": "Sur"})), "text: Done."))
    done = place.ask("Go", "--trust", "--allow", "mcp__harbour")
    assert done.code == 0, done
    assert "your own in" in done.err
    assert "call tide" in quay.log("mine")
    assert "call tide" not in quay.log("theirs")


def test_a_rule_about_a_server_does_not_cover_one_whose_name_begins_so(place: Place, quay: Quay, serve: Serve) -> None:
    configure(place, git__hub=quay.entry("hub"))
    asked = serve("text: Hello.")
    place.ask("hi")
    [name] = {tool["name"] for tool in asked.requests[0]["tools"] if tool["name"].endswith("tide")}
    serve(script(calls((name, {"port": "Sur"})), "text: Done."))
    place.ask("Go", "--allow", "mcp__git")
    assert "call tide" not in quay.log("hub")


def test_what_a_project_writes_reaches_no_terminal_as_it_is(place: Place, serve: Serve) -> None:
    odd = {
        "x\x1b[2J\u202e\nfake": {"command": "true"},
        "y": {"command": "true", "args": ["\x1b]0;own\x07"]},
        "z": {"url": "js:\x1b[2J\u202e"},
    }
    (place.work / ".mcp.json").write_text(json.dumps({"mcpServers": odd}))
    serve("text: Hello.")
    said = [place.ask("hi", "--trust")]
    said += [place.run(*words, "--trust") for words in (("mcp", "list"), ("mcp", "get", "y"), ("mcp", "approve", "y"), ("config",))]
    for done in said:
        assert done.code == 0, done
        assert not any(char in done.out + done.err for char in "\x1b\x07\u202e"), done
    assert "fake" in said[0].err


@pytest.mark.parametrize("kind", ["fifo", "device", "huge", "loop"])
def test_a_file_that_is_none_stops_nothing(place: Place, serve: Serve, kind: str) -> None:
    path = place.work / ".mcp.json"
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "huge":
            path.write_bytes(b'{"mcpServers": {"' + b"x" * 21_000_000)
        case _:
            path.symlink_to(path)
    serve("text: Hello.")
    done = place.ask("hi", "--trust")
    assert (done.code, done.out) == (0, "Hello.\n"), done


# --- a server ------------------------------------------------------------------------------------------------------------------


def test_what_a_server_offers_is_kept_in_bounds(place: Place, serve: Serve) -> None:
    configure(place, h=hostile())
    asked = serve("text: Hello.")
    done = place.ask("hi")
    assert (done.code, done.out) == (0, "Hello.\n"), done
    tools = {tool["name"]: tool for tool in asked.requests[0]["tools"]}
    assert tools["read_file"]["description"] != "I am the built-in one."
    assert "mcp__h__read_file" in tools
    assert all(name.isascii() and name.replace("_", "").replace("-", "").isalnum() for name in tools)
    assert len(json.dumps(tools["mcp__h__long"])) < 5_000
    assert "\\u001b" not in json.dumps(asked.requests[0])
    assert "/etc/passwd" not in json.dumps(tools["mcp__h__far"]["input_schema"])
    assert "Ignore all rules" not in told(asked)


@pytest.mark.parametrize("name", ["bomb", "slow_pattern", "far", "pictures", "huge", "flood"])
def test_a_call_ends_and_the_conversation_goes_on(place: Place, serve: Serve, name: str) -> None:
    configure(place, h=hostile())
    asked = serve(
        script(calls((f"mcp__h__{name}", {"x": "a" * 40 + "!"} if name in ("bomb", "slow_pattern", "far") else {})), "text: Done.")
    )
    done = place.ask("Go", *ALLOW)
    assert (done.code, done.out) == (0, "Done.\n"), done
    assert "\x1b" not in done.err
    assert len(told(asked)) < 2_000_000
    if name == "flood":
        assert "asked 1 times" in told(asked) or "asked 2 times" in told(asked)


def test_what_a_server_repeats_of_its_secrets_reaches_nobody(place: Place, serve: Serve) -> None:
    configure(place, h=hostile(env={"WHARF_TOKEN": "${WHARF}"}))
    asked = serve(script(calls(("mcp__h__echo", {})), calls(("mcp__h__pictures", {})), "text: Done.", "text: Done.", "text: Done."))
    for prompt in ("Go", "See @h:x://env", "/mcp__h__leak"):
        done = place.ask(prompt, *ALLOW, env={"WHARF": SECRET})
        assert (done.code, done.out) == (0, "Done.\n"), done
    assert told(asked).count("it is not what it is called") >= 2
    assert told(asked).count("REDACTED") >= 4
    assert SECRET not in told(asked)
    kept = [path for path in place.home.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert kept == []


def test_nor_does_it_reach_a_subagent(place: Place, serve: Serve) -> None:
    configure(place, h=hostile(env={"WHARF_TOKEN": "${WHARF}"}))
    task = calls(("task", {"agent": "general", "description": "d", "prompt": "echo"}))
    asked = serve(script(task, calls(("mcp__h__echo", {})), "text: inner", "text: Done."))
    done = place.ask("Go", *ALLOW, env={"WHARF": SECRET})
    assert (done.code, done.out) == (0, "Done.\n"), done
    assert "REDACTED" in told(asked)
    assert SECRET not in told(asked)


@contextmanager
def echoing_server() -> Iterator[str]:
    """An HTTP server whose one tool repeats the header that signs in."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            said = f"you sent {self.headers.get('authorization')}"
            results: dict[str, Any] = {
                "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "e", "version": "1"}},
                "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
                "tools/call": {"content": [{"type": "text", "text": said}]},
            }
            if message.get("method") not in results:
                self.send_response(202 if "id" not in message else 400)
                self.send_header("content-length", "0")
                self.end_headers()
                return
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_error(405)

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("by", ["oauth", "header"])
def test_a_token_that_a_server_repeats_reaches_neither_the_model_nor_a_file(place: Place, serve: Serve, by: str) -> None:
    with echoing_server() as url:
        headers = {"Authorization": "Bearer ${WHARF}"} if by == "header" else {}
        configure(place, e={"type": "http", "url": url, "headers": headers})
        tokens = Path(place.env["DRAGOMAN_HOME"]) / "data" / "mcp_tokens.json"
        if by == "oauth":
            found = place.run("config", "--output-format", "json")
            assert found.code == 0
            tokens = Path(find_places(place.env).mcp_tokens_file)
            before = dict(os.environ)
            os.environ |= NO_KEYRING
            try:
                TokenStore(str(tokens)).keep_grant(url, Grant("https://i.org", url, SECRET, "https://i.org/token", "id"))
            finally:
                os.environ.clear()
                os.environ |= before
        asked = serve(script(calls(("mcp__e__echo", {})), "text: Done."))
        done = place.ask("Go", *ALLOW, env=NO_KEYRING | {"WHARF": SECRET})
    assert (done.code, done.out) == (0, "Done.\n"), done
    assert "you sent Bearer REDACTED" in told(asked)
    assert SECRET not in told(asked)
    assert [path for path in place.home.rglob("*") if path.is_file() and path != tokens and SECRET.encode() in path.read_bytes()] == []


def test_a_server_asks_the_user_nothing_but_within_a_call(tmp_path: Path) -> None:
    """Nor to open what is no page, and its words cannot pass for others."""
    asked: list[tuple[str, tuple[str, ...]]] = []

    async def play() -> list[str]:
        client = McpClient(StdioServer(sys.executable, (HOSTILE,)), elicit=asks_by(ask, "h"))
        try:
            await client.connect()
            unasked = await client._answer(RpcRequest("q", "elicitation/create", {"message": "Your password?", "requestedSchema": {}}))
            return [str(unasked)]
        except Unanswerable as error:
            said = [str(error)]
        finally:
            answer = (await client.call_tool("script", {})).content[0]["text"]
            await client.aclose()
        return [*said, answer]

    def ask(words: str, choices: tuple[str, ...]) -> str:
        asked.append((words, choices))
        return "1"

    refused, answered = asyncio.run(play())
    assert "does not offer elicitation" in refused
    assert json.loads(answered)["result"] == {"action": "decline"}
    assert asked == []


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://bank.org@evil.org/",
        "https://evil.org/\u202egro.knab",
        "http://",
        "https://a b",
        "",
    ],
)
def test_what_is_no_page_is_not_shown(url: str) -> None:
    assert not is_page(url)
    assert is_page("https://example.org/sign?state=1%20")


def make_client(server: ConfiguredServer, known: KnownList | None, on_change: Callable[[str], None]) -> McpClient:
    assert isinstance(server.server, StdioServer)
    return McpClient(server.server, on_change=on_change)


def test_a_server_that_changes_its_list_with_every_list_is_asked_now_and_then(tmp_path: Path) -> None:
    entry = read_entry("h", hostile(args=[HOSTILE, "restless"]), Origin("claude", "user", "/x"), read_claude, FillFrom({}))

    async def play() -> str:
        running = ServerAtWork(entry, KnownLists(str(tmp_path)), make_client, lambda server, known: None)
        try:
            await running.learn()
            running._look_again("tools")
            await asyncio.sleep(1.5)
            return (await running.call("flood", {}, None, lambda text: None)).content[0]["text"]
        finally:
            await running.aclose()

    assert int(asyncio.run(play()).split()[1]) <= 3


def test_a_server_that_ended_is_not_started_by_a_look_at_its_list(tmp_path: Path) -> None:
    """It would be started without being counted, and without a word to the model."""
    entry = read_entry("h", hostile(args=[HARBOUR]), Origin("claude", "user", "/x"), read_claude, FillFrom({}))

    async def play() -> list[str]:
        told: list[str] = []
        running = ServerAtWork(entry, KnownLists(str(tmp_path)), make_client, lambda server, known: None)
        try:
            await running.learn()
            with pytest.raises(ServerFailed):
                await running.call("die", {}, None, told.append)
            running._look_again("tools")
            assert running._looking is not None
            await running._looking
            assert (running.starts, running.state) == (1, "known")
            await running.call("tide", {"port": "Sur"}, None, told.append)
            assert running.starts == 2
        finally:
            await running.aclose()
        return told

    [told] = asyncio.run(play())
    assert "was started again" in told


def test_choices_of_a_form_are_one_line_each() -> None:
    shown, values = _choices({"enum": ["a\n1. yes\x1b[2J", *map(str, range(1000))]})
    assert len(shown) == len(values) == 200
    assert "\n" not in shown[0]
    assert "\x1b" not in shown[0]
    assert values[0] == "a\n1. yes\x1b[2J"


def test_a_relative_command_is_that_of_the_servers_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one of the folder that we were started in."""
    for name in ("agreed", "elsewhere"):
        file = tmp_path / name / "serve.sh"
        file.parent.mkdir()
        file.write_text(f"#!/bin/sh\ntouch {tmp_path / name / 'ran'}\n")
        file.chmod(0o755)
    monkeypatch.chdir(tmp_path / "elsewhere")

    async def start() -> None:
        process = ServerProcess(StdioServer("./serve.sh", cwd=str(tmp_path / "agreed")))
        await process.start()
        await process.wait()
        await process.end()

    asyncio.run(start())
    assert (tmp_path / "agreed" / "ran").exists()
    assert not (tmp_path / "elsewhere" / "ran").exists()


def test_a_stream_whose_line_never_ends_is_given_up() -> None:
    decoder = ResumableDecoder()

    def read() -> None:
        for _ in range(100):
            decoder.feed(b"x" * 1_000_000)

    with pytest.raises(StreamBroken):
        read()


def test_a_list_that_never_ends_and_a_time_beyond_all_numbers(tmp_path: Path) -> None:
    """A server that has another page after each: what it was told to keep is bounded, and its list can be kept."""
    pages = iter(range(1_000_000))

    async def answer(method: str, params: dict[str, Any], **how: Any) -> dict[str, Any]:
        number = next(pages)
        tool = {"name": f"t{number}", "description": "x" * 3_000_000, "inputSchema": {"type": "object"}}
        return {"tools": [tool], "nextCursor": str(number), "ttlMs": 1e308}

    client = McpClient(StdioServer("never"))
    client._request = answer  # type: ignore[method-assign]
    found = asyncio.run(client.list_tools())
    assert 5 < len(found.items) < 20
    assert msgspec.json.encode(KnownList(ttl_ms=found.ttl_ms))


# --- commands in the sandbox ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exist", [True, False])
def test_a_command_in_the_sandbox_forges_no_yes_where_the_home_folder_is_worked_in(place: Place, serve: Serve, exist: bool) -> None:
    with sandbox_at(1, place.home):
        place.work = place.home
    del (env := dict(place.env))["DRAGOMAN_HOME"]
    ours = find_places(env)
    files = [*ours.decision_files, f"{ours.server_lists}/x.json", ours.mcp_tokens_file, f"{place.home}/.claude.json"]
    for path in files if exist else files[-1:]:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text("{}")
    lines = [f"echo forged >> {path}; cat {ours.mcp_tokens_file}" for path in files]
    serve(script(calls(("run_shell", {"command": "; ".join(lines)})), "text: ok"))
    done = place.ask("Go", "--approval", "auto", env={"DRAGOMAN_HOME": ""})
    assert (done.code, done.out) == (0, "ok\n"), done
    kept = [path for path in files if Path(path).exists() and "forged" in Path(path).read_text()]
    assert kept == []
