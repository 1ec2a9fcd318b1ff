"""MCP servers in the files of every program: what is read of them, with which line, and what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.extensions import located_json
from dragoman.extensions.plugins import find_plugins
from dragoman.extensions.sources import ROOT_VARIABLES, ProgramFolder, all_folders
from dragoman.foreign.mcp_files import FoundServers, OwnConfigFile, find_servers
from dragoman.mcp_client.contracts import HttpServer, OAuthSettings, StdioServer
from dragoman.mcp_client.filling import FillFrom
from dragoman.mcp_client.naming import tool_name

ENV = {"TOKEN": "secret-token", "EMPTY": "", "ANTHROPIC_API_KEY": "our-key"}


def found(home: Path, work: Path | None = None, own: str = "", **more: Any) -> FoundServers:
    folders: tuple[ProgramFolder, ...] = all_folders({"HOME": str(home)}, str(home / "own"), [str(work)] if work is not None else [])
    files = [OwnConfigFile(str(home / "own" / "config.toml"), "user", own)] if own else []
    around = FillFrom(ENV | more.get("env", {}), lambda: {"ANTHROPIC_API_KEY"}, lambda path: Path(path).read_text())
    return find_servers(folders, files, [str(work)], around, lambda path: Path(path).read_text())


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_claude_code(tmp_path: Path, work: Path) -> None:
    project = {"mcpServers": {"near": {"type": "http", "url": "https://x.org/${WHERE:-mcp}", "headers": {"A": "Bearer ${TOKEN}"}}}}
    write(work / ".mcp.json", project)
    users = {
        "mcpServers": {"far": {"command": "other"}, "old": {"type": "sse", "url": "https://y.org/sse"}, "off": {"command": "x"}},
        "projects": {str(work): {"mcpServers": {"mine": {"command": "run", "args": ["-x"]}}, "disabledMcpServers": ["off"]}},
    }
    write(tmp_path / ".claude.json", users)
    servers = {server.name: server for server in found(tmp_path, work).servers}
    assert servers["near"].server == HttpServer("https://x.org/mcp", {"A": "Bearer secret-token"})
    assert (servers["near"].needs_yes, servers["near"].host) == (True, "x.org")
    assert str(servers["near"].origin) == f"{work}/.mcp.json:3"
    assert servers["old"].server == HttpServer("https://y.org/sse", {}, "sse")
    assert servers["mine"].server == StdioServer("run", ("-x",))
    assert servers["mine"].needs_yes is False, "it stands in the user's own file"
    assert servers["off"].is_enabled is False
    assert "secret-token" not in servers["near"].hash + servers["near"].shown


def test_gemini_cli(tmp_path: Path, work: Path) -> None:
    settings = """{
      // where the harbour is
      "mcpServers": {
        "http": {"httpUrl": "https://a.org/mcp", "timeout": 5000},
        "sse": {"url": "https://a.org/sse"},
        "local": {"command": "npx", "args": ["-y", "x"], "env": {"KEY": "$TOKEN"}, "cwd": "sub",
                  "includeTools": ["one", "two"], "excludeTools": ["two"], "trust": true},
        "gone": {"command": "x"},
      },
      "mcp": {"excluded": ["gone"]},
    }"""
    write(tmp_path / ".gemini" / "settings.json", settings)
    servers = {server.name: server for server in found(tmp_path).servers}
    assert servers["http"].server == HttpServer("https://a.org/mcp")
    assert servers["http"].call_timeout_s == 5
    assert servers["sse"].server == HttpServer("https://a.org/sse", {}, "sse")
    assert servers["local"].server == StdioServer("npx", ("-y", "x"), {"KEY": "secret-token"}, "sub")
    assert [name for name in ("one", "two", "three") if servers["local"].offers(name)] == ["one"]
    assert servers["gone"].is_enabled is False
    assert servers["local"].origin.line == 6
    write(tmp_path / ".gemini" / "mcp-server-enablement.json", '{"http": {"enabled": false}, "sse": {"enabled": true}, "local": 7}')
    assert [server.name for server in found(tmp_path).servers if server.is_enabled] == ["sse", "local"], "after `gemini mcp disable http`"


def test_an_extension_of_gemini_cli_gets_the_settings_it_was_installed_with(tmp_path: Path) -> None:
    folder = tmp_path / ".gemini" / "extensions" / "port"
    settings = [{"name": "Host", "envVar": "PORT_HOST"}, {"name": "Key", "envVar": "TOKEN", "sensitive": True}, {"envVar": "UNSET"}, 7]
    servers = {"quay": {"command": "quay", "args": ["$PORT_HOST"]}}
    write(folder / "gemini-extension.json", json.dumps({"name": "port", "settings": settings, "mcpServers": servers}))
    write(folder / ".env", 'PORT_HOST="a \\"b\\" c"\nOTHER=x\n')
    folders = [ProgramFolder("gemini", "user", str(tmp_path / ".gemini"))]
    around = FillFrom({"TOKEN": "secret-token", "HOME": str(tmp_path)})
    [server] = find_servers(folders, [], [], around, lambda path: Path(path).read_text(), find_plugins(folders).found).servers
    assert isinstance(server.server, StdioServer)
    assert server.server.args == ('a "b" c',)
    told = server.server.env.items() - dict.fromkeys(ROOT_VARIABLES, str(folder)).items()
    assert dict(told) == {"PORT_HOST": 'a "b" c', "TOKEN": "secret-token"}


def test_headers_that_a_command_gives_are_said_to_be_missing(tmp_path: Path) -> None:
    entry = {"type": "http", "url": "https://a.org/mcp", "headersHelper": "get-token.sh"}
    write(tmp_path / ".claude.json", {"mcpServers": {"a": entry}})
    (problem,) = found(tmp_path).problems
    assert "headersHelper" in problem
    assert found(tmp_path).servers[0].problem, "it is not reached without them"


def test_what_settings_of_claude_code_switch_off(tmp_path: Path, work: Path) -> None:
    commands = {name: {"command": "npx", "args": ["-y", name]} for name in ("a", "b", "c", "d")}
    write(work / ".mcp.json", json.dumps({"mcpServers": {**commands, "web": {"type": "http", "url": "https://x.org/mcp"}}}))
    write(tmp_path / ".claude" / "settings.json", json.dumps({"disabledMcpjsonServers": ["a"]}))
    write(work / ".claude" / "settings.json", json.dumps({"deniedMcpServers": [{"serverCommand": ["npx", "-y", "b"]}]}))
    local = work / ".claude" / "settings.local.json"
    write(local, json.dumps({"enableAllProjectMcpServers": True, "deniedMcpServers": [{"serverUrl": "https://*.org/*"}]}))
    servers = {server.name: server for server in found(tmp_path, work).servers}
    assert [name for name, server in servers.items() if server.is_enabled] == ["c", "d"]
    assert servers["c"].needs_yes, "no file of the project says yes to its own servers"
    write(local, json.dumps({"allowedMcpServers": [{"serverName": "c"}, {"serverUrl": "https://x.org/*"}]}))
    assert [server.name for server in found(tmp_path, work).servers if server.is_enabled] == ["c", "web"]


def test_codex(tmp_path: Path) -> None:
    text = """model = "x"

