"""Runs the three apps against a loopback service and checks every feature that they say they have, from outside.

Nothing here knows which library an app is written with: the same checks are for the twins and for `examples/apps/`.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dragoman.testing import Loopback
from dragoman.testing.script_steps import CallStep, ReportStep, Say, ScriptedAnswer, Stall
from dragoman.values.usage import Usage

Event = tuple[str, Any]
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415478da6360606000000004000106e6b5040000000049454e44ae426082"
)


def environment(loopback: Loopback, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "OPENAI_API_KEY": "a-key",
        "OPENAI_BASE_URL": f"{loopback.url}/v1",
        "PYTHONUNBUFFERED": "1",
        **more,
    }


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def answer(*steps: Any, tokens: int = 1_000) -> ScriptedAnswer:
    return ScriptedAnswer((*steps, ReportStep(Usage(fresh_tokens=tokens, output_tokens=10))))


def call(name: str, /, **arguments: object) -> CallStep:
    return CallStep(name, json.dumps(arguments))


# --- the service ----------------------------------------------------------------------------------------------------------------


def play_service(asked: Any) -> ScriptedAnswer:
    messages = asked.body["messages"]
    last = max(number for number, message in enumerate(messages) if message["role"] == "user")
    prompt, results = (
        _text(messages[last]["content"]),
        [message for message in messages[last:] if message["role"] == "tool"],
    )
    if "slowly" in prompt:
        return ScriptedAnswer((Say("One moment"), Stall()))
    if "remember" in prompt:
        return answer(Say("You booked." if any("booked" in str(message) for message in messages) else "Nothing yet."))
    if "dear" in prompt:
        return answer(call("free_berths", harbour="Oban"), tokens=900_000)
    match len(results):
        case 0:
            return answer(call("free_berths", harbour="Oban"))
        case 1:
            return answer(call("book_berth", harbour="Oban", number=7))
        case _:
            return answer(Say("Done: "), Say(_text(results[-1]["content"])))


def drive_service(serve: Sequence[str], folder: Path) -> None:
    """`serve` starts the app; the port is added to it."""
    with Loopback(play_service) as loopback:
        env = environment(loopback, SESSIONS=str(folder / "sessions"))
        with _serving(serve, env) as port:
            events = _post(port, "/users/ann/messages", {"prompt": "Book a berth in Oban"})
            assert [kind for kind, _ in events][:2] == ["call", "result"], events
            [waiting] = [data for kind, data in events if kind == "approval"]
            assert waiting["args"] == {"harbour": "Oban", "number": 7}, waiting
        with _serving(serve, env) as port:  # the approval survives a restart
            events = _post(port, "/users/ann/approvals", {waiting["id"]: True})
            assert "berth 7 in Oban is booked" in _said(events), events
            [done] = [data for kind, data in events if kind == "done"]
            assert done["cost_usd"] > 0.005, done
            assert _said(_post(port, "/users/ann/messages", {"prompt": "Do you remember?"})) == "You booked."
            assert _said(_post(port, "/users/bob/messages", {"prompt": "Do you remember?"})) == "Nothing yet."
            assert _post(port, "/users/bob/approvals", {"x": True}) == [("404", None)]
            events = _post(port, "/users/cid/messages", {"prompt": "Book a berth in Oban"})
            [waiting] = [data for kind, data in events if kind == "approval"]
            assert "too far" in _said(_post(port, "/users/cid/approvals", {waiting["id"]: "too far"}))
            _drive_cancel(port)
            events = _post(port, "/users/eve/messages", {"prompt": "Something dear"})
            assert events[-1][0] == "budget", events
            asked = len(loopback.requests)
            again = _post(port, "/users/eve/messages", {"prompt": "Do you remember?"})
            assert again[-1][0] == "budget", again  # what was spent is spent
            assert len(loopback.requests) == asked, "nothing more is asked"


def _drive_cancel(port: int) -> None:
    told: list[Event] = []
    reading = threading.Thread(target=lambda: told.extend(_post(port, "/users/dan/messages", {"prompt": "Answer slowly"})))
    reading.start()
    cancelled: list[Event] = []
    until = time.monotonic() + 10
    while not cancelled and time.monotonic() < until:
        time.sleep(0.3)
        if _post(port, "/users/dan/messages", {"prompt": "Another"}) == [("409", None)]:
            cancelled = _post(port, "/users/dan/cancel", {})
    reading.join(10)
    assert ("text", "One moment") in told, told
    assert told[-1][0] == "cancelled", told
    assert _said(_post(port, "/users/dan/messages", {"prompt": "Do you remember?"})) == "Nothing yet."


def _said(events: Sequence[Event]) -> str:
    return "".join(data for kind, data in events if kind == "text")


@contextmanager
def _serving(serve: Sequence[str], env: Mapping[str, str]) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([*serve, str(port)], env=dict(env))
    try:
        _wait_for(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(20)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the service did not start")


def _post(port: int, path: str, body: object) -> list[Event]:
    """The events of a stream; one with its status where it is refused, or with what another endpoint says."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    if response.status != 200:
        return [(str(response.status), None)]
    if "event-stream" not in (response.getheader("content-type") or ""):
        return [("json", json.loads(text))]
    return [_event(block) for block in text.split("\n\n") if block.strip()]


