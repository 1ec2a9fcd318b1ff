"""An agent that reads what it needs before it answers. With a key in the environment it asks that service; else a script plays the model.

python examples/04_agent.py "What does this folder hold?"
"""

import asyncio
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import dragoman as dm

KEYS = {"GEMINI_API_KEY": "gemini", "ANTHROPIC_API_KEY": "anthropic", "OPENAI_API_KEY": "openai"}
PLAYED = """
call: list_directory {"path": "."}
call: grep {"pattern": "harbour", "path": "."}
---
call: read_file {"file_path": "log.txt"}
---
text: A ship's log. On the third day the Halcyon reached the harbour of Muscat (log.txt:3).
"""


async def ask(prompt: str, folder: str) -> None:
    chosen = os.environ.get("DRAGOMAN_MODEL") or next((name for key, name in KEYS.items() if os.environ.get(key)), None)
    async with dm.testing.MockServer(PLAYED) as server:
        model = chosen or dm.connect("gemini", base_url=server.url, key="none needed")
        async with dm.coding_agent(model, workspace=folder) as agent, agent.run(prompt) as run:
            print(f"› {prompt}")
            async for event in run:
                if isinstance(event, dm.ToolCallRequested):
                    print(f"● {event.call.name} {event.call.arguments}")
            result = await run
            print(result.text)
            print(f"[{result.turns} turns, {result.tool_calls} calls, {result.usage.input_tokens} tokens in]")


def main() -> None:
    with TemporaryDirectory() as folder:
        Path(folder, "log.txt").write_text("Day 1: calm.\nDay 2: wind from the south.\nDay 3: the harbour of Muscat at last.\n")
        Path(folder, "crew.txt").write_text("The Halcyon: nine men and a cat.\n")
        asyncio.run(ask(" ".join(sys.argv[1:]) or "What is this, and where did they land?", folder))


if __name__ == "__main__":
    try:
        main()
    except dm.DragomanError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
