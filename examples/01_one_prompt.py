"""One prompt, streamed. With a key in the environment it goes to that service, else to the loopback server that ships with us.

python examples/01_one_prompt.py "Why is the sky blue?"
DRAGOMAN_MODEL=anthropic/claude-sonnet-5-5 python examples/01_one_prompt.py "Why is the sky blue?"
"""

import asyncio
import os
import sys
from contextlib import aclosing

import dragoman as dm

KEYS = {"GEMINI_API_KEY": "gemini", "ANTHROPIC_API_KEY": "anthropic", "OPENAI_API_KEY": "openai"}


async def ask(model: dm.Connection, prompt: str) -> None:
    async with aclosing(model.stream(dm.build_request(model.model, prompt))) as events:
        async for event in events:
            match event:
                case dm.TextDelta(text=text):
                    print(text, end="", flush=True)
                case dm.Retrying(wait_s=wait, reason=reason):
                    print(f"\n[trying again in {wait:.0f} s: {reason}]")
                case dm.ResponseFinished(response=response):
                    report(model, response)
                case _:
                    pass


def report(model: dm.Connection, response: dm.Response) -> None:
    usage, prices = response.usage, model.profile(model.model).prices
    cost = f", ${prices.cost_usd(usage):.6f}" if prices else ""
    print(f"\n[{model.name}/{model.model}: {usage.input_tokens} tokens in, {usage.output_tokens} out{cost}]")


async def main() -> None:
    prompt = " ".join(sys.argv[1:]) or "Say hello."
    chosen = os.environ.get("DRAGOMAN_MODEL") or next((name for key, name in KEYS.items() if os.environ.get(key)), None)
    if chosen:
        await ask(dm.connect(chosen), prompt)
        return
    async with dm.testing.MockServer("text: Hello! No key is set, so this is the loopback server speaking Gemini.") as server:
        await ask(dm.connect("gemini", base_url=server.url, key="none needed"), prompt)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except dm.DragomanError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
