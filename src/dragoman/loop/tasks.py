"""The tool `task`: a subagent does a part of the work, with its own context, its own session and a choice of the caller's tools.

A subagent is made like its caller (model, approvals, workspace, hooks, budgets) and differs from it as its `TaskAgent` says. What it may
do is decided inside, call by call, by the caller's approvals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.base.text import one_line
from dragoman.loop.configuring import read_prompt
from dragoman.loop.harness import Harness
from dragoman.tools.description import load_description
from dragoman.tools.results import error_output
from dragoman.tools.shell import RunShell
from dragoman.values.calls import Intent, Show, ToolOutput, run_at_work
from dragoman.values.errors import DragomanError
from dragoman.values.events import NoticeGiven
from dragoman.values.messages import ToolSpec
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.policy.agent_limits import AgentLimits

TASK = "task"
DEEPEST = 2
"""A subagent may have subagents; those have none."""
MAX_DESCRIPTION_CHARS = 1_000
MAX_TITLE_CHARS = 120
_FOR_PEOPLE = frozenset({"ask_user", "save_memory", "todo"})
"""Tools of the one who talks with the user. A subagent has them only where its definition names them."""


class TaskAgent(msgspec.Struct, frozen=True):
    """A kind of subagent: what it is for, and in what it differs from its caller."""

    name: str
    description: str
    """When to call it: for the model."""
    instructions: str = ""
    """Its system prompt; empty: the caller's."""
    tools: tuple[str, ...] | None = None
    """Those of the caller's tools that it has; None: all that are not for the one who talks with the user."""
    without: tuple[str, ...] = ()
    """Tools it does not have."""
    reads_only: bool = False
    """Of these, only those that read."""
    limits: AgentLimits | None = None
    """What else its file says it may not do."""
    max_turns: int = 0
    """After so many it ends with what it has; 0: as many as its caller."""
    timeout_s: float = 0.0
    """After so long it ends with what it has; 0: as long as it takes."""
    model: str = ""
    """Empty: the caller's."""
    may_inherit: bool = False
    """Whether the caller's model does where its own is not available."""
    origin: str = ""
    """Where it is defined, for the user; empty: built in."""


def builtin_agents() -> tuple[TaskAgent, ...]:
    explore = "Finds out where something is, how it works, what uses it. It has only tools that read."
    general = "Does a part of the work from beginning to end, with most of your tools."
    return (
        TaskAgent("explore", explore, read_prompt("explore.md"), reads_only=True),
        TaskAgent("general", general),
    )


def all_agents(defined: Sequence[TaskAgent]) -> tuple[TaskAgent, ...]:
    """The built-in ones and these; one that has a built-in one's name is in its place."""
    return tuple({agent.name: agent for agent in (*builtin_agents(), *defined)}.values())


def give_tasks(harness: Harness, agents: Sequence[TaskAgent] = ()) -> None:
    """Let an agent call subagents: the built-in ones and these. A tool of somebody else's that is called `task` stays."""
    if harness.limits.max_depth < 1 or TASK in harness.registry:
        return
    harness.registry.register(TaskTool(all_agents(agents)))
    harness.unchosen |= {TASK}


class TaskTool:
    """Whether a subagent's calls may run is decided inside, call by call, so nobody is asked about the whole."""

    decides_within = True
    runs_beside = True

    def __init__(self, agents: Sequence[TaskAgent]) -> None:
        self.agents = {agent.name: agent for agent in agents}
        listed = "\n".join(f"- {agent.name}: {one_line(agent.description, MAX_DESCRIPTION_CHARS)}" for agent in agents)
        self.spec = ToolSpec.of(
            TASK,
            f"{load_description(TASK)}\n\nAgents:\n{listed}",
            {
                "type": "object",
                "properties": {
                    "agent": {"type": "string", "enum": [*self.agents]},
                    "description": {"type": "string", "description": "What it does, in a few words, for the user."},
                    "prompt": {"type": "string", "description": "The task."},
                },
                "required": ["agent", "description", "prompt"],
            },
            display_name="Task",
        )

    def intend(self, args: Mapping[str, Any]) -> Intent:
        prompt = str(args.get("prompt", ""))
        about = one_line(str(args.get("description") or prompt), MAX_TITLE_CHARS)
        return Intent(f"{TASK} {args.get('agent', '')}: {about}", prompt)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        agent = self.agents[str(args["agent"])]
        outer: Any = run_at_work.get()()
        if outer is None:
            return error_output(f"{TASK} was not called: it works only within a run", "impossible")
        from dragoman.loop.subagents import EndsEarly, Template, run_subagent

        notices: list[str] = []
        ends = EndsEarly(agent.max_turns, agent.timeout_s, agent.origin) if agent.max_turns or agent.timeout_s else None
        template = Template(outer._harness, change=_changed_to(agent, notices.append), instructions=_instructions_for(agent), ends=ends)
        try:
            return await run_subagent(template, agent.name, str(args["prompt"]), on_made=lambda: _tell(outer, notices))
        except DragomanError as error:
            return error_output(f"{agent.name} was not called: {error}", "agent_failed")