def _event(block: str) -> Event:
    fields = dict(line.split(": ", 1) for line in block.splitlines())
    return fields["event"], json.loads(fields["data"])


# --- the batch ------------------------------------------------------------------------------------------------------------------


class BatchService:
    """Invoices out of documents: every tenth is wrong at first, one until `mended`. Counts what it is asked."""

    def __init__(self) -> None:
        self.mended = False
        self.asked = 0

    def __call__(self, asked: Any) -> ScriptedAnswer:
        self.asked += 1
        messages = asked.body["messages"]
        number = int(next(_text(message["content"]) for message in messages if message["role"] == "user").split()[-1])
        tried = sum(message["role"] == "assistant" for message in messages)
        if number == 13 and not self.mended:
            return answer(_invoice(asked.body, number, wrong=True))
        return answer(_invoice(asked.body, number, wrong=number % 10 == 0 and not tried))


def _invoice(body: Mapping[str, Any], number: int, *, wrong: bool) -> Any:
    value = {
        "number": str(number),
        "customer": "Oban",
        "lines": [10.0, 5.0],
        "total": 99.0 if wrong else 15.0,
    }
    tools = body.get("tools")
    return call(tools[0]["function"]["name"], **value) if tools else Say(json.dumps(value))


def drive_batch(command: Sequence[str], folder: Path, count: int = 300) -> None:
    documents, results = folder / "documents", folder / "results.jsonl"
    documents.mkdir()
    for number in range(1, count + 1):
        (documents / f"{number:04}.txt").write_text(f"Invoice {number}", encoding="utf-8")
    service = BatchService()
    with Loopback(service) as loopback:
        argv = [*command, str(documents), str(results)]
        _interrupt_batch(argv, environment(loopback), results, count)
        kept = [json.loads(line)["document"] for line in results.read_text(encoding="utf-8").splitlines()]
        assert 0 < len(kept) < count, len(kept)
        asked = service.asked
        first = subprocess.run(
            argv,
            env=environment(loopback),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert first.returncode == 1, first
        assert "0013.txt" in first.stderr, first.stderr
        assert f"{count - 1} documents, 1 failed" in first.stdout, first.stdout
        assert service.asked - asked < 1.3 * (count - len(kept)) + 10, "what was done is not asked again"
        service.mended = True
        second = subprocess.run(argv, env=environment(loopback), capture_output=True, text=True, timeout=60, check=False)
        assert second.returncode == 0, second
        assert f"{count} documents, 0 failed" in second.stdout, second.stdout
        assert "$0.0000" not in second.stdout, second.stdout
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    assert sorted(row["document"] for row in rows) == [f"{number:04}.txt" for number in range(1, count + 1)]
    assert all(row["invoice"]["total"] == 15.0 for row in rows)


def _interrupt_batch(argv: Sequence[str], env: Mapping[str, str], results: Path, count: int) -> None:
    """Kill it once it has some results."""
    process = subprocess.Popen(argv, env=dict(env), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        if results.exists() and results.read_text(encoding="utf-8").count("\n") >= count // 10:
            break
        time.sleep(0.01)
    process.kill()
    process.wait()


# --- the research agent -----------------------------------------------------------------------------------------------------------


def play_research(asked: Any) -> ScriptedAnswer:
    names = {tool["function"]["name"] for tool in asked.body.get("tools", ())}
    results = [_text(message["content"]) for message in asked.body["messages"] if message["role"] == "tool"]
    if "publish" not in names:  # the sub-agent
        return answer(Say(f"It says: {results[0]}") if results else call("read_document", name="b.txt"))
    match len(results):
        case 0:
            return answer(call("search", word="tide"))
        case 1:
            return answer(call("look_at", name="chart.png"))
        case 2:
            seen = "image_url" in json.dumps(asked.body["messages"])
            return answer(call("ask_reader", question="What does b.txt say?" if seen else "no image came"))
        case 3:
            return answer(call("publish", title="Tide", text=results[-1]))
        case 4:
            return answer(call("publish", title="Again", text="once more"))
        case _:
            return answer(Say("Found: "), Say(results[-2] + "; " + results[-1]))


def drive_research(command: Sequence[str], folder: Path) -> None:
    for name in "abc":
        (folder / f"{name}.txt").write_text(f"the tide of {name}" if name != "c" else "nothing", encoding="utf-8")
    (folder / "chart.png").write_bytes(PNG)
    edited = json.dumps({"title": "Edited", "text": "by a person"})
    with Loopback(play_research) as loopback:
        argv = [*command, str(folder), "When is the tide?"]
        ran = subprocess.run(
            argv,
            env=environment(loopback),
            input=f"{edited}\nnot twice\n",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    assert "[1/3]" in ran.stdout, ran.stdout
    assert "[3/3]" in ran.stdout, ran.stdout
    assert "It says: the tide of b" in ran.stdout, ran.stdout  # in the arguments that are put before the person
    assert "published: Edited: by a person" in ran.stdout, ran.stdout
    assert "published: Again" not in ran.stdout, ran.stdout
    assert "not twice" in ran.stdout, ran.stdout
    assert "[8 requests, 8080 tokens, $" in ran.stdout, ran.stdout
