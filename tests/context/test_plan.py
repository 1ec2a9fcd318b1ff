"""The plan tells of everything that was said: what the next request holds, what was left out of it, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.context.cache import Cache
from dragoman.context.decide import Decision
from dragoman.context.environment import Surroundings, environment_text
from dragoman.context.plan import Plan, Pruning, plan_of
from dragoman.context.plan_items import PlanItem
from dragoman.context.view import View
from dragoman.foreign.sessions import import_session
from dragoman.loop.history import History
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.messages import (
    Blob,
    FinishReason,
    Message,
    Response,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    assistant,
    tool_result,
    user,
)
from dragoman.values.record import Entry, Said, ToolFinished
from dragoman.values.usage import Prices, Usage
from property.conversations import TOOLS
from property.test_fold import lived

MINUTE_MS = 60_000


def folded(entries: Sequence[Entry]) -> tuple[View, Cache]:
    view, cache = View(), Cache()
    for entry in entries:
        view.feed(entry)
        cache.feed(entry)
    return view, cache


def plan(entries: Sequence[Entry], **options: object) -> Plan:
    view, cache = folded(entries)
    return plan_of(view, entries, cache, **options)  # pyrefly: ignore


def only(found: Plan, **wanted: object) -> PlanItem:
    [item] = [each for each in found.items if all(getattr(each, name) == value for name, value in wanted.items())]
    return item


# --- properties, over random sessions


@given(data=st.data(), prior=st.floats(0.5, 2))
def test_what_is_kept_adds_up_to_the_estimate(data: st.DataObject, prior: float) -> None:
    entries = lived(data).history.entries
    found = plan(entries, prior=prior)
    assert found.tokens == folded(entries)[0].tokens(prior)
    assert sum(item.tokens for item in found.items) == found.tokens
    assert sum(total.tokens for total in found.totals) == found.tokens
    assert all(item.tokens >= 0 and item.whole_tokens >= item.tokens for item in found.items)
    assert all(item.tokens == 0 for item in found.items if item.state not in ("kept", "pruned"))


@given(data=st.data())
def test_every_result_stands_in_the_plan_once(data: st.DataObject) -> None:
    entries = lived(data).history.entries
    results = [item for item in plan(entries).items if item.kind == "result"]
    ended = Counter(entry.result.call_id for entry in entries if isinstance(entry, ToolFinished))
    called = Counter(call.id for entry in entries if isinstance(entry, Said) for call in entry.message.calls)
    found = Counter(item.call_id for item in results)
    assert all(found[call_id] == count for call_id, count in ended.items())
    standing = Counter(item.call_id for item in plan(entries).items if item.kind == "call" and item.reason not in ("rewound", "rejected"))
    assert all(found[call_id] == count for call_id, count in standing.items())
    assert set(found) <= set(called)


@given(data=st.data())
def test_everything_said_stands_in_the_plan_once(data: st.DataObject) -> None:
    history = lived(data).history
    found = plan(history.entries)
    said = [entry for entry in history.entries if isinstance(entry, Said)]
    spoken = [item for item in found.items if item.kind not in ("result", "summary", "system", "tools", "unseen")]
    assert {item.seq for item in spoken} == {entry.seq for entry in said}
    shown = {(item.seq, item.message) for item in history.view.items}
    assert {item.seq for item in spoken if item.state == "kept"} == {entry.seq for entry in said if (entry.seq, entry.message) in shown}


@given(data=st.data())
def test_whatever_was_left_out_has_a_reason(data: st.DataObject) -> None:
    entries = lived(data).history.entries
    for item in plan(entries).items:
        if item.state in ("summarised", "dropped", "pruned"):
            assert item.reason
            assert item.by_seq or item.reason == "unmatched"
        else:
            assert item.reason in ("", "interrupted", "waiting", "open")


@given(data=st.data())
def test_the_items_of_the_request_stand_in_its_order(data: st.DataObject) -> None:
    history = lived(data).history
    order = {item.seq: place for place, item in enumerate(history.view.items) if not item.message.results}
    said = [item for item in plan(history.entries).items if item.state == "kept" and item.kind in ("prompt", "answer", "call", "thinking")]
    places = [order[item.seq] for item in said]
    assert places == sorted(places)


@given(data=st.data())
def test_planning_changes_nothing(data: st.DataObject) -> None:
    history = lived(data).history
    before = history.request, list(history.entries)
    assert plan(history.entries) == plan(history.entries)
    assert (history.request, list(history.entries)) == before


TRACES = ("pi-mono/large-session.jsonl", "claude-code/2caf2337-66bf-41d1-ad27-9d2cab7bd2dc.jsonl")


@pytest.mark.parametrize("name", TRACES)
def test_real_sessions_are_planned_whole(name: str, corpora: Path) -> None:
    entries = import_session(corpora / "traces" / name, MemoryBlobs()).entries
    for count in range(len(entries), 0, -max(len(entries) // 8, 1)):
        found = plan(entries[:count])
        assert sum(item.tokens for item in found.items) == found.tokens
        results = Counter(item.seq for item in found.items if item.kind == "result" and item.reason not in ("open", "interrupted"))
        assert results == Counter(entry.seq for entry in entries[:count] if isinstance(entry, ToolFinished))
        assert all(item.reason for item in found.items if item.state not in ("kept", "pruned"))


# --- examples


class Scene:
    """A session with a clock that is set by hand."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000
        self.history = History(now_ms=lambda: self.now_ms)
        self.history.configure("claude", "Be brief.", TOOLS, session_id="s1", deployment="anthropic")

    def call(self, number: int, output: str = "x" * 800, name: str = "run_shell", *, usage: Usage | None = None) -> ToolCall:
        call = ToolCall(f"c{number}", name, f'{{"command":"make {number}"}}')
        said = Message("assistant", (Thought("Hm."), Text("Running it."), call))
        self.history.answer(Response(said, FinishReason.TOOL_CALLS, usage=usage or Usage(500)))
        self.history.start_tool(call)
        self.history.finish_tool(tool_result(call, output))
        self.now_ms += MINUTE_MS
        return call

    def plan(self, **options: object) -> Plan:
        return plan(self.history.entries, **options)


