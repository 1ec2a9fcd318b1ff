"""What settings.json of gemini-cli says of tools: `tools.core`, `exclude`, `allowed` and `confirmationRequired`, and servers with `trust`.

Tools that are not among the core ones, or excluded, are taken away; of commands some may be named, and rules hold for those. What a file
allows holds if it is the user's own. Older files have the same keys on their first level (`coreTools`, `excludeTools`, `allowedTools`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dragoman.base.text_files import FileProblem, read_text
from dragoman.extensions import located_json
from dragoman.extensions.sources import ProgramFolder
from dragoman.foreign.gemini_rules import GEMINI_TOOLS, command_of, excluded_tool, our_name, rules_for
from dragoman.policy.claude_rules import ReadRules
from dragoman.policy.rules import Decision, Rule, RuleProblem, Tier
from dragoman.words import say

FILE = "settings.json"
MAX_FILE_BYTES = 1_000_000
_OLD_NAMES = {"core": "coreTools", "exclude": "excludeTools", "allowed": "allowedTools"}
_NOT_USED = {"discoveryCommand": "toolDiscoveryCommand", "callCommand": "toolCallCommand"}
_DECISIONS: dict[str, Decision] = {"exclude": "deny", "confirmationRequired": "ask", "allowed": "allow"}


def read_gemini(text: str, path: str, tier: Tier) -> ReadRules:
    """Never raises; a project's allows are left out, for it may only tighten."""
    try:
        settings = located_json.decode(text)
    except located_json.WrongJson as error:
        return ReadRules(problems=(say("policy.other_not_json", where=f"{path}:{error.line}", reason=error),))
    if not isinstance(settings, dict):
        return ReadRules()
    reading = _Reading(text, path, tier)
    for key, decision in _DECISIONS.items():
        for written in _listed(settings, key) if tier == "user" or decision != "allow" else ():
            reading.add(written, decision)
    reading.add_core(_listed(settings, "core"))
    if tier == "user":
        reading.add_trusted(settings.get("mcpServers"))
    reading.tell_unused(settings)
    return ReadRules(tuple(reading.rules), tuple(reading.problems))


class _Reading:
    def __init__(self, text: str, path: str, tier: Tier) -> None:
        self.rules: list[Rule] = []
        self.problems: list[str] = []
        self._lines = text.splitlines()
        self._path, self._tier = path, tier

    def add(self, written: str, decision: Decision) -> None:
        where = self._where(f'"{written}"')
        try:
            self.rules += rules_for(written, decision, where, self._tier)
        except RuleProblem as problem:
            self.problems.append(say("policy.other_rule", where=where, rule=written[:200], reason=problem))

    def add_core(self, names: list[str]) -> None:
        """Where only some commands are among the core tools, all others are asked about, whatever the mode."""
        named = [written for written in names if command_of(written)]
        if not named or any(our_name(written) == "run_shell" for written in names):
            return
        self.rules.append(Rule("ask", "", "run_shell", origin=self._where(f'"{named[0]}"'), tier="project"))
        for written in named if self._tier == "user" else ():
            self.add(written, "allow")

    def add_trusted(self, servers: Any) -> None:
        for name, entry in servers.items() if isinstance(servers, Mapping) else ():
            if isinstance(entry, Mapping) and entry.get("trust") is True:
                self.add(f"mcp__{name}", "allow")

    def tell_unused(self, settings: Mapping[str, Any]) -> None:
        table = settings.get("tools")
        inner = table if isinstance(table, Mapping) else {}
        found = [new for new, old in _NOT_USED.items() if inner.get(new) or settings.get(old)]
        if found and self._tier == "user":
            where = self._where(f'"{found[0]}"', f'"{_NOT_USED[found[0]]}"')
            self.problems.append(say("gemini_unused", where=where, keys=", ".join(f"tools.{name}" for name in found)))

    def _where(self, *written: str) -> str:
        lines = (number for number, line in enumerate(self._lines, 1) if any(each in line for each in written))
        number = next(lines, 0)
        return f"{self._path}:{number}" if number else self._path


def missing_tools(folders: Iterable[ProgramFolder]) -> list[str]:
    """Our names for the tools that these files exclude. Broken files are reported where their rules are read."""
    gone: dict[str, None] = {}
    for settings in _files(folders):
        for written in _listed(settings, "exclude"):
            if (whole := excluded_tool(written)) and (name := GEMINI_TOOLS.get(whole)):
                gone[name] = None
        if core := _listed(settings, "core"):
            kept = {our_name(written) or ("run_shell" if command_of(written) else "") for written in core}
            gone |= dict.fromkeys(name for name in GEMINI_TOOLS.values() if name not in kept)
    return list(gone)


def _files(folders: Iterable[ProgramFolder]) -> Iterator[Mapping[str, Any]]:
    for folder in folders:
        path = os.path.join(folder.path, FILE)
        if folder.program != "gemini" or not os.path.isfile(path) or folder.leads_out(path):
            continue
        try:
            settings = located_json.decode(read_text(path, MAX_FILE_BYTES))
        except (FileProblem, located_json.WrongJson):
            continue
        if isinstance(settings, dict):
            yield settings


def _listed(settings: Mapping[str, Any], key: str) -> list[str]:
    table = settings.get("tools")
    found = table.get(key) if isinstance(table, Mapping) else None
    if found is None and key in _OLD_NAMES:
        found = settings.get(_OLD_NAMES[key])
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
