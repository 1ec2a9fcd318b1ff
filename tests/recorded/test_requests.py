"""Every recorded request, validated: our validators accept what the services accepted and refuse what they refused."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from dragoman.values.profile import ProtocolName
from recorded import known
from recorded.exchanges import IS_DEFAULT, PROTOCOLS
from recorded.report import RequestReport, report_requests


@cache
def report(protocol: ProtocolName) -> RequestReport:
    return report_requests(protocol)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_validators_agree_with_the_services(protocol: ProtocolName, recordings: Path) -> None:
    found = report(protocol)
    assert not found.unexplained, "\n".join(found.unexplained)


@pytest.mark.skipif(not IS_DEFAULT, reason="the lists were written for the recordings beside the checkout")
def test_every_listed_reason_is_needed(recordings: Path) -> None:
    used = {reason for protocol in PROTOCOLS for _, reason in report(protocol).reasons}
    listed = {rule.reason for rule in (*known.REFUSED_BY_US, *known.LET_PASS)}
    assert not listed - used, "no recording needs these rules any more"
