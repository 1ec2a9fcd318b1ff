"""Which rules fit a call of a tool that is not a command."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.policy.command_rules import CommandRuling
from dragoman.policy.host_rules import fits_host
from dragoman.policy.rules import COMMANDS, EDITS, SERVERS, Rule, decide, fits_target, fits_word
from dragoman.values.calls import Intent
from dragoman.values.messages import ToolSpec

READING = "read_file"
_OTHER = re.compile(r"[^a-zA-Z0-9_*-]")
_MOST_CHARS, _HASH_CHARS = 64, 9
"""Longer names are cut, and end in a hash."""
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
    if tool.startswith(SERVERS) and spec.name.startswith(SERVERS):
        is_meant = fits_server(tool, spec.name)
    if not is_meant or (tool == COMMANDS and pattern):
        return False
    if not pattern.strip() or pattern.strip() == "*":
        return True
    pattern = pattern.strip()
    paths = intent.writes or intent.reads
    if paths:
        fits = [fits_target(pattern, path, root) for path in paths]
        if rule.decision == "allow":
            return all(fits)
        return any(fits) or (rule.decision == "deny" and tool == READING and _is_denied_file(pattern, intent.reads, root))
    return bool(intent.scope) and fits_host(pattern, intent.scope, is_refusal=rule.decision != "allow")


def _is_denied_file(pattern: str, paths: Sequence[str], root: str) -> bool:
    from dragoman.policy.denied_reads import has_denied_name  # only where a rule refuses reading

    return any(has_denied_name(path, (pattern,), root) for path in paths)


def fits_server(pattern: str, name: str) -> bool:
    """`mcp__server` stands for all tools of a server, `mcp__server__*` too; other characters than a name may have are `_` in it."""
    pattern = _OTHER.sub("_", pattern)
    if "*" in pattern:
        return fits_word(pattern, name)
    if len(pattern) > _MOST_CHARS:
        return name.startswith(f"{pattern[: _MOST_CHARS - _HASH_CHARS]}_") and len(name) == _MOST_CHARS
    return name == pattern or (pattern.count("__") == 1 and name.startswith(f"{pattern}__"))
