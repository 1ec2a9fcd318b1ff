"""Every recorded request, validated: our validators accept what the services accepted and refuse what they refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.values.profile import ProtocolName
from outside_folders import ARE_USUAL_RECORDINGS
from recorded import known
from recorded.exchanges import PROTOCOLS
from recorded.report import report_requests


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_validators_agree_with_the_services(protocol: ProtocolName, recordings: Path) -> None:
    report = report_requests(protocol, recordings)
    assert report.judged
    assert not report.unexplained, "\n".join(report.unexplained)
    if ARE_USUAL_RECORDINGS:
        rules = {rule.reason for rule in (*known.REFUSED_BY_US, *known.LET_PASS) if rule.shown_by == protocol}
        needless = rules.difference(why for _, why in report.reasons)
        assert not needless, "take it out of known.py"
