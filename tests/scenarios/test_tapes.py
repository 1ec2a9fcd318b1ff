"""Recorded Gemini answers as the other side of a conversation: whatever they say, the program stands, and every request is valid."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from destinations import connection, rules_of
from dragoman.loop.agent import Agent
from dragoman.providers.catalog import builtin_catalog, profile_for
from dragoman.providers.retry import RetryPolicy
from dragoman.testing.mock.validate import validate
from dragoman.values.errors import DragomanError
from dragoman.values.events import ErrorRaised
from loopback_http import Received, Server, answer, serving
from scenarios.harness import Desk, Ended, finished, told_text
from scenarios.workshop import QUICK, check_record, no_wait, play

SAMPLE = 6
"""How many tapes go through a process of their own, unless all are asked for with --every-offset."""
KNOWN_ENDS = {0, 53, 56, 57, 58, 59}
FINAL = {"candidates": [{"content": {"role": "model", "parts": [{"text": "The tape has ended."}]}, "finishReason": "STOP"}]}
Tape = list[list[dict[str, Any]]]


def tapes(corpora: Path) -> dict[str, Tape]:
    """The streamed answers of every tape, each a list of chunks. What else a program once asked for is none of ours."""
    files = sorted((corpora / "gemini_tapes").glob("*.responses"))
    assert len(files) >= 40
    made = {}
    for file in files:
        exchanges = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        made[file.stem] = [each["response"] for each in exchanges if each["method"] == "generateContentStream"]
    return made


class Partner:
    """Plays a tape over HTTP, and says a last word when it has ended."""

    def __init__(self, tape: Tape) -> None:
        self._waiting = list(tape)
        self.server = Server()

    @property
    def has_ended(self) -> bool:
        return not self._waiting

    @asynccontextmanager
    async def playing(self) -> AsyncIterator[Server]:
        async with serving(self._reply) as self.server:
            yield self.server

    async def _reply(self, request: Received, writer: asyncio.StreamWriter) -> None:
        chunks = self._waiting.pop(0) if self._waiting else [FINAL]
        body = b"".join(b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\r\n\r\n" for chunk in chunks)
        writer.write(answer(body, headers="Content-Type: text/event-stream\r\n"))

    def check_requests(self) -> None:
        deployment, model = builtin_catalog().find("gemini/gemini-3.8-flash")
        rules = rules_of(deployment, profile_for(deployment, model))
        for number, request in enumerate(self.server.requests):
            assert "streamGenerateContent" in request.target
            violation = validate("gemini", json.loads(request.body), rules)
            assert violation is None, f"request {number}: {violation}"


def test_every_tape_is_borne_as_a_partner(corpora: Path, tmp_path: Path) -> None:
    """All of each tape, prompt after prompt, until it has ended. Built-in tools run; nobody allows a command."""

    async def converse(name: str, tape: Tape) -> int:
        workspace = tmp_path / name
        workspace.mkdir()
        (workspace / "file.txt").write_text("some text\n")
        partner = Partner(tape)
        async with partner.playing() as server:
            where = connection("gemini", server.url, retry=RetryPolicy(sleep=no_wait))
            async with make_agent(where, workspace=workspace, approval="auto-edit", limits=QUICK) as agent:
                for number in range(len(tape) + 1):
                    await told_well(agent, f"Prompt {number}.")
                    check_record(agent.history, protocols=["gemini"])
                    if partner.has_ended:
                        break
                assert partner.has_ended
                assert (await agent.run("And now?")).text == "The tape has ended."
                check_record(agent.history)
        partner.check_requests()
        return len(server.requests)

    async def all_tapes() -> None:
        asked = 0
        for name, tape in tapes(corpora).items():
            try:
                asked += await asyncio.wait_for(converse(name, tape), 60)
            except BaseException as error:
                error.add_note(f"tape {name}")
                raise
        assert asked > 100

    play(all_tapes, within_s=120)


async def told_well(agent: Agent, prompt: str) -> None:
    run = agent.run(prompt)
    events = [event async for event in run]
    assert run.result.exit_code in KNOWN_ENDS, run.result.error
    if run.result.exit_code:
        assert isinstance(events[-1], ErrorRaised)
        with pytest.raises(DragomanError):
            await run


def test_tapes_through_the_real_program(corpora: Path, tmp_path: Path, every_offset: bool) -> None:
    """No traceback, every request valid, `result` on every exit, in bounded time. All of them with --every-offset."""
    every = {name: tape for name, tape in tapes(corpora).items() if tape}
    chosen = list(every) if every_offset else list(every)[:: max(1, len(every) // SAMPLE)]

    async def converse(name: str) -> Ended:
        (tmp_path / name).mkdir()
        desk = Desk.at(tmp_path / name)
        desk.write("file.txt", "some text\n")
        partner = Partner(every[name])
        async with partner.playing() as server:
            desk.url = server.url
            async with desk.started("--approval", "auto-edit", "--output-format", "stream-json", "--max-turns", "30") as started:
                ended = await finished(started)
        partner.check_requests()
        assert ended.code in KNOWN_ENDS, ended.out
        assert "Do it." in told_text(json.loads(server.requests[0].body))
        return ended

    async def all_tapes() -> None:
        for name in chosen:
            try:
                await converse(name)
            except BaseException as error:
                error.add_note(f"tape {name}")
                raise

    asyncio.run(all_tapes())
