"""Outdated results as properties: the rule said plainly, and that time only ever takes more away."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman.context import PruneRule, prune_outdated
from dragoman.context.shown import can_be_replaced
from dragoman.values.messages import Blob, ToolResult
from property.test_context import MINUTE, WRITTEN, rules

records = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "tool": st.sampled_from(["bash", "Run_Shell", "read_file", "", None]),
            "timestamp_ms": st.none() | st.integers(0, 20 * MINUTE) | st.sampled_from([0, 1, MINUTE]),
            "content": st.none() | st.sampled_from(WRITTEN),
            "is_error": st.booleans(),
        },
    ),
    max_size=14,
)


@given(results=records, now_ms=st.integers(0, 60 * MINUTE), rule=rules)
def test_the_rule_said_plainly(results: list[dict], now_ms: int, rule: PruneRule) -> None:
    """Each condition by itself, one result at a time: terminal, old, not among the newest, no error."""

    def is_command(each: dict) -> bool:
        return (each.get("content") or "").startswith("{")

    def may_go(each: dict) -> bool:
        return "*" in rule.tools or (each.get("tool") in ("bash", "Run_Shell") if each.get("tool") else is_command(each))

    def failed(each: dict) -> bool:
        content = each.get("content") or ""
        return (
            bool(each.get("is_error")) or content.startswith("Error:") or (may_go(each) and '"stderr":"broken"' in content.replace(" ", ""))
        )

    def newer(one: int, other: int) -> bool:
        return (results[other]["timestamp_ms"], other) > (results[one]["timestamp_ms"], one)

    timed = [n for n, each in enumerate(results) if each.get("timestamp_ms") is not None and not failed(each)]
    expected = [
        n
        for n in timed
        if may_go(results[n]) and now_ms - results[n]["timestamp_ms"] > rule.age_ms and sum(newer(n, m) for m in timed) >= rule.keep
    ]
    assert prune_outdated(results, now_ms, rule) == expected


@given(results=records, now_ms=st.integers(0, 60 * MINUTE), later_ms=st.integers(0, 60 * MINUTE), more=records)
def test_what_is_outdated_stays_so(results: list[dict], now_ms: int, later_ms: int, more: list[dict]) -> None:
    """Later, and with more results behind it: time and company only ever take more away."""
    newest = max((each.get("timestamp_ms") or 0 for each in results), default=0)
    behind = [each | {"timestamp_ms": newest + (each.get("timestamp_ms") or 0)} for each in more]
    assert set(prune_outdated(results, now_ms)) <= set(prune_outdated([*results, *behind], now_ms + later_ms))


def test_a_picture_may_go() -> None:
    """It is longer than any placeholder."""
    assert can_be_replaced(ToolResult("c", "read_file", (Blob("image/png", "0" * 64, 10),)), "x" * 1000)
