"""Permission rules of Claude Code (`permissions` in its settings.json), as ours.

`Bash(npm run test:*)`, `Edit(src/**)`, `Read(~/.ssh/**)`, `WebFetch(domain:example.org)`. Where its patterns say more than ours can, an
allow covers less here and a refusal more, never the other way.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
from collections.abc import Iterator

import msgspec

from dragoman.policy.rules import COMMANDS, DECISIONS, EDITS, SERVERS, Decision, Rule, RuleProblem, Tier, check_rule
from dragoman.words import say

_EDITING = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_READING = ("read_file", "read_many_files", "list_directory", "grep", "glob")
_RULE = re.compile(r"(mcp__[\w*.-]+|[A-Za-z][\w-]*)(?:\((.*)\))?", re.DOTALL)
_MOST_WORDS = 5
"""A `*` between words of a refusal stands for up to so many words."""


class ReadRules(msgspec.Struct, frozen=True):
    """What a file of another program says."""

    rules: tuple[Rule, ...] = ()
    problems: tuple[str, ...] = ()
    """Each with file and line: what is not used, and why."""


def read_claude(text: str, path: str, tier: Tier, above: str = "") -> ReadRules:
    """The rules in a settings.json. Never raises; a project's allows are left out, for it may only tighten. `above`: the folder that its
    paths are counted from, where that is not the workspace but one around it."""
    import json

    try:
        settings = json.loads(text)
    except json.JSONDecodeError as error:
        return ReadRules(problems=(say("policy.other_not_json", where=f"{path}:{error.lineno}", reason=error.msg),))
    except RecursionError:
        return ReadRules(problems=(say("policy.other_not_json", where=path, reason="it is nested too deeply"),))
    permissions = settings.get("permissions") if isinstance(settings, dict) else None
    if permissions is None:
        return ReadRules()
    if not isinstance(permissions, dict):
        return ReadRules(problems=(say("policy.other_wrong_kind", where=_where(text, path, '"permissions"'), key="permissions"),))
    rules: list[Rule] = []
    problems: list[str] = []
    for decision in DECISIONS:
        listed = permissions.get(decision, [])
        if not isinstance(listed, list):
            problems.append(say("policy.other_wrong_kind", where=_where(text, path, f'"{decision}"'), key=decision))
            continue
        for written in listed if not (tier == "project" and decision == "allow") else ():
            where = _where(text, path, json.dumps(written), json.dumps(written, ensure_ascii=False))
            try:
                rules += _rules_of(written, decision, where, tier, os.path.dirname(path), above)
            except RuleProblem as problem:
                problems.append(say("policy.other_rule", where=where, rule=str(written)[:200], reason=problem))
    return ReadRules(tuple(rules), tuple(problems))


def allowing_rules(written: str, where: str) -> list[Rule]:
    """One of their rules as ours that allow; none for a tool that we do not have. Raises RuleProblem."""
    return _rules_of(written, "allow", where, "user", os.sep)


def rules_of(written: str, decision: Decision, where: str, tier: Tier, above: str = "") -> list[Rule]:
    """One of their rules as ours. Raises RuleProblem."""
    return _rules_of(written, decision, where, tier, os.sep, above)


def denying_rules(written: str, where: str, tier: Tier) -> list[Rule]:
    """One of their rules as ours that refuse. Raises RuleProblem."""
    return _rules_of(written, "deny", where, tier, os.sep)


def _rules_of(written: object, decision: Decision, where: str, tier: Tier, folder: str, above: str = "") -> list[Rule]:
    """One of theirs as some of ours; none for a tool that we do not have. Raises RuleProblem."""
    parsed = _RULE.fullmatch(written.strip()) if isinstance(written, str) else None
    if parsed is None:
        raise RuleProblem(say("policy.other_form"))
    tool, inside = parsed.group(1), (parsed.group(2) or "").strip()
    return [
        check_rule(Rule(decision, pattern, ours, origin=where, tier=tier))
        for ours, pattern in _targets(tool, inside, decision, tier, folder, above)
    ]


def _targets(tool: str, inside: str, decision: Decision, tier: Tier, folder: str, above: str) -> Iterator[tuple[str, str]]:
    if tool == "Bash":
        patterns = _command_patterns(inside, decision) if inside not in ("", "*", ":*") else [""]
        yield from ((COMMANDS, pattern) for pattern in patterns)
    elif tool in _EDITING or tool == "Read":
        tools = _READING if tool == "Read" else (EDITS,)
        patterns = _path_patterns(inside, decision, tier, folder, above) if inside not in ("", "*", "**") else [""]
        yield from itertools.product(tools, patterns)
    elif tool == "WebFetch":
        kind, _, host = inside.partition(":")
        if inside and kind != "domain":
            raise RuleProblem(say("policy.other_form"))
        yield "web_fetch", host.strip()
    elif tool == "WebSearch":
        yield from (("web_search", ""), ("google_web_search", ""))
    elif tool.startswith(SERVERS):
        yield tool, ""


# --- commands


def _command_patterns(inside: str, decision: Decision) -> list[str]:
    """`npm run test:*` begins with these words; `*` elsewhere stands for any text, words too."""
    prefix = inside.endswith(":*")
    try:
        words = shlex.split(inside.removesuffix(":*"))
    except ValueError as error:
        raise RuleProblem(say("policy.rule_quotes", pattern=inside)) from error
    if not words:
        raise RuleProblem(say("policy.rule_empty"))
    if prefix or (words[-1].endswith("*") and words[-1] != "*"):
        words.append("*")
    body, last = (words[:-1], ["*"]) if words[-1] == "*" else (words, [])
    if decision == "allow":
        return [_joined([*body, *last])]
    choices = [[["*"] * count for count in range(_MOST_WORDS + 1)] if word == "*" else [[word]] for word in body[:40]]
    if sum(word == "*" for word in body) > 2:
        choices = [[[word]] for word in body]
    return [_joined([*itertools.chain(*chosen), *last]) for chosen in itertools.product(*choices)]


def _joined(words: list[str]) -> str:
    return " ".join(
        word if "*" in word and shlex.quote(word.replace("*", "x")) == word.replace("*", "x") else shlex.quote(word) for word in words
    )


# --- paths


def _path_patterns(inside: str, decision: Decision, tier: Tier, folder: str, above: str) -> list[str]:
    """Path patterns as in .gitignore: a name without a slash matches at any depth, and a folder's name everything in it.

    What a folder above the workspace says is counted from there; where it names no beginning, from the workspace too."""
    if inside.startswith("//"):
        pattern = inside[1:]
    elif inside.startswith("/"):  # counted from where the settings are
        pattern = inside[1:] if tier == "project" else os.path.join(folder, inside[1:])
    elif inside.startswith("~/"):
        pattern = inside
    else:
        plain = inside.removeprefix("./")
        pattern = plain if "/" in plain.rstrip("/") or inside.startswith("./") else f"**/{plain}"
    if above and not os.path.isabs(pattern) and not pattern.startswith("~"):
        anchored = os.path.join(above, pattern)
        return [*_with_inside(anchored, decision), *(_with_inside(pattern, decision) if not inside.startswith("/") else ())]
    return _with_inside(pattern, decision)


def _with_inside(pattern: str, decision: Decision) -> list[str]:
    if pattern.endswith("/"):
        return [f"{pattern}**"]
    if decision == "allow" or pattern.endswith("**"):
        return [pattern]
    return [pattern, f"{pattern}/**"]


def _where(text: str, path: str, *written: str) -> str:
    """File and line of what is written there."""
    for number, line in enumerate(text.splitlines(), 1):
        if any(each in line for each in written):
            return f"{path}:{number}"
    return path
