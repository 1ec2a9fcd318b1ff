"""What is measured in a process of its own: nothing else holds memory, files or tasks there.

python driver.py conversations URL COUNT TURNS FOLDER
python driver.py crammed URL AGENTS FILES shared|own
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from typing import Any

import dragoman as dm
from agents import make_agent
from many.crowd import connected


@dm.tool(read_only=True)
def look_up(name: str) -> str:
    """Look something up."""
    return f"{name} " * 500


async def converse(url: str, count: int, turns: int, folder: str) -> dict[str, Any]:
    """So many conversations, five at a time, each kept on disk, with a tool in every second turn, and closed after use."""
    connection = connected(url)
    samples: list[dict[str, int]] = []

    async def hold(number: int) -> None:
        async with make_agent(connection, tools=[look_up], workspace=folder, sessions=f"{folder}/sessions") as agent:
            for turn in range(turns):
                name = f"c{number}t{turn}"
                result = await agent.run(f"{name} {json.dumps({'calls': turn % 2 == 1})}")
                assert result.text == f"answer to {name}", result

    for start in range(0, count, 5):
        await asyncio.gather(*(hold(number) for number in range(start, min(start + 5, count))))
        samples.append(sample())
    await connection.aclose()
    return {"samples": samples}


def sample() -> dict[str, int]:
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[1])
    return {
        "memory_kb": pages * os.sysconf("SC_PAGE_SIZE") // 1024,
        "objects": len(gc.get_objects()),
        "files": len(os.listdir("/proc/self/fd")),
        "tasks": len(asyncio.all_tasks()),
    }


async def cram(url: str, agents: int, files: int, connections: str) -> dict[str, Any]:
    """More agents at once than this process may have files open."""
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    shared = connected(url)

    async def ask(number: int) -> str:
        connection = shared if connections == "shared" else connected(url)
        agent = make_agent(connection, builtin=False, describe=False)
        try:
            result = await agent.run(f"q{number} {json.dumps({'wait_s': 0.05})}")
            return "" if result.text == f"answer to q{number}" else f"crossed: {result.text}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    faults = [fault for fault in await asyncio.gather(*map(ask, range(agents))) if fault]
    return {"faults": faults}


def main() -> None:
    match sys.argv[1:]:
        case ["conversations", url, count, turns, folder]:
            seen = asyncio.run(converse(url, int(count), int(turns), folder))
        case ["crammed", url, agents, files, connections]:
            seen = asyncio.run(cram(url, int(agents), int(files), connections))
        case _:
            raise SystemExit(__doc__)
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
