"""The verdict on every recorded request: do our validators accept what the service accepted, and refuse what it refused?"""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dragoman.testing.mock.validate import Rules, Violation, validate
from recorded.exchanges import Exchange
from recorded.services import deployment_of, rules_for
from recorded.unsent import fields_sent, refused_fields, without_fields

Verdict = Literal["pass", "refused by us", "both refuse", "lets pass", "not asked"]
VERDICTS: tuple[Verdict, ...] = ("pass", "refused by us", "both refuse", "lets pass", "not asked")
BAD: tuple[Verdict, ...] = ("refused by us", "lets pass")
_ABOUT_THE_BODY = (400, 422)


@dataclass
class Asked:
    """A recorded request, what the service did with it, and what our validator says."""

    exchange: Exchange
    verdict: Verdict
    said: str = ""
    """Why we refuse what the service accepted, why the service refused what we accept, or why the request is left out."""
    unsent: tuple[str, ...] = ()
    """Fields that we never send to this service and our validator does not know. `said` is about the request without them."""


def judge_requests(exchanges: Iterable[Exchange]) -> list[Asked]:
    """Validate every request once, however often it was recorded."""
    judged = []
    seen = set()
    for exchange in exchanges:
        if not exchange.asked:
            continue
        key = exchange.host, json.dumps(exchange.asked, sort_keys=True)
        if key not in seen:
            seen.add(key)
            judged.append(_judge(exchange))
    return judged


def _judge(exchange: Exchange) -> Asked:
    rules = rules_for(exchange)
    if rules is None:
        return Asked(exchange, "not asked", "a service without a row in the catalog")
    error = _error(exchange)
    if error and exchange.status not in _ABOUT_THE_BODY:
        return Asked(exchange, "not asked", f"an answer that says nothing of the body (HTTP {exchange.status})")
    violation, unsent = _validate(exchange, rules)
    if error:
        return Asked(exchange, "both refuse" if violation or unsent else "lets pass", error, unsent)
    if violation is None and not unsent:
        return Asked(exchange, "pass")
    return Asked(exchange, "refused by us", violation.message if violation else "", unsent)


def _validate(exchange: Exchange, rules: Rules) -> tuple[Violation | None, tuple[str, ...]]:
    """What is wrong with a request. Fields that we never send are taken out and named, so that they hide nothing else."""
    body, unsent = exchange.asked, list[str]()
    sent = fields_sent(deployment_of(exchange).name)
    while True:
        try:
            violation = validate(exchange.protocol, body, rules)
        except Exception:
            violation = Violation(0, f"the validator crashed: {traceback.format_exc(limit=-1)}")
        fields = refused_fields(violation.message) if violation else []
        rest = without_fields(body, fields)
        if sent.intersection(fields) or rest == body:
            return violation, tuple(unsent)
        unsent += fields
        body = rest


def _error(exchange: Exchange) -> str:
    """What the service said against the request; empty if it answered."""
    if exchange.status >= 400:
        return exchange.body
    if exchange.stream:
        return ""
    try:
        document = json.loads(exchange.body)
    except ValueError:
        return ""
    return json.dumps(document["error"]) if isinstance(document, dict) and document.get("error") else ""
