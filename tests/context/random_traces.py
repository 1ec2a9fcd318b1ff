"""Sessions that never were: calls at random times with random results, and such as are meant to make pruning dear."""

from __future__ import annotations

from random import Random

from dragoman.context.economics import Rates
from dragoman.context.settings import PruneRule
from dragoman.context.trace import TracedCall, TracedPiece, TracedResult

ANTHROPIC = Rates(0.1, 1.25)
RATES = {
    "Anthropic 5m": ANTHROPIC,
    "Anthropic 1h": Rates(0.1, 2.0, 3_600_000),
    "no write price": Rates(0.1, 1.0, 600_000),
    "dear reads": Rates(0.5, 1.0),
    "free reads": Rates(0.0, 1.0),
    "no cache": Rates(1.0, 1.0, 0),
}
RULES = (PruneRule(), PruneRule(tools=("*",), age_ms=0, keep=5), PruneRule(tools=("*",), age_ms=60_000, keep=1), PruneRule(("*",), 0, 0))


def some_rates(random: Random) -> Rates:
    falls_back = random.random() < 0.5
    if random.random() < 0.7:
        known = random.choice(list(RATES.values()))
        return Rates(known.read, known.write, known.ttl_ms, falls_back)
    read = random.choice((0.0, random.random()))
    return Rates(read, read + random.random() * 2, random.choice((0, 1, 60_000, 300_000)), falls_back)


def some_calls(random: Random, most: int = 40) -> list[TracedCall]:
    return _adversarial(random, most) if random.random() < 0.3 else _lived(random, most)


class _Trace:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.calls: list[TracedCall] = []
        self.pieces: list[TracedPiece] = []
        self.now_ms = 1_700_000_000_000
        self.results = 0

    def result(self, tokens: float, *, tool: str = "run_shell", age_ms: int | None = 0, is_error: bool = False) -> TracedPiece:
        self.results += 1
        timestamp = None if age_ms is None else self.now_ms - age_ms
        return TracedPiece(
            tokens, TracedResult(f"r{self.results}", tool, timestamp, "text", is_error, self.random.choice((0, 5, min(8, tokens), tokens)))
        )

    def call(
        self, added: list[TracedPiece], *, shared: int | None = None, static: float = 1000, broken: bool = False, prompt: bool = False
    ) -> None:
        shared = len(self.pieces) if shared is None else shared
        self.pieces[shared:] = added
        self.calls.append(TracedCall(self.now_ms, tuple(added), shared, static, prompt, broken))


def _lived(random: Random, most: int) -> list[TracedCall]:
    """Prompts, rounds and pauses; now and then a compression, a rewind, another model."""
    trace = _Trace(random)
    static = random.choice((0, 500, 30_000))
    for _ in range(random.randint(1, most)):
        trace.now_ms += random.choice((0, 900, 20_000, 59_999, 299_999, 300_000, 300_001, 901_000, 3_600_001))
        added = [TracedPiece(random.choice((0, 3, 200, 4_000)))]
        for _ in range(random.choice((0, 1, 1, 1, 2, 7))):
            size = int(10 ** random.uniform(0, 4.7))
            tool = random.choice(("run_shell", "read_file", "bash", ""))
            added.append(trace.result(size, tool=tool, age_ms=random.choice((0, 0, 0, 5_000, None)), is_error=random.random() < 0.1))
        shared = None
        if random.random() < 0.05:
            shared = random.randint(0, len(trace.pieces))
            kept = trace.pieces[random.randint(shared, len(trace.pieces)) :] if random.random() < 0.5 else []
            added = [TracedPiece(random.choice((10, 2_000))), *kept, *added]
        if random.random() < 0.05:
            static = random.choice((0, 500, 30_000))
        trace.call(added, shared=shared, static=static, broken=random.random() < 0.03, prompt=random.random() < 0.2)
    return trace.calls


def some_lively_calls(random: Random) -> list[TracedCall]:
    """Commands mostly, and no pause long enough for a cache to get cold: what is outdated piles up."""
    trace = _Trace(random)
    static, pace_ms = random.choice((0, 3_000, 15_000)), random.choice((20_000, 60_000, 120_000))
    added = [TracedPiece(200)]
    for number in range(random.randint(20, 100)):
        trace.call(added, static=static, prompt=number == 0)
        trace.now_ms += round(pace_ms * random.uniform(0.5, 2))
        tool = random.choice(("run_shell", "run_shell", "run_shell", "read_file"))
        result = trace.result(int(10 ** random.uniform(1.5, 4)), tool=tool, age_ms=1_000, is_error=random.random() < 0.1)
        added = [TracedPiece(random.randint(30, 400)), result]
    return trace.calls


def _adversarial(random: Random, most: int) -> list[TracedCall]:
    """What hurts: much that survives behind little that may go, again and again, and nothing after it is gone."""
    trace = _Trace(random)
    burden = 10 ** random.uniform(2, 5)
    small = burden * 10 ** random.uniform(-2, 1)
    waits = random.randint(0, 12)
    for number in range(random.randint(2, most)):
        trace.now_ms += random.choice((1_000, 1_000, 1_000, 299_999))
        added = [TracedPiece(1)]
        if number % (waits + 1) == 0:
            added = [trace.result(small * random.choice((1, 1, 2)), age_ms=3_600_000), TracedPiece(burden)]
        trace.call(added, static=random.choice((0, 0, 1000)) if number == 0 else trace.calls[0].static, prompt=number % 9 == 0)
    return trace.calls
