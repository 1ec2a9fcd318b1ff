"""An agent that works on code: with the built-in tools, their system prompt, and a description of the surroundings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, overload

import msgspec

from dragoman.loop.agent import Agent, Named
from dragoman.loop.options import tool_options
from dragoman.loop.tasks import give_tasks

if TYPE_CHECKING:
    from typing import Unpack

    from dragoman.loop.agent import Deps, U
    from dragoman.loop.agent_signature import AgentOptions


@overload
def coding_agent(model: Named, *, deps: Deps = ..., output: None = None, **options: Unpack[AgentOptions]) -> Agent[Deps, str]: ...
@overload
def coding_agent(model: Named, *, deps: Deps = ..., output: type[U], **options: Unpack[AgentOptions]) -> Agent[Deps, U]: ...
@overload
def coding_agent(
    model: Named, *, deps: Deps = ..., output: Callable[..., Awaitable[U]], **options: Unpack[AgentOptions]
) -> Agent[Deps, U]: ...
@overload
def coding_agent(model: Named, *, deps: Deps = ..., output: Callable[..., U], **options: Unpack[AgentOptions]) -> Agent[Deps, U]: ...
@overload
def coding_agent(model: Named, *, deps: Deps = ..., output: Any, **options: Unpack[AgentOptions]) -> Agent[Deps, Any]: ...
def coding_agent(model: Named, **options: Any) -> Agent[Any, Any]:
    """An agent as the program has it, with the same options as `Agent`.

        with coding_agent("gemini/gemini-3.8-flash") as agent:
            print(agent.run_sync("What does this repository do?").text)

    All built-in tools are there beside your own, and `task`, which calls subagents, unless `ToolOptions.builtin` names some. It works in
    the current folder, or the one given as `workspace`, and tells the model of it. Reads run; writes and commands are put before a person,
    and where nobody can be asked, they are refused and the model is told so.
    """
    tools = tool_options(options.pop("tools", ()))
    if not tools.builtin:
        tools = msgspec.structs.replace(tools, builtin=True)
    agent: Agent[Any, Any] = Agent(model, tools=tools, **options)
    if tools.builtin is True:
        give_tasks(agent._harness)
    return agent
