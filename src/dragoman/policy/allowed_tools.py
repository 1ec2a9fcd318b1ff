"""`allowed-tools` and `disallowed-tools` of a skill or a command, while it is at work. They narrow what may run, and allow nothing.

What is not among the allowed is asked about, also where the mode would let it run: elsewhere the list spares questions and forbids
nothing, so it is seldom whole. What is disallowed is refused. The names are those of Claude Code with its patterns (`Bash(git add:*)`,
`Edit(src/**)`), those of gemini-cli, and ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.policy.claude_rules import allowing_rules, denying_rules
from dragoman.policy.judge import Law, MustAsk
from dragoman.policy.rules import COMMANDS, EDITS, Rule, RuleProblem
from dragoman.policy.tool_rules import fits_call
from dragoman.values.calls import Deny, Intent
from dragoman.values.messages import ToolSpec
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.policy.command_rules import CommandRuling

_ALIASES = {
    "run_shell_command": COMMANDS, "run_shell": COMMANDS, "shell": COMMANDS, "bash": COMMANDS, "replace": EDITS, "write_file": EDITS,
    "edit": EDITS, "write": EDITS, "apply_patch": EDITS, "webfetch": "web_fetch",
}  # fmt: skip
EVERYTHING = "*"


class AllowedTools:
    """What a skill or a command says of tools. `by` names it, for the user and the model."""

    def __init__(self, allowed: Iterable[str] | None, by: str, disallowed: Iterable[str] = ()) -> None:
        """`allowed`: None where nothing is said of it; empty where no tool is needed."""
        self._by = by
        self._says, self._names, self._refused = allowed is not None, tuple(allowed or ()), tuple(disallowed)
        self._rules = tuple(rule for name in self._names for rule in _rules_of(name, "allow", by))
        self._refusing = tuple(rule for name in self._refused for rule in _rules_of(name, "deny", by))

    def limit(self, spec: ToolSpec, intent: Intent, law: Law) -> Deny | MustAsk | None:
        """None: a call may run, as far as this goes."""
        if self._refuses(spec, intent, law):
            return Deny(f"{self._by} does without {', '.join(self._refused)}: {spec.name} was not run")
        if self._may_hide_refused(intent, law):
            return MustAsk(msgspec.structs.replace(intent, why=say("policy.may_hide_refused", by=self._by, names=", ".join(self._refused))))
        if not self._says or spec.read_only or EVERYTHING in self._names or self._covers(spec, intent, law):
            return None
        return MustAsk(
            msgspec.structs.replace(intent, why=say("policy.not_among_allowed", by=self._by, names=", ".join(self._names) or "–"))
        )

    def _covers(self, spec: ToolSpec, intent: Intent, law: Law) -> bool:
        if intent.command and law.folders:
            return _has_all_commands(self._rules) or _judged(intent, self._rules, law).decision == "allow"
        return any(fits_call(rule, spec, intent, law.folders[0] if law.folders else "") for rule in self._rules)

    def _refuses(self, spec: ToolSpec, intent: Intent, law: Law) -> bool:
        if not self._refusing:
            return False
        if EVERYTHING in self._refused or any(
            fits_call(rule, spec, intent, law.folders[0] if law.folders else "") for rule in self._refusing
        ):
            return True
        return bool(intent.command and law.folders) and _judged(intent, self._refusing, law).decision == "deny"

    def _may_hide_refused(self, intent: Intent, law: Law) -> bool:
        """Whether a command cannot be read, or is too long to be judged, and may run what is refused."""
        if not intent.command or not law.folders or not any(rule.is_for_commands for rule in self._refusing):
            return False
        ruling = _judged(intent, self._refusing, law)
        return ruling.decision == "ask" and ruling.is_by_rule


def _has_all_commands(rules: Sequence[Rule]) -> bool:
    return any(rule.tool == COMMANDS and not rule.pattern for rule in rules)


def _judged(intent: Intent, rules: Sequence[Rule], law: Law) -> CommandRuling:
    from dragoman.policy.command_rules import judge_command
    from dragoman.policy.commands import ReadableFolders

    around = ReadableFolders(law.folders, law.secret)
    return judge_command(intent.command, intent.directory or law.folders[0], rules, around)


def _rules_of(name: str, decision: Literal["allow", "deny"], by: str) -> Sequence[Rule]:
    """A name that nobody knows allows and refuses nothing."""
    try:
        rules = allowing_rules(name, by) if decision == "allow" else denying_rules(name, by, "user")
    except RuleProblem:
        return ()
    plain = name.strip()
    return rules or (Rule(decision, "", _ALIASES.get(plain.lower(), plain), origin=by),)
