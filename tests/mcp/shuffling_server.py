"""Answers calls out of order, with progress in between, some of them twice: a stdio server of both eras."""

import json
import os
import random
import select

chance = random.Random(3)
late: list[bytes] = []


def line(message: dict) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def answers(message: dict) -> None:
    method, identity = message.get("method"), message.get("id")
    if method == "initialize":
        late.append(line({"id": identity, "result": {"protocolVersion": "2025-11-25", "capabilities": {}}}))
    elif method == "server/discover":
        late.append(line({"id": identity, "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}}))
    elif method == "tools/call":
        text = message["params"]["arguments"]["text"]
        token = message["params"]["_meta"]["progressToken"]
        late.append(line({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1, "message": text}}))
        answer = line({"id": identity, "result": {"content": [{"type": "text", "text": text}]}})
        late.extend([answer] * (2 if chance.random() < 0.1 else 1))


def main() -> None:
    rest = b""
    while True:
        if select.select([0], [], [], 0.002 if late else None)[0]:
            chunk = os.read(0, 1 << 16)
            if not chunk:
                return
            *whole, rest = (rest + chunk).split(b"\n")
            for each in whole:
                answers(json.loads(each))
        chance.shuffle(late)
        keep = chance.randrange(len(late) + 1) // 2
        data, late[:] = b"".join(late[keep:]), late[:keep]
        while data:
            data = data[os.write(1, data) :]


main()
