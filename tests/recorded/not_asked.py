"""Recorded answers that say nothing of our decoders: they answer a request that we never make, or are not one answer."""

from __future__ import annotations

import re
from collections.abc import Callable

from recorded.exchanges import Exchange

Rule = Callable[[Exchange], bool]


def why_not_asked(exchange: Exchange) -> str:
    """The reason why an answer is left out; empty for one that we could have got."""
    return next((reason for reason, applies in _RULES[exchange.protocol].items() if applies(exchange)), "")


def _holds(pattern: str) -> Rule:
    search = re.compile(pattern).search
    return lambda exchange: search(exchange.body) is not None


def _begins_twice(event: str) -> Rule:
    begin = re.compile(rf'"type":\s*"{re.escape(event)}"')
    return lambda exchange: exchange.stream and len(begin.findall(exchange.body)) > 1


_RULES: dict[str, dict[str, Rule]] = {
    "anthropic": {
        "several answers in one fixture": _begins_twice("message_start"),
    },
    "openai_chat": {
        "several choices (n > 1)": lambda exchange: (exchange.asked.get("n") or 1) > 1,
        "functions in their old form": lambda exchange: "functions" in exchange.asked,
        "an answer in audio": lambda exchange: "audio" in (exchange.asked.get("modalities") or ()),
    },
    "openai_responses": {
        "several answers in one fixture": _begins_twice("response.created"),
        "background mode": lambda exchange: bool(exchange.asked.get("background")) or _is_queued(exchange),
        "an answer of another protocol": lambda exchange: '"choices"' in exchange.body[:300],
    },
    "gemini": {
        "a stream in one JSON list (without alt=sse)": lambda exchange: exchange.body.lstrip().startswith("["),
        "enums as numbers": _holds(r'"finishReason":\s*\d'),
        "arguments of calls in pieces": _holds(r'"partialArgs"|"willContinue"'),
        "enums that no service has": _holds(r"FAKE_"),
    },
}


def _is_queued(exchange: Exchange) -> bool:
    return not exchange.stream and re.search(r'"status":\s*"(queued|in_progress)"', exchange.body[:3000]) is not None
