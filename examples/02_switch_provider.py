"""One conversation, four protocols: the model is changed after every answer, with tool calls still in the history.

A service whose key is in the environment is asked for real; for the others the loopback server stands in, which refuses
whatever the real one would refuse.

    python examples/02_switch_provider.py
"""

import asyncio
import os
from contextlib import aclosing

import dragoman as dm

ROUTE = ["gemini", "anthropic", "openai", "responses", "gemini"]
KEYS = {"gemini": "GEMINI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "responses": "OPENAI_API_KEY"}

WEATHER = dm.ToolSpec.of(
    "get_weather",
    "The weather in a city, today.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    read_only=True,
)
CITIES = ["Oslo", "Lisbon", "Cairo", "Kyoto", "Quito"]
SCRIPT = "---".join(
    f"""
thought signature="c2lnbmVk": {city} is next on the list.
text: Looking up {city}, and Rome to compare.
call: get_weather {{"city": "{city}"}}
call: get_weather {{"city": "Rome"}}
usage: fresh={120 + 60 * step} cache_read={400 * step} output=42
"""
    for step, city in enumerate(CITIES)
)


def connected(name: str, server: dm.testing.MockServer) -> dm.Connection:
    if os.environ.get(KEYS[name]):
        return dm.connect(name)
    return dm.connect(name, base_url=server.url + ("/v1" if name in ("openai", "responses") else ""), key="none needed")


async def main() -> None:
    conversation = [dm.user("Compare the weather of some cities with Rome's, one at a time.")]
    async with dm.testing.MockServer(SCRIPT) as server:
        for name, city in zip(ROUTE, CITIES, strict=True):
            model = connected(name, server)
            request = dm.build_request(model.model, conversation, system="Use the tool for every city.", tools=[WEATHER])
            size = len(model.prepare(request).body)
            answer = dm.assistant()
            print(f"{name:>9}  {len(request.messages):2} messages, {size:5} bytes  → ", end="", flush=True)
            async with aclosing(model.stream(request)) as events:
                async for event in events:
                    if isinstance(event, dm.TextDelta):
                        print(event.text, end="", flush=True)
                    elif isinstance(event, dm.events.ToolCallReady):
                        print(f"  {event.call.name}({', '.join((event.call.args or {}).values())})", end="", flush=True)
                    elif isinstance(event, dm.ResponseFinished):
                        answer = event.response.message
            print()
            conversation.append(answer)
            if answer.calls:
                conversation.append(dm.user(*(dm.tool_result(call, "18 °C, clear") for call in answer.calls)))
            else:
                conversation.append(dm.user(f"And {city}?"))
            await model.aclose()
    calls = sum(len(message.calls) for message in conversation)
    results = sum(len(message.results) for message in conversation)
    print(f"\n{calls} calls, {results} results, {len(ROUTE)} answers, one conversation.")


if __name__ == "__main__":
    asyncio.run(main())
