"""What is known to be read, sent back or validated differently than the service does, with the reason for each.

A rule recognises its cases by what the service sent, so it holds for any folder of recordings. `NAMES` lists single answers of the default
folder that no rule describes. A rule or name that no recording needs any more fails the tests: take it out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from recorded.answers import Answer
from recorded.comparison import Difference
from recorded.exchanges import Exchange
from recorded.reading import Reading
from recorded.validation import Asked

MOST_ANSWERS = 40
"""The most answers of the default folder that may be lost, misread or refused, all reasons together."""


class AnswerRule(NamedTuple):
    reason: str
    kinds: frozenset[str]
    """The differences it explains; `refused` for an answer that we refuse."""
    applies: Callable[[Exchange, Reading], bool]


class RequestRule(NamedTuple):
    reason: str
    service: str
    """A protocol, or `protocol host` where one service is meant."""
    pattern: str
    """Found in what we say against the request or, for one that the service refused, in what the service says."""


# --- answers ---------------------------------------------------------------------------------------------------------------

ANSWERS = (
    AnswerRule(
        "the service reports more cached than input tokens",
        frozenset({"usage", "usage total"}),
        lambda exchange, reading: reading.usage.cache_read > reading.usage.input,
    ),
    AnswerRule(
        "the service's total is not the sum of its parts",
        frozenset({"usage total"}),
        lambda exchange, reading: reading.usage.total != reading.usage.input + reading.usage.output,
    ),
    AnswerRule(
        "nothing says that the answer has ended (Gemini without finishReason, a stream that was cut)",
        frozenset({"refused"}),
        lambda exchange, reading: not reading.finish,
    ),
    AnswerRule(
        "a call of a custom tool, which we never declare",
        frozenset({"custom call"}),
        lambda exchange, reading: bool(reading.custom_calls),
    ),
    AnswerRule(
        "a fixture shortened by hand: its deltas do not add up to its text",
        frozenset({"text"}),
        lambda exchange, reading: exchange.kind == "fixture" and reading.streamed_text not in (None, reading.text),
    ),
)

NAMES: dict[str, str] = {}
"""The source of an answer of the default folder, and why it is read otherwise."""


def why_misread(answer: Answer) -> list[str]:
    """The reasons that together explain everything wrong with an answer; empty if something is left unexplained."""
    kinds = {found.kind for found in answer.differences} or {answer.verdict}
    rules = [rule for rule in ANSWERS if rule.kinds & kinds and rule.applies(answer.exchange, answer.reading)]
    explained = {kind for rule in rules for kind in rule.kinds}
    if kinds <= explained:
        return [rule.reason for rule in rules]
    return [NAMES[answer.exchange.source]] if answer.exchange.source in NAMES else []


# --- what goes back --------------------------------------------------------------------------------------------------------


SENT_BACK: dict[str, str] = {}


def why_changed(answer: Answer, found: Difference) -> str:
    """Why something goes back otherwise than it came; empty if nobody knows."""
    return next((why for pattern, why in SENT_BACK.items() if re.fullmatch(pattern, f"{answer.exchange.protocol} {found.kind}")), "")


# --- requests --------------------------------------------------------------------------------------------------------------

REFUSED_BY_US: tuple[RequestRule, ...] = ()
"""Requests that a service accepted and our validators refuse."""

UNSENT = "only fields that we never send to this service (betas, options of other programs)"

LET_PASS: tuple[RequestRule, ...] = ()
"""Requests that a service refused and our validators accept."""


def why_judged(asked: Asked) -> str:
    """Why our validator and the service disagree; empty if nobody knows."""
    if asked.unsent and not asked.said:
        return UNSENT
    rules = {"refused by us": REFUSED_BY_US, "lets pass": LET_PASS}.get(asked.verdict, ())
    services = asked.exchange.protocol, f"{asked.exchange.protocol} {asked.exchange.host}"
    return next((rule.reason for rule in rules if rule.service in services and re.search(rule.pattern, asked.said)), "")
