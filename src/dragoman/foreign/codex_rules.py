"""Rules of Codex (`prefix_rule(pattern=["git", ["push", "fetch"]], decision="prompt")` in its *.rules files), as ours.

The files are Starlark. Only calls with plain values are read; nothing in them is run.
"""

from __future__ import annotations

import ast
import itertools
import shlex
from collections.abc import Iterable
from typing import Any

from dragoman.policy.claude_rules import ReadRules
from dragoman.policy.rules import COMMANDS, Decision, Rule, RuleProblem, Tier, check_rule, covers_example
from dragoman.words import say

_DECISIONS: dict[object, Decision] = {"allow": "allow", "prompt": "ask", "forbidden": "deny"}
MAX_ALTERNATIVES = 200


def read_codex(text: str, path: str, tier: Tier) -> ReadRules:
    """The rules of a file. Never raises; a project's allows are left out, for it may only tighten."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        return ReadRules(problems=(say("policy.other_not_starlark", where=f"{path}:{error.lineno or 1}", reason=error.msg),))
    except (ValueError, RecursionError, MemoryError):
        return ReadRules(problems=(say("policy.other_not_starlark", where=path, reason="it cannot be read"),))
    rules: list[Rule] = []
    problems: list[str] = []
    for statement in tree.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "prefix_rule"):
            continue  # comments as strings, and functions that we do not know
        where = f"{path}:{statement.lineno}"
        try:
            rules += _rules_of(call, where, tier)
        except RuleProblem as problem:
            problems.append(say("policy.other_rule", where=where, rule="prefix_rule", reason=problem))
    return ReadRules(tuple(rules), tuple(problems))


def _rules_of(call: ast.Call, where: str, tier: Tier) -> list[Rule]:
    """Raises RuleProblem."""
    try:
        given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg}
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise RuleProblem(say("policy.other_plain")) from error
    decision = _DECISIONS.get(given.get("decision", "allow")) if isinstance(given.get("decision", "allow"), str) else None
    if decision is None:
        raise RuleProblem(say("policy.other_decision", decision=str(given.get("decision"))[:40]))
    commands = _alternatives(given.get("pattern"))
    if decision == "allow" and tier == "project":
        return []
    if decision == "allow" and any("*" in word for words in commands for word in words):
        raise RuleProblem(say("policy.other_star"))
    reason = given.get("justification")
    rules = [
        check_rule(Rule(decision, f"{shlex.join(words)} *", COMMANDS, reason if isinstance(reason, str) else "", origin=where, tier=tier))
        for words in commands
    ]
    _check_examples(rules, given)
    return rules


def _alternatives(pattern: Any) -> list[tuple[str, ...]]:
    """Every command that a pattern stands for: each place is a word or a list of words."""
    if not isinstance(pattern, list) or not pattern:
        raise RuleProblem(say("policy.other_pattern"))
    places = [place if isinstance(place, list) else [place] for place in pattern]
    if not all(place and all(isinstance(word, str) and word for word in place) for place in places):
        raise RuleProblem(say("policy.other_pattern"))
    commands = list(itertools.islice(itertools.product(*places), MAX_ALTERNATIVES + 1))
    if len(commands) > MAX_ALTERNATIVES:
        raise RuleProblem(say("policy.other_pattern"))
    return commands


def _check_examples(rules: Iterable[Rule], given: dict[str, Any]) -> None:
    """What the file says of its own rule must hold, or it does not mean what it says here. Raises RuleProblem."""
    for name, key, expected in (("match", "policy.rule_match", True), ("not_match", "policy.rule_no_match", False)):
        examples = given.get(name, [])
        for example in examples if isinstance(examples, list) else []:
            text = shlex.join(map(str, example)) if isinstance(example, list) else str(example)
            if any(covers_example(rule, text) for rule in rules) != expected:
                raise RuleProblem(say(key, example=text))
