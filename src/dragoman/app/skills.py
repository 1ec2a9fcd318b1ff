"""The program's skills: found in the folders of every program, listed for the model, activated by it or by the user."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from weakref import ref

import msgspec

from dragoman.app.extensions import folders_of
from dragoman.app.plugins import plugins_of
from dragoman.app.setup import Setup
from dragoman.base.beneath import is_inside
from dragoman.base.text import one_line
from dragoman.extensions.commands import FileCommand
from dragoman.extensions.files import Unreadable, read_text
from dragoman.extensions.skill_tool import ActivateSkill
from dragoman.extensions.skills import FoundSkills, Skill, catalogue, find_skills, load_skill
from dragoman.extensions.templates import FilePart, Part, fill_in, split_markdown
from dragoman.foreign.gemini_rules import GEMINI_TOOLS, excluded_tool
from dragoman.foreign.gemini_settings import missing_tools
from dragoman.loop.agent import Agent
from dragoman.loop.handle import RunHandle, callers_of
from dragoman.policy.allowed_tools import AllowedTools
from dragoman.policy.approvals import Limit
from dragoman.policy.judge import Law, MustAsk
from dragoman.values.calls import Deny, Intent, run_at_work
from dragoman.values.errors import InputError
from dragoman.values.messages import ToolSpec
from dragoman.values.notes import ACTIVATE_SKILL
from dragoman.words import say

MAX_NOTICES = 5
MAX_MEMORY_BYTES = 100_000


def offer_skills(agent: Agent, setup: Setup) -> list[str]:
    """Tell the model of the skills there are, and give it the tool. Returns notices about files that could not be read."""
    found = skills_of(setup)
    rows = catalogue(found.found)
    agent.offer_skills(rows)
    if rows or _were_told(agent):
        known = {skill.name: skill for skill in found.found}
        if ACTIVATE_SKILL not in agent.tools:
            agent.tools.register(ActivateSkill(lambda: known, lambda skill: _activate_for_model(agent, setup, skill)))
        _open_again(agent, known)
    return notices_of(found.problems)


def skills_of(setup: Setup) -> FoundSkills:
    plugins = plugins_of(setup)
    found = find_skills(folders_of(setup), plugins.found)
    return FoundSkills(found.found, (*plugins.problems, *found.problems))


def command_notices(setup: Setup) -> list[str]:
    """About files of commands that cannot be used."""
    from dragoman.extensions.commands import find_commands

    return notices_of(find_commands(folders_of(setup)).problems)


def memory_of_plugins(setup: Setup) -> list[tuple[str, str]]:
    """Path and text of the context files of extensions. A file that cannot be read is left out."""
    found: list[tuple[str, str]] = []
    for plugin in plugins_of(setup).found:
        for place in plugin.search_folders("memory"):
            with suppress(Unreadable):
                found.append((place.path, read_text(place, place.path, MAX_MEMORY_BYTES)))
    return found


def excluded_tools(setup: Setup) -> list[str]:
    """Our names of the tools that settings and extensions of gemini-cli take away. Of a tool for which they name commands, rules refuse
    those (foreign/rules.py)."""
    names = [excluded_tool(written) for plugin in plugins_of(setup).found for written in plugin.excluded_tools]
    gone = missing_tools(folders_of(setup)) if setup.config.other_rules.gemini else []
    return [*gone, *(GEMINI_TOOLS.get(name, name) for name in names if name)]


def notices_of(problems: Any) -> list[str]:
    """One notice per file, up to a limit, and how many more there are."""
    told = [str(problem) for problem in problems[:MAX_NOTICES]]
    return [*told, say("skills.more_problems", count=len(problems) - MAX_NOTICES)] if len(problems) > MAX_NOTICES else told


def _were_told(agent: Agent) -> bool:
    """Whether a resumed conversation has the tool: it stays, so that the tools are those that the cached prefix has."""
    return any(spec.name == ACTIVATE_SKILL for spec in agent.history.view.tools)


def _open_again(agent: Agent, known: Mapping[str, Skill]) -> None:
    """In a resumed conversation the files of skills that were activated can be read again."""
    for message in agent.history.view.messages:
        for call in message.calls if message.role == "assistant" else ():
            skill = known.get(str((call.args or {}).get("name"))) if call.name == ACTIVATE_SKILL else None
            if skill is not None:
                _let_read(agent, skill)


def _activate_for_model(agent: Agent, setup: Setup, skill: Skill) -> str:
    """Returns why it cannot be; empty: it is."""
    try:
        limits = limits_of(agent, setup, skill)
    except InputError as error:
        return str(error)
    activate(agent, skill, limits, run_at_work.get()())
    return ""


def limits_of(agent: Agent, setup: Setup, found: Skill | FileCommand) -> list[Limit]:
    """What a skill or a command says that its run may not do, or not unasked. Raises InputError where its agent is not there."""
    by = say("policy.by_skill", name=found.name) if isinstance(found, Skill) else say("policy.by_command", name=found.name)
    says = found.allowed_tools is not None or found.disallowed_tools
    own = [AllowedTools(found.allowed_tools, by, found.disallowed_tools).limit] if says else []
    return [*own, *_limits_of_agent(agent, setup, found.agent)]


def activate(agent: Agent, skill: Skill, limits: Sequence[Limit], run: Any) -> None:
    """Its files can be read from now on; what it says of tools holds in this run."""
    _let_read(agent, skill)
    narrow(agent, limits, run)


def _let_read(agent: Agent, skill: Skill) -> None:
    """Unless its folder is, by a link, one in which everything of the user's lies."""
    if not is_inside(os.path.realpath(os.path.expanduser("~")), os.path.realpath(skill.folder)):
        agent.let_read(skill.folder)


