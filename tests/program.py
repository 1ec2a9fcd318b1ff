"""The real program in a process of its own, and a loopback service for it to talk to."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dragoman as dm
from prepared import Forked, ForkedPopen, can_be_forked, run_prepared

PROTOCOLS = {
    "gemini": "gemini/gemini-3.8-flash",
    "openai_chat": "openai/gpt-4.1",
    "openai_responses": "responses/gpt-6.1-sol",
    "anthropic": "anthropic/claude-opus-5",
}
"""Protocol → a model that speaks it."""
KEY = "sk-test-0123456789abcdef"
"""Looks like a key, and must never be seen in any output."""

NO_SERVERS = dict.fromkeys(
    ("OLLAMA_BASE_URL", "LLAMACPP_BASE_URL", "LMSTUDIO_BASE_URL", "VLLM_BASE_URL", "SGLANG_BASE_URL"), "http://127.0.0.1:9/v1"
)
"""Where nobody listens: whatever runs on the developer's machine is not found."""


class Service:
    """A MockServer in a thread of its own."""

    def __init__(self, server: dm.testing.MockServer) -> None:
        self.server = server

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def requests(self) -> list[Any]:
        """The bodies it was sent, in order."""
        return [exchange.body for exchange in self.server.requests]

    def expect(self, count: int, within_s: float = 60) -> None:
        """Wait until it has been sent so many requests."""
        until = time.monotonic() + within_s
        while len(self.server.requests) < count:
            assert time.monotonic() < until, f"{len(self.server.requests)} requests came, not {count}"
            time.sleep(0.01)

    @property
    def env(self) -> dict[str, str]:
        """What a program must be told to find it, whatever protocol it speaks."""
        keys = dict.fromkeys(("GEMINI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"), KEY)
        return keys | {"GOOGLE_GEMINI_BASE_URL": self.url, "ANTHROPIC_BASE_URL": self.url, "OPENAI_BASE_URL": f"{self.url}/v1"}


@contextmanager
def service(script: str, **options: Any) -> Iterator[Service]:
    loop = asyncio.new_event_loop()
    server = dm.testing.MockServer(script, **options)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(60)
        yield Service(server)
    finally:
        asyncio.run_coroutine_threadsafe(server.aclose(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


class Place:
    """A workspace and a home, both fresh, and a way to run the program there."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.work = folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        self.service: Service | None = None
        self.ui = "plain"
        """How a conversation is shown; empty: with a live region."""
        self.more_env: dict[str, str] = {}
        self.starts_really = False
        """Whether every start is one of an interpreter: for tests of what a start costs."""
        self._started: list[subprocess.Popen[bytes]] = []

    def close(self) -> None:
        """End whatever a failed test left running."""
        for process in self._started:
            if process.poll() is None:
                process.kill()

    @property
    def env(self) -> dict[str, str]:
        """No key, no proxy, nothing of the developer's but where programs are found."""
        kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TMPDIR", "LANG", "LC_ALL") if name in os.environ}
        basic = {
            "HOME": str(self.home),
            "DRAGOMAN_HOME": str(self.home / "dragoman"),
            "PYTHONWARNINGS": "error",
            "TERM": "xterm",
            "DRAGOMAN_UI": self.ui,
        }
        return {"LANG": "C.UTF-8"} | kept | basic | NO_SERVERS | (self.service.env if self.service else {}) | self.more_env

    def start(
        self,
        *arguments: str | bytes,
        env: Mapping[str, str] | None = None,
        stdin: Any = subprocess.DEVNULL,
        own_terminal: bool = False,
        **options: Any,
    ) -> subprocess.Popen[bytes]:
        """The program under way; with `own_terminal`, standard input is its controlling terminal. SIGINT works in it even where the tests
        themselves were started in the background."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        streams = {"cwd": self.work, "env": self.env | dict(env or {}), "stdin": stdin}
        process: subprocess.Popen[bytes]
        if "preexec_fn" not in options and not self.starts_really and can_be_forked(self.more_env | dict(env or {})):
            process = ForkedPopen(list(arguments), own_terminal=own_terminal, **streams, **options)
        else:
            prepare = take_terminal if own_terminal else heed_signals
            options = {"preexec_fn": prepare, "start_new_session": own_terminal} | streams | options
            process = subprocess.Popen([sys.executable, "-m", "dragoman", *arguments], **options)
        self._started.append(process)
        return process

    def run(
        self, *arguments: str | bytes, env: Mapping[str, str] | None = None, stdin: str | bytes | None = None, timeout_s: float = 60
    ) -> Done:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        if can_be_forked(self.more_env | dict(env or {})):
            return Done(*run_prepared(arguments, self.env | dict(env or {}), str(self.work), data, timeout_s))
        with self.start(*arguments, env=env, stdin=subprocess.DEVNULL if data is None else subprocess.PIPE) as process:
            try:
                out, err = process.communicate(data, timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return Done(process.returncode, out, err)

    def start_on(self, terminal: int, *arguments: str, env: Mapping[str, str]) -> Forked | subprocess.Popen[bytes]:
        """The program under way on a terminal that is not its controlling one. The descriptor is closed."""
        if can_be_forked(env):
            return Forked(arguments, self.env | dict(env), str(self.work), [terminal] * 3)
        process = self.start(*arguments, env=env, stdin=terminal, stdout=terminal, stderr=terminal)
        os.close(terminal)
        return process

    def ask(self, prompt: str = "hi", *arguments: str, model: str = "anthropic/claude-opus-5", **options: Any) -> Done:
        return self.run("-m", model, *arguments, "-p", prompt, **options)


class Done:
    """How the program ended. Whatever it did, it showed no traceback and no key."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.out = out.decode()
        self.err = err.decode()
        assert "Traceback" not in self.err, self.err
        assert KEY not in self.out + self.err

    def __repr__(self) -> str:
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"

    @property
    def json(self) -> dict[str, Any]:
        assert self.out.count("\n") == 1, self
        return json.loads(self.out)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines of stream-json. The last, and it alone, is the result."""
        events = [json.loads(line) for line in self.out.splitlines()]
        assert [event["type"] for event in events].count("result") == 1, self
        assert events[-1]["type"] == "result", self
        assert events[-1]["exit_code"] == self.code, self
        times = [event.pop("at_ms") for event in events]
        assert times == sorted(times), self
        return events

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    def complaint(self, code: int, *words: str) -> str:
        """It failed with this code and one line on standard error that holds these words."""
        assert self.code == code, self
        lines = self.err.splitlines()
        assert len(lines) == 1, self
        assert lines[0].startswith("dragoman: "), self
        for word in words:
            assert word in lines[0], self
        return lines[0]


@contextmanager
def heeding_ctrl_c() -> Iterator[None]:
    """This process heeds Ctrl-C as in a terminal, though a suite in the background of a shell ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def heed_signals() -> None:
    """For a child: signals that were ignored when the tests were started, as in the background, are not ignored in it."""
    for name in ("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)


def take_terminal() -> None:
    """For a child with a session of its own: its standard input becomes its controlling terminal."""
    heed_signals()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def calls(*items: tuple[str, Mapping[str, Any]]) -> str:
    """Script lines for an answer that calls tools."""
    return "\n".join(f"call: {name} {json.dumps(arguments)}" for name, arguments in items)


def script(*answers: str | Sequence[str]) -> str:
    return "\n---\n".join(answer if isinstance(answer, str) else "\n".join(answer) for answer in answers)
