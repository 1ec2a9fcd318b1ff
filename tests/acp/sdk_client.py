"""Drives an agent with the client of the official Python SDK, whichever version is found. Run by test_clients.py: `sdk_client.py COMMAND…`.

Prints what it saw as JSON. The SDK checks every message with its own models, and refuses what does not fit.
"""

import asyncio
import json
import os
import sys
from collections import Counter
from typing import Any

from acp.schema import AllowedOutcome, Implementation, RequestPermissionResponse, TextContentBlock
from acp.stdio import spawn_agent_process

from acp import PROTOCOL_VERSION


class Watcher:
    """Allows everything, and counts what it is told."""

    def __init__(self) -> None:
        self.told: Counter[str] = Counter()
        self.asked = 0
        self.has_text = asyncio.Event()

    async def request_permission(self, *given: Any, **named: Any) -> RequestPermissionResponse:
        self.asked += 1
        options = named.get("options") or given[0]
        first = next(each.option_id for each in options if each.kind == "allow_once")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=first))

    async def session_update(self, session_id: str, update: Any, **named: Any) -> None:
        self.told[update.session_update] += 1
        if update.session_update == "agent_message_chunk":
            self.has_text.set()

    def take(self) -> dict[str, int]:
        told, self.told = dict(self.told), Counter()
        return told

    def on_connect(self, connection: Any) -> None:
        pass


async def drive() -> None:
    watcher, seen = Watcher(), dict[str, Any]()
    async with spawn_agent_process(watcher, sys.argv[1], *sys.argv[2:], env=dict(os.environ)) as (agent, _):  # type: ignore[arg-type]
        hello = await agent.initialize(protocol_version=PROTOCOL_VERSION, client_info=Implementation(name="sdk", version="1"))
        seen["version"], seen["agent"] = hello.protocol_version, hello.agent_info.name if hello.agent_info else ""
        session = (await agent.new_session(cwd=os.getcwd(), mcp_servers=[])).session_id
        done = await agent.prompt(session_id=session, prompt=[TextContentBlock(type="text", text="go")])
        seen["stopped"], seen["asked"], seen["live"] = done.stop_reason, watcher.asked, watcher.take()
        await agent.set_session_mode(session_id=session, mode_id="plan")
        seen["sessions"] = len((await agent.list_sessions()).sessions)
        watcher.take()
        await agent.load_session(session_id=session, cwd=os.getcwd(), mcp_servers=[])
        seen["loaded"] = watcher.take()
        await agent.resume_session(session_id=session, cwd=os.getcwd(), mcp_servers=[])
        watcher.has_text.clear()
        asked = asyncio.ensure_future(agent.prompt(session_id=session, prompt=[TextContentBlock(type="text", text="wait")]))
        await watcher.has_text.wait()
        await agent.cancel(session_id=session)
        seen["cancelled"] = (await asked).stop_reason
        await agent.close_session(session_id=session)
    print(json.dumps(seen))


asyncio.run(drive())
