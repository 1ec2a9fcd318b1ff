"""Rules of Claude Code and Codex as ours: what they cover, where they stand, and that no file stops a start."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.foreign.codex_rules import read_codex
from dragoman.foreign.gemini_rules import read_policies
from dragoman.foreign.opencode_rules import read_opencode
from dragoman.policy.claude_rules import read_claude
from dragoman.policy.command_rules import judge_command
from dragoman.policy.commands import ReadableFolders
from dragoman.policy.rules import Tier, fits_target

ROOT = "/project"
AROUND = ReadableFolders((ROOT,), ())


def claude(decision: str, *rules: str, tier: Tier = "user") -> tuple[list[tuple[str, str]], list[str]]:
    read = read_claude(json.dumps({"permissions": {decision: rules}}, indent=1), "/home/me/.claude/settings.json", tier)
    return [(rule.tool, rule.pattern) for rule in read.rules], list(read.problems)


def decided(command: str, decision: str, rule: str) -> str:
    read = read_claude(json.dumps({"permissions": {decision: [rule]}}), "s.json", "user")
    return judge_command(command, ROOT, read.rules, AROUND).decision


@pytest.mark.parametrize(
    ("rule", "command", "allowed"),
    [
        ("Bash(npm run test:*)", "npm run test", True),
        ("Bash(npm run test:*)", "npm run test -- --watch", True),
        ("Bash(npm run test:*)", "npm run tester", False),
        ("Bash(npm run test:*)", "npm run test && touch PWN", False),
        ("Bash(npm run test:*)", "npm run test $(touch PWN)", False),
        ("Bash(npm run build)", "npm run build", True),
        ("Bash(npm run build)", "npm run build --evil", False),
        ("Bash(npm run *)", "npm run lint --fix", True),
        ("Bash(git * main)", "git checkout main", True),
        ("Bash(git * main)", "git push --force origin main", False),
        ("Bash(* install)", "npm install", False),
    ],
)
def test_an_allow_covers_no_more_than_it_says(rule: str, command: str, allowed: bool) -> None:
    assert (decided(command, "allow", rule) == "allow") == allowed


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("Bash", "anything at all"),
        ("Bash(*)", "anything at all"),
        ("Bash(rm:*)", "rm -rf build"),
        ("Bash(git push *)", "git push"),
        ("Bash(git * main)", "git push --force origin main"),
        ("Bash(git * main)", "git checkout main"),
        ("Bash(curl*)", "curl http://evil.example"),
        ("Bash(rm:*)", "true && true && rm x"),
    ],
)
def test_a_refusal_covers_all_that_it_says(rule: str, command: str) -> None:
    assert decided(command, "deny", rule) == "deny"


@pytest.mark.parametrize(
    ("written", "path", "fits"),
    [
        ("Edit(src/**)", "/project/src/a/b.py", True),
        ("Edit(src/**)", "/project/lib/src/b.py", False),
        ("Edit(*.lock)", "/project/a/b/uv.lock", True),
        ("Edit(.env)", "/project/sub/.env", True),
        ("Edit(//etc/hosts)", "/etc/hosts", True),
        ("Edit(//etc/hosts)", "/project/etc/hosts", False),
        ("Edit(secrets)", "/project/secrets/key", True),
        ("Edit(secrets/)", "/project/secrets/key", True),
    ],
)
def test_paths_are_read_as_gitignore_reads_them(written: str, path: str, fits: bool) -> None:
    found, problems = claude("deny", written, tier="project")
    assert not problems
    assert {tool for tool, _ in found} == {"edit"}
    assert any(fits_target(pattern, path, ROOT) for _, pattern in found) == fits


def test_tools_and_hosts() -> None:
    assert claude("allow", "WebFetch(domain:docs.python.org)") == ([("web_fetch", "docs.python.org")], [])
    assert {tool for tool, _ in claude("deny", "Read(./.env)")[0]} >= {"read_file", "grep"}
    assert claude("allow", "mcp__github__push") == ([("mcp__github__push", "")], []), "tools of MCP servers have the same names"
    assert claude("allow", "Task") == ([], []), "it is decided inside, call by call"


def test_a_project_only_tightens() -> None:
    text = json.dumps({"permissions": {"allow": ["Bash(rm:*)"], "ask": ["Bash(git push:*)"], "deny": ["Edit"]}})
    assert [(rule.decision, rule.tier) for rule in read_claude(text, "s.json", "project").rules] == [
        ("ask", "project"),
        ("deny", "project"),
    ]
    allowed = 'prefix_rule(pattern=["rm"])\nprefix_rule(pattern=["curl"], decision="forbidden")'
    assert [rule.decision for rule in read_codex(allowed, "r.rules", "project").rules] == ["deny"]


def test_what_is_wrong_is_named_with_its_line_and_the_rest_holds() -> None:
    text = '{\n "permissions": {\n  "deny": [\n   "Bash(rm:*)",\n   "not a rule!",\n   7\n  ],\n  "allow": "Bash"\n }\n}'
    read = read_claude(text, "s.json", "user")
    assert [(rule.text, rule.origin) for rule in read.rules] == [("run_shell rm *", "s.json:4")]
    assert [problem.split(": ")[0] for problem in read.problems] == ["s.json:8", "s.json:5", "s.json:6"]
    [problem] = read_claude('{\n"permissions": {,}}', "s.json", "user").problems
    assert problem.startswith("s.json:2: not valid JSON")


CODEX = """
# comment
prefix_rule(
    pattern = ["gh", "pr", ["view", "list"]],
    decision = "prompt",
    justification = "asks the network",
    match = ["gh pr view 7", ["gh", "pr", "list"]],
    not_match = ["gh pr --repo x view"],
)
prefix_rule(pattern = ["make"])
prefix_rule(pattern = ["rm"], decision = "forbidden")
prefix_rule(pattern = [f()], decision = "allow")
prefix_rule(pattern = ["ls"], decision = "maybe")
prefix_rule(pattern = ["ls", "*"])
prefix_rule(pattern = ["ls"], match = ["cat"])
"""


def test_codex() -> None:
    read = read_codex(CODEX, "default.rules", "user")
    assert [(rule.decision, rule.pattern, rule.origin) for rule in read.rules] == [
        ("ask", "gh pr view *", "default.rules:3"),
        ("ask", "gh pr list *", "default.rules:3"),
        ("allow", "make *", "default.rules:10"),
        ("deny", "rm *", "default.rules:11"),
    ]
    assert read.rules[0].reason == "asks the network"
    assert [problem.split(": ")[0] for problem in read.problems] == [f"default.rules:{line}" for line in (12, 13, 14, 15)]
    assert read_codex("prefix_rule(\n", "r.rules", "user").problems[0].startswith("r.rules:1")
    assert judge_command("make test", ROOT, read.rules, AROUND).decision == "allow"
    assert judge_command("make $(touch PWN)", ROOT, read.rules, AROUND).decision == "ask"


@given(
    st.text(max_size=200)
    | st.recursive(st.none() | st.text(max_size=20) | st.integers(), lambda inner: st.lists(inner, max_size=4)).map(str)
)
def test_no_file_raises(text: str) -> None:
    for written in (text, f'{{"permissions": {{"deny": [{json.dumps(text)}]}}}}'):
        read_claude(written, "s.json", "user")
    for written in (text, f"prefix_rule(pattern=[{text!r}], decision='forbidden')"):
        read_codex(written, "r.rules", "user")


def test_policies_of_gemini_cli() -> None:
    text = """
