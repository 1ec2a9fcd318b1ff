"""Connects to a server, lets it start children, and waits to be killed: `death_worker.py launcher|watcher COMMAND`."""

import asyncio
import sys
from pathlib import Path

from dragoman.loop.commands import CommandStarter
from dragoman.mcp_client.client import McpClient
from dragoman.mcp_client.contracts import StdioServer

ODD = str(Path(__file__).with_name("odd_server.py"))


async def main(who: str, command: str) -> None:
    launch = CommandStarter(["/"], False) if who == "launcher" else None
    client = McpClient(StdioServer(sys.executable, ("-S", "-E", ODD, "starts-children", command)), launch=launch)
    await client.call_tool("say", {"text": command})
    print("ready", flush=True)
    await asyncio.sleep(1000)


asyncio.run(main(sys.argv[1], sys.argv[2]))
