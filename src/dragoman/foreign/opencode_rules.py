"""`permission` and `tools` of opencode.json as rules of ours. What a project allows is left out, for it may only tighten.

There the last pattern that fits decides, here a refusal does: a `*` that stands for the rest counts least, and refuses only where nothing
else is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.extensions import located_json
from dragoman.policy.claude_rules import ReadRules, rules_of
from dragoman.policy.rules import Decision, Rule, RuleProblem, Tier
from dragoman.words import say

_TOOLS = {
    "bash": "run_shell", "edit": "edit", "write": "write_file", "patch": "edit", "read": "read_file", "list": "list_directory",
    "glob": "glob", "grep": "grep", "webfetch": "web_fetch", "websearch": "google_web_search", "task": "task", "todowrite": "todo",
}  # fmt: skip
_PATTERNED = {"bash": "Bash", "edit": "Edit", "read": "Read"}
_DECISIONS: dict[object, Decision] = {"allow": "allow", "ask": "ask", "deny": "deny"}
_ALL = ("bash", "edit", "webfetch")


def read_opencode(text: str, path: str, tier: Tier, above: str = "") -> ReadRules:
    """Never raises. The code that reads the servers reports a broken file."""
    try:
        settings = located_json.decode(text)
    except located_json.WrongJson as error:
        return ReadRules(problems=(say("policy.other_not_json", where=f"{path}:{error.line}", reason=error),))
    if not isinstance(settings, dict):
        return ReadRules()
    rules: list[Rule] = []
    problems: list[str] = []
    for key, name, pattern, decision in _entries(settings):
        if decision == "allow" and tier == "project":
            continue
        line = located_json.lines_of(text, [(key, name), (key,)])
        where = f"{path}:{line.get((key, name)) or line.get((key,), 0)}"
        try:
            rules += _rules(name, pattern, decision, where, tier, above)
        except RuleProblem as problem:
            problems.append(say("policy.other_rule", where=where, rule=f"{name} {pattern}"[:200], reason=problem))
    return ReadRules(tuple(rules), tuple(problems))


def _entries(settings: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Decision]]:
    """Key, tool, pattern and decision of each."""
    given = settings.get("permission")
    table = dict.fromkeys(_ALL, given) if isinstance(given, str) else given if isinstance(given, dict) else {}
    for name, value in table.items():
        rows = value if isinstance(value, dict) else {"": value}
        has_allow = "allow" in rows.values()
        for pattern, said in rows.items():
            if (decision := _DECISIONS.get(said) if isinstance(said, str) else None) is not None:
                rest = pattern == "*" and len(rows) > 1
                yield "permission", str(name), str(pattern), "ask" if rest and has_allow and decision == "deny" else decision
    tools = settings.get("tools")
    for name, is_on in tools.items() if isinstance(tools, dict) else ():
        if is_on is False:
            yield "tools", str(name), "", "deny"


def _rules(name: str, pattern: str, decision: Decision, where: str, tier: Tier, above: str) -> list[Rule]:
    """Raises RuleProblem."""
    ours = _TOOLS.get(name)
    if ours is None:  # the tools of a server are called server_tool there
        server = name.partition("_")[0] if name.endswith("_*") else ""
        return [Rule(decision, "", f"mcp__{server}", origin=where, tier=tier)] if server and decision != "allow" else []
    if pattern in ("", "*"):
        # What holds for the rest must not outrank what is said of some.
        return [Rule(decision, "", ours, origin=where, tier=tier if not pattern or decision == "deny" else "project")]
    return rules_of(f"{_PATTERNED[name]}({pattern})", decision, where, tier, above) if name in _PATTERNED else []