def test_the_request_part_by_part() -> None:
    scene = Scene()
    facts = Surroundings("today", "Linux", ("/work",), memory=(("AGENTS.md", "Always test.\n" * 40), ("CLAUDE.md", "Be kind.")))
    scene.history.say(user(environment_text(facts)), "environment")
    scene.history.say(user("Fix it", Blob("image/png", "0" * 64, 99)))
    scene.call(1)
    found = scene.plan(window=200_000)
    assert [item.kind for item in found.items if item.kind != "unseen"] == [
        *("system", "tools", "tools", "environment", "memory", "memory", "prompt", "thinking", "answer", "call", "result")
    ]
    assert [item.name for item in found.items if item.kind == "memory"] == ["AGENTS.md", "CLAUDE.md"]
    assert only(found, name="AGENTS.md").tokens > only(found, name="CLAUDE.md").tokens > 0
    assert only(found, kind="prompt").about == "Fix it[image/png, 99 bytes]"
    assert only(found, kind="call").about == "$ make 1"
    assert (found.session_id, found.deployment, found.model, found.window) == ("s1", "anthropic", "claude", 200_000)


def test_what_was_pruned_says_when_why_and_how_much() -> None:
    scene = Scene()
    scene.history.say(user("Go"))
    for number in range(4):
        scene.call(number)
    pruned = scene.history.prune(["c1", "c2"], 400, "the cache is cold", 120)
    scene.call(9)
    found = scene.plan()
    gone = [item for item in found.items if item.state == "pruned"]
    assert [item.call_id for item in gone] == ["c1", "c2"]
    assert {(item.reason, item.by_seq, item.detail) for item in gone} == {("outdated", pruned.seq, "the cache is cold")}
    assert all(item.about.startswith("xxx") and item.whole_tokens > 5 * item.tokens > 0 for item in gone)
    savings = found.savings
    assert (savings.results, savings.premium_tokens) == (2, 120)
    assert savings.prunings == (Pruning(pruned.seq, pruned.timestamp_ms, 2, 400, 120, "the cache is cold"),)
    assert savings.tokens == sum(item.whole_tokens - item.tokens for item in gone)
    assert savings.not_sent_tokens == 400, "one request was made since"
    [total] = [total for total in found.totals if total.name == "run_shell"]
    assert (total.items, total.whole_tokens - total.tokens) == (5, savings.tokens)


def test_what_was_dropped_says_by_what() -> None:
    scene = Scene()
    first = scene.history.say(user("Go"))
    bad = scene.history.answer(Response(assistant("?"), FinishReason.STOP))
    rejected = scene.history.reject(bad, "it was empty")
    scene.call(1)
    before = scene.history.entries[-1]
    scene.history.say(user("Wrong way"))
    scene.call(2)
    rewound = scene.history.rewind(before)
    late = scene.history.finish_tool(ToolResult("c7", "run_shell", (Text("too late"),)))
    found = scene.plan()
    assert only(found, seq=bad.seq).reason == "rejected"
    assert (only(found, seq=bad.seq).by_seq, only(found, seq=bad.seq).detail) == (rejected.seq, "it was empty")
    taken_back = [item for item in found.items if item.reason == "rewound"]
    assert [item.kind for item in taken_back] == ["prompt", "thinking", "answer", "call", "result"]
    assert {item.by_seq for item in taken_back} == {rewound.seq}
    assert (only(found, seq=late.seq).state, only(found, seq=late.seq).reason) == ("dropped", "unmatched")
    assert only(found, seq=first.seq).state == "kept"


