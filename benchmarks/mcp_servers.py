"""The first call of an MCP server's tool: from the start of a process to the answer, ours beside the official SDK, with the same server."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.table import Table

SERVER = str(Path(__file__).resolve().parent.parent / "tests" / "mcp_servers" / "harbour_server.py")
OURS = """
import asyncio, sys
from dragoman.mcp_client.client import McpClient
from dragoman.mcp_client.contracts import StdioServer

async def main():
    client = McpClient(StdioServer(sys.executable, (sys.argv[1],)), era="legacy")
    try:
        result = await client.call_tool("tide", {"port": "Muscat"})
        assert "noon" in result.content[0]["text"]
        print("answered", flush=True)
    finally:
        await client.aclose()

asyncio.run(main())
"""
SDK = """
import asyncio, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    async with stdio_client(StdioServerParameters(command=sys.executable, args=[sys.argv[1]])) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            result = await session.call_tool("tide", {"port": "Muscat"})
            assert "noon" in result.content[0].text
            print("answered", flush=True)

asyncio.run(main())
"""
NOTHING = "import subprocess, sys; subprocess.run([sys.executable, sys.argv[1]], stdin=subprocess.DEVNULL); print('answered', flush=True)"


def run(quick: bool) -> list[Table]:
    cases = {"ours": OURS, "the official SDK": SDK, "the server alone, started and ended": NOTHING}
    taken: dict[str, list[tuple[float, float]]] = {case: [] for case in cases}
    for _ in range(3 if quick else 15):
        for case, code in cases.items():
            taken[case].append(measure(code))
    table = Table("The first call of an MCP server's tool", ["client", "ms to the answer", "ms CPU, server included"])
    table.rows = [[case, median(wall for wall, _ in each), median(cpu for _, cpu in each)] for case, each in taken.items()]
    table.notes = ["A fresh process starts a small server in Python, calls one tool and prints; the median of several."]
    return [table]


def measure(code: str) -> tuple[float, float]:
    """Milliseconds until it has its answer, and of CPU until all of it has ended."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code, SERVER], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"answered\n"
    wall_ms = (time.perf_counter() - began) * 1000
    process.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_ms, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000
