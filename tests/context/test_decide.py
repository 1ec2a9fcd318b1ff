"""When the rule is applied: the schedules, what a change costs, pressure, and when compressing may be tried."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path

import msgspec
import pytest

from context.conversation import MINUTE, NOW_MS, PLAIN, PRICED, SECOND, Conversation, Service
from dragoman.context import prune_outdated
from dragoman.context.decide import Decider, Decision, decide
from dragoman.context.settings import CompressSettings, ContextSettings, PruneRule, PruneSettings, Schedule
from dragoman.context.view import PLACEHOLDER
from dragoman.loop.history import History
from dragoman.sessions.opening import create, open_for_writing
from dragoman.values.messages import Message, Text, ToolCall, ToolResult, assistant, user
from dragoman.values.notes import LOOP_NOTE
from dragoman.values.profile import Profile
from dragoman.values.record import Pruned, Started, encode_entry
from dragoman.values.usage import Usage


def by(schedule: Schedule, **more: object) -> ContextSettings:
    return ContextSettings(prune=PruneSettings(schedule=schedule, **more), compress=CompressSettings(enabled=False))  # type: ignore[arg-type]


def held(schedule: Schedule = "auto", *, commands: int = 7, **more: object) -> Conversation:
    """A prompt and some commands within two minutes: of seven, two are outdated a quarter of an hour later."""
    conversation = Conversation(by(schedule), **more)  # type: ignore[arg-type]
    conversation.prompt("build it")
    conversation.commands(commands)
    return conversation


def first_ids(conversation: Conversation, count: int) -> tuple[str, ...]:
    return tuple(outcome.result.call_id for outcome in conversation.view.outcomes[:count])


# The worked examples of PRUNE, through the whole of it


@pytest.mark.parametrize("schedule", ["auto", "request", "turn", "economic"])
def test_after_a_quarter_of_an_hour_all_but_the_five_newest_go(schedule: Schedule) -> None:
    """PRUNE-1 and PRUNE-3: after an idle gap the cache is cold, so every schedule comes out the same."""
    conversation = held(schedule)
    conversation.answer()
    conversation.wait(20 * MINUTE)
    conversation.prompt()
    decision = conversation.request()
    assert decision.prune == first_ids(conversation, 2)
    assert [conversation.shown(call_id) for call_id in decision.prune] == [PLACEHOLDER] * 2
    assert all(json.loads(conversation.shown(call_id))["stdout"] for call_id in first_ids(conversation, 7)[2:])
    assert conversation.request().prune == (), "pruned once"


@pytest.mark.parametrize(("age_ms", "goes"), [(15 * MINUTE, 0), (15 * MINUTE + 1, 1)])
def test_the_boundary_is_strict(age_ms: int, goes: int) -> None:
    """PRUNE-2."""
    conversation = held("request")
    conversation.now_ms = conversation.view.outcomes[0].timestamp_ms + age_ms
    assert len(conversation.decide().prune) == goes


def test_errors_and_other_tools_stay() -> None:
    """PRUNE-4 and PRUNE-11: an error stays and takes no place; a file that was read stays and takes one."""
    conversation = Conversation(by("request"))
    conversation.prompt()
    conversation.command()
    conversation.command(stderr="Error: Cannot find module", code=1)
    conversation.command("text of a file" * 100, name="read_file")
    conversation.commands(4)
    conversation.wait(20 * MINUTE)
    assert conversation.decide().prune == first_ids(conversation, 1)


@pytest.mark.parametrize("schedule", ["request", "auto"])
def test_storage_keeps_every_byte_and_a_resumed_session_prunes_again(schedule: Schedule, tmp_path: Path) -> None:
    """PRUNE-8, on disk: what was written stays as it was, before and after a resume; what is sent is shortened both times."""
    path, faults = tmp_path / "20261115-120000-0123abcd.jsonl", list[str]()
    journal = create(str(path), Started(0, NOW_MS, path.stem), faults.append)
    live = Conversation(by(schedule), journal=journal)
    live.prompt("build it")
    live.commands(7, lambda: live.command("Building project...\nDone in 3.2s"))
    live.answer()
    asyncio.run(live.history.sync())
    written = path.read_bytes()
    records = [encode_entry(entry) for entry in live.history.entries]
    live.wait(20 * MINUTE)
    live.prompt("and now?")
    assert len(live.request().prune) == 2
    asyncio.run(live.history.sync())
    journal.close()
    assert path.read_bytes().startswith(written)
    assert [encode_entry(entry) for entry in live.history.entries][: len(records)] == records
    assert path.read_bytes().count(b"Building project") == 7

    journal, loaded = open_for_writing(str(path), faults.append)
    resumed = History(journal, entries=loaded.entries)
    journal.close()
    assert resumed.request == live.history.request
    assert resumed.transcript() == live.history.transcript()
    sent = [part.content for message in resumed.request.messages for part in message.results]
    assert sent[:2] == [(Text(PLACEHOLDER),)] * 2
    assert not faults


def test_a_session_resumed_before_anything_was_pruned_prunes_as_the_live_one_would() -> None:
    """PRUNE-9."""
    live = held()
    live.answer()
    live.wait(20 * MINUTE)
    resumed = Conversation(live.settings, entries=tuple(live.history.entries), start_ms=live.now_ms)
    assert resumed.decide() == live.decide()
    assert len(resumed.decide().prune) == 2


def test_a_result_no_longer_than_the_placeholder_stays() -> None:
    conversation = Conversation(by("request"))
    conversation.prompt()
    for text in ("字" * len(PLACEHOLDER), "字" * (len(PLACEHOLDER) + 1)):
        call = ToolCall(f"c{text}", "run_shell")
        conversation.history.say(Message("assistant", (call,)))
        conversation.history.finish_tool(ToolResult(call.id, call.name, (Text(text),)))
    conversation.commands(5)
    conversation.wait(20 * MINUTE)
    assert conversation.decide().prune == first_ids(conversation, 2)[1:]


def test_nothing_goes_that_would_make_the_request_longer() -> None:
    """Few Latin letters are fewer tokens than a Chinese placeholder of fewer characters: pruning 38 such results grew a request."""
    conversation = Conversation(by("request"))
    conversation.prompt()
    assert len("done: 12 files") > len(PLACEHOLDER)
    for number, text in enumerate(("done: 12 files", "x" * 200)):
        call = ToolCall(f"c{number}", "run_shell")
        conversation.history.say(Message("assistant", (call,)))
        conversation.history.finish_tool(ToolResult(call.id, call.name, (Text(text),)))
    conversation.commands(5)
    conversation.wait(20 * MINUTE)
    assert conversation.decide().prune == ("c1",)


def test_an_entry_without_a_time_is_not_outdated() -> None:
    conversation = held("request", start_ms=0)
    conversation.now_ms = NOW_MS
    assert conversation.view.outcomes[0].timestamp_ms
    assert len(conversation.decide().prune) == 2
    timeless = Conversation(by("request"), start_ms=0)
    timeless.prompt()
    timeless.commands(7, lambda: timeless.command(takes_ms=0))
    timeless.now_ms = NOW_MS
    assert timeless.decide().prune == ()


# The schedules


def test_off_prunes_nothing() -> None:
    conversation = held("off")
    conversation.wait(60 * MINUTE)
    assert conversation.decide() == Decision(tokens=conversation.view.tokens(), window=1_000_000)


def test_by_request_each_goes_as_it_comes_of_age() -> None:
    conversation = held("request")
    conversation.wait(14 * MINUTE)
    conversation.commands(12)
    assert [len(decision.prune) for decision in conversation.pruned] == [1] * len(conversation.pruned)
    assert len(conversation.pruned) > 3
    assert {decision.reason for decision in conversation.pruned} == {"request"}


def test_by_turn_nothing_goes_during_a_run() -> None:
    conversation = held("turn")
    conversation.wait(20 * MINUTE)
    conversation.commands(2)
    assert conversation.pruned == []
    conversation.prompt("next")
    assert conversation.request().reason == "turn"


@pytest.mark.parametrize(("said", "pruned"), [("loop", 0), ("", 2)])
def test_what_the_program_itself_says_starts_no_turn(said: str, pruned: int) -> None:
    conversation = held("turn")
    conversation.wait(20 * MINUTE)
    conversation.history.say(user(LOOP_NOTE.format(what="x")), said)
    arguments = (conversation.view, conversation.now_ms, conversation.history.cache, PRICED)
    assert len(Decider(conversation.settings).decide(*arguments).prune) == pruned


@pytest.mark.parametrize("profile", [PLAIN, Profile(context_window=1_000_000)])
@pytest.mark.parametrize("schedule", ["auto", "economic"])
def test_without_cache_prices_the_rule_holds_at_every_request(schedule: Schedule, profile: Profile) -> None:
    conversation = held(schedule, profile=profile)
    conversation.wait(14 * MINUTE)
    conversation.commands(8)
    assert {decision.reason for decision in conversation.pruned} == {"request"}
    assert {decision.premium_tokens for decision in conversation.pruned} == {0}


def busy(schedule: Schedule, commands: int, *, outputs: int = 4_000, profile: Profile = PRICED, **settings: object) -> Conversation:
    """No pause long enough for the cache to get cold."""
    conversation = Conversation(by(schedule, **settings), profile)
    conversation.prompt("work")
    conversation.commands(commands, lambda: conversation.command("x" * outputs, takes_ms=30 * SECOND))
    return conversation


@pytest.mark.parametrize(("schedule", "commands"), [("auto", 300), ("economic", 120)])
def test_a_warm_cache_is_not_broken_for_every_result_that_comes_of_age(schedule: Schedule, commands: int) -> None:
    often, seldom = busy("request", commands), busy(schedule, commands)
    assert all(call.warm for call in seldom.history.cache.calls[1:20])
    assert 0 < len(seldom.pruned) < len(often.pruned) / 5
    assert {decision.reason for decision in seldom.pruned} == ({"share"} if schedule == "auto" else {"pays"})
    assert min(decision.premium_tokens for decision in seldom.pruned) > 0
    assert cost(seldom) < cost(often)


def cost(conversation: Conversation) -> float:
    """In tokens of fresh input."""
    return sum(0.1 * call.usage.cache_read_tokens + 1.25 * call.usage.cache_write_tokens for call in conversation.history.cache.calls)


@pytest.mark.parametrize("falls_back", [False, True])
def test_economic_waits_until_the_carry_has_reached_the_premium(falls_back: bool) -> None:
    """The ski rental, counted by hand: r·k for each warm call since it might have gone, against (w - r)·s - r·k."""
    conversation = Conversation(
        by("economic"), service=Service(falls_back=falls_back), cache_kind="breakpoints" if falls_back else "implicit"
    )
    conversation.prompt("A long story. " * 1_000)
    conversation.commands(130, lambda: conversation.command(takes_ms=30 * SECOND))
    first = next(position for position, decision in enumerate(conversation.decisions) if decision.prune)
    decision, view = conversation.decisions[first], Conversation(conversation.settings).view
    entry = next(entry for entry in conversation.history.entries if isinstance(entry, Pruned))
    for before in conversation.history.entries:
        if before is entry:
            break
        view.feed(before)
    last = conversation.history.cache.calls[first - 1]
    cached = [item for item in view.items if item.seq < last.seq]
    gone = [outcome for outcome in view.outcomes if outcome.result.call_id in decision.prune]
    each = decision.saved_tokens / len(gone)
    behind = sum(item.raw_tokens for item in cached if falls_back or item.seq >= gone[0].seq)
    surviving = behind - decision.saved_tokens
    expected = (1.25 - 0.1) * surviving - 0.1 * decision.saved_tokens
    assert decision.premium_tokens == pytest.approx(expected, rel=0.01)

    def carry(calls: int) -> float:
        asked = [call.asked_ms for call in conversation.history.cache.calls[:calls] if call.warm]
        return 0.1 * each * sum(at > outcome.timestamp_ms + 15 * MINUTE for outcome in gone for at in asked)

    assert carry(first) >= decision.premium_tokens * 0.99
    assert carry(first - 1) < decision.premium_tokens


@pytest.mark.parametrize("kind", ["implicit", "breakpoints"])
def test_what_a_change_really_loses_is_charged_once_it_was_seen(kind: str) -> None:
    """Whatever is said of services of this kind."""
    premiums: list[int] = []
    for falls_back in (True, False):
        conversation = Conversation(by("request"), service=Service(falls_back=falls_back), cache_kind=kind)
        conversation.prompt("A long story. " * 5_000)
        conversation.commands(60, lambda held=conversation: held.command(takes_ms=30 * SECOND))
        assert conversation.history.cache.facts.falls_back is falls_back
        premiums.append(conversation.pruned[-1].premium_tokens)
    assert premiums[0] - premiums[1] > 1.15 * 70_000 / 3.9


def test_before_it_was_seen_the_kind_of_cache_says_what_a_change_loses() -> None:
    conversation = Conversation(by("off"))
    conversation.prompt("A long story. " * 5_000)
    conversation.commands(40, lambda: conversation.command(takes_ms=30 * SECOND))
    arguments = (conversation.view, by("request"), conversation.now_ms, conversation.history.cache, PRICED)
    told, implicit = (decide(*arguments, cache_kind=kind) for kind in ("breakpoints", "implicit"))
    assert told.prune == implicit.prune != ()
    assert told.premium_tokens - implicit.premium_tokens > 1.15 * 70_000 / 3.9


def test_what_is_written_for_an_hour_is_warm_for_an_hour() -> None:
    conversation = Conversation(by("economic"))
    conversation.prompt("x" * 100_000)
    sent = 0
    for _ in range(7):
        call = ToolCall(f"c{len(conversation.history.entries)}", "run_shell")
        new = conversation.view.raw_tokens - sent
        conversation.answer(assistant(call), Usage(0, sent, new, 1, 0, new))
        sent += new
        conversation.history.finish_tool(ToolResult(call.id, call.name, (Text("x" * 4_000),)))
    conversation.wait(59 * MINUTE)
    assert conversation.decide().prune == ()
    conversation.wait(2 * MINUTE)
    assert conversation.decide().reason == "cold"


def test_auto_never_lets_pruning_have_cost_more_than_its_share() -> None:
    """Two of a hundred, wherever the session ends, and a quarter for what makes up too much; economic alone goes further than two."""
    never = busy("off", 300)
    assert 1 < worst_share(busy("auto", 300, share=1.0), never) <= 1.021
    assert 1.03 < worst_share(busy("auto", 300), never) <= 1.251
    assert 1.03 < worst_share(busy("economic", 300), never) < 2


@pytest.mark.parametrize("falls_back", [False, True])
def test_what_is_outdated_makes_up_about_a_quarter_at_most(falls_back: bool) -> None:
    """A command a minute for forty minutes, and the cache never gets cold: twenty-four results are outdated in the end."""
    kind = "breakpoints" if falls_back else "implicit"
    conversation = Conversation(ContextSettings(), service=Service(falls_back=falls_back), cache_kind=kind)
    conversation.prompt("work")
    shares: list[float] = []
    for _ in range(40):
        conversation.command(takes_ms=MINUTE)
        waiting = conversation.decide().waiting
        shares.append(waiting.share if waiting is not None else 0.0)
    assert {decision.reason for decision in conversation.pruned} == {"share"}
    assert len(conversation.pruned) in (2, 3), "in batches, and not one by one"
    assert sum(len(decision.prune) for decision in conversation.pruned) >= 15
    assert max(shares) < 0.35
    assert sum(share > 0.25 for share in shares) <= 6, "above a quarter only while the price says wait"


def test_what_makes_up_too_much_waits_until_it_is_earned_back_in_time() -> None:
    """A session is taken to go on for as long again as it has: after few requests much must go, for it to pay."""
    conversation = Conversation(ContextSettings(PruneSettings(overdraft=10.0)))
    conversation.prompt("work")
    while not conversation.pruned:
        conversation.command(takes_ms=MINUTE)
    decision = conversation.pruned[0]
    calls = len(conversation.history.cache.calls) - 1
    assert decision.premium_tokens <= 0.1 * decision.saved_tokens * (calls + 1)
    before = conversation.decisions[-2].waiting
    assert before is not None
    assert before.share > 0.25
    assert before.premium_tokens > before.saves_tokens * (calls - 1), "a request before, it was not"


def test_what_waits_is_said_with_what_it_costs() -> None:
    conversation = busy("auto", 40)
    waiting = conversation.decide().waiting
    last = conversation.history.cache.last
    assert waiting is not None
    assert last is not None
    assert waiting.results == len(
        Decider(by("request")).decide(conversation.view, conversation.now_ms, conversation.history.cache, PRICED).prune
    )
    assert waiting.share == pytest.approx(waiting.tokens / conversation.view.tokens(), abs=0.001)
    assert waiting.saves_tokens == pytest.approx(0.1 * waiting.tokens, abs=1)
    assert waiting.until_ms == last.timestamp_ms + 5 * MINUTE
    assert (waiting.share_limit, waiting.pressure_tokens) == (0.25, 500_000)
    conversation.now_ms = waiting.until_ms + 1
    assert conversation.decide().waiting is None
    assert len(conversation.decide().prune) >= waiting.results


def worst_share(pruning: Conversation, never: Conversation) -> float:
    """How much more it had cost at its worst moment."""
    assert pruning.pruned
    costs = [
        list(itertools.accumulate(0.1 * call.usage.cache_read_tokens + 1.25 * call.usage.cache_write_tokens for call in calls))
        for calls in (pruning.history.cache.calls, never.history.cache.calls)
    ]
    return max(paid / unpruned for paid, unpruned in zip(*costs, strict=True))


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("model", lambda conversation: conversation.history.change_model("other")),
        ("system", lambda conversation: conversation.history.configure("model", "Another.", conversation.view.tools)),
        ("tools", lambda conversation: conversation.history.configure("model", conversation.view.system, ())),
        ("compressed", lambda conversation: conversation.history.compress(2, user("so far"))),
        ("rewound", lambda conversation: conversation.history.rewind(conversation.history.entries[-4])),
        ("cold", lambda conversation: conversation.wait(6 * MINUTE)),
    ],
)
def test_what_loses_the_cache_anyway_prunes_everything_at_once(reason: str, change) -> None:
    conversation = busy("economic", 42)
    assert conversation.pruned == []
    assert conversation.decide().prune == ()
    change(conversation)
    decision = conversation.decide()
    assert (decision.reason, decision.premium_tokens) == (reason, 0)
    assert len(decision.prune) > 5


def test_a_resume_is_no_reason_of_its_own() -> None:
    conversation = busy("economic", 42)
    resumed = Conversation(conversation.settings, entries=tuple(conversation.history.entries), start_ms=conversation.now_ms)
    assert (
        resumed.decide()
        == conversation.decide()
        == decide(conversation.view, conversation.settings, conversation.now_ms, conversation.history.cache, PRICED)
    )
    assert resumed.decide().prune == ()


def test_a_prefix_too_short_to_be_cached_is_cold() -> None:
    profile = msgspec.structs.replace(PRICED, cache_min_tokens=10_000_000)
    conversation = busy("economic", 42, profile=profile)
    assert {decision.reason for decision in conversation.pruned} == {"cold"}


def test_what_the_model_never_saw_does_not_go() -> None:
    """A rule that keeps none and waits for nothing, and a cold cache: only what an answer came after goes, the letter of the rule aside."""
    rule = PruneRule(age_ms=0, keep=0)
    conversation = Conversation(ContextSettings(prune=PruneSettings("economic", rule)), cache_kind="breakpoints")
    conversation.prompt()
    for _ in range(2):
        conversation.command()
    conversation.wait(60 * MINUTE)
    first, second = (outcome.result.call_id for outcome in conversation.view.outcomes)
    assert conversation.decide().prune == (first,)
    to_the_letter = ContextSettings(prune=PruneSettings("request", rule))
    assert Decider(to_the_letter).decide(conversation.view, conversation.now_ms, conversation.history.cache, PRICED).prune == (
        first,
        second,
    )


# What it says


def test_saved_tokens_are_the_models_own() -> None:
    """Scaled by what the service counted; after the prune the estimate is what the decision said."""
    conversation = held("request", profile=msgspec.structs.replace(PRICED, token_scale=1.5))
    conversation.history.change_model("uncounted")
    conversation.wait(20 * MINUTE)
    before = conversation.view.tokens(1.5)
    decision = conversation.request()
    after = conversation.view.tokens(1.5)
    assert decision.saved_tokens == pytest.approx(before - after, abs=4)
    assert decision.tokens == pytest.approx(after, abs=4)
    assert decision.saved_tokens == pytest.approx(2 * 1.5 * 4_000 / 3.9, rel=0.02)


def test_the_rule_alone_and_the_schedule_by_request_agree_on_two_of_one_id() -> None:
    """Two results of one id, as a foreign record may have: neither goes while one must stay."""
    conversation = Conversation(by("request"))
    conversation.prompt()
    for number in (*range(7), 0):
        call = ToolCall(f"c{number}", "run_shell")
        conversation.history.say(Message("assistant", (call,)))
        conversation.wait(SECOND)
        conversation.history.finish_tool(ToolResult(call.id, call.name, (Text("x" * 100),)))
    conversation.wait(20 * MINUTE)
    plain = [
        {"tool": outcome.result.name, "timestamp_ms": outcome.timestamp_ms, "content": "x" * 100, "is_error": False}
        for outcome in conversation.view.outcomes
    ]
    assert prune_outdated(plain, conversation.now_ms) == [0, 1, 2]
    assert conversation.decide().prune == ("c1", "c2")


def test_an_id_that_comes_again_after_a_rewind_is_looked_at_again() -> None:
    conversation = Conversation(by("request"))
    conversation.prompt()
    start = conversation.history.entries[-1]
    for text in ("Error: no", "x" * 100):
        conversation.history.rewind(start)
        for number in range(6):
            call = ToolCall(f"c{number}", "run_shell")
            conversation.history.say(Message("assistant", (call,)))
            conversation.history.finish_tool(ToolResult(call.id, call.name, (Text(text),)))
        conversation.wait(20 * MINUTE)
        assert conversation.decide().prune == (() if text.startswith("Error") else ("c0",))
