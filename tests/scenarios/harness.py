"""The real program against the loopback service: a process of its own, a home of its own, and what must be so after every run.

After each run it is checked, whatever the test is about: no traceback anywhere, every request one that the service takes and that the
record leads to (sent.py), no key in what was written, one line per message, and with stream-json one `result`, as the last line.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from destinations import MAIN, rules_of
from dragoman.providers.catalog import builtin_catalog, profile_for
from dragoman.testing.mock.server import MockServer, ServedExchange
from dragoman.testing.script import Source
from prepared import can_be_forked, run_prepared
from program import NO_SERVERS, heed_signals
from scenarios.sent import check_sent

KEY = "sk-test-0123456789abcdefghijklmnopqrstuvwxyz"
PROTOCOLS = ("gemini", "openai_chat", "openai_responses", "anthropic")
QUICK = """
[retry]
first_delay_s = 0.01
max_delay_s = 0.02

[answers]
delay_s = 0.01
"""
"""A config whose waits take no time."""
QUICK_S = 0.4
"""How long the model called `hasty` may be silent."""
LONGEST_S = 60
"""No run of a test takes longer."""
_VARIABLES = {
    "gemini": ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", ""),
    "openai_chat": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1"),
    "openai_responses": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1"),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", ""),
}


@dataclass
class Ended:
    """A run of the program that is over."""

    code: int
    out: str
    err: str
    seconds: float
    requests: list[ServedExchange]
    events: list[dict[str, Any]] = field(default_factory=list)
    """The lines of stream-json."""

    @property
    def result(self) -> dict[str, Any]:
        """The last line of stream-json, or the one object of json."""
        return self.events[-1] if self.events else json.loads(self.out)

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    def bodies(self) -> list[Any]:
        return [exchange.body for exchange in self.requests]


@dataclass
class Desk:
    """Where one program runs: its folders, its environment, its service."""

    home: Path
    workspace: Path
    protocol: str = "gemini"
    url: str = ""
    last_env: Mapping[str, str] = field(default_factory=dict)
    """Of the last run."""

    @classmethod
    def at(cls, folder: Path, protocol: str = "gemini") -> Desk:
        workspace = folder / "workspace"
        workspace.mkdir()
        (folder / "home").mkdir()
        return cls(folder / "home", workspace, protocol)

    @property
    def model(self) -> str:
        return MAIN[self.protocol]

    @property
    def hasty(self) -> str:
        """A model on the same service that is not waited for (see `hasty_config`)."""
        return f"{self.model.partition('/')[0]}/hasty"

    @property
    def hasty_config(self) -> str:
        name = self.model.partition("/")[0]
        profile = f"first_event_s = {QUICK_S}\nbetween_events_s = {QUICK_S}\npings_only_s = {2 * QUICK_S}\n"
        return f'[retry]\nattempts = 2\nfirst_delay_s = 0.01\n\n[deployments.{name}.models."hasty"]\n{profile}'

    def environment(self, **more: str) -> dict[str, str]:
        """Nothing of the developer's but where programs are found."""
        key, address, path = _VARIABLES[self.protocol]
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "SYSTEMROOT") if name in os.environ}
        own = {
            "HOME": str(self.home),
            "DRAGOMAN_HOME": str(self.home / "dragoman"),
            "TMPDIR": str(self.home),
            "NO_COLOR": "1",
            "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src"),
            key: KEY,
            address: self.url + path,
        }
        return kept | own | NO_SERVERS | more

    def configure(self, text: str) -> None:
        folder = self.home / "dragoman"
        folder.mkdir(exist_ok=True)
        (folder / "config.toml").write_text(text, encoding="utf-8")

    def write(self, name: str, text: str) -> Path:
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def server(self, source: Source, **options: Any) -> MockServer:
        deployment, name = builtin_catalog().find(self.model)
        rules = rules_of(deployment, profile_for(deployment, name))
        return _CheckedServer(self, source, **{"rules": rules, **options})

    def run(self, script: Source, *arguments: str, **options: Any) -> Ended:
        """The program with `-p` and these arguments, against a service that plays the script."""
        return asyncio.run(self.run_async(script, *arguments, **options))

    async def run_async(
        self, script: Source, *arguments: str, server: Mapping[str, Any] | None = None, violations: bool = False, **options: Any
    ) -> Ended:
        async with self.server(script, **(server or {})) as service:
            self.url = service.url
            ended = await self._run_once(*arguments, **options)
            ended.requests = service.requests
        if not violations:
            assert_valid(ended.requests)
        return ended

    async def _run_once(self, *arguments: str, env: Mapping[str, str] | None = None, python: tuple[str, ...] = (), **options: Any) -> Ended:
        """One run to its end: forked off a process that has the program loaded, where nothing asks for a start of its own."""
        self.last_env = env or {}
        if python or not can_be_forked(env or {}):
            async with self.started(*arguments, env=env, python=python, **options) as process:
                return await finished(process)
        self.configure(options.pop("config", QUICK))
        stdin = options.pop("stdin", None)
        words = self._words(*arguments, **options)
        variables = {name: value for name, value in self.environment(**(env or {})).items() if name != "PYTHONPATH"}
        began_s = time.monotonic()
        code, out, err = await asyncio.to_thread(run_prepared, words, variables, str(self.workspace), stdin, LONGEST_S)
        ended = Ended(code, out.decode(), err.decode(), time.monotonic() - began_s, [])
        return checked(ended, streams_json="stream-json" in arguments)

    def _words(self, *arguments: str, prompt: str | None = "Do it.", model: str | None = None) -> list[str]:
        """Its arguments."""
        name = self.model if model is None else model
        return [*(["-m", name] if name else []), *arguments, *(["-p", prompt] if prompt is not None else [])]

    @asynccontextmanager
    async def started(
        self,
        *arguments: str,
        prompt: str | None = "Do it.",
        stdin: bytes | None = None,
        config: str = QUICK,
        env: Mapping[str, str] | None = None,
        model: str | None = None,
        python: tuple[str, ...] = (),
    ) -> AsyncIterator[Started]:
        """The program, running. It is ended with the block, whatever happens."""
        self.configure(config)
        self.last_env = env or {}
        command = [sys.executable, *python, "-m", "dragoman", *self._words(*arguments, prompt=prompt, model=model)]
        began_s = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=self.workspace,
            env={**self.environment(), **(env or {})},
            stdin=asyncio.subprocess.PIPE if stdin is not None else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=2**26,
            preexec_fn=heed_signals,
        )
        try:
            yield Started(process, began_s, stdin, "stream-json" in arguments)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


