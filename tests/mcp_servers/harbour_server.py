"""A small MCP server on standard input and output, for tests: it speaks revision 2025-11-25 and needs nothing but Python.

Its arguments are NAME=VALUE: `log` is a file to which it writes that it was started, and what it was asked; `list` a file with the tools
to offer, as JSON; `count` how many further tools it makes up; `fails` and `hangs` a method that fails, and one that is not answered.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from typing import Any

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 20).decode()
OPTIONS = dict(each.partition("=")[::2] for each in sys.argv[1:])
TOOLS: list[dict[str, Any]] = [
    {
        "name": "tide",
        "description": "When the tide is high.",
        "inputSchema": {
            "type": "object",
            "properties": {"port": {"type": "string"}, "days": {"type": "integer", "exclusiveMaximum": 10}},
            "required": ["port"],
            "dependentRequired": {"days": ["port"]},
            "unevaluatedProperties": False,
        },
        "annotations": {"readOnlyHint": True},
    },
    *(
        {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object", "properties": {}}}
        for name in ("picture", "numbers", "links", "die", "slow", "fail", "ask", "page", "env", "sleep")
    ),
]


def log(text: str) -> None:
    if OPTIONS.get("log"):
        with open(OPTIONS["log"], "a", encoding="utf-8") as file:
            file.write(f"{os.getpid()} {text}\n")


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


def offered() -> list[dict[str, Any]]:
    if OPTIONS.get("list"):
        with open(OPTIONS["list"], encoding="utf-8") as file:
            return json.load(file)
    many = int(OPTIONS.get("count", 0))
    made = [
        {
            "name": f"survey_{number}",
            "description": f"Survey buoy number {number} of the bay, with all that is known of it. " * 3,
            "inputSchema": {"type": "object", "properties": {"depth": {"type": "number", "description": "In fathoms."}}},
        }
        for number in range(many)
    ]
    return [*TOOLS, *made]


def ask_client(method: str, params: dict[str, Any]) -> dict[str, Any]:
    send({"id": "q1", "method": method, "params": params})
    for line in sys.stdin:
        answer = json.loads(line)
        if answer.get("id") == "q1":
            return answer.get("result", {"action": "none"})
    return {}


def call(name: str, args: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    match name:
        case "tide":
            return text(f"In {args['port']} the tide is high at noon.")
        case "picture":
            return {"content": [{"type": "text", "text": "a chart"}, {"type": "image", "data": PNG, "mimeType": "image/png"}]}
        case "numbers":
            return {"content": [], "structuredContent": {"depths": [3, 5]}}
        case "links":
            return {
                "content": [
                    {"type": "resource_link", "uri": "chart://muscat", "name": "chart", "mimeType": "text/plain"},
                    {"type": "resource", "resource": {"uri": "log://1", "mimeType": "text/plain", "text": "logged"}},
                ]
            }
        case "die":
            os._exit(3)
        case "fail":
            return {**text("the sea is rough"), "isError": True}
        case "slow":
            for done in (1, 2):
                send(
                    {
                        "method": "notifications/progress",
                        "params": {"progressToken": meta.get("progressToken"), "progress": done, "total": 2},
                    }
                )
                time.sleep(0.05)
            return text("slow done")
        case "sleep":
            time.sleep(60)
            return text("woke")
        case "ask":
            schema = {"type": "object", "properties": {"berth": {"type": "integer"}}, "required": ["berth"]}
            return text(json.dumps(ask_client("elicitation/create", {"message": "Which berth?", "requestedSchema": schema})))
        case "page":
            return text(json.dumps(ask_client("elicitation/create", {"mode": "url", "message": "Sign", "url": "https://example.org/x"})))
        case "env":
            return text(json.dumps(sorted(os.environ)))
        case _ if name.startswith("survey_"):
            return text(f"{name} at {args.get('depth')} fathoms")
        case _:
            return {**text(f"no tool {name}"), "isError": True}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": True}, "prompts": {}, "resources": {}},
                "serverInfo": {"name": "harbour", "version": "1"},
            }
        case "tools/list":
            return {"tools": offered()}
        case "prompts/list":
            return {"prompts": [{"name": "greet", "description": "Greets.", "arguments": [{"name": "who", "required": True}]}]}
        case "prompts/get":
            said = f"Say hello to {params['arguments']['who']}."
            return {"messages": [{"role": "user", "content": {"type": "text", "text": said}}]}
        case "resources/list":
            return {"resources": [{"uri": "chart://muscat", "name": "chart"}]}
        case "resources/templates/list":
            return {"resourceTemplates": []}
        case "resources/read":
            return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": "depth 7 at the pier"}]}
        case "tools/call":
            log(f"call {params['name']}")
            return call(params["name"], params.get("arguments", {}), params.get("_meta", {}))
        case _:
            return {}


def main() -> None:
    log("start")
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == OPTIONS.get("fails"):
            send({"id": message["id"], "error": {"code": -32603, "message": "the harbour master is out"}})
        elif "id" in message and "method" in message and message["method"] != OPTIONS.get("hangs"):
            send({"id": message["id"], "result": answer(message["method"], message.get("params", {}))})


main()
