"""Skills that the user has switched off in another program.

`skills.disabled` of gemini-cli, `skillOverrides` of Claude Code, `[[skills.config]]` of Codex.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from dragoman.extensions import located_json
from dragoman.extensions.files import SearchFolder, Unreadable, read_text
from dragoman.extensions.sources import ProgramFolder
from dragoman.values.origin import Program

MAX_BYTES = 1_000_000
_FILES = {
    "claude": ("settings.json", "settings.local.json", "skillOverrides"),
    "gemini": ("settings.json", "skills"),
    "codex": ("config.toml", "skills"),
}
"""The files of each program; the last is the word without which there is nothing to read."""
Switch = Literal["on", "user", "off"]
"""`user`: the model may not activate it, the user may."""


class NamedSkill(msgspec.Struct, frozen=True):
    """What a skill is switched off by."""

    program: Program
    name: str
    """Without its plugin."""
    plugin: str
    file: str


Judge = Callable[[NamedSkill], Switch]


def find_switches(folders: Sequence[ProgramFolder]) -> Judge:
    """What is wrong with a file is told by whoever reads servers and hooks in it."""
    judges = [judge for folder in folders for judge in _judges_in(folder)]

    def strictest(skill: NamedSkill) -> Switch:
        found = {judge(skill) for judge in judges}
        return "off" if "off" in found else "user" if "user" in found else "on"

    return strictest


def _judges_in(folder: ProgramFolder) -> Iterator[Judge]:
    *names, word = _FILES.get(folder.program, ("",))
    for path in (os.path.join(folder.path, name) for name in names):
        values = _values_in(SearchFolder(folder.program, folder.tier, path, folder.within), word)
        if folder.program == "claude" and isinstance(table := values.get(word), dict):
            yield _of_claude(table)
        elif isinstance(table := values.get("skills"), dict):
            yield _of_gemini(table) if folder.program == "gemini" else _of_codex(table)


def _values_in(place: SearchFolder, word: str) -> Mapping[str, Any]:
    import tomllib

    try:
        text = read_text(place, place.path, MAX_BYTES) if os.path.isfile(place.path) else ""
        if word not in text:
            return {}
        found = tomllib.loads(text) if place.path.endswith(".toml") else located_json.decode(text)
    except (Unreadable, tomllib.TOMLDecodeError, located_json.WrongJson, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _of_gemini(table: Mapping[str, Any]) -> Judge:
    given = table.get("disabled")
    names = {name.lower() for name in given if isinstance(name, str)} if isinstance(given, list) else set[str]()

    def judge(skill: NamedSkill) -> Switch:
        is_off = table.get("enabled") is False and skill.program == "gemini"
        return "off" if is_off or (skill.name.lower() in names and skill.program in ("gemini", "agents")) else "on"

    return judge


def _of_claude(table: Mapping[str, Any]) -> Judge:
    words: dict[object, Switch] = {"off": "off", "user-invocable-only": "user"}

    def judge(skill: NamedSkill) -> Switch:
        said = table.get(skill.name) if skill.program == "claude" and not skill.plugin else None
        return words.get(said, "on") if isinstance(said, str) else "on"

    return judge


def _of_codex(table: Mapping[str, Any]) -> Judge:
    rows = table.get("config")
    off = [row for row in rows if isinstance(row, dict) and row.get("enabled") is False] if isinstance(rows, list) else []
    names = [row.get("name") for row in off]
    paths = {os.path.realpath(path) for row in off if isinstance(path := row.get("path"), str) and "\0" not in path}

    def judge(skill: NamedSkill) -> Switch:
        if skill.name in names and skill.program in ("codex", "agents"):
            return "off"
        return "off" if paths & {os.path.realpath(skill.file), os.path.realpath(os.path.dirname(skill.file))} else "on"

    return judge
