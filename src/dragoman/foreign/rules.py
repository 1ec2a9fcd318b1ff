"""Rules that Claude Code, Codex and gemini-cli keep in their files: the user's, and those of a trusted folder, which may only tighten.

What they allow holds in trusted folders alone: there a command like `npm run test` runs what the folder says it runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import msgspec

from dragoman.base.text_files import FileProblem, read_text
from dragoman.extensions.plugins import Plugin
from dragoman.extensions.sources import ProgramFolder
from dragoman.foreign.codex_rules import read_codex
from dragoman.foreign.gemini_rules import exclusion_rules, read_policies
from dragoman.policy.claude_rules import ReadRules, read_claude
from dragoman.policy.rules import OUTSIDE, Rule, RuleProblem, Tier
from dragoman.words import say

MAX_FILE_BYTES = 1_000_000
MAX_FILES = 50
CLAUDE_FILES = ("settings.json", "settings.local.json")
OPENCODE_FILES = ("opencode.json", "opencode.jsonc")
Read = Callable[..., ReadRules]
"""Of text, path and tier. Never raises."""


class OtherRules(msgspec.Struct, frozen=True):
    """Rules of other programs, and notices about what could not be used."""

    rules: tuple[Rule, ...] = ()
    notices: tuple[str, ...] = ()


def find_other_rules(folders: Iterable[ProgramFolder], workspace: str, *, is_trusted: bool) -> OtherRules:
    """Read the rules in these folders, which lie from the repository's root down to the workspace. Never raises: a wrong file is named, and
    the rest holds. Where the folder is not trusted, nothing in them allows anything."""
    rules: list[Rule] = []
    notices: list[str] = []
    for path, tier, read in _files(folders, workspace):
        try:
            found = read(read_text(path, MAX_FILE_BYTES), path, tier)
        except FileProblem as problem:
            notices.append(say("config_unreadable", path=path, reason=problem))
            continue
        allowed = (rule for rule in found.rules if is_trusted or rule.decision != "allow")
        rules += (rule for rule in allowed if not _lets_out(rule))
        notices += (say("other_rules_problem", problem=problem) for problem in (*found.problems, *_let_out(found.rules)))
    return OtherRules(tuple(rules), tuple(notices))


def _lets_out(rule: Rule) -> bool:
    return rule.tool == OUTSIDE and rule.decision == "allow"


def _let_out(rules: Sequence[Rule]) -> list[str]:
    """What another program's file would let run outside the sandbox, which only the user's own does."""
    reason = say("policy.rule_outside_elsewhere")
    return [say("policy.other_rule", where=rule.origin, rule=rule.text, reason=reason) for rule in rules if _lets_out(rule)]


def rules_of_plugins(plugins: Sequence[Plugin]) -> OtherRules:
    """What extensions of gemini-cli exclude of a tool, and their policies: rules that refuse or ask, whoever installed them."""
    rules: list[Rule] = []
    notices: list[str] = []
    for plugin in plugins:
        for path in _rules_in(plugin.path, "policies", ".toml") if plugin.format == "gemini" else ():
            try:
                found = read_policies(read_text(path, MAX_FILE_BYTES), path, plugin.origin.tier)
            except FileProblem as problem:
                notices.append(say("config_unreadable", path=path, reason=problem))
                continue
            rules += (rule for rule in found.rules if rule.decision != "allow")
            notices += (say("other_rules_problem", problem=problem) for problem in found.problems)
        for written in plugin.excluded_tools:
            where = _line_of(plugin.origin.path, written)
            try:
                rules += exclusion_rules(written, where, plugin.origin.tier)
            except RuleProblem as problem:
                notices.append(
                    say("other_rules_problem", problem=say("policy.other_rule", where=where, rule=written[:200], reason=problem))
                )
    return OtherRules(tuple(rules), tuple(notices))


def _line_of(path: str, written: str) -> str:
    try:
        lines = read_text(path, MAX_FILE_BYTES).splitlines()
    except FileProblem:
        return path
    return next((f"{path}:{number}" for number, line in enumerate(lines, 1) if written in line), path)


def _files(folders: Iterable[ProgramFolder], workspace: str) -> Iterator[tuple[str, Tier, Read]]:
    real = os.path.realpath(workspace)
    for folder in folders:
        above = folder.project if folder.project and folder.project != real else ""
        for path, read in _named(folder):
            if os.path.lexists(path) and not folder.leads_out(path):
                yield path, folder.tier, _counted_from(read, above)


def _named(folder: ProgramFolder) -> Iterator[tuple[str, Read]]:
    """The files in which a program keeps rules. They need not exist."""
    if folder.program == "claude":
        yield from ((os.path.join(folder.path, name), read_claude) for name in CLAUDE_FILES if folder.project or name == CLAUDE_FILES[0])
    elif folder.program == "codex":
        yield from ((path, read_codex) for path in _rules_in(folder.path))
    elif folder.program == "gemini":
        yield os.path.join(folder.path, "settings.json"), read_gemini
        if not folder.project:  # gemini-cli does not use those of projects
            yield from ((path, read_policies) for path in _rules_in(folder.path, "policies", ".toml"))
    elif folder.program == "opencode":
        for base in filter(None, (folder.project, folder.path)):
            yield from ((os.path.join(base, name), read_opencode) for name in OPENCODE_FILES)


def _counted_from(read: Read, above: str) -> Read:
    return partial(read, above=above) if above and read in (read_claude, read_opencode) else read


def read_opencode(text: str, path: str, tier: Tier, above: str = "") -> ReadRules:
    """Most of these files are about other things: then nothing is loaded."""
    if '"permission"' not in text and '"tools"' not in text:
        return ReadRules()
    from dragoman.foreign import opencode_rules

    return opencode_rules.read_opencode(text, path, tier, above)


def read_gemini(text: str, path: str, tier: Tier) -> ReadRules:
    """As above."""
    if not any(word in text for word in ('"tools"', "Tools", '"trust"', "toolDiscovery", "toolCall")):
        return ReadRules()
    from dragoman.foreign import gemini_settings

    return gemini_settings.read_gemini(text, path, tier)


def _rules_in(folder: str, inside: str = "rules", ending: str = ".rules") -> list[str]:
    rules = os.path.join(folder, inside)
    try:
        names = sorted(name for name in os.listdir(rules) if name.endswith(ending))
    except OSError:
        return []
    return [os.path.join(rules, name) for name in names[:MAX_FILES]]
