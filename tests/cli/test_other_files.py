"""Files of other programs as a whole: those of the repository around a subfolder, links out of it, and broken ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.app.options import Options
from dragoman.app.setup import Setup, set_up
from program import Place, Service, calls, script

Serve = Callable[..., Service]


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
    return path


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "sub").mkdir()
    return tmp_path / "repo"


def opened(folder: Path) -> Setup:
    home = str(next(each for each in folder.parents if each.name != "repo" and (each / "home").is_dir()) / "home")
    env = {"HOME": home, "DRAGOMAN_HOME": f"{home}/dragoman", "PATH": "/usr/bin:/bin"}
    return set_up(Options(directory=str(folder), trust=True), env)


def rules_of(setup: Setup) -> set[str]:
    return {f"{rule.decision} {rule.text}" for rule in setup.loaded.rules}


def test_rules_at_the_root_of_a_repository_hold_in_its_subfolders(repository: Path) -> None:
    denied = ["Bash(touch theirs:*)", "Read(/secrets/**)", "Read(./keys/a)"]
    write(repository / ".claude" / "settings.json", {"permissions": {"deny": denied, "allow": ["Bash"]}})
    write(repository / ".codex" / "rules" / "x.rules", 'prefix_rule(pattern=["rm"], decision="forbidden")\n')
    write(repository / ".gemini" / "settings.json", {"tools": {"exclude": ["ShellTool(curl)"]}})
    write(repository / "opencode.json", {"permission": {"bash": {"scp *": "deny"}, "edit": {"gen/**": "deny"}}})
    write(repository / "sub" / ".claude" / "settings.json", {"permissions": {"ask": ["Bash(make:*)"]}})
    found = rules_of(opened(repository / "sub"))
    for rule in ("deny run_shell touch theirs *", "deny run_shell rm *", "deny run_shell curl *", "ask run_shell make *"):
        assert rule in found
    assert "deny run_shell scp *" in found
    assert f"deny read_file {repository}/secrets/**" in found, "counted from the settings, not from the subfolder"
    assert "deny read_file secrets/**" not in found
    assert {f"deny read_file {repository}/keys/a", "deny read_file keys/a"} <= found
    assert f"deny edit {repository}/gen/**" in found
    assert not any(rule.startswith("allow") for rule in found)


@pytest.mark.parametrize("link", [".claude", ".claude/settings.json", ".mcp.json", ".claude/agents"])
def test_a_link_out_of_the_repository_is_named_and_not_read(repository: Path, link: str) -> None:
    outside = repository.parent / "outside"
    hook = {"hooks": [{"type": "command", "command": "touch ran"}]}
    write(outside / ".claude" / "settings.json", {"permissions": {"deny": ["Bash(rm:*)"]}, "hooks": {"Stop": [hook]}})
    write(outside / ".claude" / "agents" / "one.md", "---\nname: one\ndescription: d\n---\nhi")
    write(outside / ".mcp.json", {"mcpServers": {"one": {"command": "true"}}})
    (repository / link).parent.mkdir(exist_ok=True)
    (repository / link).symlink_to(outside / link)
    setup = opened(repository)
    assert len(setup.wrong_files) == 1
    assert f"{link} is not used" in setup.wrong_files[0]
    assert f"a link to {outside / link}, outside {repository}" in setup.wrong_files[0]
    from dragoman.app.finding_hooks import find_hooks
    from dragoman.app.mcp import find
    from dragoman.app.subagents import find_subagents

    assert not rules_of(setup)
    assert not find_hooks(setup).hooks
    assert not find(setup).servers
    assert not find_subagents(setup, "")[0]


def test_a_link_inside_the_repository_is_followed(repository: Path) -> None:
    write(repository / "shared" / "settings.json", {"permissions": {"deny": ["Bash(rm:*)"]}})
    write(repository / "shared" / "skills" / "poet" / "SKILL.md", "---\nname: poet\ndescription: Writes.\n---\nRhyme.")
    (repository / "sub" / ".claude").symlink_to("../shared")
    setup = opened(repository / "sub")
    from dragoman.app.skills import skills_of

    assert setup.wrong_files == ()
    assert "deny run_shell rm *" in rules_of(setup)
    assert [skill.name for skill in skills_of(setup).found] == ["poet"]


BROKEN = {
    ".gemini/settings.json": '{\n "theme": "dark",\n "x": }',
    ".claude/settings.local.json": '{\n\n "model": opus }',
    "opencode.json": '{\n "theme" "x"}',
    ".codex/config.toml": 'model = "x"\nname = \n',
}


def test_broken_files_are_named_with_their_line_and_stop_nothing(place: Place, serve: Serve) -> None:
    for name, text in BROKEN.items():
        write(place.work / name, text)
    write(place.work / ".gemini" / "commands" / "bad.toml", "\nprompt = \n")
    serve(script(calls(("list_directory", {"path": "."})), "text: ok"))
    done = place.ask("hi", "--trust")
    assert (done.code, done.out) == (0, "ok\n")
    places = [".gemini/settings.json:3", ".claude/settings.local.json:3", "opencode.json:2", ".codex/config.toml:2", "commands/bad.toml:2"]
    for name in places:
        assert sum(name in line for line in done.err.splitlines()) == 1, done.err
    for command in ("doctor", "skills", "hooks", "mcp", "agents"):
        shown = place.run(command, "--trust").out
        for name in places if command == "doctor" else places[:-1]:
            assert sum(name in line for line in shown.splitlines()) == 1, (command, shown)


def test_what_is_to_be_said_of_many_servers_is_said_once(place: Place, serve: Serve) -> None:
    waiting = {f"w{number}": {"command": "true"} for number in range(3)}
    unset = {f"u{number}": {"command": "true", "env": {"A": f"${{NOT_SET_{number}}}"}} for number in range(4)}
    write(place.work / ".mcp.json", {"mcpServers": waiting | unset})
    serve("text: ok")
    told = place.ask("hi", "--trust").err.splitlines()
    assert len(told) == 2, told
    assert "4 MCP servers are not used: u0 (the variable NOT_SET_0 is not set), u1" in told[0]
    assert "3 MCP servers are not used before you agree" in told[1]
    assert "w0, w1, w2" in told[1]
