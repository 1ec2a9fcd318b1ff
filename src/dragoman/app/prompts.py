"""A prompt with what it names: images and files with `@`, resources and prompts of MCP servers. The same for every front end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dragoman.loop.agent import Agent
from dragoman.values.errors import InputError
from dragoman.values.messages import Blob, Content
from dragoman.words import say

Tell = Callable[[str], None]


def names_something(agent: Agent, prompt: str) -> bool:
    """Whether there may be something to expand, or servers join before it."""
    servers: Any = agent.beside.get("mcp")
    return "@" in prompt or (servers is not None and servers.names_something(prompt))


async def expand_prompt(
    agent: Agent,
    prompt: str,
    tell: Tell,
    *,
    given: str | None = None,
    must_all: bool = False,
    on_attached: Tell = lambda text: None,
    media: Sequence[Blob] = (),
) -> str | Sequence[Content]:
    """The prompt, with the images and files that it names, and with resources and prompts of MCP servers.

    `tell`: what is told of names that cannot be read or sent. With `must_all` InputError is raised for them: where nobody can mend it, a
    prompt that is sent in part is no use. `given`: the part of the prompt that the user wrote; what came in by a pipe names no files.
    `on_attached`: what is told of each that is attached. `media` came through standard input; InputError is raised if it cannot be sent."""
    for medium in media:
        if fault := agent.provider.media_fault(medium, agent.model):
            raise InputError(say("media_not_sent", name=say("stdin_name"), reason=fault))
    named = [*await _named(agent, prompt if given is None else given, tell, on_attached, must_all=must_all), *media]
    servers: Any = agent.beside.get("mcp")
    if servers is None or not servers.names_something(prompt):
        return [prompt, *named] if named else prompt
    from dragoman.app.mcp_prompts import expand

    told = await expand(servers, prompt, agent.blobs, tell)
    return [*([told] if isinstance(told, str) else told), *named] if named else told


async def _named(agent: Agent, text: str, tell: Tell, on_attached: Tell, *, must_all: bool) -> Sequence[Content]:
    if "@" not in text:
        return ()
    from dragoman.app.prompt_files import attach

    found = await attach(agent, text)
    if found.problems and must_all:
        raise InputError("; ".join(found.problems))
    for each in (*found.problems, *found.notices):
        tell(each)
    for each in found.attached:
        on_attached(each)
    if must_all:  # nobody is shown what is attached: whoever gets the answer should know that it is about a part
        for each in found.shortened:
            tell(each)
    return found.parts
