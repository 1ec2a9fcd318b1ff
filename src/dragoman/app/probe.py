"""Finds model servers on this machine: Ollama, llama.cpp, LM Studio, vLLM, and the user's own deployments on loopback.

All are asked for their list of models at once. Where nobody listens, the system refuses at once; a server that took the connection has
`ANSWER_S` for its answer, because it may share a busy machine with us. No key is sent and no host name is resolved: another program that
listens on such a port learns only that it was asked.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.base import jsontext
from dragoman.http.transport import HttpTransport

if TYPE_CHECKING:
    from dragoman.providers.catalog import Catalog
    from dragoman.values.profile import Deployment

ANSWER_S = 3.0
CONNECT_S = 0.15 if os.name == "nt" else ANSWER_S
"""Windows tries a refused connection again, for two seconds. Elsewhere a refusal comes at once, and only a busy server is waited for."""
MAX_BYTES = 1_000_000
MAX_NAME = 200
NOT_CHAT = ("embed", "rerank", "whisper", "-tts")
"""Parts of the names of models that cannot chat."""


class RunningServer(msgspec.Struct, frozen=True):
    """A server that answered."""

    deployment: str
    title: str
    where: str
    """host:port"""
    models: tuple[str, ...]
    """The models it lists, in its own order; never empty."""

    @property
    def model(self) -> str:
        """Its first model, in the form of -m."""
        return f"{self.deployment}/{self.models[0]}"


def find_servers(catalog: Catalog, env: Mapping[str, str]) -> tuple[RunningServer, ...]:
    """The servers that list at least one chat model, in the catalog's order."""
    deployments: dict[str, Deployment] = {}
    for deployment in catalog.deployments.values():
        if deployment.local and not deployment.in_process and (url := _loopback_url(deployment, env)):
            deployments.setdefault(url, deployment)
    if not deployments:
        return ()

    loop = asyncio.new_event_loop()
    try:
        found = loop.run_until_complete(_ask_all(list(deployments)))
    finally:
        loop.close()
    return tuple(
        RunningServer(deployment.name, deployment.title or deployment.name, url.partition("://")[2].partition("/")[0], models)
        for url, deployment in deployments.items()
        if (models := found.get(url))
    )


def _loopback_url(deployment: Deployment, env: Mapping[str, str]) -> str:
    """Its base URL if that is a loopback address or localhost, else an empty string."""
    url = next((env[name] for name in deployment.base_url_env if env.get(name, "").strip()), deployment.base_url).strip().rstrip("/")
    scheme, _, rest = url.partition("://")
    authority = rest.partition("/")[0]
    host = authority[1:].partition("]")[0] if authority.startswith("[") else authority.partition(":")[0]
    return url if scheme == "http" and (host in ("localhost", "::1") or _is_loopback(host)) else ""


def _is_loopback(host: str) -> bool:
    numbers = host.split(".")
    return len(numbers) == 4 and numbers[0] == "127" and all(number.isdecimal() for number in numbers)


async def _ask_all(urls: list[str]) -> dict[str, tuple[str, ...]]:
    transport = HttpTransport(proxy="", connect_timeout_s=CONNECT_S)
    tasks = {asyncio.ensure_future(_models_at(transport, url)): url for url in urls}
    done, late = await asyncio.wait(tasks, timeout=ANSWER_S)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    await transport.aclose()
    return {tasks[task]: task.result() for task in done if task.exception() is None}


async def _models_at(transport: Any, url: str) -> tuple[str, ...]:
    async with transport.send("GET", f"{url}/models", {"accept": "application/json"}, b"") as answer:
        if answer.status != 200:
            return ()
        body = bytearray()
        async for chunk in answer.chunks():
            body += chunk
            if len(body) > MAX_BYTES:
                return ()
    match jsontext.decode_object(body.decode(errors="replace")):
        case {"data": list(rows)}:
            names = [row.get("id") for row in rows if isinstance(row, dict)]
            return tuple(name for name in names if isinstance(name, str) and _is_chat_model(name))
        case _:
            return ()


def _is_chat_model(name: str) -> bool:
    is_valid = 0 < len(name) <= MAX_NAME and name.isprintable() and not name.isspace()
    return is_valid and not any(word in name.lower() for word in NOT_CHAT)
