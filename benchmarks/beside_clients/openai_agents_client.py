"""openai-agents, as its pages show it. `openai_agents_client.py URL TURNS MODE`

MODE is `plain`, or `streamed`: with events, as ours always has.
"""

import asyncio
import sys

from measuring import NOTE, PROMPT, Meter
from openai import AsyncOpenAI

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled


@function_tool
def read_note(number: int) -> str:
    """Read the note with this number."""
    return NOTE.format(number=number)


async def main(url: str, turns: int, mode: str) -> None:
    set_tracing_disabled(True)  # it would send them over the network
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="a-key")
    model = OpenAIChatCompletionsModel("gpt-4.1", openai_client=client)
    agent = Agent("reader", instructions="Read the notes.", tools=[read_note], model=model)
    with Meter(turns) as meter:
        if mode == "plain":
            result = await Runner.run(agent, PROMPT, max_turns=turns + 10)
        else:
            result = Runner.run_streamed(agent, PROMPT, max_turns=turns + 10)
            async for _ in result.stream_events():
                pass
    called = sum(item.type == "tool_call_output_item" for item in result.new_items)
    meter.report(result.final_output, called)


asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
