"""A provider of your own: whatever keeps the promises of `dragoman.Provider` works wherever a provider does.

This one answers without any model. It is then wrapped like any other: tried again when it fails, and logged.

    python examples/03_own_provider.py
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence

import dragoman as dm


class Echo:
    """Says back what it was told; every other time it is too busy."""

    name = "echo"

    def __init__(self) -> None:
        self.asked = 0

    def profile(self, model: str) -> dm.Profile:
        return dm.Profile(context_window=1_000, max_output_tokens=100)

    def prepare(self, request: dm.Request) -> dm.Prepared:
        return dm.Prepared("SAY", "echo://", {}, request.messages[-1].text.encode())

    async def stream(self, request: dm.Request) -> AsyncGenerator[dm.StreamEvent, None]:
        self.asked += 1
        if self.asked % 2:
            raise dm.Overloaded("busy", provider=self.name, retry_after_s=0.01)
        text = request.messages[-1].text
        yield dm.ResponseStarted()
        for word in text.split():
            yield dm.TextDelta(f"{word} ")
        message = dm.assistant(text)
        response = dm.Response(message, dm.FinishReason.STOP, usage=dm.Usage(fresh_tokens=len(text) // 4, output_tokens=len(text) // 4))
        yield dm.ResponseFinished(dm.FinishReason.STOP, response)

    async def generate(self, request: dm.Request) -> dm.Response:
        async for event in self.stream(request):
            if isinstance(event, dm.ResponseFinished):
                return event.response
        raise dm.StreamBroken("no end", provider=self.name)

    async def count_tokens(self, request: dm.Request) -> int:
        return sum(len(message.text) for message in request.messages) // 4

    async def embed(self, texts: Sequence[str], model: str = "") -> list[list[float]]:
        raise dm.Unsupported("an echo has no embeddings")

    async def aclose(self) -> None:
        pass


async def main() -> None:
    provider: dm.Provider = dm.Logged(dm.Retry(Echo()))
    async for event in provider.stream(dm.compose("loud", "Is anybody there?")):
        match event:
            case dm.Retrying(attempt=attempt, reason=reason):
                print(f"[attempt {attempt} failed: {reason}]")
            case dm.TextDelta(text=text):
                print(text, end="")
            case dm.ResponseFinished(reason=reason):
                print(f"[{reason}]")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    asyncio.run(main())