def test_results_of_an_answer_that_was_rejected_go_with_it() -> None:
    scene = Scene()
    scene.history.say(user("Go"))
    calls = (ToolCall("a", "read_file"), ToolCall("b", "run_shell"))
    bad = scene.history.answer(Response(Message("assistant", calls), FinishReason.TOOL_CALLS))
    ended = scene.history.finish_tool(tool_result(calls[0], "text"))
    rejected = scene.history.reject(bad, "it was cut")
    item = only(scene.plan(), seq=ended.seq)
    assert (item.state, item.reason, item.by_seq, item.detail) == ("dropped", "rejected", rejected.seq, "it was cut")


def test_the_rewind_that_took_something_back_is_the_first() -> None:
    scene = Scene()
    start = scene.history.say(user("One"))
    middle = scene.history.say(user("Two"))
    late = scene.history.say(user("Three"))
    first = scene.history.rewind(middle)
    second = scene.history.rewind(start)
    found = scene.plan()
    assert only(found, seq=late.seq).by_seq == first.seq
    assert only(found, seq=middle.seq).by_seq == second.seq
    scene.history.rewind(late)
    assert {item.reason for item in scene.plan().items if item.kind == "prompt"} == {""}, "a rewind can go forward again"


def test_what_is_summed_up_is_no_longer_saved_by_pruning() -> None:
    scene = Scene()
    scene.history.say(user("Go"))
    scene.call(1)
    scene.history.prune(["c1"], 400)
    scene.call(2)
    scene.history.compress(scene.history.entries[-1], user("Summary"))
    scene.call(3)
    assert scene.plan().savings.not_sent_tokens == 400


def test_a_larger_model_is_told_of_the_summary_and_the_pruning_that_hold_for_it() -> None:
    """Not of those that a smaller window had forced before."""
    scene = Scene()
    said = scene.history.say(user("Go"))
    scene.call(1)
    end = scene.history.entries[-1]
    scene.call(2)
    scene.history.change_model("small", "", 8_000)
    scene.history.prune(["c2"], 400, "it was full", window=8_000)
    scene.history.compress(end, user("Small summary"), window=8_000)
    small = scene.plan()
    assert only(small, call_id="c2", kind="result").window == only(small, seq=said.seq).window == 8_000
    scene.history.change_model("large", "", 200_000)
    pruned = scene.history.prune(["c2"], 400, "the cache is cold")
    compressed = scene.history.compress(end, user("Summary"))
    large = scene.plan()
    assert only(large, call_id="c2", kind="result").by_seq == pruned.seq
    assert (only(large, seq=said.seq).by_seq, only(large, seq=said.seq).window) == (compressed.seq, 0)


def test_what_was_summarised_says_by_what_and_a_summary_may_be_summarised() -> None:
    scene = Scene()
    setup = scene.history.say(user(environment_text(Surroundings("today", "Linux", ("/work",)))), "environment")
    scene.history.say(user("Go"))
    scene.call(1)
    one = scene.history.compress(scene.history.entries[-1], user("First summary"), after=setup)
    scene.call(2)
    two = scene.history.compress(scene.history.entries[-1], user("Second summary"), after=setup)
    scene.history.say(user("And now?"))
    found = scene.plan()
    by = {item.seq: item.by_seq for item in found.items if item.state == "summarised"}
    assert set(by.values()) == {one.seq, two.seq}
    assert by[one.seq] == two.seq
    assert only(found, kind="summary", state="kept").about == "Second summary"
    assert only(found, kind="environment").state == "kept"
    kept = [item.kind for item in found.items if item.state == "kept" and item.kind != "unseen"]
    assert kept == ["system", "tools", "tools", "environment", "summary", "prompt"]


def test_calls_that_are_still_open_wait() -> None:
    scene = Scene()
    scene.history.say(user("Go"))
    calls = (ToolCall("a", "read_file"), ToolCall("b", "run_shell"))
    scene.history.say(Message("assistant", calls))
    scene.history.finish_tool(tool_result(calls[0], "text " * 50))
    found = scene.plan()
    waiting = [item for item in found.items if item.state == "waiting"]
    assert [(item.call_id, item.reason, item.tokens) for item in waiting] == [("a", "waiting", 0), ("b", "open", 0)]
    scene.history.say(user("go on"))
    found = scene.plan()
    assert only(found, kind="result", call_id="a").state == "kept"
    assert only(found, kind="result", call_id="b").reason == "interrupted"


