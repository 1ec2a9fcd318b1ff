"""Every piece of code in docs/embed/agents.md and docs/embed/chat.md runs as it stands, against a service on loopback."""

from __future__ import annotations

import asyncio
import builtins
import re
import shutil
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dragoman as dm
from dragoman.testing.mock.wire import ModelRequest
from dragoman.testing.script_steps import ScriptedAnswer, answer

DOCS = Path(__file__).resolve().parent.parent / "docs" / "embed"
BLOCKS = [
    (block, page)
    for page in ("agents.md", "chat.md", "sessions-in-sqlite.md", "services.md", "retries.md", "../inside/pruning.md")
    for block in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
]


def at_the_quay(request: ModelRequest) -> ScriptedAnswer:
    """What fits the type, where one is asked for."""
    asked = str({key: value for key, value in request.body.items() if key not in ("messages", "input", "contents")})
    if "depth_m" in asked:
        return answer('{"name": "Muscat", "depth_m": 13.5}')
    return answer('{"result": ["Muttrah"]}' if "'result'" in asked else "At the quay.")


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[dm.testing.MockServer]:
    """A service that answers every request, whatever its protocol, in a thread of its own."""
    loop, server = asyncio.new_event_loop(), dm.testing.MockServer(at_the_quay)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(60)
    for name in ("GEMINI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "key-for-tests")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    yield server
    asyncio.run_coroutine_threadsafe(server.aclose(), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(60)
    loop.close()


def run_block(code: str, page: str = "agents.md") -> dict[str, Any]:
    """Run a block as the body of a coroutine, with `model` and `seq` as the page uses them. Returns its names."""
    names: dict[str, Any] = {"dm": dm, "model": "anthropic/claude-sonnet-5-5", "seq": 1}
    body = f"async def block(model, seq):\n{textwrap.indent(code, '    ')}\n    return locals()"
    exec(compile(body, page, "exec", dont_inherit=True), names)

    async def go() -> dict[str, Any]:
        local = await names["block"](names["model"], names["seq"])
        for agent in (value for value in local.values() if isinstance(value, dm.Agent)):
            await agent.aclose()
        return local

    return asyncio.run(go())


@pytest.mark.parametrize("number", range(len(BLOCKS)), ids=lambda number: BLOCKS[number][0].strip().splitlines()[-1][:40])
def test_the_code_on_the_page_runs(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: dm.testing.MockServer) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(Path(__file__).parent / "mcp_servers" / "harbour_server.py", "harbour.py")
    monkeypatch.setattr(builtins, "input", lambda prompt: "y")
    with dm.Agent("gemini", session="sessions") as before:
        before.run_sync("A conversation to resume.")
    run_block(*BLOCKS[number])
    assert not [request.violation for request in service.requests if request.violation]
