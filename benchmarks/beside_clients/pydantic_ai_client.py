"""pydantic-ai, as its pages show it. `pydantic_ai_client.py URL TURNS MODE`

MODE is `plain`, or `streamed`: with events, as ours always has.
"""

import asyncio
import sys

from measuring import NOTE, PROMPT, Meter
from pydantic_ai import Agent, AgentRunResultEvent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits


def read_note(number: int) -> str:
    """Read the note with this number."""
    return NOTE.format(number=number)


async def main(url: str, turns: int, mode: str) -> None:
    model = OpenAIChatModel("gpt-4.1", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="a-key"))
    agent = Agent(model, instructions="Read the notes.", tools=[read_note])
    limits = UsageLimits(request_limit=None)
    with Meter(turns) as meter:
        if mode == "plain":
            result = await agent.run(PROMPT, usage_limits=limits)
        else:
            async with agent.run_stream_events(PROMPT, usage_limits=limits) as events:
                async for event in events:
                    if isinstance(event, AgentRunResultEvent):
                        result = event.result
    meter.report(result.output, result.usage.tool_calls)


asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
