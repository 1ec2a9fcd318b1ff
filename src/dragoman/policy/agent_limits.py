"""What the file of a subagent lets it do, held against each of its calls. It narrows what may run and allows nothing.

The files are those of Claude Code, Codex, gemini-cli and opencode, read in extensions/agent_limits.py. What one of them forbids stays
forbidden here, for the subagent and for those that it calls: a tool it does not name is refused, also one that joins later or is called
for it by another tool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from dragoman.policy.claude_rules import allowing_rules, denying_rules
from dragoman.policy.command_rules import CommandRuling, judge_command
from dragoman.policy.commands import ReadableFolders
from dragoman.policy.judge import Law, Mode, MustAsk, judge
from dragoman.policy.rules import EDITS, SERVERS, Rule, RuleProblem, fits_word
from dragoman.policy.tool_permissions import Effect, Permission, effect_of, effect_of_commands, effect_on_agent, stricter
from dragoman.policy.tool_rules import fits_call, fits_server
from dragoman.values.calls import Deny, Intent
from dragoman.values.messages import ToolSpec
from dragoman.words import say

_FOR_SERVERS = frozenset({"search_tools", "call_tool"})
"""Tools that find and call a server's tools: whoever has one of those has these."""
_CALLS_AGENTS = "task"


class AgentLimits(msgspec.Struct, frozen=True):
    """What one file says."""

    by: str
    """Names the subagent and its file, for the model and the user."""
    tools: tuple[str, ...] | None = None
    """The tools it has: our names, and those of servers, with `*`. None: all."""
    without: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    """`Bash(git log:*)`, as Claude Code writes it: of a tool that is named so, only the calls that fit."""
    refused: tuple[str, ...] = ()
    """Likewise: the calls that fit are refused."""
    agents: tuple[str, ...] | None = None
    """The subagents it may call; None: all."""
    permissions: tuple[tuple[Permission, ...], ...] = ()
    """`permission` of opencode: in each list the last that fits decides; all lists hold."""
    reads_only: bool = False
    mode: Mode | None = None
    """It works in this mode, if its caller's lets it do more."""
    asks: bool = True
    """False: what would be asked about is refused."""

    def has(self, name: str) -> bool:
        """Whether it has a tool of this name."""
        if any(is_named(each, name) for each in self.without):
            return False
        return self.tools is None or any(is_named(each, name) for each in self.tools) or (name in _FOR_SERVERS and _has_servers(self.tools))

    def may_call(self, agent: str) -> bool:
        """Whether it may call a subagent of this name."""
        if self.agents is not None and agent not in self.agents:
            return False
        return all(effect_on_agent(permissions, agent) != "deny" for permissions in self.permissions)

    def limit(self, spec: ToolSpec, intent: Intent, law: Law) -> Deny | MustAsk | None:
        """None: a call may run, as far as this goes."""
        if not self.has(spec.name):
            return Deny(f"{self.by} does not have the tool {spec.name}: it was not run")
        effect: Effect = "allow"
        for found in self._effects(spec, intent, law):
            effect = stricter(effect, found)
        if effect == "deny":
            return Deny(f"{self.by} may not do this: {spec.name} was not run")
        if effect == "ask":
            return MustAsk(msgspec.structs.replace(intent, why=say("policy.agent_asks", by=self.by)))
        return None

    def _effects(self, spec: ToolSpec, intent: Intent, law: Law) -> Iterator[Effect]:
        if self.reads_only:
            yield _effect_of_reading(spec, intent, law)
        if _is_about(self.patterns, spec):
            yield _effect_of_patterns(self.patterns, spec, intent, law)
        if self.refused and _refuses(self.refused, spec, intent, law):
            yield "deny"
        for permissions in self.permissions:
            yield effect_of(permissions, spec, intent, law)


