"""Expands what a prompt names of MCP servers: `@server:uri` is followed by that resource's content, `/mcp__server__prompt` becomes the text
of that prompt."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable

from dragoman.app.mcp import AgentServers
from dragoman.mcp_client.configured import ConfiguredServer
from dragoman.mcp_client.contracts import McpPrompt
from dragoman.mcp_client.naming import tool_name
from dragoman.mcp_client.results import Keep, part_of, resource_part
from dragoman.values.contracts import BlobStore
from dragoman.values.errors import DragomanError, InputError
from dragoman.values.messages import Attached, Content, Text
from dragoman.words import say

MENTION = re.compile(r"(?<![\w@])@([A-Za-z0-9_.-]{1,100}):(\S+)")
_ENDS = ".,;:!?)]}>'\""
MAX_MENTIONS = 20
MAX_RESOURCE_CHARS = 200_000


async def expand(servers: AgentServers, prompt: str, blobs: BlobStore, tell: Callable[[str], None]) -> str | list[Content]:
    """The prompt as the model gets it. Raises InputError if a server's prompt cannot be used; an unreadable resource is reported."""
    await servers.join_waiting()
    if prompt.startswith("/mcp__"):
        return await _expand_prompt(servers, prompt, blobs.put)
    found = list(dict.fromkeys((name, uri.rstrip(_ENDS)) for name, uri in MENTION.findall(prompt)))[:MAX_MENTIONS]
    by_name = {server.name: server for server in servers.usable}
    parts: list[Content] = [Text(prompt)]
    for name, uri in found:
        if name in by_name:
            parts += await _resource(servers, by_name[name], uri, blobs.put, tell)
    return prompt if len(parts) == 1 else parts


async def _resource(
    servers: AgentServers, server: ConfiguredServer, uri: str, keep: Keep, tell: Callable[[str], None]
) -> Iterable[Content]:
    try:
        contents = await servers.running(server).read(uri)
    except DragomanError as error:
        tell(say("mcp_servers.resource_failed", name=f"{server.name}:{uri}", reason=error))
        return ()
    about = Attached(f"@{server.name}:{uri}")
    parts: list[Content] = [Text(f"\n\nContent of @{server.name}:{uri}:\n", attached=about)]
    for each in contents:
        part = resource_part(each, keep)
        parts.append(Text(servers.hide(part.text[:MAX_RESOURCE_CHARS]), attached=about) if isinstance(part, Text) else part)
    return parts


async def _expand_prompt(servers: AgentServers, line: str, keep: Keep) -> str | list[Content]:
    name, _, rest = line[1:].partition(" ")
    server, prompt = _find(servers, name.strip())
    try:
        messages = await servers.running(server).prompt(prompt.name, _arguments(name, prompt, rest))
    except InputError:
        raise
    except DragomanError as error:
        raise InputError(str(error)) from error
    parts: list[Content] = []
    for message in messages:
        content = message.get("content")
        blocks = content if isinstance(content, list) else [content]
        made = [part_of(block, keep) for block in blocks if isinstance(block, dict)]
        parts += [Text(servers.hide(part.text)) if isinstance(part, Text) else part for part in made]
        parts.append(Text("\n\n"))
    texts = [part.text for part in parts if isinstance(part, Text)]
    return "".join(texts).strip() if len(texts) == len(parts) else parts


def _find(servers: AgentServers, name: str) -> tuple[ConfiguredServer, McpPrompt]:
    for server in servers.usable:
        known = servers.running(server).known
        for prompt in known.prompts if known is not None else ():
            if tool_name(server.name, prompt.name) == name:
                return server, prompt
    raise InputError(say("mcp_servers.no_such_prompt", name=name[:100]))


def prompt_names(servers: AgentServers) -> dict[str, str]:
    """`/mcp__server__prompt` → what it is for, as far as lists are known."""
    return {
        f"/{tool_name(server.name, prompt.name)}": prompt.description
        for server in servers.usable
        if (known := servers.lists.get(server)) is not None
        for prompt in known.prompts
    }


def _arguments(name: str, prompt: McpPrompt, rest: str) -> dict[str, str]:
    """The prompt's arguments: by name (`who=Ann`), or in order; the last one takes the rest of the line."""
    declared = [str(each.get("name", "")) for each in prompt.arguments]
    try:
        words = shlex.split(rest)
    except ValueError:
        words = rest.split()
    given: dict[str, str] = {}
    plain: list[str] = []
    for word in words:
        key, sign, value = word.partition("=")
        if sign and key in declared:
            given[key] = value
        else:
            plain.append(word)
    free = [each for each in declared if each not in given]
    if len(plain) > len(free) > 0:
        plain = [*plain[: len(free) - 1], " ".join(plain[len(free) - 1 :])]
    given |= dict(zip(free, plain, strict=False))
    missing = [str(each["name"]) for each in prompt.arguments if each.get("required") and each.get("name") not in given]
    if missing:
        raise InputError(say("mcp_servers.prompt_needs", name=name, missing=", ".join(missing)))
    return given
