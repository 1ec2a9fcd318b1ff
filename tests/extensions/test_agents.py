"""Definitions of subagents, as Claude Code, gemini-cli, opencode and we write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.extensions.agents import MAX_BYTES, AgentDefinition, FoundAgents, find_agents
from dragoman.extensions.commands import find_commands
from dragoman.extensions.sources import ProgramFolder
from dragoman.values.origin import Program


def found_in(folder: Path, program: Program, name: str, text: str | bytes, under: str = "agents") -> FoundAgents:
    path = folder / under / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return find_agents([ProgramFolder(program, "user", str(folder))])


def the_one(found: FoundAgents) -> AgentDefinition:
    (agent,) = found.agents
    return agent


def test_one_of_claude_code(tmp_path: Path) -> None:
    tools = "tools: Read, Bash(git log:*), mcp__x__y\nmodel: inherit\n"
    text = f"---\nname: reviewer\ndescription: |\n  Reviews.\n  Use it often.\n{tools}---\n\nBe strict.\n"
    agent = the_one(found_in(tmp_path, "claude", "reviewer.md", text))
    assert (agent.name, agent.instructions, agent.model) == ("reviewer", "Be strict.", "inherit")
    assert agent.limits.tools == ("read_file", "read_many_files", "mcp__x__y", "run_shell", "shell_output")
    assert agent.limits.patterns == ("Bash(git log:*)",)
    assert str(agent.origin) == f"{tmp_path / 'agents' / 'reviewer.md'}:2"


def test_what_claude_code_takes_away(tmp_path: Path) -> None:
    agent = the_one(found_in(tmp_path, "claude", "a.md", "---\nname: a\ndescription: b\ndisallowedTools: Write, Edit\n---\n"))
    assert agent.limits.tools is None
    assert agent.limits.without == ("write_file", "edit")


def test_one_of_gemini_cli(tmp_path: Path) -> None:
    tools = "tools:\n  - read_file\n  - search_file_content\n  - run_shell_command\n"
    text = f"---\nname: auditor\nkind: local\ndescription: Audits.\n{tools}---\nAudit."
    agent = the_one(found_in(tmp_path, "gemini", "auditor.md", text))
    assert agent.limits.tools == ("read_file", "grep", "run_shell", "shell_output")
    everything = the_one(found_in(tmp_path, "gemini", "auditor.md", "---\nname: auditor\ndescription: Audits.\ntools: ['*']\n---\nAudit."))
    assert everything.limits.tools is None


@pytest.mark.parametrize("under", ["agent", "agents"])
def test_one_of_opencode_is_named_by_its_file(under: str, tmp_path: Path) -> None:
    text = "---\ndescription: Reviews.\nmode: subagent\nmodel: anthropic/claude-x\ntools:\n  write: false\n  bash: true\n---\nReview."
    agent = the_one(found_in(tmp_path, "opencode", "review.md", text, under))
    assert (agent.name, agent.limits.tools, agent.model) == ("review", None, "anthropic/claude-x")
    assert agent.limits.permissions == ((("write", "*", "deny"), ("bash", "*", "allow")),)
    assert found_in(tmp_path, "opencode", "review.md", "---\ndescription: x\nmode: primary\n---\n", under).agents == ()


def test_one_of_codex(tmp_path: Path) -> None:
    text = 'name = "Code Reviewer"\ndescription = "Reviews."\ndeveloper_instructions = """\nBe strict.\n"""\nsandbox_mode = "read-only"\n'
    agent = the_one(found_in(tmp_path, "codex", "reviewer.toml", text))
    assert (agent.name, agent.description, agent.instructions) == ("Code-Reviewer", "Reviews.", "Be strict.")
    assert agent.limits.reads_only
    wrong = found_in(tmp_path / "other", "codex", "x.toml", 'name = "x"\ndescription = \n')
    assert [":2" in notice for notice in wrong.notices] == [True]


def test_those_that_the_configuration_of_codex_declares(tmp_path: Path) -> None:
    reviewer = '[agents.reviewer]\ndescription = "Reviews."\nconfig_file = "agents/r.toml"\n'
    (tmp_path / "config.toml").write_text(f'model = "x"\n[agents]\nmax_threads = 3\n{reviewer}[agents.lost]\n')
    found = found_in(tmp_path, "codex", "r.toml", 'developer_instructions = "Be strict."\nsandbox_mode = "read-only"\n')
    agent = the_one(found)
    assert (agent.name, agent.description, agent.instructions) == ("reviewer", "Reviews.", "Be strict.")
    assert (agent.limits.reads_only, str(agent.origin)) == (True, f"{tmp_path}/config.toml:4")
    assert [f"{tmp_path}/config.toml:7" in notice for notice in found.notices] == [True]


def test_those_that_opencode_json_defines(tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("You review.\n")
    (tmp_path / "opencode.jsonc").write_text(
        """{
          // agents
          "agent": {
            "reviewer": {"description": "Reviews", "prompt": "{file:./prompt.md}", "model": "a/b", "tools": {"write": false, "bash": true}},
            "build": {"mode": "primary", "description": "x"},
            "out": {"description": "x", "prompt": "{file:/etc/hostname}"},
          },
          "command": {"test": {"template": "Test $1 with $2"}, "empty": {}, "a b": {"template": "x"}},
        }"""
    )
    folder = ProgramFolder("opencode", "project", str(tmp_path / ".opencode"), str(tmp_path))
    found = find_agents([folder])
    (agent,) = found.agents
    assert (agent.name, agent.instructions, agent.model) == ("reviewer", "You review.", "a/b")
    assert agent.limits.permissions == ((("write", "*", "deny"), ("bash", "*", "allow")),)
    assert str(agent.origin) == f"{tmp_path}/opencode.jsonc:4"
    assert [f"{tmp_path}/opencode.jsonc:6" in notice for notice in found.notices] == [True]
    commands = find_commands([folder])
    assert [(each.name, each.template, each.swallows) for each in commands.found] == [("test", "Test $1 with $2", True)]
    assert len(commands.problems) == 2


def test_what_is_wrong_is_one_notice_with_its_place_and_the_others_are_used(tmp_path: Path) -> None:
    found_in(tmp_path, "dragoman", "good.md", "---\ndescription: Good.\n---\n")
    found_in(tmp_path, "dragoman", "large.md", b"-" * (MAX_BYTES + 1))
    found_in(tmp_path, "dragoman", "named.md", "---\nname: two words\ndescription: x\n---\n")
    found = found_in(tmp_path, "dragoman", "silent.md", "---\nname: silent\n---\n")
    assert [agent.name for agent in found.agents] == ["good"]
    assert len(found.notices) == 3
    assert f"{tmp_path / 'agents' / 'named.md'}:2" in found.notices[1]
    assert "description" in found.notices[2]


def test_a_line_that_cannot_be_read_is_named_and_the_rest_used_unless_it_could_be_about_tools(tmp_path: Path) -> None:
    head = "---\nname: {}\ndescription: x\n"
    found_in(tmp_path, "claude", "a.md", head.format("a") + "just words\n---\nA")
    found_in(tmp_path, "claude", "b.md", head.format("b") + "just words\ntools: Read\n---\nB")
    found = found_in(tmp_path, "claude", "c.md", head.format("c") + "tools Read\n---\nC")
    assert [(agent.name, agent.limits.tools) for agent in found.agents] == [("a", None), ("b", ("read_file", "read_many_files"))]
    assert [f"{tmp_path / 'agents'}/{name}.md:4" in notice for name, notice in zip("abc", found.notices, strict=True)] == [True] * 3


def test_examples_in_tags_belong_to_the_description_though_they_are_not_indented(tmp_path: Path) -> None:
    lines = (
        'description: Use it: <example>\nContext: A change\nuser: "Look"\n</example>\n\n<example>\nmodel: none\n</example>\n\nmodel: opus\n'
    )
    agent = the_one(found_in(tmp_path, "claude", "a.md", f"---\nname: a\n{lines}tools: Read\n---\nA"))
    assert agent.description.splitlines()[-1] == "</example>"
    assert (agent.model, agent.limits.tools, agent.instructions) == ("opus", ("read_file", "read_many_files"), "A")
    open_tag = the_one(found_in(tmp_path, "claude", "a.md", "---\ndescription: Reads <file>\nmodel: opus\n---\nA"))
    assert (open_tag.description, open_tag.model) == ("Reads <file>", "opus")


def test_unknown_tools_are_named_in_one_notice(tmp_path: Path) -> None:
    found_in(tmp_path, "claude", "a.md", "---\nname: a\ndescription: x\ntools: Read, Telescope\n---\n")
    found = found_in(tmp_path, "claude", "b.md", "---\nname: b\ndescription: x\ntools: Sextant, Telescope\n---\n")
    (notice,) = found.notices
    assert "Telescope" in notice
    assert "Sextant" in notice
    assert [agent.limits.tools for agent in found.agents] == [("read_file", "read_many_files"), ()]


def test_the_nearest_of_one_name_wins(tmp_path: Path) -> None:
    for place in ("near", "far"):
        found_in(tmp_path / place, "claude", "a.md", f"---\nname: a\ndescription: {place}\n---\n")
    folders = [ProgramFolder("claude", "project", str(tmp_path / "near")), ProgramFolder("claude", "user", str(tmp_path / "far"))]
    assert the_one(find_agents(folders)).description == "near"


PIECES = st.sampled_from(
    ["---\n", "name: a\n", "description: b\n", "tools:", " [", "]", "\n  - Read\n", " {x: false}\n", "model: m\n", "\n", "é\ud800"]
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=12))
def test_no_file_stops_it(tmp_path_factory: pytest.TempPathFactory, pieces: list[str]) -> None:
    folder = tmp_path_factory.mktemp("any")
    found = found_in(folder, "claude", "any.md", "".join(pieces).encode("utf-8", "surrogatepass"))
    assert len(found.agents) + len(found.notices) >= 1
    for agent in found.agents:
        assert agent.description
