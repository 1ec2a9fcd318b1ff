"""The extensions in `dragoman config`: each with its file and line, and which programs' files are not read."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.app.extensions import folders_of, switched_off
from dragoman.app.plugins import plugins_of
from dragoman.app.setup import Setup
from dragoman.base.places import shorten_home
from dragoman.base.text import one_line
from dragoman.base.visible import escape_hidden
from dragoman.extensions.agents import find_agents
from dragoman.extensions.commands import find_commands
from dragoman.extensions.skills import find_skills
from dragoman.values.origin import Origin
from dragoman.words import say


class BroughtRow(msgspec.Struct, frozen=True):
    """One skill, command, subagent or plugin."""

    name: str
    origin: Origin
    description: str = ""


class Brought(msgspec.Struct, frozen=True):
    """What others bring, as `dragoman config` shows it."""

    skills: tuple[BroughtRow, ...] = ()
    commands: tuple[BroughtRow, ...] = ()
    subagents: tuple[BroughtRow, ...] = ()
    plugins: tuple[BroughtRow, ...] = ()
    problems: tuple[str, ...] = ()
    """What is wrong with files, each named with its line."""
    switched_off: tuple[str, ...] = ()
    """Programs whose files are not read."""


KINDS = ("skills", "commands", "subagents", "plugins")


def find_brought(setup: Setup) -> Brought:
    folders, plugins = folders_of(setup), plugins_of(setup)
    skills, commands = find_skills(folders, plugins.found), find_commands(folders, plugins.found)
    agents = find_agents(folders, plugins.found)
    problems = [*plugins.problems, *skills.problems, *commands.problems, *agents.notices]
    return Brought(
        tuple(BroughtRow(each.name, each.origin, each.description) for each in skills.found),
        tuple(BroughtRow(f"/{each.name}", each.origin, each.description) for each in commands.found),
        tuple(BroughtRow(each.name, each.origin, each.description) for each in agents.agents),
        tuple(BroughtRow(each.name, each.origin, each.description) for each in plugins.found),
        tuple(dict.fromkeys(map(str, problems))),
        tuple(sorted(switched_off(setup.config.sources))),
    )


def brought_lines(found: Brought) -> list[str]:
    lines: list[str] = []
    for kind in KINDS:
        rows: tuple[BroughtRow, ...] = getattr(found, kind)
        lines += ["", say(f"skills.config_{kind}")] if rows else []
        lines += [
            escape_hidden(f"  {row.name}  {one_line(row.description, 80)}  ({shorten_home(str(row.origin))})", one_line=True)
            for row in rows
        ]
    if found.problems:
        lines += ["", say("skills.config_problems"), *(escape_hidden(f"  {each}", one_line=True) for each in found.problems)]
    if found.switched_off:
        keys = ", ".join(f"sources.{name}" for name in found.switched_off)
        lines += ["", say("skills.config_switched_off", keys=keys)]
    return lines


def brought_json(found: Brought) -> dict[str, Any]:
    made: dict[str, Any] = {
        kind: [
            {
                "name": row.name,
                "description": row.description,
                "file": row.origin.path,
                "line": row.origin.line or None,
                "program": row.origin.program,
                "tier": row.origin.tier,
            }
            for row in getattr(found, kind)
        ]
        for kind in KINDS
    }
    return {**made, "switched_off": list(found.switched_off)}
