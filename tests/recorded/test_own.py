"""The recordings of our own making: they are in every clone, so that whoever changes a protocol sees at once what it reads otherwise."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.values.profile import ProtocolName
from recorded import own
from recorded.exchanges import PROTOCOLS, read_exchanges
from recorded.report import report_answers, report_requests


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_answer_is_read_and_every_request_is_judged_as_the_service_did(protocol: ProtocolName) -> None:
    answers, requests = report_answers(protocol, own.FOLDER), report_requests(protocol, own.FOLDER)
    assert len(answers.judged) >= 15
    assert requests.judged
    assert (answers.unexplained, answers.unexplained_changes, requests.unexplained, answers.bad) == ([], [], [], 0)
    assert answers.verdicts["error as meant"] >= 6


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_they_are_what_the_sdks_and_the_service_say_today(protocol: ProtocolName) -> None:
    """Where this fails after a change of the loopback service or a newer SDK: `PYTHONPATH=tests python -m recorded.own` records anew."""
    kept = {each.source: each for each in read_exchanges(protocol, own.FOLDER)}
    asked = kept[f"own/{protocol}: calls, streamed"]
    today = asyncio.run(own.record(protocol, "calls", own.SCENES["calls"], stream=True))
    assert today.request == asked.request
    assert (today.status, today.path, today.query) == (asked.status, asked.path, asked.query)
    assert [each.source for each in own.written(protocol)] == [name for name in kept if name.startswith("written/")]
