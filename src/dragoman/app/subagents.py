"""The subagents of the program: the built-in ones and those that the user and the project define, also for other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.app.extensions import folders_of
from dragoman.app.plugins import plugins_of
from dragoman.app.setup import Setup, catalog_of
from dragoman.base.plugins import is_module_name
from dragoman.extensions.agent_limits import FileLimits
from dragoman.extensions.agents import AgentDefinition, find_agents
from dragoman.foreign.model_names import find_named
from dragoman.loop.tasks import TaskAgent
from dragoman.values.errors import ConfigError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.policy.agent_limits import AgentLimits
    from dragoman.providers.catalog import Catalog

_CALLERS = frozenset({"", "inherit", "default", "auto"})
"""How files say that it has its caller's model."""
_FAMILIES = ("opus", "sonnet", "haiku")
"""How Claude Code names models."""


def find_subagents(setup: Setup, service: str) -> tuple[tuple[TaskAgent, ...], tuple[str, ...]]:
    """The subagents that are defined, and what the user should know about their files. `service`: the conversation's deployment."""
    found = find_agents(folders_of(setup), plugins_of(setup).found)
    agents: list[TaskAgent] = []
    notices = list(found.notices)
    for each in found.agents:
        if is_module_name(each.model.partition("/")[0]):
            notices.append(say("subagents.wrong_file", where=str(each.origin), reason=say("subagents.model_is_code", model=each.model)))
            continue
        agents.append(_agent_of(each, _model_of(each, service, catalog_of(setup))))
    return tuple(agents), tuple(notices)


def _agent_of(found: AgentDefinition, model: str) -> TaskAgent:
    says = found.limits
    return TaskAgent(
        found.name,
        found.description,
        found.instructions,
        says.tools,
        says.without,
        limits=limits_of(found),
        max_turns=says.max_turns,
        timeout_s=says.timeout_s,
        model=model,
        may_inherit=found.origin.program != "dragoman",
        origin=str(found.origin),
    )


def limits_of(found: AgentDefinition) -> AgentLimits | None:
    """What its file says it may not do, beside the tools that it does not have; None: nothing."""
    names = ("patterns", "refused", "agents", "permissions", "reads_only", "mode", "asks")
    said = {name: getattr(found.limits, name) for name in names}
    if all(said[name] == getattr(FileLimits(), name) for name in names):
        return None
    from dragoman.policy.agent_limits import AgentLimits

    return AgentLimits(str(found.origin), **said)


def _model_of(found: AgentDefinition, service: str, catalog: Catalog) -> str:
    """The model as we name it. Names of one family are taken from the service in use, if it has them; else the caller's model does."""
    name = found.model
    if name.lower() in _CALLERS:
        return ""
    if name.lower() in _FAMILIES and (deployment := catalog.deployments.get(service)) is not None:
        of_family = [model for model in deployment.models if name.lower() in model]
        return f"{service}/{max(of_family)}" if of_family else ""
    if name.lower() in _FAMILIES:
        return ""
    try:
        deployment, model = find_named(catalog, name, service)
    except ConfigError:
        return name  # told where it is called
    return f"{deployment.name}/{model}"
