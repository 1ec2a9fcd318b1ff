"""Every deployment of the catalog with its default model: what is sent, the official SDKs could have sent."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError

import pytest
from checks.sdk_types import official
from checks.wire import BEGIN, END, PAGE
from checks.wire_cases import Row, digest, rows, sent

from destinations import rules_of
from dragoman.testing.mock.validate import validate

ROWS = list(rows())
ids = [row.name for row in ROWS]


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_an_official_sdk_could_have_sent_it(row: Row) -> None:
    try:
        sdk = official(row)
        assert sdk.label
    except PackageNotFoundError as error:
        pytest.skip(f"{error.name} is not installed here; make wire-check does it with the newest")
    faults = {each.case: fault for each in sent(row) if each.request and (fault := sdk.check(each.body))}
    assert not faults


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_the_strict_validator_takes_it(row: Row) -> None:
    rules = rules_of(row.deployment, row.profile)
    found = {each.case: validate(row.deployment.protocol, each.body, rules) for each in sent(row) if each.request}
    assert {case: fault.message for case, fault in found.items() if fault} == {}


def test_the_table_is_of_what_is_sent_now() -> None:
    table = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    said = dict(re.findall(r"^\| `([^`]+)` \|.*\| `([0-9a-f]{8})` \|$", table, re.MULTILINE))
    assert said == {row.name: digest(row) for row in ROWS}, "docs/reference/wire.md tells of other requests: make wire-check"


def test_no_request_of_the_table_failed() -> None:
    assert "✗" not in PAGE.read_text(encoding="utf-8").split(BEGIN)[1]
