"""`dragoman agents`, and `/agents` in a conversation: which subagents there are, and where each is defined."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dragoman.app.notices import one_for_each_file
from dragoman.app.options import Options
from dragoman.app.setup import set_up
from dragoman.app.subagents import find_subagents
from dragoman.app.trust import trust_notices
from dragoman.base import jsontext
from dragoman.base.places import shorten_home
from dragoman.base.text import one_line
from dragoman.loop.tasks import TASK, TaskAgent, TaskTool, all_agents
from dragoman.values.errors import InputError
from dragoman.words import lookup, say

if TYPE_CHECKING:
    from dragoman.loop.agent import Agent

_DESCRIPTION_CHARS = 200


def run_agents(options: Options) -> str:
    if (action := options.words[0] if options.words else "list") != "list":
        raise InputError(say("unknown_action", name=one_line(action, 60), command="agents", hint="", known="list"))
    if len(options.words) > 1:
        raise InputError(say("too_many_words", command="agents list", word=one_line(options.words[1], 60)))
    setup = set_up(options)
    found, notices = find_subagents(setup, setup.config.model.partition("/")[0])
    notices = one_for_each_file((*setup.wrong_files, *notices, *trust_notices(setup.trust)))
    agents = all_agents(found)
    if options.output_format == "json":
        return jsontext.dumps({"agents": [_as_json(agent) for agent in agents], "notices": list(notices)}) + "\n"
    return "\n".join([*lines_of(agents), *(say("notice", text=notice) for notice in notices)]) + "\n"


def for_conversation(agent: Agent) -> list[str]:
    """The subagents the model can call now, for `/agents`."""
    tool = agent.tools.get(TASK)
    return lines_of(tool.agents.values()) if isinstance(tool, TaskTool) else [say("subagents.none_here")]


def lines_of(agents: Iterable[TaskAgent]) -> list[str]:
    lines: list[str] = []
    for agent in agents:
        facts = [_tools_words(agent), *_limits_words(agent), agent.model, shorten_home(agent.origin) or say("subagents.builtin")]
        ours = f"subagents.about_{agent.name}"
        about = agent.description if agent.origin or lookup(ours) is None else say(ours)
        lines.append(f"  {agent.name}  {one_line(about, _DESCRIPTION_CHARS)}")
        lines.append(f"    {one_line(' · '.join(filter(None, facts)))}")
    return lines


def _tools_words(agent: TaskAgent) -> str:
    if agent.reads_only:
        return say("subagents.reading_tools")
    if agent.tools is None:
        without = f" − {', '.join(agent.without)}" if agent.without else ""
        return say("subagents.all_tools") + without
    return ", ".join(name for name in agent.tools if name not in agent.without) or say("subagents.no_tools")


def _limits_words(agent: TaskAgent) -> list[str]:
    """What its file says beside its tools, in a few words."""
    words = [say("subagents.turns", turns=agent.max_turns)] if agent.max_turns else []
    words += [say("subagents.minutes", minutes=f"{agent.timeout_s / 60:g}")] if agent.timeout_s else []
    limits = agent.limits
    if limits is None:
        return words
    words += [say("subagents.only_reads")] if limits.reads_only else []
    words += [say("subagents.in_mode", mode=limits.mode)] if limits.mode else []
    words += [say("subagents.never_asks")] if not limits.asks else []
    parts = [*limits.patterns, *(f"− {each}" for each in limits.refused)]
    parts += [f"{action} {resource}: {effect}" for each in limits.permissions for action, resource, effect in each]
    return [*words, *parts]


def _as_json(agent: TaskAgent) -> dict[str, Any]:
    return {
        "name": agent.name,
        "description": agent.description,
        "tools": None if agent.tools is None else list(agent.tools),
        "without": list(agent.without),
        "reads_only": agent.reads_only,
        "limits": _limits_words(agent),
        "model": agent.model or None,
        "origin": agent.origin or None,
    }
