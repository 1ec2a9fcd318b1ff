"""What gemini-cli writes of a tool, as rules of ours: `run_shell_command(rm -rf)` is about commands that begin so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.policy.claude_rules import ReadRules, rules_of
from dragoman.policy.rules import SERVERS, Decision, Rule, RuleProblem, Tier
from dragoman.words import say

_PATTERN = re.compile(r"\s*([\w.-]+)\s*\((.*)\)\s*", re.DOTALL)
_SHELL = frozenset({"run_shell_command", "ShellTool"})
GEMINI_TOOLS = {
    "run_shell_command": "run_shell", "ShellTool": "run_shell", "replace": "edit", "EditTool": "edit", "write_file": "write_file",
    "WriteFileTool": "write_file", "read_file": "read_file", "ReadFileTool": "read_file", "read_many_files": "read_many_files",
    "ReadManyFilesTool": "read_many_files", "list_directory": "list_directory", "LSTool": "list_directory", "glob": "glob",
    "GlobTool": "glob", "grep_search": "grep", "search_file_content": "grep", "GrepTool": "grep", "web_fetch": "web_fetch",
    "WebFetchTool": "web_fetch", "google_web_search": "google_web_search", "WebSearchTool": "google_web_search",
    "save_memory": "save_memory", "MemoryTool": "save_memory", "write_todos": "todo",
}  # fmt: skip
"""Its tools, under all their names, as ours are called."""


def command_of(written: str) -> str:
    """The beginning of the commands that are meant; empty if it is not a command, or if all commands are meant."""
    found = _PATTERN.fullmatch(written)
    return found[2].strip() if found is not None and found[1] in _SHELL else ""


def our_name(written: str) -> str:
    """The tool that is meant as a whole; empty where only some of its calls are, or we have none like it."""
    return GEMINI_TOOLS.get(excluded_tool(written), "")


def excluded_tool(written: str) -> str:
    """The tool that is excluded altogether; empty where only some commands are. Other tools take no pattern: all of it is excluded."""
    found = _PATTERN.fullmatch(written)
    if found is None:
        return written.strip()
    return "" if found[1] in _SHELL and found[2].strip() else found[1]


def exclusion_rules(written: str, where: str, tier: Tier) -> list[Rule]:
    """Rules for commands that are excluded; none where a whole tool is. Raises RuleProblem."""
    return rules_for(written, "deny", where, tier) if command_of(written) else []


def rules_for(written: str, decision: Decision, where: str, tier: Tier) -> list[Rule]:
    """What it says of a tool, of commands that begin so, or of a server's tools; nothing for a tool that we lack. Raises RuleProblem."""
    if command := command_of(written):
        return rules_of(f"Bash({command.removesuffix(':*').removesuffix('*').strip()}:*)", decision, where, tier)
    if name := our_name(written):
        return [Rule(decision, "", name, origin=where, tier=tier)]
    plain = excluded_tool(written)
    if not plain.startswith("mcp_"):
        return []
    # mcp_server_tool; the names of servers there have no underscore.
    ours = plain if plain.startswith(SERVERS) else f"{SERVERS}{plain.removeprefix('mcp_').replace('_', '__', 1)}"
    return [Rule(decision, "", ours, origin=where, tier=tier)]


# --- ~/.gemini/policies/*.toml

_DECISIONS: dict[object, Decision] = {"allow": "allow", "deny": "deny", "ask_user": "ask"}
_NARROWER = ("argsPattern", "commandRegex", "toolAnnotations", "subagent", "interactive", "modes")
"""Conditions that our rules have not. An allow that has one is left out: then it is asked about."""


def read_policies(text: str, path: str, tier: Tier) -> ReadRules:
    """The rules of a policy file. Never raises. Priorities are not followed: a refusal wins here."""
    import tomllib

    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        from dragoman.base.toml_lines import place_of_fault

        return ReadRules(problems=(say("policy.other_not_toml", where=place_of_fault(path, error), reason=error),))
    lines = [number for number, line in enumerate(text.splitlines(), 1) if re.match(r"\s*\[\[\s*rule\s*\]\]", line)]
    rules: list[Rule] = []
    problems: list[str] = []
    given = table.get("rule")
    for at, entry in enumerate(given if isinstance(given, list) else ()):
        where = f"{path}:{lines[at]}" if at < len(lines) else path
        decision = _DECISIONS.get(entry.get("decision")) if isinstance(entry, Mapping) else None
        try:
            if decision is None:
                raise RuleProblem(say("policy.gemini_decision"))
            rules += _of_policy(entry, decision, where, tier)
        except RuleProblem as problem:
            problems.append(say("policy.other_rule", where=where, rule="[[rule]]", reason=problem))
    return ReadRules(tuple(rules), tuple(problems))


def _of_policy(entry: Mapping[str, Any], decision: Decision, where: str, tier: Tier) -> Iterator[Rule]:
    """Raises RuleProblem."""
    narrower = next((key for key in _NARROWER if key in entry), "")
    tools = _texts(entry.get("toolName"))
    if narrower or "*" in tools:
        if decision != "allow":
            raise RuleProblem(say("policy.gemini_narrower", key=narrower or 'toolName = "*"'))
        return
    if prefixes := _texts(entry.get("commandPrefix")):
        for prefix in prefixes:
            yield from rules_for(f"run_shell_command({prefix})", decision, where, tier)
        return
    if server := entry.get("mcpName"):
        for tool in tools or ("",):
            yield Rule(decision, "", f"{SERVERS}{server}__{tool}" if tool else f"{SERVERS}{server}", origin=where, tier=tier)
        return
    for tool in tools:
        yield from rules_for(tool, decision, where, tier)


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
