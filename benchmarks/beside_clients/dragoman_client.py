"""Dragoman, as a program would use it. `dragoman_client.py URL TURNS MODE`; MODE is `plain`, or `saved`: with a session in a folder."""

import asyncio
import sys
import tempfile

from measuring import NOTE, PROMPT, Meter

import dragoman as dm


@dm.tool(read_only=True)
def read_note(number: int) -> str:
    """Read the note with this number."""
    return NOTE.format(number=number)


async def main(url: str, turns: int, mode: str) -> None:
    model = dm.connect("openai/gpt-4.1", key="a-key", base_url=f"{url}/v1", env={})
    with tempfile.TemporaryDirectory() as folder:
        agent = dm.Agent(
            model,
            system="Read the notes.",
            tools=dm.ToolOptions([read_note], builtin=False),
            workspace=dm.WorkspaceOptions(folder, describe=False),
            session=folder if mode == "saved" else None,
            limits=dm.Limits(max_turns=turns + 10),
        )
        async with agent:
            with Meter(turns) as meter:
                result = await agent.run(PROMPT)
        meter.report(result.text, result.tool_calls)
    await model.aclose()


asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
