"""`allowed-tools` of a skill or a command: while it is at work, only these may act. It narrows what may run, and allows nothing by itself.

The names are those of Claude Code with its patterns (`Bash(git add:*)`, `Edit(src/**)`), those of gemini-cli, and ours. Tools that only
read are never refused: a skill's own files are read with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dragoman.policy.claude_rules import allowing_rules
from dragoman.policy.judge import Law
from dragoman.policy.rules import COMMANDS, EDITS, Rule, RuleProblem
from dragoman.policy.tool_rules import fits_call
from dragoman.values.contracts import Intent
from dragoman.values.messages import ToolSpec

_ALIASES = {
    "run_shell_command": COMMANDS, "run_shell": COMMANDS, "shell": COMMANDS, "bash": COMMANDS, "replace": EDITS, "write_file": EDITS,
    "edit": EDITS, "write": EDITS, "apply_patch": EDITS, "webfetch": "web_fetch",
}  # fmt: skip
EVERYTHING = "*"


class AllowedTools:
    """What one `allowed-tools` names. `by`: the skill or command, for the model."""

    def __init__(self, names: Iterable[str], by: str) -> None:
        self._by = by
        self._names = tuple(names)
        self._rules: tuple[Rule, ...] = tuple(rule for name in self._names for rule in _rules_of(name, by))

    def refusal(self, spec: ToolSpec, intent: Intent, law: Law) -> str:
        """Why a call may not run; empty: it may, as far as this goes."""
        if spec.read_only or EVERYTHING in self._names or self._covers(spec, intent, law):
            return ""
        return f"{self._by} allows only these tools to act: {', '.join(self._names)}. {spec.name} was not run"

    def _covers(self, spec: ToolSpec, intent: Intent, law: Law) -> bool:
        if intent.command and law.folders:
            from dragoman.policy.command_rules import judge_command
            from dragoman.policy.commands import ReadableFolders

            around = ReadableFolders(law.folders, law.secret)
            if any(rule.tool == COMMANDS and not rule.pattern for rule in self._rules):
                return True
            return judge_command(intent.command, intent.directory or law.folders[0], self._rules, around).decision == "allow"
        return any(fits_call(rule, spec, intent, law.folders[0] if law.folders else "") for rule in self._rules)


def _rules_of(name: str, by: str) -> Sequence[Rule]:
    """A name that nobody knows allows nothing."""
    try:
        if rules := allowing_rules(name, by):
            return rules
    except RuleProblem:
        return ()
    plain = name.strip()
    return (Rule("allow", "", _ALIASES.get(plain.lower(), plain), origin=by),)