[mcp_servers.docs]
command = "docs-server"
env = { A = "$TOKEN" }
env_vars = [{ name = "TOKEN", source = "local" }]
startup_timeout_sec = 5
tool_timeout_sec = 7
enabled_tools = ["a"]

[mcp_servers.web]
url = "https://w.org/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { X = "y" }
enabled = false

[mcp_servers.charts]
url = "https://c.org/mcp"
scopes = ["read"]

[mcp_servers.charts.oauth]
client_id = "me"
callback_url = "http://127.0.0.1/callback/k7"
"""
    write(tmp_path / ".codex" / "config.toml", text)
    docs, web, charts = found(tmp_path).servers
    assert docs.server == StdioServer("docs-server", (), {"TOKEN": "secret-token", "A": "$TOKEN"}), "Codex fills nothing in"
    assert (docs.startup_timeout_s, docs.call_timeout_s, docs.include, docs.origin.line) == (5, 7, ("a",), 3)
    assert web.server == HttpServer("https://w.org/mcp", {"X": "y", "Authorization": "Bearer secret-token"})
    assert web.is_enabled is False
    settings = OAuthSettings("me", scopes=("read",), redirect_uri="http://127.0.0.1/callback/k7")
    assert charts.server == HttpServer("https://c.org/mcp", oauth=settings), "as `codex mcp add` writes it"


@pytest.mark.parametrize("is_deeper", [False, True])
def test_opencode(tmp_path: Path, work: Path, is_deeper: bool) -> None:
    write(tmp_path / "secret", "from a file\n")
    servers = {
        "local": {"type": "local", "command": ["bun", "x", "y"], "environment": {"A": "{env:TOKEN}", "B": f"{{file:{tmp_path}/secret}}"}},
        "remote": {"type": "remote", "url": "https://r.org", "headers": {"X": "{env:NOT_SET}"}, "enabled": False, "timeout": 9000},
    }
    write(tmp_path / ".config" / "opencode" / "opencode.jsonc", {"mcp": {"servers": servers} if is_deeper else servers})
    local, remote = found(tmp_path).servers
    assert local.server == StdioServer("bun", ("x", "y"), {"A": "secret-token", "B": "from a file"})
    assert remote.server == HttpServer("https://r.org", {"X": ""})
    assert (remote.is_enabled, remote.startup_timeout_s) == (False, 9)
    write(work / "opencode.json", {"mcp": {"p": {"type": "local", "command": ["x"], "environment": {"B": f"{{file:{tmp_path}/secret}}"}}}})
    assert "may not have" in found(tmp_path, work).problems[0]


def test_ours_wins_and_can_switch_off_anothers(tmp_path: Path, work: Path) -> None:
    write(work / ".mcp.json", {"mcpServers": {"a": {"command": "theirs"}, "b": {"command": "theirs"}}})
    own = '[mcp.servers.a]\ncommand = "ours"\nargs = ["${TOKEN}", "{env:TOKEN}"]\n\n[mcp.servers.b]\nenabled = false\n'
    servers = {server.name: server for server in found(tmp_path, work, own).servers}
    assert servers["a"].server == StdioServer("ours", ("secret-token", "secret-token"))
    assert (servers["a"].origin.program, servers["a"].origin.line) == ("dragoman", 1)
    assert servers["b"].is_enabled is False


def test_a_projects_file_does_not_get_our_keys(tmp_path: Path, work: Path) -> None:
    entry = {"command": "x", "env": {"K": "${ANTHROPIC_API_KEY}"}}
    write(work / ".mcp.json", {"mcpServers": {"a": entry}})
    write(tmp_path / ".claude.json", {"mcpServers": {"b": entry}})
    result = found(tmp_path, work)
    assert result.servers[0].problem
    assert "our-key" not in str(result.servers[0].server)
    assert ".mcp.json:3" in result.problems[0]
    assert "our-key" in str(result.servers[1].server), "in the user's own file, what is named is meant"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{\n "mcpServers": {\n  "a": {"command": 3}\n }\n}', 3, "command has to be a text"),
        ('{\n "mcpServers": {\n  "a": {\n   "url": "ftp://x"}\n }\n}', 4, "has to begin with http"),
        ('{\n "mcpServers": {\n  "a": {"command": "${NOPE}"}\n }\n}', 3, "NOPE is not set"),
        ('{\n "mcpServers": [\n]}', 2, "expected a table of servers"),
        ('{\n "mcpServers": {\n  "a": {"command" "x"}\n }\n}', 3, "its MCP servers are not used"),
        ('{\n "mcpServers": {\n  "a": 7\n }\n}', 3, "a table"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, work: Path, text: str, line: int, words: str) -> None:
    write(work / ".mcp.json", text)
    write(tmp_path / ".claude.json", {"mcpServers": {"good": {"command": "x"}}})
    result = found(tmp_path, work)
    [problem] = result.problems
    assert problem.startswith(f"{work}/.mcp.json:{line}: ")
    assert words in problem
    assert "good" in [server.name for server in result.servers], "and the rest holds"


def test_the_hash_is_of_what_would_run(tmp_path: Path, work: Path) -> None:
    def hash_of(**entry: object) -> str:
        write(work / ".mcp.json", {"mcpServers": {"a": {"command": "x", **entry}}})
        return found(tmp_path, work).servers[0].hash

    plain = hash_of()
    assert plain == hash_of(timeout=5), "how long it may take is not what runs"
    others = [hash_of(command="y"), hash_of(args=["-x"]), hash_of(env={"A": "1"}), hash_of(env={"A": "2"}), hash_of(cwd="sub")]
    assert len({plain, *others}) == 6


# --- JSON with lines

values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)


def paths_in(value: Any, before: tuple[str, ...] = ()) -> dict[tuple[str, ...], str]:
    """The keys, and the objects and lists in lists, each with what stands on its line."""
    match value:
        case dict():
            rows = [((*before, key), json.dumps(key), each) for key, each in value.items()]
        case list():
            rows = [((*before, str(at)), "{" if isinstance(each, dict) else "[", each) for at, each in enumerate(value)]
            rows = [row for row in rows if isinstance(row[2], dict | list)]
        case _:
            return {}
    return {path: shown for own, text, each in rows for path, shown in {own: text, **paths_in(each, own)}.items()}


@given(
    value=st.dictionaries(st.text(max_size=6), values, max_size=4), comment=st.text(st.characters(exclude_characters="\n*/"), max_size=9)
)
def test_comments_and_trailing_commas_change_nothing_and_every_key_has_its_line(value: dict[str, Any], comment: str) -> None:
    plain = json.dumps(value, indent=1)
    lines = plain.split("\n")
    written = "\n".join(f"{line} // {comment}" if not number % 2 else f"{line} /* {comment} */" for number, line in enumerate(lines))
    assert located_json.decode(written) == value
    wanted = paths_in(value)
    places = located_json.lines_of(written, list(wanted))
    assert set(places) == set(wanted)
    for path, line in places.items():
        assert wanted[path] in lines[line - 1]


@given(text=st.text(st.sampled_from('{}[]:,"\\/*\n a1'), max_size=40))
def test_any_text_is_json_or_has_a_line(text: str) -> None:
    line = 1
    try:
        located_json.decode(text)
    except located_json.WrongJson as error:
        line = error.line
    assert 1 <= line <= text.count("\n") + 1
    located_json.lines_of(text, [("a",)])


@given(server=st.text(min_size=1, max_size=100), tool=st.text(max_size=100))
def test_every_tool_has_a_name_that_services_take(server: str, tool: str) -> None:
    name = tool_name(server, tool)
    assert len(name) <= 64
    assert name.startswith("mcp__")
    assert all(char.isascii() and (char.isalnum() or char in "_-") for char in name)
    assert tool_name(server, tool, {name}) != name or len(name) == 64