class _CheckedServer(MockServer):
    """A service that looks at its end whether the record leads to all it was asked."""

    def __init__(self, desk: Desk, source: Source, **options: Any) -> None:
        super().__init__(source, **options)
        self._desk = desk

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await super().__aexit__(kind, error, trace)
        if kind is None:
            check_sent(self.requests, self._desk.workspace, self._desk.environment(**self._desk.last_env))


@dataclass
class Started:
    process: asyncio.subprocess.Process
    began_s: float
    stdin: bytes | None
    streams_json: bool
    lines: list[bytes] = field(default_factory=list)
    """What has been read of its output."""

    async def line_with(self, text: str) -> None:
        """Wait until a line of its output holds this."""
        assert self.process.stdout is not None
        async with asyncio.timeout(LONGEST_S):
            while not self.lines or text not in self.lines[-1].decode():
                self.lines.append(await self.process.stdout.readline())
                assert self.lines[-1], f"it ended without {text!r}: {self.lines}"


async def finished(started: Started) -> Ended:
    """The end of a run, and what must be so after every run."""
    async with asyncio.timeout(LONGEST_S):
        out, err = await started.process.communicate(started.stdin)
    code = started.process.returncode
    assert code is not None
    ended = Ended(code, (b"".join(started.lines) + out).decode(), err.decode(), time.monotonic() - started.began_s, [])
    return checked(ended, streams_json=started.streams_json)


def checked(ended: Ended, *, streams_json: bool) -> Ended:
    """The same run with its events read, after it was seen that what must be so is so."""
    everything = ended.out + ended.err
    if streams_json:
        ended.events = [json.loads(line) for line in ended.out.splitlines()]
    assert "Traceback" not in everything, everything
    assert "Exception ignored" not in everything, everything
    assert "never retrieved" not in everything, everything
    assert "was never awaited" not in everything, everything
    assert "destroyed but it is pending" not in everything, everything
    assert KEY not in everything, "a key was written out"
    assert ended.code >= 0, f"it was killed: {everything}"
    if streams_json:
        kinds = [event["type"] for event in ended.events]
        assert kinds.count("result") == 1, kinds
        assert kinds[-1] == "result", kinds
        assert ended.events[-1]["exit_code"] == ended.code
    return ended


def assert_valid(requests: list[ServedExchange]) -> None:
    for number, exchange in enumerate(requests):
        assert exchange.violation is None, f"request {number}: {exchange.violation}"
        assert exchange.protocol, f"request {number} went to {exchange.path}"


async def until(true: Callable[[], bool], within_s: float = 60) -> None:
    async with asyncio.timeout(within_s):
        while not true():  # noqa: ASYNC110  another process has nothing to wait on
            await asyncio.sleep(0.01)


# --- what a service was told, whatever its protocol ------------------------------------------------------------------------------


def told_results(body: Any) -> list[str]:
    """The tool results in a request, in order, as text."""
    match body:
        case {"contents": contents}:
            parts = [part for content in contents for part in content["parts"]]
            return [_text(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part]
        case {"input": items}:
            return [_text(item["output"]) for item in items if item.get("type") == "function_call_output"]
        case {"messages": messages}:
            tools = [_text(message["content"]) for message in messages if message["role"] == "tool"]
            blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
            return tools + [_text(block.get("content", "")) for block in blocks if block.get("type") == "tool_result"]
        case _:
            raise AssertionError(f"no request: {str(body)[:200]}")


def told_text(body: Any) -> str:
    """Everything in a request, as one text: for what must or must not be in it."""
    return json.dumps(body, ensure_ascii=False)


def prompts(body: Any, prompt: str) -> int:
    """How often a prompt stands in a request as a text of its own."""
    return told_text(body).count(json.dumps(prompt, ensure_ascii=False))


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case {"text": text}:
            return str(text)
        case dict():
            return "\n".join(map(_text, value.values()))
        case list():
            return "\n".join(map(_text, value))
        case _:
            return str(value)
