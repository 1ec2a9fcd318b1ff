"""What the default schedule does beside the rule to the letter: on real sessions, and on lively ones made for it.

In no session of the shared folder does what is outdated pile up: their pauses let the cache get cold, or commands are few. So the sessions
in which it does are made here: commands at a steady pace, and no pause. They are the same each time.
"""

from __future__ import annotations

from random import Random

from benchmarks.context_traces import Trace
from benchmarks.table import Cell, Table
from dragoman.context.economics import Rates
from dragoman.context.replay import Policy, PolicyName, ReplayCost, replay
from dragoman.context.replay_run import Timeline
from dragoman.context.settings import PruneRule
from dragoman.context.trace import TracedCall, TracedPiece, TracedResult

RATES = {
    "Anthropic 5m, static": Rates(0.1, 1.25, falls_back=True),
    "OpenAI, longest": Rates(0.1, 1.0, 600_000),
}
RULE, SUPERSEDED = PruneRule(), PruneRule(superseded=True)
POLICIES: tuple[tuple[str, PolicyName, PruneRule], ...] = (
    ("not pruning", "none", RULE),
    ("the rule to the letter", "request", RULE),
    ("our default", "auto", RULE),
    ("our default, superseded reads too", "auto", SUPERSEDED),
    ("best possible, the rule", "optimum", RULE),
    ("best possible, superseded reads too", "optimum", SUPERSEDED),
)
MINUTES = (40, 80, 160, 320)
SHARES, OVERDRAFTS = (0.15, 0.2, 0.25, 0.33, 0.5), (0.1, 0.2, 0.25, 0.4)
PIECE = TracedPiece(100)


def beside_the_letter(found: list[Trace]) -> Table:
    """Tokens, cost and cache breaks of each way, on each shared session."""
    table = Table("The rule to the letter, and what we make of it", ["session", "policy", "tokens, %", *_headings(RATES)])
    for trace in found:
        timelines = {rule: Timeline(trace.calls(), rule) for rule in (RULE, SUPERSEDED)}
        for title, name, rule in POLICIES:
            costs = [replay(timelines[rule], Policy(name, rule), rates) for rates in RATES.values()]
            tokens = f"{costs[0].tokens:,.0f}" if name == "none" else f"{100 * costs[0].tokens / costs[0].unpruned_tokens:.1f}"
            table.rows.append(
                [f"{trace.name} ({len(trace.calls())} calls)", title, tokens, *(cell for cost in costs for cell in _cells(cost))]
            )
    table.notes += [
        "tokens: input of all calls together, the first row of a session as a number, the others in percent of it.",
        "cost: in percent of not pruning. breaks: how often a warm prefix was given up for it.",
    ]
    return table


def lively() -> Table:
    """A command a minute, and a mixed session, without a pause: what the default makes of it."""
    columns = ["session", "policy", "ends at %", "at worst %", "outdated at most, %", "outdated on average, %", "breaks"]
    table = Table("Lively sessions: nothing lets the cache get cold (Anthropic 5m, static)", columns)
    rates = RATES["Anthropic 5m, static"]
    sessions = {f"a command a minute, {minutes} minutes": steady(minutes) for minutes in MINUTES}
    sessions |= {f"commands and files, {count} calls": mixed(count) for count in (150, 450)}
    ways = {
        "not pruning": Policy("none"),
        "the rule to the letter": Policy("request"),
        "as it was (at most 2 % dearer)": Policy("auto", share=1.0),
        "our default": Policy("auto"),
        "best possible": Policy("optimum"),
    }
    for session, calls in sessions.items():
        timeline = Timeline(calls, RULE)
        for title, policy in ways.items():
            cost = replay(timeline, policy, rates)
            shares = [f"{100 * share:.0f}" for share in (max(cost.shares), sum(cost.shares) / len(cost.shares))]
            table.rows.append([session, title, f"{cost.percent:.1f}", f"{cost.worst_percent:.1f}", *shares, cost.breaks])
    return table


def choices() -> Table:
    """Which share and which overdraft: each pair on the same sessions."""
    columns = [
        "share, overdraft",
        "40 minutes: ends at %",
        "outdated at most, %",
        "breaks",
        "320 minutes: ends at %",
        "breaks",
        "mixed: ends at %",
    ]
    table = Table(
        "Which share? A command a minute for 40 and 320 minutes, and a mixed session of 450 calls (Anthropic 5m, static)", columns
    )
    rates = RATES["Anthropic 5m, static"]
    short, long, other = (Timeline(calls, RULE) for calls in (steady(40), steady(320), mixed(450)))
    for share in SHARES:
        for overdraft in OVERDRAFTS:
            policy = Policy("auto", share=share, overdraft=overdraft)
            one, two, three = (replay(timeline, policy, rates) for timeline in (short, long, other))
            most = f"{100 * max(one.shares):.0f}"
            row: list[Cell] = [f"{share:.0%}, {overdraft:.0%}", f"{one.percent:.1f}", most, one.breaks]
            table.rows.append([*row, f"{two.percent:.1f}", two.breaks, f"{three.percent:.1f}"])
    return table


def steady(minutes: int) -> list[TracedCall]:
    """A command a minute, each with as much output as the one before."""
    now_ms, added, shared = 1_700_000_000_000, [PIECE], 0
    calls: list[TracedCall] = []
    for number in range(minutes):
        calls.append(TracedCall(now_ms, tuple(added), shared, 3_000, number == 0))
        shared, now_ms = shared + len(added), now_ms + 60_000
        added = [PIECE, _result(number, "run_shell", 1_000, now_ms)]
    return calls


def mixed(count: int) -> list[TracedCall]:
    """Commands, files and edits of all sizes, three a minute."""
    random, now_ms, added, shared = Random(1), 1_700_000_000_000, [PIECE], 0
    calls: list[TracedCall] = []
    for number in range(count):
        calls.append(TracedCall(now_ms, tuple(added), shared, 5_000, number == 0))
        shared, now_ms = shared + len(added), now_ms + random.choice((10_000, 20_000, 40_000))
        tool = random.choice(("run_shell", "run_shell", "read_file", "edit"))
        size = 100 if tool == "edit" else int(10 ** random.uniform(2, 3.8))
        added = [TracedPiece(random.randint(50, 400)), _result(number, tool, size, now_ms, is_error=random.random() < 0.1)]
    return calls


def _result(number: int, tool: str, tokens: float, now_ms: int, *, is_error: bool = False) -> TracedPiece:
    return TracedPiece(tokens, TracedResult(f"r{number}", tool, now_ms - 1_000, "text", is_error, 10))


def _headings(rates: dict[str, Rates]) -> list[str]:
    return [heading for name in rates for heading in (f"{name}: cost, %", "breaks")]


def _cells(cost: ReplayCost) -> list[Cell]:
    return [f"{cost.percent:.1f}", cost.breaks]
