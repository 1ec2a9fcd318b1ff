"""docs/embed/embedding.md: its code runs, and its tables name every option with its default and every contract."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from checks.defaults import GROUPS, PAGE, filled

import dragoman as dm
from test_agent_page import run_block, service

__all__ = ["service"]
TEXT = PAGE.read_text(encoding="utf-8")


def test_every_option_is_there_with_its_default() -> None:
    assert filled(TEXT) == TEXT, "python -m checks.defaults writes the tables anew"


def test_every_group_of_options_has_a_table() -> None:
    public = {value for value in vars(dm.options).values() if isinstance(value, type) and issubclass(value, msgspec.Struct)}
    told_elsewhere = {dm.options.Connector, dm.options.Deployment, dm.options.Spending, dm.options.TextOptions}
    assert public - set(GROUPS) - told_elsewhere == set()
    assert [group.__name__ for group in GROUPS if group.__doc__ is None] == [], "help() would show the words of its base class"


def test_every_contract_is_named() -> None:
    table = TEXT[TEXT.index("## What can be put") : TEXT.index("## Every default")]
    for name in vars(dm.contracts):
        if not name.startswith("_") and name not in ("Allow", "Deny", "Later", "WrappingProvider"):
            assert f"`{name}`" in table, name


def test_every_public_module_is_named() -> None:
    for name in dm._MODULES:
        assert re.search(rf"`(dragoman\.)?{name}\b", TEXT) or name == "context", name


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
def test_the_code_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: dm.testing.MockServer) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_block(block)["harbour"].name == "Muscat"
