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
    pattern: str
    """Found in `kind: what came → what goes back`."""


class RequestRule(NamedTuple):
    reason: str
    shown_by: ProtocolName
    pattern: str
    """Found in what we say against the request or, for one that the service refused, in what the service says."""
    host: str = ""
    """The only service it holds for; empty: all."""


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

CHANGES = (
    ChangeRule("it came of a tool or mode that we never use", "anthropic", r"^never asked for:"),
    ChangeRule("it came of a tool or mode that we never use", "openai_responses", r"^never asked for:"),
    ChangeRule("the result of a search that an earlier answer began", "anthropic", r"^order: \['web_search_tool_result'"),
    ChangeRule("a field that the service does not have, in a fixture", "anthropic", r"^refused: .*\.snippet: Extra inputs"),
    ChangeRule("an id that not every service takes goes back as a digest", "openai_chat", r"^call ids: .* → \['(dx-\w+|\w{9})'"),
    ChangeRule("an answer of blanks alone says nothing", "gemini", r"^order: \['text'\] → \[\]$"),
)


def why_changed(answer: Answer, found: Difference) -> str:
    """Why something goes back otherwise than it came; empty if nobody knows."""
    change = f"{found.kind}: {found.service} → {found.ours}"
    rules = [rule for rule in CHANGES if rule.protocol == answer.exchange.protocol]
    return next((rule.reason for rule in rules if re.search(rule.pattern, change)), "")


# --- requests --------------------------------------------------------------------------------------------------------------

UNSENT = "only fields that we never send to this service (betas, options of other programs)"

REFUSED_BY_US = (
    RequestRule("our rule: no empty text", "openai_chat", r"^text content is empty"),
    RequestRule("our rule: roles alternate, for the templates of local models", "openai_chat", r"roles must alternate", "ollama.com"),
    RequestRule("a null in a message of the user", "openai_chat", r"^Unknown parameter: 'messages\[\d+\]\.tool_calls'"),
    RequestRule("xAI takes the same reasoning twice", "openai_responses", r"^Duplicate item found", "api.x.ai"),
    RequestRule("our rule: no sampling parameters where the model ignores them", "gemini", r"^Sampling parameters are not supported"),
)
"""Requests that a service accepted and our validators refuse. A rule holds for the protocol that shows it."""

LET_PASS = (
    RequestRule(
        "longer than the window, in tokens that only the service can count",
        "gemini",
        r"prompt is too long|maximum context length|context_length_exceeded|exceeds the maximum number of tokens",
    ),
    RequestRule(
        "a picture or file that the service could not fetch or read",
        "gemini",
        r"Cannot fetch content|invalid_image_url|Error while downloading",
    ),
    RequestRule("a wrong key", "gemini", r"API key not valid|Incorrect API key|invalid_api_key"),
    RequestRule("a model that does not exist", "openai_responses", r"model_not_found"),
    RequestRule("a call that the model wrote wrongly", "openai_chat", r"tool_use_failed"),
)
"""Requests that a service refused and our validators accept: nothing that a validator could know, whatever the protocol."""


def why_judged(asked: Asked) -> str:
    """Why our validator and the service disagree; empty if nobody knows."""
    if asked.unsent and not asked.said:
        return UNSENT
    protocol, host = asked.exchange.protocol, asked.exchange.host
    rules: tuple[RequestRule, ...] = ()
    if asked.verdict == "refused by us":
        rules = tuple(rule for rule in REFUSED_BY_US if rule.shown_by == protocol and rule.host in ("", host))
    elif asked.verdict == "lets pass":
        rules = LET_PASS
    return next((rule.reason for rule in rules if re.search(rule.pattern, asked.said)), "")