def _instructions_for(agent: TaskAgent) -> str:
    ours = read_prompt("subagent.md")
    return (
        f"{ours}\n\nYou may answer {agent.max_turns} times at most, tool calls included: give your result in time."
        if agent.max_turns
        else ours
    )


def _tell(outer: Any, notices: Sequence[str]) -> None:
    for notice in notices:
        outer.tell(NoticeGiven("subagent", notice))


def _changed_to(agent: TaskAgent, notice: Callable[[str], None]) -> Callable[[Harness], None]:
    """Makes a copy of the caller the agent."""

    def change(inner: Harness) -> None:
        inner.depth_left = min(inner.depth_left, DEEPEST - 1)
        inner.name = agent.name
        if agent.instructions:
            inner.system = agent.instructions
        _keep_tools(inner, agent)
        _hold_limits(inner, agent)
        if agent.model:
            _use_model(inner, agent, notice)

    return change


def _limits_of(agent: TaskAgent) -> AgentLimits | None:
    if agent.limits is None and agent.tools is None and not agent.without:
        return None
    from dragoman.policy.agent_limits import AgentLimits

    by = f"the subagent {agent.name}" + (f" ({agent.origin})" if agent.origin else "")
    return msgspec.structs.replace(agent.limits or AgentLimits(by), by=by, tools=agent.tools, without=agent.without)


def _hold_limits(inner: Harness, agent: TaskAgent) -> None:
    """From here on each call is held against what its file says, also one of a tool that joins later."""
    if agent.max_turns:
        inner.limits = msgspec.structs.replace(inner.limits, max_turns=min(inner.limits.max_turns, agent.max_turns))
    if (limits := _limits_of(agent)) is None:
        return
    inner.approvals.tighten(limits.limit, limits.mode, asks=limits.asks)
    tool = inner.registry.get(TASK)
    if isinstance(tool, TaskTool) and not all(map(limits.may_call, tool.agents)):
        callable_ones = [each for each in tool.agents.values() if limits.may_call(each.name)]
        inner.registry.remove(TASK)
        if callable_ones:
            inner.registry.register(TaskTool(callable_ones))


def _keep_tools(inner: Harness, agent: TaskAgent) -> None:
    registry, limits = inner.registry, _limits_of(agent)
    for spec in registry.specs:
        is_there = limits is None or limits.has(spec.name)
        is_for_people = agent.tools is None and spec.name in _FOR_PEOPLE
        is_too_deep = spec.name == TASK and inner.depth_left < 1
        if not is_there or is_for_people or is_too_deep or (agent.reads_only and not spec.read_only):
            registry.remove(spec.name)
    if "run_shell" not in registry:
        registry.remove("shell_output")
    if "shell_output" not in registry and isinstance(shell := registry.get("run_shell"), RunShell):
        shell.leave_out_background()
        registry.register(shell, replace=True)


def _use_model(inner: Harness, agent: TaskAgent, notice: Callable[[str], None]) -> None:
    try:
        inner.session.model = inner.models.use(agent.model)
    except DragomanError as error:
        if not agent.may_inherit:
            raise
        used = inner.session.model.full_name
        notice(say("subagents.model_not_used", agent=agent.name, model=agent.model, used=used, reason=error))
