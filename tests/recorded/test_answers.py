"""Every recorded answer of a real service, played to our providers: what they read is what the service said."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.values.profile import ProtocolName
from outside_folders import ARE_USUAL_RECORDINGS
from recorded import known
from recorded.answers import BAD
from recorded.exchanges import PROTOCOLS
from recorded.report import AnswerReport, report_answers


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_answer_is_read_as_it_was_meant_and_goes_back_as_it_came(protocol: ProtocolName, recordings: Path) -> None:
    report = report_answers(protocol, recordings)
    assert report.judged
    assert not report.unexplained, "\n".join(report.unexplained)
    assert not report.unexplained_changes, "\n".join(report.unexplained_changes)
    if ARE_USUAL_RECORDINGS:
        assert report.bad <= known.MOST[protocol]
        assert not _needless(report), "take it out of known.py"


def test_the_known_answers_are_few() -> None:
    assert sum(known.MOST.values()) <= 40


def _needless(report: AnswerReport) -> list[str]:
    """What is listed as known, and is not so any more."""
    wrong = {answer.exchange.source for answer in report.judged if answer.verdict in BAD}
    named = known.NAMES.get(report.protocol, {}).keys() - wrong
    rules = {rule.reason for rule in known.ANSWERS if rule.shown_by == report.protocol} - {why for _, why in report.reasons}
    changes = {rule.reason for rule in known.CHANGES if rule.protocol == report.protocol} - {why for _, why in report.changed}
    return [*named, *rules, *changes]
