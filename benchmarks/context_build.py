"""One round of a long session: new entries, a decision, the request, its bytes. `python -m benchmarks.context_build PROTOCOL COUNT`."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks import history as sample_history
from benchmarks import ours, sample
from benchmarks.recording import PROTOCOLS
from benchmarks.sample import best, interleaved, module
from benchmarks.table import Table
from dragoman.context.decide import Decider, Decision
from dragoman.context.settings import ContextSettings, PruneRule, PruneSettings
from dragoman.loop.history import History
from dragoman.values.messages import FinishReason, Message, Response, Settings
from dragoman.values.profile import Profile
from dragoman.values.usage import Prices, Usage

ROUNDS = 9
BETWEEN_MS = 20_000
"""From one entry to the next: the cache stays warm, and all but the newest results are old enough to go."""
PROFILE = Profile(context_window=10**9, prices=Prices(5, 25, cache_read=0.5, cache_write=6.25))
STEPS = ("feed", "decide", "request", "prepare", "round")


def run(quick: bool) -> list[Table]:
    counts, repetitions = ((500,), 1) if quick else ((500, 5_000, 50_000), 3)
    columns = ["protocol", "messages", "MB", *(f"{step} ms" for step in STEPS), "rendered", "pending", "floor ms", "round × floor"]
    table = Table("One round of a long session: CPU ms", columns)
    pruned = Table(
        "A round that prunes: CPU ms",
        ["protocol", "messages", "results pruned", "rendered", "decide and prune ms", "round ms", "next decide ms"],
    )
    for count, protocol in itertools.product(counts, PROTOCOLS):
        argv = module("context_build", protocol, str(count))
        told = interleaved({protocol: lambda argv=argv: json.loads(sample.run(argv).said)}, repetitions)[protocol]
        least = {key: best([each[key] for each in told]) for key in told[0]}
        steps = [least[step] for step in STEPS]
        ratio = least["round"] / least["floor"]
        table.rows.append(
            [protocol, count, least["bytes"] / 1e6, *steps, int(least["rendered"]), int(least["pending"]), least["floor"], ratio]
        )
        pruned.rows.append(
            [protocol, count, int(least["gone"]), int(least["rendered_after"]), least["prune"], least["prune_round"], least["next_decide"]]
        )
    table.notes = [
        "Feed: an answer with a call and its result, to the record, the view and what is known of the cache. Decide: whether it pays to"
        " prune (not applied here). Request and prepare: the request and its bytes. Round: all of it.",
        "Rendered: messages rendered for one round. It is checked: the two new ones. Pending: outdated results that are still there.",
        "Floor: json.dumps of the equivalent body, compact, to UTF-8.",
        f"Every sample is a fresh process; best of {repetitions} rounds, inside each the best of {ROUNDS}.",
    ]
    pruned.notes = [
        "Everything pending goes at once. Rendered: the messages whose results went, and the two new ones.",
        "Next decide: in the rounds after it, when next to nothing is pending.",
    ]
    return [table, pruned]


def worker(protocol: str, count: str) -> None:
    session = Session(protocol, int(count))
    rounds = [session.round() for _ in range(ROUNDS)]
    assert {each["rendered"] for each in rounds[1:]} == {2}, rounds
    told: dict[str, float] = {step: min(each[step] for each in rounds[1:]) for step in (*STEPS, "rendered", "pending", "bytes")}
    body = json.loads(session.body)
    told["floor"] = min(_cpu_ms(lambda: json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode())[0] for _ in range(5))
    print(json.dumps(told | session.pruning_round()))


class Session:
    """Held with a service whose cache works, one call of a tool to an answer."""

    def __init__(self, protocol: str, count: int) -> None:
        self.provider: Any = ours.provider(protocol, "http://127.0.0.1:1").provider
        self.model = ours.MODELS[protocol].partition("/")[2]
        self.now_ms = 1_790_000_000_000
        self.history = History(now_ms=self._tick)
        self.decider = Decider(ContextSettings(PruneSettings("economic", PruneRule(tools=("*",)))))
        self.history.configure(self.model, sample_history.SYSTEM, sample_history.TOOLS, Settings(), session_id="s", deployment="here")
        self.more: Iterator[Message] = iter(sample_history.messages(count + 8 * ROUNDS))
        self.body = b""
        self._sent_tokens = 0
        for message in itertools.islice(self.more, count):
            self._feed(message)

    def round(self) -> dict[str, float]:
        """The costs of one: from an answer with a call to the bytes of the next request."""
        before = self.provider.messages_rendered(self.model)
        new = self._next_call()
        feed, _ = _cpu_ms(lambda: [self._feed(message) for message in new])
        decide, _ = _cpu_ms(self._decide)
        request, asked = _cpu_ms(lambda: self.history.request)
        prepare, prepared = _cpu_ms(lambda: self.provider.prepare(asked))
        self.body = prepared.body
        told = {"feed": feed, "decide": decide, "request": request, "prepare": prepare, "round": feed + decide + request + prepare}
        rendered = self.provider.messages_rendered(self.model) - before
        return told | {"rendered": rendered, "pending": self._pending(), "bytes": len(self.body)}

    def pruning_round(self) -> dict[str, float]:
        """The cache has got cold."""
        before = self.provider.messages_rendered(self.model)
        feed, _ = _cpu_ms(lambda: [self._feed(message) for message in self._next_call()])
        self.now_ms += 3_600_000

        def prune() -> Decision:
            decision = self._decide()
            self.history.prune(decision.prune, decision.saved_tokens, decision.reason)
            return decision

        prune_ms, decision = _cpu_ms(prune)
        rest, _ = _cpu_ms(lambda: self.provider.prepare(self.history.request))
        rendered = self.provider.messages_rendered(self.model) - before
        assert rendered == len(decision.prune) + 2, (rendered, len(decision.prune))
        told = {"gone": len(decision.prune), "rendered_after": rendered, "prune": prune_ms, "prune_round": feed + prune_ms + rest}
        return told | {"next_decide": min(self.round()["decide"] for _ in range(5))}

    def _next_call(self) -> list[Message]:
        """An answer with a call, and its result."""
        answer = next(message for message in self.more if message.calls)
        return [answer, next(self.more)]

    def _feed(self, message: Message) -> None:
        if message.role == "assistant":
            tokens = self.history.view.raw_tokens
            usage = Usage(0, self._sent_tokens, tokens - self._sent_tokens, 50)
            self._sent_tokens = tokens
            self.history.answer(Response(message, FinishReason.STOP, usage=usage))
        elif message.results:
            for result in message.results:
                self.history.finish_tool(result)
        else:
            self.history.say(message)

    def _decide(self) -> Decision:
        return self.decider.decide(self.history.view, self.now_ms, self.history.cache, PROFILE)

    def _pending(self) -> int:
        return len(self.decider._pending(self.history.view, self.now_ms))

    def _tick(self) -> int:
        self.now_ms += BETWEEN_MS
        return self.now_ms


def _cpu_ms(do: Callable[[], Any]) -> tuple[float, Any]:
    before = time.process_time()
    made = do()
    return (time.process_time() - before) * 1000, made


if __name__ == "__main__":
    worker(*sys.argv[1:])
