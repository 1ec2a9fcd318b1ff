"""Agents together: one is a tool of another, and a tool hands the conversation over.

python examples/09_together.py
"""

import asyncio
import os

import dragoman as dm
from dragoman.events import HandedOver, SubagentEvent


@dm.tool(read_only=True)
def look_up(harbour: str) -> str:
    """The times of high water in a harbour."""
    return "04:05, 16:30"


def play(script: str) -> str | dm.Provider:
    """The model that is named; without one the script plays it: no key, no server."""
    return os.environ.get("DRAGOMAN_MODEL") or dm.testing.ScriptedProvider(script)


async def main() -> None:
    researcher = dm.Agent(
        play('call: look_up {"harbour": "Muscat"}\n---\ntext: High water is at 04:05.'), system="You look things up.", tools=[look_up]
    )
    purser = dm.Agent(play("text: A sail costs 12 crowns."), name="purser", system="You keep the accounts.")

    @dm.tool
    def to_purser() -> dm.Agent:
        """Hand over to the purser, who knows what things cost."""
        return purser

    captain = dm.Agent(
        play('call: research {"prompt": "When is high water in Muscat?"}\n---\ntext: We sail at four.\n---\ncall: to_purser {}'),
        system="You are the captain.",
        tools=[researcher.as_tool("research", "Look something up and report."), to_purser],
    )

    run = captain.run("When do we sail?")
    async for event in run:
        match event:
            case SubagentEvent(name=name, event=dm.ToolCallRequested(call=call)):
                print(f"{name}: {call.name} {call.arguments}")
            case SubagentEvent(name=name, event=dm.TextDelta(text=text)):
                print(f"{name}: {text}")
            case _:
                pass
    print(run.result.text)
    print(f"[{run.result.usage.total_tokens} tokens, {run.result.requests} requests, the researcher's included]")

    run = captain.run("And what does a new sail cost?")
    async for event in run:
        if isinstance(event, HandedOver):
            print(f"[handed over to the {event.name}]")
    print(f"{run.result.agent}: {run.result.text}")

    for agent in (captain, researcher, purser):
        await agent.aclose()


if __name__ == "__main__":
    asyncio.run(main())
