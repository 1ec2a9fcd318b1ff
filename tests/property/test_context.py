"""Decisions about the context are a function of the record: the same after a resume anywhere, never taken back, and never in storage."""

from __future__ import annotations

import itertools
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from context.conversation import Service
from destinations import MAIN, connection, violation_in
from dragoman.context import prune_outdated
from dragoman.context.cache import Cache
from dragoman.context.decide import Decider, Decision, decide
from dragoman.context.settings import CompressSettings, ContextSettings, PruneRule, PruneSettings
from dragoman.context.shown import can_be_replaced
from dragoman.context.view import View
from dragoman.loop.history import History
from dragoman.testing.journal import MemoryJournal
from dragoman.values.messages import FinishReason, Message, Response, Text, ToolCall, ToolResult, assistant, user
from dragoman.values.profile import Profile
from dragoman.values.record import Entry, Pruned, Rewound, Said, ToolFinished, encode_entry
from dragoman.values.record_reading import decode_entry
from dragoman.values.usage import Prices, Usage
from property.conversations import TOOLS
from property.test_requests import prompt_of

START_MS = 1_790_000_000_000
MINUTE = 60_000
PAUSES = [0, 0, 1, 20_000, 3 * MINUTE, 6 * MINUTE, 15 * MINUTE, 15 * MINUTE + 1, -MINUTE]
MUCH = json.dumps({"stdout": "y" * 4_000, "stderr": "", "exitCode": 0})
WRITTEN = [
    "",
    "ok",
    "x" * 60,
    "世界" * 30,
    "Error: no",
    "Error: no such file or directory, and some more words about it",
    MUCH,
    json.dumps({"stdout": "", "stderr": "broken", "exitCode": 1}),
]
PROFILES = [
    Profile(context_window=30_000, prices=Prices(5, 25, cache_read=0.5, cache_write=6.25), token_scale=1.3),
    Profile(context_window=100_000, prices=Prices(2, 8, cache_read=0.5)),
    Profile(context_window=30_000, cache_min_tokens=1_024),
]

rules = st.sampled_from(
    [PruneRule(), PruneRule(keep=2, age_ms=MINUTE), PruneRule(keep=3, age_ms=0), PruneRule(("*",), age_ms=0, keep=1), PruneRule(keep=0)]
)
prunings = st.builds(
    PruneSettings,
    schedule=st.sampled_from(["auto", "auto", "request", "turn", "economic", "off"]),
    rule=rules,
    pressure=st.sampled_from([0.5, 0.1]),
    overhead=st.sampled_from([0.02, 1.0]),
)
settings = st.builds(ContextSettings, prunings, st.builds(CompressSettings, threshold=st.sampled_from([0.7, 0.1])))


services = st.one_of(st.none(), st.builds(Service, ttl_ms=st.sampled_from([5 * MINUTE, MINUTE]), falls_back=st.booleans()))


class Moment(msgspec.Struct, frozen=True):
    """How things stood before a request, what was decided, and what was then sent."""

    entries: int
    now_ms: int
    decision: Decision
    messages: tuple[Message, ...]
    sent_at: int
    """How many entries there were when it was sent."""