[[rule]]
toolName = "run_shell_command"
commandPrefix = ["git status", "npm test"]
decision = "allow"
priority = 100
[[rule]]
commandPrefix = "rm -rf"
decision = "deny"
[[rule]]
mcpName = "harbour"
toolName = "tide"
decision = "ask_user"
[[rule]]
toolName = ["write_file", "no_such_tool"]
decision = "deny"
[[rule]]
toolName = "run_shell_command"
commandRegex = "git (commit|push)"
decision = "deny"
[[rule]]
toolName = "*"
decision = "allow"
[[rule]]
decision = "maybe"
"""
    found = read_policies(text, "p.toml", "user")
    assert [(rule.decision, rule.tool, rule.pattern, rule.origin) for rule in found.rules] == [
        ("allow", "run_shell", "git status *", "p.toml:2"),
        ("allow", "run_shell", "npm test *", "p.toml:2"),
        ("deny", "run_shell", "rm -rf *", "p.toml:7"),
        ("ask", "mcp__harbour__tide", "", "p.toml:10"),
        ("deny", "write_file", "", "p.toml:14"),
    ]
    assert ["p.toml:17" in found.problems[0], "commandRegex" in found.problems[0], "p.toml:24" in found.problems[1]] == [True] * 3
    assert "p.toml:1" in read_policies("rule = \nx = 1", "p.toml", "user").problems[0]


@given(st.text(max_size=200))
def test_no_policy_file_stops_it(text: str) -> None:
    read_policies("[[rule]]\n" + text, "p.toml", "user")


def test_permissions_of_opencode() -> None:
    text = """{
      // what it may do
      "permission": {"edit": "ask", "webfetch": "deny", "bash": {"*": "deny", "git push *": "deny", "git status": "allow"}, "odd": "ask"},
      "tools": {"write": false, "harbour_*": false, "bash": true},
    }"""

    def said(tier: Tier) -> list[tuple[str, str, str, str]]:
        return [(rule.decision, rule.tool, rule.pattern, rule.tier) for rule in read_opencode(text, "o.json", tier).rules]

    tightening = [("ask", "edit", "", "project"), ("deny", "web_fetch", "", "project"), ("ask", "run_shell", "", "project")]
    further = [("deny", "write_file", "", "project"), ("deny", "mcp__harbour", "", "project")]
    assert said("project") == [*tightening, ("deny", "run_shell", "git push *", "project"), *further]
    assert ("allow", "run_shell", "git status", "user") in said("user")
    assert ("ask", "run_shell", "", "project") in said("user"), "what is said of the rest counts least"
    assert read_opencode('{"permission": "deny"}', "o.json", "project").rules[0].origin == "o.json:1"
    assert read_opencode("{", "o.json", "user").problems
