"""A record with a clock of its own, held with a service that has a prompt cache and reports what it read."""

from __future__ import annotations

import json
from collections.abc import Callable

from dragoman.context.decide import Decider, Decision
from dragoman.context.settings import ContextSettings
from dragoman.context.view import View
from dragoman.loop.history import History
from dragoman.values.messages import FinishReason, Message, Response, ToolCall, ToolSpec, assistant, tool_result, user
from dragoman.values.profile import Profile
from dragoman.values.record import Entry, Journal
from dragoman.values.usage import Prices, Usage

NOW_MS = 1_790_000_000_000
SECOND, MINUTE = 1_000, 60_000
PRICED = Profile(context_window=1_000_000, prices=Prices(5, 25, cache_read=0.5, cache_write=6.25))
"""As Anthropic prices it: r = 0.1, w = 1.25."""
PLAIN = Profile(context_window=1_000_000, prices=Prices(5, 25))
"""No price for the cache."""
TOOLS = (ToolSpec.of("run_shell", "Run a command.", {"type": "object"}),)


class Service:
    """Counts a request as our raw estimate does, and keeps a prefix as long as `ttl_ms`."""

    def __init__(self, *, ttl_ms: int = 5 * MINUTE, falls_back: bool = False, caches: bool = True) -> None:
        self.ttl_ms = ttl_ms
        self.falls_back = falls_back
        self.caches = caches
        self._key: object = None
        self._sent: list[tuple[Message, int]] = []
        self._used_ms = 0

    def usage(self, view: View, now_ms: int) -> Usage:
        sent = [(item.message, item.raw_tokens) for item in view.items]
        key = (view.deployment, view.model, view.system, view.tools)
        read = 0
        if self.caches and key == self._key and now_ms - self._used_ms <= self.ttl_ms:
            same = next((n for n, (old, new) in enumerate(zip(self._sent, sent, strict=False)) if old[0] != new[0]), None)
            changed = same is not None or len(sent) < len(self._sent)
            shared = len(self._sent) if same is None else same
            read = view.raw_static + (0 if changed and self.falls_back else sum(tokens for _, tokens in sent[:shared]))
        self._key, self._sent, self._used_ms = key, sent, now_ms
        return Usage(0, read, view.raw_tokens - read, 10) if self.caches else Usage(view.raw_tokens, output_tokens=10)


class Conversation:
    """Driven as an agent would: a decision before each request, its entries first."""

    def __init__(
        self,
        settings: ContextSettings | None = None,
        profile: Profile = PRICED,
        service: Service | None = None,
        *,
        journal: Journal | None = None,
        entries: tuple[Entry, ...] = (),
        cache_kind: str = "none",
        start_ms: int = NOW_MS,
    ) -> None:
        self.now_ms = start_ms
        self.history = History(journal, entries=entries, now_ms=lambda: self.now_ms)
        self.settings = settings or ContextSettings()
        self.decider = Decider(self.settings)
        self.profile = profile
        self.service = service or Service()
        self.cache_kind = cache_kind
        self.decisions: list[Decision] = []
        if not entries:
            self.history.configure("model", "Be brief. " * 400, TOOLS, deployment="here")

    @property
    def view(self) -> View:
        return self.history.view

    @property
    def pruned(self) -> list[Decision]:
        return [decision for decision in self.decisions if decision.prune]

    def wait(self, ms: int) -> None:
        self.now_ms += ms

    def decide(self) -> Decision:
        return self.decider.decide(self.view, self.now_ms, self.history.cache, self.profile, cache_kind=self.cache_kind)

    def request(self) -> Decision:
        """The decision before a request, and the entry it becomes."""
        decision = self.decide()
        self.decisions.append(decision)
        if decision.prune:
            self.history.prune(decision.prune, decision.saved_tokens, decision.reason, decision.premium_tokens)
        return decision

    def prompt(self, text: str = "go on") -> None:
        self.history.say(user(text))

    def answer(self, message: Message | None = None, usage: Usage | None = None) -> Decision:
        decision = self.request()
        used = usage or self.service.usage(self.view, self.now_ms)
        said = message or assistant("done")
        self.history.answer(Response(said, FinishReason.TOOL_CALLS if said.calls else FinishReason.STOP, usage=used))
        return decision

    def command(
        self, stdout: str = "x" * 4_000, *, name: str = "run_shell", stderr: str = "", code: int = 0, takes_ms: int = 10 * SECOND
    ) -> Decision:
        """The model runs a command, and its result is there a little later."""
        call = ToolCall(f"c{len(self.history.entries)}", name)
        decision = self.answer(assistant("looking", call))
        self.wait(takes_ms)
        written = json.dumps({"stdout": stdout, "stderr": stderr, "exitCode": code}) if name == "run_shell" else stdout
        self.history.finish_tool(tool_result(call, written))
        return decision

    def commands(self, count: int, each: Callable[[], object] | None = None) -> None:
        for _ in range(count):
            (each or self.command)()

    def shown(self, call_id: str) -> str:
        """What the model is sent as the result of that call."""
        return next(part.content[0].text for item in self.view.items for part in item.message.results if part.call_id == call_id)  # type: ignore[union-attr]
