"""Whether the condition `if` of a hook fits a call: a permission rule of Claude Code, as `Bash(git push *)` or `Edit(*.ts)`.

It saves starting a command, and guards nothing: where it is not certain that a call does not fit, the hook runs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.extensions.hooks.inputs import Occasion
from dragoman.extensions.hooks.names import TOOL_EVENTS, tool_names
from dragoman.policy.claude_rules import denying_rules
from dragoman.policy.command_rules import judge_command
from dragoman.policy.commands import ReadableFolders
from dragoman.policy.rules import Rule, RuleProblem
from dragoman.policy.tool_rules import fits_call

if TYPE_CHECKING:
    from dragoman.loop.agent import Agent


def is_rule(condition: str) -> bool:
    try:
        denying_rules(condition, "", "user")
    except RuleProblem:
        return False
    return True


def holds(condition: str, occasion: Occasion, agent: Agent | None) -> bool:
    """Only calls fit. Without an agent (a hook is tried out) what cannot be known fits."""
    if occasion.event not in TOOL_EVENTS:
        return False
    try:
        rules = denying_rules(condition, "", "user")
    except RuleProblem:
        return True
    if not rules:  # a tool whose calls have no patterns here
        return condition.partition("(")[0].strip() in tool_names(occasion.subject)
    tool = agent.tools.get(occasion.subject) if agent is not None else None
    if tool is None or agent is None:
        return any(rule.tool in (occasion.subject, "edit") for rule in rules)
    intent = agent.approvals.intend(tool, occasion.tool_input)
    if intent.command:
        return _fits_command(intent.command, intent.directory or occasion.directory, rules)
    if not (intent.writes or intent.reads or intent.scope) and isinstance(path := occasion.tool_input.get("file_path"), str):
        # A call that will fail, of a file that is not there: it names one all the same.
        intent = msgspec.structs.replace(intent, reads=(os.path.join(occasion.directory, path),))
    return any(fits_call(rule, tool.spec, intent, occasion.directory) for rule in rules)


def _fits_command(command: str, directory: str, rules: Sequence[Rule]) -> bool:
    if not any(rule.is_for_commands for rule in rules):
        return False
    ruling = judge_command(command, directory, rules, ReadableFolders((directory,), ()))
    return ruling.decision == "deny" or not ruling.is_clear
