"""What a plugin brings beside skills and commands, by the real program: servers, hooks and subagents, of the three kinds of plugins."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from program import Place, calls, script, service
from quay import HARBOUR

KINDS = ("claude", "gemini", "agents")
AGENT = "---\nname: pilot\ndescription: Knows the reefs\ntools: Read\n---\nYou are a pilot.\n"


def put(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1))
    return path


def hook_script(root: Path, log: Path) -> None:
    put(root / "scripts" / "hook.sh", f'echo "$1 $CLAUDE_PLUGIN_ROOT $extensionPath" >> "{log}"\n')


def install(place: Place, kind: str, folder: str = "home") -> Path:
    """A plugin `port` with a server, a hook and a subagent: the user's own, or the project's. Returns its folder."""
    base = getattr(place, folder)
    quay = f"log={place.home / 'server.log'}"
    log = place.home / "hook.log"
    server = {"command": sys.executable, "args": ["${CLAUDE_PLUGIN_ROOT}/server.py", quay]}
    hook = [{"matcher": "", "hooks": [{"type": "command", "command": "sh ${CLAUDE_PLUGIN_ROOT}/scripts/hook.sh prompt"}]}]
    if kind == "claude":
        root = base / ".claude" / "plugins" / "cache" / "market" / "port" / "1.0"
        put(root / ".claude-plugin" / "plugin.json", {"name": "port"})
        put(root / ".mcp.json", {"mcpServers": {"harbour": server}})
        put(root / "hooks" / "hooks.json", {"hooks": {"UserPromptSubmit": hook}})
        listed = {"version": 2, "plugins": {"port@market": [{"scope": "user", "installPath": str(root)}]}}
        put(base / ".claude" / "plugins" / "installed_plugins.json", listed)
    elif kind == "gemini":
        root = base / ".gemini" / "extensions" / "port"
        server["args"][0] = "${extensionPath}${/}server.py"
        hook[0]["hooks"][0]["command"] = "sh '${extensionPath}${/}scripts/hook.sh' prompt"
        put(root / "gemini-extension.json", {"name": "port", "version": "1", "mcpServers": {"harbour": server}})
        put(root / "hooks" / "hooks.json", {"hooks": {"BeforeAgent": hook}})
    else:
        root = base / ".agents" / "plugins" / "port"
        put(
            root / ".claude-plugin" / "plugin.json",
            {"name": "port", "mcpServers": {"harbour": server}, "hooks": {"UserPromptSubmit": hook}},
        )
    put(root / "server.py", Path(HARBOUR).read_text())
    put(root / "agents" / "pilot.md", AGENT)
    hook_script(root, log)
    return root


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_user_installed_is_used(place: Place, kind: str) -> None:
    root = install(place, kind)
    answers = script(calls(("mcp__plugin_port_harbour__tide", {"port": "Muscat"})), "text: At noon.")
    with service(answers) as place.service:
        done = place.ask("When?", "--allow", "mcp__*")
        assert (done.code, done.out, done.err) == (0, "At noon.\n", ""), done
        requests = json.dumps(place.service.requests)
    assert "In Muscat the tide is high at noon." in requests
    assert "- port:pilot: Knows the reefs" in requests
    assert (place.home / "hook.log").read_text() == f"prompt {root} {root}\n"


@pytest.mark.parametrize("kind", ["gemini", "agents"])
def test_those_of_a_project_are_asked_about(place: Place, kind: str) -> None:
    install(place, kind, "work")
    with service("text: ok\n---\ntext: ok\n---\ntext: ok") as place.service:
        assert "not trusted" in place.ask().err
        done = place.ask("hi", "--trust")
    assert "plugin:port:harbour" in done.err
    assert "dragoman mcp approve" in done.err
    assert "dragoman hooks approve" in done.err
    assert not (place.home / "hook.log").exists()
    assert not (place.home / "server.log").exists()
    assert place.run("mcp", "approve", "plugin:port:harbour", "--trust").code == 0
    assert place.run("hooks", "approve", "--trust").code == 0
    answers = script(calls(("mcp__plugin_port_harbour__tide", {"port": "Muscat"})), "text: At noon.")
    with service(answers) as place.service:
        done = place.ask("When?", "--trust", "--allow", "mcp__*")
    assert (done.code, done.out, done.err) == (0, "At noon.\n", ""), done
    assert (place.home / "hook.log").read_text().startswith("prompt ")
    # A hook that runs another file than the one that was agreed to is asked about again.
    root = next(place.work.glob(".*/*/port"))
    put(root / "scripts" / "hook.sh", "echo other")
    with service("text: ok") as place.service:
        assert "hooks" in place.ask("hi", "--trust").err


def test_each_stands_on_its_file_and_line(place: Place) -> None:
    root = install(place, "agents")
    manifest = root / ".claude-plugin" / "plugin.json"
    servers = place.run("mcp", "list", "--json").json["servers"]
    assert [(each["name"], each["file"], each["line"]) for each in servers] == [("plugin:port:harbour", str(manifest), 4)]
    hooks = place.run("hooks", "list", "--json").json["hooks"]
    assert [(each["place"], each["state"], each["root"]) for each in hooks] == [(f"{manifest}:17", "runs", str(root))]
    agents = place.run("agents", "--json").json["agents"]
    assert {"name": "port:pilot", "origin": f"{root}/agents/pilot.md:2"}.items() <= next(each for each in agents if each["origin"]).items()


def test_servers_of_an_extension_that_gemini_cli_switches_off(place: Place) -> None:
    install(place, "gemini")
    put(place.home / ".gemini" / "settings.json", {"mcp": {"excluded": ["harbour"]}})
    assert [each["enabled"] for each in place.run("mcp", "list", "--json").json["servers"]] == [False]


def test_one_that_lies_in_the_workspace_asks_though_the_user_installed_it(place: Place) -> None:
    root = install(place, "gemini").rename(place.work / "port")
    note = {"source": str(root), "type": "link"}
    put(place.home / ".gemini" / "extensions" / "port" / ".gemini-extension-install.json", note)
    with service("text: ok") as place.service:
        done = place.ask()
    assert "dragoman mcp approve" in done.err
    assert "dragoman hooks approve" in done.err
    assert not (place.home / "hook.log").exists()


def test_two_plugins_with_the_same_words_are_two(place: Place) -> None:
    root = install(place, "agents")
    other = root.with_name("other")
    put(other / ".claude-plugin" / "plugin.json", (root / ".claude-plugin" / "plugin.json").read_text().replace('"port"', '"other"'))
    hook_script(other, place.home / "hook.log")
    with service("text: ok") as place.service:
        place.ask()
    assert len((place.home / "hook.log").read_text().splitlines()) == 2
    assert len(place.run("mcp", "list", "--json").json["servers"]) == 2


def test_a_folder_that_the_shell_would_take_apart(place: Place) -> None:
    root = install(place, "agents")
    odd = root.rename(root.with_name("p $(touch owned)"))
    manifest = odd / ".claude-plugin" / "plugin.json"
    manifest.write_text(
        manifest.read_text().replace("sh ${CLAUDE_PLUGIN_ROOT}/scripts/hook.sh", 'sh \\"${CLAUDE_PLUGIN_ROOT}/scripts/hook.sh\\"')
    )
    with service("text: ok") as place.service:
        assert place.ask().err == ""
    assert str(odd) in (place.home / "hook.log").read_text()
    assert not (place.work / "owned").exists()


def test_commands_that_an_extension_excludes_are_refused_by_rule(place: Place) -> None:
    excluded = ["run_shell_command(rm -rf)", "run_shell_command(git push:*)", "write_file", "run_shell_command(echo 'x)"]
    manifest = put(place.home / ".gemini" / "extensions" / "port" / "gemini-extension.json", {"name": "port", "excludeTools": excluded})
    rows = [
        '[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = "npm publish"\ndecision = "ask_user"\n',
        '[[rule]]\ntoolName = "run_shell_command"\ndecision = "allow"\n',
    ]
    policies = manifest.parent / "policies" / "ask.toml"
    policies.parent.mkdir()
    policies.write_text("".join(rows))
    answers = script(calls(("run_shell", {"command": "rm -rf made"})), calls(("run_shell", {"command": "echo hello"})), "text: Done.")
    with service(answers) as place.service:
        done = place.ask("hi", "--approval", "auto")
        sent = json.dumps(place.service.requests[-1])
    assert done.code == 0
    assert "run_shell was refused" in sent
    assert "hello" in sent
    assert "write_file" not in [tool["name"] for tool in place.service.requests[0]["tools"]]
    assert f"{manifest}:7" in done.err, "what cannot be read is named"
    rules = place.run("config", "--json").json["rules"]
    assert [(rule["decision"], rule["pattern"], rule["origin"]) for rule in rules] == [
        ("ask", "npm publish *", f"{policies}:1"),
        ("deny", "rm -rf *", f"{manifest}:4"),
        ("deny", "git push *", f"{manifest}:5"),
    ], "an extension allows nothing"


def test_what_settings_of_gemini_cli_say_of_tools(place: Place) -> None:
    core = ["read_file", "write_file", "run_shell_command(touch)"]
    users = {"tools": {"core": core, "exclude": ["write_file", "run_shell_command(touch x)"]}, "toolDiscoveryCommand": "list"}
    put(place.home / ".gemini" / "settings.json", users)
    put(place.work / ".gemini" / "settings.json", {"allowedTools": ["run_shell_command(mkdir)"], "excludeTools": ["ReadFileTool"]})
    names = [("run_shell", {"command": each}) for each in ("touch a", "touch x", "mkdir b")]
    with service(script(calls(*names), "text: Done.")) as place.service:
        done = place.ask("hi", "--trust")
        offered = {tool["name"] for tool in place.service.requests[0]["tools"]}
        told = json.dumps(place.service.requests[-1])
    assert done.code == 0
    assert "run_shell" in offered
    assert not {"read_file", "write_file", "edit", "glob", "grep", "web_fetch"} & offered
    assert [(place.work / name).exists() for name in ("a", "x", "b")] == [True, False, False]
    assert "needs a person's approval" in told
    assert "tools.discoveryCommand is not used here" in done.err
