"""A provider of your own: write how it streams, and it works wherever a provider does.

This one answers without any model. It is then wrapped like any other: tried again when it fails, and logged.

    python examples/03_own_provider.py
"""

import asyncio
import logging
from collections.abc import AsyncGenerator

import dragoman as dm


class Echo(dm.Provider):
    """Says back what it was told; every other time it is too busy."""

    def __init__(self) -> None:
        self.asked = 0

    @property
    def name(self) -> str:
        return "echo"

    def profile(self, model: str) -> dm.Profile:
        return dm.Profile(context_window=1_000, max_output_tokens=100)

    def prepare(self, request: dm.Request) -> dm.contracts.HttpRequest:
        return dm.contracts.HttpRequest("SAY", "echo://", {}, request.messages[-1].text.encode())

    async def stream(self, request: dm.Request) -> AsyncGenerator[dm.StreamEvent, None]:
        self.asked += 1
        if self.asked % 2:
            raise dm.errors.Overloaded("busy", provider=self.name, retry_after_s=0.01)
        text = request.messages[-1].text
        yield dm.ResponseStarted()
        for word in text.split():
            yield dm.TextDelta(f"{word} ")
        usage = dm.Usage(fresh_tokens=len(text) // 4, output_tokens=len(text) // 4)
        yield dm.ResponseFinished(dm.FinishReason.STOP, dm.Response(dm.assistant(text), dm.FinishReason.STOP, usage=usage))


async def main() -> None:
    provider: dm.Provider = dm.Logged(dm.Retry(Echo()))
    async for event in provider.stream(dm.build_request("loud", "Is anybody there?")):
        match event:
            case dm.Retrying(attempt=attempt, reason=reason):
                print(f"[attempt {attempt} failed: {reason}]")
            case dm.TextDelta(text=text):
                print(text, end="")
            case dm.ResponseFinished(reason=reason):
                print(f"[{reason}]")
            case _:
                pass
    async with dm.Agent(provider) as agent:
        print((await agent.run("And as an agent?")).text)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    asyncio.run(main())
