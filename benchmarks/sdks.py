"""The official SDKs, used for the same as our own client. `sdks.py PROTOCOL URL PROMPT...`, and `sdks.py --sync ...`

The raw streams are read (`create(stream=True)`), which is the cheapest that each SDK offers: its helpers that put the answer together
cost more. Imports stand where they are needed, so that a process pays for one SDK alone.
"""

import asyncio
import sys
import time

MODEL = "mock-model"


def client(protocol: str, url: str, *, sync: bool, transport=None):
    """An SDK's client; `transport` is an httpx2 transport to use instead of a network."""
    if protocol == "gemini":
        return _gemini_client(url, sync, transport)
    if protocol == "anthropic":
        import anthropic as sdk

        kind, base_url = sdk.Anthropic if sync else sdk.AsyncAnthropic, url
    else:
        import openai as sdk

        kind, base_url = sdk.OpenAI if sync else sdk.AsyncOpenAI, f"{url}/v1"
    return kind(base_url=base_url, api_key="key", max_retries=0, http_client=_http_client(transport, sync))


def _gemini_client(url: str, sync: bool, transport):
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=url, api_version="v1beta")
    if transport is not None:
        options.httpx_client = _http_client(transport, sync)
    made = genai.Client(api_key="key", http_options=options)
    return made if sync else made.aio


def _http_client(transport, sync: bool):
    if transport is None:
        return None
    import httpx2

    return (httpx2.Client if sync else httpx2.AsyncClient)(transport=transport)


def send(protocol: str, made, prompt: str):
    """The SDK's stream, or a coroutine that gives it."""
    message = {"role": "user", "content": prompt}
    match protocol:
        case "openai_chat":
            return made.chat.completions.create(model=MODEL, messages=[message], stream=True)
        case "openai_responses":
            return made.responses.create(model=MODEL, input=[message], stream=True)
        case "anthropic":
            return made.messages.create(model=MODEL, messages=[message], max_tokens=64, stream=True)
        case _:
            return made.models.generate_content_stream(model=MODEL, contents=prompt)


def said(protocol: str, event) -> str:
    """What one event adds to the answer: text, or a piece of a call's arguments."""
    match protocol:
        case "openai_chat":
            if not event.choices:
                return ""
            delta = event.choices[0].delta
            return delta.content or "".join(call.function.arguments or "" for call in delta.tool_calls or ())
        case "openai_responses":
            return event.delta if event.type in ("response.output_text.delta", "response.function_call_arguments.delta") else ""
        case "anthropic":
            if event.type != "content_block_delta":
                return ""
            return event.delta.text if event.delta.type == "text_delta" else event.delta.partial_json
        case _:
            return "".join(part.text or "" for part in event.candidates[0].content.parts or ())


def read(protocol: str, made, prompt: str) -> str:
    return "".join([said(protocol, event) for event in send(protocol, made, prompt)])


async def main(protocol: str, url: str, *prompts: str) -> None:
    made = client(protocol, url, sync=False)
    for prompt in prompts:
        before = time.process_time()
        text = "".join([said(protocol, event) async for event in await send(protocol, made, prompt)])
        print(prompt, len(text), time.process_time() - before)


def main_sync(protocol: str, url: str, *prompts: str) -> None:
    made = client(protocol, url, sync=True)
    for prompt in prompts:
        before = time.process_time()
        print(prompt, len(read(protocol, made, prompt)), time.process_time() - before)


if __name__ == "__main__":
    if sys.argv[1] == "--sync":
        main_sync(*sys.argv[2:])
    else:
        asyncio.run(main(*sys.argv[1:]))
