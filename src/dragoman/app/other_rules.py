"""Rules that Claude Code, Codex and gemini-cli keep in their files: the user's, and those of a trusted folder, which may only tighten.

What they allow holds in trusted folders alone: there a command like `npm run test` runs what the folder says it runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from dragoman.app.config_tables import FolderTrust, OtherRulesTable
from dragoman.app.text_files import FileProblem, read_text
from dragoman.base.words import say
from dragoman.extensions.plugins import Plugin
from dragoman.policy.claude_rules import ReadRules, read_claude
from dragoman.policy.codex_rules import read_codex
from dragoman.policy.gemini_rules import exclusion_rules, read_policies
from dragoman.policy.rules import Rule, RuleProblem, Tier

MAX_FILE_BYTES = 1_000_000
MAX_FILES = 50
Read = Callable[[str, str, Tier], ReadRules]


class OtherRules(msgspec.Struct, frozen=True):
    rules: tuple[Rule, ...] = ()
    notices: tuple[str, ...] = ()


def find_other_rules(table: OtherRulesTable, env: Mapping[str, str], workspace: str, trust: FolderTrust) -> OtherRules:
    """Never raises: a wrong file is named, and the rest holds."""
    rules: list[Rule] = []
    notices: list[str] = []
    for path, tier, read in _files(table, env, workspace, trust):
        try:
            found = read(read_text(path, MAX_FILE_BYTES), path, tier)
        except FileProblem as problem:
            notices.append(say("config_unreadable", path=path, reason=problem))
            continue
        rules += (rule for rule in found.rules if trust.is_trusted or rule.decision != "allow")
        notices += (say("other_rules_problem", problem=problem) for problem in found.problems)
    return OtherRules(tuple(rules), tuple(notices))


def rules_of_plugins(plugins: Sequence[Plugin]) -> OtherRules:
    """What extensions of gemini-cli exclude of a tool: rules that refuse, whoever installed them."""
    rules: list[Rule] = []
    notices: list[str] = []
    for plugin in plugins:
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


def _files(table: OtherRulesTable, env: Mapping[str, str], workspace: str, trust: FolderTrust) -> Iterator[tuple[str, Tier, Read]]:
    home = env.get("HOME") or os.path.expanduser("~")
    project = os.path.realpath(workspace) if trust.is_trusted else ""
    users: dict[str, str] = {}
    if table.claude:
        users["claude"] = env.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
        yield from _existing([os.path.join(users["claude"], "settings.json")], "user", read_claude)
        if project and not _same(os.path.join(project, ".claude"), users["claude"]):
            names = ("settings.json", "settings.local.json")
            yield from _existing([os.path.join(project, ".claude", name) for name in names], "project", read_claude)
    if table.codex:
        users["codex"] = env.get("CODEX_HOME") or os.path.join(home, ".codex")
        yield from _existing(_rules_in(users["codex"]), "user", read_codex)
        if project and not _same(os.path.join(project, ".codex"), users["codex"]):
            yield from _existing(_rules_in(os.path.join(project, ".codex")), "project", read_codex)
    if table.gemini:
        users["gemini"] = os.path.join(home, ".gemini")
        yield from _existing([os.path.join(users["gemini"], "settings.json")], "user", read_gemini)
        yield from _existing(_rules_in(users["gemini"], "policies", ".toml"), "user", read_policies)  # those of projects are not used there
        if project and not _same(os.path.join(project, ".gemini"), users["gemini"]):
            yield from _existing([os.path.join(project, ".gemini", "settings.json")], "project", read_gemini)
    if table.opencode:
        folder = os.path.join(env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "opencode")
        names = ("opencode.json", "opencode.jsonc")
        yield from _existing([os.path.join(folder, name) for name in names], "user", read_opencode)
        if project and not _same(project, folder):
            yield from _existing([os.path.join(project, name) for name in names], "project", read_opencode)


def read_opencode(text: str, path: str, tier: Tier) -> ReadRules:
    """As above."""
    if '"permission"' not in text and '"tools"' not in text:
        return ReadRules()
    from dragoman.app import opencode_rules

    return opencode_rules.read_opencode(text, path, tier)


def read_gemini(text: str, path: str, tier: Tier) -> ReadRules:
    """Most of these files are about other things: then nothing is loaded."""
    if not any(word in text for word in ('"tools"', "Tools", '"trust"', "toolDiscovery", "toolCall")):
        return ReadRules()
    from dragoman.app import gemini_settings

    return gemini_settings.read_gemini(text, path, tier)


def _existing(paths: list[str], tier: Tier, read: Read) -> Iterator[tuple[str, Tier, Read]]:
    yield from ((path, tier, read) for path in paths if os.path.lexists(path))


def _rules_in(folder: str, inside: str = "rules", ending: str = ".rules") -> list[str]:
    rules = os.path.join(folder, inside)
    try:
        names = sorted(name for name in os.listdir(rules) if name.endswith(ending))
    except OSError:
        return []
    return [os.path.join(rules, name) for name in names[:MAX_FILES]]


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
