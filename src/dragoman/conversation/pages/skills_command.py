"""`dragoman skills`, `dragoman plugins`, and the same lists in a conversation."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from dragoman.app.notices import one_for_each_file
from dragoman.app.options import Options
from dragoman.app.plugins import plugins_of
from dragoman.app.setup import Setup, set_up
from dragoman.app.skills import skills_of
from dragoman.app.slash_commands import FileCommands, origin_words
from dragoman.app.trust import require_trust, trust_notices
from dragoman.base import jsontext
from dragoman.base.text import did_you_mean, one_line
from dragoman.context.environment import Surroundings, environment_text, skills_in
from dragoman.context.tokens import text_tokens
from dragoman.conversation.actions import Action, Output, find_action, refuse_options
from dragoman.extensions.files import SourceProblem, Unreadable
from dragoman.extensions.plugins import Plugin
from dragoman.extensions.skills import Skill, catalogue, load_skill
from dragoman.values.errors import InputError
from dragoman.values.origin import Origin
from dragoman.words import say

_KINDS = ("skills", "commands", "agents", "hooks", "mcp", "memory")


def run_skills(options: Options) -> Output:
    return _run(options, SKILLS_ACTIONS, "skills")


def run_plugins(options: Options) -> Output:
    return _run(options, PLUGINS_ACTIONS, "plugins")


def _run(options: Options, actions: dict[str, Action[Options]], command: str) -> Output:
    name, action = find_action(options, actions)
    if action.operand and len(options.words) < 2:
        raise InputError(say("skills.needs_name"))
    if len(options.words) > (2 if action.operand else 1):
        raise InputError(say("too_many_words", command=f"{command} {name}", word=one_line(options.words[-1], 40)))
    refuse_options(options, action, f"{command} {name}")
    return action.run(options)


# --- skills


def _list_skills(options: Options) -> str:
    setup = set_up(options)
    if options.output_format != "json":
        return "\n".join(skill_lines(setup)) + "\n"
    found = skills_of(setup)
    return _json(
        {"skills": [_skill_json(skill) for skill in found.found], "tokens": catalogue_tokens(found.found)},
        found.problems,
        (*setup.wrong_files, *trust_notices(setup.trust)),
    )


def skill_lines(setup: Setup) -> list[str]:
    """For a person: each skill with what it is for and where it lies, what could not be read, and how many tokens the list takes."""
    found = skills_of(setup)
    lines: list[str] = []
    for skill in found.found:
        only = f" ({say('skills.by_user_only', name=skill.name)})" if not skill.for_model else ""
        lines += [f"{skill.name}{only}", f"  {one_line(skill.description, 160)}", f"  {origin_words(skill.origin)}"]
    lines += ["", say("skills.tokens", count=len(found.found), tokens=catalogue_tokens(found.found))] if lines else [say("skills.none")]
    problems = (*setup.wrong_files, *map(str, found.problems), *trust_notices(setup.trust))
    return [*lines, *(f"! {problem}" for problem in one_for_each_file(problems))]


def catalogue_tokens(skills: Collection[Skill]) -> int:
    """About how many tokens their list takes."""
    facts = Surroundings("", "", (), skills=catalogue(tuple(skills)))
    return round(text_tokens(skills_in(environment_text(facts))))


def _show_skill(options: Options) -> str:
    name = options.words[1].removeprefix("/")
    setup = set_up(options)
    found = skills_of(setup)
    skill = found.named(name)
    if skill is None:
        require_trust(setup.trust)
        hint = did_you_mean(name, [each.name for each in found.found])
        raise InputError(say("skills.not_found", name=one_line(name, 60), hint=hint))
    try:
        text = load_skill(skill)
    except Unreadable as error:
        raise InputError(say("skills.problem", where=str(skill.origin), reason=str(error))) from error
    if options.output_format == "json":
        return _json({**_skill_json(skill), "text": text, "tokens": round(text_tokens(text))}, ())
    return f"{text}\n"


def _skill_json(skill: Skill) -> dict[str, Any]:
    return {
        "name": skill.name,
        "description": skill.description,
        "folder": skill.folder,
        "origin": _origin_json(skill.origin),
        "allowed_tools": list(skill.allowed_tools or ()),
        "disallowed_tools": list(skill.disallowed_tools),
        "for_model": skill.for_model,
        "for_user": skill.for_user,
    }


# --- plugins


def _list_plugins(options: Options) -> str:
    found = plugins_of(set_up(options))
    if options.output_format == "json":
        return _json({"plugins": [_plugin_json(plugin) for plugin in found.found]}, found.problems)
    lines: list[str] = []
    for plugin in found.found:
        brings = ", ".join(kind for kind in _KINDS if getattr(plugin, kind))
        head = " ".join(filter(None, (plugin.name, one_line(plugin.version, 40), f"[{plugin.format}]", brings)))
        about = [f"  {one_line(plugin.description, 160)}"] if plugin.description else []
        lines += [head, *about, f"  {origin_words(plugin.origin)}"]
    return "\n".join([*(lines or [say("skills.no_plugins")]), *(f"! {problem}" for problem in found.problems)]) + "\n"


def _plugin_json(plugin: Plugin) -> dict[str, Any]:
    parts = {kind: list(getattr(plugin, kind)) for kind in _KINDS}
    about = {"name": plugin.name, "version": plugin.version, "description": plugin.description, "format": plugin.format}
    return {**about, "path": plugin.path, "origin": _origin_json(plugin.origin), **parts, "excluded_tools": list(plugin.excluded_tools)}


# --- commands, in a conversation


def file_command_lines(setup: Setup, built_in: Collection[str]) -> list[str]:
    """Commands in files and skills, where each comes from, and which are not used because of their name."""
    commands = FileCommands(setup, built_in)
    rows = commands.rows
    lines = [say("skills.from_files")] if rows or commands.hidden else []
    for name, row in rows.items():
        about = " · ".join(filter(None, (row.hint, one_line(row.description, 100), origin_words(row.origin))))
        lines.append(f"  {name:12} {about}")
    lines += [f"  {say('skills.hidden', name=name, origin=origin_words(origin))}" for name, origin in commands.hidden.items()]
    return [*lines, *(f"! {notice}" for notice in commands.notices)]


def _origin_json(origin: Origin) -> dict[str, Any]:
    return {"program": origin.program, "tier": origin.tier, "path": origin.path, "line": origin.line}


def _json(value: dict[str, Any], problems: Collection[SourceProblem], notices: Collection[str] = ()) -> str:
    told: list[dict[str, Any]] = [{"origin": _origin_json(problem.origin), "reason": str(problem.reason)} for problem in problems]
    told += [{"origin": None, "reason": notice} for notice in notices]
    return jsontext.dumps({**value, "problems": told}) + "\n"


SKILLS_ACTIONS: dict[str, Action[Options]] = {
    "list": Action(_list_skills, options=("trust",)),
    "show": Action(_show_skill, "NAME", ("trust",)),
}
PLUGINS_ACTIONS: dict[str, Action[Options]] = {"list": Action(_list_plugins, options=("trust",))}
