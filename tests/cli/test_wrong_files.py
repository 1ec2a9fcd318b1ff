"""A wrong file of any kind that others bring: one line names it, its line, and what to do; the start goes on without it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from program import Place, service

PAGES = {  # name → where it lies in the home folder; all of them are JSON
    "claude servers": ".claude.json",
    "claude hooks": ".claude/settings.json",
    "claude plugins": ".claude/plugins/installed_plugins.json",
    "codex hooks": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "gemini extension": ".gemini/extensions/port/gemini-extension.json",
    "opencode": ".config/opencode/opencode.json",
    "plugin": ".agents/plugins/port/.claude-plugin/plugin.json",
    "plugin servers": ".agents/plugins/port/.mcp.json",
    "plugin hooks": ".agents/plugins/port/hooks/hooks.json",
}
WHOLE: dict[str, Any] = {
    "a": 1,
    "mcpServers": {"x": {"command": "true"}},
    "mcp": {"y": {"type": "local", "command": ["true"]}},
    "hooks": {"Stop": []},
    "plugins": {},
}
BAD = json.dumps(WHOLE, indent=1).split("\n")
BAD[6] = " }} oops"
MARKDOWN = {
    "skill": ".claude/skills/x/SKILL.md",
    "command": ".claude/commands/x.md",
    "gemini command": ".gemini/commands/x.toml",
    "subagent": ".claude/agents/x.md",
    "plugin subagent": ".agents/plugins/port/agents/x.md",
}
MANIFEST = ".agents/plugins/port/.claude-plugin/plugin.json"


def put(place: Place, name: str, data: str | bytes) -> Path:
    path = place.home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    if "/port/" in name and not (place.home / MANIFEST).exists() and ".agents" in name:
        put(place, MANIFEST, '{"name": "port"}')
    return path


@pytest.fixture(scope="module")
def answering() -> Iterator[Any]:
    with service("\n---\n".join(["text: ok"] * 200)) as playing:
        yield playing


def told(place: Place, answering: Any, where: str) -> str:
    """The one line of a start that goes on."""
    place.service = answering
    done = place.ask()
    assert (done.code, done.out) == (0, "ok\n"), done
    lines = done.err.splitlines()
    assert len(lines) == 1, done
    assert where in lines[0], done
    return lines[0]


@pytest.mark.parametrize("name", PAGES)
def test_json_that_is_none(place: Place, answering: Any, name: str) -> None:
    path = put(place, PAGES[name], "\n".join(BAD))
    told(place, answering, f"{path}:7")


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("wrong", ["folder", "binary", "huge", "unreadable"])
def test_what_cannot_be_read_at_all(place: Place, answering: Any, name: str, wrong: str) -> None:
    path = put(place, PAGES[name], json.dumps(WHOLE))
    spoil(path, wrong)
    told(place, answering, str(path))


def spoil(path: Path, wrong: str) -> None:
    if wrong == "folder":
        path.unlink()
        path.mkdir()
    elif wrong == "binary":
        path.write_bytes(b"\x00\xff\xfe" * 50)
    elif wrong == "huge":
        with path.open("ab") as file:
            file.truncate(30_000_000)
    elif os.geteuid() != 0:
        path.chmod(0)
    else:  # nothing is closed to root, but a circle of links
        path.unlink()
        path.symlink_to(path)


@pytest.mark.parametrize("wrong", ["binary", "huge", "unreadable"])
@pytest.mark.parametrize("name", MARKDOWN)
def test_text_that_cannot_be_read(place: Place, answering: Any, name: str, wrong: str) -> None:
    path = put(place, MARKDOWN[name], "---\nname: x\ndescription: y\n---\nz\n")
    spoil(path, wrong)
    place.service = answering
    if "command" in name:  # a command is read when it is asked for
        done = place.run("config", "--json").json
        assert [each for each in done["problems"] if str(path) in each], done["problems"]
    elif name == "skill" and wrong == "huge":
        assert place.ask().code == 0
    else:
        told(place, answering, str(path))


ENTRIES = {
    "a server that is no table": (".claude.json", '{\n "mcpServers": {\n  "x": 3\n }\n}', ":3"),
    "servers that are no table": (".gemini/settings.json", '{\n "mcpServers": [\n ]\n}', ":2"),
    "a command that is no text": (".claude.json", '{\n "mcpServers": {\n  "x": {\n   "command": 3}}}', ":4"),
    "args that are no list": (".codex/config.toml", '[mcp_servers.x]\ncommand = "a"\nargs = "b"\n', ":3"),
    "TOML that is none": (".codex/config.toml", '[mcp_servers.x]\ncommand = "a"\n\n\n\n\n[[[\n', ":7"),
    "TOML with hooks that is none": (".codex/config.toml", "# hooks\n\n\n\n\n\n[[[\n", ":7"),
    "an event nobody knows": (".claude/settings.json", '{"hooks": {\n "Sunrise": [\n  {"hooks": []}]}}', ":3"),
    "an event of Codex nobody knows": (".codex/config.toml", '[[hooks.Sunrise]]\ncommand = "true"\n', ":1"),
    "hooks that are a list": (".gemini/settings.json", '{\n "hooks": []\n}', ""),
    "a hook without a command": (".claude/settings.json", '{"hooks": {"Stop": [\n {"hooks": [\n  {"type": "command"}]}]}}', ":3"),
    "frontmatter that is none": (".claude/agents/x.md", "---\nname: x\ndescription: y\na: b\nc: d\ne: f\nnothing at all\n---\nz\n", ":7"),
    "a subagent without a description": (".claude/agents/x.md", "---\nname: x\n---\nz\n", ":1"),
    "a manifest that is a list": (MANIFEST, "[]", ""),
    "plugins that are a list": (".claude/plugins/installed_plugins.json", "[]", ""),
    "a plugin that is gone": (
        ".claude/plugins/installed_plugins.json",
        '{"plugins": {"x@y": [{"installPath": "/nowhere/x"}]}}',
        None,
    ),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_that_is_wrong(place: Place, answering: Any, name: str) -> None:
    file, text, line = ENTRIES[name]
    path = put(place, file, text)
    told(place, answering, f"{path}{line}" if line is not None else "/nowhere/x")
