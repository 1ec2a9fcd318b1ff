"""What extensions of gemini-cli exclude with a pattern, as rules of ours: `run_shell_command(rm -rf)` refuses commands that begin so."""

from __future__ import annotations

import re

from dragoman.policy.claude_rules import denying_rules
from dragoman.policy.rules import Rule, Tier

_PATTERN = re.compile(r"\s*([\w.-]+)\s*\((.*)\)\s*", re.DOTALL)
_SHELL = frozenset({"run_shell_command", "ShellTool"})


def excluded_tool(written: str) -> str:
    """The tool that is excluded altogether; empty where only some commands are. Other tools take no pattern: all of it is excluded."""
    found = _PATTERN.fullmatch(written)
    if found is None:
        return written.strip()
    return "" if found[1] in _SHELL and found[2].strip() else found[1]


def exclusion_rules(written: str, where: str, tier: Tier) -> list[Rule]:
    """Rules for commands that are excluded; none where a whole tool is. Raises RuleProblem."""
    found = _PATTERN.fullmatch(written)
    if found is None or excluded_tool(written):
        return []
    return denying_rules(f"Bash({found[2].strip().removesuffix(':*').removesuffix('*').strip()}:*)", where, tier)
