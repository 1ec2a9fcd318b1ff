"""What is known to be read, sent back or validated differently than the service does, with the reason for each.

A rule recognises its cases by what was recorded, so it holds for any folder of recordings. `NAMES` lists single answers of the default
folder that no rule describes. A rule or name that the default folder no longer needs fails the tests: take it out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from dragoman.values.profile import ProtocolName
from recorded.answers import BAD, Answer
from recorded.comparison import Difference
from recorded.exchanges import Exchange
from recorded.reading import Reading
from recorded.validation import Asked

MOST: dict[ProtocolName, int] = {"anthropic": 0, "openai_chat": 24, "openai_responses": 4, "gemini": 7}
"""How many answers of the default folder may be lost, misread or refused, all reasons together."""


class AnswerRule(NamedTuple):
    reason: str
    shown_by: ProtocolName
    """The protocol of the recordings in the default folder that show it. It holds for all."""
    kinds: frozenset[str]
    """The differences it explains; `refused` for an answer that we refuse."""
    applies: Callable[[Exchange, Reading], bool]


class ChangeRule(NamedTuple):
    reason: str
    protocol: ProtocolName
    kind: str
    """Of the difference."""
    pattern: str = ""
    """Found in what we send."""


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
        "openai_chat",
        frozenset({"usage", "usage total"}),
        lambda exchange, reading: reading.usage.cache_read > reading.usage.input,
    ),
    AnswerRule(
        "the service's total is less than the sum of its parts",
        "gemini",
        frozenset({"usage total"}),
        lambda exchange, reading: reading.usage.total < reading.usage.input + reading.usage.output,
    ),
    AnswerRule(
        "nothing says that the answer has ended (Gemini without finishReason, a stream that was cut)",
        "gemini",
        frozenset({"refused"}),
        lambda exchange, reading: not reading.finish,
    ),
    AnswerRule(
        "a call of a custom tool, which we never declare",
        "openai_responses",
        frozenset({"custom call"}),
        lambda exchange, reading: bool(reading.custom_calls),
    ),
    AnswerRule(
        "a fixture shortened by hand: its deltas do not add up to its text",
        "openai_responses",
        frozenset({"text"}),
        lambda exchange, reading: exchange.kind == "fixture" and reading.streamed_text not in (None, reading.text),
    ),
)

NAMES: dict[ProtocolName, dict[str, str]] = {}
"""The sources of answers of the default folder that no rule describes, and why each is read otherwise."""


def why_misread(answer: Answer) -> list[str]:
    """The reasons that together explain everything wrong with an answer; empty if something is left unexplained, or nothing is wrong."""
    if answer.verdict not in BAD:
        return []
    kinds = {found.kind for found in answer.differences} or {answer.verdict}
    rules = [rule for rule in ANSWERS if rule.kinds & kinds and rule.applies(answer.exchange, answer.reading)]
    explained = {kind for rule in rules for kind in rule.kinds}
    if kinds <= explained:
        return [rule.reason for rule in rules]
    name = NAMES.get(answer.exchange.protocol, {}).get(answer.exchange.source)
    return [name] if name else []


# --- what goes back --------------------------------------------------------------------------------------------------------

CHANGES: tuple[ChangeRule, ...] = (
    ChangeRule("it came of a tool or mode that we never use", "anthropic", "never asked for"),
    ChangeRule("it came of a tool or mode that we never use", "openai_responses", "never asked for"),
)


def why_changed(answer: Answer, found: Difference) -> str:
    """Why something goes back otherwise than it came; empty if nobody knows."""
    rules = [rule for rule in CHANGES if (rule.protocol, rule.kind) == (answer.exchange.protocol, found.kind)]
    return next((rule.reason for rule in rules if re.search(rule.pattern, str(found.ours))), "")


# --- requests --------------------------------------------------------------------------------------------------------------

UNSENT = "only fields that we never send to this service (betas, options of other programs)"

REFUSED_BY_US: tuple[RequestRule, ...] = ()
"""Requests that a service accepted and our validators refuse."""

LET_PASS: tuple[RequestRule, ...] = ()
"""Requests that a service refused and our validators accept."""


def why_judged(asked: Asked) -> str:
    """Why our validator and the service disagree; empty if nobody knows."""
    if asked.unsent and not asked.said:
        return UNSENT
    rules = {"refused by us": REFUSED_BY_US, "lets pass": LET_PASS}.get(asked.verdict, ())
    services = asked.exchange.protocol, f"{asked.exchange.protocol} {asked.exchange.host}"
    return next((rule.reason for rule in rules if rule.service in services and re.search(rule.pattern, asked.said)), "")
