"""A stdio server that misbehaves in the way its argument says. It is started often, so it imports next to nothing."""

import json
import os
import sys
import time

WAY = sys.argv[1]


def send(message: object) -> None:
    write(json.dumps(message).encode() + b"\n")


def write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def result(identity: object, value: object) -> None:
    send({"jsonrpc": "2.0", "id": identity, "result": value})


def text(value: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": value}]}


def lines():
    rest = b""
    while chunk := os.read(0, 1 << 16):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield json.loads(line)


def main() -> None:
    if WAY == "never-speaks":
        time.sleep(1000)
    if WAY == "dies-at-once":
        os.write(2, b"no licence\n")
        sys.exit(3)
    if WAY == "lingers":  # nothing can be written to it any more, and it has not ended
        os.close(0)
        os.close(1)
        time.sleep(0.5)
        os.write(2, b"no licence\n" + b"." * 300)
        os._exit(3)
    if WAY == "only-garbage":
        while True:
            write(b"this is a log line\n" * 1000)
    if WAY == "stays":
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    waiting = []
    for message in lines():
        method, identity = message.get("method"), message.get("id")
        if method == "initialize":
            if WAY == "modern-only":
                send({"jsonrpc": "2.0", "id": identity, "error": {"code": -32601, "message": "Method not found"}})
                continue
            if WAY in {"future", "claims-modern"}:
                version = "2031-01-01" if WAY == "future" else "2026-07-28"
                result(identity, {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "odd", "version": "1"}})
                continue
            if WAY == "silent-start":
                continue
            result(
                identity, {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}}
            )
        elif method == "server/discover":
            if WAY == "legacy-only":
                send({"jsonrpc": "2.0", "id": identity, "error": {"code": -32602, "message": "no"}})
                continue
            if WAY == "dies-of-discover":
                os._exit(1)
            if WAY == "answers-anything":
                result(identity, {})
                continue
            meta = message["params"]["_meta"]
            assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
            result(identity, {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}})
        elif method == "tools/list":
            list_tools(identity, message.get("params", {}))
        elif method == "tools/call":
            call(identity, message["params"], waiting)
        elif method == "notifications/cancelled":
            os.write(2, f"cancelled {message['params']['requestId']}\n".encode())
        elif identity is not None and method is not None:
            send({"jsonrpc": "2.0", "id": identity, "error": {"code": -32601, "message": "Method not found"}})
        elif method is None:
            answered(message, waiting)
    if WAY == "stays":
        time.sleep(1000)


def list_tools(identity: object, params: dict) -> None:
    if WAY == "endless-pages":
        cursor = int(params.get("cursor") or 0)
        result(identity, {"tools": [{"name": f"t{cursor}"}], "nextCursor": str(cursor + 1)})
    elif WAY == "same-page":
        result(identity, {"tools": [{"name": "t"}], "nextCursor": "again"})
    elif WAY == "pages":
        cursor = int(params.get("cursor") or 0)
        more = {"nextCursor": str(cursor + 1)} if cursor < 4 else {}
        result(
            identity, {"tools": [{"name": f"t{cursor}"}, 7, {"title": "no name"}], "ttlMs": 5000 - cursor, "cacheScope": "public", **more}
        )
    else:
        result(identity, {"tools": [{"name": "say", "inputSchema": {"type": "object"}}]})


def call(identity: object, params: dict, waiting: list) -> None:
    given = params["arguments"].get("text", "")
    match WAY:
        case "garbage":
            write(b'Starting up...\n\xff\xfe\x00 not json\n{"jsonrpc": "2.0"\n[]\n42\n"text"\n{}\n' + b"\n" * 20 + b"\r\n")
            result(identity, text(given))
        case "twice":
            result(identity, text(given))
            result(identity, text("second"))
        case "unknown-ids":
            for other in (99999, "x", -1):
                result(other, text("wrong"))
            send({"jsonrpc": "2.0", "id": 4242, "error": {"code": 1, "message": "wrong"}})
            send({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "wrong"}})
            result(identity, text(given))
        case "text-id":
            result(str(identity), {"content": given})
        case "no-result":
            send({"jsonrpc": "2.0", "id": identity})
        case "megabytes":
            result(identity, text("x" * int(given)))
        case "hangs":
            pass
        case "dies":
            os.write(2, b"out of rope\n" * 3)
            os._exit(7)
        case "closes-output":
            os.close(1)
            time.sleep(1000)
        case "flood":
            send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 100}})
            write(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}).encode().join([b"\n"] * 50_000) + b"\n")
            os.write(2, b"y" * 60_000)
            for _ in range(30):
                os.write(2, b"z" * 60_000)
            result(identity, text(given))
        case "asks":
            waiting.append([identity, {}])
            for method in ("ping", "sampling/createMessage", "roots/list", "elicitation/create", "made/up"):
                send({"jsonrpc": "2.0", "id": f"q:{method}", "method": method, "params": {"message": "Which?", "requestedSchema": {}}})
        case "late":
            waiting.append((identity, given))
            if len(waiting) == 10:
                for each in reversed(waiting):
                    result(each[0], text(each[1]))
                waiting.clear()
        case "env":
            result(identity, text(json.dumps(dict(os.environ))))
        case "starts-children":
            import subprocess

            subprocess.Popen(["setsid", "sh", "-c", given], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            subprocess.Popen(["sh", "-c", given], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            result(identity, text("started"))
        case "changes":
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            result(identity, text(given))
        case "error":
            send({"jsonrpc": "2.0", "id": identity, "error": {"code": -32000, "message": "broken", "data": {"why": "rope"}}})
        case "batch":
            send([{"jsonrpc": "2.0", "method": "notifications/message"}, {"jsonrpc": "2.0", "id": identity, "result": text(given)}])
        case _:
            result(identity, text(given))


def answered(message: dict, waiting: list) -> None:
    """To our questions. The call is answered when all five are."""
    identity, answers = waiting[0]
    answers[message["id"]] = message.get("result", message.get("error", {}).get("code"))
    if len(answers) == 5:
        result(identity, text(json.dumps(answers)))


main()