def in_mode(limits: AgentLimits) -> Callable[[ToolSpec, Intent, Law], Deny | MustAsk | None]:
    """All that a file says, its mode included, for a run whose own mode stays as it is."""

    def limit(spec: ToolSpec, intent: Intent, law: Law) -> Deny | MustAsk | None:
        by_mode = judge(spec, intent, limits.mode, law=law) if limits.mode is not None else None
        found = [each for each in (limits.limit(spec, intent, law), by_mode) if isinstance(each, Deny | MustAsk)]
        first = next((each for each in found if isinstance(each, Deny)), next(iter(found), None))
        if isinstance(first, MustAsk) and not limits.asks:
            return Deny(f"{limits.by} asks nobody: {spec.name} was not run")
        return first

    return limit


def is_named(name: str, tool: str) -> bool:
    """Whether a name stands for a tool: `mcp__server`, `mcp__server__*` and gemini-cli's `mcp_server_*` for those of a server."""
    if name == tool:
        return True
    if name.startswith(SERVERS):
        return tool.startswith(SERVERS) and fits_server(name, tool)
    return name.startswith("mcp_") and tool.startswith(SERVERS) and fits_word(name, tool.replace("__", "_"))


def _has_servers(tools: Iterable[str]) -> bool:
    return any(name.startswith("mcp_") for name in tools)


def _effect_of_reading(spec: ToolSpec, intent: Intent, law: Law) -> Effect:
    """One that only reads edits nothing, and runs only commands that read. What leaves the machine, or is a server's, is asked about."""
    if spec.name == _CALLS_AGENTS or (spec.read_only and spec.kind != "fetch"):
        return "allow"
    if intent.command:
        return "allow" if law.folders and _judged(intent, (), law).decision == "allow" else "deny"
    return "deny" if spec.kind in ("edit", "execute") or intent.writes else "ask"


def _judged(intent: Intent, rules: Sequence[Rule], law: Law) -> CommandRuling:
    return judge_command(intent.command, intent.directory or law.folders[0], rules, ReadableFolders(law.folders, law.secret))


# --- `Bash(git log:*)`


def _is_about(patterns: Sequence[str], spec: ToolSpec) -> bool:
    """Whether one of them is about this tool, so that only what fits may run."""
    return any(_is_tool(rule, spec) for each in patterns for rule in _rules_of(each, "allow"))


def _is_tool(rule: Rule, spec: ToolSpec) -> bool:
    return rule.tool == spec.name or (rule.tool == EDITS and spec.kind == "edit")


def _effect_of_patterns(patterns: Sequence[str], spec: ToolSpec, intent: Intent, law: Law) -> Effect:
    rules = [rule for each in patterns for rule in _rules_of(each, "allow") if _is_tool(rule, spec)]
    if intent.command:
        return effect_of_commands(intent, rules, law)
    return "allow" if any(fits_call(rule, spec, intent, law.folders[0] if law.folders else "") for rule in rules) else "deny"


def _refuses(patterns: Sequence[str], spec: ToolSpec, intent: Intent, law: Law) -> bool:
    rules = [rule for each in patterns for rule in _rules_of(each, "deny") if _is_tool(rule, spec)]
    if intent.command:
        return bool(rules) and (not law.folders or _judged(intent, rules, law).is_by_rule)
    return any(fits_call(rule, spec, intent, law.folders[0] if law.folders else "") for rule in rules)


@lru_cache(512)
def _rules_of(written: str, decision: Literal["allow", "deny"]) -> tuple[Rule, ...]:
    """One that cannot be understood allows no call of its tool, and refuses all of them."""
    try:
        rules = allowing_rules(written, written) if decision == "allow" else denying_rules(written, written, "user")
    except RuleProblem:
        tool = written.partition("(")[0].strip()
        rules = allowing_rules(tool, written) if decision == "allow" else denying_rules(tool, written, "user")
        if decision == "allow":
            rules = [msgspec.structs.replace(rule, pattern="\0") for rule in rules]
    return tuple(rules)