class Session:
    """A record driven by random choices, as an agent would drive it: a decision before each request, its entries first."""

    def __init__(self, data: st.DataObject, *, settings: ContextSettings | None = None) -> None:
        self.data = data
        self.settings = settings or data.draw(_settings)
        self.profile = data.draw(st.sampled_from(PROFILES))
        self.cache_kind = data.draw(st.sampled_from(["none", "implicit", "breakpoints"]))
        self.service = data.draw(services)
        """None: it reports whatever it likes."""
        self.busy = data.draw(st.booleans())
        """No pauses, and commands that write much."""
        self.now_ms = START_MS
        self.journal = MemoryJournal()
        self.history = History(self.journal, now_ms=lambda: self.now_ms)
        self.decider = Decider(self.settings)
        self.moments: list[Moment] = []
        self.history.configure("model", "Be brief. " * 50, TOOLS, deployment="here")
        self.numbers = itertools.count(1)

    def live(self, most: int = 4) -> Session:
        for _ in range(self.data.draw(st.integers(1, most))):
            self.step()
        self.history.say(user("next"))
        self.request()
        return self

    def step(self) -> None:
        self.history.say(user(f"prompt {len(self.history.entries)}"))
        for _ in range(self.data.draw(st.integers(4, 9) if self.busy else st.integers(0, 4))):
            self._tool_round()
            self._something_else()
        self._pause()
        self.request()
        if self.data.draw(st.booleans()):
            self._answer(assistant("done"))
        else:
            self.history.say(assistant("partial"))  # cancelled

    def decide(self, history: History, decider: Decider | None = None) -> Decision:
        return (decider or self.decider).decide(history.view, self.now_ms, history.cache, self.profile, cache_kind=self.cache_kind)

    def request(self) -> None:
        before = len(self.history.entries)
        decision = self.decide(self.history)
        apply(decision, self.history)
        if decision.compress and self.data.draw(st.booleans()):
            self._compress(decision)
        self.moments.append(Moment(before, self.now_ms, decision, self.history.curated(), len(self.history.entries)))

    def _pause(self) -> None:
        self.now_ms += 20_000 if self.busy else self.data.draw(st.sampled_from(PAUSES))

    def _answer(self, message: Message) -> None:
        if self.service is not None:
            usage = self.service.usage(self.history.view, self.now_ms)
        else:
            total = self.history.view.raw_tokens
            read = self.data.draw(st.sampled_from([0, total // 10, total // 2, total - 20]))
            usage = self.data.draw(st.sampled_from([Usage(0, read, total - read), Usage(total - read, read), Usage()]))
        finish = FinishReason.TOOL_CALLS if message.calls else FinishReason.STOP
        said = self.history.answer(Response(message, finish, usage=usage))
        if not message.calls and self.data.draw(st.integers(0, 5)) == 0:
            self.history.reject(said, "empty")

    def _tool_round(self) -> None:
        self._pause()
        self.request()
        names = self.data.draw(
            st.lists(st.sampled_from(["run_shell", "run_shell", "read_file"]), min_size=1, max_size=1 if self.busy else 3)
        )
        made = [ToolCall(f"c{next(self.numbers)}", name, "{}") for name in names]
        self._answer(Message("assistant", (Text("looking"), *made)))
        for call in self.data.draw(st.permutations(made)):
            self._pause()
            if self.data.draw(st.integers(0, 8)) == 0:
                continue  # never finished: a crash
            content = (Text(text),) if (text := MUCH if self.busy else self.data.draw(st.sampled_from(WRITTEN))) else ()
            is_error = self.data.draw(st.integers(0, 5)) == 0
            self.history.finish_tool(ToolResult(call.id, call.name, content, is_error), "failed" if is_error else "finished")
        if self.history.view.open_calls:
            self.history.say(user("go on"))

    def _something_else(self) -> None:
        history = self.history
        match self.data.draw(st.sampled_from(["none"] * (60 if self.busy else 8) + ["prune", "compress", "switch", "configure", "rewind"])):
            case "prune":
                known = [outcome.result.call_id for outcome in history.view.outcomes]
                history.prune(self.data.draw(st.lists(st.sampled_from(known), unique=True)) if known else [], 10, "pressure")
            case "compress":
                self._compress(self.decide(history))
            case "switch":
                history.change_model(self.data.draw(st.sampled_from(["model", "other"])))
            case "configure":
                history.configure("model", self.data.draw(st.sampled_from(["Be brief.", "Be long."])), TOOLS)
            case "rewind":
                prompts = [entry for entry in history.entries if isinstance(entry, Said) and entry.message.role == "user"]
                history.rewind(self.data.draw(st.sampled_from(prompts)))
            case _:
                pass

    def _compress(self, decision: Decision) -> None:
        if self.data.draw(st.integers(0, 3)) == 0:
            self.history.not_compressed("failed", decision.tokens)
            return
        first = self.history.view.items[0].seq if self.history.view.items and self.data.draw(st.booleans()) else 0
        self.history.compress(self.history.entries[-1], user("summary of all before"), decision.tokens, after=first)


_settings = settings


def apply(decision: Decision, history: History) -> None:
    if decision.prune:
        history.prune(decision.prune, decision.saved_tokens, decision.reason, decision.premium_tokens)


def resumed(entries: list[Entry], now_ms: int = START_MS) -> History:
    """From what lies on disk."""
    return History(entries=[decode_entry(encode_entry(entry)) for entry in entries], now_ms=lambda: now_ms)


def text_of(result: ToolResult) -> str:
    return "".join(part.text for part in result.content if isinstance(part, Text))


def folded(entries: list[Entry]) -> tuple[View, Cache]:
    view, cache = View(), Cache()
    for entry in entries:
        view.feed(entry)
        cache.feed(entry)
    return view, cache


@pytest.mark.parametrize("where", MAIN)
@given(data=st.data())
def test_a_session_resumed_anywhere_decides_and_sends_the_same(where: str, data: st.DataObject) -> None:
    """PRUNE-9: carry, learned cache life, pressure and what was tried are all in the record."""
    session = Session(data).live()
    provider = connection(where)
    for moment in session.moments:
        again = resumed(session.history.entries[: moment.entries], moment.now_ms)
        decision = Decider(session.settings).decide(again.view, moment.now_ms, again.cache, session.profile, cache_kind=session.cache_kind)
        assert decision == moment.decision
        apply(decision, again)
        if len(again.entries) == moment.sent_at:  # else a compression came between
            assert again.curated() == moment.messages
    live, fresh = session.history, resumed(session.history.entries)
    assert provider.prepare(fresh.request).body == provider.prepare(live.request).body


@given(data=st.data())
def test_deciding_is_pure(data: st.DataObject) -> None:
    """Whatever a decider saw before, and however often it is asked, the answer is that of one who sees it for the first time."""
    session = Session(data).live()
    strange = Decider(session.settings)
    strange.decide(Session(data, settings=session.settings).live(2).history.view, START_MS, Cache(), session.profile)
    for moment in session.moments:
        view, cache = folded(session.history.entries[: moment.entries])
        messages, calls = view.messages, list(cache.calls)
        arguments = (moment.now_ms, cache, session.profile)
        first = decide(view, session.settings, *arguments, cache_kind=session.cache_kind)
        assert first == strange.decide(view, *arguments, cache_kind=session.cache_kind) == moment.decision
        assert first == session.decider.decide(view, *arguments, cache_kind=session.cache_kind)
        assert all(before is after for before, after in zip(messages, view.messages, strict=True))
        assert cache.calls == calls


@given(data=st.data())
def test_what_was_pruned_stays_pruned(data: st.DataObject) -> None:
    """Until the user goes back to before it."""
    session = Session(data).live()
    view, gone = View(), dict[str, ToolResult]()
    for entry in session.history.entries:
        view.feed(entry)
        shown = {result.call_id: result for message in view.messages for result in message.results}
        if isinstance(entry, Rewound):
            gone = {call_id: shown[call_id] for call_id in view.pruned & shown.keys()}
        for call_id, placeholder in gone.items():
            assert shown.get(call_id, placeholder) == placeholder
        gone |= {call_id: shown[call_id] for call_id in view.pruned & shown.keys()}
    decided = [call_id for moment in session.moments for call_id in moment.decision.prune]
    if not any(isinstance(entry, Rewound) for entry in session.history.entries):
        assert len(decided) == len(set(decided)), "decided once"


@pytest.mark.parametrize("where", MAIN)
@given(data=st.data())
def test_without_an_entry_that_says_otherwise_a_request_extends_the_last(where: str, data: st.DataObject) -> None:
    session = Session(data).live()
    provider = connection(where)
    view, before, fed = View(), b"", 0
    for moment in session.moments:
        new = session.history.entries[fed : moment.sent_at]
        for entry in new:
            view.feed(entry)
        body = provider.prepare(view.request).body
        if all(isinstance(entry, Said | ToolFinished) for entry in new):
            assert prompt_of(body, closed=True).startswith(before)
        before, fed = prompt_of(body), moment.sent_at


@given(data=st.data())
def test_an_entry_is_made_only_where_something_goes(data: st.DataObject) -> None:
    """So that nothing breaks the prefix for nothing; and each makes the request shorter by about what it says."""
    session = Session(data).live()
    for moment in session.moments:
        view, _ = folded(session.history.entries[: moment.entries])
        decision, scale = moment.decision, view.meter.scale(session.profile.token_scale)
        assert bool(decision.prune) == bool(decision.reason)
        if not decision.prune:
            assert (decision.saved_tokens, decision.premium_tokens) == (0, 0)
            continue
        before, raw = view.messages, view.raw_tokens
        view.feed(Pruned(10_000, 0, decision.prune))
        assert set(decision.prune) <= view.pruned
        assert all(
            old != new for old, new in zip(before, view.messages, strict=True) if {r.call_id for r in old.results} & {*decision.prune}
        )
        assert decision.saved_tokens == pytest.approx(max(scale * (raw - view.raw_tokens), 0), abs=scale * (len(decision.prune) + 1) + 1)


@given(data=st.data())
def test_the_record_is_never_touched(data: st.DataObject) -> None:
    """PRUNE-8."""
    session = Session(data)
    before: list[bytes] = []
    for _ in range(3):
        session.step()
        now = [encode_entry(entry) for entry in session.history.entries]
        assert now[: len(before)] == before
        before = now
    assert [encode_entry(entry) for entry in session.journal.entries] == before
    written = [entry.result for entry in session.history.entries if isinstance(entry, ToolFinished)]
    told = [result for message in session.history.transcript() for result in message.results]
    assert told == written


@pytest.mark.parametrize("where", MAIN)
@given(data=st.data())
def test_every_request_is_valid_everywhere(where: str, data: st.DataObject) -> None:
    """After any mix of pruning, compressing, cancelling, switching and going back."""
    session = Session(data).live()
    provider = connection(where)
    for moment in session.moments:
        view, _ = folded(session.history.entries[: moment.sent_at])
        found = violation_in(provider, provider.prepare(view.request).body)
        assert found is None, found


@given(data=st.data())
def test_a_placeholder_is_never_longer_than_what_it_replaces(data: st.DataObject) -> None:
    session = Session(data).live()
    written = {entry.result.call_id: entry.result for entry in session.history.entries if isinstance(entry, ToolFinished)}
    for moment in session.moments:
        for result in (result for message in moment.messages for result in message.results):
            was = written.get(result.call_id)
            if was is not None and result != was:
                assert text_of(result) == session.history.view.placeholder
                assert len(text_of(result)) < len(text_of(was))
                assert (result.name, result.is_error) == (was.name, was.is_error)


@given(data=st.data(), rule=rules)
def test_by_request_what_goes_is_what_the_rule_alone_says(data: st.DataObject, rule: PruneRule) -> None:
    session = Session(data, settings=ContextSettings(PruneSettings("request", rule))).live()
    for moment in session.moments:
        view, _ = folded(session.history.entries[: moment.entries])
        assert moment.decision.prune == eligible(view, moment.now_ms, rule)


@given(data=st.data())
def test_whatever_the_schedule_all_that_the_rule_lets_go_goes_or_nothing(data: st.DataObject) -> None:
    session = Session(data).live()
    for moment in session.moments:
        view, cache = folded(session.history.entries[: moment.entries])
        schedule, allowed = session.settings.prune.schedule, eligible(view, moment.now_ms, session.settings.prune.rule)
        if schedule != "request":
            allowed = tuple(call_id for call_id in allowed if call_id in seen_by_the_model(view))
        assert moment.decision.prune in ((), allowed)
        if schedule in ("auto", "economic") and not cache.is_warm(moment.now_ms):
            assert moment.decision.prune == allowed, "cold or broken: at once"


def seen_by_the_model(view: View) -> set[str]:
    """Results that an answer came after."""
    answers = [position for position, message in enumerate(view.messages) if message.role == "assistant"]
    return {result.call_id for message in view.messages[: answers[-1] if answers else 0] for result in message.results}


def eligible(view: View, now_ms: int, rule: PruneRule) -> tuple[str, ...]:
    """By the public function, over plain records."""
    plain = [
        {
            "tool": outcome.result.name,
            "timestamp_ms": outcome.timestamp_ms,
            "content": text_of(outcome.result),
            "is_error": outcome.result.is_error,
        }
        for outcome in view.outcomes
    ]
    found = [view.outcomes[index].result for index in prune_outdated(plain, now_ms, rule)]
    return tuple(result.call_id for result in found if result.call_id not in view.pruned and can_be_replaced(result, view.placeholder))
