"""Plugins of three kinds, as they are installed, and what of them is used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dragoman.extensions.commands import find_commands
from dragoman.extensions.plugins import find_plugins
from dragoman.extensions.skills import find_skills
from dragoman.extensions.sources import ProgramFolder


def put(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def put_json(path: Path, value: Any) -> Path:
    return put(path, json.dumps(value))


def folder(path: Path, program: Any, project: Path | None = None) -> ProgramFolder:
    return ProgramFolder(program, "project" if project else "user", str(path), str(project) if project else "")


def claude(home: Path, *names: str, **more: Any) -> ProgramFolder:
    installed = {}
    for name in names:
        path = home / ".claude" / "plugins" / "cache" / "market" / name / "1.0.0"
        put_json(path / ".claude-plugin" / "plugin.json", {"name": name, "version": "1.0.0", "description": "D"})
        put(path / "commands" / "go.md", "Go.")
        put(path / "skills" / "poet" / "SKILL.md", "---\ndescription: Poems\n---\nx")
        put_json(path / "hooks" / "hooks.json", {"hooks": {}})
        put_json(path / ".mcp.json", {"mcpServers": {}})
        put(path / "agents" / "a.md", "A")
        installed[f"{name}@market"] = [{"scope": "user", "installPath": str(path), "version": "1.0.0", **more}]
    put_json(home / ".claude" / "plugins" / "installed_plugins.json", {"version": 2, "plugins": installed})
    return folder(home / ".claude", "claude")


def test_installed_by_claude_code(tmp_path: Path) -> None:
    found = find_plugins([claude(tmp_path, "one", "two")])
    assert [(plugin.name, plugin.format, plugin.version) for plugin in found.found] == [
        ("one", "claude", "1.0.0"),
        ("two", "claude", "1.0.0"),
    ]
    one = found.found[0]
    assert all((one.skills, one.commands, one.agents, one.hooks, one.mcp))
    assert found.problems == ()
    assert [skill.name for skill in find_skills([], found.found).found] == ["one:poet", "two:poet"]
    assert [command.name for command in find_commands([], found.found).found] == ["one:go", "two:go"]


def test_without_a_manifest_it_has_the_name_it_is_installed_as_and_what_its_marketplace_says(tmp_path: Path) -> None:
    mine = claude(tmp_path, "one", "two", "three", "four")
    cache = tmp_path / ".claude" / "plugins" / "cache" / "market"
    for name in ("one", "two", "three"):
        (cache / name / "1.0.0" / ".claude-plugin" / "plugin.json").unlink()
    put(cache / "one" / "1.0.0" / "skills" / "other" / "SKILL.md", "---\ndescription: Other\n---\nx")
    rows = [
        {"name": "one", "source": "./", "strict": False, "skills": ["./skills/poet"], "version": "7", "hooks": {"Stop": []}},
        {"name": "three", "agents": ["./nowhere"]},
    ]
    catalogue = put_json(tmp_path / "market" / ".claude-plugin" / "marketplace.json", {"plugins": [7, *rows]})
    put_json(tmp_path / ".claude" / "plugins" / "known_marketplaces.json", {"market": {"installLocation": str(tmp_path / "market")}})
    put_json(cache / "four" / "1.0.0" / ".claude-plugin" / "plugin.json", {"name": "four", "commands": {"x": {"source": "./x.md"}}})
    put(cache / "four" / "1.0.0" / "x.md", "X.")
    found = find_plugins([mine]).found
    assert [(each.name, each.version, bool(each.agents)) for each in found] == [
        ("one", "7", True),
        ("two", "", True),
        ("three", "", False),
        ("four", "", True),
    ]
    assert (found[0].origin.path, found[0].hooks) == (str(catalogue), (str(cache / "one" / "1.0.0" / "hooks" / "hooks.json"),))
    assert [each.name for each in find_skills([], found).found] == ["one:poet", "two:poet", "three:poet", "four:poet"]
    assert [each.name for each in find_commands([], found).found] == ["one:go", "two:go", "three:go", "four:x"]


def test_one_that_is_a_single_skill(tmp_path: Path) -> None:
    mine = claude(tmp_path, "solo")
    path = tmp_path / ".claude" / "plugins" / "cache" / "market" / "solo" / "1.0.0"
    (path / "skills" / "poet" / "SKILL.md").rename(path / "SKILL.md")
    (path / "skills" / "poet").rmdir()
    (path / "skills").rmdir()
    put(path / "SKILL.md", "---\nname: poet\ndescription: Poems\n---\nx")
    assert [skill.name for skill in find_skills([], find_plugins([mine]).found).found] == ["solo:poet"]


def test_what_is_switched_off_or_meant_for_another_project_is_not_there(tmp_path: Path) -> None:
    mine = claude(tmp_path, "one", "two")
    put_json(tmp_path / ".claude" / "settings.json", {"enabledPlugins": {"one@market": False, "two@market": True}})
    assert [plugin.name for plugin in find_plugins([mine]).found] == ["two"]
    project = tmp_path / "project"
    put_json(project / ".claude" / "settings.json", {"enabledPlugins": {"one@market": True, "two@market": False}})
    assert [plugin.name for plugin in find_plugins([folder(project / ".claude", "claude", project), mine]).found] == ["one"]
    elsewhere = claude(tmp_path / "other", "three", scope="project", projectPath=str(project))
    assert find_plugins([elsewhere]).found == ()
    assert len(find_plugins([folder(project / ".claude", "claude", project), elsewhere]).found) == 1


def test_an_extension_of_gemini_cli(tmp_path: Path) -> None:
    path = tmp_path / ".gemini" / "extensions" / "ext"
    manifest = {
        "name": "ext",
        "version": "2",
        "mcpServers": {"s": {"command": "x"}},
        "contextFileName": "CTX.md",
        "excludeTools": ["run_shell"],
    }
    put_json(path / "gemini-extension.json", manifest)
    put(path / "CTX.md")
    put(path / "GEMINI.md")
    put(path / "commands" / "gcs" / "sync.toml", 'prompt = "Sync {{args}}"')
    put(path / "skills" / "s" / "SKILL.md", "---\ndescription: S\n---\nx")
    found = find_plugins([folder(tmp_path / ".gemini", "gemini")])
    [plugin] = found.found
    assert plugin.mcp == (str(path / "gemini-extension.json"),)
    assert plugin.memory == (str(path / "CTX.md"),)
    assert plugin.excluded_tools == ("run_shell",)
    assert [command.name for command in find_commands([], found.found).found] == ["gcs:sync"]
    put_json(tmp_path / ".gemini" / "extensions" / "extension-enablement.json", {"ext": {"overrides": ["!/*"]}})
    assert find_plugins([folder(tmp_path / ".gemini", "gemini")]).found == ()


def test_agent_plugins(tmp_path: Path) -> None:
    path = tmp_path / ".agents" / "plugins" / "hello"
    put_json(path / "plugin.json", {"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "hello"})
    put(path / "skills" / "greet" / "SKILL.md", "---\nname: greet\ndescription: Greets\n---\nx")
    put_json(path / "mcp.json", {"mcpServers": {}})
    put(path / "commands" / "not-in-the-standard.md")
    found = find_plugins([folder(tmp_path / ".agents", "agents")])
    [plugin] = found.found
    assert (plugin.format, plugin.mcp, plugin.commands) == ("agent-plugins", (str(path / "mcp.json"),), ())
    assert [skill.name for skill in find_skills([], found.found).found] == ["hello:greet"]


def test_wrong_manifests_are_named_and_nothing_else_suffers(tmp_path: Path) -> None:
    plugins = tmp_path / ".agents" / "plugins"
    put(plugins / "a" / "plugin.json", "{ not json")
    put(plugins / "b" / "plugin.json", "[1]")
    put(plugins / "c" / "plugin.json", "x" * 2_000_000)
    put_json(plugins / "d" / "plugin.json", {"name": "../../evil", "skills": "../../../outside"})
    put(tmp_path / "outside" / "s" / "SKILL.md", "---\ndescription: Out\n---\nx")
    (plugins / "d" / "skills").symlink_to(tmp_path / "outside")
    found = find_plugins([folder(tmp_path / ".agents", "agents")])
    assert [problem.origin.path for problem in found.problems] == [str(plugins / name / "plugin.json") for name in "abc"]
    [plugin] = found.found
    assert (plugin.name, plugin.skills) == ("d", ())
    (tmp_path / "gone").mkdir()
    lost = claude(tmp_path / "gone", "one")
    listed = tmp_path / "gone" / ".claude" / "plugins" / "installed_plugins.json"
    put(listed, listed.read_text().replace("cache", "nowhere"))
    assert "its folder is gone" in str(find_plugins([lost]).problems[0])


def test_extensions_that_gemini_cli_switches_off_in_some_folders(tmp_path: Path) -> None:
    extensions = tmp_path / ".gemini" / "extensions"
    for name in ("one", "two", "three"):
        put_json(extensions / name / "gemini-extension.json", {"name": name})
    overrides = {
        "one": ["/home/me/*", "!/home/me/work/*"],
        "two": ["!/home/me/*", "/home/me/work/"],
        "three": ["!/home/me/*", 7],
        "four": "x",
    }
    put_json(extensions / "extension-enablement.json", {name: {"overrides": each} for name, each in overrides.items()})
    mine = [folder(tmp_path / ".gemini", "gemini")]

    def names(workspace: str) -> set[str]:
        return {plugin.name for plugin in find_plugins(mine, workspace).found}

    assert names("/home/me/work") == {"two"}
    assert names("/home/me/work/deep") == set()
    assert names("/home/me/workshop") == {"one"}
    assert names("/srv") == {"one", "two", "three"}


def test_an_extension_that_is_linked(tmp_path: Path) -> None:
    source = tmp_path / "source"
    put_json(source / "gemini-extension.json", {"name": "linked"})
    put(source / "commands" / "go.toml", 'prompt = "Go."')
    note = {"source": str(source), "type": "link"}
    put_json(tmp_path / ".gemini" / "extensions" / "linked" / ".gemini-extension-install.json", note)
    found = find_plugins([folder(tmp_path / ".gemini", "gemini")]).found
    assert [(plugin.name, plugin.path) for plugin in found] == [("linked", str(source))]
    work = tmp_path / "work"
    put_json(work / ".gemini" / "extensions" / "linked" / ".gemini-extension-install.json", note)
    assert find_plugins([folder(work / ".gemini", "gemini", work)]).found == (), "no project leads out of itself"
