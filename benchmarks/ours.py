"""Our own client, as a program would use it. `ours.py PROTOCOL URL PROMPT...`"""

import asyncio
import sys
import time
from contextlib import aclosing

import dragoman

MODELS = {
    "openai_chat": "openai/gpt-5.4",
    "openai_responses": "responses/gpt-6.1-sol",
    "anthropic": "anthropic/claude-sonnet-5-5",
    "gemini": "gemini/gemini-3.8-flash",
}


def provider(protocol: str, url: str) -> dragoman.Connection:
    base_url = f"{url}/v1" if protocol.startswith("openai") else url
    return dragoman.connect(MODELS[protocol], key="key", base_url=base_url)


async def main(protocol: str, url: str, *prompts: str) -> None:
    connection = provider(protocol, url)
    for prompt in prompts:
        before = time.process_time()
        request = dragoman.Request(connection.model, (dragoman.user(prompt),))
        async with aclosing(connection.stream(request)) as events:
            pieces = [event.text async for event in events if isinstance(event, dragoman.TextDelta)]
        print(prompt, len("".join(pieces)), time.process_time() - before)
    await connection.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
