"""An editor: a client of the protocol in its plainest form. All that is said is kept, and held against the schema where it is there."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from acp_schema import check_message

from program import Place

WITHIN_S = 60
"""How long an answer is waited for; only a hang takes as long."""
MODEL = "anthropic/claude-opus-5"
Message = dict[str, Any]


class Editor:
    """`answers`: the option that every permission is answered with, or what makes the result of a request; None: it is left open."""

    def __init__(
        self, place: Place, arguments: Sequence[str], answers: str | Callable[[Message], Message | None], env: Mapping[str, str]
    ) -> None:
        self.place = place
        self.answers = answers
        self.said: list[Message] = []
        """Every message of the program, in its order."""
        self._asked: dict[int, str] = {}
        self._changed = threading.Condition()
        self._is_over = False
        self.process = place.start("acp", "-m", MODEL, *arguments, env=env, stdin=subprocess.PIPE)
        self.errors = b""
        """What it wrote to standard error; whole once it has ended."""
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._read, self._read_errors)]
        for thread in self._threads:
            thread.start()

    # --- speaking

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def tell(self, method: str, **params: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")

    def begin(self, method: str, **params: Any) -> int:
        id = len(self._asked) + 1
        self._asked[id] = method
        self.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n")
        return id

    def ask(self, method: str, **params: Any) -> Any:
        """The result; fails where it is an error."""
        return self.result(self.begin(method, **params))

    def fault(self, method: str, **params: Any) -> Message:
        """The error."""
        return self.reply(self.begin(method, **params))["error"]

    def reply(self, id: int) -> Message:
        return self.expect(lambda each: each.get("id") == id and "method" not in each)

    def result(self, id: int) -> Any:
        reply = self.reply(id)
        assert "result" in reply, reply
        return reply["result"]

    def answer(self, request: Message, result: Message) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode() + b"\n")

    def choose(self, request: Message, option: str) -> None:
        self.answer(request, {"outcome": {"outcome": "selected", "optionId": option}})

    # --- what is said often

    def greet(self, **capabilities: Any) -> Any:
        return self.ask("initialize", protocolVersion=1, clientCapabilities=capabilities, clientInfo={"name": "tests", "version": "1"})

    def open(self, **params: Any) -> str:
        return self.ask("session/new", **{"cwd": str(self.place.work), "mcpServers": []} | params)["sessionId"]

    def begin_prompt(self, session: str, text: str = "go", *more: Message) -> int:
        return self.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}, *more])

    def prompt(self, session: str, text: str = "go", *more: Message) -> str:
        return self.result(self.begin_prompt(session, text, *more))["stopReason"]

    # --- listening

    def expect(self, is_it: Callable[[Message], bool], after: int = 0) -> Message:
        """The first message that fits, of those that have come and those to come."""
        until = time.monotonic() + WITHIN_S
        with self._changed:
            while True:
                if (found := next((each for each in self.said[after:] if is_it(each)), None)) is not None:
                    return found
                assert not self._is_over, f"the program has ended: {self.said[-3:]}"
                assert self._changed.wait(until - time.monotonic()), f"it did not come: {self.said[-3:]}"

    def expect_request(self, method: str = "session/request_permission", after: int = 0) -> Message:
        return self.expect(lambda each: each.get("method") == method and "id" in each, after)

    def expect_update(self, kind: str, after: int = 0, **fields: Any) -> Message:
        def fits(message: Message) -> bool:
            update = message.get("params", {}).get("update", {})
            return update.get("sessionUpdate") == kind and all(update.get(name) == value for name, value in fields.items())

        return self.expect(fits, after)["params"]["update"]

    def updates(self, session: str = "", after: int = 0) -> list[Message]:
        told = [each["params"] for each in self.said[after:] if each.get("method") == "session/update"]
        return [each["update"] for each in told if not session or each["sessionId"] == session]

    def of(self, kind: str) -> list[Message]:
        return [each for each in self.updates() if each["sessionUpdate"] == kind]

    @property
    def requests(self) -> list[Message]:
        return [each for each in self.said if "method" in each and "id" in each]

    # --- the end

    def leave(self) -> int:
        """Close the program's input and return its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(WITHIN_S)
        for thread in self._threads:
            thread.join(WITHIN_S)
        return code

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WITHIN_S)
        for thread in self._threads:
            thread.join(WITHIN_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors = self.process.stderr.read()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            check_message(message, self._asked.get(message.get("id")) if "method" not in message else None)
            with self._changed:
                self.said.append(message)
                self._changed.notify_all()
            if "method" in message and "id" in message:
                self._answer(message)
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def _answer(self, request: Message) -> None:
        if callable(self.answers):
            if (result := self.answers(request)) is not None:
                self.answer(request, result)
            return
        self.choose(request, self.answers)
