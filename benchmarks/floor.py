"""The floor: the least that a Python program can do, with the standard library alone. `floor.py PROTOCOL URL PROMPT...`"""

import http.client
import json
import sys
import time

PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/mock-model:streamGenerateContent?alt=sse",
}


def said(protocol: str, event: dict) -> str:
    """What one event adds to the answer: text, or a piece of a call's arguments."""
    if protocol == "openai_chat":
        delta = event["choices"][0]["delta"] if event["choices"] else {}
        return delta.get("content") or "".join(call["function"].get("arguments") or "" for call in delta.get("tool_calls") or ())
    if protocol == "openai_responses":
        return event["delta"] if event["type"].endswith((".output_text.delta", ".function_call_arguments.delta")) else ""
    if protocol == "anthropic":
        delta = event["delta"] if event["type"] == "content_block_delta" else {}
        return delta.get("text") or delta.get("partial_json") or ""
    return "".join(part.get("text") or "" for part in event["candidates"][0]["content"].get("parts") or ())


def read(protocol: str, chunks) -> str:
    """The text of a stream: split at blank lines, parse every event."""
    pieces, buffer = [], b""
    for chunk in chunks:
        *blocks, buffer = (buffer + chunk).split(b"\n\n")
        for block in blocks:
            pieces += [said(protocol, json.loads(line[6:])) for line in block.split(b"\n") if line.startswith(b"data: {")]
    return "".join(pieces)


def main(protocol: str, url: str, *prompts: str) -> None:
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    for prompt in prompts:
        before = time.process_time()
        body = json.dumps({"model": "mock-model", "stream": True, "messages": [{"role": "user", "content": prompt}]})
        connection.request("POST", PATHS[protocol], body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = read(protocol, iter(lambda answer=answer: answer.read1(65536), b""))
        print(prompt, len(text), time.process_time() - before)


if __name__ == "__main__":
    main(*sys.argv[1:])
