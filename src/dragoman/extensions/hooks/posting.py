"""Hooks that are an address: the input of an event is posted to it, and what it answers is read as what a command prints."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping

from dragoman.base import jsontext
from dragoman.extensions.hooks.answers import HookEnd
from dragoman.extensions.hooks.definitions import Hook
from dragoman.extensions.hooks.running import MAX_OUTPUT_BYTES, Posted
from dragoman.http.clients import open_transport
from dragoman.values.contracts import Transport
from dragoman.values.errors import DragomanError
from dragoman.words import say

_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)", re.ASCII)


async def post_input(hook: Hook, body: bytes, headers: Mapping[str, str], open_client: Callable[[], Transport] = open_transport) -> Posted:
    """Never raises but for a cancel. A status cannot refuse anything, only what is answered can; redirects are not followed."""
    sent = {"content-type": "application/json", "accept": "application/json", **headers}
    client = open_client()
    try:
        async with asyncio.timeout(hook.timeout_s), client.send("POST", hook.url, sent, body) as response:
            if not 200 <= response.status < 300:
                return None, say("hooks.bad_status", status=response.status)
            answered, is_cut = await _read(response.chunks())
    except TimeoutError:
        return HookEnd(1, timed_out=True), ""
    except (DragomanError, OSError, ValueError) as error:
        return None, say("hooks.not_reached", reason=error)
    finally:
        await client.aclose()
    if answered.strip() and not is_cut and jsontext.decode_object(answered.decode("utf-8", "replace")) is None:
        return None, say("hooks.not_an_object")
    return HookEnd(0, answered, is_cut=is_cut), ""


async def _read(chunks: AsyncIterator[bytes]) -> tuple[bytes, bool]:
    """The beginning, and whether there was more."""
    parts: list[bytes] = []
    room = MAX_OUTPUT_BYTES
    async for chunk in chunks:
        if len(chunk) > room:
            return b"".join([*parts, chunk[:room]]), True
        parts.append(chunk)
        room -= len(chunk)
    return b"".join(parts), False


def fill_headers(hook: Hook, env: Mapping[str, str], secret: Collection[str]) -> dict[str, str]:
    """With the values of the variables that the hook names, and none of other variables. `secret` ones are not for a project's hooks."""
    allowed = {name for name in hook.env_vars if not (hook.project and name in secret)}

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return re.sub(r"[\r\n\0]", "", env.get(name, "")) if name in allowed else ""

    return {name: _VARIABLE.sub(value, text) for name, text in hook.headers}
