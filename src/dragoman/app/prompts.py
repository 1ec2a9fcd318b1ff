"""A prompt with what it names: images and files with `@`, resources and prompts of MCP servers."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.loop.agent import Agent
from dragoman.values.messages import Blob, Content, FileRef


async def expand_prompt(agent: Agent, prompt: str | None, tell: Callable[[str], None]) -> str | list[Content] | None:
    """The prompt, with the images and files that it names, and with resources and prompts of MCP servers."""
    if prompt is None:
        return None
    media = _named_media(agent, prompt, tell) if "@" in prompt else []
    servers = agent.beside.get("mcp")
    if servers is None or not servers.names_something(prompt):
        return [prompt, *media] if media else prompt
    from dragoman.app.mcp_prompts import expand

    told = await expand(servers, prompt, agent.blobs, tell)
    return [*([told] if isinstance(told, str) else told), *media] if media else told


def _named_media(agent: Agent, prompt: str, tell: Callable[[str], None]) -> list[Blob | FileRef]:
    from dragoman.app.prompt_media import read_named_media

    media, problems = read_named_media(prompt, str(agent.workspace.root), agent.provider, agent.model)
    for problem in problems:
        tell(problem)
    return media
