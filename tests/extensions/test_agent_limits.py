"""What the files of subagents say of what they may do: read from every program's words, never as more than they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.extensions.agent_limits import FileLimits, Unusable, both, read_limits
from dragoman.extensions.agents import find_agents
from dragoman.extensions.sources import ProgramFolder
from dragoman.values.origin import Program

HEAD = "---\nname: a\ndescription: b\n"


def notices_of(folder: Path, program: Program, text: str, name: str = "a.md") -> tuple[list[str], list[str]]:
    (folder / "agents").mkdir(exist_ok=True)
    (folder / "agents" / name).write_text(text)
    found = find_agents([ProgramFolder(program, "user", str(folder))])
    return [agent.name for agent in found.agents], list(found.notices)


HOOKS = "hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: ./check\n"
UNUSABLE: list[tuple[Program, str, int, str]] = [
    ("claude", f"{HEAD}{HOOKS}---\n", 4, "hooks"),
    ("claude", f"{HEAD}permissionMode: careful\n---\n", 4, "'careful'"),
    ("claude", f"{HEAD}permissions:\n  allow: [Read]\n---\n", 4, "permissions"),
    ("claude", f"{HEAD}tools: Read\ncolor: red\ntools: '*'\n---\n", 6, "tools"),
    ("claude", f"{HEAD}maxTurns: many\n---\n", 4, "maxTurns"),
    ("claude", f"{HEAD}sandbox: strict\n---\n", 4, "sandbox"),
    ("opencode", f"{HEAD}permission:\n  edit: sometimes\n---\n", 4, "permission.edit"),
    ("opencode", f"{HEAD}permission:\n  edit: deny\n  just words\n  bash: deny\n---\n", 6, "just words"),
    ("opencode", f"{HEAD}tools:\n  write: perhaps\n---\n", 4, "tools.write"),
    ("gemini", f"{HEAD}kind: remote\nagent_card_url: https://example.org\n---\n", 4, "remote"),
    ("gemini", f"{HEAD}policy:\n  tools:\n    exclude: [x]\n---\n", 4, "policy"),
    ("gemini", f"{HEAD}max_turns: 0\n---\n", 4, "max_turns"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "text", "line", "said"), UNUSABLE)
def test_what_cannot_be_honoured_makes_it_unusable_and_names_file_line_and_reason(
    tmp_path: Path, program: Program, text: str, line: int, said: str
) -> None:
    agents, notices = notices_of(tmp_path, program, text)
    assert agents == []
    (notice,) = notices
    assert f"{tmp_path}/agents/a.md:{line}" in notice
    assert said in notice


@pytest.mark.parametrize(
    ("lines", "line", "said"),
    [
        ('sandbox_mode = "tight"', 3, "tight"),
        ('approval_policy = "sometimes"', 3, "sometimes"),
        ('default_permissions = "mine"', 3, "default_permissions"),
    ],
)
def test_one_of_codex_that_cannot_be_honoured(tmp_path: Path, lines: str, line: int, said: str) -> None:
    agents, notices = notices_of(tmp_path, "codex", f'name = "a"\ndescription = "b"\n{lines}\n', "a.toml")
    assert agents == []
    assert f"{tmp_path}/agents/a.toml:{line}" in notices[0]
    assert said in notices[0]


def test_what_makes_it_narrower_is_told(tmp_path: Path) -> None:
    agents, notices = notices_of(tmp_path, "claude", f"{HEAD}isolation: worktree\n---\n")
    assert agents == ["a"]
    assert f"{tmp_path}/agents/a.md:4" in notices[0]
    assert "worktree" in notices[0]


def test_a_table_of_opencode_json_takes_away_from_what_a_file_defines(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "a.md").write_text("---\ndescription: b\npermission:\n  bash: deny\n---\n")
    (tmp_path / "agents" / "off.md").write_text("---\ndescription: b\n---\n")
    tables = {"a": {"permission": {"edit": "deny"}, "steps": 3}, "off": {"disable": True}}
    (tmp_path / "opencode.json").write_text(json.dumps({"agent": tables}))
    (agent,) = find_agents([ProgramFolder("opencode", "user", str(tmp_path))]).agents
    assert agent.limits.permissions == ((("bash", "*", "deny"),), (("edit", "*", "deny"),))
    assert agent.limits.max_turns == 3


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"permissionMode": "plan"}, FileLimits(mode="plan")),
        ({"permissionMode": "dontAsk"}, FileLimits(mode="default", asks=False)),
        ({"permissionMode": "bypassPermissions"}, FileLimits()),
        ({"maxTurns": "5"}, FileLimits(max_turns=5)),
        ({"steps": 4, "maxSteps": 2}, FileLimits(max_turns=2)),
        ({"max_turns": 7, "timeout_mins": 2}, FileLimits(max_turns=7, timeout_s=120.0)),
        ({"tools": ["Task(reviewer, tester)"]}, FileLimits(tools=("task",), agents=("reviewer", "tester"))),
        ({"tools": "Bash, Bash(git log:*)"}, FileLimits(tools=("run_shell", "shell_output"))),
        ({"tools": ["run_shell_command(git status)"]}, FileLimits(tools=("run_shell", "shell_output"), patterns=("Bash(git status:*)",))),
        ({"disallowedTools": "Bash(rm:*), Write"}, FileLimits(without=("write_file",), refused=("Bash(rm:*)",))),
        ({"disallowedTools": "*"}, FileLimits(tools=())),
        ({"approval_policy": "never"}, FileLimits(asks=False)),
        ({"features": {"shell_tool": False}}, FileLimits(without=("run_shell", "shell_output"))),
        ({"color": "red", "model": "x", "temperature": 1, "mcpServers": ["github"], "skills": "a"}, FileLimits()),
    ],
)
def test_how_each_is_read(values: dict[str, Any], expected: FileLimits) -> None:
    assert read_limits(values) == expected


WORDS = st.sampled_from(["Read", "Bash", "Bash(git log:*)", "*", "deny", "ask", "allow", "true", "false", "plan", "read-only", "3", ""])
SCALARS = WORDS | st.text(max_size=5) | st.none() | st.booleans() | st.integers(-2, 5)
NAMES = st.sampled_from(["edit", "bash", "*", "action"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))
KEYS = st.sampled_from(["tools", "disallowedTools", "permission", "permissions", "permissionMode", "sandbox_mode", "approval_policy",
                        "maxTurns", "steps", "timeout_mins", "hooks", "isolation", "readonly", "kind", "policy", "features"])  # fmt: skip


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_any_values_are_read_or_refused(values: dict[str, Any]) -> None:
    """Another key never gives back what one has taken away."""
    try:
        whole = read_limits(values)
        parts = [read_limits({key: value}) for key, value in values.items()]
    except Unusable:
        return
    assert whole.reads_only == any(part.reads_only for part in parts)
    assert whole.asks == all(part.asks for part in parts)
    assert whole.tools is None or any(part.tools is not None for part in parts)
    assert {rule for part in parts for rules in part.permissions for rule in rules} == {
        rule for rules in whole.permissions for rule in rules
    }


@given(st.dictionaries(KEYS, VALUES, max_size=3), st.dictionaries(KEYS, VALUES, max_size=3))
def test_two_files_together_are_no_wider_than_either(first: dict[str, Any], second: dict[str, Any]) -> None:
    try:
        one, other = read_limits(first), read_limits(second)
    except Unusable:
        return
    joined = both(one, other)
    if joined is None:
        return
    assert set(joined.permissions) == set(one.permissions) | set(other.permissions)
    assert set(joined.without) == set(one.without) | set(other.without)
    assert joined.reads_only == (one.reads_only or other.reads_only)
    assert joined.asks == (one.asks and other.asks)
    for limits in (one, other):
        assert limits.tools is None or joined.tools == limits.tools
        assert not limits.max_turns or 0 < joined.max_turns <= limits.max_turns