def test_notes_of_ours_are_no_prompts() -> None:
    from dragoman.values.notes import LOOP_NOTE

    scene = Scene()
    scene.history.say(user("Go"))
    scene.history.say(user(LOOP_NOTE.format(what="x")), "loop")
    assert [item.kind for item in scene.plan().items if item.kind in ("prompt", "note")] == ["prompt", "note"]


def test_what_the_service_counts_beyond_the_record_is_told_apart() -> None:
    """A record that does not hold the system prompt (an import): the items keep their sizes, the rest is `unseen`."""
    scene = Scene()
    scene.history.say(user("Go"))
    scene.call(1, usage=Usage(20_000))
    found = scene.plan()
    assert found.items[-1].kind == "unseen"
    assert 19_500 < found.items[-1].tokens < 20_000
    assert sum(item.tokens for item in found.items) == found.tokens


# --- the estimate, the cache, the cost

PRICES = Prices(input=10.0, output=50.0, cache_read=1.0, cache_write=12.5)


def spoken(scene: Scene, *usages: Usage) -> None:
    scene.history.say(user("Go"))
    for number, usage in enumerate(usages):
        scene.call(number, usage=usage)


def test_the_error_of_the_estimate_is_measured() -> None:
    scene = Scene()
    spoken(scene, Usage(1_000), Usage(1_300), Usage(1_600))
    estimate = scene.plan().estimate
    assert (estimate.reported_tokens, estimate.measured) == (1_600, 2)
    assert 0 <= estimate.median_error <= estimate.worst_error < 0.2


def test_the_expected_hit_of_the_cache_beside_the_reported_one() -> None:
    scene = Scene()
    assert scene.plan().cache.last_ms == 0
    spoken(scene, Usage(0, 0, 10_000), Usage(0, 10_000, 300), Usage(0, 10_300, 300))
    warm = scene.plan(now_ms=scene.now_ms, prices_of=lambda deployment, model: PRICES).cache
    assert (warm.warm, warm.expected_tokens, warm.reported_tokens, warm.reported_of_tokens) == (True, 10_600, 10_300, 10_600)
    cold = scene.plan(now_ms=scene.now_ms + 60 * MINUTE_MS, prices_of=lambda deployment, model: PRICES).cache
    assert (cold.warm, cold.expected_tokens) == (False, 0)
    scene.history.change_model("other")
    broken = scene.plan(now_ms=scene.now_ms, prices_of=lambda deployment, model: PRICES).cache
    assert (broken.warm, broken.expected_tokens, bool(broken.broken)) == (False, 0, True)


def test_pruning_leaves_of_the_cache_what_stands_before() -> None:
    scene = Scene()
    spoken(scene, Usage(0, 0, 10_000), Usage(0, 10_000, 300), Usage(0, 10_300, 300))
    decision = Decision(prune=("c1",), saved_tokens=150, reason="pressure")
    found = scene.plan(now_ms=scene.now_ms, prices_of=lambda deployment, model: PRICES, decision=decision)
    goes = only(found, goes=True)
    assert goes.call_id == "c1"
    before = found.items[: found.items.index(goes)]
    assert found.cache.expected_tokens == sum(item.tokens for item in before) < 10_600
    assert (found.next.prune, found.next.saved_tokens, found.next.reason) == (1, 150, "pressure")


def test_the_cost_of_the_next_request_and_of_all_so_far() -> None:
    scene = Scene()
    spoken(scene, Usage(0, 0, 10_000, 100), Usage(0, 10_000, 300, 100))
    found = scene.plan(now_ms=scene.now_ms, prices_of=lambda deployment, model: PRICES if model == "claude" else None)
    assert found.costs.spent_usd == pytest.approx((10_300 * 12.5 + 10_000 * 1.0 + 200 * 50) / 1e6)
    rest = found.tokens - found.cache.expected_tokens
    assert found.costs.next_input_usd == pytest.approx((found.cache.expected_tokens * 1.0 + rest * 12.5) / 1e6)
    assert found.usage == Usage(0, 10_000, 10_300, 200)
    scene.history.change_model("other", "elsewhere")
    scene.call(9, usage=Usage(5))
    found = scene.plan(prices_of=lambda deployment, model: PRICES if (deployment, model) == ("anthropic", "claude") else None)
    assert (found.costs.next_input_usd, found.costs.spent_is_whole) == (None, False)
    assert found.costs.spent_usd is not None
    assert scene.plan().costs.spent_usd is None
