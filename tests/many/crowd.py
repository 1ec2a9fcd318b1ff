"""Many agents on one connection, each of which must get the answer to its own question, whatever happens around it."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import dragoman as dm
from agents import make_agent
from dragoman.providers.catalog import Catalog, builtin_catalog
from dragoman.providers.connect import Connection, connect
from dragoman.providers.retry import RetryPolicy
from dragoman.values.contracts import Transport
from dragoman.values.events import Retrying, TextDelta

HERE = Path(__file__).parent
PATIENCE_S = 3.0
"""How long a model is waited for: a stalled one is asked again after that."""
HUNG_S = 60.0
TURNS = 12
"""After so many questions an agent makes place for a new one, so that conversations stay short."""
FAULTS = ("", "", "", "", "", "500", "429", "cut", "cut before", "stall")


@dataclass
class Seen:
    """What became of all the questions."""

    answered: int = 0
    crossed: list[str] = field(default_factory=list)
    hung: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    cancelled: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.answered:,} answered, {self.cancelled:,} cancelled, {len(self.crossed)} crossed, {len(self.hung)} hung, "
            f"{len(self.failed)} failed in {self.seconds:.0f} s; faults: {dict(self.faults)}"
        )


@contextmanager
def service(kind: str, *, certificate: str = "", version: str = "http/1.1", proxy: bool = False) -> Iterator[list[str]]:
    """An echo service in a process of its own: its address, and the proxy's where one is wanted."""
    options = ["--certificate", certificate, "--version", version, *(["--proxy"] if proxy else [])]
    argv = [sys.executable, str(HERE / "echo_service.py"), kind, *options]
    # A file: a pipe that nobody reads would stop the service once it is full.
    with tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, text=True)
        assert process.stdout is not None
        try:
            yield [process.stdout.readline().strip() for _ in range(2 if proxy else 1)]
        finally:
            process.communicate(timeout=60)
        complaints.seek(0)
        told = complaints.read()
        assert kind != "ours" or told == "", told


def catalog() -> Catalog:
    row = {"first_event_s": PATIENCE_S, "between_events_s": PATIENCE_S}
    return builtin_catalog().with_rows({"openai": {"models": {"echo": row}}})


def connected(url: str, transport: Transport | None = None) -> Connection:
    policy = RetryPolicy(attempts=10, first_delay_s=0.001, max_delay_s=0.01)
    return connect("openai/echo", key="a-key", base_url=f"{url}/v1", env={}, catalog=catalog(), transport=transport, retry=policy)


class Crowd:
    """So many agents, and so many questions among them. Chance decides what happens to each; the seed decides chance."""

    def __init__(self, connection: Connection, agents: int, questions: int, seed: int, *, faults: bool = True, name: str = "") -> None:
        self._connection = connection
        self._agents = agents
        self._left = questions
        self._seed = seed
        self._faults = faults
        self._name = name
        self.seen = Seen()

    async def ask_all(self) -> Seen:
        began = time.monotonic()
        await asyncio.gather(*(self._be_an_agent(random.Random(f"{self._seed}-{number}")) for number in range(self._agents)))
        self.seen.seconds = time.monotonic() - began
        return self.seen

    async def _be_an_agent(self, chance: random.Random) -> None:
        while self._left > 0:
            agent = make_agent(self._connection, builtin=False, describe=False)
            for _ in range(TURNS):
                if self._left <= 0:
                    break
                self._left -= 1
                await self._ask(agent, f"{self._name}q{self._left}", chance)
                if chance.random() < 0.5:
                    await asyncio.sleep(chance.random() * 0.02)
            await agent.aclose()

    async def _ask(self, agent: dm.Agent, name: str, chance: random.Random) -> None:
        how = {"wait_s": chance.choice([0, 0, 0.002, 0.02]), "pieces": chance.choice([1, 3, 8]), "fault": self._fault(chance)}
        cancel_after_s = chance.random() * 0.05 if self._faults and chance.random() < 0.15 else None
        pause_s = 0.01 if chance.random() < 0.1 else 0.0
        self.seen.faults[str(how["fault"])] += 1
        run = agent.run(f"{name} {json.dumps(how)}")
        shown: list[str] = []
        reading = asyncio.ensure_future(self._read(run, shown, pause_s))
        if cancel_after_s is not None:
            await asyncio.wait({reading}, timeout=cancel_after_s)
            run.cancel()
        try:
            await asyncio.wait_for(reading, HUNG_S)
        except TimeoutError:
            self.seen.hung.append(name)
            return
        self._judge(name, run.result, "".join(shown))

    async def _read(self, run: dm.Run, shown: list[str], pause_s: float) -> None:
        async for event in run:
            if isinstance(event, Retrying):
                shown.clear()  # what was shown of it is void
            elif isinstance(event, TextDelta):
                shown.append(event.text)
                await asyncio.sleep(pause_s)

    def _judge(self, name: str, result: dm.Result, shown: str) -> None:
        right = f"answer to {name}"
        if result.error_type == "Cancelled":
            self.seen.cancelled += 1
            if not right.startswith(shown):
                self.seen.crossed.append(f"{name}: {shown!r}")
        elif result.error:
            self.seen.failed.append(f"{name}: {result.error}")
        elif result.text != right:
            self.seen.crossed.append(f"{name}: {result.text!r}")
        else:
            self.seen.answered += 1

    def _fault(self, chance: random.Random) -> str:
        if not self._faults:
            return ""
        fault = chance.choice(FAULTS)
        return fault if fault != "stall" or chance.random() < 0.1 else ""  # each costs a second


def sockets() -> int:
    """How many sockets this process has open."""
    folder = "/proc/self/fd"
    count = 0
    for name in os.listdir(folder):
        try:
            count += os.readlink(f"{folder}/{name}").startswith("socket:")
        except OSError:
            continue
    return count
