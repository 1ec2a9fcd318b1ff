"""Every recorded answer of a real service, played to our providers: what they read is what the service said."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from dragoman.values.profile import ProtocolName
from recorded import known
from recorded.exchanges import IS_DEFAULT, PROTOCOLS, read_exchanges
from recorded.report import AnswerReport, report_answers


@cache
def report(protocol: ProtocolName) -> AnswerReport:
    return report_answers(protocol)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_answer_is_read_as_the_service_meant_it(protocol: ProtocolName, recordings: Path) -> None:
    found = report(protocol)
    assert not found.unexplained, "\n".join(found.unexplained)
    assert not found.verdicts["crash"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_answer_goes_back_as_it_came(protocol: ProtocolName, recordings: Path) -> None:
    found = report(protocol)
    assert not found.unexplained_changes, "\n".join(found.unexplained_changes)


@pytest.mark.skipif(not IS_DEFAULT, reason="the lists were written for the recordings beside the checkout")
def test_the_list_of_known_answers_is_true_and_short(recordings: Path) -> None:
    reports = [report(protocol) for protocol in PROTOCOLS]
    needless = [source for each in reports for source in each.needless]
    assert not needless, f"read well, so take them out of known.NAMES: {needless}"
    sources = {exchange.source for protocol in PROTOCOLS for exchange in read_exchanges(protocol)}
    assert sources >= set(known.NAMES)
    used = {reason for each in reports for _, reason in each.reasons}
    assert used >= {rule.reason for rule in known.ANSWERS}, "no recording needs these rules any more"
    assert {why for each in reports for _, why in each.changed} == set(known.SENT_BACK.values())
    assert sum(each.bad for each in reports) <= known.MOST_ANSWERS
