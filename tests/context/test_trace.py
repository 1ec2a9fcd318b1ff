"""A record as the calls that were made: as large as they were reported, and what they had in common."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from random import Random

import msgspec
import pytest

from context.conversation import MINUTE, PRICED, SECOND, Conversation, Service
from dragoman.context.economics import Rates
from dragoman.context.replay import ALL_TOOLS, Policy, replay
from dragoman.context.replay_run import Timeline
from dragoman.context.settings import ContextSettings, PruneRule, PruneSettings, Schedule
from dragoman.context.trace import TracedCall, TracedPiece, trace_calls
from dragoman.context.view import View
from dragoman.foreign.sessions import import_session
from dragoman.loop.history import History
from dragoman.values.messages import FinishReason, Response, ToolCall, assistant, tool_result, user
from dragoman.values.record import paid_usage
from dragoman.values.usage import Usage

OFF = ContextSettings(PruneSettings(schedule="off"))
TRACES = ("pi-mono", "claude-code")


def lived(settings: ContextSettings = OFF, rounds: int = 12) -> Conversation:
    held = Conversation(settings)
    held.prompt("look around")
    held.commands(rounds)
    held.answer()
    return held


def contexts(calls: tuple[TracedCall, ...]) -> list[list[TracedPiece]]:
    """What each call held."""
    found: list[list[TracedPiece]] = []
    pieces: list[TracedPiece] = []
    for call in calls:
        pieces = [*pieces[: call.shared], *call.added]
        found.append(pieces)
    return found


def totals(calls: tuple[TracedCall, ...]) -> list[float]:
    return [call.static + sum(piece.tokens for piece in pieces) for call, pieces in zip(calls, contexts(calls), strict=True)]


def reported(calls: tuple[TracedCall, ...]) -> list[int]:
    return [call.usage.input_tokens if call.usage else 0 for call in calls]


def test_every_call_is_as_large_as_it_was_reported() -> None:
    calls = trace_calls(lived().history.entries)
    assert len(calls) == 13
    assert totals(calls) == pytest.approx(reported(calls))


@pytest.mark.parametrize("folder", TRACES)
@pytest.mark.parametrize("by_clock", [False, True])
def test_every_call_of_a_real_session_is_as_large_as_it_was_reported(corpora: Path, folder: str, by_clock: bool) -> None:
    for path in (corpora / "traces" / folder).glob("*.jsonl"):
        calls = trace_calls(import_session(path).entries, by_clock=by_clock)
        assert totals(calls) == pytest.approx(reported(calls))
        assert min(piece.tokens for pieces in contexts(calls) for piece in pieces) >= 0


def test_a_call_shares_all_that_the_one_before_it_held() -> None:
    calls = trace_calls(lived().history.entries)
    assert [call.shared for call in calls] == [0, *(len(pieces) for pieces in contexts(calls)[:-1])]
    assert [call.at_prompt for call in calls] == [True] + 12 * [False]
    assert not any(call.broken for call in calls)


def test_a_call_is_made_when_what_it_answers_was_there() -> None:
    held = Conversation(OFF)
    start = held.now_ms
    held.prompt()
    held.wait(7 * SECOND)  # while the model thinks
    held.answer()
    held.wait(MINUTE)
    held.prompt()
    held.answer()
    assert [call.timestamp_ms - start for call in trace_calls(held.history.entries)] == [0, 67 * SECOND]


def test_results_are_as_the_rule_wants_to_see_them() -> None:
    held = Conversation(OFF)
    held.prompt()
    held.command("x" * 4_000)
    held.command("", stderr="no such file", code=1)
    held.answer()
    results = [piece.result for piece in contexts(trace_calls(held.history.entries))[-1] if piece.result]
    assert [found.tool for found in results] == ["run_shell", "run_shell"]
    assert '"stdout"' in results[0].content
    assert results[0].timestamp_ms == held.history.view.outcomes[0].timestamp_ms
    assert 0 < results[0].remains < 30


def test_what_the_record_pruned_is_replayed_whole() -> None:
    """A session that pruned is one that never did, to a replay: every result as it was, in calls as large as they would have been."""
    held = lived(ContextSettings(PruneSettings(schedule="request", rule=ALL_TOOLS)))
    assert held.pruned
    calls, unpruned = trace_calls(held.history.entries, by_clock=True), trace_calls(lived().history.entries)
    assert totals(calls) == pytest.approx(totals(unpruned), rel=0.001)
    assert reported(calls)[-1] < 0.7 * totals(calls)[-1]


class Rounding(Service):
    """Counts less of what stands in the place of results than is estimated."""

    def usage(self, view: View, now_ms: int) -> Usage:
        found = super().usage(view, now_ms)
        return msgspec.structs.replace(found, cache_write_tokens=found.cache_write_tokens - 20 * len(view.pruned))


@pytest.mark.parametrize("falls_back", [True, False])
def test_what_pruning_made_the_service_write_again_is_no_miss_to_a_replay(falls_back: bool) -> None:
    """Never pruning was said to have cost a quarter more than it does: it was charged for the changes that pruning had made."""
    prune = PruneSettings(schedule="turn", rule=PruneRule(age_ms=3 * MINUTE, keep=3))
    held = _minute_by_minute(Conversation(ContextSettings(prune), service=Rounding(falls_back=falls_back)))
    assert len(held.pruned) > 10
    calls = trace_calls(held.history.entries)
    assert [call.shared for call in calls] == [0, *(len(pieces) for pieces in contexts(calls)[:-1])]
    assert not any(call.broken for call in calls)
    never = sum(replay(Timeline(calls, ALL_TOOLS), Policy("none"), Rates(0.1, 1.25, falls_back=falls_back)).costs)
    real = trace_calls(_minute_by_minute(Conversation(OFF)).history.entries)
    assert never == pytest.approx(sum(replay(Timeline(real, ALL_TOOLS), Policy("none"), Rates(0.1, 1.25)).costs), rel=0.03)


def _minute_by_minute(held: Conversation) -> Conversation:
    for _ in range(20):
        held.prompt()
        held.command(takes_ms=MINUTE)
        held.answer()
    return held


def test_what_was_pruned_before_it_was_ever_sent_is_replayed_whole_too() -> None:
    held = Conversation(OFF)
    held.prompt()
    held.commands(3)
    unpruned = held.view.raw_tokens
    held.history.prune([outcome.result.call_id for outcome in held.view.outcomes])
    held.answer()
    calls = trace_calls(held.history.entries, by_clock=True)
    assert totals(calls)[-1] == pytest.approx(unpruned, rel=0.01)


def test_what_is_sent_unseen_stands_between_and_changes_nothing_else() -> None:
    """The service counts 20,000 tokens more at the second call than the record shows: a file someone attached."""
    held = Conversation(OFF)
    held.prompt()
    held.command()
    usage = held.service.usage(held.view, held.now_ms)
    held.answer(usage=Usage(0, usage.cache_read_tokens, usage.cache_write_tokens + 20_000))
    calls = trace_calls(held.history.entries)
    assert totals(calls) == pytest.approx(reported(calls))
    assert calls[1].added[0].result is None
    assert calls[1].added[0].tokens == pytest.approx(20_000, rel=0.1)


def test_where_a_request_shrank_unsaid_old_results_did() -> None:
    """Other programs clear old results and do not write it down."""
    held = lived()
    usage = held.service.usage(held.view, held.now_ms)
    held.prompt()
    held.answer(usage=Usage(0, usage.cache_read_tokens // 2, usage.cache_read_tokens // 4))
    calls = trace_calls(held.history.entries, by_clock=True)
    assert totals(calls) == pytest.approx(reported(calls))
    first, last = contexts(calls)[-2][: len(contexts(calls)[-1])], contexts(calls)[-1]
    changed = [position for position, (old, new) in enumerate(zip(first, last, strict=False)) if old.tokens != new.tokens]
    assert calls[-1].shared == changed[0]
    assert all(last[position].result for position in changed)


def test_a_summary_leaves_what_stands_before_it_and_moves_the_rest() -> None:
    held = lived()
    entries = held.history.entries
    held.history.compress(entries[20].seq, user("the story so far"), after=entries[1])
    held.answer()
    call = trace_calls(held.history.entries)[-1]
    assert call.shared == 1
    assert call.added[0].result is None
    ids = {piece.result.id for pieces in contexts(trace_calls(entries))[:-1] for piece in pieces if piece.result}
    assert {piece.result.id for piece in call.added if piece.result} < ids, "what stayed is known again"


def test_a_rewind_takes_pieces_away() -> None:
    held = lived()
    before = contexts(trace_calls(held.history.entries))
    held.history.rewind(held.history.entries[8])
    held.prompt("another way")
    held.answer()
    call = trace_calls(held.history.entries)[-1]
    assert 0 < call.shared < len(before[-1])


def test_another_model_breaks_the_prefix() -> None:
    held = lived()
    held.history.change_model("other")
    held.prompt()
    held.answer()
    held.prompt()
    held.answer()
    assert [call.broken for call in trace_calls(held.history.entries)[-3:]] == [False, True, False]


def test_a_report_that_nothing_was_read_is_heeded() -> None:
    """Coldness is learned from the reported reads: within the shortest life something else broke the prefix."""
    held = lived(rounds=3)
    held.wait(10 * SECOND)
    held.prompt()
    held.answer(usage=Usage(0, 0, held.view.raw_tokens))
    held.wait(10 * MINUTE)
    held.prompt()
    held.answer(usage=Usage(0, 0, held.view.raw_tokens))
    assert [call.broken for call in trace_calls(held.history.entries)][-2:] == [True, False], "the other was too late, and the clock knows"
    assert not any(call.broken for call in trace_calls(held.history.entries, by_clock=True))


def test_a_report_that_only_the_beginning_was_read_is_heeded() -> None:
    held = lived(rounds=6)
    held.prompt()
    half = held.view.raw_static + 2_500
    held.answer(usage=Usage(0, half, held.view.raw_tokens - half))
    call = trace_calls(held.history.entries)[-1]
    pieces = contexts(trace_calls(held.history.entries))[-1]
    assert not call.broken
    assert call.static + sum(piece.tokens for piece in pieces[: call.shared]) <= half
    assert call.static + sum(piece.tokens for piece in pieces[: call.shared + 1]) > half


def test_a_service_that_never_reports_reads_has_no_cache_to_miss() -> None:
    held = Conversation(OFF, service=Service(caches=False))
    held.prompt()
    held.commands(4)
    assert not any(call.broken for call in trace_calls(held.history.entries))


def test_without_any_usage_estimates_are_taken() -> None:
    record = History()
    record.configure("model", "Be brief. " * 400)
    record.say(user("hello"))
    call = ToolCall("c1", "run_shell")
    record.answer(Response(assistant("hm", call), FinishReason.TOOL_CALLS))
    record.finish_tool(tool_result(call, "x" * 4_000))
    record.answer(Response(assistant("done"), FinishReason.STOP))
    calls = trace_calls(record.entries, prior=1.5)
    assert len(calls) == 2
    assert calls[0].static == pytest.approx(1.5 * record.view.raw_static)
    assert totals(calls)[-1] == pytest.approx(1.5 * (record.view.raw_tokens - record.view.items[-1].raw_tokens), rel=0.01)


def test_no_calls_no_trace() -> None:
    assert trace_calls([]) == ()
    assert trace_calls(Conversation(OFF).history.entries) == ()


# --- the live decision and the replayed one


@pytest.mark.parametrize("falls_back", [False, True])
@pytest.mark.parametrize("schedule", ["economic", "request", "turn"])
def test_a_replay_prunes_when_the_live_session_does(schedule: Schedule, falls_back: bool) -> None:
    """The same session with and without pruning: the replay of the one prunes before the very calls before which the other did, and costs
    what the other cost. (Not so `auto`: its live books leave out what a cold request saves, so it may wait a little longer.)"""
    pruned = 0
    for seed in range(25):  # fixed: with others a premium may be so nearly reached that a rounded token decides
        live = _held(seed, _every_tool(schedule), falls_back=falls_back)
        calls = trace_calls(_held(seed, OFF, falls_back=falls_back).history.entries)
        policy = Policy(schedule, LAST_TWO)  # type: ignore[arg-type]
        replayed = replay(Timeline(calls, LAST_TWO), policy, Rates(0.1, 1.25, falls_back=falls_back))
        moments = [number for number, decision in enumerate(live.decisions) if decision.prune]
        assert list(replayed.moments) == moments, seed
        assert replayed.costs == pytest.approx(_paid(live), rel=0.01), seed
        pruned += len(moments)
    assert pruned > 25


@pytest.mark.parametrize("falls_back", [False, True])
def test_a_replay_of_a_lively_session_lets_the_same_batches_go(falls_back: bool) -> None:
    """`auto`, and the cache never gets cold: what makes up too much goes before the same calls, live and replayed."""
    kind, batches = "breakpoints" if falls_back else "none", 0
    for seed in range(6):
        live, unpruned = (
            _lively(seed, Conversation(ContextSettings(prune), PRICED, Service(falls_back=falls_back), cache_kind=kind))
            for prune in (PruneSettings(), PruneSettings(schedule="off"))
        )
        moments = [number for number, decision in enumerate(live.decisions) if decision.prune]
        replayed = replay(
            Timeline(trace_calls(unpruned.history.entries), PruneRule()), Policy("auto"), Rates(0.1, 1.25, falls_back=falls_back)
        )
        assert list(replayed.moments) == moments, seed
        batches += sum(decision.reason == "share" for decision in live.pruned)
    assert batches > 10


def _lively(seed: int, held: Conversation) -> Conversation:
    random = Random(seed)
    held.prompt("work")
    for _ in range(60):
        name = random.choice(("run_shell", "run_shell", "run_shell", "read_file"))
        held.command("x" * int(10 ** random.uniform(2, 4)), name=name, takes_ms=random.choice((20, 40, 80)) * SECOND)
    held.answer()
    return held


@pytest.mark.parametrize("falls_back", [False, True])
@pytest.mark.parametrize(("schedule", "share", "bound"), [("economic", 1.0, 2.0), ("auto", 1.0, 1.02), ("auto", 0.25, 1.25)])
def test_no_live_session_costs_more_than_stated_wherever_it_ends(schedule: Schedule, share: float, bound: float, falls_back: bool) -> None:
    """The bounds of the replay, by what a service with a cache reports to the live decisions."""
    for seed in range(60):
        live, unpruned = (_paid(_held(seed, settings, falls_back=falls_back)) for settings in (_every_tool(schedule, share), OFF))
        for mine, most in zip(live, unpruned, strict=True):
            assert mine <= bound * most + 1, seed


LAST_TWO = PruneRule(tools=("*",), age_ms=0, keep=2)


def _every_tool(schedule: Schedule, share: float = 0.25) -> ContextSettings:
    return ContextSettings(PruneSettings(schedule=schedule, rule=LAST_TWO, pressure=1.0, share=share))


def _paid(held: Conversation) -> list[float]:
    """What had been paid after each call."""
    usages = [usage for _, usage in paid_usage(held.history.entries)]
    return list(accumulate(0.1 * usage.cache_read_tokens + 1.25 * usage.cache_write_tokens for usage in usages))


def _held(seed: int, settings: ContextSettings, *, falls_back: bool) -> Conversation:
    random = Random(seed)
    held = Conversation(settings, PRICED, Service(falls_back=falls_back), cache_kind="breakpoints" if falls_back else "none")
    held.prompt()
    for _ in range(random.randint(10, 45)):
        wait_ms = random.choice((0, SECOND, SECOND, MINUTE, 4 * MINUTE, 6 * MINUTE if random.random() < 0.1 else 0))
        if random.random() < 0.15:
            held.answer()
            held.wait(wait_ms)
            held.prompt()
        else:
            held.command("x" * int(10 ** random.uniform(1, 4.3)), takes_ms=SECOND + wait_ms)
    held.answer()
    return held
