"""Which rules fit a call of a tool that is not a command."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.policy.command_rules import CommandRuling
from dragoman.policy.rules import COMMANDS, EDITS, Rule, decide, fits_host, fits_target
from dragoman.values.contracts import Intent
from dragoman.values.messages import ToolSpec

_ALIASES = {"web_search": "google_web_search"}
"""The names that people use."""


def judge_call(spec: ToolSpec, intent: Intent, rules: Sequence[Rule], root: str) -> CommandRuling | None:
    ruling = decide(rule for rule in rules if fits_call(rule, spec, intent, root))
    return CommandRuling(ruling.decision, ruling.reason, is_by_rule=True) if ruling is not None else None


def fits_call(rule: Rule, spec: ToolSpec, intent: Intent, root: str) -> bool:
    """By the tool's name, or `edit` for all that edit; then by the files it writes or reads, or the host it asks."""
    tool, pattern = rule.tool, rule.pattern
    if not tool:
        tool, _, pattern = pattern.partition(" ")
    tool = _ALIASES.get(tool, tool)
    is_meant = tool == spec.name or (tool == EDITS and spec.kind == "edit" and rule.tool == EDITS)
    if not is_meant or (tool == COMMANDS and pattern):
        return False
    if not pattern.strip() or pattern.strip() == "*":
        return True
    pattern = pattern.strip()
    paths = intent.writes or intent.reads
    if paths:
        fits = [fits_target(pattern, path, root) for path in paths]
        return all(fits) if rule.decision == "allow" else any(fits)
    return bool(intent.scope) and fits_host(pattern, intent.scope)
