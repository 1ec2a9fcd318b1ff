"""One key switches off all that one program brings, of every kind, the user's and the project's."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from program import Place, service

AGENT = "---\nname: {name}\ndescription: Knows the reefs\n---\nYou are a pilot.\n"
SKILL = "---\nname: {name}\ndescription: Ties knots\n---\nTie.\n"
KINDS = ("mcp_servers", "hooks", "skills", "commands", "subagents", "plugins")
BRINGS = {
    "agents": {"mcp_servers", "hooks", "skills", "commands", "subagents", "plugins"},
    "claude": {"mcp_servers", "hooks", "skills", "commands", "subagents", "plugins"},
    "codex": {"mcp_servers", "hooks", "skills", "commands"},
    "gemini": {"mcp_servers", "hooks", "skills", "commands", "subagents", "plugins"},
    "opencode": {"mcp_servers", "skills", "commands", "subagents"},
}
"""What each can bring. `.agents` has servers, hooks, commands and subagents in plugins."""


def put(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1))


def hooks(place: Place, program: str) -> list[Any]:
    return [{"hooks": [{"type": "command", "command": f"echo {program} >> {place.home}/ran"}]}]


def bring_all(place: Place, root: Path, *, project: bool) -> None:
    """Something of every kind, of every program."""
    mark = "p" if project else "u"
    server = {"command": sys.executable, "args": ["-c", f"open({str(place.home / 'ran')!r}, 'a')"]}
    plugin = root / ".agents" / "plugins" / f"{mark}agents"
    put(plugin / ".claude-plugin" / "plugin.json", {"name": f"{mark}agents", "mcpServers": {"s": server}})
    put(plugin / "hooks" / "hooks.json", {"hooks": {"UserPromptSubmit": hooks(place, "agents")}})
    put(plugin / "commands" / "go.md", "Go.")
    put(plugin / "agents" / "a.md", AGENT.format(name="a"))
    put(root / ".agents" / "skills" / "s" / "SKILL.md", SKILL.format(name=f"{mark}-agents-skill"))

    claude = {f"{mark}-claude-server": server}
    put(root / (".mcp.json" if project else ".claude.json"), {"mcpServers": claude})
    put(root / ".claude" / "settings.json", {"hooks": {"UserPromptSubmit": hooks(place, "claude")}})
    if not project:
        installed = root / ".claude" / "plugins" / "cache" / "one"
        put(installed / ".claude-plugin" / "plugin.json", {"name": "claude-plugin"})
        put(installed / "hooks" / "hooks.json", {"hooks": {"UserPromptSubmit": hooks(place, "claude")}})
        put(root / ".claude" / "plugins" / "installed_plugins.json", {"plugins": {"one@m": [{"installPath": str(installed)}]}})

    codex = f'[mcp_servers.{mark}-codex-server]\ncommand = "true"\n[[hooks.UserPromptSubmit]]\ncommand = "echo codex >> {place.home}/ran"\n'
    put(root / ".codex" / "config.toml", codex)
    put(root / ".codex" / "hooks.json", {"hooks": {"UserPromptSubmit": hooks(place, "codex")}})
    if not project:
        put(root / ".codex" / "prompts" / "codex-command.md", "Go.")

    gemini = {"mcpServers": {f"{mark}-gemini-server": server}, "hooks": {"BeforeAgent": hooks(place, "gemini")}}
    put(root / ".gemini" / "settings.json", gemini)
    put(root / ".gemini" / "commands" / f"{mark}-gemini-command.toml", 'prompt = "Go."')
    extension = root / ".gemini" / "extensions" / f"{mark}gemini"
    put(extension / "gemini-extension.json", {"name": f"{mark}gemini", "mcpServers": {"s": server}})
    put(extension / "hooks" / "hooks.json", {"hooks": {"BeforeAgent": hooks(place, "gemini")}})

    opencode = root / ".opencode" if project else root / ".config" / "opencode"
    put((root if project else opencode) / "opencode.json", {"mcp": {f"{mark}-opencode-server": {"type": "local", "command": ["true"]}}})
    for program, folder in {"claude": root / ".claude", "gemini": root / ".gemini", "opencode": opencode, "codex": root / ".codex"}.items():
        put(folder / "skills" / "s" / "SKILL.md", SKILL.format(name=f"{mark}-{program}-skill"))
        if program != "codex":
            put(folder / "agents" / "a.md", AGENT.format(name=f"{mark}-{program}-agent"))
        if program in ("claude", "opencode"):
            put(folder / "commands" / f"{mark}-{program}-command.md", "Go.")


def found(place: Place) -> dict[str, set[str]]:
    """Kind → the programs that bring some, as `dragoman config` has it. Everything stands in a file, and has a line where it has one."""
    shown = place.run("config", "--json", "--trust").json
    assert shown["problems"] == []
    for kind in KINDS:
        for row in shown[kind]:
            path, line = (row["origin"]["path"], row["origin"]["line"]) if kind == "hooks" else (row["file"], row["line"])
            assert Path(path).is_file(), row
            if kind in ("hooks", "mcp_servers"):
                assert line, row
    programs = {kind: {row["origin"]["program"] if kind == "hooks" else row["program"] for row in shown[kind]} for kind in KINDS}
    return programs | {"switched_off": set(shown["switched_off"])}


@pytest.fixture
def full(place: Place) -> Place:
    bring_all(place, place.home, project=False)
    bring_all(place, place.work, project=True)
    return place


def test_all_of_it_is_listed_with_file_and_line(full: Place) -> None:
    programs = found(full)
    assert programs.pop("switched_off") == set()
    assert programs == {kind: {program for program, brings in BRINGS.items() if kind in brings} for kind in KINDS}
    text = full.run("config", "--trust").out
    for name in ("u-claude-server", "pgemini", "/u-gemini-command", "p-opencode-agent", "uagents:a", "p-codex-skill"):
        assert name in text
    assert "~/.claude/skills/s/SKILL.md:2" in text


@pytest.mark.parametrize("program", BRINGS)
def test_one_key_switches_a_source_off(full: Place, program: str) -> None:
    put(full.home / "dragoman" / "config.toml", f"[sources]\n{program} = false\n")
    programs = found(full)
    assert programs.pop("switched_off") == {program}
    for kind, rest in programs.items():
        assert program not in rest, kind
        assert rest == {each for each, brings in BRINGS.items() if kind in brings} - {program}, "the others are read"
    assert f"sources.{program}" in full.run("config", "--trust").out
    with service("text: ok") as full.service:
        full.ask("hi", "--trust")
        sent = json.dumps(full.service.requests)
    assert f"u-{program}-" not in sent
    assert f"{program}:" not in sent
    ran = (full.home / "ran").read_text().split()
    assert program not in ran
    assert set(ran) == {each for each, brings in BRINGS.items() if "hooks" in brings} - {program}, "those of the others ran"
