"""What holds commands stands in the status line, in words and in every mode."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest

from dragoman.context.plan import CachePlan, plan_of
from dragoman.loop.history import History
from dragoman.policy.judge import Mode
from dragoman.tui import report
from dragoman.tui.facts import warmth
from dragoman.tui.line import plain
from dragoman.tui.status import Activity, Facts, keys_at_work, sign_of_life, status_line
from dragoman.values.events import TurnStarted
from dragoman.words import choose_language, say

FACTS = Facts(model="anthropic/claude-sonnet-5-5")
LEVELS = [
    (0, "no sandbox"),
    (1, "sandbox: workspace only"),
    (2, "sandbox: workspace only"),
    (3, "sandbox: Landlock, no servers"),
    (4, "sandbox: workspace only"),
    (5, "sandbox: external"),
]


@pytest.mark.parametrize(
    ("mode", "words"), [("plan", "plan only"), ("default", "ask first"), ("auto-edit", "edits run"), ("auto", "commands run")]
)
@pytest.mark.parametrize(("level", "told"), LEVELS)
def test_the_level_is_said_in_words_in_every_mode(mode: Mode, words: str, level: int, told: str) -> None:
    shown = plain(status_line(msgspec.structs.replace(FACTS, mode=mode, sandbox=level), 80))
    assert words in shown
    assert told in shown


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("level", range(6))
def test_at_60_columns_the_level_is_said_before_all_but_mode_and_model(language: Literal["en", "zh"], level: int) -> None:
    choose_language(language)
    try:
        facts = msgspec.structs.replace(FACTS, mode="auto", sandbox=level, used_tokens=120_000, window_tokens=1_000_000, cost_usd=0.0183)
        shown = plain(status_line(facts, 60))
        assert any(say(f"tui.sandbox_{each}") in shown for each in (level, "short_1", "short_3"))
        assert "sonnet-5-5" in shown
    finally:
        choose_language("en")


def test_nothing_is_said_before_it_is_known() -> None:
    assert "sandbox" not in plain(status_line(FACTS, 80))


def test_that_no_gate_can_be_made_is_said() -> None:
    assert "sandbox: workspace only, no hosts" in plain(status_line(msgspec.structs.replace(FACTS, sandbox=2, has_gate=False), 80))


def test_how_long_the_cache_stays_warm_is_counted_down_until_it_is_cold() -> None:
    history = History()
    plan = plan_of(history.view, history.entries, history.cache)
    assert warmth(plan, 1_000, is_running=False) == ("", 0)
    plan = msgspec.structs.replace(plan, cache=CachePlan(warm=True, last_ms=1_000, until_ms=301_000))
    assert warmth(plan, 49_000, is_running=False) == ("warm", 252)
    assert warmth(plan, 49_000, is_running=True) == ("warm", 0), "a request keeps it warm"
    assert warmth(plan, 300_999, is_running=False) == ("warm", 1)
    assert warmth(plan, 301_000, is_running=False) == ("cold", 0)
    shown = plain(status_line(msgspec.structs.replace(FACTS, cache="warm", cache_s=252), 120))
    assert "cache warm 4:12" in shown


@pytest.mark.parametrize("folder", ["~/proj", "/srv/work/of/somebody/with/a/long/name"])
def test_what_the_next_request_costs_stays_beside_a_sandbox_and_a_count_down(folder: str) -> None:
    full = Facts("auto-edit", 2, False, "anthropic/claude-sonnet-5-5", 120_000, 1_000_000, 0.0183, 0.0121, "warm", 252, folder, "master")
    shown = plain(status_line(full, 119))
    for each in (
        "edits run",
        "sandboxed, no net",
        "sonnet-5-5",
        "12% of 1M",
        "$0.0183",
        "cache warm 4:12",
        "next $0.0121",
        "? keys",
    ):
        assert each in shown
    assert "█▎░░░░░░░░ 12%" in plain(status_line(msgspec.structs.replace(full, has_gate=True), 130)), "what there is room for"
    assert folder in plain(status_line(full, 240))


def test_why_it_is_tried_again_stands_whole_beside_the_keys_at_80_columns() -> None:
    about = "anthropic: Overloaded (HTTP 529) [request req_000000030000]"
    activity = Activity("retrying", number=2, count=3, wait_s=3, about=about)
    assert "· Overloaded (529)  " in plain(sign_of_life(activity, 79, keys=keys_at_work(activity, 79, has_command=False)))


def test_a_wait_for_the_model_is_counted_from_its_request_and_not_from_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 100.0
    monkeypatch.setattr(report.time, "monotonic", lambda: clock)
    view = report.RunView(lambda lines: None, lambda: 80)
    view.begin()
    clock += 300  # a question was open
    view.take(TurnStarted(2, "anthropic/claude-opus-5"))
    clock += 2
    assert "waiting for anthropic/claude-opus-5 · 2 s" in plain(view.activity(80))