def skill_parts(skill: Skill, arguments: str) -> list[Part]:
    """What the model is told when the user activates one: text, and commands that are run first (`` !`git diff` ``). Files that it names
    stay names, for the model reads them when it needs them. Raises InputError."""
    try:
        text = load_skill(skill)
    except Unreadable as error:
        raise InputError(say("skills.problem", where=str(skill.origin), reason=str(error))) from error
    if arguments:
        parts = fill_in(text, "markdown", arguments, names=skill.argument_names)
    else:  # what looks like a place for one may be a line of a script
        has_place = "$ARGUMENTS" in text
        parts = [*split_markdown(text.replace("$ARGUMENTS", "")), "" if has_place else f"\n\nDo what the skill {skill.name} says."]
    return [part.written if isinstance(part, FilePart) else part for part in parts]


# --- allowed-tools, disallowed-tools


class Narrowing:
    """What the runs of an agent may not do unasked, each run by itself: a skill or a command holds for the run in which it is used."""

    def __init__(self) -> None:
        self._held: list[tuple[ref[Any], Limit]] = []
        self._before_runs: list[Limit] = []

    def hold(self, limit: Limit, run: Any) -> None:
        self._held = [(held, each) for held, each in self._held if held() is not None]
        self._held.append((ref(run), limit))

    @contextmanager
    def holding(self, limits: Sequence[Limit]) -> Iterator[None]:
        """For calls that are made before a run begins: the commands and files in a prompt."""
        self._before_runs += limits
        try:
            yield
        finally:
            for limit in limits:
                self._before_runs.remove(limit)

    def __call__(self, spec: ToolSpec, intent: Intent, law: Law) -> Deny | MustAsk | None:
        run = run_at_work.get()()
        held = [limit for held, limit in self._held if any(held() is each for each in _runs_around(run))] if run is not None else []
        limits = [limit(spec, intent, law) for limit in (held if run is not None else self._before_runs)]
        return next((each for each in limits if isinstance(each, Deny)), next(filter(None, limits), None))


def _runs_around(run: Any) -> list[Any]:
    """The run at work, and those that it works for: a subagent may do no more than its caller."""
    return [run, *callers_of(run)] if isinstance(run, RunHandle) else [run]


def narrowing_of(agent: Agent) -> Narrowing:
    if not isinstance(agent.approvals.narrowed, Narrowing):
        agent.approvals.narrowed = Narrowing()
    return agent.approvals.narrowed


def narrow(agent: Agent, limits: Sequence[Limit], run: Any) -> None:
    """Have this asked about or refused, in this run."""
    for limit in limits if run is not None else ():
        narrowing_of(agent).hold(limit, run)


_FREE = frozenset({"", "build", "general", "general-purpose"})
_READING = frozenset({"plan", "explore"})
"""Agents of other programs that every command may name."""


def _limits_of_agent(agent: Agent, setup: Setup, name: str) -> Sequence[Limit]:
    """What the agent may not do that a command or a skill wants to be run by. Raises InputError where there is none."""
    if name.lower() in _FREE:
        return ()
    from dragoman.app.subagents import find_subagents
    from dragoman.policy.agent_limits import AgentLimits, in_mode

    by = say("policy.by_agent", name=name)
    if name.lower() in _READING:
        return (in_mode(AgentLimits(by, reads_only=True)),)
    found = next((each for each in find_subagents(setup, agent.provider.name)[0] if each.name == name), None)
    if found is None:
        raise InputError(say("skills.no_agent", name=one_line(name, 60)))
    return (in_mode(msgspec.structs.replace(found.limits or AgentLimits(by), by=by, tools=found.tools, without=found.without)),)
